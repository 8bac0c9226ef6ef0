/* A layer is a piece of the model with a forward and a backward. Its kind (spec/kind.h) says what
 * its keys mean, which tensors it has, and what it needs of a batch, as pure functions of its
 * sizes: saved activations, workspace, flops, bytes moved. runtime/nn computes on exactly the
 * buffers declared here.
 *
 * With T = samples * seq_len rows, what flows between layers is [T, width] in the compute dtype.
 * The model's input is int32 token numbers [T] for a kind that reads tokens, else numbers
 * [T, hidden]. Targets are int32, of every row or of every sample, as the last layer's kind says. A
 * loss layer has no output: the sum of its rows' losses goes to the caller. */
#ifndef WEFT_SPEC_LAYER_H
#define WEFT_SPEC_LAYER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/numbers.h"
#include "base/pool.h"
#include "base/status.h"

struct weft_kind; /* spec/kind.h */

/* The value of a key that only some kinds have. */
union weft_key {
    int64_t integer;
    double number;
    bool flag;
};
enum { WEFT_LAYER_KEYS = WEFT_KIND_KEYS };

struct weft_layer {
    const char *name;             /* "h.3" */
    const struct weft_kind *kind; /* outlives the layer */
    bool frozen;
    bool bias;       /* of kinds that may have one */
    int32_t tie;     /* index of the layer whose first tensor is this one's first, or -1 */
    int64_t hidden;  /* width of what flows in */
    int64_t outputs; /* width of what flows out */
    int64_t vocab;   /* of kinds that read tokens or tell them: how many there are */
    union weft_key keys[WEFT_LAYER_KEYS]; /* the kind's own; its header names their places */
    /* Tensors that forward reads, in the fixed order of the kind. */
    int32_t n_tensors;
    int32_t tensors[WEFT_LAYER_TENSORS];
};

/* The name of the layer's kind in configs. */
const char *weft_layer_type_of(const struct weft_layer *layer);

/* The target of a row that has no loss, in an evaluation: its gradient has no meaning. */
enum { WEFT_NO_TARGET = INT32_MIN };

struct weft_batch {
    int64_t samples; /* on one rank, one micro-step */
    int64_t seq_len;
    enum weft_dtype compute;
};

/* Buffers of one layer on one rank. All multiples of nothing in particular: the layout aligns. */
struct weft_layer_work {
    int64_t output_bytes; /* what the next layer reads; 0 for a loss layer */
    int64_t saved_bytes;  /* written by forward, read by backward, private to the layer */
    int64_t forward_temporary_bytes;
    int64_t backward_temporary_bytes;
    bool backward_reads_input;  /* backward needs the previous layer's output */
    bool backward_reads_output; /* backward needs this layer's own output */
    double forward_flops, backward_flops;
    double forward_moved_bytes,
        backward_moved_bytes; /* least memory traffic, for memory-bound layers */
};

/* WEFT_E_DATA, naming the layer, when a size overflows or its kind refuses the batch. */
WEFT_MUST_USE enum weft_status weft_layer_work(const struct weft_layer *layer,
                                               const struct weft_batch *batch,
                                               struct weft_layer_work *out, struct weft_error *err);

/* A text that is equal for layers (and batches) that take the same time, e.g.
 * "transformer_block hidden=64 heads=4 ffn=256 samples=4 seq=64 f32"; the key of profile entries.
 * NULL when memory runs out; owned by the pool. */
WEFT_MUST_USE char *weft_layer_key(struct weft_pool *pool, const struct weft_layer *layer,
                                   const struct weft_batch *batch);

#endif
