/* SPDX-License-Identifier: Apache-2.0 */
/* A search keeps the best plan found so far and tries others. It places strategies by list
 * scheduling, and times moves of other plans in the simulator. The sequence of tries depends on the
 * problem and the budget alone. */
#ifndef WEFT_SCHEDULER_SEARCH_SEARCH_H
#define WEFT_SCHEDULER_SEARCH_SEARCH_H

#include "scheduler/digest/digest.h"
#include "scheduler/digest/planner.h"
#include "scheduler/place/list.h"
#include "scheduler/place/repair.h"

struct weft_search {
    const struct weft_digest *table; /* borrowed */
    struct weft_list *list;
    struct weft_repair *repair;
    /* The best so far; step_ns is -1 before the first that fits. */
    int32_t *strategies;     /* [n_decisions] */
    struct weft_move *moves; /* [n_blocks] */
    int32_t n_moves;
    int64_t step_ns, peak_bytes;
    bool has_rule; /* `rule` placed it; the next four are its arrays */
    struct weft_list_rule rule;
    int32_t *launch, *order; /* [n_blocks] */
    bool *clear;             /* [n_slots] */
    int64_t *late_bytes;     /* [n_slots] */
    int64_t n_tried;
    struct weft_budget budget;
    int64_t begun, whole; /* units spent, and units of the budget, at begin */
    int64_t first_work;   /* units spent when the first plan fitted */
    bool is_shown;        /* watchers of the work were told the best */
    /* Scratch: */
    int32_t *trial, *other;
    struct weft_move *trial_moves;
    int64_t *rows;
    int64_t *simulation; /* for weft_simulate_plan */
    struct weft_search_choice *choices;
    double *owed; /* [n_kinds], scratch */
};

WEFT_MUST_USE enum weft_status weft_search_create(const struct weft_digest *table,
                                                  struct weft_search **out, struct weft_error *err);
void weft_search_destroy(struct weft_search *search); /* accepts NULL */

/* Begins to spend the budget. Earlier tries cost nothing. */
void weft_search_begin(struct weft_search *search, struct weft_budget budget);

/* True if the budget is spent: the search makes no more tries. */
bool weft_search_is_spent(const struct weft_search *search);

/* True if the strategies' lean rows are within the limit. */
bool weft_search_fits(struct weft_search *search, const int32_t *strategies);

/* Places the strategies by each rule, and as the best so far was placed. Repairs the best of these
 * if it is near the best so far. Keeps it if it is faster, or as fast with a lower peak. Returns
 * the step time in ns; -1 if the strategies do not fit. */
int64_t weft_search_try(struct weft_search *search, const int32_t *strategies);

/* Places the strategies by one rule, repairs the placement and keeps it as above. Returns the step
 * time in ns; -1 if the strategies do not fit. */
int64_t weft_search_try_rule(struct weft_search *search, const int32_t *strategies,
                             struct weft_list_rule rule);

/* Simulates moves unchanged, if they fit. */
WEFT_MUST_USE enum weft_status weft_search_try_moves(struct weft_search *search,
                                                     const int32_t *strategies,
                                                     const struct weft_move *moves, int32_t n_moves,
                                                     struct weft_error *err);

/* Writes plan->n_placements moves of a plan of another problem, at most this problem's blocks.
 * False with moves untouched if an item is not this problem's or a strategy is not allowed. */
bool weft_search_moves_of(const struct weft_problem *problem, const struct weft_plan *plan,
                          struct weft_move *moves);

/* Tries a given plan: its placements unchanged if they fit, then its strategies. If these do not
 * fit, as many of them as do. Ignores a plan with decisions or strategies that this problem lacks.
 */
WEFT_MUST_USE enum weft_status weft_search_start(struct weft_search *search,
                                                 const struct weft_plan *plan,
                                                 struct weft_error *err);

/* Begins at the leanest strategies and makes changes that fit, in order of their gain. If changes
 * are too many to time each, it times some evenly spread decisions and counts their neighbours as
 * equal. Then it takes many changes at a time. */
void weft_search_greedy(struct weft_search *search);

/* Tries k decisions at one strategy, the first, the last or evenly spread, and all others at their
 * leanest. It takes the greatest k that fits (by halving if decisions are many), then smaller ones.
 */
void weft_search_patterns(struct weft_search *search);

/* Tries strategies rounded from a solution of the relaxation, share [n_strategies], by sorting and
 * by error diffusion. */
void weft_search_round(struct weft_search *search, const double *share);

/* Tries changes of one decision, then exchanges between two, as long as they help. Stops after
 * most_tries, or at a step time of enough_ns. */
void weft_search_improve(struct weft_search *search, int64_t most_tries, int64_t enough_ns);

/* Keeps saved activations that the best recomputes, layer by layer from the last one, if its moves
 * stay within the limit and take no longer. */
WEFT_MUST_USE enum weft_status weft_search_keep_saved(struct weft_search *search,
                                                      struct weft_error *err);

/* Copies the best to the candidate of a planner. */
void weft_search_result(const struct weft_search *search, struct weft_candidate *out);

#endif
