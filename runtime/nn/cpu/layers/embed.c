/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "runtime/nn/cpu/layers/walk.h"

enum { TOKENS, POSITIONS };

static enum weft_status check_tokens(const struct weft_nn_walked *at, struct weft_error *err)
{
    const struct weft_nn_call *call = at->call;
    const int32_t *tokens = at->in[0].data;
    const int64_t vocab = at->step->sizes.vocab;
    for (int64_t i = 0; i < at->in[0].rows; i++) {
        if (tokens[i] < 0 || tokens[i] >= vocab) {
            return weft_fail(err, WEFT_E_DATA,
                             "layer %s: token %d at position %lld of sample %lld is outside the "
                             "vocabulary 0 to %lld",
                             call->layer->name, (int)tokens[i],
                             (long long)(i % call->batch.seq_len),
                             (long long)(i / call->batch.seq_len), (long long)vocab - 1);
        }
    }
    return WEFT_OK;
}

/* The position of a row. */
static int64_t position_of(const struct weft_nn_call *call, int64_t row)
{
    return row % call->batch.seq_len + (call->cache != NULL ? call->cache->before : 0);
}

/* The scale of token rows, as a number of the compute dtype: models were trained with that. */
static float scale_of(const struct weft_nn_walked *at)
{
    const float given = (float)at->step->numbers.scale;
    const enum weft_dtype dtype = at->call->batch.compute;
    uint32_t stored = 0;
    float scale = 1;
    if (given == 0) return 1;
    at->cpu->kernels->narrow(dtype, 1, &given, &stored);
    at->cpu->kernels->widen(dtype, 1, &stored, &scale);
    return scale;
}

enum weft_status weft_nn_cpu_embed_forward(const struct weft_nn_walked *at, struct weft_error *err)
{
    WEFT_TRY(check_tokens(at, err));
    const enum weft_dtype dtype = at->call->batch.compute;
    const int64_t width = at->out[0].columns;
    const void *table = weft_nn_step_weight(at, TOKENS);
    const void *positions = weft_nn_step_weight(at, POSITIONS);
    const int32_t *tokens = at->in[0].data;
    const float scale = scale_of(at);
    for (int64_t i = 0; i < at->in[0].rows; i++) {
        const int64_t position = position_of(at->call, i) * width;
        const void *row = weft_nn_at(dtype, table, tokens[i] * width);
        const void *added = positions ? weft_nn_at(dtype, positions, position) : NULL;
        void *out = weft_nn_to(dtype, at->out[0].data, i * width);
        if (scale == 1)
            weft_nn_step_kernels(at)->fill(1, width, row, added, width, out);
        else
            weft_nn_step_kernels(at)->scale(width, scale, row, added, out);
    }
    return WEFT_OK;
}

/* gradient += scale row, widened in pieces on the stack. */
static void add_row(const struct weft_nn_walked *at, float scale, const void *row, void *gradient)
{
    enum { PIECE = 1024 };
    const enum weft_dtype from = at->call->batch.compute, to = at->call->gradient_dtype;
    const int64_t width = at->out[0].columns;
    float wide[PIECE];
    for (int64_t first = 0; first < width; first += PIECE) {
        const int64_t n = width - first < PIECE ? width - first : PIECE;
        const void *piece = weft_nn_at(from, row, first);
        if (from != WEFT_F32) at->cpu->kernels->widen(from, n, piece, wide);
        at->cpu->kernels->layers[to]->add_to(n, scale, from == WEFT_F32 ? piece : wide, true,
                                             weft_nn_to(to, gradient, first));
    }
}

/* Adds row i of dy to its row of each table, in the order of i. Tokens repeat, and the order of
 * their sum must be fixed. */
enum weft_status weft_nn_cpu_embed_backward(const struct weft_nn_walked *at, struct weft_error *err)
{
    WEFT_TRY(check_tokens(at, err));
    const struct weft_nn_call *call = at->call;
    const enum weft_dtype from = call->batch.compute, to = call->gradient_dtype;
    const int64_t width = at->out[0].columns;
    const int32_t *tokens = at->in[0].data;
    for (int32_t index = TOKENS; index < at->step->n_tensors; index++) {
        const int32_t tensor = weft_nn_step_tensor(at, index);
        void *gradient = call->gradients[tensor];
        const float scale = scale_of(at);
        if (!gradient) continue;
        if (!call->accumulate[tensor]) {
            const int64_t rows = at->walk->tensors[tensor].rows;
            memset(gradient, 0, (size_t)(rows * width * weft_dtype_bytes(to)));
        }
        for (int64_t i = 0; i < at->in[0].rows; i++) {
            const int64_t row = index == TOKENS ? tokens[i] : i % call->batch.seq_len;
            add_row(at, index == TOKENS ? scale : 1, weft_nn_at(from, at->d_out.data, i * width),
                    weft_nn_to(to, gradient, row * width));
        }
    }
    return WEFT_OK;
}
