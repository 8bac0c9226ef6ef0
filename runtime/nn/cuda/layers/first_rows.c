/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/nn/cuda/layers/walk.h"

int weft_cuda_first_rows_forward(const struct weft_cuda_walked *s)
{
    const struct weft_batch *batch = &s->at->call->batch;
    const int64_t width = s->at->in[0].columns;
    return weft_cuda_copy_rows(batch->compute, batch->samples, width, batch->seq_len * width,
                               s->at->in[0].data, width, s->at->out[0].data, s->on);
}

int weft_cuda_first_rows_backward(const struct weft_cuda_walked *s)
{
    const struct weft_batch *batch = &s->at->call->batch;
    const int64_t width = s->at->in[0].columns;
    const int64_t bytes = s->at->in[0].rows * width * weft_dtype_bytes(batch->compute);
    const int code = weft_cuda_fill(s->at->d_in[0].data, 0, bytes, s->on);
    if (code != 0) return code;
    return weft_cuda_copy_rows(batch->compute, batch->samples, width, width, s->at->d_out.data,
                               batch->seq_len * width, s->at->d_in[0].data, s->on);
}
