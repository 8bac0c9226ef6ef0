/* SPDX-License-Identifier: Apache-2.0 */
/* Choice, proof and binding of attention, with a library that computes on the host and can have one
 * mistake. */
#include "runtime/nn/cuda/choices/attention_choices.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers.h"
#include "base/text.h"
#include "layers/shared/block.h"
#include "runtime/nn/cuda/choices/trial.h"
#include "runtime/nn/cuda/kernels/initial.h"
#include "spec/kind.h"
#include "tests/emulation/runs/machine.h"

enum mistake {
    NONE,
    NO_MASK,
    NO_SCALE,
    ONE_OUTPUT,  /* the last one is off */
    ONE_KEY,     /* the last gradient of the first key is off */
    OTHER_HEADS, /* heads of the first sample are exchanged */
    UNWRITTEN,   /* gradients of values */
    UNSTEADY,    /* a second backward differs in a last bit */
    FAILS,       /* with an error code */
    CANNOT,      /* prepares nothing */
    MISTAKES
};

struct weft_cuda_attending {
    const char *title, *engine;
    enum mistake mistake;
    double us; /* of a forward or backward */
    double clock;
};
static struct weft_cuda_attending made;
static bool absent;
static int forwards, backwards, runs;

struct weft_cuda_attending_plan {
    struct weft_cuda_attending *library;
    struct weft_cuda_attention shape;
    struct weft_cuda_attending_facts facts;
};

static enum weft_status open_made(struct weft_cuda_attending **out, struct weft_error *err)
{
    if (absent) return weft_fail(err, WEFT_E_ENVIRONMENT, "made cannot be opened");
    *out = malloc(sizeof **out);
    **out = made;
    return WEFT_OK;
}

static void close_made(struct weft_cuda_attending *library)
{
    free(library);
}

static const char *title_of(const struct weft_cuda_attending *library)
{
    return library->title;
}

static enum weft_status prepare_made(struct weft_cuda_attending *library,
                                     const struct weft_cuda_attention *shape, bool ordered,
                                     struct weft_cuda_attending_plan **out, struct weft_error *err)
{
    cr_expect(ordered);
    if (library->mistake == CANNOT) return weft_fail(err, WEFT_E_ENVIRONMENT, "no such head");
    *out = calloc(1, sizeof **out);
    (*out)->library = library;
    (*out)->shape = *shape;
    (*out)->facts = (struct weft_cuda_attending_facts){
        .backward = "engine_1", .forward_bytes = 100, .backward_bytes = 1 << 20};
    snprintf((*out)->facts.forward, sizeof(*out)->facts.forward, "%s", library->engine);
    return WEFT_OK;
}

static void release_made(struct weft_cuda_attending_plan *plan)
{
    free(plan);
}

static const struct weft_cuda_attending_facts *facts_of(const struct weft_cuda_attending_plan *plan)
{
    return &plan->facts;
}

static double read_at(const void *from, int64_t at)
{
    return (double)weft_bf16_widen(((const uint16_t *)from)[at]);
}

static void write_at(void *to, int64_t at, double x)
{
    ((uint16_t *)to)[at] = weft_bf16_narrow((float)x);
}

/* One head of one sample. */
struct head {
    const struct weft_cuda_attending_plan *plan;
    int64_t sample, n, size, of_qkv, of_output; /* elements before its first row */
};

static int64_t qkv_at(const struct head *h, int64_t row, int64_t part)
{
    return h->of_qkv + (row * 3 + part) * h->plan->shape.hidden;
}

static int64_t output_at(const struct head *h, int64_t row)
{
    return h->of_output + row * h->plan->shape.hidden;
}

static double dot_rows(const void *a, int64_t at, const void *b, int64_t bt, int64_t n)
{
    double sum = 0;
    for (int64_t l = 0; l < n; l++) {
        sum += read_at(a, at + l) * read_at(b, bt + l);
    }
    return sum;
}

/* Fills the probabilities of a row, and returns their number. */
static int64_t weigh_row(const struct head *h, const void *qkv, int64_t i, double *p)
{
    const enum mistake mistake = h->plan->library->mistake;
    const int64_t keys = mistake == NO_MASK ? h->n : i + 1;
    const double scale = mistake == NO_SCALE ? 1 : 1 / sqrt((double)h->size);
    double sum = 0;
    for (int64_t j = 0; j < keys; j++) {
        p[j] = exp(scale * dot_rows(qkv, qkv_at(h, i, 0), qkv, qkv_at(h, j, 1), h->size));
        sum += p[j];
    }
    for (int64_t j = 0; j < keys; j++) {
        p[j] /= sum;
    }
    return keys;
}

static void for_heads(const struct weft_cuda_attending_plan *plan,
                      void (*fn)(const struct head *h, void *context), void *context)
{
    const struct weft_cuda_attention *a = &plan->shape;
    for (int64_t s = 0; s < a->samples; s++) {
        for (int64_t i = 0; i < a->heads; i++) {
            const int64_t size = a->hidden / a->heads;
            const bool exchanged = plan->library->mistake == OTHER_HEADS && s == 0;
            const int64_t from = exchanged ? a->heads - 1 - i : i;
            const struct head h = {plan,
                                   s,
                                   a->seq_len,
                                   size,
                                   s * a->seq_len * 3 * a->hidden + from * size,
                                   s * a->seq_len * a->hidden + i * size};
            fn(&h, context);
        }
    }
}

struct forward {
    const void *qkv;
    void *output;
};

static void attend_head(const struct head *h, void *context)
{
    const struct forward *f = context;
    double *p = calloc((size_t)h->n, sizeof *p);
    for (int64_t i = 0; i < h->n; i++) {
        const int64_t keys = weigh_row(h, f->qkv, i, p);
        for (int64_t l = 0; l < h->size; l++) {
            double sum = 0;
            for (int64_t j = 0; j < keys; j++) {
                sum += p[j] * read_at(f->qkv, qkv_at(h, j, 2) + l);
            }
            write_at(f->output, output_at(h, i) + l, sum);
        }
    }
    free(p);
}

static int forward_made(struct weft_cuda_attending_plan *plan, const void *qkv, void *output,
                        float *statistics, void *workspace, struct CUstream_st *on)
{
    const struct weft_cuda_attention *a = &plan->shape;
    struct forward f = {qkv, output};
    (void)statistics, (void)on;
    plan->library->clock += plan->library->us;
    forwards++;
    if (plan->library->mistake == FAILS) return WEFT_CUDA_ATTENDING - 7;
    for_heads(plan, attend_head, &f);
    memset(workspace, 0xff, (size_t)plan->facts.forward_bytes);
    if (plan->library->mistake == ONE_OUTPUT)
        write_at(output, a->samples * a->seq_len * a->hidden - 1, 3);
    return 0;
}

struct backward {
    const void *qkv, *d_output;
    void *d_qkv;
};

static void attend_head_backward(const struct head *h, void *context)
{
    const struct backward *b = context;
    const int64_t n = h->n, size = h->size;
    const double scale = 1 / sqrt((double)size);
    double *p = calloc((size_t)(2 * n + 3 * n * size), sizeof *p), *d_p = p + n,
           *sums[3] = {d_p + n, d_p + n + n * size, d_p + n + 2 * n * size};
    for (int64_t i = 0; i < n; i++) {
        const int64_t keys = weigh_row(h, b->qkv, i, p);
        double mean = 0;
        for (int64_t j = 0; j < keys; j++) {
            d_p[j] = dot_rows(b->d_output, output_at(h, i), b->qkv, qkv_at(h, j, 2), size);
            mean += p[j] * d_p[j];
        }
        for (int64_t j = 0; j < keys; j++) {
            const double score = scale * p[j] * (d_p[j] - mean);
            for (int64_t l = 0; l < size; l++) {
                sums[0][i * size + l] += score * read_at(b->qkv, qkv_at(h, j, 1) + l);
                sums[1][j * size + l] += score * read_at(b->qkv, qkv_at(h, i, 0) + l);
                sums[2][j * size + l] += p[j] * read_at(b->d_output, output_at(h, i) + l);
            }
        }
    }
    const enum mistake mistake = h->plan->library->mistake;
    for (int64_t i = 0; i < n * size * (mistake == UNWRITTEN ? 2 : 3); i++) {
        const int64_t part = i / (n * size), at = i % (n * size);
        const bool off = mistake == ONE_KEY && part == 1 && at == size - 1;
        write_at(b->d_qkv, qkv_at(h, at / size, part) + at % size, sums[part][at] + (off ? 1 : 0));
    }
    free(p);
}

static int backward_made(struct weft_cuda_attending_plan *plan, const void *qkv, const void *output,
                         const float *statistics, const void *d_output, void *d_qkv,
                         void *workspace, struct CUstream_st *on)
{
    struct backward b = {qkv, d_output, d_qkv};
    (void)output, (void)statistics, (void)on;
    plan->library->clock += plan->library->us;
    backwards++;
    for_heads(plan, attend_head_backward, &b);
    memset(workspace, 0xff, (size_t)plan->facts.backward_bytes);
    if (plan->library->mistake == UNSTEADY) {
        uint16_t *last = (uint16_t *)d_qkv +
                         plan->shape.samples * plan->shape.seq_len * plan->shape.hidden * 3 - 1;
        *last ^= (uint16_t)(runs++ % 2);
    }
    return 0;
}

static struct CUstream_st *stream_of(const struct weft_cuda_attending *library)
{
    return (struct CUstream_st *)(uintptr_t)library;
}

/* Own kernels take 10 us, and the library what it says. */
static int begin_made(const struct weft_cuda_attending *library)
{
    ((struct weft_cuda_attending *)(uintptr_t)library)->clock = 0;
    return 0;
}

static int end_made(const struct weft_cuda_attending *library, double *us)
{
    *us = library->clock > 0 ? library->clock : 80;
    return 0;
}

static const char *explain_made(const struct weft_cuda_attending *library)
{
    (void)library;
    return "it fails";
}

static const struct weft_cuda_attending_ops ops = {
    .name = "cudnn",
    .open = open_made,
    .close = close_made,
    .title = title_of,
    .prepare = prepare_made,
    .release = release_made,
    .facts = facts_of,
    .forward = forward_made,
    .backward = backward_made,
    .stream = stream_of,
    .begin = begin_made,
    .end = end_made,
    .explain = explain_made,
};

static int allocate_host(int64_t bytes, void **out)
{
    *out = aligned_alloc(256, ((size_t)bytes + 255) / 256 * 256);
    return *out != NULL ? 0 : 2;
}

static const char *explain_code(int code)
{
    return code == 2 ? "out of memory" : "refused";
}

static void issue_now(struct weft_stream *stream, weft_cuda_work_fn *work, const void *argument,
                      size_t bytes)
{
    struct weft_error err = {0};
    (void)bytes;
    cr_assert_eq(work(stream, (struct CUstream_st *)stream, argument, &err), WEFT_OK, "%s",
                 err.text);
}

static const struct weft_cuda_machine machine = {.name = "made",
                                                 .issue = issue_now,
                                                 .allocate = allocate_host,
                                                 .release = free,
                                                 .share = allocate_host,
                                                 .unshare = free,
                                                 .explain = explain_code,
                                                 .attending = &ops};
static const struct weft_cuda_machine without = {.name = "made",
                                                 .allocate = allocate_host,
                                                 .release = free,
                                                 .share = allocate_host,
                                                 .unshare = free,
                                                 .explain = explain_code};
static const struct weft_nn_backend backend = {.name = "made", WEFT_NN_CUDA_FUNCTIONS};

static struct weft_layer layers[] = {
    {.name = "block", .kind = &weft_kind_transformer_block, .hidden = 32, .outputs = 32},
    {.name = "same", .kind = &weft_kind_transformer_block, .hidden = 32, .outputs = 32},
    {.name = "up", .kind = &weft_kind_linear, .hidden = 32, .outputs = 16},
};
enum { LAYERS = sizeof layers / sizeof *layers };
static const struct weft_batch batch = {.samples = 2, .seq_len = 40, .compute = WEFT_BF16};
static struct weft_error err;
static struct weft_text text, warnings;

static void set_layers(void)
{
    for (int l = 0; l < 2; l++) {
        layers[l].keys[WEFT_BLOCK_HEADS].integer = layers[l].keys[WEFT_BLOCK_KV_HEADS].integer = 2;
        layers[l].keys[WEFT_BLOCK_FFN].integer = 64;
    }
    absent = false;
    made = (struct weft_cuda_attending){"made 1", "engine_0", NONE, 1, 0};
}
TestSuite(attention_choices, .init = set_layers);

static enum weft_status open_way(const struct weft_cuda_machine *of, const char *gemm,
                                 const char *attention, struct weft_nn **out)
{
    const struct weft_nn_options options = {.threads = 1, .gemm = gemm, .attention = attention};
    err = (struct weft_error){0};
    emu_machine_begin();
    return weft_nn_cuda_open(&backend, of, &options, out, &err);
}

static struct weft_nn *opened_nn(const char *attention)
{
    struct weft_nn *nn = NULL;
    cr_assert_eq(open_way(&machine, "own", attention, &nn), WEFT_OK, "%s", err.text);
    return nn;
}

/* Chooses with an earlier text. Returns the chosen one, which lasts until the next call. */
static const char *chosen_text(struct weft_nn *nn, const char *earlier)
{
    char *before = earlier != NULL ? strdup(earlier) : NULL;
    weft_text_finish(&text);
    weft_text_finish(&warnings);
    weft_text_init(&text);
    weft_text_init(&warnings);
    err = (struct weft_error){0};
    cr_assert_eq(weft_nn_choose(nn, layers, LAYERS, &batch, before, &text, &warnings, &err),
                 WEFT_OK, "%s", err.text);
    free(before);
    return weft_text_chars(&text);
}

static bool warned_of(const char *of)
{
    return strstr(weft_text_chars(&warnings), of) != NULL;
}

static enum weft_status bind_text(struct weft_nn *nn, const char *choices)
{
    err = (struct weft_error){0};
    return weft_nn_bind(nn, layers, LAYERS, &batch, choices, &err);
}

static const char by_library[] = "attention made 1\nbf16 2 40 2 32 cudnn engine_0 engine_1\n";
static const char by_own[] = "attention made 1\nbf16 2 40 2 32 own - -\n";

Test(attention_choices, the_faster_is_chosen_and_bound_for_all)
{
    struct weft_nn *first = opened_nn(NULL), *second = opened_nn("auto");
    cr_assert_str_eq(chosen_text(first, NULL), by_library);
    cr_expect_str_eq(weft_text_chars(&warnings), "");
    cr_assert_eq(bind_text(second, by_library), WEFT_OK, "%s", err.text);
    cr_expect_str_eq(weft_nn_choices(second), by_library);
    cr_expect(strstr(weft_nn_describe(second), "; attention by made 1 (engine_0, engine_1)") !=
              NULL);
    weft_nn_close(first);
    weft_nn_close(second);
    made.us = 30;
    struct weft_nn *slow = opened_nn("auto"), *wanted = opened_nn("cudnn");
    cr_expect_str_eq(chosen_text(slow, NULL), by_own);
    cr_expect(strstr(weft_nn_describe(slow), "; attention too, or by made 1") != NULL);
    cr_assert_eq(bind_text(slow, by_own), WEFT_OK, "%s", err.text);
    cr_expect(strstr(weft_nn_describe(slow), "; attention too, not by made 1") != NULL);
    cr_expect_str_eq(chosen_text(wanted, NULL), by_library, "it was asked for");
    weft_nn_close(slow);
    weft_nn_close(wanted);
}

/* Blocks with random parameters: the library's plan runs once each way, and with own kernels no
 * result is far. Needs have its workspace. */
Test(attention_choices, a_block_attends_in_the_bound_way)
{
    enum { MOST = 1 << 17 };
    static uint16_t buffers[2][6][MOST];
    for (int way = 0; way < 2; way++) {
        struct weft_nn *nn = opened_nn(way == 0 ? "own" : "cudnn");
        uint16_t(*of)[MOST] = buffers[way];
        struct weft_nn_call call = {.layer = &layers[0], .batch = batch};
        for (int i = 0; i < 6; i++) {
            memset(of[i], 0, sizeof of[i]);
        }
        emu_machine_begin();
        cr_assert_eq(weft_cuda_uniform(1, WEFT_BF16, MOST / 2, of[0], NULL), 0);
        cr_assert_eq(weft_cuda_uniform(2, WEFT_BF16, MOST / 2, of[1], NULL), 0);
        for (int i = 0; i < 12; i++) {
            call.tensors[i] = of[0] + 4096 * i;
        }
        call.input = of[1];
        call.output = of[2];
        call.saved = of[3];
        call.temporary = of[4];
        call.output_gradient = of[1] + 8192;
        call.input_gradient = of[5];
        cr_assert_eq(bind_text(nn, chosen_text(nn, NULL)), WEFT_OK, "%s", err.text);
        cr_expect_eq(weft_nn_layer_needs(nn, &layers[0], &batch).backward_bytes >= 1 << 20,
                     way == 1);
        forwards = backwards = 0;
        weft_nn_forward(nn, NULL, &call);
        weft_nn_backward(nn, NULL, &call);
        cr_expect(forwards == way && backwards == way, "%d, %d", forwards, backwards);
        weft_nn_close(nn);
    }
    for (int i = 2; i < 6; i += 3) {
        double size = 0, apart = 0;
        for (int64_t j = 0; j < 80 * 32; j++) {
            size += fabs(read_at(buffers[0][i], j));
            apart += fabs(read_at(buffers[0][i], j) - read_at(buffers[1][i], j));
        }
        cr_expect(size > 0 && apart < 0.01 * size, "%d: %g of %g", i, apart, size);
    }
}

Test(attention_choices, of_an_earlier_run_go_on)
{
    struct weft_nn *nn = opened_nn("auto"), *wanted = opened_nn("cudnn"), *own = opened_nn("own");
    made.us = 30;
    struct weft_nn *slow = opened_nn("auto");
    cr_expect_str_eq(chosen_text(slow, by_library), by_library, "it was the library's");
    cr_expect_str_eq(weft_text_chars(&warnings), "");
    cr_expect_str_eq(chosen_text(nn, by_own), by_own, "it was own");
    cr_expect_str_eq(chosen_text(nn, "attention own\nbf16 2 40 2 32 own - -\n"), by_own);
    cr_expect_str_eq(chosen_text(nn, "made 1\n"), by_own, "a text from before has no attention");
    cr_expect_str_eq(weft_text_chars(&warnings), "");
    cr_expect_str_eq(chosen_text(own, by_library), "attention own\nbf16 2 40 2 32 own - -\n");
    cr_expect(warned_of("was computed by made 1, and is by own: the same to rounding"));
    cr_expect_str_eq(chosen_text(wanted, "attention own\nbf16 2 40 2 32 own - -\n"), by_library);
    cr_expect(warned_of("was computed by own, and is by made 1"));
    made.title = "made 2";
    made.us = 1;
    made.engine = "engine_7";
    struct weft_nn *newer = opened_nn("auto");
    (void)chosen_text(newer, by_library);
    cr_expect(warned_of("was computed by made 1, and is by made 2"));
    made.title = "made 1";
    struct weft_nn *other = opened_nn("auto");
    (void)chosen_text(other, by_library);
    cr_expect(warned_of("was by engine_0 and engine_1 of made 1, and is by engine_7"));
    cr_expect_eq(bind_text(other, by_library), WEFT_E_DISAGREE);
    cr_expect(strstr(err.text, "it has other engines") != NULL, "%s", err.text);
    cr_expect_eq(bind_text(newer, by_library), WEFT_E_DISAGREE);
    cr_expect_eq(bind_text(own, by_library), WEFT_E_DISAGREE);
    struct weft_nn *all[] = {nn, wanted, own, slow, newer, other};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        weft_nn_close(all[i]);
    }
}

Test(attention_choices, what_is_wrong_is_found_and_own)
{
    for (int m = 0; m < MISTAKES; m++) {
        made.mistake = (enum mistake)m;
        struct weft_nn *nn = opened_nn("cudnn");
        cr_expect_str_eq(chosen_text(nn, NULL), m == NONE ? by_library : by_own, "mistake %d", m);
        cr_expect_eq(warned_of("attention is by Weft's own kernels, not by made 1: "), m != NONE);
        cr_expect_eq(bind_text(nn, by_library) == WEFT_OK, m == NONE, "mistake %d", m);
        weft_nn_close(nn);
    }
}

/* The emulated kernels of Weft are right by the same measure. */
Test(attention_choices, own_kernels_stand_the_trial)
{
    static const struct weft_cuda_attention shapes[] = {{WEFT_BF16, 2, 40, 2, 32, NULL},
                                                        {WEFT_F16, 1, 130, 1, 64, NULL}};
    struct weft_nn *nn = opened_nn("auto");
    for (int i = 0; i < 2; i++) {
        struct weft_cuda_trial *trial = NULL;
        double worst = 0;
        cr_assert_eq(weft_cuda_trial_open(&machine, weft_nn_cuda_of(nn)->attending, &shapes[i], 0,
                                          &trial, &err),
                     WEFT_OK, "%s", err.text);
        cr_expect_eq(weft_cuda_trial_prove(trial, NULL, &worst, &err), WEFT_OK, "%s", err.text);
        cr_expect(worst > 0 && worst <= 1, "%g", worst);
        weft_cuda_trial_close(trial);
    }
    weft_nn_close(nn);
}

Test(attention_choices, requests_that_cannot_be_met_are_refused)
{
    struct weft_nn *nn = NULL;
    cr_expect_eq(open_way(&machine, "own", "mine", &nn), WEFT_E_USAGE);
    cr_expect_eq(open_way(&machine, "plain", "cudnn", &nn), WEFT_E_USAGE);
    cr_expect_eq(open_way(&without, "own", "cudnn", &nn), WEFT_E_ENVIRONMENT);
    cr_expect(strstr(err.text, "this build has no cuDNN") != NULL, "%s", err.text);
    absent = true;
    cr_expect_eq(open_way(&machine, "own", "cudnn", &nn), WEFT_E_ENVIRONMENT);
    cr_assert_eq(open_way(&machine, "own", "auto", &nn), WEFT_OK, "%s", err.text);
    cr_expect(strstr(weft_nn_describe(nn), "attention too, for made cannot be opened") != NULL);
    cr_expect_str_eq(chosen_text(nn, NULL), "attention own\nbf16 2 40 2 32 own - -\n");
    weft_nn_close(nn);
    cr_assert_eq(open_way(&without, "own", "auto", &nn), WEFT_OK, "%s", err.text);
    cr_expect_not(weft_nn_has_choices(nn));
    weft_nn_close(nn);
}

Test(attention_choices, what_is_no_way_is_refused)
{
    static const char *const lines[] = {
        "bf16 2 40 2 32 cudnn engine_0",   "f32 2 40 2 32 own - -",
        "bf16 0 40 2 32 own - -",          "bf16 2 40 3 32 own - -",
        "bf16 2 40 2 32 mine - -",         "bf16 2 40 2 32 own engine_0 -",
        "bf16 2 40 2 32 own - - more",     "bf16 2 40 2 99999999999999999999 own - -",
        "bf16 2 40 2 32 other engine_0 -",
    };
    struct weft_nn *nn = opened_nn("auto");
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char choices[256];
        snprintf(choices, sizeof choices, "attention made 1\n%s\n", lines[i]);
        cr_expect_eq(bind_text(nn, choices), WEFT_E_DATA, "%s: %d %s", lines[i], err.status,
                     err.text);
    }
    cr_expect_eq(bind_text(nn, "attention own\nbf16 2 40 2 32 cudnn engine_0 engine_1\n"),
                 WEFT_E_DATA);
    weft_nn_close(nn);
}
