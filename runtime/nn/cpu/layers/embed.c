/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "runtime/nn/cpu/layers/table.h"

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

/* Adds rows of dy to the table of positions. Positions from seq_len on get nothing. */
static void add_positions(const struct weft_nn_walked *at, bool adds, void *gradient)
{
    const int64_t width = at->out[0].columns, rows = at->in[0].rows;
    const int64_t step = at->call->batch.seq_len;
    for (int64_t p = 0; p < step && p < rows; p++) {
        const struct weft_nn_taken taken = {NULL, p, step};
        weft_nn_cpu_table_row(at, &taken, rows, width, 1, adds,
                              weft_nn_to(at->call->gradient_dtype, gradient, p * width));
    }
}

/* Adds rows of dy to the table of tokens, one after the other. In 16 bits all rows of a token come
 * at its first one, so that their sum is rounded once. */
static void add_tokens(const struct weft_nn_walked *at, bool adds, void *gradient)
{
    enum { MARKED = 1 << 16, BITS = 64 };
    const enum weft_dtype to = at->call->gradient_dtype;
    const int32_t *tokens = at->in[0].data;
    const int64_t width = at->out[0].columns, rows = at->in[0].rows;
    const float scale = scale_of(at);
    for (int64_t i = 0; to == WEFT_F32 && i < rows; i++) {
        const struct weft_nn_taken one = {NULL, i, rows};
        weft_nn_cpu_table_row(at, &one, rows, width, scale, true,
                              weft_nn_to(to, gradient, tokens[i] * width));
    }
    for (int64_t from = 0; to != WEFT_F32 && from < at->step->sizes.vocab; from += MARKED) {
        uint64_t done[MARKED / BITS] = {0};
        for (int64_t i = 0; i < rows; i++) {
            const int64_t mark = tokens[i] - from;
            if (mark < 0 || mark >= MARKED || (done[mark / BITS] >> mark % BITS & 1) != 0) continue;
            const struct weft_nn_taken taken = {tokens, i, 0};
            done[mark / BITS] |= UINT64_C(1) << mark % BITS;
            weft_nn_cpu_table_row(at, &taken, rows, width, scale, adds,
                                  weft_nn_to(to, gradient, tokens[i] * width));
        }
    }
}

/* Tokens repeat, and the order of their sum is that of rows. */
enum weft_status weft_nn_cpu_embed_backward(const struct weft_nn_walked *at, struct weft_error *err)
{
    WEFT_TRY(check_tokens(at, err));
    const struct weft_nn_call *call = at->call;
    const int64_t width = at->out[0].columns;
    for (int32_t index = TOKENS; index < at->step->n_tensors; index++) {
        const int32_t tensor = weft_nn_step_tensor(at, index);
        void *gradient = call->gradients[tensor];
        const bool adds = call->accumulate[tensor];
        const int64_t bytes = width * weft_dtype_bytes(call->gradient_dtype);
        if (!gradient) continue;
        if (!adds) memset(gradient, 0, (size_t)(at->walk->tensors[tensor].rows * bytes));
        if (index == TOKENS)
            add_tokens(at, adds, gradient);
        else
            add_positions(at, adds, gradient);
    }
    return WEFT_OK;
}
