/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of random layers, derived from recipes, next to formulas written by hand. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "layers/embedding.h"
#include "layers/recipe/walk.h"
#include "layers/shared/block.h"
#include "tests/effort.h"

/* Figures by hand. */
struct figures {
    int64_t saved, forward, backward, forward_scratch, backward_scratch;
    bool reads_input, reads_output;
    double forward_flops, backward_flops, weights, gradients;
    struct weft_layer_split splits[WEFT_RECOMPUTE_COUNT];
    char key[200];
};

static uint64_t drawn;

static int64_t draw_size(int64_t least, int64_t most)
{
    return least + (int64_t)weft_rng_below(42, 7, drawn++, (uint64_t)(most - least + 1));
}

static int64_t round_up(int64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static int64_t larger_size(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t stripe_bytes(int64_t rows, int64_t width)
{
    return (rows + 127) / 128 * width * 4;
}

/* Bytes of rows of logits, which begin at multiples of 128 bytes. */
static int64_t logit_bytes(int64_t rows, int64_t classes, int64_t size)
{
    return round_up(rows * ((classes * size + 127) / 128 * 128));
}

static void figures_of_block(const struct weft_layer *layer, const struct weft_batch *batch,
                             struct figures *out)
{
    const int64_t e = weft_dtype_bytes(batch->compute), s = batch->seq_len;
    const int64_t t = batch->samples * s, h = layer->hidden,
                  f = layer->keys[WEFT_BLOCK_FFN].integer;
    const int64_t heads = layer->keys[WEFT_BLOCK_HEADS].integer, size = h / heads;
    const int64_t row = round_up(t * h * e), qkv = round_up(t * 3 * h * e),
                  fc = round_up(t * f * e);
    const bool cores = e == 2 && s > 1 && size <= 128 && size % 8 == 0 && !batch->plain;
    const int64_t head_rows = heads * t, saved = batch->on_gpu && cores ? 4 : s * e;
    const int64_t norm = 2 * round_up(t * 4) + row, attention = round_up(head_rows * saved) + row;
    const int64_t gelu = batch->on_gpu && !layer->frozen ? fc : 0;
    const int64_t products = qkv + row + fc + gelu, others = 2 * norm + attention + fc - gelu;
    /* Live together: fc and one row of gradients; or qkv and two. */
    out->backward = larger_size(fc + row, qkv + 2 * row) + round_up(s * s * e) +
                    round_up(4 * larger_size(3 * h, f));
    /* No backward of a frozen product reads the output of a norm or GELU. */
    const int64_t unread = layer->frozen ? 2 * row + fc : 0;
    out->saved = products + others - unread;
    out->forward = layer->frozen ? row + fc : 0;
    out->backward_scratch =
        larger_size(head_rows * (cores ? 4 : s * e),
                    larger_size(2 * stripe_bytes(t, h), stripe_bytes(t, larger_size(3 * h, f))));
    out->reads_input = true;
    const double dt = (double)t, dh = (double)h, df = (double)f, ds = (double)s;
    const double attend = 2 * dt * ds * dh;
    out->weights = 4 * dh * dh + 2 * dh * df;
    out->forward_flops = 2 * dt * out->weights + attend;
    out->backward_flops = (layer->frozen ? 1 : 2) * 2 * dt * out->weights + 2 * attend;
    out->splits[WEFT_RECOMPUTE_SELECTIVE] =
        (struct weft_layer_split){true, products, others, attend, 0};
    out->splits[WEFT_RECOMPUTE_WHOLE] = (struct weft_layer_split){
        true, 0, products + others, 2 * dt * (out->weights - dh * df) + attend, 0};
    snprintf(out->key, sizeof out->key, " hidden=%lld heads=%lld ffn=%lld", (long long)h,
             (long long)heads, (long long)f);
}

static void figures_of_classes(const struct weft_layer *layer, const struct weft_batch *batch,
                               bool pools, struct figures *out)
{
    const int64_t e = weft_dtype_bytes(batch->compute), h = layer->hidden, n = layer->outputs;
    const int64_t t = batch->samples * batch->seq_len, rows = pools ? batch->samples : t;
    const int64_t pooled = pools ? round_up(rows * h * e) : 0;
    const double mean = pools ? (double)t * (double)h : 0;
    out->saved = (layer->frozen ? 0 : pooled) + logit_bytes(rows, n, e);
    out->forward = layer->frozen ? pooled : 0;
    out->backward = pooled + (layer->bias ? round_up(4 * n) : 0);
    out->forward_scratch = 8 * rows;
    out->backward_scratch = 64 + (layer->bias ? stripe_bytes(rows, n) : 0);
    out->reads_input = !pools && !layer->frozen;
    out->weights = (double)h * (double)n;
    out->forward_flops = 2 * (double)rows * out->weights + mean;
    out->backward_flops = (layer->frozen ? 1 : 2) * 2 * (double)rows * out->weights + mean;
    snprintf(out->key, sizeof out->key,
             pools ? " hidden=%lld classes=%lld" : " vocab=%lld hidden=%lld",
             (long long)(pools ? h : n), (long long)(pools ? n : h));
}

static struct figures figures_of(const struct weft_layer *layer, const struct weft_batch *batch)
{
    struct figures out = {.gradients = -1};
    const char *type = layer->kind->type;
    const int64_t t = batch->samples * batch->seq_len, h = layer->hidden;
    const double cells = (double)t * (double)h, frozen = layer->frozen ? 1 : 2;
    snprintf(out.key, sizeof out.key, " hidden=%lld", (long long)h);
    if (strcmp(type, "transformer_block") == 0) {
        figures_of_block(layer, batch, &out);
    } else if (strcmp(type, "lm_head") == 0 || strcmp(type, "classifier") == 0) {
        figures_of_classes(layer, batch, type[0] == 'c', &out);
    } else if (strcmp(type, "linear") == 0) {
        out.weights = (double)h * (double)layer->outputs;
        out.backward = layer->bias ? round_up(4 * layer->outputs) : 0;
        out.backward_scratch = layer->bias ? stripe_bytes(t, layer->outputs) : 0;
        out.reads_input = !layer->frozen;
        out.forward_flops = 2 * (double)t * out.weights;
        out.backward_flops = frozen * out.forward_flops;
        snprintf(out.key, sizeof out.key, " inputs=%lld outputs=%lld", (long long)h,
                 (long long)layer->outputs);
    } else if (strcmp(type, "layer_norm") == 0) {
        out = (struct figures){2 * round_up(4 * t),
                               0,
                               round_up(8 * h),
                               0,
                               2 * stripe_bytes(t, h),
                               true,
                               false,
                               8 * cells,
                               16 * cells,
                               2 * (double)h,
                               -1,
                               {{0}},
                               {0}};
        snprintf(out.key, sizeof out.key, " hidden=%lld", (long long)h);
    } else if (strcmp(type, "embedding") == 0) {
        const int64_t positions = weft_embedding_positions(layer);
        out.reads_input = !layer->frozen;
        out.weights = cells;
        out.gradients = (double)h * (double)layer->vocab;
        out.forward_flops = positions > 0 ? cells : 0;
        out.backward_flops = layer->frozen ? 0 : positions > 0 ? 2 * cells : cells;
        snprintf(out.key, sizeof out.key, " vocab=%lld positions=%lld hidden=%lld",
                 (long long)layer->vocab, (long long)positions, (long long)h);
    } else {
        const bool relu = strcmp(type, "relu") == 0;
        out.reads_output = relu;
        out.reads_input = !relu;
        out.forward_flops = (relu ? 1 : 8) * cells;
        out.backward_flops = 2 * out.forward_flops;
    }
    return out;
}

static struct weft_layer random_layer(void)
{
    static const char *const types[] = {"transformer_block", "linear",    "lm_head", "classifier",
                                        "layer_norm",        "embedding", "relu",    "gelu"};
    const int64_t heads = draw_size(1, 12), type = draw_size(-4, 7);
    struct weft_layer layer = {.name = "l",
                               .kind = weft_kind_find(NULL, types[type < 0 ? 0 : type]),
                               .frozen = draw_size(0, 3) == 0,
                               .bias = draw_size(0, 1) == 1,
                               .tie = -1,
                               .hidden = type <= 0 ? heads * draw_size(1, 80) : draw_size(1, 3000),
                               .outputs = draw_size(2, 3000),
                               .vocab = draw_size(1, 70000)};
    if (type <= 0) layer.keys[WEFT_BLOCK_HEADS].integer = heads;
    if (type <= 0) layer.keys[WEFT_BLOCK_FFN].integer = draw_size(1, 5000);
    if (type == 5)
        layer.keys[WEFT_EMBEDDING_POSITIONS].integer = draw_size(0, 1) * draw_size(300, 900);
    weft_layer_complete(&layer);
    return layer;
}

static void check_splits(const struct weft_layer_work *work, const struct figures *hand)
{
    static const enum weft_recompute levels[] = {WEFT_RECOMPUTE_SELECTIVE, WEFT_RECOMPUTE_WHOLE};
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        const struct weft_layer_split *split = &work->splits[levels[i]],
                                      *by = &hand->splits[levels[i]];
        cr_assert_eq(split->possible, by->possible);
        cr_assert_eq(split->kept_bytes, by->kept_bytes);
        cr_assert_eq(split->dropped_bytes, by->dropped_bytes);
        cr_assert_eq(split->flops, by->flops);
    }
}

static void check_figures(const struct weft_layer *layer, const struct weft_batch *batch)
{
    const struct figures hand = figures_of(layer, batch);
    struct weft_error err = {0};
    struct weft_layer_work work = {0};
    struct weft_subject subject = {.layer = layer, .batch = batch, .gradients = -1};
    cr_assert_eq(weft_recipe_needs(&subject, &work, &err), WEFT_OK, "%s", err.text);
    cr_assert_not(subject.sizes.overflowed);
    cr_assert_eq(work.saved_bytes, hand.saved);
    cr_assert_eq(work.forward_temporary_bytes, hand.forward);
    cr_assert_eq(work.backward_temporary_bytes, hand.backward, "%s: %lld, by hand %lld",
                 layer->kind->type, (long long)work.backward_temporary_bytes,
                 (long long)hand.backward);
    cr_assert_eq(work.forward_scratch_bytes, hand.forward_scratch);
    cr_assert_eq(work.backward_scratch_bytes, hand.backward_scratch);
    cr_assert_eq(work.backward_reads_input, hand.reads_input);
    cr_assert_eq(work.backward_reads_output, hand.reads_output);
    cr_assert_eq(work.forward_flops, hand.forward_flops);
    cr_assert_eq(work.backward_flops, hand.backward_flops);
    cr_assert_eq(subject.weights, hand.weights);
    cr_assert_eq(subject.gradients, hand.gradients);
    check_splits(&work, &hand);
    struct weft_text key;
    weft_text_init(&key);
    weft_recipe_add_sizes(layer, &key);
    cr_assert_str_eq(weft_text_chars(&key), hand.key);
    weft_text_finish(&key);
}

Test(recipe_work, figures_of_random_layers_are_those_by_hand)
{
    for (int32_t i = 0; i < TEST_CASES(20000, 2000); i++) {
        const struct weft_layer layer = random_layer();
        const struct weft_batch batch = {.samples = draw_size(1, 9),
                                         .seq_len = draw_size(1, 300),
                                         .compute = (enum weft_dtype)draw_size(0, 2),
                                         .on_gpu = draw_size(0, 1) == 1,
                                         .plain = draw_size(0, 3) == 0};
        check_figures(&layer, &batch);
    }
}
