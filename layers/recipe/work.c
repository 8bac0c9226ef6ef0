/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/recipe/derive.h"

#include <string.h>

enum weft_status weft_recipe_shape(const struct weft_layer *layer, double residual_std,
                                   struct weft_layer_shape *out, struct weft_error *err)
{
    const struct weft_batch one = {.samples = 1, .seq_len = 1, .compute = WEFT_F32};
    struct weft_walk walk;
    WEFT_TRY(weft_walk_derive_initial(layer, &one, WEFT_RECOMPUTE_NONE, residual_std, &walk, err));
    for (int32_t i = 0; i < walk.n_tensors; i++)
        out->tensors[out->n_tensors++] = walk.tensors[i];
    if (layer->kind->recipe->outputs_follow && walk.output != WEFT_WALK_NONE)
        out->outputs = walk.values[walk.output].columns;
    return WEFT_OK;
}

/* Elements of the step's tensors; only matrices if `matrices`. */
static double elements_of(const struct weft_walk *walk, const struct weft_walk_step *step,
                          bool matrices)
{
    double elements = 0;
    for (int32_t i = 0; i < step->n_tensors; i++) {
        const struct weft_layer_tensor *tensor = &walk->tensors[step->first_tensor + i];
        if (tensor->columns > 0)
            elements += (double)tensor->rows * (double)tensor->columns;
        else if (!matrices)
            elements += (double)tensor->rows;
    }
    return elements;
}

double weft_step_weights(const struct weft_walk *walk, const struct weft_walk_step *step)
{
    return step->op->weights != NULL ? step->op->weights(walk, step)
                                     : elements_of(walk, step, false);
}

/* In a recipe with products, flops and parameters of other steps are left out. */
static void add_flops(const struct weft_walk *walk, struct weft_subject *subject,
                      struct weft_layer_work *work)
{
    bool products = false;
    for (int32_t i = 0; i < walk->n_steps; i++)
        products = products || (walk->steps[i].op->counts &&
                                walk->steps[i].op->flops(walk, &walk->steps[i]) > 0);
    for (int32_t i = 0; i < walk->n_steps; i++) {
        const struct weft_walk_step *step = &walk->steps[i];
        const struct weft_op *op = step->op;
        const bool counts = op->counts || !products;
        const double flops = op->flops(walk, step);
        if (counts) {
            work->forward_flops += flops;
            work->backward_flops +=
                op->backward_flops != NULL ? op->backward_flops(walk, step) : 2 * flops;
        }
        subject->weights +=
            op->weights != NULL ? op->weights(walk, step) : elements_of(walk, step, products);
        if (op->gradients != NULL) subject->gradients = op->gradients(walk, step);
    }
}

static int64_t larger_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void add_scratch(struct weft_walk *walk, struct weft_layer_work *work)
{
    int64_t own = 0;
    for (int32_t i = 0; i < walk->n_steps; i++) {
        struct weft_step_scratch scratch = {0};
        const struct weft_op *op = walk->steps[i].op;
        if (op->scratch != NULL) op->scratch(walk, &walk->steps[i], &scratch);
        work->forward_scratch_bytes = larger_of(work->forward_scratch_bytes, scratch.gpu_forward);
        work->backward_scratch_bytes =
            larger_of(work->backward_scratch_bytes, scratch.gpu_backward);
        own = weft_plus(&walk->fits, own, scratch.gpu_own);
    }
    work->backward_scratch_bytes = weft_plus(&walk->fits, work->backward_scratch_bytes, own);
}

/* Adds the bytes of a value's place to *bytes, once. */
static void count_place(struct weft_walk *walk, int32_t value, bool *counted, double *bytes)
{
    const int32_t place = value == WEFT_WALK_NONE ? WEFT_WALK_NONE : walk->values[value].place;
    if (place == WEFT_WALK_NONE || counted[place]) return;
    counted[place] = true;
    *bytes += (double)weft_walk_bytes(walk, &walk->values[place]);
}

/* Least traffic of restoring: every place that a restored step reads or writes moves once, and its
 * weights do. */
static double moved_by_restoring(struct weft_walk *walk)
{
    bool counted[WEFT_WALK_VALUES] = {false};
    double bytes = 0;
    for (int32_t i = 0; i < walk->n_steps; i++) {
        const struct weft_walk_step *step = &walk->steps[i];
        if (step->restore == WEFT_RESTORE_NONE) continue;
        for (int32_t k = 0; k < step->n_out; k++)
            count_place(walk, step->out[k], counted, &bytes);
        if (step->restore == WEFT_RESTORE_THEN) continue;
        for (int32_t k = 0; k < step->n_in; k++)
            count_place(walk, step->in[k].value, counted, &bytes);
        for (int32_t k = 0; k < step->n_statistics; k++)
            count_place(walk, step->statistics[k], counted, &bytes);
        count_place(walk, step->add.value, counted, &bytes);
        bytes += weft_step_weights(walk, step) * (double)weft_dtype_bytes(walk->batch.compute);
    }
    return bytes;
}

static struct weft_layer_split split_of(struct weft_walk *walk)
{
    struct weft_layer_split split = {.possible = true,
                                     .kept_bytes = walk->kept_bytes,
                                     .dropped_bytes = walk->dropped_bytes,
                                     .moved_bytes = moved_by_restoring(walk)};
    for (int32_t i = 0; i < walk->n_steps; i++) {
        const struct weft_walk_step *step = &walk->steps[i];
        if (step->restore == WEFT_RESTORE_ALL && step->op->counts)
            split.flops += step->op->flops(walk, step);
    }
    return split;
}

/* Fills in the levels of recomputation. The walk takes each in turn. */
static void add_splits(struct weft_walk *walk, struct weft_layer_work *work)
{
    const struct weft_walk_levels levels = weft_walk_levels(walk);
    for (int level = WEFT_RECOMPUTE_FIRST; level < WEFT_RECOMPUTE_COUNT; level++) {
        if ((levels.possible & 1u << level) == 0) continue;
        weft_walk_keep(walk, (enum weft_recompute)level, levels.keeps[level]);
        work->splits[level] = split_of(walk);
    }
}

enum weft_status weft_recipe_needs(struct weft_subject *subject, struct weft_layer_work *work,
                                   struct weft_error *err)
{
    struct weft_walk walk;
    WEFT_TRY(weft_walk_derive(subject->layer, subject->batch, WEFT_RECOMPUTE_NONE, &walk, err));
    work->saved_bytes = walk.kept_bytes;
    work->forward_temporary_bytes = walk.forward_bytes;
    work->backward_temporary_bytes = walk.backward_bytes;
    work->backward_reads_input = walk.reads_input;
    work->backward_reads_output = walk.reads_output;
    work->reads_padding = walk.hides;
    add_flops(&walk, subject, work);
    add_scratch(&walk, work);
    if (subject->layer->kind->recipe->recomputes) add_splits(&walk, work);
    subject->sizes.overflowed |= walk.fits.overflowed;
    return WEFT_OK;
}

static void add_key(const struct weft_layer *layer, const struct weft_field *key,
                    struct weft_text *out)
{
    const char *at = (const char *)layer + key->offset;
    if (key->kind == WEFT_FIELD_NUMBER)
        weft_text_addf(out, "=%.17g", *(const double *)(const void *)at);
    else if (key->kind == WEFT_FIELD_INTEGER)
        weft_text_addf(out, "=%lld", (long long)*(const int64_t *)(const void *)at);
}

/* Every key, and flags by name if true; but weft_layer_key adds "bias". */
static void add_every_key(const struct weft_layer *layer, struct weft_text *out)
{
    for (size_t i = 0; i < layer->kind->n_keys; i++) {
        const struct weft_field *key = &layer->kind->keys[i];
        const bool flag = key->kind == WEFT_FIELD_BOOL;
        if (key->kind == WEFT_FIELD_STRING || key->offset == WEFT_LAYER_AT(bias)) continue;
        if (flag && !*(const bool *)(const void *)((const char *)layer + key->offset)) continue;
        weft_text_addf(out, " %s", key->name);
        add_key(layer, key, out);
    }
}

void weft_recipe_add_sizes(const struct weft_layer *layer, struct weft_text *out)
{
    const struct weft_recipe *recipe = layer->kind->recipe;
    if (layer->kind->identity != NULL) weft_text_addf(out, " recipe=%s", layer->kind->identity);
    if (recipe->sizes[0].name == NULL) add_every_key(layer, out);
    for (int32_t i = 0; i < WEFT_RECIPE_KEYS && recipe->sizes[i].name != NULL; i++) {
        weft_text_addf(out, " %s", recipe->sizes[i].name);
        add_key(layer, weft_kind_key(layer->kind, recipe->sizes[i].key), out);
    }
}
