/* SPDX-License-Identifier: Apache-2.0 */
/* A plan has a strategy for every decision and a placement for every block. It also has a
 * prediction, a bound below which no plan can be, and the problem that it solves. It is the same
 * for all ranks. */
#ifndef WEFT_PLAN_PLAN_H
#define WEFT_PLAN_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "memory_model/pages/pages.h"
#include "plan/placement.h"
#include "plan/variant.h"
#include "problem/problem.h"
#include "proof/certificate.h"

struct weft_prediction {
    int64_t step_ns;     /* simulated step */
    int64_t exposed_ns;  /* compute waits for communication */
    int64_t compute_ns;  /* sum of slot times */
    int64_t slowdown_ns; /* slow-down of slots by contention: the rest of step_ns */
    int64_t channel_ns;  /* sum of block times and agreements */
    int64_t peak_bytes;  /* largest row, base included */
    int32_t peak_slot;
    int64_t arena_bytes; /* the program's pages */
    int64_t total_bytes; /* base + arena: bound by the limit */
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
    /* The hash in the plan's file (weft_plan_decision_hash); NULL if it was not read from a file.
     */
    const struct weft_hash *decision_hash;
    /* Pages of the program's buffers, stored so that all ranks have the same; empty until the plan
     * is lowered. */
    struct weft_page_lists pages;
    int64_t bound_ns;     /* proven: no plan of this problem is faster; 0: not computed */
    const char *bound_by; /* "lp relaxation, weak duality", "compute" ... */
    struct weft_certificate certificate; /* of bound_ns; empty if bound_ns is 0 */
    /* Proven: no plan of this problem in pages of this size is faster. Above bound_ns; 0: not
     * computed, or no higher. */
    int64_t paged_bound_ns;
    struct weft_certificate paged_certificate; /* of paged_bound_ns (problem/pages.h) */
    /* The other planned periods, fewer than WEFT_MOST_PLANNED. This plan's period has the fastest
     * plan found. */
    int32_t n_others;
    struct weft_plan_variant *others;
    int32_t n_open; /* periods that the config allows, planned or not; 0: not known */
    /* Work until the planner had a plan that fits; 0: not known. Not in the file. */
    int64_t first_work;
    /* With so many bytes more on the device ilp found a step of more_ns; 0: not known. Not in the
     * file. */
    int64_t more_bytes, more_ns;
    /* For another runtime: the step found for Weft's own plans within the same limit, and its
     * bound; 0: not known. Not in the file. */
    int64_t free_step_ns, free_bound_ns;
    bool free_never_fits;    /* the least rows of Weft's own plans are above the limit */
    const char *solver_stop; /* end of planning: "gap closed", "work limit", "solver failed: ..." */
    /* Name and version of the solver that answered while planning, "HiGHS 1.2.3"; NULL: GLPK, or
     * none answered. */
    const char *solver_name;
};

/* A block and its slot. A gather's slot s is in [first, last + 1] of its item's window:
 *
 *  s <= last: launched at the start of s, complete before the start of slot last + 1, which uses
 *    it. Its bytes are held from s to last (memory_model/weigh.h).
 *  s == last + 1: blocking. The slot that uses it launches it at its start, and compute waits. It
 *    holds no byte before, and all of its lane time is exposed.
 *
 * A reduction's slot is in [first, last] and it is complete by its end. `launch` is in [first,
 * slot]; any smaller value, such as 0, means first. Its bytes are held from first to slot. A
 * gather's `launch` is ignored. */
struct weft_move {
    int32_t item, slot, launch;
};

/* Builds a plan from strategies and moves in lane order: one move for every block of every existing
 * item. The k-th move of an item is its block k. Derives launches and deadlines and puts them in
 * normal form. That may make a gather blocking, if a block ahead of it is launched later.
 *
 * The plan borrows the problem, which must outlive it unless the caller sets owns_problem. The
 * prediction stays empty (see weft_plan_predict).
 *
 * WEFT_E_INTERNAL: moves do not match the strategies, are outside their window, or are due before a
 * block ahead of them is launched. WEFT_E_INFEASIBLE: an item that cannot block would block, or a
 * chain makes moves wait in a circle or be due too early. Planners may not know about chains. */
WEFT_MUST_USE enum weft_status weft_plan_create(const struct weft_problem *problem,
                                                const char *planner, const int32_t *strategies,
                                                const struct weft_move *moves, int32_t n_moves,
                                                struct weft_plan **out, struct weft_error *err);
/* Also frees the problem if the plan owns it. Accepts NULL. */
void weft_plan_destroy(struct weft_plan *plan);

/* The strategy that the plan has for a decision. */
static inline const struct weft_problem_strategy *weft_plan_chosen(const struct weft_plan *plan,
                                                                   int32_t decision)
{
    return weft_problem_chosen(plan->problem, plan->strategies, decision);
}

/* Fills rows[slot * WEFT_CATEGORY_COUNT + category], n_slots * WEFT_CATEGORY_COUNT in all, with the
 * bytes of a tier in every slot: the memory rows of the ILP. */
void weft_plan_rows(const struct weft_plan *plan, int32_t tier, int64_t *rows);
/* The tier's largest row, and its slot (`slot` may be NULL); -1 without memory. */
int64_t weft_plan_peak(const struct weft_plan *plan, int32_t tier, int32_t *slot);

/* WEFT_OK when every row is within its tier's limit; otherwise WEFT_E_DATA names `source` and the
 * fullest row. Call this first for a plan from a file. */
WEFT_MUST_USE enum weft_status weft_plan_check_rows(const struct weft_plan *plan,
                                                    const char *source, struct weft_error *err);

/* Compute time of a slot under the plan's strategies. */
int64_t weft_plan_slot_ns(const struct weft_plan *plan, int32_t slot);

/* Moves gathers' launches earlier and reductions' deadlines later, in the same lane order, while
 * every row stays within its limit; the device's limit is `limit_bytes`. The plan tolerates more
 * jitter on a real machine. It is never slower in the simulator, unless
 * weft_problem_relaxing_may_slow. The caller renews the prediction. */
WEFT_MUST_USE enum weft_status weft_plan_relax(struct weft_plan *plan, int64_t limit_bytes,
                                               struct weft_error *err);

/* Hashes strategies, placements, page size and stretches, and the periods with their bounds. So an
 * edited file is detected even if it is a valid plan. */
struct weft_hash weft_plan_decision_hash(const struct weft_plan *plan);

/* Whether two problems of one config have the same period and size of blocks. A plan names each
 * such variant once. */
bool weft_plan_same_variant(const struct weft_problem *a, const struct weft_problem *b);

/* The least bound of the plan's period and all others: no plan is faster; 0: none. */
int64_t weft_plan_least_bound_ns(const struct weft_plan *plan);

/* The best bound that a plan proves over its own period and all others. */
struct weft_plan_claim {
    int64_t bound_ns;   /* 0: none */
    int64_t page_bytes; /* no plan in pages of this size is faster; 0: no plan at all */
};

/* Takes bounds in pages, from other periods only if their pages are no larger. A bound in the least
 * pages is a bound of all plans, because larger pages take no fewer bytes. */
struct weft_plan_claim weft_plan_claim_of(const struct weft_plan *plan);

/* WEFT_OK when the certificates prove both bounds of the plan; otherwise WEFT_E_DATA names the one
 * that does not, with the reason. The bounds of other periods need their problems
 * (weft_plan_variant_check). */
WEFT_MUST_USE enum weft_status weft_plan_check_bounds(const struct weft_plan *plan,
                                                      struct weft_error *err);

/* (step - bound) / bound; 0 without a bound. _paged_gap: of the bound in pages, if there is one;
 * _claimed_gap: of the claim. */
double weft_plan_gap(const struct weft_plan *plan);
double weft_plan_paged_gap(const struct weft_plan *plan);
double weft_plan_claimed_gap(const struct weft_plan *plan);

extern const struct weft_key_table weft_plan_keys;
/* JSON document, `format` "weft-plan", with a version; a plan read back is equal. Reading
 * recomputes nothing, and checks indices, windows, order and normal form. */
void weft_plan_write(const struct weft_plan *plan, struct weft_text *out);
WEFT_MUST_USE enum weft_status weft_plan_parse(const char *bytes, size_t length, const char *source,
                                               struct weft_plan **out, struct weft_error *err);
WEFT_MUST_USE enum weft_status weft_plan_read(const char *path, struct weft_plan **out,
                                              struct weft_error *err);
struct weft_hash weft_plan_hash(const struct weft_plan *plan);

/* WEFT_OK when the plan's problem equals this one (config and profile); otherwise WEFT_E_DATA lists
 * the first differences. */
WEFT_MUST_USE enum weft_status weft_plan_matches(const struct weft_problem *planned,
                                                 const struct weft_problem *problem,
                                                 struct weft_error *err);

#endif
