/* An exchange is how a reduction is done where the library's own has another order: every rank gets
 * the pieces of its slice from all others, and adds them up itself, in rank order and in fp32. Over
 * several nodes that is done within a node first; partial sums cross to the other nodes in fp32,
 * and their sum is rounded once (docs/numerics.md). What is moved and added is a list of steps with
 * offsets, which knows neither NCCL nor a GPU.
 *
 * Received pieces need memory of their own, the scratch. A slice whose pieces do not fit there is
 * taken part by part. */
#ifndef WEFT_RUNTIME_COMM_NCCL_EXCHANGE_H
#define WEFT_RUNTIME_COMM_NCCL_EXCHANGE_H

#include "runtime/comm/comm.h"

/* Ranks of a node are neighbours: node rank / ranks_per_node. */
struct weft_nccl_shape {
    int32_t rank, ranks;
    int32_t ranks_per_node; /* divides ranks */
};

struct weft_nccl_place {
    bool is_scratch; /* else of the arena */
    int64_t offset;
};

enum weft_nccl_step_kind {
    WEFT_NCCL_EXCHANGE, /* piece i goes to member m from `from`, and comes from m to `to` */
    WEFT_NCCL_SUM,      /* as weft_cuda_sum_ranks, for each piece */
    WEFT_NCCL_NARROW,   /* fp32 to dtype */
    WEFT_NCCL_WIDEN,    /* dtype to fp32 */
    WEFT_NCCL_GATHER,   /* AllGather of all ranks */
    WEFT_NCCL_STEP_COUNT
};

/* Among whom: all ranks; those of a node; those with the same place in their nodes. */
enum weft_nccl_level { WEFT_NCCL_ALL, WEFT_NCCL_WITHIN, WEFT_NCCL_ACROSS, WEFT_NCCL_LEVEL_COUNT };

/* Member m's piece i is at offset + m * stride + i * skip. */
struct weft_nccl_pieces {
    struct weft_nccl_place at;
    int64_t stride, skip; /* bytes */
};

struct weft_nccl_step {
    enum weft_nccl_step_kind kind;
    enum weft_nccl_level level;
    int32_t members, self; /* of the level; a SUM's operands, and which of them is `own` */
    int32_t pieces;
    int64_t elements; /* of a piece */
    enum weft_dtype dtype;
    struct weft_nccl_pieces from, to; /* a SUM, NARROW, WIDEN has no stride of `to` */
    struct weft_nccl_pieces own;      /* SUM: where this rank's operand lies; no stride */
    bool partial, adds;               /* SUM */
    enum weft_dtype to_dtype;         /* SUM */
};

enum { WEFT_NCCL_MOST_STEPS = 7 };
struct weft_nccl_steps {
    int32_t n;
    struct weft_nccl_step steps[WEFT_NCCL_MOST_STEPS];
};

/* Bytes of scratch that `elements` of every slice need. */
int64_t weft_nccl_scratch_bytes(const struct weft_nccl_shape *shape, enum weft_dtype dtype,
                                int64_t elements);
/* How many elements of a slice may be taken at once; 0: not even one fits. */
int64_t weft_nccl_part_elements(const struct weft_nccl_shape *shape, enum weft_dtype dtype,
                                int64_t slice_elements, int64_t scratch_bytes);

/* The steps of a ReduceScatter of elements [first, first + count) of every slice. */
void weft_nccl_reduce_steps(const struct weft_nccl_shape *shape,
                            const struct weft_comm_block *block, int64_t first, int64_t count,
                            struct weft_nccl_steps *out);
/* The step of an AllGather. */
struct weft_nccl_step weft_nccl_gather_step(const struct weft_nccl_shape *shape,
                                            const struct weft_comm_block *block);

/* Where a step's pieces lie side by side in the order of members: one AlltoAll moves them. */
bool weft_nccl_is_dense(const struct weft_nccl_step *step);

#endif
