/* What a back end for GPUs calls, here and in layers.h. Every function puts kernels on the stream
 * and returns CUDA's code, 0 when that worked; it allocates nothing and waits for nothing. Pointers
 * are to the GPU's memory, and must stay valid until the stream has come by. Arrays are dense and
 * may begin at any element; they are fastest where element 0 of all of them is as far behind a
 * multiple of 16 bytes. n may be 0. What is not said to be in place does not overlap.
 *
 * "The CPU's bits": those of runtime/nn/cpu/kernels/kernels.h and optimizer.h for the same numbers.
 */
#ifndef WEFT_RUNTIME_NN_CUDA_KERNELS_H
#define WEFT_RUNTIME_NN_CUDA_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

#include "include/weft.h"
#include "runtime/nn/optimizer.h"

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st; /* CUDA's stream */

/* Every byte of `to` becomes `byte`. */
int weft_cuda_fill(void *to, unsigned char byte, int64_t bytes, struct CUstream_st *stream);
int weft_cuda_copy(void *to, const void *from, int64_t bytes, struct CUstream_st *stream);
/* Between fp32 and a dtype; the CPU's bits. In f32 a copy. */
int weft_cuda_widen(enum weft_dtype dtype, int64_t n, const void *x, float *y,
                    struct CUstream_st *stream);
int weft_cuda_narrow(enum weft_dtype dtype, int64_t n, const float *x, void *y,
                     struct CUstream_st *stream);
/* y = alpha x, or y += alpha x, rounded once to y's dtype; the CPU's bits (add_to). *times is
 * another factor of alpha, of the GPU's memory; NULL: 1. */
int weft_cuda_add(enum weft_dtype dtype, int64_t n, float alpha, const float *times, const float *x,
                  bool accumulate, void *y, struct CUstream_st *stream);
/* Sets *flag to 1 when any x is not finite, or so large that `terms` of them may not add up to a
 * finite number; otherwise leaves it as it is. */
int weft_cuda_look(enum weft_dtype dtype, int64_t n, const void *x, int64_t terms, uint32_t *flag,
                   struct CUstream_st *stream);

/* The scalars of a step, at a multiple of 16 bytes of the GPU's memory: what they are may be known
 * there alone. Decay is not among them, for it differs from tensor to tensor. */
struct weft_cuda_step {
    uint32_t stop, unused; /* stop not 0: nothing is updated */
    struct weft_adamw adamw;
    struct weft_sgd sgd;
};
/* Updates by struct weft_update (runtime/nn/optimizer.h), all pointers to the GPU's memory; the
 * CPU's bits. SGD keeps momentum where there is a moment1. */
int weft_cuda_adamw(const struct weft_cuda_step *step, float decay,
                    const struct weft_update *update, struct CUstream_st *stream);
int weft_cuda_sgd(const struct weft_cuda_step *step, float decay, const struct weft_update *update,
                  struct CUstream_st *stream);
/* LAMB's parts: the moments; squares of the steps, added to bins as by weft_cuda_norm_add; and with
 * *trust, or 1 if it is NULL, the rest. */
int weft_cuda_lamb_moments(const struct weft_cuda_step *step, const struct weft_update *update,
                           struct CUstream_st *stream);
int weft_cuda_lamb_squares(const struct weft_cuda_step *step, float decay,
                           const struct weft_update *update, uint64_t *bins,
                           struct CUstream_st *stream);
int weft_cuda_lamb_apply(const struct weft_cuda_step *step, float decay, const float *trust,
                         const struct weft_update *update, struct CUstream_st *stream);

/* Adds the squares of n numbers to bins [WEFT_NORM_WORDS], which the caller has set to 0 before the
 * first; the sum is exact. */
int weft_cuda_norm_add(uint64_t *bins, const float *x, int64_t n, struct CUstream_st *stream);
/* The same sum in words [WEFT_NORM_PACKED_WORDS], which ranks add as integers: the CPU's bits
 * (weft_norm_pack). */
int weft_cuda_norm_pack(const uint64_t *bins, uint64_t *words, struct CUstream_st *stream);

/* Adds the hashes of elements `first` on of a tensor to sum[0] and sum[1]: the fingerprint's. */
int weft_cuda_hash_add(uint64_t *sum, uint64_t name, int64_t first, const float *x, int64_t n,
                       struct CUstream_st *stream);

/* The sum over ranks, in their order and in fp32: rank r's n elements of `dtype` begin r *
 * stride_bytes behind `from`, but for rank `own`'s, which begin at own_from (own -1: none does).
 * The CPU's bits. */
struct weft_cuda_sum {
    enum weft_dtype dtype;
    int32_t ranks, own;
    int64_t n, stride_bytes;
    const void *from, *own_from;
    bool partial;             /* the sum is written as it is, in fp32, for a sum of sums to come */
    bool adds;                /* it is added to what `to` has, in fp32; dtype f32 */
    enum weft_dtype to_dtype; /* otherwise: rounded to dtype, then written as this: dtype or f32 */
    void *to;                 /* may be a rank's elements */
};
int weft_cuda_sum_ranks(const struct weft_cuda_sum *sum, struct CUstream_st *stream);

/* sums[j] = sum over rows of x[i][j], in an order that depends on the number of rows alone. The
 * workspace has weft_cuda_column_bytes(rows, width). Without one rows are added in their order, a
 * thread a column: slow, and the CPU's bits. */
int64_t weft_cuda_column_bytes(int64_t rows, int64_t width);
int weft_cuda_column_sums(enum weft_dtype dtype, int64_t rows, int64_t width, const void *x,
                          float *sums, void *workspace, struct CUstream_st *stream);

#ifdef __cplusplus
}
#endif

#endif
