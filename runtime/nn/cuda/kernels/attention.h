/* SPDX-License-Identifier: Apache-2.0 */
/* Attention on GPUs. The rules of kernels.h apply. */
#ifndef WEFT_RUNTIME_NN_CUDA_KERNELS_ATTENTION_H
#define WEFT_RUNTIME_NN_CUDA_KERNELS_ATTENTION_H

#include "runtime/nn/cuda/kernels/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Attention of every head of every sample, causal unless the mask is another. heads / kv_heads
 * adjacent heads of queries share a head of keys and values. Rows of operands and
 * gradients are `stride` elements apart. The output is [samples seq_len, heads size]. Statistics
 * and dots are [samples, heads, seq_len]. Probabilities and gradients of scores are rounded to the
 * dtype in between. Sums are fp32, in an order that depends on seq_len and the heads that share
 * alone. It needs bf16 or f16, heads of a multiple of 8 up to 128, rows at multiples of 16 bytes,
 * no cap and no tokens; it refuses others. */
struct weft_cuda_mask {
    bool both_ways;        /* a row attends to all rows of its sample */
    int64_t window;        /* a row attends to itself and earlier rows, so many; 0: all of them */
    float cap;             /* scores x become cap tanh(x / cap); 0: they stay */
    const int32_t *tokens; /* [samples, seq_len] on the device: rows with the token `padding` are
                              no keys, and without any key the output is 0; NULL: all are */
    int32_t padding;
};
struct weft_cuda_heads {
    enum weft_dtype dtype;
    int64_t samples, seq_len, heads, kv_heads, size;
    const void *query, *key, *value;
    int64_t query_stride, key_stride, value_stride;
    double scalar; /* scores are divided by its root; 0: by the root of size */
    struct weft_cuda_mask mask;
};
struct weft_cuda_head_gradients {
    void *query, *key, *value;
};
bool weft_cuda_attends(const struct weft_cuda_heads *heads);
int weft_cuda_attend_heads(const struct weft_cuda_heads *heads, void *output, float *statistics,
                           struct CUstream_st *stream);
/* `output` and `statistics` are from forward, `dots` is scratch, and gradients are written. */
int weft_cuda_attend_heads_backward(const struct weft_cuda_heads *heads, const void *output,
                                    const float *statistics, const void *d_output, float *dots,
                                    const struct weft_cuda_head_gradients *to,
                                    struct CUstream_st *stream);

/* Attention for any dtype, size of heads and mask, by whole score matrices [samples, heads,
 * seq_len, seq_len]. Forward saves the probabilities for backward; output NULL: only these. With a
 * cap it saves scores before the cap too, unless `uncapped` is NULL, and backward needs them.
 * d_scores is scratch. `sums`, of weft_cuda_head_sums_bytes, is scratch too. f32 has the CPU's bits
 * of plain products. */
int weft_cuda_attend_plain(const struct weft_cuda_heads *heads, void *uncapped, void *probabilities,
                           void *output, struct CUstream_st *stream);
int64_t weft_cuda_head_sums_bytes(const struct weft_cuda_heads *heads);
int weft_cuda_attend_plain_backward(const struct weft_cuda_heads *heads, const void *uncapped,
                                    const void *probabilities, const void *d_output, void *d_scores,
                                    float *sums, const struct weft_cuda_head_gradients *to,
                                    struct CUstream_st *stream);

/* Attention with rows [q, k, v] of qkv, each for all heads: a library's shape. */
struct weft_cuda_attention {
    enum weft_dtype dtype;
    int64_t samples, seq_len, heads, hidden;
    const void *qkv;
};
static inline struct weft_cuda_head_gradients weft_cuda_head_gradients_of(
    const struct weft_cuda_attention *a, void *d_qkv)
{
    const int64_t part_bytes = a->hidden * (a->dtype == WEFT_F32 ? 4 : 2);
    struct weft_cuda_head_gradients to = {d_qkv, (char *)d_qkv + part_bytes,
                                          (char *)d_qkv + 2 * part_bytes};
    return to;
}
static inline struct weft_cuda_heads weft_cuda_heads_of(const struct weft_cuda_attention *a)
{
    const struct weft_cuda_head_gradients at =
        weft_cuda_head_gradients_of(a, (void *)(uintptr_t)a->qkv);
    const int64_t stride = 3 * a->hidden, size = a->heads > 0 ? a->hidden / a->heads : 0;
    struct weft_cuda_heads heads = {
        a->dtype, a->samples, a->seq_len, a->heads, a->heads, size, at.query,
        at.key,   at.value,   stride,     stride,   stride,   0,    {false, 0, 0, NULL, 0}};
    return heads;
}
int weft_cuda_attend(const struct weft_cuda_attention *attention, void *output, float *statistics,
                     struct CUstream_st *stream);
int weft_cuda_attend_backward(const struct weft_cuda_attention *attention, const void *output,
                              const float *statistics, const void *d_output, float *dots,
                              void *d_qkv, struct CUstream_st *stream);

#ifdef __cplusplus
}
#endif

#endif
