/* SPDX-License-Identifier: Apache-2.0 */
/* Functions for back ends of GPUs, here and in layers.h. Each one adds kernels to the stream and
 * returns CUDA's code, 0 on success. It allocates nothing and waits for nothing. Pointers are to
 * GPU memory, and must stay valid until the stream has run the kernels. Arrays are dense and may
 * begin at any element. They are fastest if all begin at the same distance from a multiple of 16
 * bytes. n may be 0. Arrays do not overlap, unless a function works in place.
 *
 * "The CPU's bits" are those of runtime/nn/cpu/kernels/kernels.h and optimizer.h for the same
 * numbers.
 */
#ifndef WEFT_RUNTIME_NN_CUDA_KERNELS_KERNELS_H
#define WEFT_RUNTIME_NN_CUDA_KERNELS_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

#include "include/weft.h"
#include "runtime/nn/optimizer.h"

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st; /* CUDA's stream */

/* Sets every byte of `to` to `byte`. */
int weft_cuda_fill(void *to, unsigned char byte, int64_t bytes, struct CUstream_st *stream);
int weft_cuda_copy(void *to, const void *from, int64_t bytes, struct CUstream_st *stream);
/* Convert between fp32 and a dtype with the CPU's bits. f32 is copied. */
int weft_cuda_widen(enum weft_dtype dtype, int64_t n, const void *x, float *y,
                    struct CUstream_st *stream);
int weft_cuda_narrow(enum weft_dtype dtype, int64_t n, const float *x, void *y,
                     struct CUstream_st *stream);
/* The same for rows of y that are `stride` elements apart; x is dense. */
int weft_cuda_narrow_rows(enum weft_dtype dtype, int64_t rows, int64_t width, const float *x,
                          int64_t stride, void *y, struct CUstream_st *stream);
/* Copies rows between matrices with strides. */
int weft_cuda_copy_rows(enum weft_dtype dtype, int64_t rows, int64_t width, int64_t x_stride,
                        const void *x, int64_t y_stride, void *y, struct CUstream_st *stream);
/* y = alpha x, or y += alpha x, rounded once to y's dtype; the CPU's bits (add_to). *times in GPU
 * memory is another factor of alpha; NULL: 1. */
int weft_cuda_add(enum weft_dtype dtype, int64_t n, float alpha, const float *times, const float *x,
                  bool accumulate, void *y, struct CUstream_st *stream);
/* Sets *flag to 1 if an x is not finite, or if the sum of `terms` such numbers may not be finite.
 * Otherwise leaves *flag unchanged. */
int weft_cuda_look(enum weft_dtype dtype, int64_t n, const void *x, int64_t terms, uint32_t *flag,
                   struct CUstream_st *stream);

/* The scalars of a step, in GPU memory at a multiple of 16 bytes: their values may be known only
 * there. Decay is not included, because it differs between tensors. */
struct weft_cuda_step {
    uint32_t stop, unused; /* stop not 0: no update */
    struct weft_adamw adamw;
    struct weft_sgd sgd;
};
/* Update of elements by struct weft_update (runtime/nn/optimizer.h), with pointers to GPU memory
 * and the CPU's bits. Moments that are not kept are NULL. Fails for optimizers that agree on sums.
 */
int weft_cuda_update(enum weft_optimizer_type type, const struct weft_cuda_step *step, float decay,
                     const struct weft_update *update, struct CUstream_st *stream);
/* LAMB's parts: the moments; squares of the steps, added to bins as in weft_cuda_norm_add; the
 * rest, with *trust, or 1 if it is NULL. */
int weft_cuda_lamb_moments(const struct weft_cuda_step *step, const struct weft_update *update,
                           struct CUstream_st *stream);
int weft_cuda_lamb_squares(const struct weft_cuda_step *step, float decay,
                           const struct weft_update *update, uint64_t *bins,
                           struct CUstream_st *stream);
int weft_cuda_lamb_apply(const struct weft_cuda_step *step, float decay, const float *trust,
                         const struct weft_update *update, struct CUstream_st *stream);

/* Adds the exact squares of n numbers to bins [WEFT_NORM_WORDS], which the caller has zeroed
 * first. */
int weft_cuda_norm_add(uint64_t *bins, enum weft_dtype dtype, const void *x, int64_t n,
                       struct CUstream_st *stream);
/* Packs the sum into words [WEFT_NORM_PACKED_WORDS] that ranks add as integers. The CPU's bits
 * (weft_norm_pack). */
int weft_cuda_norm_pack(const uint64_t *bins, uint64_t *words, struct CUstream_st *stream);

/* Adds hashes of a tensor's elements from `first` on to sum[0] and sum[1], as in a fingerprint. */
int weft_cuda_hash_add(uint64_t *sum, uint64_t name, int64_t first, const float *x, int64_t n,
                       struct CUstream_st *stream);

/* A sum over ranks, in canonical order and fp32, with the CPU's bits. Rank r's n elements of
 * `dtype` are r * stride_bytes after `from`. Those of rank `own` are at own_from (own -1: none). */
struct weft_cuda_sum {
    enum weft_dtype dtype;
    int32_t ranks, own;
    int64_t n, stride_bytes;
    const void *from, *own_from;
    bool partial;             /* writes the sum in fp32, for a sum of sums */
    bool adds;                /* adds the ranks to the sum at `to` in fp32; dtype f32 */
    enum weft_dtype to_dtype; /* otherwise rounds to dtype, then writes this: dtype or f32 */
    void *to;                 /* may be a rank's elements */
    int32_t per_node;         /* ranks of a node, which divide ranks; 0: all */
    int32_t idle;             /* ranks, the last ones, that are left out; not all */
};
int weft_cuda_sum_ranks(const struct weft_cuda_sum *sum, struct CUstream_st *stream);

/* sums[j] = sum over rows of x[i][j], in an order that depends on the number of rows alone. Rows of
 * x are `stride` elements apart. The workspace has weft_cuda_column_bytes(rows, width) bytes.
 * Without a workspace a thread adds a column in row order, which is slow and has the CPU's bits. */
int64_t weft_cuda_column_bytes(int64_t rows, int64_t width);
int weft_cuda_column_sums(enum weft_dtype dtype, int64_t rows, int64_t width, int64_t stride,
                          const void *x, float *sums, void *workspace, struct CUstream_st *stream);

#ifdef __cplusplus
}
#endif

#endif
