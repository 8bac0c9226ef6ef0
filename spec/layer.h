/* SPDX-License-Identifier: Apache-2.0 */
/* A layer is a part of the model with a forward and a backward. Its kind (spec/kind.h) defines
 * keys, tensors and needs as pure functions of sizes: saved activations, workspace, flops, bytes
 * moved. runtime/nn computes on exactly these buffers.
 *
 * With T = samples * seq_len rows, layers exchange [T, width] in the compute dtype. The model's
 * input is int32 token numbers [T] for a kind that reads tokens, otherwise numbers [T, hidden].
 * Targets are int32, one a row or one a sample, depending on the last layer's kind. A loss layer
 * has no output: the caller gets the sum of its rows' losses. */
#ifndef WEFT_SPEC_LAYER_H
#define WEFT_SPEC_LAYER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/numbers.h"
#include "base/pool.h"
#include "base/status.h"
#include "spec/ways.h"

struct weft_kind; /* spec/kind.h */

/* The value of a key that only some kinds have. */
union weft_key {
    int64_t integer;
    double number;
    bool flag;
};
enum { WEFT_LAYER_KEYS = WEFT_KIND_KEYS + 8 }; /* a kind of Weft may have more */

struct weft_layer {
    const char *name;             /* "h.3" */
    const struct weft_kind *kind; /* outlives the layer */
    bool frozen;
    bool syncs_host; /* a host that runs ahead waits for its forward */
    bool is_table;   /* backward reads none of its parameters, as for a kind that reads tokens */
    bool bias;       /* if the kind may have one */
    int32_t tie;     /* index of the layer that shares its first tensor, or -1 */
    int64_t hidden;  /* input width */
    int64_t outputs; /* output width */
    int64_t vocab;   /* number of tokens, for kinds that read or predict tokens */
    union weft_key keys[WEFT_LAYER_KEYS]; /* the kind's own keys; its header names the indices */
    /* Tensors that forward reads, in the kind's fixed order. */
    int32_t n_tensors;
    int32_t tensors[WEFT_LAYER_TENSORS];
};

/* The name of the layer's kind in configs. */
const char *weft_layer_type_of(const struct weft_layer *layer);

/* Targets of rows without a loss: in an evaluation, where the gradient is undefined, and of a label
 * that training leaves out, where the gradient is 0. */
enum { WEFT_NO_TARGET = INT32_MIN, WEFT_LEFT_OUT };

/* Labels that training leaves out. */
struct weft_padding {
    bool given;    /* must be first */
    int64_t token; /* a target with it has no loss */
    bool hidden;   /* attention that sees later rows leaves out its rows */
};
struct weft_masking {
    bool given;    /* must be first */
    int64_t token; /* the mask */
    double share;  /* of tokens that are predicted */
};

struct weft_batch {
    int64_t samples; /* of one rank and micro-step */
    int64_t seq_len;
    enum weft_dtype compute;
    bool on_gpu;
    bool plain; /* a GPU's products in the CPU's order (WEFT_GEMM=plain), without tensor cores */
    bool hides; /* attention that sees later rows leaves out rows of the token `padding` */
    int32_t padding;
};

/* A layer's saved activations at a level of recomputation. Dropped bytes are a part of the
 * temporaries of forward and backward, and backward restores them first. */
struct weft_layer_split {
    bool possible;
    int64_t kept_bytes, dropped_bytes;
    double flops;       /* of restoring */
    double moved_bytes; /* least memory traffic of restoring; 0: that of all the layer's parts */
};

/* Buffers of one layer on one rank, not aligned; the layout aligns them. */
struct weft_layer_work {
    int64_t output_bytes; /* read by the next layer; 0 for a loss layer */
    int64_t saved_bytes;  /* saved activations: written by forward, read by backward, private to the
                             layer */
    int64_t freed_bytes;  /* of saved, no longer held when backward holds most; 0: not known */
    int64_t forward_temporary_bytes;
    int64_t backward_temporary_bytes;
    int64_t forward_scratch_bytes; /* of a GPU's kernels, besides temporaries; a CPU needs none */
    int64_t backward_scratch_bytes;
    bool backward_reads_input;  /* backward needs the previous layer's output */
    bool backward_reads_output; /* backward needs this layer's own output */
    bool reads_padding; /* forward and backward need the model's tokens, to leave out padding */
    double forward_flops, backward_flops;
    double forward_moved_bytes,
        backward_moved_bytes; /* least memory traffic, for memory-bound layers */
    /* By level, without that of none. A level is possible only if backward reads the input. */
    struct weft_layer_split splits[WEFT_RECOMPUTE_COUNT];
    double restore_moved_bytes[WEFT_RECOMPUTE_COUNT]; /* least memory traffic of restoring */
};

/* An accelerator does so many flops of products in the time of a byte of memory traffic. */
enum { WEFT_FLOPS_A_BYTE = 160 };

/* Alignment of dropped bytes within a temporary buffer. They follow its other parts. */
enum { WEFT_DROPPED_ALIGN_BYTES = 64 };

/* The buffers of a layer at a possible level: saved bytes are those kept, and temporaries end with
 * those dropped. Flops and traffic stay those without recomputation. The sizes fit into 63 bits,
 * because weft_layer_work checked their sums. */
struct weft_layer_work weft_layer_work_at(const struct weft_layer_work *work,
                                          enum weft_recompute level);
/* The offset of dropped bytes in a temporary buffer of so many other bytes. */
int64_t weft_dropped_offset(int64_t temporary_bytes);

/* WEFT_E_DATA, naming the layer, when a size overflows or its kind refuses the batch. */
WEFT_MUST_USE enum weft_status weft_layer_work(const struct weft_layer *layer,
                                               const struct weft_batch *batch,
                                               struct weft_layer_work *out, struct weft_error *err);

/* The key of profile entries: a text that is equal for layers and batches of equal time, such as
 * "transformer_block hidden=64 heads=4 ffn=256 samples=4 seq=64 f32". The pool owns it; NULL
 * without memory. */
WEFT_MUST_USE char *weft_layer_key(struct weft_pool *pool, const struct weft_layer *layer,
                                   const struct weft_batch *batch);

#endif
