/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/nn/cuda/layers/walk.h"

#include <string.h>

#include "runtime/nn/cuda/kernels/record.h"

#define WORD(name) (1u << WEFT_WORD_##name)

/* Found by name, because a module has its own copies of the program's ops. */
struct functions {
    const char *op;
    weft_cuda_step_fn *forward;
    weft_cuda_step_fn *backward; /* NULL: nothing is left to do */
    unsigned kinds;              /* words of `kind` and `then` that have kernels */
};

static const struct functions table[] = {
    {"product", weft_cuda_product_forward, weft_cuda_product_backward, WORD(GELU)},
    {"norm", weft_cuda_norm_forward, weft_cuda_norm_backward, WORD(LAYER) | WORD(RMS)},
    {"rope", weft_cuda_rope_forward, weft_cuda_rope_backward, 0},
    {"gate", weft_cuda_gate_forward, weft_cuda_gate_step_backward, WORD(SILU) | WORD(GELU)},
    {"attend", weft_cuda_attend_forward, weft_cuda_attend_step_backward, 0},
    {"activate", weft_cuda_activate_forward, weft_cuda_activate_backward,
     WORD(GELU) | WORD(RELU) | WORD(SQUARED_RELU) | WORD(GELU_ERF) | WORD(TANH)},
    {"embed", weft_cuda_embed_forward, weft_cuda_embed_backward, 0},
    {"mean_rows", weft_cuda_mean_rows_forward, weft_cuda_mean_rows_backward, 0},
    {"first_rows", weft_cuda_first_rows_forward, weft_cuda_first_rows_backward, 0},
    {"add_rows", weft_cuda_add_rows_forward, weft_cuda_add_rows_backward, 0},
    {"loss", weft_cuda_loss_forward, NULL, 0},
    {"add", weft_cuda_add_forward, NULL, 0},
};

static const struct functions *functions_of(const struct weft_op *op)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(table[i].op, op->name) == 0) return &table[i];
    return NULL;
}

static bool has_kernels(const struct weft_walk_step *step)
{
    const struct functions *functions = functions_of(step->op);
    const enum weft_word words[] = {step->from->kind, step->from->then};
    for (int i = 0; i < 2 && functions != NULL; i++)
        if (words[i] != WEFT_WORD_NONE && (functions->kinds & 1u << words[i]) == 0) return false;
    return functions != NULL;
}

/* A GPU's product computes its activation with other bits than the activation alone. */
static enum weft_status check_step(const struct weft_walk *walk, const struct weft_walk_step *step,
                                   struct weft_error *err)
{
    if (!has_kernels(step))
        return weft_fail(err, WEFT_E_DATA,
                         "layer %s (%s): a GPU has no kernels of step \"%s\" (%s): train it with "
                         "cluster.device.type cpu",
                         walk->layer->name, weft_layer_type_of(walk->layer), step->from->out[0],
                         step->op->name);
    if (step->restore == WEFT_RESTORE_THEN)
        return weft_fail(
            err, WEFT_E_DATA,
            "layer %s: drops a GELU and keeps its product, as a CPU may. A GPU computes "
            "both at once: plan for cluster.device.type cuda",
            walk->layer->name);
    return WEFT_OK;
}

static int64_t larger_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void add_needs(struct weft_cuda_walk *out)
{
    struct weft_nn_needs *needs = &out->step_needs;
    for (int32_t i = 0; i < out->walk.n_steps; i++) {
        struct weft_step_scratch scratch = {0};
        const struct weft_op *op = out->walk.steps[i].op;
        if (op->scratch != NULL) op->scratch(&out->walk, &out->walk.steps[i], &scratch);
        needs->forward_bytes = larger_of(needs->forward_bytes, scratch.gpu_forward);
        needs->backward_bytes = larger_of(needs->backward_bytes, scratch.gpu_backward);
        out->scale_bytes += scratch.gpu_own;
    }
}

enum weft_status weft_cuda_walk_derive(bool plain, const struct weft_layer *layer,
                                       const struct weft_batch *batch, enum weft_recompute level,
                                       struct weft_cuda_walk *out, struct weft_error *err)
{
    *out = (struct weft_cuda_walk){.scale_bytes = 0};
    WEFT_TRY(weft_walk_derive(layer, batch, level, &out->walk, err));
    for (int32_t i = 0; i < out->walk.n_steps; i++)
        WEFT_TRY(check_step(&out->walk, &out->walk.steps[i], err));
    const bool planned = out->walk.batch.plain;
    out->walk.batch.plain = planned || plain;
    add_needs(out);
    out->walk.batch.plain = planned;
    return WEFT_OK;
}

int weft_cuda_walk_forward(const struct weft_nn_cuda *cuda, const struct weft_cuda_walk *walk,
                           const struct weft_nn_call *call, char *workspace, uint32_t *found,
                           struct CUstream_st *on)
{
    const struct weft_nn_pass pass = weft_nn_pass_of(call, &walk->walk, false);
    int code = 0;
    for (int32_t i = 0; i < walk->walk.n_steps && code == 0; i++) {
        const struct weft_nn_walked at = weft_nn_step_forward(&pass, &walk->walk.steps[i]);
        const struct weft_cuda_walked s = {cuda, on, &at, workspace, NULL, found};
        code = functions_of(walk->walk.steps[i].op)->forward(&s);
    }
    return code;
}

static int restore_values(const struct weft_cuda_walked *common, const struct weft_nn_pass *pass)
{
    int code = 0;
    for (int32_t i = 0; i < pass->walk->n_steps && code == 0; i++) {
        const struct weft_walk_step *step = &pass->walk->steps[i];
        if (step->restore == WEFT_RESTORE_NONE) continue;
        const struct weft_nn_walked at = weft_nn_step_forward(pass, step);
        struct weft_cuda_walked s = *common;
        s.at = &at;
        code = functions_of(step->op)->forward(&s);
    }
    return code;
}

int weft_cuda_walk_backward(const struct weft_nn_cuda *cuda, const struct weft_cuda_walk *walk,
                            const struct weft_nn_call *call, char *workspace, int64_t scale_at,
                            uint32_t *found, struct CUstream_st *on)
{
    const struct weft_nn_pass pass = weft_nn_pass_of(call, &walk->walk, true);
    struct weft_cuda_walked s = {cuda, on, NULL, workspace, NULL, found};
    float *scale = (float *)(void *)(workspace + scale_at);
    int code = restore_values(&s, &pass);
    for (int32_t i = walk->walk.n_steps - 1; i >= 0 && code == 0; i--) {
        const struct weft_walk_step *step = &walk->walk.steps[i];
        const struct functions *functions = functions_of(step->op);
        const struct weft_nn_walked at = weft_nn_step_backward(&pass, step);
        const bool scaled = step->d_out == WEFT_GRADIENT_SAVED;
        if (functions->backward == NULL || !weft_nn_step_has_work(&at)) continue;
        if (scaled) code = weft_cuda_scale(call->loss_scale, call->scale, scale, on);
        s.at = &at;
        s.times = scaled ? scale : NULL;
        if (code == 0) code = functions->backward(&s);
    }
    return code;
}
