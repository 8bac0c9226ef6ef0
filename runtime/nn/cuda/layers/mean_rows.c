/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/nn/cuda/layers/walk.h"

int weft_cuda_mean_rows_forward(const struct weft_cuda_walked *s)
{
    const struct weft_batch *batch = &s->at->call->batch;
    return weft_cuda_pool(batch->compute, batch->samples, batch->seq_len, s->at->in[0].columns,
                          s->at->in[0].data, s->at->out[0].data, s->on);
}

int weft_cuda_mean_rows_backward(const struct weft_cuda_walked *s)
{
    const struct weft_batch *batch = &s->at->call->batch;
    return weft_cuda_spread(batch->compute, batch->samples, batch->seq_len, s->at->in[0].columns,
                            s->at->d_out.data, s->at->d_in[0].data, s->on);
}
