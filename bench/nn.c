/* Rates of the CPU layers on one thread: GEMM by shape, a training step of a GPT with 10 million
 * parameters as a share of the best GEMM rate of the same run, AdamW beside a loop that only moves
 * the same bytes, and the norm.
 *
 *     build/bench/nn [LIBRARY [f32|bf16|f16]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "runtime/nn/backend.h"
#include "runtime/nn/kernels.h"
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
    REPEATS = 5
};

static void fail(const char *text)
{
    fprintf(stderr, "bench/nn: %s\n", text);
    exit(1);
}

static float *numbers(int64_t n, float scale)
{
    float *x = malloc((size_t)n * sizeof(*x));
    if (!x) fail("no memory");
    uint32_t state = 12345;
    for (int64_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = scale * ((float)(state >> 8) / (float)(1 << 23) - 1);
    }
    return x;
}

/* The same in the dtype that everything here computes in. */
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

static double gemm_rate(struct weft_nn *nn, bool ta, bool tb, int64_t m, int64_t n, int64_t k)
{
    struct weft_error err = {0};
    void *a = elements(m * k, 1), *b = elements(k * n, 1), *c = elements(m * n, 1);
    struct weft_product product = weft_product_dense(ta, tb, m, n, k, dtype);
    product.a = a;
    product.b = b;
    product.c = c;
    int64_t best_ns = INT64_MAX;
    for (int i = 0; i < REPEATS; i++) {
        const int64_t start = weft_clock_now_ns();
        if (nn->backend->gemm(nn, &product, &err) != WEFT_OK) fail(err.text);
        const int64_t ns = weft_clock_now_ns() - start;
        if (ns < best_ns) best_ns = ns;
    }
    free(a);
    free(b);
    free(c);
    const double rate = 2.0 * (double)m * (double)n * (double)k / (double)best_ns;
    printf("  %c%c %5lld x %5lld x %5lld  %6.1f GFLOP/s\n", ta ? 'T' : 'N', tb ? 'T' : 'N',
           (long long)m, (long long)n, (long long)k, rate);
    return rate;
}

/* Forward, by input, by weight of every map in the model; and the square ones. */
static double best_gemm_rate(struct weft_nn *nn)
{
    static const int64_t maps[][2] = {
        {3 * HIDDEN, HIDDEN}, {HIDDEN, HIDDEN}, {FFN, HIDDEN}, {HIDDEN, FFN}, {VOCAB, HIDDEN}};
    double best = 0;
    for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++) {
        const int64_t outputs = maps[i][0], inputs = maps[i][1];
        const double rates[3] = {gemm_rate(nn, false, true, ROWS, outputs, inputs),
                                 gemm_rate(nn, false, false, ROWS, inputs, outputs),
                                 gemm_rate(nn, true, false, outputs, inputs, ROWS)};
        for (int j = 0; j < 3; j++) {
            if (rates[j] > best) best = rates[j];
        }
    }
    for (int64_t size = 1024; size <= 2048; size += 512) {
        const double rate = gemm_rate(nn, false, false, size, size, size);
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

static void layer_init(struct bench_layer *l, enum weft_layer_type type, const char *name)
{
    const int64_t h = HIDDEN, f = FFN,
                  block[12] = {h, h, 3 * h * h, 3 * h, h * h, h, h, h, f * h, f, h * f, h};
    const bool head = type == WEFT_LAYER_LM_HEAD, embedding = type == WEFT_LAYER_EMBEDDING;
    *l = (struct bench_layer){.forward_ns = INT64_MAX, .backward_ns = INT64_MAX};
    l->layer = (struct weft_layer){.name = name,
                                   .type = type,
                                   .tie = -1,
                                   .vocab = VOCAB,
                                   .positions = embedding ? SEQ_LEN : 0,
                                   .hidden = h,
                                   .outputs = head ? VOCAB : h,
                                   .heads = HEADS,
                                   .kv_heads = HEADS,
                                   .ffn = f};
    if (type == WEFT_LAYER_TRANSFORMER_BLOCK) memcpy(l->elements, block, sizeof(block));
    if (type == WEFT_LAYER_LAYER_NORM) l->elements[0] = l->elements[1] = h;
    if (head || embedding) l->elements[0] = VOCAB * h;
    if (embedding) l->elements[1] = SEQ_LEN * h;
    for (int i = 0; i < WEFT_LAYER_TENSORS; i++) {
        if (l->elements[i] == 0) continue;
        l->call.tensors[i] = elements(l->elements[i], 0.04f);
        l->call.gradients[i] = numbers(l->elements[i], 0);
    }
}

/* One layer after the other, each with buffers of its own, as the executor lays them out. */
static void chain(struct bench_layer layers[N_LAYERS], int32_t *tokens, int32_t *targets,
                  double *loss)
{
    const struct weft_batch batch = {SAMPLES, SEQ_LEN, dtype};
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
    const enum weft_status status = forward ? nn->backend->forward(nn, &l->call, &err)
                                            : nn->backend->backward(nn, &l->call, &err);
    const int64_t ns = weft_clock_now_ns() - start;
    if (status != WEFT_OK) fail(err.text);
    int64_t *best = forward ? &l->forward_ns : &l->backward_ns;
    if (ns < *best) *best = ns;
}

static void training_step(struct weft_nn *nn, double gemm_flops_per_ns)
{
    static struct bench_layer layers[N_LAYERS];
    static int32_t tokens[ROWS], targets[ROWS];
    double loss = 0;
    for (int i = 0; i < ROWS; i++) {
        tokens[i] = i * 31 % VOCAB;
        targets[i] = i * 17 % VOCAB;
    }
    layer_init(&layers[0], WEFT_LAYER_EMBEDDING, "wte");
    for (int i = 1; i <= BLOCKS; i++) {
        layer_init(&layers[i], WEFT_LAYER_TRANSFORMER_BLOCK, "h");
    }
    layer_init(&layers[N_LAYERS - 2], WEFT_LAYER_LAYER_NORM, "ln_f");
    layer_init(&layers[N_LAYERS - 1], WEFT_LAYER_LM_HEAD, "lm_head");
    chain(layers, tokens, targets, &loss);

    int64_t best_ns = INT64_MAX;
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        const int64_t start = weft_clock_now_ns();
        for (int i = 0; i < N_LAYERS; i++) {
            run(nn, &layers[i], true);
        }
        for (int i = N_LAYERS - 1; i >= 0; i--) {
            run(nn, &layers[i], false);
        }
        const int64_t ns = weft_clock_now_ns() - start;
        if (ns < best_ns) best_ns = ns;
    }
    const double weights = BLOCKS * (4.0 * HIDDEN * HIDDEN + 2.0 * HIDDEN * FFN) + VOCAB * HIDDEN;
    /* Half of the scores are forbidden, and not counted: 2 products forward, 4 backward. */
    const double attention = BLOCKS * 6.0 * ROWS * SEQ_LEN * HIDDEN;
    const double flops = 6 * weights * ROWS + attention;
    printf("forward and backward, %d layers: %.1f ms, %.1f GFLOP/s, %.1f %% of the GEMM rate "
           "(loss %.3f)\n",
           N_LAYERS, 1e-6 * (double)best_ns, flops / (double)best_ns,
           100 * flops / (double)best_ns / gemm_flops_per_ns, loss / ROWS);
    const double block_flops =
        2.0 * ROWS * (4.0 * HIDDEN * HIDDEN + 2.0 * HIDDEN * FFN) + 2.0 * ROWS * SEQ_LEN * HIDDEN;
    const struct bench_layer *block = &layers[BLOCKS];
    printf("  a block: forward %.2f ms (%.1f %%), backward %.2f ms (%.1f %%)\n",
           1e-6 * (double)block->forward_ns,
           100 * block_flops / (double)block->forward_ns / gemm_flops_per_ns,
           1e-6 * (double)block->backward_ns,
           200 * block_flops / (double)block->backward_ns / gemm_flops_per_ns);
    for (int i = 0; i < N_LAYERS; i += i ? BLOCKS : 1) {
        printf("  %-8s forward %.3f ms, backward %.3f ms\n", layers[i].layer.name,
               1e-6 * (double)layers[i].forward_ns, 1e-6 * (double)layers[i].backward_ns);
    }
}

/* What AdamW's memory traffic costs without its arithmetic: 4 streams read, 3 written. */
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

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void optimizer(void)
{
    enum { ROUNDS = 31 };
    const int64_t n = 10 << 20;
    float *p = numbers(n, 1), *g = numbers(n, 1), *m = numbers(n, 0), *v = numbers(n, 0);
    struct weft_adamw adamw = {.lr = 1e-3f, .eps = 1e-8f, .decay = 0.1f, .clip = 1};
    weft_adamw_at(&adamw, 0.9, 0.95, 10);
    int64_t best[3] = {INT64_MAX, INT64_MAX, INT64_MAX};
    double shares[ROUNDS];
    uint64_t bins[WEFT_NORM_WORDS] = {0};
    for (int i = 0; i < ROUNDS; i++) {
        int64_t at[4] = {weft_clock_now_ns()};
        move(p, g, m, v, n);
        at[1] = weft_clock_now_ns();
        weft_kernels_best()->adamw(&adamw, n, p, g, m, v);
        at[2] = weft_clock_now_ns();
        weft_norm_add(bins, g, n);
        at[3] = weft_clock_now_ns();
        for (int j = 0; j < 3; j++) {
            if (at[j + 1] - at[j] < best[j]) best[j] = at[j + 1] - at[j];
        }
        shares[i] = (double)(at[1] - at[0]) / (double)(at[2] - at[1]);
    }
    qsort(shares, ROUNDS, sizeof(shares[0]), by_size);
    int finite = 0;
    const double norm = weft_norm_result(bins, &finite);
    const double bytes = 7.0 * sizeof(float) * (double)n;
    printf("AdamW %.1f GB/s, moving the same bytes %.1f GB/s at best; in turns, median of %d: %.2f "
           "of its rate; norm %.2f ns an element (%.3f)\n",
           bytes / (double)best[1], bytes / (double)best[0], ROUNDS, shares[ROUNDS / 2],
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
    const double best = best_gemm_rate(nn);
    training_step(nn, best);
    optimizer();
    weft_nn_close(nn);
    return 0;
}
