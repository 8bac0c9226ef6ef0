/* SPDX-License-Identifier: Apache-2.0 */
/* Operations of instructions, and the kinds of streams that they run on. A program has a stream for
 * each of its lanes. */
#ifndef WEFT_PROGRAM_OP_H
#define WEFT_PROGRAM_OP_H

#include <stdbool.h>
#include <stddef.h>

#include "memory_model/item_kind.h"

enum weft_stream_kind {
    WEFT_STREAM_COMPUTE,
    WEFT_STREAM_CHANNEL, /* a lane of the network */
    WEFT_STREAM_DOWN,    /* copies to the host's memory */
    WEFT_STREAM_UP,      /* copies from the host's memory */
    WEFT_STREAM_HOST,    /* updates on the host */
    WEFT_STREAM_READ,    /* reads of a disk, and writes if it has one lane */
    WEFT_STREAM_WRITE,   /* writes, if the disk has two lanes */
    WEFT_STREAM_COUNT
};

/* Items come first: an item's op has the number of its kind (memory_model/item_kind.h), and so its
 * name and its role of lanes. */
enum weft_op {
    WEFT_OP_ALL_GATHER = WEFT_ALL_GATHER,
    WEFT_OP_REDUCE_SCATTER = WEFT_REDUCE_SCATTER,
    WEFT_OP_ALL_REDUCE = WEFT_ALL_REDUCE,
    WEFT_OP_READ = WEFT_STATE_READ,                   /* unit: state from the disk to the arena */
    WEFT_OP_WRITE = WEFT_STATE_WRITE,                 /* unit: state from the arena to the disk */
    WEFT_OP_COPY_UP = WEFT_STATE_UP,                  /* unit: state from the host to the arena */
    WEFT_OP_COPY_DOWN = WEFT_STATE_DOWN,              /* unit: state from the arena to the host */
    WEFT_OP_GRADIENT_DOWN = WEFT_GRADIENT_DOWN,       /* unit: a gradient block to norm and host */
    WEFT_OP_HOST_UPDATE = WEFT_HOST_UPDATE,           /* unit: optimizer on a block, on the host */
    WEFT_OP_PARAMETERS_UP = WEFT_PARAMETERS_UP,       /* unit: a block's parameters from the host */
    WEFT_OP_SAVED_DOWN = WEFT_SAVED_DOWN,             /* layer: saved activations to the host */
    WEFT_OP_SAVED_UP = WEFT_SAVED_UP,                 /* layer: saved activations from the host */
    WEFT_OP_PARAMETERS_DOWN = WEFT_PARAMETERS_DOWN,   /* unit: a block's shard to the host */
    WEFT_OP_PARAMETERS_FETCH = WEFT_PARAMETERS_FETCH, /* unit: a block's slice for a gather */
    WEFT_OP_ACROSS_REDUCE = WEFT_ACROSS_REDUCE,       /* unit: a block's partial sums over nodes */
    WEFT_OP_ACROSS_SCATTER = WEFT_ACROSS_SCATTER,     /* unit: the same, to the node of each part */
    WEFT_OP_ACROSS_GATHER = WEFT_ACROSS_GATHER,       /* unit: a block of its node's parameters */
    WEFT_OP_INPUT_DOWN = WEFT_INPUT_DOWN,             /* layer: its input to the host */
    WEFT_OP_INPUT_UP = WEFT_INPUT_UP,                 /* layer: its input from the host */
    WEFT_OP_AVERAGE = WEFT_AVERAGE,                   /* unit: a block's average over nodes */
    WEFT_OP_AVERAGE_GATHER = WEFT_AVERAGE_GATHER,     /* unit: the averages of its node, under dp */
    WEFT_OP_AGREE = WEFT_ITEM_KIND_COUNT, /* sum over ranks of the record, or of a unit's norms */
    /* Compute. */
    WEFT_OP_MARK,     /* start of a slot */
    WEFT_OP_MOMENTS,  /* unit: moments and norms, if updates are agreed */
    WEFT_OP_UPDATE,   /* unit: optimizer on this rank's part */
    WEFT_OP_LOAD,     /* a micro-batch, before its forwards */
    WEFT_OP_FORWARD,  /* layer */
    WEFT_OP_ZERO,     /* unit: gaps and padding of its full gradient */
    WEFT_OP_BACKWARD, /* layer */
    WEFT_OP_NORM,     /* this rank's loss, flags, norm bins to the record */
    WEFT_OP_FINISH,   /* after AGREE: clip coefficient, loss, flags */
    WEFT_OP_COUNT
};
const char *weft_op_name(enum weft_op op);
enum weft_stream_kind weft_op_stream(enum weft_op op);

/* The row of an item's op; NULL for AGREE and compute. */
static inline const struct weft_item_kind *weft_op_item(enum weft_op op)
{
    return op < WEFT_OP_AGREE ? &weft_item_kinds[op] : NULL;
}

/* Whether it is the op of an item of that family. */
static inline bool weft_op_is_of(enum weft_op op, enum weft_item_family family)
{
    return op < WEFT_OP_AGREE && weft_item_kinds[op].family == family;
}

/* Ops that move a unit's state to the arena, or from the arena to its location. */
static inline bool weft_op_brings_state(enum weft_op op)
{
    return weft_op_is_of(op, WEFT_ITEM_STATE) && weft_item_kinds[op].acquires;
}

static inline bool weft_op_takes_state(enum weft_op op)
{
    return weft_op_is_of(op, WEFT_ITEM_STATE) && !weft_item_kinds[op].acquires;
}

#endif
