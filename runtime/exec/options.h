/* SPDX-License-Identifier: Apache-2.0 */
/* The options of an executor, and the inputs and the result of a step. */
#ifndef WEFT_RUNTIME_EXEC_OPTIONS_H
#define WEFT_RUNTIME_EXEC_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/failpoint.h"
#include "base/hash.h"
#include "base/status.h"
#include "base/watch.h"
#include "program/program.h"
#include "runtime/comm/comm.h"
#include "runtime/device/device.h"
#include "runtime/nn/nn.h"
#include "shard/shard.h"
#include "spec/config.h"

struct weft_exec;
struct weft_exec_event;

struct weft_exec_options {
    /* All must outlive the executor. */
    const struct weft_config *config;
    const struct weft_shards *shards;
    const struct weft_plan *plan;
    const struct weft_program *program;
    struct weft_device *device;
    struct weft_comm *comm; /* has mapped `arena` by weft_exec_map_arena */
    struct weft_nn *nn;
    struct weft_arena *arena;
    /* Fill dead bytes with a pattern (0xFF: NaN), so that a read of them shows. ASan builds poison
     * these ranges too. */
    bool poison;
    const struct weft_failpoint *failpoint; /* its places are ops and "replica"; may be NULL */
    struct weft_watch *watch;               /* counts units that get initial values; may be NULL */
    bool sums_groups;                       /* for weft_exec_next_group; of one rank alone */
    /* Called after the work of each forward and backward was queued, to queue copies of its
     * results; may be NULL. */
    void (*on_layer)(void *context, const struct weft_exec_event *event);
    void *context;
};

/* A forward or backward of a layer whose work is queued. */
struct weft_exec_event {
    struct weft_stream *stream;
    struct weft_arena *arena;
    const struct weft_nn_call *call;
    int64_t step;
    int32_t layer, micro, round; /* of the step */
    bool backward;
    /* BACKWARD: whole gradients of a group that are complete now, at base + state_at elements. */
    const struct weft_nn_piece *complete;
    int64_t n_complete;
    const unsigned char *base;
    double loss_scale; /* of the gradients */
};

/* Collective. Maps the arena of a program by its paging, and the peers' buffers that collectives
 * read. `poison` is the executor's option. Errors are those of weft_comm_map_arena. Unmap the arena
 * with weft_comm_unmap_arena. */
WEFT_MUST_USE enum weft_status weft_exec_map_arena(struct weft_comm *comm,
                                                   const struct weft_program *program, bool poison,
                                                   struct weft_arena **out, struct weft_error *err);

/* Collective. Threads that update on the host: cluster.host.threads, or the rank's cores without
 * those of compute and copies; at least 1. Errors are those of weft_comm_share_cores. */
WEFT_MUST_USE enum weft_status weft_exec_update_threads(const struct weft_config *config,
                                                        struct weft_comm *comm, int32_t *threads,
                                                        struct weft_error *err);

struct weft_step_inputs {
    const void *input;      /* tokens, or fp32 that LOAD rounds to compute; by micro-batch */
    const int32_t *targets; /* by micro-batch */
    int64_t step;           /* of these inputs: 1, 2, ... */
    double lr;              /* learning rate of these gradients' update, at the next step's start */
    bool stop;              /* this rank was told to stop */
    bool ends;              /* it has no data for the next step; with stop */
    bool meets;             /* of nodes that step on their own: all nodes agree after this step */
    int64_t rows; /* targets of the step with a loss, over all ranks: loss and gradients are
                     divided by their number; 0: all targets */
};

/* Hashes of each group's gradient before the sum over ranks. Groups are numbered in data order, and
 * rank g % ranks computes group g. */
enum { WEFT_GROUP_HASHES = 64 };
struct weft_group_hashes {
    int64_t step;  /* of the gradients; 0: none */
    int64_t n;     /* groups of a step */
    int32_t ranks; /* that shared them */
    /* By group; with more groups the sum over every WEFT_GROUP_HASHES-th one. */
    uint64_t hashes[WEFT_GROUP_HASHES];
};

/* A group as a step of its own. */
struct weft_group_line {
    int64_t step, group;
    double loss; /* mean over the group's rows */
    double norm; /* of the gradient of that mean; infinite if an element is not finite */
};

struct weft_step_result {
    /* Mean over all targets of all ranks that have a loss. Of nodes that step on their own: before
     * an average, or if it is not finite; otherwise of the node's ranks. */
    double loss;
    double norm; /* of the whole gradient before clipping; negative if not computed */
    double clip; /* coefficient used; 1: not clipped */
    /* Some rank was told to stop; equal on all ranks. Nodes that step on their own learn it after a
     * step in which they meet; false after other steps. */
    bool stop;
    /* Nodes that step on their own: all agree on this result. After a step in which they do not
     * meet, it is of the node alone. */
    bool met;
    /* A node ended at another step than this rank, without data or with numbers that are not
     * finite: nodes have no state of one step, and no rank goes on. The step of that node. */
    int64_t lost_step; /* 0: none */
    /* With `met`, mean losses of all nodes since the last time, and the number of steps. */
    double nodes_loss;
    int64_t nodes_steps;
    bool finite; /* false: no rank may update; the same on all ranks */
    /* The gradients of the step before are not finite, or their sum over ranks is not. This happens
     * in a rotated period only. No rank has updated with them. */
    bool earlier;
    /* f16 overflowed: nothing is updated, and the loss scale is smaller. Run the same step again
     * with the same inputs. `finite` is then true. */
    bool skipped;
    double loss_scale; /* of the gradients */
    /* Unit nearest to the loss with a gradient that is not finite; -1: none. Backward begins at the
     * loss, so this unit went wrong first. */
    int32_t suspect;
    /* The hash of all trained parameters before this step, if train.fingerprint.every asks for it
     * and an update of this run made them. Otherwise zero. */
    struct weft_hash parameters;
    /* If train.fingerprint.every asks for them: of this step, or of the one before in a rotated
     * period, which completes them there. */
    struct weft_group_hashes gradients;
};

#endif
