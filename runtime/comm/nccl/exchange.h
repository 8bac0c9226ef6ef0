/* SPDX-License-Identifier: Apache-2.0 */
/* An exchange is a reduction in rank order, for libraries with another order. Every rank gets the
 * pieces of its slice from all others and sums them itself, in rank order and in fp32. With several
 * nodes it sums within a node first. Then the nodes exchange partial sums in fp32, and the final
 * sum is rounded once (runtime/comm/comm.h). The result is a list of steps with offsets,
 * independent of NCCL and GPUs. Partial sums of nodes are exchanged on one level, in fp32.
 *
 * Received pieces need extra memory, the scratch. A slice with pieces too large for the scratch is
 * reduced part by part. */
#ifndef WEFT_RUNTIME_COMM_NCCL_EXCHANGE_H
#define WEFT_RUNTIME_COMM_NCCL_EXCHANGE_H

#include "runtime/comm/comm.h"

/* Ranks of a node are consecutive: node = rank / ranks_per_node. */
struct weft_nccl_shape {
    int32_t rank, ranks;
    int32_t ranks_per_node; /* divides ranks */
};

struct weft_nccl_place {
    bool is_scratch; /* otherwise in the arena */
    int64_t offset;
};

enum weft_nccl_step_kind {
    WEFT_NCCL_EXCHANGE, /* sends piece i from `from` to member m, and receives m's at `to` */
    WEFT_NCCL_SUM,      /* as weft_cuda_sum_ranks, for each piece */
    WEFT_NCCL_NARROW,   /* fp32 to dtype */
    WEFT_NCCL_WIDEN,    /* dtype to fp32 */
    WEFT_NCCL_GATHER,   /* AllGather of all ranks */
    WEFT_NCCL_STEP_COUNT
};

/* The members of a step: all ranks, those of a node, those with the same place in their nodes. */
enum weft_nccl_level { WEFT_NCCL_ALL, WEFT_NCCL_WITHIN, WEFT_NCCL_ACROSS, WEFT_NCCL_LEVEL_COUNT };

/* Piece i of member m is at offset + m * stride + i * skip. */
struct weft_nccl_pieces {
    struct weft_nccl_place at;
    int64_t stride, skip; /* bytes */
};

struct weft_nccl_step {
    enum weft_nccl_step_kind kind;
    enum weft_nccl_level level;
    int32_t members, self; /* of the level; for SUM the operands, and the one at `own` */
    int32_t idle;          /* SUM: members, the last ones, that are left out */
    int32_t pieces;
    int64_t elements; /* of a piece */
    enum weft_dtype dtype;
    struct weft_nccl_pieces from, to; /* `to` has no stride in SUM, NARROW, WIDEN */
    struct weft_nccl_pieces own;      /* SUM: this rank's operand; no stride */
    bool partial, adds;               /* SUM */
    enum weft_dtype to_dtype;         /* SUM */
};

enum { WEFT_NCCL_MOST_STEPS = 7 };
struct weft_nccl_steps {
    int32_t n;
    struct weft_nccl_step steps[WEFT_NCCL_MOST_STEPS];
};

/* Bytes of scratch for `elements` elements of every slice. */
int64_t weft_nccl_scratch_bytes(const struct weft_nccl_shape *shape, enum weft_dtype dtype,
                                int64_t elements);
/* Elements of a slice that fit the scratch at once; 0 if none fits. */
int64_t weft_nccl_part_elements(const struct weft_nccl_shape *shape, enum weft_dtype dtype,
                                int64_t slice_elements, int64_t scratch_bytes);

/* The dtype of the block's operands; fp32 for partial sums. */
enum weft_dtype weft_nccl_operand(const struct weft_comm_block *block);

/* Writes the steps of a ReduceScatter of elements [first, first + count) of every slice. */
void weft_nccl_reduce_steps(const struct weft_nccl_shape *shape,
                            const struct weft_comm_block *block, int64_t first, int64_t count,
                            struct weft_nccl_steps *out);
/* Returns the step of an AllGather. */
struct weft_nccl_step weft_nccl_gather_step(const struct weft_nccl_shape *shape,
                                            const struct weft_comm_block *block);

/* True if the pieces are adjacent in member order, so that one AlltoAll moves them. */
bool weft_nccl_is_dense(const struct weft_nccl_step *step);

#endif
