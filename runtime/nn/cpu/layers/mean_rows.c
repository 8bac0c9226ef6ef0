/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "runtime/nn/cpu/layers/walk.h"

/* Means over the sequence use pieces of columns on the stack. */
enum { COLUMNS = 1024 };

enum weft_status weft_nn_cpu_mean_rows_forward(const struct weft_nn_walked *at,
                                               struct weft_error *err)
{
    (void)err;
    const struct weft_kernels *kernels = at->cpu->kernels;
    const enum weft_dtype dtype = at->call->batch.compute;
    const int64_t width = at->in[0].columns, seq_len = at->call->batch.seq_len;
    float sums[COLUMNS], row[COLUMNS];
    for (int64_t b = 0; b < at->call->batch.samples; b++) {
        for (int64_t first = 0; first < width; first += COLUMNS) {
            const int64_t n = width - first < COLUMNS ? width - first : COLUMNS;
            memset(sums, 0, sizeof(sums));
            for (int64_t i = b * seq_len; i < (b + 1) * seq_len; i++) {
                kernels->widen(dtype, n, weft_nn_at(dtype, at->in[0].data, i * width + first), row);
                for (int64_t j = 0; j < n; j++) {
                    sums[j] += row[j];
                }
            }
            for (int64_t j = 0; j < n; j++) {
                sums[j] /= (float)seq_len;
            }
            kernels->narrow(dtype, n, sums, weft_nn_to(dtype, at->out[0].data, b * width + first));
        }
    }
    return WEFT_OK;
}

enum weft_status weft_nn_cpu_mean_rows_backward(const struct weft_nn_walked *at,
                                                struct weft_error *err)
{
    (void)err;
    const struct weft_kernels *kernels = at->cpu->kernels;
    const enum weft_dtype dtype = at->call->batch.compute;
    const int64_t width = at->in[0].columns, seq_len = at->call->batch.seq_len;
    float row[COLUMNS];
    for (int64_t b = 0; b < at->call->batch.samples; b++) {
        for (int64_t first = 0; first < width; first += COLUMNS) {
            const int64_t n = width - first < COLUMNS ? width - first : COLUMNS;
            kernels->widen(dtype, n, weft_nn_at(dtype, at->d_out.data, b * width + first), row);
            for (int64_t j = 0; j < n; j++) {
                row[j] /= (float)seq_len;
            }
            for (int64_t i = b * seq_len; i < (b + 1) * seq_len; i++) {
                kernels->narrow(dtype, n, row,
                                weft_nn_to(dtype, at->d_in[0].data, i * width + first));
            }
        }
    }
    return WEFT_OK;
}
