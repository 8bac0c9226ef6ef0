/* SPDX-License-Identifier: Apache-2.0 */
/* A walk is a recipe with sizes: for one layer, batch and level of recomputation. It has each step
 * with its values, the offsets of saved activations and temporaries, and the way of each gradient.
 * A back end runs forward over the steps in order, and backward in reverse.
 *
 * A value has a place, which it shares with the values that are computed on it in place. A saved
 * place is one that a backward reads. Kept ones are in the layer's saved bytes, dropped ones follow
 * the other parts of its temporary bytes (weft_dropped_offset). */
#ifndef WEFT_LAYERS_RECIPE_WALK_H
#define WEFT_LAYERS_RECIPE_WALK_H

#include "layers/recipe/recipe.h"

enum { WEFT_WALK_NONE = -1 };
enum { WEFT_WALK_VALUES = 1 + WEFT_RECIPE_STEPS * 2 };

enum weft_value_dtype { WEFT_VALUE_COMPUTE, WEFT_VALUE_F32, WEFT_VALUE_INT32 };

enum weft_value_location {
    WEFT_VALUE_INPUT,    /* the call's input */
    WEFT_VALUE_OUTPUT,   /* the call's output */
    WEFT_VALUE_KEPT,     /* at an offset of the saved bytes */
    WEFT_VALUE_DROPPED,  /* at an offset of the dropped bytes */
    WEFT_VALUE_TEMPORARY /* at an offset of forward's temporary bytes */
};

struct weft_value {
    const char *name;   /* that of a statistic is its step's output */
    const char *suffix; /* of a statistic; otherwise NULL */
    enum weft_value_dtype dtype;
    int64_t rows, columns;
    int64_t gap;       /* elements between rows, neither read nor written */
    int32_t maker;     /* step, or WEFT_WALK_NONE for the input */
    int32_t place;     /* value with the memory */
    int32_t n_readers; /* steps that read it in forward */
    int32_t reader;    /* the last of them, or WEFT_WALK_NONE */
    bool is_needed;    /* a backward reads it */
    bool trains;       /* a tensor comes before it, so backward needs its gradient */
    enum weft_value_location location; /* of a place */
    int64_t offset;                    /* of a place; bytes, -1 if a size overflows */
};

/* Columns from `from` up to `to` of a value. */
struct weft_span {
    int32_t value; /* or WEFT_WALK_NONE */
    int64_t from, to;
};

/* Gradients 0 to 2 are given; the others are temporaries of backward. */
enum {
    WEFT_GRADIENT_OUTPUT, /* the call's output_gradient */
    WEFT_GRADIENT_INPUT,  /* the call's input_gradient */
    WEFT_GRADIENT_SAVED,  /* the output of a loss, which is the gradient of its input */
    WEFT_GRADIENT_GIVEN,
    WEFT_WALK_GRADIENTS = WEFT_GRADIENT_GIVEN + WEFT_WALK_VALUES
};

/* The gradient of a value, with the rows and columns of it. */
struct weft_gradient {
    int32_t value;
    int32_t into; /* gradient with it among its columns, or WEFT_WALK_NONE */
    int64_t column;
    bool is_dense;       /* a kernel writes it that knows no stride of its own */
    int32_t first, last; /* steps of backward: 0 is the last step of the recipe */
    int64_t offset;      /* in backward's temporary bytes, unless it lies in another one */
};

enum weft_restore {
    WEFT_RESTORE_NONE,
    WEFT_RESTORE_THEN, /* only the activation; the product is kept */
    WEFT_RESTORE_ALL
};

#define WEFT_STEP_SIZE(name, text)   int64_t name;
#define WEFT_STEP_NUMBER(name, text) double name;
struct weft_walk_step {
    const struct weft_op *op;
    const struct weft_recipe_step *from;
    int32_t index; /* in the recipe, with the steps that are left out */
    struct weft_step_sizes {
        WEFT_STEP_SIZES(WEFT_STEP_SIZE)
    } sizes;
    struct weft_step_numbers {
        WEFT_STEP_NUMBERS(WEFT_STEP_NUMBER)
    } numbers;
    int64_t rows; /* of the first input */
    int32_t n_in, n_out, n_statistics, n_tensors;
    struct weft_span in[WEFT_STEP_INPUTS], add;
    int32_t out[WEFT_STEP_OUTPUTS], statistics[WEFT_STEP_STATISTICS]; /* values */
    int32_t first_tensor;
    bool in_place; /* the first output takes the place of the first input */

    enum weft_restore restore; /* at this level */
    int64_t cache_column;      /* of attention: elements of a row that earlier steps cache */

    /* Backward. It reads `d_out`, and writes d_in[i] to columns in[i] of a gradient, with the old
     * gradient `old[i]` added. */
    int32_t d_out;  /* gradient of the last output, or WEFT_WALK_NONE */
    int32_t turned; /* gradient that takes the output's gradient, turned; often d_out itself */
    int32_t d_in[WEFT_STEP_INPUTS]; /* WEFT_WALK_NONE: no gradient */
    int32_t old[WEFT_STEP_INPUTS];  /* or WEFT_WALK_NONE */
    int32_t slope;  /* step of the activation in[0]: d_in[0] is multiplied by the slope */
    bool has_slope; /* a later product multiplied d_out by this activation's slope */
};
#undef WEFT_STEP_SIZE
#undef WEFT_STEP_NUMBER

struct weft_walk {
    const struct weft_layer *layer;
    struct weft_batch batch;
    enum weft_recompute level;
    uint64_t keeps; /* groups of saved values that the level keeps (weft_walk_group) */
    double residual_std;
    int64_t rows;
    struct weft_sizes fits; /* whether sizes overflowed */
    int64_t definitions[WEFT_RECIPE_DEFINITIONS];
    int32_t n_definitions, n_products;

    int32_t n_steps, n_values, n_tensors, n_gradients;
    struct weft_walk_step steps[WEFT_RECIPE_STEPS];
    struct weft_value values[WEFT_WALK_VALUES]; /* 0 is the input */
    struct weft_layer_tensor tensors[WEFT_LAYER_TENSORS];
    struct weft_gradient gradients[WEFT_WALK_GRADIENTS];
    int32_t output;    /* value "y", or WEFT_WALK_NONE */
    int32_t loss;      /* the gradient that a loss leaves, or WEFT_WALK_NONE */
    int64_t most_rows; /* of a sequence, by a table of positions; 0: any number */

    /* Generation: whether a row depends on earlier rows only through cached keys and values, and
     * elements of a row in the cache. */
    bool by_rows;
    bool sees_later; /* attention without `causal`: rows depend on later ones */
    int64_t cache_columns;

    bool reads_input, reads_output;
    bool hides; /* such attention leaves out padding, so a call needs the model's tokens */

    /* Bytes of buffers, -1 if a size overflows; offsets of scratch in backward's temporaries. */
    int64_t kept_bytes, dropped_bytes, forward_bytes, backward_bytes;
    int64_t scores, sums;
    int64_t forward_scores; /* offset of scratch in forward's temporaries */
};

/* Derives the walk of a layer; its kind has a recipe. WEFT_E_DATA if the recipe or a size is
 * wrong, or if the layer lacks the level. If a size overflows, `fits.overflowed` is true and
 * offsets are undefined. */
WEFT_MUST_USE enum weft_status weft_walk_derive(const struct weft_layer *layer,
                                                const struct weft_batch *batch,
                                                enum weft_recompute level, struct weft_walk *out,
                                                struct weft_error *err);
/* The same, with the initial standard deviation of matrices that close a branch. */
WEFT_MUST_USE enum weft_status weft_walk_derive_initial(const struct weft_layer *layer,
                                                        const struct weft_batch *batch,
                                                        enum weft_recompute level,
                                                        double residual_std, struct weft_walk *out,
                                                        struct weft_error *err);

/* The place of a value: of a step's output by its name, of a statistic by its suffix too; NULL:
 * none. */
const struct weft_value *weft_walk_find(const struct weft_walk *walk, const char *name,
                                        const char *suffix);

#endif
