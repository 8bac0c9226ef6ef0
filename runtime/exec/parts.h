/* The executor's insides, shared by the files of this folder alone. A bound instruction is one of
 * the program with everything looked up: streams, events, pointers, pieces, calls. It is made once,
 * when the executor is created, so that a step only hands it over. */
#ifndef WEFT_RUNTIME_EXEC_PARTS_H
#define WEFT_RUNTIME_EXEC_PARTS_H

#include "runtime/exec/away.h"
#include "runtime/exec/exec.h"
#include "runtime/exec/host.h"
#include "runtime/exec/host_update.h"
#include "runtime/exec/place.h"
#include "runtime/exec/poison.h"
#include "runtime/exec/record.h"

/* Where a micro-batch goes. */
struct exec_batch {
    void *input, *targets;
    int32_t micro;
};

/* Words of the arena that ranks add up. */
struct exec_agreement {
    int64_t from_offset, to_offset, words;
};

struct exec_bound {
    enum weft_op op;
    int32_t slot;
    int64_t ns;
    struct weft_stream *stream;
    struct weft_event *done; /* recorded after it; NULL when nobody on the other stream waits */
    struct weft_event **waits;
    int32_t n_waits;
    bool carried;
    bool updates; /* part of a unit's update */
    bool begins_record;
    union {
        struct {
            const struct weft_nn_call *call; /* FORWARD, BACKWARD */
            const struct weft_nn_look *look; /* for what is not finite in what it writes */
        } layer;
        struct weft_comm_block block;    /* collectives */
        struct exec_agreement agreement; /* AGREE */
        struct exec_batch batch;         /* LOAD */
        struct exec_saved saved;         /* SAVED_DOWN, SAVED_UP */
        const struct exec_there *there;  /* GRADIENT_DOWN, HOST_UPDATE, PARAMETERS_UP */
        struct {
            const struct exec_unit *unit; /* MOMENTS, UPDATE, ZERO; NORM: of all units */
            void *gradient;               /* ZERO: the full one */
        } unit;
    } with;
};

struct exec_live; /* live.c */

/* The step whose gradients wait to be applied. */
struct exec_pending {
    bool valid;
    struct weft_optimizer optimizer;
};

struct weft_exec {
    struct weft_exec_options options;
    struct weft_pool pool;
    int32_t rank, ranks;
    struct weft_arena *arena;
    unsigned char *base; /* the arena's address, of the device's memory */
    struct weft_stream *streams[WEFT_STREAM_COUNT];
    struct weft_event **events; /* [n_instructions], NULL where there is none */
    struct exec_places places;
    struct exec_bound *tables[EXEC_TABLES]; /* [n_instructions], for even and for odd periods */
    struct exec_bound *bound;               /* that of the period under way */
    int parity;                             /* its */
    struct weft_record *records;
    struct exec_unit *units; /* [n_units], as in the first period */

    int64_t input_bytes, target_bytes;
    int64_t all_rows; /* of all micro-steps and ranks */
    unsigned char *record, *record_sum;
    unsigned char *own; /* struct exec_own */
    struct exec_mailbox mailbox;
    struct exec_away *away;       /* NULL: no state is on a disk */
    struct exec_host *host;       /* NULL: nothing is in the host's memory */
    struct exec_updater *updater; /* NULL: nothing is updated there */
    struct exec_live *live;
    /* [n_slots + 1], for even and for odd periods: before a period that follows no other, and by
     * slot. NULL without poison. */
    struct exec_deaths *deaths[EXEC_TABLES];
    struct weft_ranges residents;
    bool follows; /* what is issued next, the period that was issued last */

    const struct weft_step_inputs *inputs; /* of the step under way */
    struct exec_pending pending;
    struct weft_nn_rule rule;     /* of updates */
    struct weft_nn_step step;     /* as it is written to the arena */
    uint64_t told_to_stop;        /* this rank: as it is written to the record */
    struct weft_loss_scale scale; /* of the step under way, and then of the next */

    bool looks;            /* for what is not finite; in a rotated period always */
    int64_t moments_began; /* step after which all moments were 0 */
    int64_t periods;       /* begun */
    int64_t last_step;     /* that was begun */
    int64_t failed_step;   /* in which the failpoint struck last */
    unsigned char stale;   /* that it read of what is dead */
};

static inline enum weft_dtype exec_compute(const struct weft_exec *exec)
{
    return (enum weft_dtype)exec->options.config->train.precision.compute;
}

static inline enum weft_dtype exec_reduce(const struct weft_exec *exec)
{
    return (enum weft_dtype)exec->options.config->train.precision.reduce;
}

/* units.c: pieces, pointers and gaps of every unit. */
WEFT_MUST_USE enum weft_status weft_exec_units_fill(struct weft_exec *exec, struct weft_error *err);

/* bind.c: fills exec->tables; events must exist. */
WEFT_MUST_USE enum weft_status weft_exec_bind(struct weft_exec *exec, struct weft_error *err);

/* work.c: what is done beside layers and collectives, as work of the compute stream. */
void weft_exec_push_load(struct weft_exec *exec, const struct exec_batch *batch);
void weft_exec_push_zero(struct weft_exec *exec, const struct exec_unit *unit, void *gradient);
void weft_exec_push_moments(struct weft_exec *exec, const struct exec_unit *unit);
void weft_exec_push_update(struct weft_exec *exec, const struct exec_unit *unit);
void weft_exec_push_norm(struct weft_exec *exec, const struct exec_unit *units);
/* An empty record, for what is added to it. */
void weft_exec_push_record(struct weft_exec *exec, struct weft_stream *stream);
/* What a part of a unit adds to the record's norm, as work of any one stream at a time. */
void weft_exec_push_norm_of(struct weft_exec *exec, struct weft_stream *stream, int32_t unit,
                            const struct weft_nn_unit *part);
void weft_exec_push_finish(struct weft_exec *exec);
/* Scalars of the update to come, and of backward, to the arena. */
void weft_exec_push_step(struct weft_exec *exec);
/* Copies struct exec_own to the mailbox. */
void weft_exec_push_own(struct weft_exec *exec);
/* Nothing was found that is not finite. */
void weft_exec_push_forget(struct weft_exec *exec);
/* What FINISH left in the mailbox, as a result. */
struct weft_step_result weft_exec_finish(const struct weft_exec *exec);

/* live.c: counts live bytes while a step is issued. A piece becomes live with the first write of
 * it that is launched and dies with the MARK from which on all its accesses are over. */
WEFT_MUST_USE enum weft_status weft_exec_live_create(const struct weft_program *program,
                                                     struct exec_live **out,
                                                     struct weft_error *err);
void weft_exec_live_destroy(struct exec_live *live);
/* Called for every instruction of a step in issue order; `rows` as in weft_trace, may be NULL. */
void weft_exec_live_issue(struct exec_live *live, int32_t instruction, int64_t *rows);
/* Called when a step has been issued: the last slot's row. */
void weft_exec_live_end(struct exec_live *live, int64_t *rows);

/* exec.c: what is issued next is of the next period, whether that will count as one or not. */
void weft_exec_turn(struct weft_exec *exec);
/* exec.c: puts instruction i on its stream; waits for both streams. One that does not `work` keeps
 * its place in the order all the same: others may wait for it because of what is ahead of it. */
void weft_exec_issue(struct weft_exec *exec, int32_t i, bool works);
WEFT_MUST_USE enum weft_status weft_exec_synchronise(struct weft_exec *exec,
                                                     struct weft_error *err);

/* trespass.c: no instruction has begun; while no stream works. */
void weft_exec_forget_stamps(struct weft_exec *exec);
/* failure.c: what a failpoint asks for, before or behind instruction i. */
void weft_exec_push_failure(struct weft_exec *exec, int32_t i, bool behind);
/* culprit.c. In a rotated period, of what the mailbox says: some rank has seen a gradient of the
 * step that is applied that is not finite, or would not be when added up. The same on all ranks. */
static inline bool weft_exec_is_bad(const struct weft_exec *exec, uint32_t stop)
{
    return exec->options.program->period.rotated && stop != 0;
}
/* Binds a look at what the call writes; NULL there when memory is short. */
const struct weft_nn_look *weft_exec_bind_look(struct weft_exec *exec,
                                               const struct weft_nn_call *call, bool backward);
/* While exec->looks, a look at what instruction i wrote. */
void weft_exec_push_look(struct weft_exec *exec, int32_t i);
/* Collective: what ranks have seen, without another step. */
WEFT_MUST_USE enum weft_status weft_exec_compare_looks(struct weft_exec *exec,
                                                       struct weft_culprit *out,
                                                       struct weft_error *err);

/* priority.c: asks the system to run the channel before compute where they share a core. */
void weft_exec_prefer_channel(struct weft_exec *exec);

#endif
