/* SPDX-License-Identifier: Apache-2.0 */
/* A recipe is a layer kind as an ordered list of steps. A step is an op of one closed table
 * (layers/ops/), with inputs, outputs, tensors and attributes. Everything else follows from the
 * steps (walk.h): tensors, saved activations and their offsets, temporaries, flops, levels of
 * recomputation, the profile key, forward and backward.
 *
 * Weft's own kinds are const tables. A kind with a recipe takes its functions from here:
 *
 *     static const struct weft_recipe_step steps[] = {
 *         {.op = &weft_op_product, .in = {"x"}, .out = {"y"}, .columns = "outputs", .bias = "bias",
 *          .init = WEFT_WORD_FAN_IN, .tensors = {"weight", "bias"}},
 *     };
 *     static const struct weft_recipe linear = {WEFT_STEPS(steps)};
 *
 * A value is a matrix of rows. The layer's input is "x" and its output "y"; a recipe that ends with
 * a loss has no "y". Every other value has the name that its step gives. A reference is a value,
 * or columns of it: "qkv[0:hidden]". Texts of sizes are expressions (expression.h) of the kind's
 * keys, earlier definitions, rows, samples and seq_len. */
#ifndef WEFT_LAYERS_RECIPE_RECIPE_H
#define WEFT_LAYERS_RECIPE_RECIPE_H

#include "spec/kind.h"

/* X(identifier, text): attributes of steps, as expressions. */
#define WEFT_STEP_SIZES(X)                                                                         \
    X(columns, "columns of a product's or table's result")                                         \
    X(bias, "1: a product has a bias")                                                             \
    X(heads, "heads of attention's queries")                                                       \
    X(kv_heads, "heads of attention's keys and values")                                            \
    X(head_dim, "columns of a head")                                                               \
    X(parts, "parts of a row that an rms norm normalises alone, with one weight")                  \
    X(causal, "1: a row attends to itself and earlier rows")                                       \
    X(window, "rows that a row attends to at most; 0: all")                                        \
    X(original, "sequence length before rope's scaling")                                           \
    X(vocab, "rows of a token table")                                                              \
    X(positions, "rows of a table of positions, or 0")                                             \
    X(first, "1: a learned row takes the place of a sample's first one")

/* X(identifier, text): attributes of steps, as texts: a number, or the name of a key. */
#define WEFT_STEP_NUMBERS(X)                                                                       \
    X(epsilon, "joins the mean of squares of a norm; left out in kind layer: 1e-05")               \
    X(base, "base of rope's wavelengths")                                                          \
    X(factor, "of rope's scaling; 0: none")                                                        \
    X(low, "rope's scaling divides waves longer than original / low")                              \
    X(high, "rope's scaling keeps waves shorter than original / high")                             \
    X(shift, "joins the weight of an rms norm")                                                    \
    X(scale, "multiplies rows of a token table; 0: none")                                          \
    X(scalar, "attention divides scores by its root; 0: by that of head_dim")                      \
    X(cap, "scores or logits x become cap tanh(x / cap); 0: none")

/* X(enumerator, name): attributes that are words. */
#define WEFT_WORDS(X)                                                                              \
    X(LAYER, "layer") /* of a norm */                                                              \
    X(RMS, "rms")                                                                                  \
    X(GELU, "gelu") /* of an activation */                                                         \
    X(SILU, "silu")                                                                                \
    X(RELU, "relu")                                                                                \
    X(SQUARED_RELU, "squared_relu")                                                                \
    X(GELU_ERF, "gelu_erf") /* with the error function; GELU is the tanh form */                   \
    X(TANH, "tanh")                                                                                \
    X(LOG_SUMS, "log_sums") /* attention saves logs of rows' sums; otherwise probabilities */      \
    X(FAN_IN, "fan_in")     /* initial values: of variance 1 / inputs */                           \
    X(RESIDUAL, "residual") /* of a matrix that closes a residual branch */
#define WEFT_WORD_ENUMERATOR(word, name) WEFT_WORD_##word,
enum weft_word { WEFT_WORD_NONE, WEFT_WORDS(WEFT_WORD_ENUMERATOR) WEFT_WORD_COUNT };
#undef WEFT_WORD_ENUMERATOR

/* The epsilon of a layer norm that gives none. */
#define WEFT_USUAL_EPSILON 1e-5

enum {
    WEFT_STEP_INPUTS = 3,
    WEFT_STEP_OUTPUTS = 2,
    WEFT_STEP_STATISTICS = 2,
    WEFT_STEP_TENSORS = 2,
    WEFT_RECIPE_STEPS = 32,
    WEFT_RECIPE_PRODUCTS = 16,
    WEFT_RECIPE_DEFINITIONS = 8,
    WEFT_RECIPE_DEMANDS = 8,
    WEFT_RECIPE_KEYS = 16
};

struct weft_op; /* op.h */
#define WEFT_STEP_TEXT(name, text) const char *name;
struct weft_recipe_step {
    const struct weft_op *op;
    const char *in[WEFT_STEP_INPUTS];       /* references */
    const char *out[WEFT_STEP_OUTPUTS];     /* names of new values */
    const char *add;                        /* reference, added to the product; or NULL */
    const char *when;                       /* the step is left out if this is 0; NULL: 1 */
    const char *tensors[WEFT_STEP_TENSORS]; /* names, as "attn.qkv.weight" */
    enum weft_word kind;                    /* of a norm or activation */
    enum weft_word then; /* the second output of a product: this activation of the first */
    enum weft_word init; /* of a product's weight; none: normal, of std WEFT_INIT_STD */
    enum weft_word save; /* of attention */
    /* Matrices that the rows of a product's weight and bias are cut into, as "attn.q:q attn.k:k":
     * names, and ends of rows as expressions. NULL: one. */
    const char *from;
    WEFT_STEP_SIZES(WEFT_STEP_TEXT)
    WEFT_STEP_NUMBERS(WEFT_STEP_TEXT)
};
#undef WEFT_STEP_TEXT

struct weft_recipe {
    const struct weft_recipe_step *steps;
    int32_t n_steps;
    bool recomputes;     /* offers all levels of recomputation */
    bool outputs_follow; /* the layer has as many outputs as "y" has columns */
    struct weft_definition {
        const char *name, *expression;
    } definitions[WEFT_RECIPE_DEFINITIONS]; /* in order; a NULL name ends them */
    /* Values of keys that are left out. */
    struct weft_recipe_default {
        const char *key, *expression;
    } defaults[WEFT_RECIPE_KEYS];
    const char *demands[WEFT_RECIPE_DEMANDS]; /* expressions that must not be 0; NULL ends them */
    /* The layer's part of the profile key: names and values of keys. None: all keys, in order. */
    struct weft_recipe_size {
        const char *name, *key;
    } sizes[WEFT_RECIPE_KEYS];
};
#define WEFT_STEPS(array) .steps = (array), .n_steps = sizeof(array) / sizeof *(array)

/* X(name): the closed table; each op has a file in layers/ops/. */
#define WEFT_OPS(X)                                                                                \
    X(product)                                                                                     \
    X(norm)                                                                                        \
    X(rope)                                                                                        \
    X(attend)                                                                                      \
    X(gate)                                                                                        \
    X(activate)                                                                                    \
    X(add)                                                                                         \
    X(embed)                                                                                       \
    X(mean_rows)                                                                                   \
    X(first_rows)                                                                                  \
    X(add_rows)                                                                                    \
    X(loss)
#define WEFT_OP_DECLARE(name) extern const struct weft_op weft_op_##name;
WEFT_OPS(WEFT_OP_DECLARE)
#undef WEFT_OP_DECLARE

/* Functions of a kind with a recipe; spec/kind.h states their contracts. */
enum weft_status weft_recipe_shape(const struct weft_layer *layer, double residual_std,
                                   struct weft_layer_shape *out, struct weft_error *err);
enum weft_status weft_recipe_needs(struct weft_subject *subject, struct weft_layer_work *work,
                                   struct weft_error *err);
/* Fills in outputs and defaults, and checks demands and defaults. */
void weft_recipe_complete(struct weft_layer *layer);
int32_t weft_recipe_check(const struct weft_layer *layer, struct weft_fault faults[WEFT_FAULTS]);
enum weft_status weft_recipe_parts(const struct weft_layer *layer, int32_t index,
                                   struct weft_tensor_part out[WEFT_PARTS], int32_t *n_parts,
                                   struct weft_error *err);
void weft_recipe_add_sizes(const struct weft_layer *layer, struct weft_text *out);
void weft_recipe_name_kept(const struct weft_layer *layer, const struct weft_batch *batch,
                           enum weft_recompute level, struct weft_text *out);
#define WEFT_RECIPE(table)                                                                         \
    .recipe = &(table), .shape = weft_recipe_shape, .needs = weft_recipe_needs,                    \
    .parts = weft_recipe_parts, .add_sizes = weft_recipe_add_sizes,                                \
    .name_kept = weft_recipe_name_kept

#endif
