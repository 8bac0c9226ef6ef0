/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "runtime/nn/cpu/layers/walk.h"

enum weft_status weft_nn_cpu_first_rows_forward(const struct weft_nn_walked *at,
                                                struct weft_error *err)
{
    (void)err;
    const enum weft_dtype dtype = at->call->batch.compute;
    const int64_t width = at->in[0].columns, seq_len = at->call->batch.seq_len;
    for (int64_t b = 0; b < at->call->batch.samples; b++)
        memcpy(weft_nn_to(dtype, at->out[0].data, b * width),
               weft_nn_at(dtype, at->in[0].data, b * seq_len * width),
               (size_t)(width * weft_dtype_bytes(dtype)));
    return WEFT_OK;
}

enum weft_status weft_nn_cpu_first_rows_backward(const struct weft_nn_walked *at,
                                                 struct weft_error *err)
{
    (void)err;
    const enum weft_dtype dtype = at->call->batch.compute;
    const int64_t width = at->in[0].columns, seq_len = at->call->batch.seq_len;
    const size_t bytes = (size_t)(width * weft_dtype_bytes(dtype));
    for (int64_t b = 0; b < at->call->batch.samples; b++) {
        char *to = weft_nn_to(dtype, at->d_in[0].data, b * seq_len * width);
        memcpy(to, weft_nn_at(dtype, at->d_out.data, b * width), bytes);
        memset(to + bytes, 0, bytes * (size_t)(seq_len - 1));
    }
    return WEFT_OK;
}
