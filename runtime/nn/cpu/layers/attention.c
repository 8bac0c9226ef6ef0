#include <math.h>

#include "runtime/nn/cpu/cpu.h"

/* Elements of a stripe of rows of a head's score matrix. A stripe stays in the second cache from
 * its scores to the output. Causality leaves half of the matrix. */
enum { STRIPE = 128 << 10 };

/* One head of one sample: offsets and strides of its rows. */
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

/* Address of an element of an input. */
static const void *element_at(const struct head *head, const void *array, int64_t index)
{
    return weft_nn_at(head->dtype, array, index);
}

/* End of the stripe that begins at `row`: whole groups of a triangle's rows. */
static int64_t stripe_end(const struct head *head, int64_t row)
{
    const int64_t most = STRIPE / head->seq_len / WEFT_TRIANGLE_ROWS * WEFT_TRIANGLE_ROWS;
    const int64_t end = row + (most > 0 ? most : WEFT_TRIANGLE_ROWS);
    return end < head->seq_len ? end : head->seq_len;
}

/* Scores of rows up to `end`: c[rows, end] = alpha a b^T, with rows of two [., size] matrices. */
static struct weft_product scores_of(const struct head *head, int64_t rows, int64_t end,
                                     float alpha, const void *a, int64_t a_stride, const void *b,
                                     void *c)
{
    return (struct weft_product){.transpose_b = true,
                                 .triangle = WEFT_C_IS_LOWER,
                                 .diagonal = end - rows,
                                 .dtype = head->dtype,
                                 .c_dtype = head->dtype,
                                 .m = rows,
                                 .n = end,
                                 .k = head->size,
                                 .a = a,
                                 .a_stride = a_stride,
                                 .b = b,
                                 .b_stride = head->stride,
                                 .alpha = alpha,
                                 .c = c,
                                 .c_stride = head->seq_len};
}

/* c[rows, size] = alpha p b, with p shaped as the scores and b [end, size]. Transposed: c[end,
 * size] = alpha p^T b, with b [rows, size]. */
static enum weft_status weigh_values(const struct weft_nn_cpu *cpu, const struct head *head,
                                     bool transpose, int64_t rows, int64_t end, float alpha,
                                     const void *p, const void *b, int64_t b_stride, void *c,
                                     int64_t c_stride, struct weft_error *err)
{
    const struct weft_product product = {.transpose_a = transpose,
                                         .triangle = WEFT_A_IS_LOWER,
                                         .diagonal = end - rows,
                                         .dtype = head->dtype,
                                         .c_dtype = head->dtype,
                                         .m = transpose ? end : rows,
                                         .n = head->size,
                                         .k = transpose ? rows : end,
                                         .a = p,
                                         .a_stride = head->seq_len,
                                         .b = b,
                                         .b_stride = b_stride,
                                         .alpha = alpha,
                                         .c = c,
                                         .c_stride = c_stride};
    return weft_gemm_run(cpu->gemm, &product, err);
}

/* Attends with rows from `first` on; p and output begin with row `first`. */
static enum weft_status attend_head(const struct weft_nn_cpu *cpu, const struct head *head,
                                    int64_t first, const void *qkv, void *p, void *output,
                                    struct weft_error *err)
{
    const struct weft_layer_kernels *kernels = cpu->kernels->layers[head->dtype];
    for (int64_t row = first, end; row < head->seq_len; row = end) {
        end = stripe_end(head, row);
        void *stripe = weft_nn_to(head->dtype, p, (row - first) * head->seq_len);
        void *out = weft_nn_to(head->dtype, output, (row - first) * head->output_stride);
        const struct weft_product product =
            scores_of(head, end - row, end, head->scale,
                      element_at(head, qkv, head->query + row * head->stride), head->stride,
                      element_at(head, qkv, head->key), stripe);
        WEFT_TRY(weft_gemm_run(cpu->gemm, &product, err));
        for (int64_t i = 0; i < end - row; i += WEFT_TRIANGLE_ROWS) {
            const int64_t rows = end - row - i;
            kernels->causal_softmax(rows < WEFT_TRIANGLE_ROWS ? rows : WEFT_TRIANGLE_ROWS, row + i,
                                    weft_product_row_end(&product, i), head->seq_len,
                                    weft_nn_to(head->dtype, stripe, i * head->seq_len));
        }
        WEFT_TRY(weigh_values(cpu, head, false, end - row, end, 1, stripe,
                              element_at(head, qkv, head->value), head->stride, out,
                              head->output_stride, err));
    }
    return WEFT_OK;
}

/* True if kernels do whole heads, in forward and backward alike. With fewer heads than threads some
 * threads would idle. Then products are used, and all threads share them. */
static bool whole_heads(const struct weft_nn_cpu *cpu, const struct weft_nn_attention *attention)
{
    const int64_t size = attention->hidden / attention->heads;
    return cpu->whole_heads && cpu->kernels->attend && attention->dtype == WEFT_F32 &&
           attention->samples * attention->heads >= cpu->threads &&
           attention->seq_len % WEFT_HEAD_SIDE == 0 && size % WEFT_HEAD_SIDE == 0 &&
           size <= WEFT_HEAD_MOST_SIZE;
}

static struct weft_head whole_head(const struct head *head, const float *qkv)
{
    return (struct weft_head){.seq_len = head->seq_len,
                              .size = head->size,
                              .stride = head->stride,
                              .output_stride = head->output_stride,
                              .scale = head->scale,
                              .query = qkv + head->query,
                              .key = qkv + head->key,
                              .value = qkv + head->value};
}

/* Inputs and outputs of whole heads, besides the attention's own. */
struct heads {
    float *output;                /* of forward; NULL for backward */
    const float *made, *d_output; /* of backward: the output, and its gradient */
    float *d_qkv;
};

static void take_heads(const struct weft_nn_cpu *cpu, const struct weft_nn_attention *attention,
                       const struct heads *of)
{
#ifdef _OPENMP
#pragma omp parallel for num_threads(cpu->threads) schedule(static) if (cpu->threads > 1)
#endif
    for (int64_t i = 0; i < attention->samples * attention->heads; i++) {
        const struct head head = head_of(attention, i);
        const struct weft_head whole = whole_head(&head, attention->qkv);
        float *p = (float *)attention->probabilities + head.scores;
        if (of->output != NULL) {
            cpu->kernels->attend(&whole, p, of->output + head.output);
        } else {
            const struct weft_head_gradients to = {of->d_qkv + head.query, of->d_qkv + head.key,
                                                   of->d_qkv + head.value};
            cpu->kernels->attend_backward(&whole, p, of->made + head.output,
                                          of->d_output + head.output, to);
        }
    }
}

enum weft_status weft_nn_cpu_attend(const struct weft_nn_cpu *cpu,
                                    const struct weft_nn_attention *attention, void *output,
                                    struct weft_error *err)
{
    if (whole_heads(cpu, attention)) {
        take_heads(cpu, attention, &(struct heads){.output = output});
        return WEFT_OK;
    }
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

/* By rows: gradients of scores and queries. */
static enum weft_status backward_rows(const struct weft_nn_cpu *cpu, const struct head *head,
                                      const void *qkv, const void *p, const void *d_output,
                                      void *d_scores, void *d_qkv, struct weft_error *err)
{
    const struct weft_layer_kernels *kernels = cpu->kernels->layers[head->dtype];
    for (int64_t row = 0, end; row < head->seq_len; row = end) {
        end = stripe_end(head, row);
        void *stripe = weft_nn_to(head->dtype, d_scores, row * head->seq_len);
        const struct weft_product product = scores_of(
            head, end - row, end, 1, element_at(head, d_output, row * head->output_stride),
            head->output_stride, element_at(head, qkv, head->value), stripe);
        WEFT_TRY(weft_gemm_run(cpu->gemm, &product, err));
        for (int64_t i = 0; i < end - row; i += WEFT_TRIANGLE_ROWS) {
            const int64_t rows = end - row - i;
            kernels->softmax_backward(rows < WEFT_TRIANGLE_ROWS ? rows : WEFT_TRIANGLE_ROWS,
                                      weft_product_row_end(&product, i), head->seq_len,
                                      element_at(head, p, (row + i) * head->seq_len),
                                      weft_nn_to(head->dtype, stripe, i * head->seq_len));
        }
        WEFT_TRY(weigh_values(cpu, head, false, end - row, end, head->scale, stripe,
                              element_at(head, qkv, head->key), head->stride,
                              weft_nn_to(head->dtype, d_qkv, head->query + row * head->stride),
                              head->stride, err));
    }
    return WEFT_OK;
}

/* By columns: gradients of keys and values. */
static enum weft_status backward_columns(const struct weft_nn_cpu *cpu, const struct head *head,
                                         const void *qkv, const void *p, const void *d_output,
                                         const void *d_scores, void *d_qkv, struct weft_error *err)
{
    const int64_t s = head->seq_len;
    WEFT_TRY(weigh_values(cpu, head, true, s, s, 1, p, d_output, head->output_stride,
                          weft_nn_to(head->dtype, d_qkv, head->value), head->stride, err));
    return weigh_values(cpu, head, true, s, s, head->scale, d_scores,
                        element_at(head, qkv, head->query), head->stride,
                        weft_nn_to(head->dtype, d_qkv, head->key), head->stride, err);
}

enum weft_status weft_nn_cpu_attend_backward(const struct weft_nn_cpu *cpu,
                                             const struct weft_nn_attention *attention,
                                             const void *output, const void *d_output,
                                             void *d_scores, void *d_qkv, struct weft_error *err)
{
    if (whole_heads(cpu, attention)) {
        const struct heads of = {.made = output, .d_output = d_output, .d_qkv = d_qkv};
        take_heads(cpu, attention, &of);
        return WEFT_OK;
    }
    for (int64_t i = 0; i < attention->samples * attention->heads; i++) {
        const struct head head = head_of(attention, i);
        const void *p = weft_nn_at(head.dtype, attention->probabilities, head.scores);
        const void *d_head = weft_nn_at(head.dtype, d_output, head.output);
        WEFT_TRY(backward_rows(cpu, &head, attention->qkv, p, d_head, d_scores, d_qkv, err));
        WEFT_TRY(backward_columns(cpu, &head, attention->qkv, p, d_head, d_scores, d_qkv, err));
    }
    return WEFT_OK;
}
