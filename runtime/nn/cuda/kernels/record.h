/* SPDX-License-Identifier: Apache-2.0 */
/* Records and decisions of a step, each a few words by a kernel of one thread. The rules of
 * kernels.h apply; the CPU's bits. */
#ifndef WEFT_RUNTIME_NN_CUDA_KERNELS_RECORD_H
#define WEFT_RUNTIME_NN_CUDA_KERNELS_RECORD_H

#include "runtime/nn/cuda/kernels/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* *to = by * *scale, or `by` if scale is NULL, rounded once. */
int weft_cuda_scale(double by, const double *scale, float *to, struct CUstream_st *stream);

/* Sets *bad to 1 if the last two words of bins [WEFT_NORM_WORDS] differ from `before`. Only
 * infinities and NaNs change these words. */
int weft_cuda_norm_bad(const uint64_t *bins, const uint64_t *before, uint64_t *bad,
                       struct CUstream_st *stream);

/* Does the work of weft_nn_record_loss. */
int weft_cuda_record_loss(const double *loss, const uint64_t *before, uint64_t *words,
                          struct CUstream_st *stream);

/* The end of a look (struct weft_nn_look). weft_cuda_look has set *flag. */
struct weft_cuda_finding {
    const uint32_t *flag;
    const double *loss;
    int64_t place;
    int64_t *first;
    uint32_t *stop;
};
int weft_cuda_find(const struct weft_cuda_finding *finding, struct CUstream_st *stream);

/* Mixes the hash of `bytes` bytes into *word. `sums` [2] are weft_cuda_hash_add's of the whole
 * 4-byte words, as elements from 0 on of a tensor named 0. The remaining bytes are read from
 * `from`. */
int weft_cuda_mix(const uint64_t *sums, const void *from, int64_t bytes, uint64_t *word,
                  struct CUstream_st *stream);

/* weft_lamb_trust of a tensor that adapts, from its packed sums of squares. */
int weft_cuda_lamb_trust(const uint64_t *parameters, const uint64_t *steps, float *trust,
                         struct CUstream_st *stream);

#ifdef __cplusplus
}
#endif

#endif
