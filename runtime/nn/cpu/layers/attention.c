/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "layers/shared/stripe.h"
#include "runtime/nn/cpu/cpu.h"

_Static_assert((int)WEFT_STRIPE_UNIT == (int)WEFT_TRIANGLE_ROWS,
               "stripes are groups of a triangle");

/* One head of queries of one sample: offsets of its first row. Queries begin with row `first`. */
struct head {
    enum weft_dtype dtype;
    int64_t seq_len, first, size;
    int64_t query_stride, key_stride, value_stride, output_stride;
    bool both_ways;
    int64_t window;        /* 0: of all rows */
    float scale;           /* 1 / sqrt(size), or of another number */
    float cap;             /* 0: none */
    const int32_t *tokens; /* of the sample; NULL: every row is a key */
    int32_t padding;
    bool no_keys; /* the sample has padding alone */
    int64_t query, key, value, output, scores;
};

static int64_t shared_by(const struct weft_nn_attention *attention)
{
    return attention->heads / attention->kv_heads;
}

/* The sample's tokens, or NULL if none of them is padding. */
static const int32_t *tokens_of(const struct weft_nn_attention *attention, int64_t sample,
                                bool *no_keys)
{
    const int64_t s = attention->seq_len;
    const int32_t *tokens = attention->tokens != NULL ? attention->tokens + sample * s : NULL;
    int64_t hidden = 0;
    for (int64_t i = 0; i < s && tokens != NULL; i++)
        hidden += tokens[i] == attention->padding;
    *no_keys = hidden == s;
    return hidden > 0 ? tokens : NULL;
}

static struct head head_of(const struct weft_nn_attention *attention, int64_t index)
{
    const int64_t sample = index / attention->heads, i = index % attention->heads;
    const int64_t s = attention->seq_len, size = attention->size, first = attention->first;
    const int64_t key_head = i / shared_by(attention) * size;
    const double scalar = attention->scalar > 0 ? attention->scalar : (double)size;
    bool no_keys;
    const int32_t *tokens = tokens_of(attention, sample, &no_keys);
    return (struct head){.dtype = attention->dtype,
                         .seq_len = s,
                         .both_ways = attention->both_ways,
                         .window = attention->window < s ? attention->window : 0,
                         .cap = attention->cap,
                         .tokens = tokens,
                         .padding = attention->padding,
                         .no_keys = no_keys,
                         .first = first,
                         .size = size,
                         .query_stride = attention->query_stride,
                         .key_stride = attention->key_stride,
                         .value_stride = attention->value_stride,
                         .output_stride = attention->heads * size,
                         .scale = (float)(1 / sqrt(scalar)),
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

/* Rows from `row` up to `end` of a head's scores, and their columns from `from` up to `to`.
 * Causality leaves half of the matrix, and a window whole groups of a triangle before it. */
struct stripe {
    int64_t row, end, from, to;
};

static struct stripe stripe_at(const struct head *head, int64_t row)
{
    const int64_t end = row + weft_stripe_rows(head->seq_len), before = row - head->window + 1;
    struct stripe stripe = {.row = row, .end = end < head->seq_len ? end : head->seq_len};
    stripe.to = head->both_ways ? head->seq_len : stripe.end;
    if (head->window > 0 && before > 0)
        stripe.from = before / WEFT_TRIANGLE_ROWS * WEFT_TRIANGLE_ROWS;
    return stripe;
}

static struct stripe whole_matrix(const struct head *head)
{
    return (struct stripe){.end = head->seq_len, .to = head->seq_len};
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

static struct matrix rows_from(const struct head *head, const void *array, int64_t at,
                               int64_t stride, int64_t row)
{
    return (struct matrix){element_at(head, array, at + row * stride), stride};
}

static enum weft_product_triangle triangle_of(const struct head *head,
                                              enum weft_product_triangle triangle)
{
    return head->both_ways ? WEFT_NO_TRIANGLE : triangle;
}

/* Scores of a stripe: c = alpha a b^T, with rows of two [., size] matrices. */
static struct weft_product scores_of(const struct head *head, const struct stripe *stripe,
                                     float alpha, struct matrix a, struct matrix b, void *c)
{
    const int64_t rows = stripe->end - stripe->row, columns = stripe->to - stripe->from;
    return (struct weft_product){.transpose_b = true,
                                 .triangle = triangle_of(head, WEFT_C_IS_LOWER),
                                 .diagonal = head->both_ways ? 0 : columns - rows,
                                 .dtype = head->dtype,
                                 .c_dtype = head->dtype,
                                 .m = rows,
                                 .n = columns,
                                 .k = head->size,
                                 .a = a.at,
                                 .a_stride = a.stride,
                                 .b = b.at,
                                 .b_stride = b.stride,
                                 .alpha = alpha,
                                 .c = weft_nn_to(head->dtype, c, stripe->from),
                                 .c_stride = head->seq_len};
}

/* c[rows, size] = alpha p b, with p shaped as the stripe's scores and b [columns, size]. */
static enum weft_status weigh_rows(const struct weft_nn_cpu *cpu, const struct head *head,
                                   const struct stripe *stripe, float alpha, const void *p,
                                   struct matrix b, void *c, int64_t c_stride,
                                   struct weft_error *err)
{
    const int64_t rows = stripe->end - stripe->row, columns = stripe->to - stripe->from;
    const struct weft_product product = {.triangle = triangle_of(head, WEFT_A_IS_LOWER),
                                         .diagonal = head->both_ways ? 0 : columns - rows,
                                         .dtype = head->dtype,
                                         .c_dtype = head->dtype,
                                         .m = rows,
                                         .n = head->size,
                                         .k = columns,
                                         .a = element_at(head, p, stripe->from),
                                         .a_stride = head->seq_len,
                                         .b = b.at,
                                         .b_stride = b.stride,
                                         .alpha = alpha,
                                         .c = c,
                                         .c_stride = c_stride};
    return weft_gemm_run(cpu->gemm, &product, err);
}

/* Probabilities of rows that see no key are 0, and so are their gradients. */
static void clear_rows(const struct head *head, int64_t rows, int64_t width, void *p)
{
    const size_t bytes = (size_t)(width * weft_dtype_bytes(head->dtype));
    for (int64_t row = 0; row < rows; row++)
        memset(weft_nn_to(head->dtype, p, row * head->seq_len), 0, bytes);
}

/* The softmax of a group of rows, `width` columns of the stripe from row `at` of it on. */
static void soften_rows(const struct weft_nn_cpu *cpu, const struct head *head,
                        const struct stripe *stripe, int64_t at, int64_t width, void *p)
{
    const struct weft_layer_kernels *kernels = cpu->kernels->layers[head->dtype];
    const int64_t left = stripe->end - stripe->row - at, first = stripe->row + at - stripe->from;
    const int64_t rows = left < WEFT_TRIANGLE_ROWS ? left : WEFT_TRIANGLE_ROWS;
    void *x = weft_nn_to(head->dtype, p, at * head->seq_len + stripe->from);
    if (head->window > 0) kernels->hide_columns(rows, first, head->window, head->seq_len, x);
    if (head->no_keys) {
        clear_rows(head, rows, width, x);
        return;
    }
    if (head->tokens != NULL)
        kernels->hide_tokens(rows, width, head->seq_len, head->tokens + stripe->from, head->padding,
                             x);
    kernels->causal_softmax(rows, head->both_ways ? width : first, width, head->seq_len, x);
}

/* Bounds the scores of a stripe, and keeps those before in `uncapped`, unless it is NULL. */
static void cap_stripe(const struct weft_nn_cpu *cpu, const struct head *head,
                       const struct weft_product *product, void *uncapped)
{
    for (int64_t i = 0; head->cap > 0 && i < product->m; i++) {
        void *x = weft_nn_to(head->dtype, product->c, i * head->seq_len);
        const int64_t width = head->both_ways ? product->n : weft_product_row_end(product, i);
        if (uncapped != NULL)
            memcpy(weft_nn_to(head->dtype, uncapped, i * head->seq_len), x,
                   (size_t)(width * weft_dtype_bytes(head->dtype)));
        cpu->kernels->layers[head->dtype]->cap(1, width, width, head->cap, x);
    }
}

/* Probabilities of a stripe, in its columns of p [rows, seq_len]. */
static enum weft_status probabilities_of(const struct weft_nn_cpu *cpu, const struct head *head,
                                         const struct weft_nn_attention *attention,
                                         const struct stripe *stripe, void *p, void *uncapped,
                                         struct weft_error *err)
{
    const struct matrix key =
        rows_from(head, attention->key, head->key, head->key_stride, stripe->from);
    const struct weft_product product = scores_of(
        head, stripe, head->scale, query_from(head, attention->query, stripe->row), key, p);
    WEFT_TRY(weft_gemm_run(cpu->gemm, &product, err));
    cap_stripe(cpu, head, &product, uncapped);
    for (int64_t i = 0; i < product.m; i += WEFT_TRIANGLE_ROWS)
        soften_rows(cpu, head, stripe, i,
                    head->both_ways ? product.n : weft_product_row_end(&product, i), p);
    return WEFT_OK;
}

/* Attends by products with rows from `first` on, and the output begins with row `first`. `saved`
 * has the head's probabilities of all rows; NULL: the stripe has some of them. */
static enum weft_status attend_head(const struct weft_nn_cpu *cpu, const struct head *head,
                                    const struct weft_nn_attention *attention, void *saved,
                                    void *output, struct weft_error *err)
{
    struct stripe stripe;
    for (int64_t row = head->first; row < head->seq_len; row = stripe.end) {
        const int64_t done = row - head->first;
        stripe = stripe_at(head, row);
        const struct matrix value =
            rows_from(head, attention->value, head->value, head->value_stride, stripe.from);
        void *p = attention->stripe;
        if (saved != NULL) p = weft_nn_to(head->dtype, saved, done * head->seq_len);
        void *out = weft_nn_to(head->dtype, output, head->output + done * head->output_stride);
        WEFT_TRY(probabilities_of(cpu, head, attention, &stripe, p, NULL, err));
        WEFT_TRY(weigh_rows(cpu, head, &stripe, 1, p, value, out, head->output_stride, err));
    }
    return WEFT_OK;
}

static enum weft_status attend_products(const struct weft_nn_cpu *cpu,
                                        const struct weft_nn_attention *attention, void *output,
                                        struct weft_error *err)
{
    for (int64_t i = 0; i < attention->samples * attention->heads; i++) {
        const struct head head = head_of(attention, i);
        void *saved = attention->probabilities;
        if (saved != NULL) saved = weft_nn_to(head.dtype, saved, head.scores);
        WEFT_TRY(attend_head(cpu, &head, attention, saved, output, err));
    }
    return WEFT_OK;
}

/* True if kernels do whole heads, in forward and backward alike. It follows from the shape and the
 * way to multiply alone, so threads change no bit. Tiles multiply 16 bits many times as fast as
 * fp32, so products keep them. */
static bool whole_heads(const struct weft_nn_cpu *cpu, const struct weft_nn_attention *attention)
{
    const bool f32 = attention->dtype == WEFT_F32;
    const bool saves = f32 && attention->probabilities != NULL && cpu->kernels->attend_saves;
    const bool again = attention->log_sums != NULL && (f32 || !cpu->has_tiles);
    return cpu->whole_heads && cpu->kernels->attend && (saves || again) &&
           attention->seq_len % WEFT_HEAD_SIDE == 0 && attention->size % WEFT_HEAD_SIDE == 0 &&
           attention->size <= WEFT_HEAD_MOST_SIZE && !attention->both_ways && attention->cap == 0 &&
           (attention->window == 0 || attention->window >= attention->seq_len);
}

static struct weft_head whole_head(const struct head *head,
                                   const struct weft_nn_attention *attention)
{
    float *log_sums = attention->log_sums;
    if (log_sums != NULL) log_sums += head->output / head->size;
    return (struct weft_head){.dtype = head->dtype,
                              .seq_len = head->seq_len,
                              .size = head->size,
                              .query_stride = head->query_stride,
                              .key_stride = head->key_stride,
                              .value_stride = head->value_stride,
                              .output_stride = head->output_stride,
                              .scale = head->scale,
                              .query = element_at(head, attention->query, head->query),
                              .key = element_at(head, attention->key, head->key),
                              .value = element_at(head, attention->value, head->value),
                              .log_sums = log_sums,
                              .sums_stride = attention->heads};
}

static void attend_whole(const struct weft_nn_cpu *cpu, const struct weft_nn_attention *attention,
                         int64_t index, void *output)
{
    const struct head head = head_of(attention, index);
    const struct weft_head whole = whole_head(&head, attention);
    float *p = attention->probabilities;
    if (p != NULL) p += head.scores;
    cpu->kernels->attend(&whole, p, weft_nn_to(head.dtype, output, head.output));
}

/* A thread takes all queries of a head of keys and values, in order. */
static void attend_whole_heads(const struct weft_nn_cpu *cpu,
                               const struct weft_nn_attention *attention, void *output)
{
    const int64_t shared = shared_by(attention);
#ifdef _OPENMP
#pragma omp parallel for num_threads(cpu->threads) schedule(static) if (cpu->threads > 1)
#endif
    for (int64_t i = 0; i < attention->samples * attention->kv_heads; i++) {
        for (int64_t j = 0; j < shared; j++) {
            attend_whole(cpu, attention, i * shared + j, output);
        }
    }
}

/* Backward of whole heads. */
struct heads_backward {
    const struct weft_nn_cpu *cpu;
    const struct weft_nn_attention *attention;
    const void *output, *d_output;
    const struct weft_nn_attention_gradients *to;
};

enum wanted_gradients { ALL_GRADIENTS, OF_QUERIES, OF_KEYS };

/* Backward of a head of queries. In 16 bits `sums` has room for rows of keys from `first` up to
 * `end`. */
static void take_head(const struct heads_backward *of, int64_t index, enum wanted_gradients wanted,
                      float *sums, int64_t first, int64_t end)
{
    const int64_t i = index % shared_by(of->attention), last = shared_by(of->attention) - 1;
    const struct head head = head_of(of->attention, index);
    const struct weft_head whole = whole_head(&head, of->attention);
    const float *p = of->attention->probabilities;
    if (p != NULL) p += head.scores;
    struct weft_head_gradients to = {
        .adds = i > 0, .ends = i == last, .sums = sums, .first = first, .end = end};
    if (wanted != OF_KEYS) to.query = weft_nn_to(head.dtype, of->to->query, head.query);
    if (wanted != OF_QUERIES) {
        to.key = weft_nn_to(head.dtype, of->to->key, head.key);
        to.value = weft_nn_to(head.dtype, of->to->value, head.value);
    }
    of->cpu->kernels->attend_backward(&whole, p, element_at(&head, of->output, head.output),
                                      element_at(&head, of->d_output, head.output), to);
}

/* All queries of a head of keys and values, in order. */
static void take_group(const struct heads_backward *of, int64_t group, enum wanted_gradients wanted,
                       float *sums, int64_t first, int64_t end)
{
    const int64_t shared = shared_by(of->attention);
    for (int64_t j = 0; j < shared; j++) {
        take_head(of, group * shared + j, wanted, sums, first, end);
    }
}

/* Scratch of thread `i` for the sums of a head in 16 bits, or NULL. The first thread has the
 * planned sums. Others have parts of the stripes, which whole heads do not use. */
static float *sums_of_thread(const struct heads_backward *of, int64_t i)
{
    const struct weft_nn_attention *a = of->attention;
    const int64_t rows = weft_stripe_rows(a->seq_len), sums = weft_nn_cpu_attend_sums(a);
    const int64_t stripe = (rows < a->seq_len ? rows : a->seq_len) * a->seq_len;
    const int64_t fit = stripe * weft_dtype_bytes(a->dtype) / (sums * (int64_t)sizeof(float));
    if (i == 0) return of->to->sums;
    if (i <= fit) return (float *)a->stripe + (i - 1) * sums;
    return i <= 2 * fit ? (float *)of->to->scores + (i - fit - 1) * sums : NULL;
}

/* 16 bits by more threads than have sums. Each thread takes rows of keys with sums on its stack,
 * and then heads of queries. It computes probabilities twice; every sum has the same order. */
static void take_heads_in_parts(const struct heads_backward *of)
{
    const struct weft_nn_attention *a = of->attention;
    const int64_t heads = a->samples * a->kv_heads, parts = a->seq_len / WEFT_HEAD_SIDE;
#ifdef _OPENMP
#pragma omp parallel for num_threads(of->cpu->threads) schedule(static, 1)
#endif
    for (int64_t i = 0; i < heads * parts; i++) {
        float sums[2 * WEFT_HEAD_SIDE * WEFT_HEAD_MOST_SIZE];
        const int64_t first = i / heads * WEFT_HEAD_SIDE;
        take_group(of, i % heads, OF_KEYS, sums, first, first + WEFT_HEAD_SIDE);
    }
#ifdef _OPENMP
#pragma omp parallel for num_threads(of->cpu->threads) schedule(static)
#endif
    for (int64_t i = 0; i < a->samples * a->heads; i++) {
        take_head(of, i, OF_QUERIES, NULL, 0, a->seq_len);
    }
}

/* A thread takes adjacent heads of keys and values. */
static void take_heads(const struct heads_backward *of)
{
    const struct weft_nn_attention *a = of->attention;
    const bool narrow = a->dtype != WEFT_F32;
    const int64_t heads = a->samples * a->kv_heads;
    const int64_t threads = of->cpu->threads < heads ? of->cpu->threads : heads;
    if (narrow && sums_of_thread(of, threads - 1) == NULL) {
        take_heads_in_parts(of);
        return;
    }
#ifdef _OPENMP
#pragma omp parallel for num_threads((int)threads) schedule(static, 1) if (threads > 1)
#endif
    for (int64_t thread = 0; thread < threads; thread++) {
        float *sums = narrow ? sums_of_thread(of, thread) : NULL;
        const int64_t end = (thread + 1) * heads / threads;
        for (int64_t i = thread * heads / threads; i < end; i++) {
            take_group(of, i, ALL_GRADIENTS, sums, 0, a->seq_len);
        }
    }
}

enum weft_status weft_nn_cpu_attend_heads(const struct weft_nn_cpu *cpu,
                                          const struct weft_nn_attention *attention, void *output,
                                          struct weft_error *err)
{
    if (whole_heads(cpu, attention)) {
        attend_whole_heads(cpu, attention, output);
        return WEFT_OK;
    }
    return attend_products(cpu, attention, output, err);
}

enum weft_status weft_nn_cpu_attend_heads_from(const struct weft_nn_cpu *cpu,
                                               const struct weft_nn_attention *attention,
                                               void *output, struct weft_error *err)
{
    struct weft_nn_attention rows = *attention;
    rows.probabilities = NULL;
    return attend_products(cpu, &rows, output, err);
}

/* Gradients of a stripe of scores, into its columns of d [rows, seq_len], and of its queries. */
static enum weft_status stripe_backward(const struct weft_nn_cpu *cpu, const struct head *head,
                                        const struct weft_nn_attention *attention,
                                        const struct stripe *stripe, const void *p,
                                        const void *uncapped, const void *d_output, void *d,
                                        void *d_query, struct weft_error *err)
{
    const struct weft_layer_kernels *kernels = cpu->kernels->layers[head->dtype];
    const int64_t s = head->seq_len;
    const struct matrix key =
        rows_from(head, attention->key, head->key, head->key_stride, stripe->from);
    const struct matrix value =
        rows_from(head, attention->value, head->value, head->value_stride, stripe->from);
    const struct matrix d_rows =
        rows_from(head, d_output, head->output, head->output_stride, stripe->row);
    const struct weft_product product = scores_of(head, stripe, 1, d_rows, value, d);
    WEFT_TRY(weft_gemm_run(cpu->gemm, &product, err));
    for (int64_t i = 0; i < product.m; i += WEFT_TRIANGLE_ROWS) {
        const int64_t left = product.m - i, at = i * s + stripe->from;
        const int64_t rows = left < WEFT_TRIANGLE_ROWS ? left : WEFT_TRIANGLE_ROWS;
        const int64_t width = head->both_ways ? product.n : weft_product_row_end(&product, i);
        void *to = weft_nn_to(head->dtype, d, at);
        kernels->softmax_backward(rows, width, s, element_at(head, p, at), to);
        if (uncapped != NULL)
            kernels->cap_backward(rows, width, s, head->cap, element_at(head, uncapped, i * s), to);
    }
    return weigh_rows(
        cpu, head, stripe, head->scale, d, key,
        weft_nn_to(head->dtype, d_query, head->query + stripe->row * head->query_stride),
        head->query_stride, err);
}

/* The gradient of a head's keys or values, summed over the queries that share it. */
struct sum {
    void *to;
    int64_t stride;
    float *sums; /* NULL: sums in `to` */
};

/* By columns: writes, or adds, alpha p^T b for a stripe's rows of p and its columns. */
static enum weft_status add_columns(const struct weft_nn_cpu *cpu, const struct head *head,
                                    bool add, float alpha, const struct stripe *stripe,
                                    const void *p, struct matrix b, const struct sum *sum,
                                    struct weft_error *err)
{
    const int64_t rows = stripe->end - stripe->row, columns = stripe->to - stripe->from;
    const int64_t stride = sum->sums ? head->size : sum->stride;
    void *to = sum->sums ? (void *)(sum->sums + stripe->from * stride)
                         : weft_nn_to(head->dtype, sum->to, stripe->from * stride);
    const struct weft_product product = {.transpose_a = true,
                                         .triangle = triangle_of(head, WEFT_A_IS_LOWER),
                                         .diagonal = head->both_ways ? 0 : columns - rows,
                                         .dtype = head->dtype,
                                         .c_dtype = sum->sums ? WEFT_F32 : head->dtype,
                                         .m = columns,
                                         .n = head->size,
                                         .k = rows,
                                         .a = element_at(head, p, stripe->from),
                                         .a_stride = head->seq_len,
                                         .b = b.at,
                                         .b_stride = b.stride,
                                         .alpha = alpha,
                                         .accumulate = add,
                                         .c = to,
                                         .c_stride = stride};
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
    const int64_t s = first.seq_len;
    float *sums = weft_nn_cpu_attend_sums(attention) > 0 ? to->sums : NULL;
    const struct sum values = {weft_nn_to(dtype, to->value, first.value), first.value_stride, sums};
    const struct sum keys = {weft_nn_to(dtype, to->key, first.key), first.key_stride, sums};
    for (int64_t i = 0; i < shared_by(attention); i++) {
        const struct head head = head_of(attention, index + i);
        const void *p = weft_nn_at(dtype, attention->probabilities, head.scores);
        const struct matrix d_rows = {weft_nn_at(dtype, d_output, head.output), head.output_stride};
        const struct stripe all = whole_matrix(&head);
        WEFT_TRY(add_columns(cpu, &head, i > 0, 1, &all, p, d_rows, &values, err));
    }
    give_sum(cpu, &first, &values);
    for (int64_t i = 0; i < shared_by(attention); i++) {
        const struct head head = head_of(attention, index + i);
        const char *p = weft_nn_at(dtype, attention->probabilities, head.scores);
        const struct stripe all = whole_matrix(&head);
        struct stripe stripe;
        for (int64_t row = 0; row < s; row = stripe.end) {
            stripe = stripe_at(&head, row);
            WEFT_TRY(stripe_backward(cpu, &head, attention, &stripe, weft_nn_at(dtype, p, row * s),
                                     NULL, d_output, weft_nn_to(dtype, to->scores, row * s),
                                     to->query, err));
        }
        WEFT_TRY(add_columns(cpu, &head, i > 0, head.scale, &all, to->scores,
                             query_from(&head, attention->query, 0), &keys, err));
    }
    give_sum(cpu, &first, &keys);
    return WEFT_OK;
}

static void clear_sum(const struct head *head, const struct sum *sum)
{
    const int64_t size = weft_dtype_bytes(head->dtype);
    if (sum->sums) memset(sum->sums, 0, (size_t)(head->seq_len * head->size) * sizeof(float));
    for (int64_t row = 0; !sum->sums && row < head->seq_len; row++) {
        memset(weft_nn_to(head->dtype, sum->to, row * sum->stride), 0, (size_t)(head->size * size));
    }
}

/* A head's part of the gradients, with probabilities that are computed again for each stripe. */
static enum weft_status add_head(const struct weft_nn_cpu *cpu,
                                 const struct weft_nn_attention *attention, const struct head *head,
                                 const void *d_output, const struct weft_nn_attention_gradients *to,
                                 const struct sum *keys, const struct sum *values,
                                 struct weft_error *err)
{
    struct stripe stripe;
    for (int64_t row = 0; row < head->seq_len; row = stripe.end) {
        stripe = stripe_at(head, row);
        const struct matrix d_rows =
            rows_from(head, d_output, head->output, head->output_stride, row);
        void *p = attention->stripe, *uncapped = head->cap > 0 ? to->uncapped : NULL;
        WEFT_TRY(probabilities_of(cpu, head, attention, &stripe, p, uncapped, err));
        WEFT_TRY(add_columns(cpu, head, true, 1, &stripe, p, d_rows, values, err));
        WEFT_TRY(stripe_backward(cpu, head, attention, &stripe, p, uncapped, d_output, to->scores,
                                 to->query, err));
        WEFT_TRY(add_columns(cpu, head, true, head->scale, &stripe, to->scores,
                             query_from(head, attention->query, row), keys, err));
    }
    return WEFT_OK;
}

/* The same as backward_group, without saved probabilities. */
static enum weft_status backward_group_again(const struct weft_nn_cpu *cpu,
                                             const struct weft_nn_attention *attention,
                                             int64_t index, const void *d_output,
                                             const struct weft_nn_attention_gradients *to,
                                             struct weft_error *err)
{
    const enum weft_dtype dtype = attention->dtype;
    const struct head first = head_of(attention, index);
    float *sums = weft_nn_cpu_attend_sums(attention) > 0 ? to->sums : NULL;
    const struct sum keys = {weft_nn_to(dtype, to->key, first.key), first.key_stride, sums};
    const struct sum values = {weft_nn_to(dtype, to->value, first.value), first.value_stride,
                               sums ? sums + first.seq_len * first.size : NULL};
    clear_sum(&first, &keys);
    clear_sum(&first, &values);
    for (int64_t i = 0; i < shared_by(attention); i++) {
        const struct head head = head_of(attention, index + i);
        WEFT_TRY(add_head(cpu, attention, &head, d_output, to, &keys, &values, err));
    }
    give_sum(cpu, &first, &keys);
    give_sum(cpu, &first, &values);
    return WEFT_OK;
}

enum weft_status weft_nn_cpu_attend_heads_backward(const struct weft_nn_cpu *cpu,
                                                   const struct weft_nn_attention *attention,
                                                   const void *output, const void *d_output,
                                                   const struct weft_nn_attention_gradients *to,
                                                   struct weft_error *err)
{
    if (whole_heads(cpu, attention)) {
        take_heads(&(struct heads_backward){cpu, attention, output, d_output, to});
        return WEFT_OK;
    }
    const int64_t heads = attention->samples * attention->heads;
    for (int64_t i = 0; i < heads; i += shared_by(attention)) {
        WEFT_TRY(attention->probabilities != NULL
                     ? backward_group(cpu, attention, i, d_output, to, err)
                     : backward_group_again(cpu, attention, i, d_output, to, err));
    }
    return WEFT_OK;
}
