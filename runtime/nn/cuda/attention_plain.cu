/* SPDX-License-Identifier: Apache-2.0 */
/* Attention by whole score matrices: products of all heads at once, with softmax in between, as on
 * the CPU. For f32, and for proofs. */
#include "runtime/nn/cuda/launch.h"
#include "runtime/nn/cuda/layers.h"
#include "runtime/nn/cuda/math.h"

enum plain_part { QUERY, KEY, VALUE };

/* A matrix for every head: address of the first one, stride of its rows, and distances between
 * samples and between heads. */
struct heads_matrix {
    void *from;
    int64_t stride, by[2];
};

static struct heads_matrix part_of(const struct weft_cuda_attention *a, void *qkv,
                                   enum plain_part part)
{
    const int64_t size = a->hidden / a->heads, row = 3 * a->hidden;
    return {(char *)qkv + part * a->hidden * (a->dtype == WEFT_F32 ? 4 : 2),
            row,
            {a->seq_len * row, size}};
}

static struct heads_matrix output_of(const struct weft_cuda_attention *a, void *output)
{
    return {output, a->hidden, {a->seq_len * a->hidden, a->hidden / a->heads}};
}

static struct heads_matrix scores_of(const struct weft_cuda_attention *a, void *scores)
{
    const int64_t n = a->seq_len;
    return {scores, n, {a->heads * n * n, n * n}};
}

/* c = alpha op(a) op(b) for every head; c is [m, n]. */
struct heads_product {
    bool transpose_a, transpose_b;
    int64_t m, n, k;
    float alpha;
    struct heads_matrix a, b, c;
};

static int multiply_heads(const struct weft_cuda_attention *attention,
                          const struct heads_product *h, cudaStream_t stream)
{
    struct weft_product p = {};
    struct weft_cuda_batch batch = {{attention->samples, attention->heads}, {}, {}, {}};
    p.transpose_a = h->transpose_a;
    p.transpose_b = h->transpose_b;
    p.dtype = p.c_dtype = attention->dtype;
    p.m = h->m;
    p.n = h->n;
    p.k = h->k;
    p.alpha = h->alpha;
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

static float scale_of(const struct weft_cuda_attention *a)
{
    return (float)(1 / sqrt((double)(a->hidden / a->heads)));
}

int weft_cuda_attend_plain(const struct weft_cuda_attention *a, void *probabilities, void *output,
                           struct CUstream_st *stream)
{
    const int64_t n = a->seq_len, size = a->hidden / a->heads;
    void *qkv = (void *)a->qkv;
    const struct heads_matrix p = scores_of(a, probabilities);
    const struct heads_product scores = {
        false, true, n, n, size, scale_of(a), part_of(a, qkv, QUERY), part_of(a, qkv, KEY), p};
    const struct heads_product values = {
        false, false, n, size, n, 1, p, part_of(a, qkv, VALUE), output_of(a, output)};
    int error = multiply_heads(a, &scores, stream);
    if (error == 0) {
        error = weft_cuda_causal_softmax(a->dtype, a->samples * a->heads, n, probabilities, stream);
    }
    return error != 0 ? error : multiply_heads(a, &values, stream);
}

int weft_cuda_attend_plain_backward(const struct weft_cuda_attention *a, const void *probabilities,
                                    const void *d_output, void *d_scores, void *d_qkv,
                                    struct CUstream_st *stream)
{
    const int64_t n = a->seq_len, size = a->hidden / a->heads;
    void *qkv = (void *)a->qkv;
    const struct heads_matrix p = scores_of(a, (void *)probabilities), d = scores_of(a, d_scores);
    const struct heads_matrix out = output_of(a, (void *)d_output);
    const struct heads_product of_scores = {false, true, n, n, size, 1, out, part_of(a, qkv, VALUE),
                                            d};
    const struct heads_product of_parts[] = {
        {false, false, n, size, n, scale_of(a), d, part_of(a, qkv, KEY), part_of(a, d_qkv, QUERY)},
        {true, false, n, size, n, scale_of(a), d, part_of(a, qkv, QUERY), part_of(a, d_qkv, KEY)},
        {true, false, n, size, n, 1, p, out, part_of(a, d_qkv, VALUE)}};
    int error = multiply_heads(a, &of_scores, stream);
    if (error == 0) {
        error = weft_cuda_softmax_backward(a->dtype, a->samples * a->heads * n, n, probabilities,
                                           d_scores, stream);
    }
    for (const struct heads_product &product : of_parts) {
        if (error == 0) error = multiply_heads(a, &product, stream);
    }
    return error;
}
