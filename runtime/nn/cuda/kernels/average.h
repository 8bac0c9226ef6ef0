/* SPDX-License-Identifier: Apache-2.0 */
/* Averages of parameters over nodes. The rules of kernels.h hold. */
#ifndef WEFT_RUNTIME_NN_CUDA_KERNELS_AVERAGE_H
#define WEFT_RUNTIME_NN_CUDA_KERNELS_AVERAGE_H

#include <stdint.h>

#include "include/weft.h"

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st;

/* A step of averages over nodes (runtime/nn/units.h), with the CPU's bits. `values` are sums over
 * nodes; anchor and momentum NULL: plain averages; copy NULL: none. */
struct weft_cuda_average {
    float *values, *anchor, *momentum;
    void *copy;
    enum weft_dtype copy_dtype;
    int64_t n;
    float nodes, decay, lr; /* decay: of the momentum */
};
int weft_cuda_average(const struct weft_cuda_average *average, struct CUstream_st *stream);

#ifdef __cplusplus
}
#endif

#endif
