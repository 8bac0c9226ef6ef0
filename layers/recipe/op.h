/* SPDX-License-Identifier: Apache-2.0 */
/* An op is a computation that steps of recipes use: one const object with its shapes, tensors,
 * flops, and the values that its backward reads. layers/ops/ has one file an op; a back end has a
 * table from ops to functions. */
#ifndef WEFT_LAYERS_RECIPE_OP_H
#define WEFT_LAYERS_RECIPE_OP_H

#include "layers/recipe/walk.h"

/* Bits for values of a step. */
enum {
    WEFT_STEP_IN0 = 1,
    WEFT_STEP_IN1 = 2,
    WEFT_STEP_IN2 = 4,
    WEFT_STEP_ADD = 8, /* the value that a product adds */
    WEFT_STEP_OUT0 = 16,
    WEFT_STEP_STATS = 32
};

#define WEFT_STEP_SIZE(name, text) WEFT_SIZE_INDEX_##name,
enum { WEFT_STEP_SIZES(WEFT_STEP_SIZE) WEFT_SIZE_COUNT };
#undef WEFT_STEP_SIZE
#define WEFT_SIZE(name)              (1u << WEFT_SIZE_INDEX_##name)
#define WEFT_STEP_NUMBER(name, text) WEFT_NUMBER_INDEX_##name,
enum { WEFT_STEP_NUMBERS(WEFT_STEP_NUMBER) WEFT_NUMBER_COUNT };
#undef WEFT_STEP_NUMBER
#define WEFT_NUMBER(name) (1u << WEFT_NUMBER_INDEX_##name)

/* Bytes that backward of a step needs and further bytes of a GPU's kernels. */
struct weft_step_scratch {
    int64_t scores; /* of attention: gradients of a head's scores, or two stripes of scores */
    int64_t forward_scores; /* of attention: a stripe */
    int64_t sums;           /* f32 sums of columns */
    int64_t gpu_forward, gpu_backward;
    int64_t gpu_own; /* of a GPU's backward, next to gpu_backward of any step */
};

struct weft_op {
    const char *name; /* in recipes */
    int32_t n_in;
    unsigned required, optional; /* sizes that its steps give or may give: bits WEFT_SIZE */
    unsigned numbers;            /* that its steps may give: bits WEFT_NUMBER; 0 if left out */
    unsigned kinds;              /* bits 1 << word of `kind`; 0: it has none */
    unsigned saves;              /* the same of `save` */
    const char *tensors[WEFT_STEP_TENSORS]; /* last parts of their names in JSON */
    bool adds_value;                        /* a step may have `add` */
    bool has_weight;   /* a product with a weight: selective recomputation keeps it */
    bool counts;       /* its flops count in a recipe with products */
    bool in_place;     /* the output may take the place of the input */
    bool is_loss;      /* it ends a recipe; a module has ops at other addresses */
    bool reads_tokens; /* its input is tokens; that of others is not */
    bool sums;         /* its inputs have the output's gradient as their own */
    bool pools;        /* the output has a row a sample */
    bool mixes_rows;   /* a row of the output depends on others */
    unsigned caches;   /* inputs with rows that later rows read, in a causal op */
    unsigned adds;     /* inputs: their gradient can be added to an old one */
    int32_t holds;     /* input: the output's gradient may lie in its gradient; or WEFT_WALK_NONE */

    /* Adds outputs, statistics and tensors by the functions below. */
    enum weft_status (*shape)(struct weft_walk *walk, struct weft_walk_step *step,
                              struct weft_error *err);
    /* Values that backward reads. */
    unsigned (*reads)(const struct weft_walk *walk, const struct weft_walk_step *step);
    double (*flops)(const struct weft_walk *walk, const struct weft_walk_step *step);
    /* NULL: twice those of forward. */
    double (*backward_flops)(const struct weft_walk *walk, const struct weft_walk_step *step);
    /* Elements of parameters that forward reads, and of gradients that backward writes. NULL:
     * matrices, and the same. */
    double (*weights)(const struct weft_walk *walk, const struct weft_walk_step *step);
    double (*gradients)(const struct weft_walk *walk, const struct weft_walk_step *step);
    /* NULL: none. `out` is zeroed. */
    void (*scratch)(struct weft_walk *walk, const struct weft_walk_step *step,
                    struct weft_step_scratch *out);
};

/* For `shape`. WEFT_E_DATA, naming the layer, the step and its op. */
WEFT_PRINTF(4, 5)
enum weft_status weft_step_refuse(const struct weft_walk *walk, const struct weft_walk_step *step,
                                  struct weft_error *err, const char *format, ...);
/* For `shape` of ops with kernels that know no stride. Refuses columns of a value as input. */
enum weft_status weft_step_check_whole(const struct weft_walk *walk,
                                       const struct weft_walk_step *step, struct weft_error *err);
/* For `shape` of ops that know samples. Refuses values with a row a sample. */
enum weft_status weft_step_check_rows(const struct weft_walk *walk,
                                      const struct weft_walk_step *step, struct weft_error *err);
/* Adds the next output, statistic or tensor of the step. Columns 0: a vector. */
enum weft_status weft_step_add_output(struct weft_walk *walk, struct weft_walk_step *step,
                                      int64_t rows, int64_t columns, struct weft_error *err);
enum weft_status weft_step_add_statistic(struct weft_walk *walk, struct weft_walk_step *step,
                                         const char *suffix, int64_t rows, int64_t columns,
                                         enum weft_value_dtype dtype, struct weft_error *err);
enum weft_status weft_step_add_tensor(struct weft_walk *walk, struct weft_walk_step *step,
                                      int64_t rows, int64_t columns, enum weft_init init,
                                      double std, struct weft_error *err);

static inline int64_t weft_span_width(const struct weft_span *span)
{
    return span->to - span->from;
}
/* Bytes of a GPU's partial sums of columns: one f32 row of `width` for each stripe of rows. */
int64_t weft_step_stripes(struct weft_walk *walk, int64_t rows, int64_t width);
/* Bytes of an element. */
int64_t weft_value_element(const struct weft_walk *walk, const struct weft_value *value);

/* True if the step's attention leaves out keys of padding. */
bool weft_attend_hides(const struct weft_walk *walk, const struct weft_walk_step *step);
/* True if a GPU's tensor cores attend in the step, unless products are plain. Their kernels lack
 * caps of scores, and hidden padding. */
bool weft_attend_uses_tensor_cores(const struct weft_walk *walk, const struct weft_walk_step *step);

#endif
