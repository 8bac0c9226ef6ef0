/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/shared/rope.h"

#include "runtime/nn/cuda/layers/walk.h"

_Static_assert(WEFT_ROPE_MOST_SIZE / 2 <= WEFT_CUDA_ROPE_PAIRS, "a launch has all frequencies");

/* Turns the columns of the input in a whole value. */
static int turn_columns(const struct weft_cuda_walked *s, bool back,
                        const struct weft_nn_operand *whole)
{
    float frequencies[WEFT_ROPE_MOST_SIZE / 2];
    const struct weft_nn_walked *at = s->at;
    const struct weft_step_numbers *n = &at->step->numbers;
    const struct weft_rope_scaling scaling = {n->factor, n->low, n->high, at->step->sizes.original};
    const int64_t size = at->step->sizes.head_dim;
    const struct weft_cuda_rope rope = {.samples = at->call->batch.samples,
                                        .seq_len = at->call->batch.seq_len,
                                        .heads = at->in[0].columns / size,
                                        .size = size,
                                        .stride = whole->stride,
                                        .frequencies = frequencies,
                                        .back = back};
    weft_rope_frequencies(size, n->base, &scaling, frequencies);
    return weft_cuda_rope(weft_cuda_step_dtype(s), &rope,
                          weft_nn_to(weft_cuda_step_dtype(s), whole->data, at->step->in[0].from),
                          s->on);
}

/* Copies rows, unless they are in place. */
static int copy_rows(const struct weft_cuda_walked *s, const void *from, int64_t stride,
                     const struct weft_nn_operand *to)
{
    if (from == to->data) return 0;
    return weft_cuda_copy_rows(weft_cuda_step_dtype(s), to->rows, to->columns, stride, from,
                               to->stride, to->data, s->on);
}

int weft_cuda_rope_forward(const struct weft_cuda_walked *s)
{
    const struct weft_nn_walked *at = s->at;
    const void *whole = weft_nn_at(weft_cuda_step_dtype(s), at->in[0].data, -at->step->in[0].from);
    const int code = copy_rows(s, whole, at->in[0].stride, &at->out[0]);
    return code != 0 ? code : turn_columns(s, false, &at->out[0]);
}

/* The gradient turns in its place, unless another value has the same one. */
int weft_cuda_rope_backward(const struct weft_cuda_walked *s)
{
    const struct weft_nn_walked *at = s->at;
    const int code = copy_rows(s, at->d_out.data, at->d_out.stride, &at->turned);
    return code != 0 ? code : turn_columns(s, true, &at->turned);
}
