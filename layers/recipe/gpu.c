/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "layers/recipe/op.h"
#include "spec/kind.h"

/* The key of the kind that alone gives the attribute, or otherwise the attribute's name. */
static const char *name_attribute(const struct weft_walk *walk, const char *text,
                                  const char *attribute)
{
    const bool is_key = text != NULL && weft_kind_key(walk->layer->kind, text) != NULL;
    return is_key ? text : attribute;
}

/* Ops are told apart by name, because a module has its own copies of them. */
static bool is_op(const struct weft_walk_step *step, const char *name)
{
    return strcmp(step->op->name, name) == 0;
}

/* Ops and activations without kernels, by the key that asks for the step or its table. */
static const char *find_lacking_op(const struct weft_walk *walk, const struct weft_walk_step *step)
{
    const struct weft_recipe_step *from = step->from;
    const bool only_cpu = from->kind == WEFT_WORD_GELU_ERF || from->kind == WEFT_WORD_TANH;
    if (is_op(step, "gate") && from->kind != WEFT_WORD_SILU) return "kind";
    if (is_op(step, "activate") && only_cpu) return name_attribute(walk, from->when, "kind");
    if (is_op(step, "first_rows")) return name_attribute(walk, from->when, "first_rows");
    if (!is_op(step, "add_rows")) return NULL;
    return name_attribute(walk, from->positions != NULL ? from->positions : from->vocab,
                          "add_rows");
}

static const char *find_lacking(const struct weft_walk *walk, const struct weft_walk_step *step)
{
    const struct weft_recipe_step *from = step->from;
    const struct weft_step_numbers *numbers = &step->numbers;
    const int64_t window = step->sizes.window;
    if (numbers->shift != 0) return name_attribute(walk, from->shift, "shift");
    if (numbers->scale != 0) return name_attribute(walk, from->scale, "scale");
    if (numbers->scalar != 0) return name_attribute(walk, from->scalar, "scalar");
    if (numbers->cap != 0) return name_attribute(walk, from->cap, "cap");
    if (window > 0 && window < walk->batch.seq_len)
        return name_attribute(walk, from->window, "window");
    if (is_op(step, "attend") && step->sizes.causal == 0) return "causal";
    if (is_op(step, "norm") && from->kind == WEFT_WORD_LAYER &&
        numbers->epsilon != WEFT_USUAL_EPSILON)
        return name_attribute(walk, from->epsilon, "epsilon");
    return find_lacking_op(walk, step);
}

const char *weft_walk_gpu_lacks(const struct weft_walk *walk)
{
    const char *name = NULL;
    for (int32_t i = 0; i < walk->n_steps && name == NULL; i++)
        name = find_lacking(walk, &walk->steps[i]);
    return name;
}

const char *weft_recipe_gpu_lacks(const struct weft_layer *layer, int64_t seq_len)
{
    const struct weft_batch batch = {
        .samples = 1, .seq_len = seq_len, .compute = WEFT_F32, .on_gpu = true};
    struct weft_walk walk;
    struct weft_error ignored;
    /* A layer without a walk is refused elsewhere. */
    if (weft_walk_derive(layer, &batch, WEFT_RECOMPUTE_NONE, &walk, &ignored) != WEFT_OK)
        return NULL;
    return weft_walk_gpu_lacks(&walk);
}
