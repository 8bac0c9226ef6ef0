#include <math.h>

#include "runtime/nn/cpu.h"

/* Queries are taken in blocks of this many rows, and a block's products end at its last column, so
 * that of the half of the score matrix that causality forbids only the corners of the diagonal's
 * blocks are computed. */
enum { BLOCK = 64 };

/* One head of one sample: where its rows begin and their strides. */
struct head {
    int64_t seq_len, size, stride; /* stride of rows of qkv */
    int64_t output_stride;
    float scale; /* 1 / sqrt(size) */
    int64_t query, key, value, output, scores;
};

static struct head head_of(const struct weft_nn_attention *attention, int64_t index)
{
    const int64_t sample = index / attention->heads, i = index % attention->heads;
    const int64_t hidden = attention->hidden, s = attention->seq_len;
    const int64_t size = hidden / attention->heads;
    const int64_t query = sample * s * 3 * hidden + i * size;
    return (struct head){.seq_len = s,
                         .size = size,
                         .stride = 3 * hidden,
                         .output_stride = hidden,
                         .scale = (float)(1 / sqrt((double)size)),
                         .query = query,
                         .key = query + hidden,
                         .value = query + 2 * hidden,
                         .output = sample * s * hidden + i * size,
                         .scores = index * s * s};
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* c[rows, columns] = alpha a b^T of rows of two [., size] matrices. */
static enum weft_status scores(const struct weft_nn_cpu *cpu, const struct head *head, int64_t rows,
                               int64_t columns, float alpha, const float *a, int64_t a_stride,
                               const float *b, float *c, struct weft_error *err)
{
    const struct weft_product product = {.transpose_b = true,
                                         .m = rows,
                                         .n = columns,
                                         .k = head->size,
                                         .a = a,
                                         .a_stride = a_stride,
                                         .b = b,
                                         .b_stride = head->stride,
                                         .alpha = alpha,
                                         .c = c,
                                         .c_stride = head->seq_len};
    return weft_gemm_run(cpu->gemm, &product, err);
}

/* c[m, size] = alpha op(p) b, with p a part of a score matrix and b [k, size]. */
static enum weft_status weighted(const struct weft_nn_cpu *cpu, const struct head *head,
                                 bool transpose, int64_t m, int64_t k, float alpha, const float *p,
                                 const float *b, int64_t b_stride, float *c, int64_t c_stride,
                                 struct weft_error *err)
{
    const struct weft_product product = {.transpose_a = transpose,
                                         .m = m,
                                         .n = head->size,
                                         .k = k,
                                         .a = p,
                                         .a_stride = head->seq_len,
                                         .b = b,
                                         .b_stride = b_stride,
                                         .alpha = alpha,
                                         .c = c,
                                         .c_stride = c_stride};
    return weft_gemm_run(cpu->gemm, &product, err);
}

static enum weft_status attend_head(const struct weft_nn_cpu *cpu, const struct head *head,
                                    const float *qkv, float *p, float *output,
                                    struct weft_error *err)
{
    for (int64_t row = 0; row < head->seq_len; row += BLOCK) {
        const int64_t rows = least(BLOCK, head->seq_len - row), end = row + rows;
        float *block = p + row * head->seq_len;
        WEFT_TRY(scores(cpu, head, rows, end, head->scale, qkv + head->query + row * head->stride,
                        head->stride, qkv + head->key, block, err));
        cpu->kernels->causal_softmax(rows, row, end, head->seq_len, block);
        WEFT_TRY(weighted(cpu, head, false, rows, end, 1, block, qkv + head->value, head->stride,
                          output + row * head->output_stride, head->output_stride, err));
    }
    return WEFT_OK;
}

enum weft_status weft_nn_cpu_attend(const struct weft_nn_cpu *cpu,
                                    const struct weft_nn_attention *attention, float *output,
                                    struct weft_error *err)
{
    for (int64_t i = 0; i < attention->samples * attention->heads; i++) {
        const struct head head = head_of(attention, i);
        WEFT_TRY(attend_head(cpu, &head, attention->qkv, attention->probabilities + head.scores,
                             output + head.output, err));
    }
    return WEFT_OK;
}

/* By rows: gradients of the scores and of the queries. */
static enum weft_status backward_rows(const struct weft_nn_cpu *cpu, const struct head *head,
                                      const float *qkv, const float *p, const float *d_output,
                                      float *d_scores, float *d_qkv, struct weft_error *err)
{
    for (int64_t row = 0; row < head->seq_len; row += BLOCK) {
        const int64_t rows = least(BLOCK, head->seq_len - row), end = row + rows;
        float *block = d_scores + row * head->seq_len;
        WEFT_TRY(scores(cpu, head, rows, end, 1, d_output + row * head->output_stride,
                        head->output_stride, qkv + head->value, block, err));
        cpu->kernels->softmax_backward(rows, end, head->seq_len, p + row * head->seq_len, block);
        WEFT_TRY(weighted(cpu, head, false, rows, end, head->scale, block, qkv + head->key,
                          head->stride, d_qkv + head->query + row * head->stride, head->stride,
                          err));
    }
    return WEFT_OK;
}

/* By columns: gradients of the keys and values, from all rows at or below the diagonal's block. */
static enum weft_status backward_columns(const struct weft_nn_cpu *cpu, const struct head *head,
                                         const float *qkv, const float *p, const float *d_output,
                                         const float *d_scores, float *d_qkv,
                                         struct weft_error *err)
{
    for (int64_t column = 0; column < head->seq_len; column += BLOCK) {
        const int64_t columns = least(BLOCK, head->seq_len - column);
        const int64_t rows = head->seq_len - column;
        const int64_t corner = column * head->seq_len + column;
        WEFT_TRY(weighted(cpu, head, true, columns, rows, 1, p + corner,
                          d_output + column * head->output_stride, head->output_stride,
                          d_qkv + head->value + column * head->stride, head->stride, err));
        WEFT_TRY(weighted(cpu, head, true, columns, rows, head->scale, d_scores + corner,
                          qkv + head->query + column * head->stride, head->stride,
                          d_qkv + head->key + column * head->stride, head->stride, err));
    }
    return WEFT_OK;
}

enum weft_status weft_nn_cpu_attend_backward(const struct weft_nn_cpu *cpu,
                                             const struct weft_nn_attention *attention,
                                             const float *d_output, float *d_scores, float *d_qkv,
                                             struct weft_error *err)
{
    for (int64_t i = 0; i < attention->samples * attention->heads; i++) {
        const struct head head = head_of(attention, i);
        const float *p = attention->probabilities + head.scores;
        WEFT_TRY(backward_rows(cpu, &head, attention->qkv, p, d_output + head.output, d_scores,
                               d_qkv, err));
        WEFT_TRY(backward_columns(cpu, &head, attention->qkv, p, d_output + head.output, d_scores,
                                  d_qkv, err));
    }
    return WEFT_OK;
}
