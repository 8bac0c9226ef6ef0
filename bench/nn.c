/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the CPU layers on one thread: GEMM by shape; a training step of a GPT with 10 million
 * parameters as a share of the best GEMM rate; attention of shared heads by products and as whole
 * heads; AdamW against a loop that only moves the same bytes; the norm.
 *
 *     build/bench/nn [LIBRARY [f32|bf16|f16 [attention]]] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "layers/embedding.h"
#include "layers/shared/block.h"
#include "runtime/nn/cpu/cpu.h"
#include "runtime/nn/cpu/kernels/kernels.h"
#include "runtime/nn/optimizer.h"
#include "spec/layer.h"

enum {
    SAMPLES = 8,
    SEQ_LEN = 256,
    ROWS = SAMPLES * SEQ_LEN,
    HIDDEN = 384,
    HEADS = 6,
    FFN = 1536,
    VOCAB = 256,
    BLOCKS = 6,
    ROUNDS = 9
};

static void fail(const char *text)
{
    fprintf(stderr, "bench/nn: %s\n", text);
    exit(1);
}

enum { ALIGNMENT = 256 };

static float *numbers(int64_t n, float scale)
{
    float *x =
        aligned_alloc(ALIGNMENT, ((size_t)n * sizeof(*x) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    if (!x) fail("no memory");
    uint32_t state = 12345;
    for (int64_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = scale * ((float)(state >> 8) / (float)(1 << 23) - 1);
    }
    return x;
}

/* The dtype of all computations. */
static enum weft_dtype dtype = WEFT_F32;
static void *elements(int64_t n, float scale)
{
    float *x = numbers(n, scale);
    if (dtype == WEFT_F32) return x;
    void *narrow = malloc((size_t)(n * weft_dtype_bytes(dtype)));
    if (!narrow) fail("no memory");
    weft_kernels_best()->narrow(dtype, n, x, narrow);
    free(x);
    return narrow;
}

struct shape {
    struct weft_product product;
    int64_t best_ns;
};

static struct shape shape_of(bool ta, bool tb, int64_t m, int64_t n, int64_t k)
{
    struct shape shape = {.product = weft_product_dense(ta, tb, m, n, k, dtype),
                          .best_ns = INT64_MAX};
    shape.product.a = elements(m * k, 1);
    shape.product.b = elements(k * n, 1);
    shape.product.c = elements(m * n, 1);
    return shape;
}

/* For each map of the model: forward, by input and by weight; then the squares. */
enum { N_SHAPES = 18 };

static void shapes_init(struct shape shapes[N_SHAPES])
{
    static const int64_t maps[][2] = {
        {3 * HIDDEN, HIDDEN}, {HIDDEN, HIDDEN}, {FFN, HIDDEN}, {HIDDEN, FFN}, {VOCAB, HIDDEN}};
    for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++) {
        const int64_t outputs = maps[i][0], inputs = maps[i][1];
        *shapes++ = shape_of(false, true, ROWS, outputs, inputs);
        *shapes++ = shape_of(false, false, ROWS, inputs, outputs);
        *shapes++ = shape_of(true, false, outputs, inputs, ROWS);
    }
    for (int64_t size = 1024; size <= 2048; size += 512) {
        *shapes++ = shape_of(false, false, size, size, size);
    }
}

static double rate_of(const struct shape *shape, int64_t ns)
{
    const struct weft_product *p = &shape->product;
    return 2.0 * (double)p->m * (double)p->n * (double)p->k / (double)ns;
}

/* Runs each shape once. Returns the best rate in flops per nanosecond. */
static double shapes_run(struct weft_nn *nn, struct shape shapes[N_SHAPES])
{
    struct weft_error err = {0};
    double best = 0;
    for (int i = 0; i < N_SHAPES; i++) {
        const int64_t start = weft_clock_now_ns();
        if (weft_gemm_run(weft_nn_cpu_of(nn)->gemm, &shapes[i].product, &err) != WEFT_OK)
            fail(err.text);
        const int64_t ns = weft_clock_now_ns() - start;
        if (ns < shapes[i].best_ns) shapes[i].best_ns = ns;
        if (rate_of(&shapes[i], ns) > best) best = rate_of(&shapes[i], ns);
    }
    return best;
}

static double shapes_report(const struct shape shapes[N_SHAPES])
{
    double best = 0;
    for (int i = 0; i < N_SHAPES; i++) {
        const struct weft_product *p = &shapes[i].product;
        const double rate = rate_of(&shapes[i], shapes[i].best_ns);
        printf("  %c%c %5lld x %5lld x %5lld  %6.1f GFLOP/s\n", p->transpose_a ? 'T' : 'N',
               p->transpose_b ? 'T' : 'N', (long long)p->m, (long long)p->n, (long long)p->k, rate);
        if (rate > best) best = rate;
    }
    return best;
}

struct bench_layer {
    struct weft_layer layer;
    struct weft_nn_call call;
    int64_t elements[WEFT_LAYER_TENSORS];
    int64_t forward_ns, backward_ns; /* best of the repeats */
};

enum { N_LAYERS = BLOCKS + 3 };

static void layer_init(struct bench_layer *l, const struct weft_kind *type, const char *name)
{
    const int64_t h = HIDDEN, f = FFN,
                  block[12] = {h, h, 3 * h * h, 3 * h, h * h, h, h, h, f * h, f, h * f, h};
    const bool head = type == &weft_kind_lm_head, embedding = type == &weft_kind_embedding;
    *l = (struct bench_layer){.forward_ns = INT64_MAX, .backward_ns = INT64_MAX};
    l->layer = (struct weft_layer){.name = name,
                                   .kind = type,
                                   .tie = -1,
                                   .vocab = VOCAB,
                                   .hidden = h,
                                   .outputs = head ? VOCAB : h};
    if (embedding) {
        l->layer.keys[WEFT_EMBEDDING_POSITIONS].integer = SEQ_LEN;
    } else if (type == &weft_kind_transformer_block) {
        l->layer.keys[WEFT_BLOCK_HEADS].integer = HEADS;
        l->layer.keys[WEFT_BLOCK_KV_HEADS].integer = HEADS;
        l->layer.keys[WEFT_BLOCK_FFN].integer = f;
    }
    if (type == &weft_kind_transformer_block) memcpy(l->elements, block, sizeof(block));
    if (type == &weft_kind_layer_norm) l->elements[0] = l->elements[1] = h;
    if (head || embedding) l->elements[0] = VOCAB * h;
    if (embedding) l->elements[1] = SEQ_LEN * h;
    for (int i = 0; i < WEFT_LAYER_TENSORS; i++) {
        if (l->elements[i] == 0) continue;
        l->call.tensors[i] = elements(l->elements[i], 0.04f);
        l->call.gradients[i] = numbers(l->elements[i], 0);
    }
}

/* Chains the layers. Each has its own buffers, as the executor lays them out. */
static void chain(struct bench_layer layers[N_LAYERS], int32_t *tokens, int32_t *targets,
                  double *loss)
{
    const struct weft_batch batch = {.samples = SAMPLES, .seq_len = SEQ_LEN, .compute = dtype};
    void *gradient = numbers((int64_t)ROWS * HIDDEN, 0);
    const void *input = tokens;
    for (int i = 0; i < N_LAYERS; i++) {
        struct weft_nn_call *call = &layers[i].call;
        struct weft_layer_work work;
        struct weft_error err = {0};
        call->layer = &layers[i].layer;
        call->batch = batch;
        if (weft_layer_work(call->layer, &batch, &work, &err) != WEFT_OK) fail(err.text);
        call->saved = numbers(work.saved_bytes / 4, 0);
        call->temporary = numbers(work.backward_temporary_bytes / 4, 0);
        call->input = input;
        call->input_gradient = i > 0 ? gradient : NULL;
        gradient = numbers((int64_t)ROWS * HIDDEN, 0);
        call->output_gradient = gradient;
        input = call->output = numbers(work.output_bytes / 4, 0);
    }
    for (int i = 0; i < N_LAYERS - 1; i++) {
        layers[i].call.output_gradient = layers[i + 1].call.input_gradient;
    }
    layers[N_LAYERS - 1].call.targets = targets;
    layers[N_LAYERS - 1].call.loss = loss;
    layers[N_LAYERS - 1].call.loss_scale = 1.0 / ROWS;
}

static void run(struct weft_nn *nn, struct bench_layer *l, bool forward)
{
    struct weft_error err = {0};
    const int64_t start = weft_clock_now_ns();
    const enum weft_status status = forward ? weft_nn_cpu_forward(nn, &l->call, &err)
                                            : weft_nn_cpu_backward(nn, &l->call, &err);
    const int64_t ns = weft_clock_now_ns() - start;
    if (status != WEFT_OK) fail(err.text);
    int64_t *best = forward ? &l->forward_ns : &l->backward_ns;
    if (ns < *best) *best = ns;
}

static void model_init(struct bench_layer layers[N_LAYERS], double *loss)
{
    static int32_t tokens[ROWS], targets[ROWS];
    for (int i = 0; i < ROWS; i++) {
        tokens[i] = i * 31 % VOCAB;
        targets[i] = i * 17 % VOCAB;
    }
    layer_init(&layers[0], &weft_kind_embedding, "wte");
    for (int i = 1; i <= BLOCKS; i++) {
        layer_init(&layers[i], &weft_kind_transformer_block, "h");
    }
    layer_init(&layers[N_LAYERS - 2], &weft_kind_layer_norm, "ln_f");
    layer_init(&layers[N_LAYERS - 1], &weft_kind_lm_head, "lm_head");
    chain(layers, tokens, targets, loss);
}

static int64_t step(struct weft_nn *nn, struct bench_layer layers[N_LAYERS])
{
    const int64_t start = weft_clock_now_ns();
    for (int i = 0; i < N_LAYERS; i++) {
        run(nn, &layers[i], true);
    }
    for (int i = N_LAYERS - 1; i >= 0; i--) {
        run(nn, &layers[i], false);
    }
    return weft_clock_now_ns() - start;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Products and steps take turns, because the machine's speed changes within a second. A step's
 * share refers to the products just before it; the best of all is printed too. */
static void training_step(struct weft_nn *nn)
{
    static struct bench_layer layers[N_LAYERS];
    static struct shape shapes[N_SHAPES];
    double loss = 0, shares[ROUNDS];
    int64_t best_ns = INT64_MAX;
    model_init(layers, &loss);
    shapes_init(shapes);
    shapes_run(nn, shapes); /* touches all memory of products and steps */
    step(nn, layers);

    const double weights = BLOCKS * (4.0 * HIDDEN * HIDDEN + 2.0 * HIDDEN * FFN) + VOCAB * HIDDEN;
    /* Masked scores, half of all, are not counted: 2 products forward, 4 backward. */
    const double attention = BLOCKS * 6.0 * ROWS * SEQ_LEN * HIDDEN;
    const double flops = 6 * weights * ROWS + attention;
    for (int i = 0; i < ROUNDS; i++) {
        const double products = shapes_run(nn, shapes);
        const int64_t ns = step(nn, layers);
        shares[i] = 100 * flops / (double)ns / products;
        if (ns < best_ns) best_ns = ns;
    }
    qsort(shares, ROUNDS, sizeof(shares[0]), by_size);
    const double best = shapes_report(shapes);
    printf("forward and backward, %d layers: %.1f ms, %.1f GFLOP/s, %.1f %% of the GEMM rate "
           "(loss %.3f); in turns, median of %d: %.1f %% (%.1f to %.1f)\n",
           N_LAYERS, 1e-6 * (double)best_ns, flops / (double)best_ns,
           100 * flops / (double)best_ns / best, loss / ROWS, ROUNDS, shares[ROUNDS / 2], shares[0],
           shares[ROUNDS - 1]);
    const double block_flops =
        2.0 * ROWS * (4.0 * HIDDEN * HIDDEN + 2.0 * HIDDEN * FFN) + 2.0 * ROWS * SEQ_LEN * HIDDEN;
    const struct bench_layer *block = &layers[BLOCKS];
    printf("  a block: forward %.2f ms (%.1f %%), backward %.2f ms (%.1f %%)\n",
           1e-6 * (double)block->forward_ns, 100 * block_flops / (double)block->forward_ns / best,
           1e-6 * (double)block->backward_ns,
           200 * block_flops / (double)block->backward_ns / best);
    for (int i = 0; i < N_LAYERS; i += i ? BLOCKS : 1) {
        printf("  %-8s forward %.3f ms, backward %.3f ms\n", layers[i].layer.name,
               1e-6 * (double)layers[i].forward_ns, 1e-6 * (double)layers[i].backward_ns);
    }
}

/* Attention of the model with keys and values that groups of heads share, without saved
 * probabilities: by products, and as whole heads where kernels do. Both in turns, best of each. */
static void shared_attention(struct weft_nn *nn)
{
    enum { SIZE = HIDDEN / HEADS, KV_HEADS = 2, STRIDE = (HEADS + 2 * KV_HEADS) * SIZE };
    enum { STRIPE = SEQ_LEN * SEQ_LEN, SUMS = 2 * SEQ_LEN * SIZE };
    struct weft_nn_cpu *cpu = (struct weft_nn_cpu *)(void *)nn;
    char *qkv = elements((int64_t)ROWS * STRIDE, 1), *d_qkv = elements((int64_t)ROWS * STRIDE, 0);
    void *output = elements((int64_t)ROWS * HIDDEN, 0);
    const void *d_output = elements((int64_t)ROWS * HIDDEN, 1);
    const int64_t key = HIDDEN * weft_dtype_bytes(dtype);
    const int64_t value = key + KV_HEADS * SIZE * weft_dtype_bytes(dtype);
    const struct weft_nn_attention attention = {.dtype = dtype,
                                                .samples = SAMPLES,
                                                .seq_len = SEQ_LEN,
                                                .heads = HEADS,
                                                .kv_heads = KV_HEADS,
                                                .size = SIZE,
                                                .query = qkv,
                                                .key = qkv + key,
                                                .value = qkv + value,
                                                .query_stride = STRIDE,
                                                .key_stride = STRIDE,
                                                .value_stride = STRIDE,
                                                .log_sums = numbers((int64_t)ROWS * HEADS, 0),
                                                .stripe = numbers(STRIPE, 0)};
    const struct weft_nn_attention_gradients to = {.query = d_qkv,
                                                   .key = d_qkv + key,
                                                   .value = d_qkv + value,
                                                   .scores = numbers(STRIPE, 0),
                                                   .sums = numbers(SUMS, 0)};
    const bool can_whole = cpu->whole_heads;
    int64_t best[2][2] = {{INT64_MAX, INT64_MAX}, {INT64_MAX, INT64_MAX}};
    for (int i = 0; i < 4 * ROUNDS; i++) {
        struct weft_error err = {0};
        int64_t *const at = best[i % 2];
        cpu->whole_heads = i % 2 == 1 && can_whole;
        const int64_t start = weft_clock_now_ns();
        if (weft_nn_cpu_attend_heads(cpu, &attention, output, &err) != WEFT_OK) fail(err.text);
        const int64_t middle = weft_clock_now_ns();
        if (weft_nn_cpu_attend_heads_backward(cpu, &attention, output, d_output, &to, &err) !=
            WEFT_OK)
            fail(err.text);
        const int64_t end = weft_clock_now_ns();
        if (middle - start < at[0]) at[0] = middle - start;
        if (end - middle < at[1]) at[1] = end - middle;
    }
    cpu->whole_heads = can_whole;
    printf("attention, %d heads share %d: by products forward %.2f ms, backward %.2f ms; whole "
           "heads where kernels do %.2f and %.2f ms\n",
           HEADS, KV_HEADS, 1e-6 * (double)best[0][0], 1e-6 * (double)best[0][1],
           1e-6 * (double)best[1][0], 1e-6 * (double)best[1][1]);
}

/* AdamW's memory traffic without its arithmetic: reads 4 streams and writes 3. */
__attribute__((noinline)) static void move(float *restrict p, const float *restrict g,
                                           float *restrict m, float *restrict v, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const float a = g[i];
        p[i] += a;
        m[i] += a;
        v[i] += a;
    }
}

static void measure_optimizer(void)
{
    enum { TURNS = 31 };
    const int64_t n = 10 << 20;
    float *p = numbers(n, 1), *g = numbers(n, 1), *m = numbers(n, 0), *v = numbers(n, 0);
    struct weft_adamw adamw = {.lr = 1e-3f, .eps = 1e-8f, .decay = 0.1f, .clip = 1};
    weft_adamw_at(&adamw, 0.9, 0.95, 10);
    const struct weft_optimizer optimizer = {.type = WEFT_ADAMW, .adamw = adamw};
    int64_t best[3] = {INT64_MAX, INT64_MAX, INT64_MAX};
    double shares[TURNS];
    uint64_t bins[WEFT_NORM_WORDS] = {0};
    for (int i = 0; i < TURNS; i++) {
        int64_t at[4] = {weft_clock_now_ns()};
        move(p, g, m, v, n);
        at[1] = weft_clock_now_ns();
        weft_kernels_best()->update[WEFT_ADAMW](&optimizer, 0.1f, n, p, g, m, v);
        at[2] = weft_clock_now_ns();
        weft_norm_add(bins, g, n);
        at[3] = weft_clock_now_ns();
        for (int j = 0; j < 3; j++) {
            if (at[j + 1] - at[j] < best[j]) best[j] = at[j + 1] - at[j];
        }
        shares[i] = (double)(at[1] - at[0]) / (double)(at[2] - at[1]);
    }
    qsort(shares, TURNS, sizeof(shares[0]), by_size);
    int finite = 0;
    const double norm = weft_norm_result(bins, &finite);
    const double bytes = 7.0 * sizeof(float) * (double)n;
    printf("AdamW %.1f GB/s, moving the same bytes %.1f GB/s at best; in turns, median of %d: %.2f "
           "of its rate; norm %.2f ns an element (%.3f)\n",
           bytes / (double)best[1], bytes / (double)best[0], TURNS, shares[TURNS / 2],
           (double)best[2] / (double)n, norm);
    free(p);
    free(g);
    free(m);
    free(v);
}

int main(int argc, char **argv)
{
    for (int i = 0; argc > 2 && i < WEFT_DTYPE_COUNT; i++) {
        if (strcmp(weft_dtype_name(i), argv[2]) == 0) dtype = i;
    }
    if (argc > 2 && strcmp(weft_dtype_name(dtype), argv[2]) != 0) fail("f32, bf16 or f16");
    const struct weft_nn_options options = {
        .threads = 1, .compute = dtype, .gemm = argc > 1 ? argv[1] : "auto"};
    struct weft_nn *nn = NULL;
    struct weft_error err = {0};
    const int64_t start = weft_clock_now_ns();
    if (weft_nn_open("cpu", &options, &nn, &err) != WEFT_OK) fail(err.text);
    printf("%s, opened in %.0f ms\n", weft_nn_describe(nn),
           1e-6 * (double)(weft_clock_now_ns() - start));
    const char *only = argc > 3 ? argv[3] : NULL;
    if (only && strcmp(only, "attention") != 0) fail("the third word may be \"attention\"");
    if (!only) training_step(nn);
    shared_attention(nn);
    if (!only) measure_optimizer();
    weft_nn_close(nn);
    return 0;
}
