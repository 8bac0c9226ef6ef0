/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/recipe/walk.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "layers/recipe/op.h"
#include "layers/shared/block.h"

static const struct weft_layer walk_block = {
    .name = "h.0",
    .kind = &weft_kind_transformer_block,
    .hidden = 64,
    .outputs = 64,
    .keys[WEFT_BLOCK_HEADS].integer = 4,
    .keys[WEFT_BLOCK_FFN].integer = 256,
};
static const struct weft_batch walk_batch = {.samples = 2, .seq_len = 64, .compute = WEFT_F32};

static struct weft_walk walk_of(enum weft_recompute level)
{
    struct weft_walk walk;
    struct weft_error err = {0};
    cr_assert_eq(weft_walk_derive(&walk_block, &walk_batch, level, &walk, &err), WEFT_OK, "%s",
                 err.text);
    return walk;
}

/* "ln1.mean" for statistics, "ln1" for outputs. */
static const struct weft_value *walk_value(const struct weft_walk *walk, const char *name)
{
    for (int32_t i = 0; i < walk->n_values; i++) {
        char full[64];
        const struct weft_value *value = &walk->values[i];
        snprintf(full, sizeof full, "%s%s%s", value->name, value->suffix != NULL ? "." : "",
                 value->suffix != NULL ? value->suffix : "");
        if (strcmp(full, name) == 0) return value;
    }
    cr_assert_fail("no value %s", name);
    return NULL;
}

Test(walk, saved_values_lie_in_the_order_of_steps)
{
    static const struct {
        const char *name;
        int64_t bytes;
        bool product;
    } values[] = {{"ln1.mean", 512, false},
                  {"ln1.rstd", 512, false},
                  {"ln1", 32768, false},
                  {"qkv", 98304, true},
                  {"attention.probabilities", 131072, false},
                  {"attention", 32768, false},
                  {"residual", 32768, true},
                  {"ln2.mean", 512, false},
                  {"ln2.rstd", 512, false},
                  {"ln2", 32768, false},
                  {"fc", 131072, true},
                  {"gelu", 131072, false}};
    static const enum weft_recompute levels[] = {WEFT_RECOMPUTE_NONE, WEFT_RECOMPUTE_SELECTIVE,
                                                 WEFT_RECOMPUTE_WHOLE};
    for (size_t l = 0; l < sizeof levels / sizeof *levels; l++) {
        const enum weft_recompute level = levels[l];
        const struct weft_walk walk = walk_of(level);
        int64_t kept = 0, dropped = 0;
        for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
            const struct weft_value *value = walk_value(&walk, values[i].name);
            const bool keeps = level == WEFT_RECOMPUTE_NONE ||
                               (level == WEFT_RECOMPUTE_SELECTIVE && values[i].product);
            int64_t *at = keeps ? &kept : &dropped;
            cr_expect_eq(value->location, keeps ? WEFT_VALUE_KEPT : WEFT_VALUE_DROPPED);
            cr_expect_eq(value->offset, *at, "%s", values[i].name);
            *at += values[i].bytes;
        }
        cr_expect_eq(walk.kept_bytes, kept);
        cr_expect_eq(walk.dropped_bytes, dropped);
        cr_expect_eq(walk_value(&walk, "x")->location, WEFT_VALUE_INPUT);
        cr_expect_eq(walk_value(&walk, "y")->location, WEFT_VALUE_OUTPUT);
    }
}

Test(walk, levels_restore_the_steps_of_dropped_values)
{
    static const enum weft_restore restores[WEFT_RECOMPUTE_COUNT][7] = {
        [WEFT_RECOMPUTE_SELECTIVE] = {WEFT_RESTORE_ALL, WEFT_RESTORE_NONE, WEFT_RESTORE_ALL,
                                      WEFT_RESTORE_NONE, WEFT_RESTORE_ALL, WEFT_RESTORE_THEN,
                                      WEFT_RESTORE_NONE},
        [WEFT_RECOMPUTE_WHOLE] = {WEFT_RESTORE_ALL, WEFT_RESTORE_ALL, WEFT_RESTORE_ALL,
                                  WEFT_RESTORE_ALL, WEFT_RESTORE_ALL, WEFT_RESTORE_ALL,
                                  WEFT_RESTORE_NONE},
    };
    static const enum weft_recompute levels[] = {WEFT_RECOMPUTE_NONE, WEFT_RECOMPUTE_SELECTIVE,
                                                 WEFT_RECOMPUTE_WHOLE};
    for (size_t l = 0; l < sizeof levels / sizeof *levels; l++) {
        const enum weft_recompute level = levels[l];
        const struct weft_walk walk = walk_of(level);
        for (int32_t i = 0; i < 7; i++)
            cr_expect_eq(walk.steps[i].restore, restores[level][i], "level %d, step %d", (int)level,
                         (int)i);
    }
}

/* The name of a gradient's value, "dy" or "dx". */
static const char *gradient_name(const struct weft_walk *walk, int32_t gradient)
{
    if (gradient == WEFT_WALK_NONE) return "-";
    if (gradient == WEFT_GRADIENT_OUTPUT) return "dy";
    if (gradient == WEFT_GRADIENT_INPUT) return "dx";
    if (gradient == WEFT_GRADIENT_SAVED) return "saved";
    return walk->values[walk->gradients[gradient].value].name;
}

/* "op: d_out > d_in + old" of each step, the last one first. */
static void describe_backward(const struct weft_walk *walk, struct weft_text *out)
{
    for (int32_t i = walk->n_steps - 1; i >= 0; i--) {
        const struct weft_walk_step *step = &walk->steps[i];
        weft_text_addf(out, "%s: %s > %s", step->op->name, gradient_name(walk, step->d_out),
                       gradient_name(walk, step->d_in[0]));
        if (step->old[0] != WEFT_WALK_NONE)
            weft_text_addf(out, " + %s", gradient_name(walk, step->old[0]));
        if (step->slope != WEFT_WALK_NONE) weft_text_add(out, " slope");
        weft_text_add(out, "\n");
    }
}

Test(walk, gradients_meet_without_a_pass_of_their_own)
{
    const struct weft_walk walk = walk_of(WEFT_RECOMPUTE_NONE);
    struct weft_text text;
    weft_text_init(&text);
    describe_backward(&walk, &text);
    cr_assert_str_eq(weft_text_chars(&text), "product: dy > gelu slope\n"
                                             "product: gelu > ln2\n"
                                             "norm: ln2 > residual + dy\n"
                                             "product: residual > attention\n"
                                             "attend: attention > qkv\n"
                                             "product: qkv > ln1\n"
                                             "norm: ln1 > dx + residual\n");
    weft_text_finish(&text);
}

/* Gradients that live in a common step share no byte. */
Test(walk, temporaries_that_live_together_do_not_overlap)
{
    const struct weft_walk walk = walk_of(WEFT_RECOMPUTE_NONE);
    for (int32_t i = WEFT_GRADIENT_GIVEN; i < walk.n_gradients; i++) {
        const struct weft_gradient *a = &walk.gradients[i];
        const int64_t a_bytes =
            walk_batch.samples * walk_batch.seq_len * walk.values[a->value].columns * 4;
        cr_expect_leq(a->offset + a_bytes, walk.scores);
        for (int32_t k = i + 1; k < walk.n_gradients; k++) {
            const struct weft_gradient *b = &walk.gradients[k];
            const int64_t b_bytes =
                walk_batch.samples * walk_batch.seq_len * walk.values[b->value].columns * 4;
            cr_expect(a->last < b->first || b->last < a->first ||
                          a->offset + a_bytes <= b->offset || b->offset + b_bytes <= a->offset,
                      "%s and %s", walk.values[a->value].name, walk.values[b->value].name);
        }
    }
}

Test(walk, tensors_are_those_of_the_steps)
{
    static const char *const names[] = {"ln1.weight",    "ln1.bias",         "attn.qkv.weight",
                                        "attn.qkv.bias", "attn.proj.weight", "attn.proj.bias",
                                        "ln2.weight",    "ln2.bias",         "mlp.fc.weight",
                                        "mlp.fc.bias",   "mlp.proj.weight",  "mlp.proj.bias"};
    const struct weft_walk walk = walk_of(WEFT_RECOMPUTE_NONE);
    struct weft_layer_shape shape = {0};
    struct weft_error err = {0};
    cr_assert_eq(weft_recipe_shape(&walk_block, 0.5, &shape, &err), WEFT_OK);
    cr_assert_eq(walk.n_tensors, 12);
    cr_assert_eq(shape.n_tensors, 12);
    for (int32_t i = 0; i < 12; i++) {
        cr_expect_str_eq(shape.tensors[i].name, names[i]);
        cr_expect_eq(shape.tensors[i].decays, shape.tensors[i].columns > 0);
    }
    cr_expect_eq(shape.tensors[2].rows, 192);
    cr_expect_eq(shape.tensors[2].init_std, WEFT_INIT_STD);
    cr_expect_eq(shape.tensors[10].columns, 256);
    cr_expect_eq(shape.tensors[10].init_std, 0.5);
}

Test(walk, notes_sizes_beyond_63_bits)
{
    struct weft_layer layer = walk_block;
    struct weft_walk walk;
    struct weft_error err = {0};
    layer.keys[WEFT_BLOCK_FFN].integer = INT64_MAX / 2;
    cr_assert_eq(weft_walk_derive(&layer, &walk_batch, WEFT_RECOMPUTE_NONE, &walk, &err), WEFT_OK);
    cr_assert(walk.fits.overflowed);
}

/* Kinds of wrong recipes, each with its reason. */

static const struct weft_field wrong_keys[] = {
    {"hidden", WEFT_FIELD_INTEGER, WEFT_LAYER_AT(hidden), NULL, 1, 100, NULL, NULL, "width"}};

static void refuses_steps(const struct weft_recipe_step *steps, int32_t n, const char *reason)
{
    const struct weft_recipe recipe = {.steps = steps, .n_steps = n};
    const struct weft_kind kind = {
        .type = "wrong", .keys = wrong_keys, .n_keys = 1, .recipe = &recipe};
    const struct weft_layer layer = {.name = "l", .kind = &kind, .hidden = 8, .outputs = 8};
    struct weft_walk walk;
    struct weft_error err = {0};
    cr_expect_eq(weft_walk_derive(&layer, &walk_batch, WEFT_RECOMPUTE_NONE, &walk, &err),
                 WEFT_E_DATA, "not refused: %s", reason);
    cr_expect(strstr(err.text, reason) != NULL, "\"%s\" does not say \"%s\"", err.text, reason);
}
#define REFUSES(reason, ...)                                                                       \
    do {                                                                                           \
        const struct weft_recipe_step steps[] = {__VA_ARGS__};                                     \
        refuses_steps(steps, sizeof steps / sizeof *steps, reason);                                \
    } while (0)
#define PRODUCT(from, to, width)                                                                   \
    {                                                                                              \
        .op = &weft_op_product, .in = {from}, .out = {to}, .columns = width, .tensors = { to }     \
    }
#define RELU(from, to)                                                                             \
    {                                                                                              \
        .op = &weft_op_activate, .in = {from}, .out = {to}, .kind = WEFT_WORD_RELU                 \
    }

Test(walk, refuses_wrong_steps)
{
    REFUSES("no earlier step makes \"z\"", PRODUCT("z", "y", "hidden"));
    REFUSES("there is no key or definition \"widht\"", PRODUCT("x", "y", "widht"));
    REFUSES("steps[0]: \"hidden/3\": 8 / 3 leaves a rest", PRODUCT("x", "y", "hidden/3"));
    REFUSES("another step makes \"a\"", PRODUCT("x", "a", "hidden"), RELU("x", "a"));
    REFUSES("no step reads \"a\"", PRODUCT("x", "a", "hidden"), RELU("x", "y"));
    REFUSES("no step reads \"b\"",
            {.op = &weft_op_product,
             .in = {"x"},
             .out = {"a", "b"},
             .columns = "8",
             .then = WEFT_WORD_GELU,
             .tensors = {"w"}},
            PRODUCT("x", "y", "8"));
    REFUSES("no step makes \"y\"", PRODUCT("x", "a", "hidden"));
    REFUSES("\"a[2:9]\" is columns 2 to 9 of 8", PRODUCT("x", "a", "hidden"), RELU("a[2:9]", "y"));
    REFUSES("\"a[2]\" is no value[from:to]", PRODUCT("x", "a", "hidden"), RELU("a[2]", "y"));
    REFUSES("its input must be all of \"a\"", PRODUCT("x", "a", "hidden*2"), RELU("a[0:8]", "y"));
    REFUSES("its input must be all of \"a\"", PRODUCT("x", "a", "hidden*2"),
            {.op = &weft_op_norm,
             .in = {"a[0:8]"},
             .out = {"y"},
             .kind = WEFT_WORD_LAYER,
             .tensors = {"w", "b"}});
    REFUSES("\"y\" has 9 columns, and the layer 8 outputs", PRODUCT("x", "y", "hidden + 1"));
    REFUSES("\"columns\" is missing",
            {.op = &weft_op_product, .in = {"x"}, .out = {"y"}, .tensors = {"w"}});
    REFUSES(
        "it has no \"heads\"",
        {.op = &weft_op_activate, .in = {"x"}, .out = {"y"}, .kind = WEFT_WORD_RELU, .heads = "1"});
    REFUSES("it has a \"kind\": ", {.op = &weft_op_activate, .in = {"x"}, .out = {"y"}});
    REFUSES("it has 0 inputs and needs 1", {.op = &weft_op_product, .out = {"y"}, .columns = "8"});
    REFUSES("tensor 0 has no name",
            {.op = &weft_op_product, .in = {"x"}, .out = {"y"}, .columns = "8"});
    REFUSES("it makes no second value \"z\"",
            {.op = &weft_op_activate, .in = {"x"}, .out = {"y", "z"}, .kind = WEFT_WORD_RELU});
}

#define LOSS(from)                                                                                 \
    {                                                                                              \
        .op = &weft_op_loss, .in = {from}, .out = { "d_logits" }                                   \
    }

Test(walk, a_loss_reads_a_product_of_its_own)
{
    const char *const reason = "its input must be the whole result of a product";
    REFUSES(reason, RELU("x", "a"), LOSS("a"));
    REFUSES(reason, PRODUCT("x", "a", "16"), LOSS("a[0:8]"));
    REFUSES(reason, LOSS("x"));
}

/* A chain of products, each with a tensor. */
Test(walk, refuses_more_tensors_than_a_call_has)
{
    static char names[WEFT_LAYER_TENSORS + 1][8];
    struct weft_recipe_step steps[WEFT_LAYER_TENSORS + 1] = {0};
    for (int i = 0; i <= WEFT_LAYER_TENSORS; i++) {
        snprintf(names[i], sizeof names[i], "%s", i < WEFT_LAYER_TENSORS ? "a0" : "y");
        if (i < WEFT_LAYER_TENSORS) names[i][1] = (char)('a' + i);
        steps[i] = (struct weft_recipe_step)PRODUCT(i > 0 ? names[i - 1] : "x", names[i], "8");
    }
    refuses_steps(steps, WEFT_LAYER_TENSORS + 1, "more than 12 tensors");
}

Test(walk, refuses_numbers_of_steps_beyond_the_limits)
{
    const struct weft_recipe_step many[WEFT_RECIPE_STEPS + 1] = {RELU("x", "y")};
    refuses_steps(many, 0, "a recipe has 1 to 32 steps");
    refuses_steps(many, WEFT_RECIPE_STEPS + 1, "a recipe has 1 to 32 steps");
    refuses_steps(&(struct weft_recipe_step){.op = &weft_op_activate,
                                             .in = {"x"},
                                             .out = {"y"},
                                             .kind = WEFT_WORD_RELU,
                                             .when = "hidden == 7"},
                  1, "no step is left");
}

/* Whether rows depend on earlier ones through a cache alone, and a row's elements in it. */
static void check_generation(const struct weft_layer *layer, bool by_rows, int64_t columns)
{
    struct weft_walk walk;
    struct weft_error err = {0};
    cr_assert_eq(weft_walk_derive(layer, &walk_batch, WEFT_RECOMPUTE_NONE, &walk, &err), WEFT_OK,
                 "%s", err.text);
    cr_expect_eq(walk.by_rows, by_rows, "%s", layer->kind->type);
    cr_expect_eq(walk.cache_columns, columns, "%s", layer->kind->type);
}

Test(walk, rows_with_causal_attention_alone_can_be_generated)
{
    struct weft_layer llama = walk_block, classifier = {.name = "c", .hidden = 64, .outputs = 64};
    llama.kind = &weft_kind_llama_block;
    llama.keys[WEFT_BLOCK_KV_HEADS].integer = 2;
    llama.keys[WEFT_BLOCK_HEAD_DIM].integer = 16;
    llama.keys[WEFT_BLOCK_ROPE_BASE].number = 100;
    struct weft_layer head = classifier;
    classifier.kind = &weft_kind_classifier;
    head.kind = &weft_kind_lm_head;
    head.vocab = head.outputs;
    check_generation(&walk_block, true, 2 * 64);
    check_generation(&llama, true, 2 * 32);
    check_generation(&head, true, 0);
    check_generation(&classifier, false, 0);
}

/* The layer's input belongs to the layer before: rope copies it, and turns its gradient apart. */
Test(walk, computes_nothing_on_the_input)
{
    static const struct weft_recipe_step steps[] = {
        {.op = &weft_op_rope, .in = {"x"}, .out = {"a"}, .head_dim = "2", .base = "10"},
        PRODUCT("a", "y", "8")};
    const struct weft_recipe recipe = {WEFT_STEPS(steps)};
    const struct weft_kind kind = {
        .type = "rope", .keys = wrong_keys, .n_keys = 1, .recipe = &recipe};
    const struct weft_layer layer = {.name = "l", .kind = &kind, .hidden = 8, .outputs = 8};
    struct weft_walk walk;
    struct weft_error err = {0};
    cr_assert_eq(weft_walk_derive(&layer, &walk_batch, WEFT_RECOMPUTE_NONE, &walk, &err), WEFT_OK,
                 "%s", err.text);
    cr_expect_not(walk.steps[0].in_place);
    cr_expect_geq(walk.steps[0].d_out, WEFT_GRADIENT_GIVEN);
    cr_expect_eq(walk.steps[0].turned, WEFT_GRADIENT_INPUT);
}

Test(walk, refuses_values_that_do_not_fit)
{
    REFUSES("a sum that no kernel computes", PRODUCT("x", "a", "8"),
            {.op = &weft_op_product,
             .in = {"x"},
             .out = {"b"},
             .columns = "8",
             .add = "a",
             .tensors = {"v"}},
            {.op = &weft_op_product,
             .in = {"a"},
             .out = {"y"},
             .columns = "8",
             .add = "b",
             .tensors = {"w"}});
    REFUSES("no step may read \"y\"", RELU("x", "y"), PRODUCT("y", "a", "8"));
    REFUSES("inputs 1 and 2 share columns", PRODUCT("x", "a", "12"),
            {.op = &weft_op_attend,
             .in = {"a[0:4]", "a[4:8]", "a[6:10]"},
             .out = {"y"},
             .heads = "1",
             .kv_heads = "1",
             .head_dim = "4"});
    REFUSES("another tensor is named \"a\"", PRODUCT("x", "a", "hidden"),
            {.op = &weft_op_product, .in = {"a"}, .out = {"y"}, .columns = "8", .tensors = {"a"}});
    REFUSES("\"add\" needs a whole value of 8 columns", PRODUCT("x", "a", "9"),
            {.op = &weft_op_product,
             .in = {"a"},
             .out = {"y"},
             .columns = "8",
             .add = "a",
             .tensors = {"w"}});
    REFUSES("input 1 has 8 columns; 1 heads of 4 need another number", PRODUCT("x", "a", "4"),
            PRODUCT("x", "b", "8"), PRODUCT("x", "c", "4"),
            {.op = &weft_op_attend,
             .in = {"a", "b", "c"},
             .out = {"y"},
             .heads = "1",
             .kv_heads = "1",
             .head_dim = "4"});
    REFUSES("steps read 4 of the 8 columns of \"a\"", PRODUCT("x", "a", "8"),
            PRODUCT("a[0:4]", "y", "8"));
    REFUSES("whole result of a product", RELU("x", "a"),
            {.op = &weft_op_loss, .in = {"a"}, .out = {"d"}});
    REFUSES("cannot add to their gradient", PRODUCT("x", "a", "8"), RELU("a", "b"), RELU("a", "c"),
            {.op = &weft_op_product,
             .in = {"b"},
             .out = {"y"},
             .columns = "8",
             .add = "c",
             .tensors = {"w"}});
}
