/* The executor's insides, shared by the files of this folder alone. A bound instruction is one of
 * the program with everything looked up: streams, events, pointers, pieces, calls. It is made once,
 * when the executor is created, so that a step only hands it over. */
#ifndef WEFT_RUNTIME_EXEC_PARTS_H
#define WEFT_RUNTIME_EXEC_PARTS_H

#include "base/pool.h"
#include "runtime/exec/exec.h"
#include "runtime/exec/units.h"
#include "runtime/nn/optimizer.h"

/* Words of the record that ranks add up. Every word is an integer, so the order of ranks does not
 * matter. A rank's loss is split at the binary point: the integer part in one word, the fraction in
 * units of 2^-32 in the next; both are exact for losses below EXEC_LOSS_MOST, and 2^16 ranks of
 * them fit. */
enum {
    EXEC_WORD_NORM = 0, /* WEFT_NORM_WORDS bins */
    EXEC_WORD_LOSS = WEFT_NORM_WORDS,
    EXEC_WORD_LOSS_FRACTION,
    EXEC_WORD_BAD_LOSS,  /* ranks whose loss is not finite, or is too large */
    EXEC_WORD_STOP,      /* ranks that were told to stop */
    EXEC_WORD_BAD_UNITS, /* one word a unit: ranks that own a gradient of it that is not finite */
    EXEC_WORDS = WEFT_AGREE_BYTES / 8,
    /* Units beyond share the last word. */
    EXEC_FLAGGED_UNITS = EXEC_WORDS - EXEC_WORD_BAD_UNITS
};
#define EXEC_LOSS_MOST 0x1p46

/* Where a micro-batch goes. */
struct exec_batch {
    unsigned char *input, *targets;
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
    union {
        const struct weft_nn_call *call; /* FORWARD, BACKWARD */
        struct weft_comm_block block;    /* collectives */
        struct exec_agreement agreement; /* AGREE */
        struct exec_batch batch;         /* LOAD */
        struct {
            struct exec_unit *unit;  /* MOMENTS, UPDATE, ZERO */
            unsigned char *gradient; /* ZERO: the full one */
        } unit;
    } with;
};

/* Bytes of the arena, [begin, end). */
struct exec_range {
    int64_t begin, end;
};

/* What to poison at the start of a slot, and (ASan) what to open again. */
struct exec_deaths {
    struct exec_range *dead, *born;
    int32_t n_dead, n_born;
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
    unsigned char *arena;
    struct weft_stream *streams[WEFT_STREAM_COUNT];
    struct weft_event **events; /* [n_instructions], NULL where there is none */
    struct exec_bound *bound;   /* [n_instructions] */
    struct weft_record *records;
    struct exec_unit *units; /* [n_units] */

    int64_t input_bytes, target_bytes;
    int64_t rows;     /* of the loss, on this rank, in one micro-step */
    int64_t all_rows; /* of all micro-steps and ranks */
    uint64_t *record, *record_sum;
    double *losses; /* by micro-step: sum of this rank's rows, from the loss layer's forward */

    struct exec_live *live;
    struct exec_deaths *deaths; /* [n_slots]; NULL without poison */
    int64_t touched_bytes;

    const struct weft_step_inputs *inputs; /* of the step under way */
    struct weft_step_result finished;      /* by FINISH */
    struct exec_pending pending;
    struct weft_loss_scale scale; /* of the step under way, and then of the next */

    bool looks;          /* for what is not finite; in a rotated period always */
    int64_t periods;     /* begun */
    int64_t first_bad;   /* what wrote it: period * n_instructions + instruction; INT64_MAX: none */
    int64_t last_step;   /* that was begun */
    int64_t failed_step; /* in which the failpoint struck last */
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

/* bind.c: fills exec->bound; events must exist. */
WEFT_MUST_USE enum weft_status weft_exec_bind(struct weft_exec *exec, struct weft_error *err);

/* work.c: what the executor computes itself, as tasks of the compute stream. */
void weft_exec_push_load(struct weft_exec *exec, const struct exec_batch *batch);
void weft_exec_push_zero(struct weft_exec *exec, const struct exec_unit *unit,
                         unsigned char *gradient);
void weft_exec_push_update(struct weft_exec *exec, struct exec_unit *unit);
/* What an update of a piece of a unit works on. */
struct weft_update weft_exec_update_of(const struct weft_exec *exec, const struct exec_unit *unit,
                                       const struct weft_piece *piece);
void weft_exec_push_norm(struct weft_exec *exec);
void weft_exec_push_finish(struct weft_exec *exec);

/* lamb.c: updates that ranks agree on, in their two parts. */
void weft_exec_push_moments(struct weft_exec *exec, struct exec_unit *unit);
void weft_exec_apply_lamb(struct weft_exec *exec, struct exec_unit *unit);

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

/* poison.c */
WEFT_MUST_USE enum weft_status weft_exec_poison_create(struct weft_exec *exec,
                                                       struct weft_error *err);
void weft_exec_poison_push(struct weft_exec *exec, int32_t slot);
/* Opens the whole arena again. */
void weft_exec_poison_destroy(struct weft_exec *exec);
/* Looks for the highest byte that no longer holds the pattern in what lives now. */
int64_t weft_exec_poison_touched(const struct weft_exec *exec);

/* exec.c: puts instruction i on its stream; waits for both streams. One that does not `work` keeps
 * its place in the order all the same: others may wait for it because of what is ahead of it. */
void weft_exec_issue(struct weft_exec *exec, int32_t i, bool works);
WEFT_MUST_USE enum weft_status weft_exec_synchronise(struct weft_exec *exec,
                                                     struct weft_error *err);

/* failure.c: what a failpoint asks for, before or behind instruction i. */
void weft_exec_push_failure(struct weft_exec *exec, int32_t i, bool behind);
/* culprit.c */
/* True when n numbers are finite, and with more than 1 term also so small that as many of them add
 * up to what is finite. */
bool weft_exec_adds_up(enum weft_dtype dtype, const void *numbers, int64_t n, int64_t terms);
/* In a rotated period, from the first update on: some rank has seen a gradient of the step that is
 * applied that is not finite, or would not be when added up. The same on all ranks. */
static inline bool weft_exec_gradients_are_bad(const struct weft_exec *exec)
{
    return exec->options.program->period.rotated && weft_comm_is_raised(exec->options.comm);
}
/* While exec->looks, a look at what instruction i wrote. */
void weft_exec_push_look(struct weft_exec *exec, int32_t i);
/* Collective: what ranks have seen, without another step. */
WEFT_MUST_USE enum weft_status weft_exec_compare_looks(struct weft_exec *exec,
                                                       struct weft_culprit *out,
                                                       struct weft_error *err);

/* priority.c: asks the system to run the channel before compute where they share a core. */
void weft_exec_prefer_channel(struct weft_exec *exec);

#endif
