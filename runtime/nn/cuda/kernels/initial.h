/* SPDX-License-Identifier: Apache-2.0 */
/* Initial values of parameters, and operands of proofs. The rules of kernels.h apply; the CPU's
 * bits. */
#ifndef WEFT_RUNTIME_NN_CUDA_KERNELS_INITIAL_H
#define WEFT_RUNTIME_NN_CUDA_KERNELS_INITIAL_H

#include "base/normal.h"
#include "runtime/nn/cuda/kernels/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sets n numbers to `value`, rounded to the dtype. */
int weft_cuda_set(enum weft_dtype dtype, int64_t n, float value, void *to,
                  struct CUstream_st *stream);

/* Writes numbers first, first + 1, ... of a law, rounded to fp32 and then to the dtype. */
int weft_cuda_normal(const struct weft_normal *law, int64_t first, enum weft_dtype dtype, int64_t n,
                     void *to, struct CUstream_st *stream);

/* Writes numbers 0, 1, ... of stream `name`, uniform in [-1, 1): 2 weft_rng_uniform - 1 with seed
 * 1, rounded to fp32 and then to the dtype. */
int weft_cuda_uniform(uint64_t name, enum weft_dtype dtype, int64_t n, void *to,
                      struct CUstream_st *stream);

#ifdef __cplusplus
}
#endif

#endif
