/* A plan with a layout. Placements that fit row by row may have no layout that does, so what a
 * planner decides is lowered and packed, and what fits is kept, the fastest of it. */
#ifndef WEFT_SCHEDULER_ROUNDS_PACKED_H
#define WEFT_SCHEDULER_ROUNDS_PACKED_H

#include "program/program.h"
#include "scheduler/digest/digest.h"
#include "scheduler/digest/planner.h"

/* A candidate whose layout, in rows that held tight_bytes more, was too long by `excess` bytes. */
struct weft_near_miss {
    struct weft_candidate candidate;
    int64_t tight_bytes, step_ns, excess;
};

enum { WEFT_NEAR_MISSES = 8 };

/* One call of weft_schedule. */
struct weft_packed {
    const struct weft_problem *problem;
    const struct weft_lower_inputs *inputs; /* NULL: no layout; else: */
    struct weft_lower_inputs limited;       /* in the search of a layout */
    const struct weft_schedule_options *options;
    const struct weft_planner *planner;
    struct weft_digest *table;
    int64_t *room_bytes; /* [n_slots], the most of them: see weft_tight_room */
    int64_t most_room_bytes;
    struct weft_candidate candidate;
    /* The bound of the first round, and what the solver said in the last. */
    struct weft_outcome outcome;
    struct weft_pool pool; /* of certificates */
    struct weft_budget budget;
    /* The candidate's layout that takes least. */
    struct weft_plan *plan;
    struct weft_program *program;
    struct weft_plan *best; /* the fastest that fits, of those put aside, or NULL */
    struct weft_program *best_program;
    struct weft_near_miss shortest; /* of all layouts that were too long; step_ns 0: none */
    struct weft_near_miss near[WEFT_NEAR_MISSES]; /* the fastest first; a little too long */
    int32_t n_near;
    int32_t n_again; /* rounds behind the first */
};

bool weft_packed_is_spent(const struct weft_packed *run);

/* Replaces plan and program of the candidate; takes both. */
void weft_packed_keep(struct weft_packed *run, struct weft_plan *plan,
                      struct weft_program *program);

/* Bytes of the candidate's plan, which there must be. */
int64_t weft_packed_total_bytes(const struct weft_packed *run);

/* The candidate's plan with its prediction, without a layout; the caller destroys it. Relaxed
 * within the limit of the `rows` when that is wanted and costs no time. */
WEFT_MUST_USE enum weft_status weft_packed_measure(const struct weft_packed *run,
                                                   const struct weft_candidate *candidate,
                                                   const struct weft_problem *rows, bool relax,
                                                   struct weft_plan **out, struct weft_error *err);

/* Lowers the candidate and searches for a layout within the limit: run->plan is the one that takes
 * least, or NULL when the candidate is no faster than the best that fits. Blocks are as they are,
 * or moved apart as far as memory allows in the `rows`, but not those of a
 * `literal` candidate. The longest search is left out for one of many that is far too long. */
WEFT_MUST_USE enum weft_status weft_packed_pack(struct weft_packed *run,
                                                const struct weft_problem *rows, bool literal,
                                                bool is_one_of_many, struct weft_error *err);

/* The same for one of many candidates: longer searches only where a short one comes near. When the
 * budget is used up the short ones alone, which nothing then ends. */
WEFT_MUST_USE enum weft_status weft_packed_pack_quick(struct weft_packed *run,
                                                      const struct weft_problem *rows,
                                                      struct weft_error *err);

/* The same by searches several times as long, for when no other rows will be planned. Of n_left
 * candidates that are left it is the first: of the budget that is left each search has half of this
 * one's share. The shorter layout stays. */
WEFT_MUST_USE enum weft_status weft_packed_pack_hard(struct weft_packed *run,
                                                     const struct weft_problem *rows, bool literal,
                                                     int32_t n_left, struct weft_error *err);

/* A plan from elsewhere as it is, by the addresses that it brings where these are safe, else as a
 * literal candidate. run->plan is NULL when it is no faster than the best that fits, or is none of
 * this problem's; without inputs always. */
WEFT_MUST_USE enum weft_status weft_packed_start(struct weft_packed *run,
                                                 const struct weft_plan *start,
                                                 struct weft_error *err);

/* The leanest strategies, gathers as late as they can be, and blocking where rows would exceed
 * `limit_bytes`: 0 makes all of them block, and the plan the leanest there is. */
WEFT_MUST_USE enum weft_status weft_packed_lean(struct weft_packed *run, int64_t limit_bytes,
                                                struct weft_error *err);

/* The last resort when packing fails: nothing is gathered ahead of its use. It is packed whatever
 * that takes, for there must be a plan. */
WEFT_MUST_USE enum weft_status weft_packed_leanest(struct weft_packed *run, struct weft_error *err);

#endif
