/* SPDX-License-Identifier: Apache-2.0 */
/* Times kernels on the GPU's own memory, with their lower bounds. Prints one line of JSON per
 * kernel.
 *
 *     gpu-times [--small]
 *
 * Arrays have 64 Mi elements. Rows are those of GPT-2 124M with 16 sequences of 1,024 tokens. With
 * --small there are a few thousand. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "bench/gpu/attending.h"
#include "bench/gpu/timing.h"
#include "runtime/device/cuda/gpu.h"
#include "runtime/nn/cuda/kernels/layers.h"

enum { ROUNDS = 20, RANKS = 8, ARRAYS = 6 };

struct work {
    int64_t n, samples, seq_len, width, heads, vocab;
    int64_t rows;       /* of `width` elements */
    int64_t score_rows; /* of `vocab` elements */
    void *x[ARRAYS];    /* [n] fp32 each, or [2n] of 16 bits */
    void *small;        /* bins, sums, steps, flags; workspaces */
    struct weft_cuda_attention attention;
};

static int run_fill(void *context, cudaStream_t on)
{
    const struct work *w = context;
    return weft_cuda_fill(w->x[0], 0, 4 * w->n, on);
}

static int run_copy(void *context, cudaStream_t on)
{
    const struct work *w = context;
    return weft_cuda_copy(w->x[0], w->x[1], 4 * w->n, on);
}

static int run_widen(void *context, cudaStream_t on)
{
    const struct work *w = context;
    return weft_cuda_widen(WEFT_BF16, w->n, w->x[1], w->x[0], on);
}

static int run_narrow(void *context, cudaStream_t on)
{
    const struct work *w = context;
    return weft_cuda_narrow(WEFT_BF16, w->n, w->x[0], w->x[1], on);
}

static int run_look(void *context, cudaStream_t on)
{
    const struct work *w = context;
    return weft_cuda_look(WEFT_BF16, w->n, w->x[1], 1, w->small, on);
}

static struct weft_update update_of(const struct work *w)
{
    return (struct weft_update){.parameters = w->x[0],
                                .gradients = w->x[1],
                                .gradient_dtype = WEFT_BF16,
                                .moment1 = w->x[2],
                                .moment2 = w->x[3],
                                .copy = w->x[4],
                                .copy_dtype = WEFT_BF16,
                                .n = w->n};
}

static int run_adamw(void *context, cudaStream_t on)
{
    const struct work *w = context;
    const struct weft_update update = update_of(w);
    return weft_cuda_update(WEFT_ADAMW, w->small, 0, &update, on);
}

static int run_sgd(void *context, cudaStream_t on)
{
    const struct work *w = context;
    struct weft_update update = update_of(w);
    update.moment2 = NULL;
    return weft_cuda_update(WEFT_SGD, w->small, 0, &update, on);
}

static int run_norm(void *context, cudaStream_t on)
{
    const struct work *w = context;
    return weft_cuda_norm_add(w->small, WEFT_F32, w->x[0], w->n, on);
}

static int run_norm_half(void *context, cudaStream_t on)
{
    const struct work *w = context;
    return weft_cuda_norm_add(w->small, WEFT_BF16, w->x[1], w->n, on);
}

static int run_hash(void *context, cudaStream_t on)
{
    const struct work *w = context;
    return weft_cuda_hash_add(w->small, 1, 0, w->x[0], w->n, on);
}

static int run_sum_ranks(void *context, cudaStream_t on)
{
    const struct work *w = context;
    const int64_t n = w->n / RANKS;
    const struct weft_cuda_sum sum = {.dtype = WEFT_BF16,
                                      .ranks = RANKS,
                                      .own = -1,
                                      .n = n,
                                      .stride_bytes = 2 * n,
                                      .from = w->x[0],
                                      .to_dtype = WEFT_BF16,
                                      .to = w->x[1]};
    return weft_cuda_sum_ranks(&sum, on);
}

static int run_layer_norm(void *context, cudaStream_t on)
{
    const struct work *w = context;
    return weft_cuda_layer_norm(WEFT_BF16, w->rows, w->width, 1e-5f, w->x[0], w->x[1], w->x[1],
                                w->x[2], w->x[3], w->x[4], on);
}

static int run_layer_norm_backward(void *context, cudaStream_t on)
{
    const struct work *w = context;
    const struct weft_cuda_norm norm = {.rows = w->rows,
                                        .width = w->width,
                                        .x = w->x[0],
                                        .weight = w->x[1],
                                        .mean = w->x[3],
                                        .rstd = w->x[4],
                                        .dy = w->x[2],
                                        .residual = w->x[1]};
    return weft_cuda_layer_norm_backward(WEFT_BF16, &norm, w->x[5], w->x[3], w->small, on);
}

static int run_gelu(void *context, cudaStream_t on)
{
    const struct work *w = context;
    return weft_cuda_gelu(WEFT_BF16, w->n, w->x[0], w->x[1], on);
}

static int run_gelu_backward(void *context, cudaStream_t on)
{
    const struct work *w = context;
    return weft_cuda_gelu_backward(WEFT_BF16, w->n, w->x[0], w->x[1], w->x[2], on);
}

static int run_column_sums(void *context, cudaStream_t on)
{
    const struct work *w = context;
    return weft_cuda_column_sums(WEFT_BF16, w->rows, w->width, w->width, w->x[0], w->x[1], w->small,
                                 on);
}

static int run_cross_entropy(void *context, cudaStream_t on)
{
    const struct work *w = context;
    return weft_cuda_cross_entropy(WEFT_BF16, w->score_rows, w->vocab, w->vocab, w->x[1], w->x[0],
                                   w->x[2], w->small, on);
}

static int run_attention(void *context, cudaStream_t on)
{
    const struct work *w = context;
    return weft_cuda_attend(&w->attention, w->x[1], w->x[2], on);
}

static int run_attention_backward(void *context, cudaStream_t on)
{
    const struct work *w = context;
    return weft_cuda_attend_backward(&w->attention, w->x[1], w->x[2], w->x[3], w->x[4], w->x[5],
                                     on);
}

/* The unit of a kernel's bytes and flops. */
enum counted { BY_ELEMENT, BY_ROWS, BY_SCORES, BY_ATTENTION };
/* Numbers in x[0], and in x[1] as bf16, if a kernel's time depends on them: normal ones, some with
 * random factors between 2^-40 and 1, and none finite. */
enum numbers { ANY_NUMBERS, NORMAL, SPREAD, NOT_FINITE };
static const struct kernel {
    const char *name;
    timing_fn *run;
    enum counted counted;
    double bytes, flops;
    enum numbers numbers;
} kernels[] = {
    {"fill", run_fill, BY_ELEMENT, 4, 0, ANY_NUMBERS},
    {"copy", run_copy, BY_ELEMENT, 8, 0, ANY_NUMBERS},
    {"widen bf16", run_widen, BY_ELEMENT, 6, 0, ANY_NUMBERS},
    {"narrow bf16", run_narrow, BY_ELEMENT, 6, 0, ANY_NUMBERS},
    {"look bf16", run_look, BY_ELEMENT, 2, 0, ANY_NUMBERS},
    {"adamw, bf16 with master", run_adamw, BY_ELEMENT, 28, 0, ANY_NUMBERS},
    {"sgd, bf16 with master", run_sgd, BY_ELEMENT, 20, 0, ANY_NUMBERS},
    {"norm", run_norm, BY_ELEMENT, 4, 0, NORMAL},
    {"norm bf16", run_norm_half, BY_ELEMENT, 2, 0, NORMAL},
    {"norm of a wide range", run_norm, BY_ELEMENT, 4, 0, SPREAD},
    {"norm of NaN", run_norm, BY_ELEMENT, 4, 0, NOT_FINITE},
    {"hash", run_hash, BY_ELEMENT, 4, 0, ANY_NUMBERS},
    {"sum over 8 ranks, bf16", run_sum_ranks, BY_ELEMENT, 2 + 2.0 / RANKS, 0, ANY_NUMBERS},
    {"gelu bf16", run_gelu, BY_ELEMENT, 4, 0, ANY_NUMBERS},
    {"gelu backward bf16", run_gelu_backward, BY_ELEMENT, 6, 0, ANY_NUMBERS},
    {"layer norm bf16", run_layer_norm, BY_ROWS, 4, 0, ANY_NUMBERS},
    {"layer norm backward bf16", run_layer_norm_backward, BY_ROWS, 8, 0, ANY_NUMBERS},
    {"column sums bf16", run_column_sums, BY_ROWS, 2, 0, ANY_NUMBERS},
    {"cross-entropy bf16", run_cross_entropy, BY_SCORES, 4, 0, ANY_NUMBERS},
    /* Moves qkv and the output. Computes the causal half of two products, or of five in the
     * backward pass. */
    {"attention bf16", run_attention, BY_ATTENTION, 8, 2, ANY_NUMBERS},
    {"attention backward bf16", run_attention_backward, BY_ATTENTION, 16, 5, ANY_NUMBERS},
};

static double count_of(const struct work *w, enum counted counted)
{
    switch (counted) {
    case BY_ELEMENT:
        return (double)w->n;
    case BY_ROWS:
    case BY_ATTENTION:
        return (double)(w->rows * w->width);
    case BY_SCORES:
        break;
    }
    return (double)(w->score_rows * w->vocab);
}

static void prepare(struct timing *t, struct work *w, bool small)
{
    enum { SMALL_BYTES = 64 << 20 };
    *w = small ? (struct work){8192, 1, 32, 48, 3, 64, .score_rows = 32}
               : (struct work){1 << 26, 16, 1024, 768, 12, 50304, .score_rows = 2048};
    w->rows = w->samples * w->seq_len;
    for (int i = 0; i < ARRAYS; i++) {
        w->x[i] = timing_allocate(t, 4 * w->n);
    }
    /* Zeros are valid as targets and as steps. */
    w->small = timing_allocate(t, SMALL_BYTES);
    timing_must(weft_cuda_fill(w->small, 0, SMALL_BYTES, t->stream), "fill memory");
    w->attention = (struct weft_cuda_attention){WEFT_BF16, w->samples, w->seq_len,
                                                w->heads,  w->width,   w->x[0]};
}

static float number_of(enum numbers kind, uint64_t i)
{
    const double normal = weft_rng_normal(1, 0, i);
    switch (kind) {
    case ANY_NUMBERS:
    case NORMAL:
        break;
    case SPREAD:
        return (float)(normal * exp2(-40 * weft_rng_uniform(1, 1, i)));
    case NOT_FINITE:
        return NAN;
    }
    return (float)normal;
}

/* Draws some numbers and repeats them. */
static void draw(struct timing *t, const struct work *w, enum numbers kind)
{
    enum { MOST = 1 << 18 };
    const int64_t n = w->n < MOST ? w->n : MOST;
    float *host = NULL;
    timing_must((int)cudaHostAlloc((void **)&host, (size_t)n * sizeof *host, 0), "pin memory");
    for (int64_t i = 0; i < n; i++) {
        host[i] = number_of(kind, (uint64_t)i);
    }
    timing_must((int)cudaMemcpyAsync(w->x[0], host, (size_t)n * sizeof *host,
                                     cudaMemcpyHostToDevice, t->stream),
                "copy numbers");
    for (int64_t at = n; at < w->n; at *= 2) {
        timing_must(weft_cuda_copy((float *)w->x[0] + at, w->x[0],
                                   4 * (w->n - at < at ? w->n - at : at), t->stream),
                    "copy numbers");
    }
    timing_must(weft_cuda_narrow(WEFT_BF16, w->n, w->x[0], w->x[1], t->stream), "round numbers");
    timing_must((int)weft_cuda_await(NULL, t->stream), "await the GPU");
    cudaFreeHost(host);
}

static void tell(struct timing *t, const struct work *w, const struct kernel *kernel)
{
    struct timing_result got;
    const double n = count_of(w, kernel->counted);
    /* Flops per element of a row of scores, half of which is masked. */
    const double flops = kernel->flops * n * (double)w->seq_len;
    /* Targets must be valid class numbers. */
    timing_must(weft_cuda_fill(w->x[1], 0, 4 * w->n, t->stream), "fill memory");
    timing_must(weft_cuda_fill(w->x[0], TIMING_SMALL, 4 * w->n, t->stream), "fill memory");
    if (kernel->numbers != ANY_NUMBERS) draw(t, w, kernel->numbers);
    timing_must(timing_run(t, kernel->run, (void *)(uintptr_t)w, &got), kernel->name);
    const double bound = timing_bound_us(t, kernel->bytes * n, flops, WEFT_BF16);
    printf("{\"kernel\": \"%s\", \"us\": %.2f, \"best us\": %.2f, \"bound us\": %.3f, "
           "\"GB/s\": %.1f}\n",
           kernel->name, got.median_us, got.best_us, bound,
           kernel->bytes * n / got.median_us / 1e3);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    struct timing timing;
    struct work work;
    const bool small = argc > 1 && strcmp(argv[1], "--small") == 0;
    timing_open(&timing, small ? 2 : ROUNDS);
    prepare(&timing, &work, small);
    printf("{\"gpu\": \"%s\", \"memory GB/s\": %.0f, \"bf16 TFLOP/s\": %.1f}\n", timing.name,
           timing.bytes_per_us / 1e3, timing.flops_per_us[WEFT_BF16] / 1e6);
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        tell(&timing, &work, &kernels[i]);
    }
    tell_attending(&timing, &work.attention);
    for (int i = 0; i < ARRAYS; i++) {
        cudaFree(work.x[i]);
    }
    cudaFree(work.small);
    timing_close(&timing);
    return 0;
}
