/* SPDX-License-Identifier: Apache-2.0 */
/* Choice, proof and binding of products, with a library that computes on the host and can have one
 * mistake. */
#include "runtime/nn/cuda/choices/multiply.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers.h"
#include "base/text.h"
#include "runtime/nn/cuda/choices/proof.h"
#include "spec/kind.h"
#include "tests/emulation/runs/machine.h"

enum mistake {
    NONE,
    ONE_ELEMENT,  /* the last element is off */
    CUT_OPERANDS, /* to TF32's 10 bits */
    NO_BIAS,      /* the following omit something */
    NO_RESIDUAL,
    NO_TIMES,
    TURNED,    /* a is transposed */
    UNWRITTEN, /* the last row */
    FAR_ROW,   /* number 299 */
    COARSE_GELU,
    COARSE_SLOPE,
    FAILS, /* with an error code */
    MISTAKES
};

struct weft_cuda_library {
    const char *title;
    enum mistake mistake;
    uint64_t favourite; /* number of parts of k */
    uint64_t refused;
};
static struct weft_cuda_library made;

static enum weft_status open_made(struct weft_cuda_library **out, struct weft_error *err)
{
    (void)err;
    *out = malloc(sizeof **out);
    **out = made;
    return WEFT_OK;
}

static void close_made(struct weft_cuda_library *library)
{
    free(library);
}

static const char *title_of(const struct weft_cuda_library *library)
{
    return library->title;
}

static int64_t workspace_of(const struct weft_cuda_library *library)
{
    (void)library;
    return 1024;
}

static int candidates_of(const struct weft_cuda_library *library,
                         const struct weft_cuda_request *asked,
                         struct weft_cuda_algorithm out[WEFT_CUDA_MOST_CANDIDATES])
{
    (void)asked;
    memset(out, 0, 2 * sizeof *out);
    out[0].words[0] = library->favourite;
    out[1].words[0] = library->favourite + 1;
    return 2;
}

static const char *refusal_of(const struct weft_cuda_library *library,
                              const struct weft_cuda_request *asked,
                              const struct weft_cuda_algorithm *algorithm)
{
    (void)asked;
    return algorithm->words[0] == 0 || algorithm->words[0] == library->refused ? "not here" : NULL;
}

static float read_at(enum weft_dtype dtype, const void *from, int64_t at)
{
    if (dtype == WEFT_F32) return ((const float *)from)[at];
    const uint16_t x = ((const uint16_t *)from)[at];
    return dtype == WEFT_BF16 ? weft_bf16_widen(x) : weft_f16_widen(x);
}

static void write_at(enum weft_dtype dtype, void *to, int64_t at, float x)
{
    if (dtype == WEFT_F32)
        ((float *)to)[at] = x;
    else
        ((uint16_t *)to)[at] = dtype == WEFT_BF16 ? weft_bf16_narrow(x) : weft_f16_narrow(x);
}

static float operand_at(const struct weft_cuda_library *library, enum weft_dtype dtype,
                        const void *from, int64_t at)
{
    const uint32_t kept = ~(uint32_t)0x1fff;
    const float x = read_at(dtype, from, at);
    return library->mistake == CUT_OPERANDS ? weft_float_of(weft_bits_of(x) & kept) : x;
}

static float add_up(const struct weft_cuda_library *library, const struct weft_product *p,
                    uint64_t parts, int64_t i, int64_t j)
{
    const bool turned = p->transpose_a != (library->mistake == TURNED);
    float sum = 0;
    for (int64_t part = 0; part < (int64_t)parts; part++) {
        float of_part = 0;
        for (int64_t l = p->k * part / (int64_t)parts; l < p->k * (part + 1) / (int64_t)parts;
             l++) {
            const int64_t row = turned == p->transpose_a ? p->a_stride : turned ? p->m : p->k;
            const int64_t a = turned ? l * row + i : i * row + l,
                          b = p->transpose_b ? j * p->b_stride + l : l * p->b_stride + j;
            of_part +=
                operand_at(library, p->dtype, p->a, a) * operand_at(library, p->dtype, p->b, b);
        }
        sum += of_part;
    }
    return sum;
}

static float gate_of(float x)
{
    return 1 / (1 + expf(-1.5957691216f * (x + 0.044715f * x * x * x)));
}

static float slope_of(float x)
{
    const float g = gate_of(x);
    return g + x * g * (1 - g) * 1.5957691216f * (1 + 3 * 0.044715f * x * x);
}

static void finish_element(const struct weft_cuda_library *library,
                           const struct weft_cuda_request *asked, int64_t i, int64_t j, float x)
{
    const struct weft_product *p = &asked->product;
    const struct weft_product_finish *f = &p->finish;
    const int64_t at = i * p->c_stride + j;
    const enum mistake m = library->mistake;
    if (asked->times != NULL && m != NO_TIMES) x *= *asked->times;
    if (p->accumulate) x += read_at(p->c_dtype, p->c, at);
    if (f->residual != NULL && m != NO_RESIDUAL) x += read_at(p->c_dtype, f->residual, at);
    if (f->bias != NULL && m != NO_BIAS) x += read_at(p->c_dtype, f->bias, j);
    if (f->gelu_input != NULL)
        x *= slope_of(read_at(p->c_dtype, f->gelu_input, at)) * (m == COARSE_SLOPE ? 1.02f : 1);
    if (m == ONE_ELEMENT && i == p->m - 1 && j == p->n - 1) x += 0.125f;
    if (m == UNWRITTEN && i == p->m - 1) return;
    if (m == FAR_ROW && i == 299) x += 0.125f;
    write_at(p->c_dtype, p->c, at, x);
    if (f->gelu == NULL) return;
    x = read_at(p->c_dtype, p->c, at);
    write_at(p->c_dtype, f->gelu, at, x * gate_of(x) + (m == COARSE_GELU ? 0.03125f : 0));
}

static int run_made(const struct weft_cuda_library *library, const struct weft_cuda_request *asked,
                    const struct weft_cuda_algorithm *algorithm, void *workspace,
                    struct CUstream_st *on)
{
    const struct weft_product *p = &asked->product;
    (void)workspace;
    (void)on;
    if (library->mistake == FAILS) return -7;
    for (int64_t i = 0; i < p->m; i++) {
        for (int64_t j = 0; j < p->n; j++) {
            finish_element(library, asked, i, j, add_up(library, p, algorithm->words[0], i, j));
        }
    }
    return 0;
}

static struct CUstream_st *stream_of(const struct weft_cuda_library *library)
{
    return (struct CUstream_st *)(uintptr_t)library;
}

static int await_made(const struct weft_cuda_library *library)
{
    (void)library;
    return 0;
}

static const char *explain_made(const struct weft_cuda_library *library, int code)
{
    (void)library;
    return code == -7 ? "it fails" : "?";
}

static const struct weft_cuda_library_ops ops = {
    .name = "made",
    .open = open_made,
    .close = close_made,
    .title = title_of,
    .workspace_bytes = workspace_of,
    .candidates = candidates_of,
    .refuses = refusal_of,
    .run = run_made,
    .stream = stream_of,
    .await = await_made,
    .explain = explain_made,
};

static int allocate(int64_t bytes, void **out)
{
    *out = aligned_alloc(256, ((size_t)bytes + 255) / 256 * 256);
    return *out != NULL ? 0 : 2;
}

static const char *explain(int code)
{
    return code == 2 ? "out of memory" : "refused";
}

static const struct weft_cuda_machine machine = {.name = "made",
                                                 .allocate = allocate,
                                                 .release = free,
                                                 .share = allocate,
                                                 .unshare = free,
                                                 .explain = explain,
                                                 .library = &ops};
static const struct weft_nn_backend backend = {.name = "made", WEFT_NN_CUDA_FUNCTIONS};

/* Two maps, one with a factor. */
static const struct weft_layer layers[] = {
    {.name = "up", .kind = &weft_kind_linear, .hidden = 24, .outputs = 16, .bias = true},
    {.name = "head", .kind = &weft_kind_lm_head, .hidden = 16, .vocab = 150},
};
enum { LAYERS = sizeof layers / sizeof *layers };
static struct weft_error err;

static struct weft_nn *opened(const char *title, enum mistake mistake, uint64_t favourite)
{
    const struct weft_nn_options options = {.threads = 1, .gemm = "made"};
    struct weft_nn *nn = NULL;
    made = (struct weft_cuda_library){title, mistake, favourite, 0};
    err = (struct weft_error){0};
    emu_machine_begin();
    cr_assert_eq(weft_nn_cuda_open(&backend, &machine, &options, &nn, &err), WEFT_OK, "%s",
                 err.text);
    return nn;
}

static enum weft_status chosen(struct weft_nn *nn, enum weft_dtype compute, const char *earlier,
                               struct weft_text *out, struct weft_text *warnings)
{
    const struct weft_batch batch = {.samples = 2, .seq_len = 9, .compute = compute};
    weft_text_init(out);
    weft_text_init(warnings);
    return weft_nn_choose(nn, layers, LAYERS, &batch, earlier, out, warnings, &err);
}

static enum weft_status bound(struct weft_nn *nn, const char *text)
{
    const struct weft_batch batch = {.samples = 2, .seq_len = 9, .compute = WEFT_F32};
    err = (struct weft_error){0};
    return weft_nn_bind(nn, layers, LAYERS, &batch, text, &err);
}

Test(choices, ranks_take_what_rank_0_chose)
{
    struct weft_text text, warnings;
    struct weft_nn *first = opened("made 1", NONE, 2), *second = opened("made 1", NONE, 3);
    cr_assert_eq(chosen(first, WEFT_F32, NULL, &text, &warnings), WEFT_OK, "%s", err.text);
    cr_expect_str_eq(weft_text_chars(&warnings), "");
    cr_assert_eq(bound(second, weft_text_chars(&text)), WEFT_OK, "%s", err.text);
    const struct weft_nn_cuda *cuda = weft_nn_cuda_of(second);
    cr_expect_str_eq(weft_nn_choices(second), weft_text_chars(&text));
    cr_expect_eq(cuda->n_choices, 9); /* three products per map, and two parts each of the head's */
    for (int32_t i = 0; i < cuda->n_choices; i++) {
        cr_expect_eq(cuda->choices[i].way, WEFT_CUDA_BY_LIBRARY);
        cr_expect_eq(cuda->choices[i].algorithm.words[0], 2, "not this rank's favourite");
    }
    /* Rows of 150 logits begin every 160. */
    cr_expect(strstr(weft_text_chars(&text), "nt 18 128 16 c:32 library") != NULL);
    cr_expect(strstr(weft_text_chars(&text), "nt 18 22 16 c:138 library") != NULL);
    cr_expect(strstr(weft_text_chars(&text), "nn 18 16 128 times+a:32 library") != NULL);
    cr_expect(strstr(weft_text_chars(&text), "tn 22 16 18 times+a:138 library") != NULL);
    weft_text_finish(&text);
    weft_text_finish(&warnings);
    weft_nn_close(first);
    weft_nn_close(second);
}

Test(choices, of_an_earlier_run_are_kept_by_the_same_library_alone)
{
    struct weft_text text, again, warnings, others;
    struct weft_nn *first = opened("made 1", NONE, 2), *later = opened("made 1", NONE, 5),
                   *newer = opened("made 2", NONE, 5);
    cr_assert_eq(chosen(first, WEFT_F32, NULL, &text, &warnings), WEFT_OK);
    weft_text_finish(&warnings);
    cr_assert_eq(chosen(later, WEFT_F32, weft_text_chars(&text), &again, &warnings), WEFT_OK);
    cr_expect_str_eq(weft_text_chars(&again), weft_text_chars(&text));
    cr_expect_str_eq(weft_text_chars(&warnings), "");
    weft_text_finish(&warnings);
    cr_assert_eq(chosen(newer, WEFT_F32, weft_text_chars(&text), &others, &warnings), WEFT_OK);
    cr_expect(strstr(weft_text_chars(&warnings), "by made 1, and are by made 2") != NULL);
    cr_expect(strcmp(weft_text_chars(&others), weft_text_chars(&text)) != 0);
    cr_expect_eq(bound(newer, weft_text_chars(&text)), WEFT_E_DISAGREE);
    weft_text_finish(&text);
    weft_text_finish(&again);
    weft_text_finish(&others);
    weft_text_finish(&warnings);
    weft_nn_close(first);
    weft_nn_close(later);
    weft_nn_close(newer);
}

/* One key per finish, as layers request it, and gaps between rows. */
static const struct weft_cuda_key keys[] = {
    {WEFT_F32, WEFT_F32, false, true, WEFT_CUDA_BIAS | WEFT_CUDA_RESIDUAL, 30, 40, 50, 0, 0},
    {WEFT_F32, WEFT_F32, false, true, WEFT_CUDA_BIAS | WEFT_CUDA_GELU, 300, 40, 1300, 0, 0},
    {WEFT_F32, WEFT_F32, false, false, WEFT_CUDA_SLOPE, 18, 40, 24, 0, 0},
    {WEFT_F32, WEFT_F32, true, false, WEFT_CUDA_TIMES, 24, 40, 700, 8, 0},
    {WEFT_BF16, WEFT_F32, true, false, 0, 24, 40, 18, 0, 6},
    {WEFT_BF16, WEFT_BF16, false, true, WEFT_CUDA_BIAS | WEFT_CUDA_GELU, 18, 40, 24, 0, 0},
    {WEFT_F16, WEFT_F16, false, false, WEFT_CUDA_SLOPE, 18, 40, 24, 0, 0},
};
enum { KEYS = sizeof keys / sizeof *keys };

/* Returns the keys that find the mistake, one bit each. Only f32 operands can be cut. */
static unsigned found_by(enum mistake mistake)
{
    switch (mistake) {
    case NONE:
    case FAR_ROW: /* sizes are cut */
    case MISTAKES:
        return 0;
    case ONE_ELEMENT:
    case TURNED:
    case UNWRITTEN:
    case FAILS:
        return (1u << KEYS) - 1;
    case CUT_OPERANDS:
        return 0x0f;
    case NO_BIAS:
        return 0x23;
    case NO_RESIDUAL:
        return 0x01;
    case NO_TIMES:
        return 0x08;
    case COARSE_GELU:
        return 0x22;
    case COARSE_SLOPE:
        return 0x44;
    }
    return 0;
}

Test(choices, what_is_wrong_is_found_and_nothing_else)
{
    for (int m = 0; m < MISTAKES; m++) {
        struct weft_nn *nn = opened("made 1", (enum mistake)m, 2);
        unsigned found = 0;
        for (int i = 0; i < KEYS; i++) {
            const struct weft_cuda_choice choice = {keys[i], WEFT_CUDA_BY_LIBRARY, {.words = {3}}};
            err = (struct weft_error){0};
            const enum weft_status status = weft_cuda_prove(weft_nn_cuda_of(nn), &choice, &err);
            found |= (status != WEFT_OK ? 1u : 0) << i;
        }
        cr_expect_eq(found, found_by((enum mistake)m), "mistake %d: %#x, not %#x", m, found,
                     found_by((enum mistake)m));
        weft_nn_close(nn);
    }
}

Test(choices, whole_products_are_proved_too)
{
    for (int m = 0; m < 2; m++) {
        struct weft_nn *nn = opened("made 1", m == 0 ? NONE : FAR_ROW, 2);
        const struct weft_cuda_choice choice = {keys[1], WEFT_CUDA_BY_LIBRARY, {.words = {3}}};
        double worst = -1;
        err = (struct weft_error){0};
        const enum weft_status status =
            weft_cuda_prove_whole(weft_nn_cuda_of(nn), &choice, &worst, &err);
        cr_expect_eq(status, m == 0 ? WEFT_OK : WEFT_E_ENVIRONMENT, "%s", err.text);
        cr_expect(m == 0 ? worst > 0 && worst <= 1 : worst > 1, "%g", worst);
        weft_nn_close(nn);
    }
}

Test(choices, what_the_library_gets_wrong_is_our_own)
{
    struct weft_text text, warnings;
    struct weft_nn *nn = opened("made 1", ONE_ELEMENT, 2);
    cr_assert_eq(chosen(nn, WEFT_BF16, NULL, &text, &warnings), WEFT_OK, "%s", err.text);
    cr_expect(strstr(weft_text_chars(&warnings), "made 1 is wrong here: element [") != NULL);
    cr_expect(strstr(weft_text_chars(&warnings), "for 12 of 12 products") != NULL, "%s",
              weft_text_chars(&warnings));
    cr_expect(strstr(weft_text_chars(&text), "library") == NULL);
    cr_expect_eq(bound(nn, weft_text_chars(&text)), WEFT_OK, "%s", err.text);
    weft_text_finish(&text);
    weft_text_finish(&warnings);
    weft_nn_close(nn);
}

Test(choices, a_rank_that_cannot_or_is_wrong_refuses)
{
    struct weft_text text, warnings;
    struct weft_nn *first = opened("made 1", NONE, 2), *wrong = opened("made 1", NO_TIMES, 2);
    made.refused = 2;
    cr_assert_eq(chosen(first, WEFT_F32, NULL, &text, &warnings), WEFT_OK);
    cr_expect_eq(bound(wrong, weft_text_chars(&text)), WEFT_E_ENVIRONMENT);
    struct weft_nn *other = opened("made 1", NONE, 2);
    weft_nn_cuda_of(other)->library->refused = 2;
    cr_expect_eq(bound(other, weft_text_chars(&text)), WEFT_E_DISAGREE);
    cr_expect(strstr(err.text, "not here") != NULL, "%s", err.text);
    cr_expect_null(weft_nn_choices(other));
    weft_text_finish(&text);
    weft_text_finish(&warnings);
    weft_nn_close(first);
    weft_nn_close(wrong);
    weft_nn_close(other);
}

Test(choices, what_is_no_choice_is_refused)
{
#define WORD  "0000000000000002"
#define WORDS WORD WORD WORD WORD WORD WORD WORD WORD
    static const char *const lines[] = {
        "f32 f32 nt 9 9",
        "f64 f32 nt 9 9 9 - own -",
        "f32 f32 nx 9 9 9 - own -",
        "f32 f32 n 9 9 9 - own -",
        "f32 f32 nt 0 9 9 - own -",
        "f32 f32 nt 9 -9 9 - own -",
        "f32 f32 nt 9 9 9 bias+relu own -",
        "f32 f32 nt 9 9 9 c:0 own -",
        "f32 f32 nt 9 9 9 a:7x own -",
        "f32 f32 nt 9 9 9 b:7 own -",
        "f32 f32 nt 9 9 9 - mine -",
        "f32 f32 nt 9 9 9 - own " WORDS,
        "f32 f32 nt 9 9 9 - library -",
        "f32 f32 nt 9 9 9 - library " WORDS "0",
        "f32 f32 nt 9 9 9 - library " WORD,
        "f32 f32 nt 9 9 9 - own - more",
        "f32 f32 nt 99999999999999999999 9 9 - own -",
    };
    struct weft_nn *nn = opened("made 1", NONE, 2);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char text[512];
        snprintf(text, sizeof text, "made 1\n%s\n", lines[i]);
        cr_expect_eq(bound(nn, text), WEFT_E_DATA, "%s: %d %s", lines[i], err.status, err.text);
    }
    cr_expect_eq(bound(nn, "made 1\nf32 f32 nt 9 9 9 bias library " WORDS "\n"), WEFT_OK, "%s",
                 err.text);
    weft_nn_close(nn);
}

Test(choices, a_product_that_nobody_bound_is_an_error)
{
    const float a[4] = {1, 2, 3, 4};
    float c[4] = {0};
    struct weft_product p = weft_product_dense(false, false, 2, 2, 2, WEFT_F32);
    struct weft_nn *nn = opened("made 1", NONE, 2);
    p.a = p.b = a;
    p.c = c;
    cr_expect_eq(weft_cuda_multiply(weft_nn_cuda_of(nn), &p, NULL, NULL), WEFT_CUDA_NOT_BOUND);
    cr_expect_eq(weft_nn_cuda_status(weft_nn_cuda_of(nn), WEFT_CUDA_NOT_BOUND, "it", &err),
                 WEFT_E_INTERNAL);
    weft_nn_close(nn);
}

/* Products by logits of 150 columns, as forward, the gradient by input and by weight request them.
 */
enum { LOGITS = 150, STRIDE = 160, INPUTS = 16, ROWS = 18 };
struct logits {
    float a[STRIDE * ROWS], b[LOGITS * INPUTS], c[LOGITS * STRIDE], whole[LOGITS * STRIDE],
        bias[LOGITS];
};

static void draw_numbers(float *out, int64_t n, uint32_t seed)
{
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525 + 1013904223;
        out[i] = (float)(int32_t)(seed >> 24) - 128; /* their sums are exact */
    }
}

/* Gaps stay as they were, and each element is computed once. */
static void parts_are_the_whole(struct weft_nn *nn, struct weft_product p, const float *times)
{
    static struct logits m;
    draw_numbers(m.a, STRIDE * ROWS, 1);
    draw_numbers(m.b, LOGITS * INPUTS, 2);
    draw_numbers(m.bias, LOGITS, 3);
    draw_numbers(m.c, LOGITS * STRIDE, 4);
    memcpy(m.whole, m.c, sizeof m.c);
    p.a = m.a;
    p.b = m.b;
    if (p.finish.bias != NULL) p.finish.bias = m.bias;
    p.c = m.whole;
    const struct weft_cuda_request asked = {p, times};
    const struct weft_cuda_algorithm algorithm = {.words = {1}};
    cr_expect_eq(ops.run(weft_nn_cuda_of(nn)->library, &asked, &algorithm, NULL, NULL), 0);
    p.c = m.c;
    cr_expect_eq(weft_cuda_multiply(weft_nn_cuda_of(nn), &p, times, NULL), 0);
    cr_expect_arr_eq(m.c, m.whole, sizeof m.c);
}

Test(choices, logits_of_an_odd_width_are_computed_in_two_parts)
{
    struct weft_text text, warnings;
    static const float factor = 0.5f;
    struct weft_nn *nn = opened("made 1", NONE, 2);
    struct weft_product forward = weft_product_dense(false, true, ROWS, LOGITS, INPUTS, WEFT_F32),
                        by_input = weft_product_dense(false, false, ROWS, INPUTS, LOGITS, WEFT_F32),
                        by_weight = weft_product_dense(true, false, LOGITS, INPUTS, ROWS, WEFT_F32);
    cr_assert_eq(chosen(nn, WEFT_F32, NULL, &text, &warnings), WEFT_OK, "%s", err.text);
    cr_assert_eq(bound(nn, weft_text_chars(&text)), WEFT_OK, "%s", err.text);
    forward.c_stride = by_input.a_stride = by_weight.a_stride = STRIDE;
    parts_are_the_whole(nn, forward, NULL);
    for (int accumulate = 0; accumulate < 2; accumulate++) {
        by_input.accumulate = by_weight.accumulate = accumulate == 1;
        parts_are_the_whole(nn, by_input, &factor);
        parts_are_the_whole(nn, by_weight, &factor);
    }
    weft_text_finish(&text);
    weft_text_finish(&warnings);
    weft_nn_close(nn);
}

Test(choices, only_odd_widths_with_gaps_have_parts)
{
    struct weft_cuda_part parts[WEFT_CUDA_MOST_PARTS];
    struct weft_cuda_key key = {WEFT_BF16, WEFT_BF16, false, true, WEFT_CUDA_BIAS,
                                9,         150,       16,    0,    42};
    cr_expect_eq(weft_cuda_parts(&key, parts), 2);
    key.finish |= WEFT_CUDA_RESIDUAL;
    cr_expect_eq(weft_cuda_parts(&key, parts), 1, "a residual has no gaps");
    key = (struct weft_cuda_key){WEFT_BF16, WEFT_BF16, false, false, WEFT_CUDA_BIAS,
                                 9,         16,        150,   42,    0};
    cr_expect_eq(weft_cuda_parts(&key, parts), 1, "a bias would be added twice");
    key.finish = 0;
    cr_expect_eq(weft_cuda_parts(&key, parts), 2);
    key.k = 152;
    cr_expect_eq(weft_cuda_parts(&key, parts), 1, "16 bytes divide its rows");
}
