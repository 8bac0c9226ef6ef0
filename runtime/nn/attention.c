#include <math.h>

#include "runtime/nn/cpu.h"

/* Queries are taken in blocks of this many rows, and a block's products end at its last column, so
 * that of the half of the score matrix that causality forbids only the corners of the diagonal's
 * blocks are computed. */
enum { BLOCK = 64 };

/* One head of one sample: where its rows begin and their strides. */
struct head {
    enum weft_dtype dtype;
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
    return (struct head){.dtype = attention->dtype,
                         .seq_len = s,
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

/* What is read of one. */
static const void *at(const struct head *head, const void *array, int64_t index)
{
    return weft_nn_at(head->dtype, array, index);
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* c[rows, columns] = alpha a b^T of rows of two [., size] matrices. */
static enum weft_status scores(const struct weft_nn_cpu *cpu, const struct head *head, int64_t rows,
                               int64_t columns, float alpha, const void *a, int64_t a_stride,
                               const void *b, void *c, struct weft_error *err)
{
    const struct weft_product product = {.transpose_b = true,
                                         .dtype = head->dtype,
                                         .c_dtype = head->dtype,
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
                                 bool transpose, int64_t m, int64_t k, float alpha, const void *p,
                                 const void *b, int64_t b_stride, void *c, int64_t c_stride,
                                 struct weft_error *err)
{
    const struct weft_product product = {.transpose_a = transpose,
                                         .dtype = head->dtype,
                                         .c_dtype = head->dtype,
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

/* Rows from `first` on, where p and output begin. */
static enum weft_status attend_head(const struct weft_nn_cpu *cpu, const struct head *head,
                                    int64_t first, const void *qkv, void *p, void *output,
                                    struct weft_error *err)
{
    for (int64_t row = first; row < head->seq_len; row += BLOCK) {
        const int64_t rows = least(BLOCK, head->seq_len - row), end = row + rows;
        void *block = weft_nn_to(head->dtype, p, (row - first) * head->seq_len);
        void *out = weft_nn_to(head->dtype, output, (row - first) * head->output_stride);
        WEFT_TRY(scores(cpu, head, rows, end, head->scale,
                        at(head, qkv, head->query + row * head->stride), head->stride,
                        at(head, qkv, head->key), block, err));
        cpu->kernels->layers[head->dtype]->causal_softmax(rows, row, end, head->seq_len, block);
        WEFT_TRY(weighted(cpu, head, false, rows, end, 1, block, at(head, qkv, head->value),
                          head->stride, out, head->output_stride, err));
    }
    return WEFT_OK;
}

enum weft_status weft_nn_cpu_attend(const struct weft_nn_cpu *cpu,
                                    const struct weft_nn_attention *attention, void *output,
                                    struct weft_error *err)
{
    for (int64_t i = 0; i < attention->samples * attention->heads; i++) {
        const struct head head = head_of(attention, i);
        WEFT_TRY(attend_head(cpu, &head, 0, attention->qkv,
                             weft_nn_to(head.dtype, attention->probabilities, head.scores),
                             weft_nn_to(head.dtype, output, head.output), err));
    }
    return WEFT_OK;
}

enum weft_status weft_nn_cpu_attend_from(const struct weft_nn_cpu *cpu,
                                         const struct weft_nn_attention *attention, int64_t first,
                                         void *output, struct weft_error *err)
{
    for (int64_t i = 0; i < attention->heads; i++) {
        const struct head head = head_of(attention, i);
        WEFT_TRY(attend_head(cpu, &head, first, attention->qkv, attention->probabilities,
                             weft_nn_to(head.dtype, output, head.output), err));
    }
    return WEFT_OK;
}

/* By rows: gradients of the scores and of the queries. */
static enum weft_status backward_rows(const struct weft_nn_cpu *cpu, const struct head *head,
                                      const void *qkv, const void *p, const void *d_output,
                                      void *d_scores, void *d_qkv, struct weft_error *err)
{
    for (int64_t row = 0; row < head->seq_len; row += BLOCK) {
        const int64_t rows = least(BLOCK, head->seq_len - row), end = row + rows;
        void *block = weft_nn_to(head->dtype, d_scores, row * head->seq_len);
        WEFT_TRY(scores(cpu, head, rows, end, 1, at(head, d_output, row * head->output_stride),
                        head->output_stride, at(head, qkv, head->value), block, err));
        cpu->kernels->layers[head->dtype]->softmax_backward(
            rows, end, head->seq_len, at(head, p, row * head->seq_len), block);
        WEFT_TRY(weighted(
            cpu, head, false, rows, end, head->scale, block, at(head, qkv, head->key), head->stride,
            weft_nn_to(head->dtype, d_qkv, head->query + row * head->stride), head->stride, err));
    }
    return WEFT_OK;
}

/* By columns: gradients of the keys and values, from all rows at or below the diagonal's block. */
static enum weft_status backward_columns(const struct weft_nn_cpu *cpu, const struct head *head,
                                         const void *qkv, const void *p, const void *d_output,
                                         const void *d_scores, void *d_qkv, struct weft_error *err)
{
    for (int64_t column = 0; column < head->seq_len; column += BLOCK) {
        const int64_t columns = least(BLOCK, head->seq_len - column);
        const int64_t rows = head->seq_len - column;
        const int64_t corner = column * head->seq_len + column;
        WEFT_TRY(weighted(cpu, head, true, columns, rows, 1, at(head, p, corner),
                          at(head, d_output, column * head->output_stride), head->output_stride,
                          weft_nn_to(head->dtype, d_qkv, head->value + column * head->stride),
                          head->stride, err));
        WEFT_TRY(weighted(cpu, head, true, columns, rows, head->scale, at(head, d_scores, corner),
                          at(head, qkv, head->query + column * head->stride), head->stride,
                          weft_nn_to(head->dtype, d_qkv, head->key + column * head->stride),
                          head->stride, err));
    }
    return WEFT_OK;
}

enum weft_status weft_nn_cpu_attend_backward(const struct weft_nn_cpu *cpu,
                                             const struct weft_nn_attention *attention,
                                             const void *d_output, void *d_scores, void *d_qkv,
                                             struct weft_error *err)
{
    for (int64_t i = 0; i < attention->samples * attention->heads; i++) {
        const struct head head = head_of(attention, i);
        const void *p = weft_nn_at(head.dtype, attention->probabilities, head.scores);
        const void *d_head = weft_nn_at(head.dtype, d_output, head.output);
        WEFT_TRY(backward_rows(cpu, &head, attention->qkv, p, d_head, d_scores, d_qkv, err));
        WEFT_TRY(backward_columns(cpu, &head, attention->qkv, p, d_head, d_scores, d_qkv, err));
    }
    return WEFT_OK;
}
