/* SPDX-License-Identifier: Apache-2.0 */
/* Attention by whole score matrices: products of all heads at once, with softmax in between, as on
 * the CPU. For f32, for heads that tensor cores cannot load, and for proofs. Heads of queries that
 * share keys are multiplied one after another: keys and values of one product are of all heads of
 * keys. */
#include "runtime/nn/cuda/kernels/attention.h"
#include "runtime/nn/cuda/kernels/launch.h"
#include "runtime/nn/cuda/kernels/layers.h"
#include "runtime/nn/cuda/kernels/math.h"

/* A matrix for every head of keys: address of the first one, stride of its rows, and distances
 * between samples and between heads. */
struct heads_matrix {
    void *from;
    int64_t stride, by[2];
};

static int64_t shared_by(const struct weft_cuda_heads *h)
{
    return h->heads / h->kv_heads;
}

static void *element_at(const struct weft_cuda_heads *h, const void *array, int64_t i)
{
    return (char *)array + i * (h->dtype == WEFT_F32 ? 4 : 2);
}

/* Rows of the queries, or of their gradients, of head `i` of each group. */
static struct heads_matrix queries_of(const struct weft_cuda_heads *h, const void *queries,
                                      int64_t stride, int64_t i)
{
    return {
        element_at(h, queries, i * h->size), stride, {h->seq_len * stride, shared_by(h) * h->size}};
}

/* Rows of keys or values. */
static struct heads_matrix keys_of(const struct weft_cuda_heads *h, const void *keys,
                                   int64_t stride)
{
    return {(void *)keys, stride, {h->seq_len * stride, h->size}};
}

static struct heads_matrix scores_of(const struct weft_cuda_heads *h, const void *scores, int64_t i)
{
    const int64_t n = h->seq_len;
    return {element_at(h, scores, i * n * n), n, {h->heads * n * n, shared_by(h) * n * n}};
}

/* c = alpha op(a) op(b) for every head of keys; c is [m, n]. */
struct heads_product {
    bool transpose_a, transpose_b;
    int64_t m, n, k;
    float alpha;
    struct heads_matrix a, b, c;
};

static int multiply_heads(const struct weft_cuda_heads *heads, const struct heads_product *h,
                          enum weft_dtype c_dtype, bool accumulate, cudaStream_t stream)
{
    struct weft_product p = {};
    struct weft_cuda_batch batch = {{heads->samples, heads->kv_heads}, {}, {}, {}};
    p.transpose_a = h->transpose_a;
    p.transpose_b = h->transpose_b;
    p.dtype = heads->dtype;
    p.c_dtype = c_dtype;
    p.m = h->m;
    p.n = h->n;
    p.k = h->k;
    p.alpha = h->alpha;
    p.accumulate = accumulate;
    p.a = h->a.from;
    p.b = h->b.from;
    p.c = h->c.from;
    p.a_stride = h->a.stride;
    p.b_stride = h->b.stride;
    p.c_stride = h->c.stride;
    for (int i = 0; i < 2; i++) {
        batch.a[i] = h->a.by[i];
        batch.b[i] = h->b.by[i];
        batch.c[i] = h->c.by[i];
    }
    return weft_cuda_product(&p, &batch, NULL, stream);
}

static float scale_of(const struct weft_cuda_heads *h)
{
    return (float)(1 / sqrt(h->scalar > 0 ? h->scalar : (double)h->size));
}

/* Sets scores or probabilities of hidden keys. */
static int set_hidden(const struct weft_cuda_heads *h, float to, void *scores, cudaStream_t stream)
{
    if (h->mask.tokens == NULL) return 0;
    return weft_cuda_hide_tokens(h->dtype, h->samples, h->heads, h->seq_len, h->mask.tokens,
                                 h->mask.padding, to, scores, stream);
}

int weft_cuda_attend_plain(const struct weft_cuda_heads *h, void *uncapped, void *probabilities,
                           void *output, struct CUstream_st *stream)
{
    const int64_t n = h->seq_len, size = h->size, width = h->heads * size;
    const int64_t matrices = h->samples * h->heads;
    const bool capped = h->mask.cap > 0;
    void *raw = capped && uncapped != NULL ? uncapped : probabilities;
    int error = 0;
    for (int64_t i = 0; i < shared_by(h) && error == 0; i++) {
        const struct heads_product scores = {false,
                                             true,
                                             n,
                                             n,
                                             size,
                                             scale_of(h),
                                             queries_of(h, h->query, h->query_stride, i),
                                             keys_of(h, h->key, h->key_stride),
                                             scores_of(h, raw, i)};
        error = multiply_heads(h, &scores, h->dtype, false, stream);
    }
    if (error == 0 && capped) {
        error =
            weft_cuda_soft_cap(h->dtype, matrices * n * n, h->mask.cap, raw, probabilities, stream);
    }
    if (error == 0) error = set_hidden(h, -INFINITY, probabilities, stream);
    if (error == 0) {
        error = weft_cuda_masked_softmax(h->dtype, matrices, n, h->mask.both_ways, h->mask.window,
                                         probabilities, stream);
    }
    /* Without any key a row's softmax is NaN. */
    if (error == 0) error = set_hidden(h, 0, probabilities, stream);
    for (int64_t i = 0; i < shared_by(h) && error == 0 && output != NULL; i++) {
        const struct heads_product values = {false,
                                             false,
                                             n,
                                             size,
                                             n,
                                             1,
                                             scores_of(h, probabilities, i),
                                             keys_of(h, h->value, h->value_stride),
                                             queries_of(h, output, width, i)};
        error = multiply_heads(h, &values, h->dtype, false, stream);
    }
    return error;
}

/* Sums in 16 bits over heads that share keys are fp32, and rounded once. */
static bool has_sums(const struct weft_cuda_heads *h)
{
    return h->dtype != WEFT_F32 && h->heads > h->kv_heads;
}

int64_t weft_cuda_head_sums_bytes(const struct weft_cuda_heads *h)
{
    return has_sums(h) ? h->samples * h->kv_heads * h->seq_len * h->size * (int64_t)sizeof(float)
                       : 0;
}

/* Gradients of keys or values: sums of alpha p^T b over the heads that share them. `rows` has the
 * queries' rows of b. */
static int sum_over_heads(const struct weft_cuda_heads *h, const void *p, float alpha,
                          const void *rows, int64_t stride, float *sums, void *to,
                          int64_t to_stride, cudaStream_t stream)
{
    const int64_t n = h->seq_len, size = h->size, width = h->kv_heads * size;
    struct heads_matrix c = keys_of(h, to, to_stride);
    if (has_sums(h)) c = keys_of(h, sums, width);
    int error = 0;
    for (int64_t i = 0; i < shared_by(h) && error == 0; i++) {
        const struct heads_product product = {
            true, false, n, size, n, alpha, scores_of(h, p, i), queries_of(h, rows, stride, i), c};
        error = multiply_heads(h, &product, has_sums(h) ? WEFT_F32 : h->dtype, i > 0, stream);
    }
    if (error != 0 || !has_sums(h)) return error;
    return weft_cuda_narrow_rows(h->dtype, h->samples * n, width, sums, to_stride, to, stream);
}

int weft_cuda_attend_plain_backward(const struct weft_cuda_heads *h, const void *uncapped,
                                    const void *probabilities, const void *d_output, void *d_scores,
                                    float *sums, const struct weft_cuda_head_gradients *to,
                                    struct CUstream_st *stream)
{
    const int64_t n = h->seq_len, size = h->size, width = h->heads * size;
    int error = 0;
    for (int64_t i = 0; i < shared_by(h) && error == 0; i++) {
        const struct heads_product of_scores = {false,
                                                true,
                                                n,
                                                n,
                                                size,
                                                1,
                                                queries_of(h, d_output, width, i),
                                                keys_of(h, h->value, h->value_stride),
                                                scores_of(h, d_scores, i)};
        error = multiply_heads(h, &of_scores, h->dtype, false, stream);
    }
    if (error == 0) {
        error = weft_cuda_softmax_backward(h->dtype, h->samples * h->heads * n, n, probabilities,
                                           d_scores, stream);
    }
    if (error == 0 && h->mask.cap > 0) {
        error = weft_cuda_soft_cap_backward(h->dtype, h->samples * h->heads * n * n, h->mask.cap,
                                            uncapped, d_scores, stream);
    }
    for (int64_t i = 0; i < shared_by(h) && error == 0; i++) {
        const struct heads_product of_queries = {false,
                                                 false,
                                                 n,
                                                 size,
                                                 n,
                                                 scale_of(h),
                                                 scores_of(h, d_scores, i),
                                                 keys_of(h, h->key, h->key_stride),
                                                 queries_of(h, to->query, h->query_stride, i)};
        error = multiply_heads(h, &of_queries, h->dtype, false, stream);
    }
    if (error == 0)
        error = sum_over_heads(h, d_scores, scale_of(h), h->query, h->query_stride, sums, to->key,
                               h->key_stride, stream);
    if (error == 0)
        error = sum_over_heads(h, probabilities, 1, d_output, width, sums, to->value,
                               h->value_stride, stream);
    return error;
}
