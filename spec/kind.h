/* SPDX-License-Identifier: Apache-2.0 */
/* A kind is the "type" of a layer: one const object with its keys, tensors, place in the model and
 * needs. layers/ has one file a kind. The rest of Weft asks the kind; a back end has a table from
 * kinds to functions. Users of the library bring their own kinds (layers/supplied.h). */
#ifndef WEFT_SPEC_KIND_H
#define WEFT_SPEC_KIND_H

#include <stddef.h>

#include "base/text.h"
#include "spec/field.h"
#include "spec/layer.h"
#include "spec/sizes.h"

/* X(identifier, also the name in configs). */
#define WEFT_KINDS(X)                                                                              \
    X(embedding)                                                                                   \
    X(transformer_block)                                                                           \
    X(layer_norm)                                                                                  \
    X(linear)                                                                                      \
    X(relu)                                                                                        \
    X(gelu)                                                                                        \
    X(lm_head)                                                                                     \
    X(classifier)                                                                                  \
    X(llama_block)                                                                                 \
    X(qwen3_block)                                                                                 \
    X(phi3_block)                                                                                  \
    X(olmo2_block)                                                                                 \
    X(gemma_block)                                                                                 \
    X(gemma2_block)                                                                                \
    X(gemma3_block)                                                                                \
    X(gemma_norm)                                                                                  \
    X(rms_norm)                                                                                    \
    X(encoder_block)                                                                               \
    X(positions)                                                                                   \
    X(token_types)                                                                                 \
    X(moe_block)                                                                                   \
    X(conv2d)                                                                                      \
    X(bottleneck)                                                                                  \
    X(pool2d)                                                                                      \
    X(custom)

#define WEFT_KIND_DECLARE(name) extern const struct weft_kind weft_kind_##name;
WEFT_KINDS(WEFT_KIND_DECLARE)
#undef WEFT_KIND_DECLARE
#define WEFT_KIND_ONE(name) +1
enum { WEFT_KIND_COUNT = 0 WEFT_KINDS(WEFT_KIND_ONE) };
#undef WEFT_KIND_ONE

/* Supplied kinds, for configs that use them. */
struct weft_kinds {
    const struct weft_kind *const *kinds; /* [n] */
    int32_t n;
    const char *const *files; /* [n_files]: absolute paths of their shared objects */
    int32_t n_files;
};

enum weft_kind_input {
    WEFT_READS_ROWS,    /* output of the previous layer: it cannot be the first trained layer */
    WEFT_READS_NUMBERS, /* the same, or as first layer rows of samples or of text */
    WEFT_READS_TOKENS   /* a table that forward reads rows of: it can only be first */
};
enum weft_kind_loss { WEFT_NO_LOSS, WEFT_LOSS_OF_ROWS, WEFT_LOSS_OF_SAMPLES };

/* A fault in the value of a key. */
struct weft_fault {
    const char *key;
    char text[200];
};
enum { WEFT_FAULTS = 4 };

/* A tensor that fuses several matrices, or their biases, has the rows of each as a part. */
struct weft_tensor_part {
    char name[64]; /* within its layer, as "attn.q.weight" */
    int64_t rows;
};
enum { WEFT_PARTS = 8 };

/* A layer and a batch, with common figures; flops are doubles on purpose. */
struct weft_subject {
    const struct weft_layer *layer;
    const struct weft_batch *batch;
    struct weft_sizes sizes;
    int64_t rows, element_bytes;
    double t, s, h;           /* rows, seq_len, hidden */
    double backward_products; /* backward products for each forward product: for its input, and for
                                 its weight unless frozen */
    /* Results of `needs`: elements of parameters that forward reads, and elements of gradients that
     * backward writes (negative: the same). */
    double weights, gradients;
};

/* GPT-2's initial standard deviation of matrices, except those that close a residual branch. */
#define WEFT_INIT_STD 0.02

struct weft_kind {
    const char *type;     /* in configs */
    const char *identity; /* of a config's own kind: digits of its recipe's hash; or NULL */
    const char *text;     /* one line for the reference */
    /* Own keys besides those of every layer, required ones first. Offsets are WEFT_LAYER_AT's and
     * WEFT_KEY_AT's. */
    const struct weft_field *keys;
    size_t n_keys;
    const struct weft_recipe *recipe; /* its steps (layers/recipe/recipe.h); or NULL */
    bool trains;                      /* runtime/nn has its functions */
    bool cpu_only;                    /* a GPU has no functions of it yet */
    bool closes_residual;             /* two branches of it add to the residual stream */
    enum weft_kind_input input;
    bool reads_tensors; /* it reads tokens, and backward reads other tensors than its tables */
    enum weft_kind_loss loss;
    const struct weft_kind
        *ties;                 /* the kind that may share its first tensor with this one; or NULL */
    const char *frozen_tensor; /* name of its tensor that is never trained; or NULL */
    const struct weft_layer_kind *supplied; /* from the library's user; or NULL */
    bool outputs_given; /* by a key; otherwise, without `complete`, they equal hidden */
    /* Fills in sizes that follow from the keys. NULL: none. */
    void (*complete)(struct weft_layer *layer);
    /* Checks conditions beyond the keys' ranges; returns the number of faults. NULL: none. */
    int32_t (*check)(const struct weft_layer *layer, struct weft_fault faults[WEFT_FAULTS]);
    /* Lists tensors, the tied one included, and outputs if they follow from the tensors; `out` is
     * zeroed. residual_std is the initial standard deviation of a matrix that closes a branch.
     * NULL: no tensors. */
    enum weft_status (*shape)(const struct weft_layer *layer, double residual_std,
                              struct weft_layer_shape *out, struct weft_error *err);
    /* Lists the parts of the layer's tensor `index`, in order of their rows; 0 parts: it is whole.
     * NULL: all are whole. */
    enum weft_status (*parts)(const struct weft_layer *layer, int32_t index,
                              struct weft_tensor_part out[WEFT_PARTS], int32_t *n_parts,
                              struct weft_error *err);
    /* Fills buffers and flops into `work`, zeroed except for output_bytes, and the results in
     * `subject`. */
    enum weft_status (*needs)(struct weft_subject *subject, struct weft_layer_work *work,
                              struct weft_error *err);
    /* Saved activations that a level of recomputation keeps, for reports. NULL: named by name_kept,
     * which appends the names; a kind without both does not name them. A frozen layer saves less,
     * so name_kept comes first there. */
    const char *keeps[WEFT_RECOMPUTE_COUNT];
    void (*name_kept)(const struct weft_layer *layer, const struct weft_batch *batch,
                      enum weft_recompute level, struct weft_text *out);
    /* Appends " key=value" for everything that the layer's time depends on. NULL: hidden. */
    void (*add_sizes)(const struct weft_layer *layer, struct weft_text *out);
};

/* One entry of "layers", before repetition and ties. */
struct weft_layer_entry {
    struct weft_layer layer;
    int type;        /* index in the table's choices */
    int64_t repeat;  /* copies; "{i}" in the name counts them from 0 */
    const char *tie; /* name of a layer; or NULL */
};
#define WEFT_LAYER_AT(member) offsetof(struct weft_layer_entry, layer.member)
#define WEFT_KEY_AT(place)                                                                         \
    (offsetof(struct weft_layer_entry, layer.keys) + (place) * sizeof(union weft_key))

/* Kinds of a config's own, in "model.kinds" (layers/recipe/kind_json.h). */
extern const struct weft_field_table weft_kind_table;
/* Decodes the list (NULL: none) at `path` into kinds that the pool owns, next to `others` (may be
 * NULL), into *out. Faults become findings, and then *out is `others`. False without memory. */
WEFT_MUST_USE bool weft_kinds_decode(const struct weft_json_value *list, const char *source,
                                     const char *path, const struct weft_kinds *others,
                                     struct weft_pool *pool, const struct weft_kinds **out,
                                     struct weft_findings *findings);
/* Writes a kind with a recipe as an element of the list. */
void weft_kind_encode(const struct weft_kind *kind, struct weft_json_writer *writer);

/* The kind at `index`, 0 to WEFT_KIND_COUNT - 1, of Weft's own. */
const struct weft_kind *weft_kind_at(int32_t index);
/* The kind of that type, Weft's own or one of `others` (may be NULL); NULL if there is none. */
const struct weft_kind *weft_kind_find(const struct weft_kinds *others, const char *type);
/* The kind's own key of that name; or NULL. */
const struct weft_field *weft_kind_key(const struct weft_kind *kind, const char *name);
/* Key `index` of all of Weft's kinds, each name once: the row of the first kind with a default, or
 * "null" as default if none has one. False after the last key. */
bool weft_kind_any_key(size_t index, struct weft_field *out);

/* Fails with WEFT_E_DATA: layer "h.3" (linear): the fault; a cure. */
WEFT_PRINTF(3, 4)
enum weft_status weft_layer_refuse(struct weft_error *err, const struct weft_layer *layer,
                                   const char *format, ...);
/* Fills in sizes that follow from others, so that other code may rely on all sizes. */
void weft_layer_complete(struct weft_layer *layer);
/* WEFT_OK when every key of a complete layer is within its range. */
WEFT_MUST_USE enum weft_status weft_layer_check(const struct weft_layer *layer,
                                                struct weft_error *err);

#endif
