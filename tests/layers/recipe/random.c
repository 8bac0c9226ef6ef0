/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/layers/recipe/random.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "layers/recipe/op.h"
#include "layers/shared/keys.h"

static const struct weft_field random_keys[] = {WEFT_ROW_HIDDEN};

static int64_t draw_of(struct random_recipe *r, int64_t least, int64_t most)
{
    return least + (int64_t)weft_rng_below(r->seed, 11, r->drawn++, (uint64_t)(most - least + 1));
}

/* A text that lives as long as the recipe. */
WEFT_PRINTF(2, 3)
static const char *text_of(struct random_recipe *r, const char *format, ...)
{
    char *text = r->texts[r->n_texts++ % RANDOM_TEXTS];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, RANDOM_TEXT, format, arguments);
    va_end(arguments);
    return text;
}

/* The value that the next part reads. */
struct current {
    const char *name;
    int64_t columns;
};

/* Steps after which no part is added: branches end, and the limit is kept. */
enum { MANY_STEPS = 18 };

static struct weft_recipe_step *add_step_of(struct random_recipe *r, const struct weft_op *op,
                                            const char *in, const char *out)
{
    struct weft_recipe_step *step = &r->steps[r->recipe.n_steps++];
    *step = (struct weft_recipe_step){.op = op, .in = {in}, .out = {out}};
    return step;
}

static const char *new_name(struct random_recipe *r)
{
    return text_of(r, "v%d", (int)r->recipe.n_steps);
}

static struct weft_recipe_step *add_product(struct random_recipe *r, struct current *at,
                                            int64_t columns)
{
    struct weft_recipe_step *step = add_step_of(r, &weft_op_product, at->name, new_name(r));
    step->columns = text_of(r, "%d", (int)columns);
    step->tensors[0] = text_of(r, "w%d.weight", (int)r->recipe.n_steps);
    if (draw_of(r, 0, 1) == 1) {
        step->bias = "1";
        step->tensors[1] = text_of(r, "w%d.bias", (int)r->recipe.n_steps);
    }
    *at = (struct current){step->out[0], columns};
    return step;
}

static void add_norm(struct random_recipe *r, struct current *at)
{
    struct weft_recipe_step *step = add_step_of(r, &weft_op_norm, at->name, new_name(r));
    const bool layer = draw_of(r, 0, 1) == 0;
    step->kind = layer ? WEFT_WORD_LAYER : WEFT_WORD_RMS;
    if (!layer || draw_of(r, 0, 1) == 0) step->epsilon = "0.01";
    if (!layer && draw_of(r, 0, 1) == 0) step->shift = "1";
    if (!layer && at->columns % 2 == 0 && draw_of(r, 0, 1) == 0) step->parts = "2";
    step->tensors[0] = text_of(r, "n%d.weight", (int)r->recipe.n_steps);
    if (layer) step->tensors[1] = text_of(r, "n%d.bias", (int)r->recipe.n_steps);
    at->name = step->out[0];
}

static void add_activation(struct random_recipe *r, struct current *at)
{
    struct weft_recipe_step *step = add_step_of(r, &weft_op_activate, at->name, new_name(r));
    static const enum weft_word kinds[] = {WEFT_WORD_RELU, WEFT_WORD_GELU, WEFT_WORD_SQUARED_RELU,
                                           WEFT_WORD_GELU_ERF, WEFT_WORD_TANH};
    step->kind = kinds[draw_of(r, 0, 4)];
    at->name = step->out[0];
}

/* Rows of a table, by position or the first. */
static void add_table(struct random_recipe *r, struct current *at)
{
    struct weft_recipe_step *step = add_step_of(r, &weft_op_add_rows, at->name, new_name(r));
    const bool by_position = draw_of(r, 0, 1) == 0;
    step->positions = by_position ? "4" : NULL;
    step->vocab = by_position ? NULL : "2";
    step->tensors[0] = text_of(r, "t%d.table", (int)r->recipe.n_steps);
    if (draw_of(r, 0, 1) == 0) {
        step->first = "1";
        step->tensors[1] = text_of(r, "t%d.first", (int)r->recipe.n_steps);
    }
    at->name = step->out[0];
}

/* A product with its activation; the next part reads the activation. */
static void add_fused(struct random_recipe *r, struct current *at)
{
    struct weft_recipe_step *step = add_product(r, at, draw_of(r, 2, 20));
    step->then = WEFT_WORD_GELU;
    step->out[1] = text_of(r, "%sa", step->out[0]);
    at->name = step->out[1];
}

static void add_gate(struct random_recipe *r, struct current *at)
{
    const int64_t half = draw_of(r, 1, 12);
    add_product(r, at, 2 * half);
    const char *up = text_of(r, "%s[%d:%d]", at->name, (int)half, (int)(2 * half));
    struct weft_recipe_step *step =
        add_step_of(r, &weft_op_gate, text_of(r, "%s[0:%d]", at->name, (int)half), new_name(r));
    step->in[1] = up;
    step->kind = draw_of(r, 0, 1) == 0 ? WEFT_WORD_SILU : WEFT_WORD_GELU;
    *at = (struct current){step->out[0], half};
}

static void add_rope(struct random_recipe *r, struct current *at, int64_t columns, int64_t head_dim)
{
    struct weft_recipe_step *step =
        add_step_of(r, &weft_op_rope, text_of(r, "%s[0:%d]", at->name, (int)columns), new_name(r));
    step->head_dim = text_of(r, "%d", (int)head_dim);
    step->base = "100";
    at->name = step->out[0];
}

/* A mask, a scale and a cap of scores. Windows and caps compute probabilities again. */
static void draw_scores(struct random_recipe *r, struct weft_recipe_step *step)
{
    const bool again = draw_of(r, 0, 1) == 0;
    step->save = again ? WEFT_WORD_LOG_SUMS : WEFT_WORD_NONE;
    step->causal = draw_of(r, 0, 2) == 0 ? "0" : "1";
    if (draw_of(r, 0, 2) == 0) step->scalar = "3";
    if (again && draw_of(r, 0, 1) == 0) step->cap = "8";
    if (again && step->causal[0] == '1' && draw_of(r, 0, 1) == 0) step->window = "2";
}

static void add_attention(struct random_recipe *r, struct current *at)
{
    const int64_t kv = draw_of(r, 1, 2), heads = kv * draw_of(r, 1, 2), size = 2 * draw_of(r, 1, 3);
    const int64_t q = heads * size, k = q + kv * size, v = k + kv * size;
    add_product(r, at, v);
    if (draw_of(r, 0, 3) == 0) add_activation(r, at);
    if (draw_of(r, 0, 1) == 0) add_rope(r, at, draw_of(r, 0, 1) == 0 ? k : q, size);
    const char *keys = text_of(r, "%s[%d:%d]", at->name, (int)q, (int)k);
    const char *values = text_of(r, "%s[%d:%d]", at->name, (int)k, (int)v);
    struct weft_recipe_step *step =
        add_step_of(r, &weft_op_attend, text_of(r, "%s[0:%d]", at->name, (int)q), new_name(r));
    step->in[1] = keys;
    step->in[2] = values;
    step->heads = text_of(r, "%d", (int)heads);
    step->kv_heads = text_of(r, "%d", (int)kv);
    step->head_dim = text_of(r, "%d", (int)size);
    draw_scores(r, step);
    *at = (struct current){step->out[0], q};
}

/* Two products of one value; the second adds the first. */
static void add_pair(struct random_recipe *r, struct current *at)
{
    struct current first = *at;
    const int64_t columns = draw_of(r, 2, 20);
    add_product(r, &first, columns);
    add_product(r, at, columns)->add = first.name;
}

static void add_part(struct random_recipe *r, struct current *at)
{
    switch (draw_of(r, 0, 6)) {
    case 5:
        add_pair(r, at);
        break;
    case 0:
        add_fused(r, at);
        break;
    case 1:
        add_gate(r, at);
        break;
    case 2:
        add_attention(r, at);
        break;
    case 3:
        add_product(r, at, draw_of(r, 2, 20));
        if (draw_of(r, 0, 1) == 0) add_activation(r, at);
        break;
    case 4:
        if (at->columns % 2 == 0) add_rope(r, at, at->columns, 2);
        break;
    case 6:
        add_product(r, at, draw_of(r, 2, 20));
        add_table(r, at);
        break;
    }
}

/* A branch from a value back to it: parts, and a product that adds the value. */
static void add_branch(struct random_recipe *r, struct current *at)
{
    const struct current from = *at;
    if (draw_of(r, 0, 2) > 0) add_norm(r, at);
    for (int64_t n = draw_of(r, 1, 2); n > 0 && r->recipe.n_steps < MANY_STEPS + 4; n--)
        add_part(r, at);
    struct weft_recipe_step *step = add_product(r, at, from.columns);
    if (draw_of(r, 0, 4) == 0) {
        add_norm(r, at);
        step = add_step_of(r, &weft_op_add, at->name, new_name(r));
        step->in[1] = from.name;
        at->name = step->out[0];
        return;
    }
    if (draw_of(r, 0, 4) > 0) step->add = from.name;
    if (draw_of(r, 0, 7) > 0) return;
    /* A later reader, which no kernel can sum. */
    const struct current late = *at;
    *at = from;
    add_product(r, at, late.columns)->add = late.name;
}

void random_recipe_make(struct random_recipe *out, uint64_t seed)
{
    const int64_t width = 4 + (int64_t)(seed % 21);
    *out = (struct random_recipe){.seed = seed};
    struct current at = {"x", width};
    if (draw_of(out, 0, 3) == 0) add_norm(out, &at);
    for (int64_t n = draw_of(out, 0, 2); n > 0 && out->recipe.n_steps < MANY_STEPS; n--) {
        if (draw_of(out, 0, 2) == 0) add_part(out, &at);
        add_branch(out, &at);
    }
    if (at.columns != width) add_product(out, &at, width);
    if (draw_of(out, 0, 3) == 0 || out->recipe.n_steps == 0) add_activation(out, &at);
    if (draw_of(out, 0, 5) == 0 && width % 2 == 0) add_rope(out, &at, width, 2);
    struct weft_recipe_step *last = &out->steps[out->recipe.n_steps - 1];
    if (last->op == &weft_op_product && draw_of(out, 0, 3) == 0) {
        last->then = WEFT_WORD_GELU;
        last->out[1] = "y";
    } else {
        last->out[0] = "y";
    }
    out->recipe.steps = out->steps;
    out->recipe.recomputes = true;
    out->kind = (struct weft_kind){.type = "random",
                                   .text = "a random kind",
                                   .keys = random_keys,
                                   .n_keys = 1,
                                   .trains = true,
                                   WEFT_RECIPE(out->recipe)};
    out->layer = (struct weft_layer){.name = text_of(out, "recipe %d", (int)seed),
                                     .kind = &out->kind,
                                     .tie = -1,
                                     .hidden = width,
                                     .outputs = width};
}

void random_recipe_spoil(struct random_recipe *r)
{
    static const char *const texts[] = {"",
                                        "x",
                                        "x[0:1]",
                                        "y",
                                        "x[1:0]",
                                        "v0[",
                                        "v1[0:2]",
                                        "hidden/0",
                                        "hidden*hidden",
                                        "0",
                                        "99999",
                                        "(1",
                                        "-1",
                                        "3",
                                        "1 == 1",
                                        "seq_len",
                                        "9223372036854775807",
                                        "#",
                                        "x[:]",
                                        "x]0:1[",
                                        "v",
                                        "v0",
                                        "v2",
                                        "hidden % 7"};
    enum { TEXTS = sizeof texts / sizeof *texts };
    struct weft_recipe_step *step = &r->steps[draw_of(r, 0, r->recipe.n_steps - 1)];
    const char *text = texts[draw_of(r, 0, TEXTS - 1)];
    const char **const places[] = {
        &step->in[0],  &step->in[1],   &step->in[2],      &step->out[0],     &step->out[1],
        &step->add,    &step->when,    &step->tensors[0], &step->tensors[1], &step->columns,
        &step->bias,   &step->heads,   &step->kv_heads,   &step->head_dim,   &step->parts,
        &step->window, &step->epsilon, &step->base};
    enum { PLACES = sizeof places / sizeof *places };
    const int64_t at = draw_of(r, 0, PLACES + 3);
    if (at < PLACES) *places[at] = draw_of(r, 0, 5) == 0 ? NULL : text;
    if (at == PLACES) step->kind = (enum weft_word)draw_of(r, 0, WEFT_WORD_COUNT - 1);
    if (at == PLACES + 1) step->then = (enum weft_word)draw_of(r, 0, WEFT_WORD_COUNT - 1);
    if (at == PLACES + 2) r->recipe.n_steps = (int32_t)draw_of(r, 0, r->recipe.n_steps);
    if (at == PLACES + 3) *step = r->steps[draw_of(r, 0, r->recipe.n_steps - 1)];
}
