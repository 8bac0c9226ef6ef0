/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/shared/rope.h"

#include <string.h>

#include "runtime/nn/cpu/layers/walk.h"

/* Turns the columns of the input in a whole value. */
static void turn_columns(const struct weft_nn_walked *at, bool back,
                         const struct weft_nn_operand *whole)
{
    float frequencies[WEFT_ROPE_MOST_SIZE / 2];
    const struct weft_nn_call *call = at->call;
    const struct weft_step_numbers *n = &at->step->numbers;
    const struct weft_rope_scaling scaling = {n->factor, n->low, n->high, at->step->sizes.original};
    const int64_t size = at->step->sizes.head_dim;
    const struct weft_rope_rows rows = {.samples = call->batch.samples,
                                        .seq_len = call->batch.seq_len,
                                        .first = call->cache != NULL ? call->cache->before : 0,
                                        .heads = at->in[0].columns / size,
                                        .size = size,
                                        .stride = whole->stride,
                                        .frequencies = frequencies,
                                        .back = back};
    weft_rope_frequencies(size, n->base, &scaling, frequencies);
    weft_nn_step_kernels(at)->rope(
        &rows, weft_nn_to(call->batch.compute, whole->data, at->step->in[0].from));
}

/* Copies rows, unless they are in place. */
static void copy_rows(const struct weft_nn_walked *at, const void *from, int64_t stride,
                      const struct weft_nn_operand *to)
{
    const enum weft_dtype dtype = at->call->batch.compute;
    const size_t bytes = (size_t)(to->columns * weft_dtype_bytes(dtype));
    for (int64_t row = 0; from != to->data && row < to->rows; row++)
        memcpy(weft_nn_to(dtype, to->data, row * to->stride), weft_nn_at(dtype, from, row * stride),
               bytes);
}

enum weft_status weft_nn_cpu_rope_forward(const struct weft_nn_walked *at, struct weft_error *err)
{
    (void)err;
    const void *whole = weft_nn_at(at->call->batch.compute, at->in[0].data, -at->step->in[0].from);
    copy_rows(at, whole, at->in[0].stride, &at->out[0]);
    turn_columns(at, false, &at->out[0]);
    return WEFT_OK;
}

/* The gradient turns in its place, unless another value has the same one. */
enum weft_status weft_nn_cpu_rope_backward(const struct weft_nn_walked *at, struct weft_error *err)
{
    (void)err;
    copy_rows(at, at->d_out.data, at->d_out.stride, &at->turned);
    turn_columns(at, true, &at->turned);
    return WEFT_OK;
}
