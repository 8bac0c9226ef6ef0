/* SPDX-License-Identifier: Apache-2.0 */
/* Checks and times a GPT's products with the cuBLASLt algorithms that rank 0 of a run would choose.
 * Each product is compared with fp64 at its full size, repeated, and timed with its lower bound and
 * Weft's own tiles. Prints one line of JSON per product.
 *
 *     gpu-products [--small] [f32|bf16|f16]...
 *
 * The layers are those of GPT-2 124M with a sequence of 1,024 tokens, or of width 48 with --small.
 * A second head has the odd vocabulary of GPT-2's tokens, 50,257, instead of 50,304.
 * Exit code 70: a number is wrong or a repetition has other bits. Exit code 1: there is no GPU or
 * no library. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "bench/gpu/timing.h"
#include "layers/shared/block.h"
#include "runtime/device/cuda/gpu.h"
#include "runtime/nn/cuda/choices/multiply.h"
#include "runtime/nn/cuda/choices/proof.h"
#include "spec/kind.h"

extern const struct weft_nn_backend weft_nn_backend_cuda;

enum { WRONG = 70, ENVIRONMENT = 1, ROUNDS = 20, REPEATS = 10, HASH_WORDS = 2 };

struct products {
    struct timing timing;
    struct weft_nn_cuda *cuda;
    int wrong;
};

struct operands {
    struct weft_cuda_request asked;
    void *all[7];
    int64_t c_bytes;
    const struct weft_nn_cuda *cuda;
    const struct weft_cuda_choice *choice;
};

static void *operand(struct products *p, struct operands *o, int i, int64_t elements,
                     enum weft_dtype dtype)
{
    o->all[i] = timing_allocate(&p->timing, elements * weft_dtype_bytes(dtype));
    return o->all[i];
}

static void give_operands(struct products *p, const struct weft_cuda_choice *choice,
                          struct operands *o)
{
    const struct weft_cuda_key *key = &choice->key;
    const enum weft_dtype c = key->c_dtype;
    *o = (struct operands){.asked = weft_cuda_request_of(key), .cuda = p->cuda, .choice = choice};
    struct weft_product *product = &o->asked.product;
    struct weft_product_finish *f = &product->finish;
    o->c_bytes = key->m * product->c_stride * weft_dtype_bytes(c);
    product->a =
        operand(p, o, 0, (key->transpose_a ? key->k : key->m) * product->a_stride, key->dtype);
    product->b = operand(p, o, 1, key->k * key->n, key->dtype);
    product->c = operand(p, o, 2, key->m * product->c_stride, c);
    if (f->bias != NULL) f->bias = operand(p, o, 3, key->n, c);
    if (f->residual != NULL) f->residual = operand(p, o, 4, key->m * key->n, c);
    if (f->gelu_input != NULL) f->gelu_input = operand(p, o, 4, key->m * key->n, c);
    if (f->gelu != NULL) f->gelu = operand(p, o, 5, key->m * key->n, c);
    if (o->asked.times != NULL) o->asked.times = operand(p, o, 6, 1, WEFT_F32);
    timing_must((int)weft_cuda_await(NULL, p->timing.stream), "fill operands");
}

static void free_operands(struct operands *o)
{
    for (size_t i = 0; i < sizeof o->all / sizeof *o->all; i++) {
        if (o->all[i] != NULL) cudaFree(o->all[i]);
    }
}

static int run_chosen(void *context, cudaStream_t on)
{
    const struct operands *o = context;
    return weft_cuda_run_choice(o->cuda, o->choice, &o->asked, on);
}

static int run_own(void *context, cudaStream_t on)
{
    const struct operands *o = context;
    return weft_cuda_product(&o->asked.product, NULL, o->asked.times, on);
}

/* True if all runs have the same hash. The hash reads whole fp32 words, so the last two bytes may
 * stay unread. */
static bool repeats(struct products *p, struct operands *o)
{
    uint64_t *sums = NULL;
    bool same = true;
    timing_must((int)cudaHostAlloc((void **)&sums, HASH_WORDS * sizeof *sums,
                                   cudaHostAllocMapped | cudaHostAllocPortable),
                "take pinned memory");
    uint64_t first[HASH_WORDS] = {0};
    for (int i = 0; i < REPEATS; i++) {
        memset(sums, 0, HASH_WORDS * sizeof *sums);
        timing_must(run_chosen(o, p->timing.stream), "repeat a product");
        timing_must(weft_cuda_hash_add(sums, 1, 0, o->asked.product.c,
                                       o->c_bytes / (int64_t)sizeof(float), p->timing.stream),
                    "hash a product");
        timing_must((int)weft_cuda_await(NULL, p->timing.stream), "await a product");
        if (i == 0) memcpy(first, sums, sizeof first);
        same = same && memcmp(first, sums, sizeof first) == 0;
    }
    cudaFreeHost(sums);
    return same;
}

/* Least bytes that a product moves: each operand once. */
static double bytes_of(const struct weft_cuda_key *key)
{
    const double mn = (double)key->m * (double)key->n;
    const bool adds = (key->finish & (WEFT_CUDA_RESIDUAL | WEFT_CUDA_SLOPE)) != 0,
               tells = (key->finish & WEFT_CUDA_GELU) != 0;
    return ((double)key->m + (double)key->n) * (double)key->k *
               (double)weft_dtype_bytes(key->dtype) +
           mn * (1 + adds + tells) * (double)weft_dtype_bytes(key->c_dtype);
}

static void tell_algorithm(const struct products *p, const struct weft_cuda_choice *choice)
{
    static const char *const ways[WEFT_CUDA_WAY_COUNT] = {"library", "both", "own"};
    struct weft_cuda_algorithm_facts f;
    printf(", \"way\": \"%s\"", ways[choice->way]);
    if (choice->way == WEFT_CUDA_BY_OWN) return;
    struct weft_cuda_key key = choice->key;
    if (choice->way == WEFT_CUDA_BY_BOTH)
        key.finish &= ~(unsigned)(WEFT_CUDA_GELU | WEFT_CUDA_SLOPE);
    const struct weft_cuda_request asked = weft_cuda_request_of(&key);
    p->cuda->ops->facts(p->cuda->library, &asked, &choice->algorithm, &f);
    printf(", \"algorithm\": %d, \"tile\": %d, \"stages\": %d, \"parts of k\": %d, "
           "\"reduction\": \"%s\", \"workspace bytes\": %" PRId64,
           f.id, f.tile, f.stages, f.parts, f.scheme, f.workspace_bytes);
}

static void tell_times(struct products *p, const struct weft_cuda_choice *choice)
{
    struct operands o;
    struct timing_result chosen, own;
    const struct weft_cuda_key *key = &choice->key;
    const double flops = 2 * (double)key->m * (double)key->n * (double)key->k;
    give_operands(p, choice, &o);
    const bool same = repeats(p, &o);
    timing_must(timing_run(&p->timing, run_chosen, &o, &chosen), "time a product");
    timing_must(timing_run(&p->timing, run_own, &o, &own), "time a product of Weft's own");
    printf(", \"repeats\": %s, \"us\": %.2f, \"best us\": %.2f, \"bound us\": %.3f, "
           "\"own us\": %.2f, \"TFLOP/s\": %.3f}\n",
           same ? "true" : "false", chosen.median_us, chosen.best_us,
           timing_bound_us(&p->timing, bytes_of(key), flops, key->dtype), own.median_us,
           flops / chosen.median_us / 1e6);
    if (!same) fprintf(stderr, "a product has other bits when it is repeated\n");
    p->wrong += !same;
    free_operands(&o);
}

static void try_product(struct products *p, const struct weft_cuda_choice *choice)
{
    struct weft_text key;
    struct weft_error err = {0};
    double worst = 0;
    weft_text_init(&key);
    weft_cuda_key_show(&choice->key, &key);
    const enum weft_status status = weft_cuda_prove_whole(p->cuda, choice, &worst, &err);
    if (status != WEFT_OK) fprintf(stderr, "%s\n", err.text);
    p->wrong += status != WEFT_OK;
    printf("{\"product\": \"%s\", \"right\": %s, \"worst error / bound\": %.4g",
           weft_text_chars(&key), status == WEFT_OK ? "true" : "false", worst);
    tell_algorithm(p, choice);
    tell_times(p, choice);
    fflush(stdout);
    weft_text_finish(&key);
}

static void fail(const struct weft_error *err)
{
    fprintf(stderr, "%s\n", err->text);
    exit(ENVIRONMENT);
}

/* Chooses as rank 0 and binds the choice, as a run does before its first step. */
static void choose(struct weft_nn *nn, const struct weft_layer *layers, int32_t n_layers,
                   const struct weft_batch *batch)
{
    struct weft_text choices, warnings;
    struct weft_error err = {0};
    weft_text_init(&choices);
    weft_text_init(&warnings);
    if (weft_nn_choose(nn, layers, n_layers, batch, NULL, &choices, &warnings, &err) != WEFT_OK ||
        weft_nn_bind(nn, layers, n_layers, batch, weft_text_chars(&choices), &err) != WEFT_OK)
        fail(&err);
    fputs(weft_text_chars(&warnings), stderr);
    weft_text_finish(&choices);
    weft_text_finish(&warnings);
}

static void try_dtype(struct products *p, enum weft_dtype dtype, bool small)
{
    const int64_t width = small ? 48 : 768, vocab = small ? 120 : 50304, odd = small ? 61 : 50257;
    struct weft_layer layers[] = {
        {.name = "h", .kind = &weft_kind_transformer_block, .hidden = width, .outputs = width},
        {.name = "head", .kind = &weft_kind_lm_head, .hidden = width, .vocab = vocab},
        {.name = "odd", .kind = &weft_kind_lm_head, .hidden = width, .vocab = odd}};
    layers[0].keys[WEFT_BLOCK_HEADS].integer = layers[0].keys[WEFT_BLOCK_KV_HEADS].integer =
        small ? 3 : 12;
    layers[0].keys[WEFT_BLOCK_FFN].integer = 4 * width;
    const struct weft_batch batch = {.samples = 1, .seq_len = small ? 24 : 1024, .compute = dtype};
    const struct weft_nn_options options = {.threads = 1, .compute = dtype, .gemm = "cublaslt"};
    struct weft_nn *nn = NULL;
    struct weft_error err = {0};
    if (weft_nn_backend_cuda.open(&options, &nn, &err) != WEFT_OK) fail(&err);
    p->cuda = weft_nn_cuda_of(nn);
    printf("{\"library\": \"%s\", \"workspace bytes\": %" PRId64 "}\n",
           p->cuda->ops->title(p->cuda->library), p->cuda->ops->workspace_bytes(p->cuda->library));
    choose(nn, layers, sizeof layers / sizeof *layers, &batch);
    for (int32_t i = 0; i < p->cuda->n_choices; i++) {
        try_product(p, &p->cuda->choices[i]);
    }
    weft_nn_close(nn);
}

int main(int argc, char **argv)
{
    static const char *const names[WEFT_DTYPE_COUNT] = {
        [WEFT_F32] = "f32", [WEFT_BF16] = "bf16", [WEFT_F16] = "f16"};
    struct products p = {0};
    const bool small = argc > 1 && strcmp(argv[1], "--small") == 0;
    timing_open(&p.timing, small ? 3 : ROUNDS);
    for (int d = 0; d < WEFT_DTYPE_COUNT; d++) {
        bool asked = argc == 1 + small;
        for (int i = 1 + small; i < argc; i++) {
            asked = asked || strcmp(argv[i], names[d]) == 0;
        }
        if (asked) try_dtype(&p, (enum weft_dtype)d, small);
    }
    timing_close(&p.timing);
    return p.wrong > 0 ? WRONG : 0;
}
