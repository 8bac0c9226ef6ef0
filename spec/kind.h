/* A kind is what "type" in a layer's entry of the config names: one const object that says what a
 * layer of this kind has for keys and tensors, where it may stand, and what it needs. One file each
 * in layers/. The rest of Weft asks the kind and knows none of them; a back end has a table from
 * kinds to its functions. Users of the library bring kinds of their own (layers/supplied.h). */
#ifndef WEFT_SPEC_KIND_H
#define WEFT_SPEC_KIND_H

#include <stddef.h>

#include "base/text.h"
#include "spec/field.h"
#include "spec/layer.h"
#include "spec/sizes.h"

/* X(identifier, which is its name in configs too). */
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
    X(rms_norm)                                                                                    \
    X(encoder_block)                                                                               \
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

/* Supplied kinds, which a config may use in addition to Weft's own. */
struct weft_kinds {
    const struct weft_kind *const *kinds; /* [n] */
    int32_t n;
    const char *const *files; /* [n_files]: absolute paths of the shared objects that have them */
    int32_t n_files;
};

enum weft_kind_input {
    WEFT_READS_ROWS,    /* of the layer before it: it cannot be the first one that trains */
    WEFT_READS_NUMBERS, /* the same, or as the first one a row of text a sample */
    WEFT_READS_TOKENS   /* it can only be the first; a table, of whose rows forward reads some */
};
enum weft_kind_loss { WEFT_NO_LOSS, WEFT_LOSS_OF_ROWS, WEFT_LOSS_OF_SAMPLES };

/* What is wrong with the value of a key. */
struct weft_fault {
    const char *key;
    char text[200];
};
enum { WEFT_FAULTS = 4 };

/* A layer and a batch, with the figures that every kind needs; flops are doubles on purpose. */
struct weft_subject {
    const struct weft_layer *layer;
    const struct weft_batch *batch;
    struct weft_sizes sizes;
    int64_t rows, element_bytes;
    double t, s, h;           /* rows, seq_len, hidden */
    double backward_products; /* products a forward product costs in backward: by its input, and
                                 by its weight unless that is frozen */
    /* The kind's answer: elements of parameters that forward reads, and those whose gradients
     * backward writes where they are others (negative: the same). */
    double weights, gradients;
};

/* GPT-2's initial spread of every matrix but those that close a residual branch. */
#define WEFT_INIT_STD 0.02

struct weft_kind {
    const char *type; /* in configs */
    const char *text; /* one line for the reference: what it is */
    /* Beside those that every layer has; required ones first. Offsets are WEFT_LAYER_AT's and
     * WEFT_KEY_AT's. */
    const struct weft_field *keys;
    size_t n_keys;
    bool trains;          /* runtime/nn has its functions */
    bool closes_residual; /* two branches of it add to what flows (GPT-2's initial values) */
    bool by_rows; /* a row depends on rows before it through a cache or not at all: it generates */
    enum weft_kind_input input;
    enum weft_kind_loss loss;
    const struct weft_kind *ties; /* the kind whose first tensor may be its first; or NULL */
    const struct weft_layer_kind *supplied; /* by the user of the library; or NULL */
    bool outputs_given; /* by a key; else, without `complete`, they are hidden */
    /* Fills in what follows from the keys. NULL: nothing does. */
    void (*complete)(struct weft_layer *layer);
    /* What the keys' ranges do not say; returns how many faults. NULL: all is well. */
    int32_t (*check)(const struct weft_layer *layer, struct weft_fault faults[WEFT_FAULTS]);
    /* Tensors, the tied one among them, and outputs if only this tells them; `out` is zeroed.
     * residual_std is the initial spread of a matrix that closes a branch. NULL: none. */
    enum weft_status (*shape)(const struct weft_layer *layer, double residual_std,
                              struct weft_layer_shape *out, struct weft_error *err);
    /* Buffers and flops, into `work` that is zeroed but for output_bytes; the subject's answer. */
    enum weft_status (*needs)(struct weft_subject *subject, struct weft_layer_work *work,
                              struct weft_error *err);
    /* Appends " key=value" of all that the layer's time depends on. NULL: hidden. */
    void (*add_sizes)(const struct weft_layer *layer, struct weft_text *out);
};

/* One entry of "layers", before it is repeated and its tie is found. */
struct weft_layer_entry {
    struct weft_layer layer;
    int type;        /* a choice of the table's */
    int64_t repeat;  /* copies; "{i}" in the name counts them from 0 */
    const char *tie; /* name of a layer, or NULL */
};
#define WEFT_LAYER_AT(member) offsetof(struct weft_layer_entry, layer.member)
#define WEFT_KEY_AT(place)                                                                         \
    (offsetof(struct weft_layer_entry, layer.keys) + (place) * sizeof(union weft_key))

/* The kind at `index` of Weft's own, from 0 to WEFT_KIND_COUNT - 1. */
const struct weft_kind *weft_kind_at(int32_t index);
/* The kind of that type, Weft's own or one of `others`, which may be NULL; or NULL. */
const struct weft_kind *weft_kind_find(const struct weft_kinds *others, const char *type);
/* The kind's own key of that name, or NULL. */
const struct weft_field *weft_kind_key(const struct weft_kind *kind, const char *name);
/* Key `index` of all that Weft's kinds have, each name once: as the first kind has it that gives a
 * default, "null" where none does. False behind the last. */
bool weft_kind_any_key(size_t index, struct weft_field *out);

/* WEFT_E_DATA: layer "h.3" (linear): what is wrong; what would work. */
WEFT_PRINTF(3, 4)
enum weft_status weft_layer_refuse(struct weft_error *err, const struct weft_layer *layer,
                                   const char *format, ...);
/* Fills in sizes that follow from others, so that the rest of Weft need not know which those are.
 */
void weft_layer_complete(struct weft_layer *layer);
/* WEFT_OK when every key of a layer that is complete is within its range. */
WEFT_MUST_USE enum weft_status weft_layer_check(const struct weft_layer *layer,
                                                struct weft_error *err);

#endif
