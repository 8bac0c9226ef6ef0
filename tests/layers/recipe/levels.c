/* SPDX-License-Identifier: Apache-2.0 */
/* Derived levels of recomputation, next to all sets of kept groups. */
#include <criterion/criterion.h>
#include <string.h>

#include "base/text.h"
#include "layers/recipe/derive.h"
#include "layers/shared/block.h"
#include "tests/effort.h"
#include "tests/layers/recipe/random.h"

enum { MOST_GROUPS = 12, MOST_SETS = 1 << MOST_GROUPS };

/* A set of kept groups: bytes, and flops of the time that restoring the others takes. */
struct kept_set {
    uint64_t keeps;
    double bytes, cost;
};

static double bytes_of(const struct weft_walk *walk, int32_t value)
{
    const struct weft_value *at = &walk->values[value];
    return (double)(at->rows * at->columns * weft_value_element(walk, at));
}

static double cost_of(const struct weft_walk *walk, const struct weft_walk_step *step)
{
    double bytes = 0;
    if (step->restore == WEFT_RESTORE_NONE) return 0;
    if (step->restore == WEFT_RESTORE_THEN) return 160 * 2 * bytes_of(walk, step->out[1]);
    for (int32_t i = 0; i < step->n_in; i++) {
        const struct weft_value *in = &walk->values[step->in[i].value];
        bytes += bytes_of(walk, step->in[i].value) * (double)weft_span_width(&step->in[i]) /
                 (double)in->columns;
    }
    if (step->add.value != WEFT_WALK_NONE) bytes += bytes_of(walk, step->add.value);
    for (int32_t i = 0; i < step->n_out; i++)
        bytes += bytes_of(walk, step->out[i]);
    for (int32_t i = 0; i < step->n_statistics; i++)
        bytes += bytes_of(walk, step->statistics[i]);
    for (int32_t i = 0; i < step->n_tensors; i++) {
        const struct weft_layer_tensor *tensor = &walk->tensors[step->first_tensor + i];
        bytes += (double)(tensor->rows * (tensor->columns > 0 ? tensor->columns : 1) *
                          weft_dtype_bytes(walk->batch.compute));
    }
    const double flops = step->op->counts ? step->op->flops(walk, step) : 0;
    return flops > 160 * bytes ? flops : 160 * bytes;
}

static struct kept_set set_of(struct weft_walk *walk, uint64_t keeps)
{
    struct kept_set out = {.keeps = keeps};
    weft_walk_keep(walk, WEFT_RECOMPUTE_WHOLE, keeps);
    out.bytes = (double)walk->kept_bytes;
    for (int32_t i = 0; i < walk->n_steps; i++)
        out.cost += cost_of(walk, &walk->steps[i]);
    return out;
}

static struct weft_walk walk_of(const struct weft_layer *layer, const struct weft_batch *batch)
{
    struct weft_walk walk;
    struct weft_error err = {0};
    cr_assert_eq(weft_walk_derive(layer, batch, WEFT_RECOMPUTE_NONE, &walk, &err), WEFT_OK, "%s",
                 err.text);
    return walk;
}

/* Every level is a corner of the lower hull of all sets: no mix of two sets, with as many bytes,
 * costs less. Each keeps fewer bytes than the one before. */
static void check_hull(const char *name, const struct weft_layer *layer,
                       const struct weft_batch *batch)
{
    static const enum weft_recompute derived[] = {WEFT_RECOMPUTE_LIGHT, WEFT_RECOMPUTE_MEDIUM,
                                                  WEFT_RECOMPUTE_DEEP};
    static struct kept_set sets[MOST_SETS];
    struct weft_walk walk = walk_of(layer, batch);
    const struct weft_walk_levels levels = weft_walk_levels(&walk);
    const uint64_t all = levels.keeps[WEFT_RECOMPUTE_NONE];
    double before = (double)walk.kept_bytes;
    int32_t n = 0, n_derived = 0;
    for (uint64_t keeps = all;; keeps = (keeps - 1) & all) {
        cr_assert_lt(n, MOST_SETS);
        sets[n++] = set_of(&walk, keeps);
        if (keeps == 0) break;
    }
    for (size_t i = 0; i < sizeof derived / sizeof *derived; i++) {
        if ((levels.possible & 1u << derived[i]) == 0) continue;
        const struct kept_set at = set_of(&walk, levels.keeps[derived[i]]);
        n_derived++;
        cr_expect(at.bytes < before && at.bytes > 0, "%s: %s keeps %g of %g bytes", name,
                  weft_recompute_names[derived[i]], at.bytes, before);
        before = at.bytes;
        for (int32_t a = 0; a < n; a++) {
            for (int32_t b = 0; b < n; b++) {
                if (sets[a].bytes > at.bytes || sets[b].bytes < at.bytes ||
                    sets[a].bytes == sets[b].bytes)
                    continue;
                const double part = (at.bytes - sets[a].bytes) / (sets[b].bytes - sets[a].bytes);
                const double mixed = sets[a].cost + part * (sets[b].cost - sets[a].cost);
                cr_assert_geq(mixed * (1 + 1e-12), at.cost, "%s: %s costs %g, a mix %g", name,
                              weft_recompute_names[derived[i]], at.cost, mixed);
            }
        }
    }
    cr_expect_geq(n_derived, 2, "%s", name);
}

static struct weft_layer layer_of(const struct weft_kind *kind, int64_t hidden, int64_t heads,
                                  int64_t kv_heads, int64_t ffn)
{
    struct weft_layer layer = {.name = "l", .kind = kind, .tie = -1, .hidden = hidden};
    layer.keys[WEFT_BLOCK_HEADS].integer = heads;
    layer.keys[WEFT_BLOCK_KV_HEADS].integer = kv_heads;
    layer.keys[WEFT_BLOCK_FFN].integer = ffn;
    layer.keys[WEFT_BLOCK_EPS].number = 1e-5;
    layer.keys[WEFT_BLOCK_ROPE_BASE].number = 10000;
    weft_layer_complete(&layer);
    return layer;
}

Test(levels, of_blocks_are_corners_of_the_hull_of_all_sets)
{
    const struct weft_layer gpt2 = layer_of(&weft_kind_transformer_block, 1600, 25, 25, 6400);
    const struct weft_layer llama = layer_of(&weft_kind_llama_block, 4096, 32, 8, 14336);
    check_hull("gpt2-xl", &gpt2,
               &(struct weft_batch){.samples = 4, .seq_len = 1024, .compute = WEFT_BF16});
    check_hull(
        "gpt2-xl, a GPU", &gpt2,
        &(struct weft_batch){.samples = 4, .seq_len = 1024, .compute = WEFT_BF16, .on_gpu = true});
    check_hull(
        "llama-3-8b", &llama,
        &(struct weft_batch){.samples = 1, .seq_len = 8192, .compute = WEFT_BF16, .on_gpu = true});
    check_hull("2 x 4096", &llama,
               &(struct weft_batch){.samples = 2, .seq_len = 4096, .compute = WEFT_BF16});
}

static void expect_names(const struct weft_layer *layer, const struct weft_batch *batch,
                         enum weft_recompute level, const char *names)
{
    struct weft_text text;
    weft_text_init(&text);
    weft_recipe_name_kept(layer, batch, level, &text);
    cr_expect_str_eq(weft_text_chars(&text), names);
    weft_text_finish(&text);
}

/* At 8,192 tokens attention costs more a byte than any product. Where selective is a corner, no
 * derived level repeats it. */
Test(levels, keep_the_values_that_cost_most_a_byte)
{
    const struct weft_layer gpt2 = layer_of(&weft_kind_transformer_block, 1600, 25, 25, 6400);
    const struct weft_layer llama = layer_of(&weft_kind_llama_block, 4096, 32, 8, 14336);
    const struct weft_batch cpu = {.samples = 4, .seq_len = 1024, .compute = WEFT_BF16};
    const struct weft_batch gpu = {
        .samples = 4, .seq_len = 1024, .compute = WEFT_BF16, .on_gpu = true};
    const struct weft_batch longer = {
        .samples = 1, .seq_len = 8192, .compute = WEFT_BF16, .on_gpu = true};
    expect_names(&llama, &longer, WEFT_RECOMPUTE_LIGHT,
                 "qkv, attention (log_sums, output), residual, gate_up");
    expect_names(&llama, &longer, WEFT_RECOMPUTE_MEDIUM, "qkv, attention (log_sums, output)");
    expect_names(&llama, &longer, WEFT_RECOMPUTE_DEEP, "attention (log_sums, output)");
    expect_names(&gpt2, &gpu, WEFT_RECOMPUTE_LIGHT,
                 "qkv, attention (probabilities, output), residual, fc, gelu");
    expect_names(&gpt2, &cpu, WEFT_RECOMPUTE_SELECTIVE, "qkv, residual, fc");
    expect_names(&gpt2, &cpu, WEFT_RECOMPUTE_WHOLE, "the layer's input alone");
    struct weft_walk walk = walk_of(&gpt2, &cpu);
    const struct weft_walk_levels levels = weft_walk_levels(&walk);
    cr_expect_eq(levels.possible & 1u << WEFT_RECOMPUTE_MEDIUM, 0);
    cr_expect_neq(levels.possible & 1u << WEFT_RECOMPUTE_LIGHT, 0);
    cr_expect_neq(levels.possible & 1u << WEFT_RECOMPUTE_DEEP, 0);
    struct weft_error err = {0};
    cr_expect_eq(weft_walk_derive(&gpt2, &cpu, WEFT_RECOMPUTE_MEDIUM, &walk, &err), WEFT_E_DATA);
    cr_expect_not_null(strstr(err.text, "it has no level \"medium\""), "%s", err.text);
}

/* A GPU's product and its activation have bits of their own, so no level keeps one of both. */
Test(levels, of_a_gpu_restore_no_activation_alone)
{
    static struct random_recipe random;
    int32_t n = 0;
    for (int32_t i = 0; i < TEST_CASES(600, 150); i++) {
        random_recipe_make(&random, 9000 + (uint64_t)i);
        for (int level = WEFT_RECOMPUTE_FIRST; level < WEFT_RECOMPUTE_COUNT; level++) {
            const struct weft_batch batch = {
                .samples = 2, .seq_len = 9, .compute = WEFT_F32, .on_gpu = true};
            struct weft_walk walk;
            struct weft_error err = {0};
            if (weft_walk_derive(&random.layer, &batch, (enum weft_recompute)level, &walk, &err) !=
                WEFT_OK)
                continue;
            for (int32_t s = 0; s < walk.n_steps; s++)
                cr_assert_neq(walk.steps[s].restore, WEFT_RESTORE_THEN, "recipe %d, level %d",
                              (int)i, level);
            n++;
        }
    }
    cr_assert_gt(n, 100);
}
