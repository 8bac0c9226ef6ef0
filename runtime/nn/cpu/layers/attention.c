#include <math.h>

#include "runtime/nn/cpu/cpu.h"

/* Elements of a stripe of rows of a head's score matrix. A stripe stays in the second cache from
 * its scores to the output. Causality leaves half of the matrix. */
enum { STRIPE = 128 << 10 };

/* One head of queries of one sample: offsets of its first row. */
struct head {
    enum weft_dtype dtype;
    int64_t seq_len, first, size;
    int64_t query_stride, key_stride, value_stride, output_stride;
    float scale; /* 1 / sqrt(size) */
    int64_t query, key, value, output, scores;
};

static int64_t shared_by(const struct weft_nn_attention *attention)
{
    return attention->heads / attention->kv_heads;
}

static struct head head_of(const struct weft_nn_attention *attention, int64_t index)
{
    const int64_t sample = index / attention->heads, i = index % attention->heads;
    const int64_t s = attention->seq_len, size = attention->size, first = attention->first;
    const int64_t key_head = i / shared_by(attention) * size;
    return (struct head){.dtype = attention->dtype,
                         .seq_len = s,
                         .first = first,
                         .size = size,
                         .query_stride = attention->query_stride,
                         .key_stride = attention->key_stride,
                         .value_stride = attention->value_stride,
                         .output_stride = attention->heads * size,
                         .scale = (float)(1 / sqrt((double)size)),
                         .query = sample * (s - first) * attention->query_stride + i * size,
                         .key = sample * s * attention->key_stride + key_head,
                         .value = sample * s * attention->value_stride + key_head,
                         .output = (sample * (s - first) * attention->heads + i) * size,
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

/* Rows of a matrix with a stride. */
struct matrix {
    const void *at;
    int64_t stride;
};

static struct matrix query_from(const struct head *head, const void *query, int64_t row)
{
    const int64_t at = head->query + (row - head->first) * head->query_stride;
    return (struct matrix){element_at(head, query, at), head->query_stride};
}

/* Scores of rows up to `end`: c[rows, end] = alpha a b^T, with rows of two [., size] matrices. */
static struct weft_product scores_of(const struct head *head, int64_t rows, int64_t end,
                                     float alpha, struct matrix a, struct matrix b, void *c)
{
    return (struct weft_product){.transpose_b = true,
                                 .triangle = WEFT_C_IS_LOWER,
                                 .diagonal = end - rows,
                                 .dtype = head->dtype,
                                 .c_dtype = head->dtype,
                                 .m = rows,
                                 .n = end,
                                 .k = head->size,
                                 .a = a.at,
                                 .a_stride = a.stride,
                                 .b = b.at,
                                 .b_stride = b.stride,
                                 .alpha = alpha,
                                 .c = c,
                                 .c_stride = head->seq_len};
}

/* c[rows, size] = alpha p b, with p shaped as the scores of rows up to `end` and b [end, size]. */
static enum weft_status weigh_rows(const struct weft_nn_cpu *cpu, const struct head *head,
                                   int64_t rows, int64_t end, float alpha, const void *p,
                                   struct matrix b, void *c, int64_t c_stride,
                                   struct weft_error *err)
{
    const struct weft_product product = {.triangle = WEFT_A_IS_LOWER,
                                         .diagonal = end - rows,
                                         .dtype = head->dtype,
                                         .c_dtype = head->dtype,
                                         .m = rows,
                                         .n = head->size,
                                         .k = end,
                                         .a = p,
                                         .a_stride = head->seq_len,
                                         .b = b.at,
                                         .b_stride = b.stride,
                                         .alpha = alpha,
                                         .c = c,
                                         .c_stride = c_stride};
    return weft_gemm_run(cpu->gemm, &product, err);
}

/* Attends with rows from `first` on; p and output begin with row `first`. */
static enum weft_status attend_head(const struct weft_nn_cpu *cpu, const struct head *head,
                                    const struct weft_nn_attention *attention, void *p,
                                    void *output, struct weft_error *err)
{
    const struct weft_layer_kernels *kernels = cpu->kernels->layers[head->dtype];
    const struct matrix key = {element_at(head, attention->key, head->key), head->key_stride};
    const struct matrix value = {element_at(head, attention->value, head->value),
                                 head->value_stride};
    for (int64_t row = head->first, end; row < head->seq_len; row = end) {
        end = stripe_end(head, row);
        void *stripe = weft_nn_to(head->dtype, p, (row - head->first) * head->seq_len);
        void *out = weft_nn_to(head->dtype, output,
                               head->output + (row - head->first) * head->output_stride);
        const struct weft_product product =
            scores_of(head, end - row, end, head->scale, query_from(head, attention->query, row),
                      key, stripe);
        WEFT_TRY(weft_gemm_run(cpu->gemm, &product, err));
        for (int64_t i = 0; i < end - row; i += WEFT_TRIANGLE_ROWS) {
            const int64_t rows = end - row - i;
            kernels->causal_softmax(rows < WEFT_TRIANGLE_ROWS ? rows : WEFT_TRIANGLE_ROWS, row + i,
                                    weft_product_row_end(&product, i), head->seq_len,
                                    weft_nn_to(head->dtype, stripe, i * head->seq_len));
        }
        WEFT_TRY(
            weigh_rows(cpu, head, end - row, end, 1, stripe, value, out, head->output_stride, err));
    }
    return WEFT_OK;
}

/* True if kernels do whole heads, in forward and backward alike. Shared heads follow from the shape
 * alone. Others are products if some threads would idle, and then all threads share them. */
static bool whole_heads(const struct weft_nn_cpu *cpu, const struct weft_nn_attention *attention)
{
    const bool shared = shared_by(attention) > 1;
    return cpu->whole_heads && cpu->kernels->attend && attention->dtype == WEFT_F32 &&
           (shared || attention->samples * attention->heads >= cpu->threads) &&
           attention->seq_len % WEFT_HEAD_SIDE == 0 && attention->size % WEFT_HEAD_SIDE == 0 &&
           attention->size <= WEFT_HEAD_MOST_SIZE;
}

static struct weft_head whole_head(const struct head *head,
                                   const struct weft_nn_attention *attention)
{
    return (struct weft_head){.seq_len = head->seq_len,
                              .size = head->size,
                              .query_stride = head->query_stride,
                              .key_stride = head->key_stride,
                              .value_stride = head->value_stride,
                              .output_stride = head->output_stride,
                              .scale = head->scale,
                              .query = (const float *)attention->query + head->query,
                              .key = (const float *)attention->key + head->key,
                              .value = (const float *)attention->value + head->value};
}

/* Inputs and outputs of whole heads, besides the attention's own. */
struct heads {
    float *output;                /* of forward; NULL for backward */
    const float *made, *d_output; /* of backward: the output, and its gradient */
    const struct weft_nn_attention_gradients *to;
};

static void take_head(const struct weft_nn_cpu *cpu, const struct weft_nn_attention *attention,
                      const struct heads *of, int64_t index)
{
    const struct head head = head_of(attention, index);
    const struct weft_head whole = whole_head(&head, attention);
    float *p = (float *)attention->probabilities + head.scores;
    if (of->output != NULL) {
        cpu->kernels->attend(&whole, p, of->output + head.output);
        return;
    }
    const struct weft_head_gradients to = {.query = (float *)of->to->query + head.query,
                                           .key = (float *)of->to->key + head.key,
                                           .value = (float *)of->to->value + head.value,
                                           .adds = index % shared_by(attention) > 0};
    cpu->kernels->attend_backward(&whole, p, of->made + head.output, of->d_output + head.output,
                                  to);
}

/* A thread takes all queries of a head of keys and values, in order. */
static void take_heads(const struct weft_nn_cpu *cpu, const struct weft_nn_attention *attention,
                       const struct heads *of)
{
    const int64_t shared = shared_by(attention);
#ifdef _OPENMP
#pragma omp parallel for num_threads(cpu->threads) schedule(static) if (cpu->threads > 1)
#endif
    for (int64_t i = 0; i < attention->samples * attention->kv_heads; i++) {
        for (int64_t j = 0; j < shared; j++) {
            take_head(cpu, attention, of, i * shared + j);
        }
    }
}

enum weft_status weft_nn_cpu_attend_heads(const struct weft_nn_cpu *cpu,
                                          const struct weft_nn_attention *attention, void *output,
                                          struct weft_error *err)
{
    if (whole_heads(cpu, attention)) {
        take_heads(cpu, attention, &(struct heads){.output = output});
        return WEFT_OK;
    }
    for (int64_t i = 0; i < attention->samples * attention->heads; i++) {
        const struct head head = head_of(attention, i);
        WEFT_TRY(attend_head(cpu, &head, attention,
                             weft_nn_to(head.dtype, attention->probabilities, head.scores), output,
                             err));
    }
    return WEFT_OK;
}

enum weft_status weft_nn_cpu_attend_heads_from(const struct weft_nn_cpu *cpu,
                                               const struct weft_nn_attention *attention,
                                               void *output, struct weft_error *err)
{
    for (int64_t i = 0; i < attention->heads; i++) {
        const struct head head = head_of(attention, i);
        WEFT_TRY(attend_head(cpu, &head, attention, attention->probabilities, output, err));
    }
    return WEFT_OK;
}

/* By rows: gradients of scores and queries. */
static enum weft_status backward_rows(const struct weft_nn_cpu *cpu, const struct head *head,
                                      const struct weft_nn_attention *attention, const void *p,
                                      const void *d_output,
                                      const struct weft_nn_attention_gradients *to,
                                      struct weft_error *err)
{
    const struct weft_layer_kernels *kernels = cpu->kernels->layers[head->dtype];
    const struct matrix key = {element_at(head, attention->key, head->key), head->key_stride};
    const struct matrix value = {element_at(head, attention->value, head->value),
                                 head->value_stride};
    for (int64_t row = 0, end; row < head->seq_len; row = end) {
        end = stripe_end(head, row);
        void *stripe = weft_nn_to(head->dtype, to->scores, row * head->seq_len);
        const struct matrix d_rows = {
            element_at(head, d_output, head->output + row * head->output_stride),
            head->output_stride};
        const struct weft_product product =
            scores_of(head, end - row, end, 1, d_rows, value, stripe);
        WEFT_TRY(weft_gemm_run(cpu->gemm, &product, err));
        for (int64_t i = 0; i < end - row; i += WEFT_TRIANGLE_ROWS) {
            const int64_t rows = end - row - i;
            kernels->softmax_backward(rows < WEFT_TRIANGLE_ROWS ? rows : WEFT_TRIANGLE_ROWS,
                                      weft_product_row_end(&product, i), head->seq_len,
                                      element_at(head, p, (row + i) * head->seq_len),
                                      weft_nn_to(head->dtype, stripe, i * head->seq_len));
        }
        WEFT_TRY(
            weigh_rows(cpu, head, end - row, end, head->scale, stripe, key,
                       weft_nn_to(head->dtype, to->query, head->query + row * head->query_stride),
                       head->query_stride, err));
    }
    return WEFT_OK;
}

/* The gradient of a head's keys or values, summed over the queries that share it. */
struct sum {
    void *to;
    int64_t stride;
    float *sums; /* NULL: sums in `to` */
};

/* By columns: writes, or adds, alpha p^T b for a head's p [seq_len, seq_len]. */
static enum weft_status add_columns(const struct weft_nn_cpu *cpu, const struct head *head,
                                    bool add, float alpha, const void *p, struct matrix b,
                                    const struct sum *sum, struct weft_error *err)
{
    const struct weft_product product = {.transpose_a = true,
                                         .triangle = WEFT_A_IS_LOWER,
                                         .dtype = head->dtype,
                                         .c_dtype = sum->sums ? WEFT_F32 : head->dtype,
                                         .m = head->seq_len,
                                         .n = head->size,
                                         .k = head->seq_len,
                                         .a = p,
                                         .a_stride = head->seq_len,
                                         .b = b.at,
                                         .b_stride = b.stride,
                                         .alpha = alpha,
                                         .accumulate = add,
                                         .c = sum->sums ? sum->sums : sum->to,
                                         .c_stride = sum->sums ? head->size : sum->stride};
    return weft_gemm_run(cpu->gemm, &product, err);
}

static void give_sum(const struct weft_nn_cpu *cpu, const struct head *head, const struct sum *sum)
{
    for (int64_t row = 0; sum->sums && row < head->seq_len; row++) {
        cpu->kernels->narrow(head->dtype, head->size, sum->sums + row * head->size,
                             weft_nn_to(head->dtype, sum->to, row * sum->stride));
    }
}

/* Gradients of all queries of a head of keys and values, which are the heads from `index` on. */
static enum weft_status backward_group(const struct weft_nn_cpu *cpu,
                                       const struct weft_nn_attention *attention, int64_t index,
                                       const void *d_output,
                                       const struct weft_nn_attention_gradients *to,
                                       struct weft_error *err)
{
    const enum weft_dtype dtype = attention->dtype;
    const struct head first = head_of(attention, index);
    float *sums = weft_nn_cpu_attend_sums(attention) > 0 ? to->sums : NULL;
    const struct sum values = {weft_nn_to(dtype, to->value, first.value), first.value_stride, sums};
    const struct sum keys = {weft_nn_to(dtype, to->key, first.key), first.key_stride, sums};
    for (int64_t i = 0; i < shared_by(attention); i++) {
        const struct head head = head_of(attention, index + i);
        const void *p = weft_nn_at(dtype, attention->probabilities, head.scores);
        const struct matrix d_rows = {weft_nn_at(dtype, d_output, head.output), head.output_stride};
        WEFT_TRY(add_columns(cpu, &head, i > 0, 1, p, d_rows, &values, err));
    }
    give_sum(cpu, &first, &values);
    for (int64_t i = 0; i < shared_by(attention); i++) {
        const struct head head = head_of(attention, index + i);
        const void *p = weft_nn_at(dtype, attention->probabilities, head.scores);
        WEFT_TRY(backward_rows(cpu, &head, attention, p, d_output, to, err));
        WEFT_TRY(add_columns(cpu, &head, i > 0, head.scale, to->scores,
                             query_from(&head, attention->query, 0), &keys, err));
    }
    give_sum(cpu, &first, &keys);
    return WEFT_OK;
}

enum weft_status weft_nn_cpu_attend_heads_backward(const struct weft_nn_cpu *cpu,
                                                   const struct weft_nn_attention *attention,
                                                   const void *output, const void *d_output,
                                                   const struct weft_nn_attention_gradients *to,
                                                   struct weft_error *err)
{
    if (whole_heads(cpu, attention)) {
        take_heads(cpu, attention, &(struct heads){.made = output, .d_output = d_output, .to = to});
        return WEFT_OK;
    }
    const int64_t heads = attention->samples * attention->heads;
    for (int64_t i = 0; i < heads; i += shared_by(attention)) {
        WEFT_TRY(backward_group(cpu, attention, i, d_output, to, err));
    }
    return WEFT_OK;
}
