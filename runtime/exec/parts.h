/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of the executor, private to this folder. Binding looks up streams, events, pointers,
 * pieces and calls once, at creation. So a step only issues work. */
#ifndef WEFT_RUNTIME_EXEC_PARTS_H
#define WEFT_RUNTIME_EXEC_PARTS_H

#include "program/trace.h"
#include "runtime/arena/arena.h"
#include "runtime/exec/groups.h"
#include "runtime/exec/options.h"
#include "runtime/exec/place.h"
#include "runtime/exec/precision.h"
#include "runtime/exec/record.h"
#include "runtime/exec/streams.h"

struct exec_offloaded;   /* offloaded.h */
struct exec_deaths;      /* poison.h */
struct exec_host;        /* host.h */
struct exec_host_update; /* host_update.h; so is the next */
struct exec_updater;
struct exec_averaged; /* average.h */
struct exec_unit;     /* units.h */

/* Destination of a micro-batch. */
struct exec_batch {
    void *input, *targets;
    int32_t micro;
};

/* Words of the arena that ranks sum. */
struct exec_agreement {
    int64_t from_offset, to_offset, words;
};

/* A block of a layer's saved activations or input in the arena, and its offset in the host's memory
 * of the program. */
struct exec_saved {
    unsigned char *at;
    int64_t bytes, on_host;
};

struct exec_bound {
    enum weft_op op;
    int32_t slot, n_waits;
    int64_t ns;
    struct weft_stream *stream;
    struct weft_comm *comm;  /* of the lane; NULL if it is not of the network */
    struct weft_event *done; /* recorded after it; NULL if no other stream waits */
    struct weft_event **waits;
    bool carried, begins_record, updates; /* updates: part of a unit's update */
    bool needs_step, renews; /* works if an update is pending, or the host has no shard yet */
    bool idle;               /* this rank has no group in that round */
    const struct weft_instruction *at;
    union {
        struct {
            const struct weft_nn_call *call;    /* FORWARD, BACKWARD */
            const struct weft_nn_look *look;    /* for numbers that are not finite */
            const struct exec_written *written; /* gradients that it completes; NULL: none */
            int32_t begun; /* of a round's first loss: rounds before it; otherwise 0 */
        } layer;
        struct weft_comm_block block;          /* collectives */
        const struct exec_averaged *averaged;  /* AVERAGE, AVERAGE_GATHER */
        struct exec_agreement agreement;       /* AGREE */
        struct exec_batch batch;               /* LOAD */
        struct exec_saved saved;               /* copies of layers */
        struct exec_slice slice;               /* PARAMETERS_DOWN, PARAMETERS_FETCH */
        const struct exec_host_update *update; /* GRADIENT_DOWN, HOST_UPDATE, PARAMETERS_UP */
        struct {
            const struct exec_unit *unit; /* MOMENTS, UPDATE, ZERO, copies; NORM: all units */
            void *gradient;               /* ZERO: the full gradient */
            int64_t from, bytes;          /* COPY_UP, COPY_DOWN: the block in each state's buffer */
        } unit;
    } with;
};

struct exec_live; /* in live.c */

/* A step with gradients that are still to be applied. */
struct exec_pending {
    bool valid;
    bool applies; /* false: the updates of the first step with delay, which have no gradient */
    struct weft_optimizer optimizer;
};

struct weft_exec {
    struct weft_exec_options options;
    struct weft_pool pool;
    struct weft_comm *comm;       /* of the ranks that step together: all, or those of a node */
    int32_t rank, ranks;          /* of comm */
    struct exec_average *average; /* average.h; NULL: all ranks step together */
    struct weft_arena *arena;
    unsigned char *base;                          /* address of the arena's device memory */
    struct weft_stream *streams[WEFT_MOST_LANES]; /* by lane; NULL: no work on it */
    struct exec_lanes lanes;
    struct weft_event **events; /* [n_instructions]; NULL: no stream waits for it */
    struct exec_places places;
    struct exec_bound *tables[EXEC_TABLES]; /* [n_instructions], for even and odd periods */
    struct exec_bound *bound;               /* the table of the current period */
    int parity;                             /* of the current period */
    const void **prepared;                  /* [n_layers], of weft_nn_prepare */
    struct weft_record *records;
    struct exec_unit *units; /* [n_units], with addresses of the first period */

    int64_t input_bytes, target_bytes;
    int64_t all_rows;                         /* over all micro-steps and ranks of comm */
    int64_t rows, carried_rows;               /* with a loss: of the step, and of the step before */
    unsigned char *record, *record_sum, *own; /* own: struct exec_own */
    unsigned char *divisors;                  /* after own, of means */
    struct exec_mailbox mailbox;
    struct exec_offloaded *offloaded; /* NULL: no state is on a disk */
    struct exec_host *host;           /* NULL: nothing is on the host */
    struct exec_updater *updater;     /* NULL: nothing is updated on the host */
    struct exec_means *means;         /* NULL: the optimizer has none of whole tensors */
    struct exec_live *live;
    /* [n_slots + 1], for even and odd periods. Entry 0 comes before a period that follows no other;
     * slot s has entry s + 1. NULL without poison. */
    struct exec_deaths *deaths[EXEC_TABLES];
    struct weft_ranges residents;
    bool follows; /* the next issued period follows the last one */
    bool renews;  /* that period makes shards on the host from masters, which are new */

    const struct weft_step_inputs *inputs; /* of the current step */
    struct exec_pending pending;
    struct weft_nn_rule rule; /* for updates */
    struct weft_nn_step step; /* as written to the arena */
    uint64_t told_to_stop;    /* this rank, as written to the record */
    bool hashes, hashed;      /* this period's updates are; the last one has sent its words */
    struct exec_groups groups;
    struct weft_loss_scale scale; /* of the current step, then of the next */

    bool looks;            /* for numbers that are not finite; always in a rotated period */
    int64_t moments_began; /* step after which all moments were 0 */
    int64_t periods, last_step, updated; /* begun, begun last, and the step of its updates */
    int64_t failed_step;                 /* in which the failpoint last struck */
    unsigned char stale, flipped; /* a failpoint's read of dead memory, and its byte of a result */
};

static inline enum weft_dtype exec_compute(const struct weft_exec *exec)
{
    return (enum weft_dtype)exec->options.config->train.precision.compute;
}

static inline enum weft_dtype exec_reduce(const struct weft_exec *exec)
{
    return (enum weft_dtype)exec->options.config->train.precision.reduce;
}

/* lanes.c: the ranks of an instruction's collective or agreement; WEFT_GROUP_NONE: of none. */
enum weft_rank_group weft_exec_group_of(const struct weft_program *program,
                                        const struct weft_instruction *at);

/* bind.c: fills exec->tables; events must exist. */
WEFT_MUST_USE enum weft_status weft_exec_bind(struct weft_exec *exec, struct weft_error *err);

/* work.c: queue work other than backward and collectives on the compute stream. */
void weft_exec_push_load(struct weft_exec *exec, const struct exec_batch *batch);
void weft_exec_push_forward(struct weft_exec *exec, const struct exec_bound *bound);
void weft_exec_push_zero(struct weft_exec *exec, const struct exec_unit *unit, void *gradient);
void weft_exec_push_moments(struct weft_exec *exec, const struct exec_unit *unit);
void weft_exec_push_update(struct weft_exec *exec, const struct exec_unit *unit);
void weft_exec_push_norm(struct weft_exec *exec, const struct exec_unit *units);
/* Clears the words of the record that ranks sum. */
void weft_exec_push_record(struct weft_exec *exec, struct weft_stream *stream);
/* Before the updates of a step: decides on their hashes, and clears those that were sent. */
void weft_exec_push_hashes(struct weft_exec *exec, int64_t updated);
/* Adds a part of a unit to the record's norm, on one stream at a time. */
void weft_exec_push_norm_of(struct weft_exec *exec, struct weft_stream *stream, int32_t unit,
                            const struct weft_nn_unit *part);
void weft_exec_push_finish(struct weft_exec *exec);
/* Copies the scalars of the next update and of backward to the arena. */
void weft_exec_push_step(struct weft_exec *exec);
/* Copies this rank's own words to the mailbox. */
void weft_exec_push_own(struct weft_exec *exec);
void weft_exec_push_forget(struct weft_exec *exec); /* resets first_bad */
/* The step's result, from the mailbox. The loss is that of comm. */
struct weft_step_result weft_exec_finish(const struct weft_exec *exec);

/* live.c: counts live bytes. A piece lives from the launch of its first write to the MARK after
 * which all its accesses are complete. */
WEFT_MUST_USE enum weft_status weft_exec_live_create(const struct weft_program *program,
                                                     struct exec_live **out,
                                                     struct weft_error *err);
void weft_exec_live_destroy(struct exec_live *live);
/* Call it for each instruction of a step, in issue order. `rows`: of weft_trace, or NULL. */
void weft_exec_live_issue(struct exec_live *live, int32_t instruction, int64_t *rows);
/* After a step was issued: writes the last slot's row. */
void weft_exec_live_end(struct exec_live *live, int64_t *rows);

/* exec.c: prepares the next period's tables, for a step, a settle or an evaluation. */
void weft_exec_turn(struct weft_exec *exec);
/* exec.c: puts instruction i on its stream, after its waits. Without `works` it keeps its place
 * alone: others may wait for it because of instructions before it. */
void weft_exec_issue(struct weft_exec *exec, int32_t i, bool works);

/* trespass.c: clears all stamps, while no stream works. */
void weft_exec_forget_stamps(struct weft_exec *exec);
/* failure.c: queues the failure that a failpoint asks for, before or after instruction i. */
void weft_exec_push_failure(struct weft_exec *exec, int32_t i, bool behind);

#endif
