/* A plan is the decision: a strategy for every decision and a placement for every block, with what
 * it is predicted to cost, a bound below which no plan can be, and the problem that it solves. It
 * is the same for all ranks. */
#ifndef WEFT_PLAN_PLAN_H
#define WEFT_PLAN_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "memory_model/pages/pages.h"
#include "plan/placement.h"
#include "problem/problem.h"
#include "proof/certificate.h"

struct weft_prediction {
    int64_t step_ns;     /* by simulate */
    int64_t exposed_ns;  /* compute stream waiting for communication */
    int64_t compute_ns;  /* sum of slot times */
    int64_t slowdown_ns; /* by which slots take longer beside communication: the rest of step_ns */
    int64_t channel_ns;  /* sum of block times and agree */
    int64_t peak_bytes;  /* largest row, base included */
    int32_t peak_slot;
    int64_t arena_bytes; /* the program's pages */
    int64_t total_bytes; /* base + arena: what the limit binds */
};

/* A period that the config leaves open (weft_stages_variants) and that a plan does not have: no
 * plan of this problem is faster than bound_ns; WEFT_PROBLEM_MOST says that none fits. */
struct weft_plan_variant {
    struct weft_problem *problem; /* owned */
    int64_t bound_ns;             /* 0 = none was computed */
    struct weft_certificate certificate;
};

struct weft_plan {
    struct weft_pool pool;
    const struct weft_problem *problem;
    bool owns_problem;   /* destroyed with the plan */
    const char *planner; /* "ilp" */
    int32_t *strategies; /* by decision */
    int32_t n_placements;
    struct weft_placement *placements;
    struct weft_prediction prediction;
    /* As its file says (weft_plan_decision_hash); NULL when it was not read from a file. */
    const struct weft_hash *decision_hash;
    /* Pages of the program's buffers, so that they are given out once and are the same on all
     * ranks; none before the plan was lowered. */
    struct weft_page_lists pages;
    int64_t bound_ns;     /* proven: no plan of this problem is faster; 0 = none was computed */
    const char *bound_by; /* "lp relaxation, weak duality", "compute" ... */
    struct weft_certificate certificate; /* of bound_ns; empty when that is 0 */
    /* The other periods that were planned, of which this one has the fastest plan found; below
     * WEFT_MOST_VARIANTS. */
    int32_t n_others;
    struct weft_plan_variant *others;
    /* Decisions of work after which its planner had a plan that fits; 0 = not known. Not in the
     * file.
     */
    int64_t first_work;
    double solver_gap;       /* the solver's own figure; negative = none */
    const char *solver_stop; /* "optimal", "gap", "time limit", "solver missing: ..." */
};

/* A block and its slot. A gather's is in [first, last + 1] of its item's window:
 *   s <= last: launched at the start of s, complete before the start of slot last + 1, which uses
 *     it; its bytes are held from s to last (memory_model/weigh.h).
 *   s == last + 1: blocking. Launched at the start of the slot that uses it, whose compute waits
 *     for it: no byte is held for it before, and all of its channel time is waited for.
 * A reduction's slot is in [first, last], by whose end it is complete, and `launch` in
 * [first, slot]; below first, as 0 always is, means first. Its bytes are held from first to slot
 * whatever its launch. A gather's `launch` is not looked at. */
struct weft_move {
    int32_t item, slot, launch;
};

/* Builds a plan from strategies and, for every item that they need, a move for every block, in
 * channel order; the k-th move of an item is its block k. Derives launch and deadline, then puts
 * them in normal form: a gather is not launched before anything ahead of it in the channel (which
 * may make it a blocking one), and a reduction's deadline is not later than the time by which
 * anything behind it must be complete, which is what happens-before makes of them anyway. The
 * problem is referred to, not copied: it must outlive the plan unless the caller sets owns_problem.
 * WEFT_E_INTERNAL when the moves are not exactly what the strategies need, a slot or launch is
 * outside its window, or a block is due before something ahead of it is launched. WEFT_E_INFEASIBLE
 * where items come after others and moves wait for one another, or one is due before what it comes
 * after can be over, or where what cannot block would: of that planners may know nothing. The
 * prediction is not filled (see weft_plan_predict). */
WEFT_MUST_USE enum weft_status weft_plan_create(const struct weft_problem *problem,
                                                const char *planner, const int32_t *strategies,
                                                const struct weft_move *moves, int32_t n_moves,
                                                struct weft_plan **out, struct weft_error *err);
/* Frees the problem too when it owns it. Accepts NULL. */
void weft_plan_destroy(struct weft_plan *plan);

/* The strategy that the plan has for a decision. */
static inline const struct weft_problem_strategy *weft_plan_chosen(const struct weft_plan *plan,
                                                                   int32_t decision)
{
    return weft_problem_chosen(plan->problem, plan->strategies, decision);
}

/* Bytes of a tier held in every slot by category under a plan's strategies and placements: the
 * memory rows of the ILP. rows[slot * WEFT_CATEGORY_COUNT + category]; the caller gives n_slots *
 * COUNT. */
void weft_plan_rows(const struct weft_plan *plan, int32_t tier, int64_t *rows);
/* The tier's largest row sum, and its slot (may be NULL); -1 when memory runs out. */
int64_t weft_plan_peak(const struct weft_plan *plan, int32_t tier, int32_t *slot);

/* WEFT_OK when every row is within its tier's limit; otherwise WEFT_E_DATA names the fullest. A
 * reader of a plan that it did not make calls this first; `source` is in the error. */
WEFT_MUST_USE enum weft_status weft_plan_check_rows(const struct weft_plan *plan,
                                                    const char *source, struct weft_error *err);

/* Compute time of a slot under the plan's strategies. */
int64_t weft_plan_slot_ns(const struct weft_plan *plan, int32_t slot);

/* Moves gathers' launches earlier and reductions' deadlines later, in channel order, as far as
 * every row stays within its limit, the device's within `limit_bytes`: same channel order, less
 * tender to jitter on a real machine, and never slower in the simulator but where
 * weft_problem_relaxing_may_slow. The prediction is not renewed. */
WEFT_MUST_USE enum weft_status weft_plan_relax(struct weft_plan *plan, int64_t limit_bytes,
                                               struct weft_error *err);

/* Hashes strategies, placements, page size and stretches: a file that something other than weft
 * changed is told even where it became another plan, as fast and within the limit. */
struct weft_hash weft_plan_decision_hash(const struct weft_plan *plan);

/* The least bound of the plan's period and of all others: no plan of any is faster; 0 = none. */
int64_t weft_plan_least_bound_ns(const struct weft_plan *plan);

/* WEFT_OK when the certificates prove the bounds of the plan and of the other periods; else
 * WEFT_E_DATA says which does not, and why. */
WEFT_MUST_USE enum weft_status weft_plan_check_bounds(const struct weft_plan *plan,
                                                      struct weft_error *err);

/* (step - bound) / bound; 0 when there is no bound. */
double weft_plan_gap(const struct weft_plan *plan);

/* JSON document, `format` "weft-plan", with a version; a plan read back is equal. Reading
 * recomputes nothing and trusts nothing: indices, windows, order and normal form are checked. */
void weft_plan_write(const struct weft_plan *plan, struct weft_text *out);
WEFT_MUST_USE enum weft_status weft_plan_parse(const char *bytes, size_t length, const char *source,
                                               struct weft_plan **out, struct weft_error *err);
struct weft_hash weft_plan_hash(const struct weft_plan *plan);

/* WEFT_OK when a plan's problem is this one (config and profile); else WEFT_E_DATA naming the first
 * differences. */
WEFT_MUST_USE enum weft_status weft_plan_matches(const struct weft_problem *planned,
                                                 const struct weft_problem *problem,
                                                 struct weft_error *err);

#endif
