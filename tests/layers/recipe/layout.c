/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/recipe/layout.h"
#include "layers/shared/block.h"

#include <criterion/criterion.h>
#include <string.h>

/* A part as the header declares it: where it is and how many bytes it needs. */
struct declared {
    const char *name;
    int64_t offset, bytes;
};

static int64_t end_of(const struct declared *part)
{
    return part->offset + part->bytes;
}

/* All parts are aligned, inside, disjoint, and the buffer ends where the last of them does. */
static void is_sound(const struct declared *parts, size_t n, int64_t bytes)
{
    int64_t last = 0;
    for (size_t i = 0; i < n; i++) {
        cr_assert_geq(parts[i].offset, 0, "%s", parts[i].name);
        cr_assert_eq(parts[i].offset % WEFT_LAYOUT_ALIGN_BYTES, 0, "%s", parts[i].name);
        cr_assert_leq(end_of(&parts[i]), bytes, "%s", parts[i].name);
        for (size_t k = 0; k < i; k++)
            cr_assert(parts[i].offset >= end_of(&parts[k]) || parts[k].offset >= end_of(&parts[i]),
                      "%s and %s overlap", parts[i].name, parts[k].name);
        if (end_of(&parts[i]) > last) last = end_of(&parts[i]);
    }
    cr_assert_lt(bytes - last, WEFT_LAYOUT_ALIGN_BYTES);
}

#define SOUND(parts, bytes) is_sound(parts, sizeof(parts) / sizeof(*(parts)), bytes)

static void check_block(int64_t samples, int64_t s, int64_t h, int64_t heads, int64_t f,
                        enum weft_dtype dtype)
{
    struct weft_layer layer = {.kind = &weft_kind_transformer_block,
                               .hidden = h,
                               .outputs = h,
                               .keys[WEFT_BLOCK_HEADS].integer = heads,
                               .keys[WEFT_BLOCK_FFN].integer = f};
    struct weft_batch batch = {.samples = samples, .seq_len = s, .compute = dtype};
    struct weft_transformer_block_layout at =
        weft_layout_transformer_block(&layer, &batch, WEFT_RECOMPUTE_NONE);
    int64_t t = samples * s, e = weft_dtype_bytes(dtype), widest = f > 3 * h ? f : 3 * h;
    struct declared saved[] = {
        {"ln1_mean", at.saved.ln1_mean, t * 4},
        {"ln1_rstd", at.saved.ln1_rstd, t * 4},
        {"ln1_out", at.saved.ln1_out, t * h * e},
        {"qkv", at.saved.qkv, t * 3 * h * e},
        {"probabilities", at.saved.probabilities, samples * heads * s * s * e},
        {"attention", at.saved.attention, t * h * e},
        {"residual", at.saved.residual, t * h * e},
        {"ln2_mean", at.saved.ln2_mean, t * 4},
        {"ln2_rstd", at.saved.ln2_rstd, t * 4},
        {"ln2_out", at.saved.ln2_out, t * h * e},
        {"fc", at.saved.fc, t * f * e},
        {"gelu", at.saved.gelu, t * f * e},
    };
    SOUND(saved, at.saved.bytes);
    /* Gradients and scratch that are live together, by the steps of backward. */
    const struct declared d_fc = {"d_fc", at.backward.d_fc, t * f * e},
                          d_ln2 = {"d_ln2", at.backward.d_ln2, t * h * e},
                          d_residual = {"d_residual", at.backward.d_residual, t * h * e},
                          d_attention = {"d_attention", at.backward.d_attention, t * h * e},
                          d_qkv = {"d_qkv", at.backward.d_qkv, t * 3 * h * e},
                          d_ln1 = {"d_ln1", at.backward.d_ln1, t * h * e},
                          scores = {"d_scores", at.backward.d_scores, s * s * e},
                          sums = {"sums", at.backward.sums,
                                  2 * h * 4 > widest * 4 ? 2 * h * 4 : widest * 4};
    const struct declared fc[] = {d_fc, d_ln2, scores, sums},
                          ln2[] = {d_ln2, d_residual, scores, sums},
                          projection[] = {d_residual, d_attention, scores, sums},
                          attention[] = {d_residual, d_attention, d_qkv, scores, sums},
                          qkv[] = {d_residual, d_qkv, d_ln1, scores, sums};
    SOUND(fc, at.backward.bytes);
    SOUND(ln2, at.backward.bytes);
    SOUND(projection, at.backward.bytes);
    SOUND(attention, at.backward.bytes);
    SOUND(qkv, at.backward.bytes);
    /* No more than the step with the most, besides the rounding of at most seven parts. */
    const int64_t most = t * e * (f + h > 5 * h ? f + h : 5 * h) + scores.bytes + sums.bytes;
    cr_assert_lt(at.backward.bytes, most + 7 * WEFT_LAYOUT_ALIGN_BYTES);
}

Test(layout, transformer_block_parts_do_not_overlap)
{
    check_block(4, 64, 64, 4, 256, WEFT_F32);
    check_block(3, 31, 36, 3, 101, WEFT_F32); /* 3h > ffn, nothing divides */
    check_block(1, 1, 1, 1, 1, WEFT_BF16);
    check_block(5, 7, 6, 2, 333, WEFT_F16);
}

/* Only tensor cores save statistics, which take the bytes of a number a row and head. */
Test(layout, attention_saves_statistics_on_tensor_cores_alone)
{
    static const struct {
        enum weft_dtype dtype;
        int64_t hidden, seq_len;
        bool on_gpu, plain, statistics;
    } cases[] = {
        {WEFT_BF16, 64, 32, true, false, true},  {WEFT_F16, 512, 32, true, false, true},
        {WEFT_F32, 64, 32, true, false, false},  {WEFT_BF16, 64, 32, false, false, false},
        {WEFT_BF16, 64, 32, true, true, false},  {WEFT_BF16, 64, 1, true, false, false},
        {WEFT_BF16, 68, 32, true, false, false}, {WEFT_BF16, 544, 32, true, false, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct weft_layer layer = {.kind = &weft_kind_transformer_block,
                                   .hidden = cases[i].hidden,
                                   .outputs = cases[i].hidden,
                                   .keys[WEFT_BLOCK_HEADS].integer = 4,
                                   .keys[WEFT_BLOCK_FFN].integer = 64};
        const struct weft_batch batch = {.samples = 3,
                                         .seq_len = cases[i].seq_len,
                                         .compute = cases[i].dtype,
                                         .on_gpu = cases[i].on_gpu,
                                         .plain = cases[i].plain};
        const struct weft_transformer_block_layout at =
            weft_layout_transformer_block(&layer, &batch, WEFT_RECOMPUTE_NONE);
        const int64_t row_heads = 3 * 4 * batch.seq_len, e = weft_dtype_bytes(batch.compute);
        const int64_t bytes = row_heads * (cases[i].statistics ? 4 : batch.seq_len * e);
        cr_expect_eq(at.saved.attention - at.saved.probabilities, (bytes + 63) / 64 * 64, "case %d",
                     (int)i);
    }
}

static struct weft_layer class_layer(const struct weft_kind *kind, int64_t classes)
{
    return (struct weft_layer){
        .kind = kind, .hidden = 36, .vocab = classes, .outputs = classes, .bias = true};
}

Test(layout, other_parts_do_not_overlap)
{
    struct weft_layer layer = {.kind = &weft_kind_layer_norm, .hidden = 36, .outputs = 36};
    struct weft_batch batch = {.samples = 3, .seq_len = 31, .compute = WEFT_F32};
    struct weft_layer_norm_layout norm = weft_layout_layer_norm(&layer, &batch);
    struct declared stats[] = {{"mean", norm.saved.mean, 93 * 4},
                               {"rstd", norm.saved.rstd, 93 * 4}};
    SOUND(stats, norm.saved.bytes);
    struct declared sums[] = {{"sums", norm.backward.sums, 2 * 36 * 4}};
    SOUND(sums, norm.backward.bytes);

    layer = class_layer(&weft_kind_lm_head, 257);
    struct weft_lm_head_layout head = weft_layout_lm_head(&layer, &batch);
    struct declared logits[] = {{"d_logits", head.saved.d_logits, 93 * (257 + 31) * 4}};
    SOUND(logits, head.saved.bytes);
    struct declared bias[] = {{"sums", head.backward.sums, 257 * 4}};
    SOUND(bias, head.backward.bytes);

    layer = class_layer(&weft_kind_classifier, 11);
    struct weft_classifier_layout classes = weft_layout_classifier(&layer, &batch);
    struct declared pooled[] = {{"pooled", classes.saved.pooled, 3 * 36 * 4},
                                {"d_logits", classes.saved.d_logits, 3 * (11 + 21) * 4}};
    SOUND(pooled, classes.saved.bytes);
    struct declared d_pooled[] = {{"d_pooled", classes.backward.d_pooled, 3 * 36 * 4},
                                  {"sums", classes.backward.sums, 11 * 4}};
    SOUND(d_pooled, classes.backward.bytes);

    layer = class_layer(&weft_kind_linear, 11);
    struct weft_linear_layout linear = weft_layout_linear(&layer, &batch);
    struct declared linear_sums[] = {{"sums", linear.backward.sums, 11 * 4}};
    SOUND(linear_sums, linear.backward.bytes);
}

Test(layout, rows_of_logits_begin_at_multiples_of_128_bytes)
{
    static const struct {
        int64_t classes, gaps[WEFT_DTYPE_COUNT];
    } cases[] = {{50257, {[WEFT_F32] = 15, [WEFT_BF16] = 47, [WEFT_F16] = 47}},
                 {50304, {0}},
                 {2, {[WEFT_F32] = 30, [WEFT_BF16] = 62, [WEFT_F16] = 62}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct weft_layer layer = class_layer(&weft_kind_lm_head, cases[i].classes);
        const struct weft_layer classes = class_layer(&weft_kind_classifier, cases[i].classes);
        for (int dtype = 0; dtype < WEFT_DTYPE_COUNT; dtype++) {
            struct weft_batch batch = {
                .samples = 2, .seq_len = 3, .compute = (enum weft_dtype)dtype};
            struct weft_lm_head_layout head = weft_layout_lm_head(&layer, &batch);
            cr_expect_eq(head.gap, cases[i].gaps[dtype]);
            cr_expect_eq(head.saved.bytes,
                         6 * (layer.vocab + head.gap) * weft_dtype_bytes(batch.compute));
            cr_expect_eq(weft_layout_classifier(&classes, &batch).gap, head.gap);
        }
    }
}

Test(layout, asks_nothing_for_a_bias_that_is_not_there)
{
    struct weft_layer layer = class_layer(&weft_kind_linear, 11);
    struct weft_batch batch = {.samples = 3, .seq_len = 31, .compute = WEFT_F32};
    layer.bias = false;
    cr_assert_eq(weft_layout_linear(&layer, &batch).backward.bytes, 0);
    layer.kind = &weft_kind_lm_head;
    cr_assert_eq(weft_layout_lm_head(&layer, &batch).backward.bytes, 0);
}

Test(layout, says_minus_one_for_what_overflows)
{
    struct weft_layer layer = {.kind = &weft_kind_transformer_block,
                               .hidden = INT32_MAX,
                               .outputs = INT32_MAX,
                               .keys[WEFT_BLOCK_HEADS].integer = 1,
                               .keys[WEFT_BLOCK_FFN].integer = INT32_MAX,
                               .vocab = 2};
    struct weft_batch batch = {.samples = INT32_MAX, .seq_len = INT32_MAX, .compute = WEFT_F32};
    struct weft_transformer_block_layout block =
        weft_layout_transformer_block(&layer, &batch, WEFT_RECOMPUTE_NONE);
    cr_assert_eq(block.saved.bytes, -1);
    cr_assert_eq(block.saved.gelu, -1);
    cr_assert_eq(block.backward.bytes, -1);
    layer.kind = &weft_kind_lm_head;
    cr_assert_eq(weft_layout_lm_head(&layer, &batch).saved.bytes, -1);
    layer.kind = &weft_kind_transformer_block;
    layer.keys[WEFT_BLOCK_FFN].integer = INT64_MAX;
    batch = (struct weft_batch){.samples = 1, .seq_len = 1, .compute = WEFT_F32};
    cr_assert_eq(weft_layout_transformer_block(&layer, &batch, WEFT_RECOMPUTE_NONE).saved.bytes,
                 -1);
}
