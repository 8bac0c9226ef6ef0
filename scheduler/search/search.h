/* A search keeps the best plan found so far and tries others: strategies, placed by list
 * scheduling, or moves from elsewhere, timed by the simulator. It makes the incumbents that a
 * solver lacks. What it tries depends on the problem and its budget alone. */
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
    bool has_rule; /* it was placed by `rule`, whose arrays are the next four */
    struct weft_list_rule rule;
    int32_t *launch, *order; /* [n_blocks] */
    bool *clear;             /* [n_slots] */
    int64_t *late_bytes;     /* [n_slots] */
    int64_t n_tried;
    struct weft_budget budget;
    int64_t begun, whole; /* what was spent when it began, and the budget's units then */
    int64_t first_work;   /* after which there was a plan that fits */
    bool is_shown;        /* the best is told to who watches the work */
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

/* Begins to spend the budget; before, nothing is counted. */
void weft_search_begin(struct weft_search *search, struct weft_budget budget);

/* True when the budget is used up: what searches then tries nothing more. */
bool weft_search_is_spent(const struct weft_search *search);

/* True when the strategies' lean rows are within the limit. */
bool weft_search_fits(struct weft_search *search, const int32_t *strategies);

/* Places the strategies by every rule, and as the best so far was; repairs the best of them when it
 * is not far from the best so far, and keeps the best: faster, or as fast with a lower peak. Its
 * step time; -1 when they do not fit. */
int64_t weft_search_try(struct weft_search *search, const int32_t *strategies);

/* Places the strategies by the rule, repairs that, and keeps the best as above. Its step time; -1
 * when they do not fit. */
int64_t weft_search_try_rule(struct weft_search *search, const int32_t *strategies,
                             struct weft_list_rule rule);

/* Simulates moves as they are, when they fit. */
WEFT_MUST_USE enum weft_status weft_search_try_moves(struct weft_search *search,
                                                     const int32_t *strategies,
                                                     const struct weft_move *moves, int32_t n_moves,
                                                     struct weft_error *err);

/* The moves of a plan from elsewhere, of which there are plan->n_placements, no more than this
 * problem has blocks. False, moves untouched, when its items are not this problem's or a decision
 * may not have its strategy. */
bool weft_search_moves_of(const struct weft_problem *problem, const struct weft_plan *plan,
                          struct weft_move *moves);

/* Tries a plan from elsewhere: its placements as they are when it fits, and its strategies. One of
 * other decisions or strategies than this problem's is left out. */
WEFT_MUST_USE enum weft_status weft_search_start(struct weft_search *search,
                                                 const struct weft_plan *plan,
                                                 struct weft_error *err);

/* From the leanest strategies upwards, decisions in order of what a change gains, while it fits.
 * Where single changes are too many to time each, only those of some decisions are, spread evenly,
 * and their neighbours count as alike; and changes are taken many at a time. */
void weft_search_greedy(struct weft_search *search);

/* The first, the last or every n-th k decisions at one strategy, the rest at their leanest, for the
 * greatest k that fits (found by halving where decisions are many) and fewer. */
void weft_search_patterns(struct weft_search *search);

/* Strategies of a solution of the relaxation, share [n_strategies], rounded by sorting
 * and by error diffusion. */
void weft_search_round(struct weft_search *search, const double *share);

/* Changes of one decision, then exchanges between two, as long as they help; at most most_tries,
 * and not beyond enough_ns. */
void weft_search_improve(struct weft_search *search, int64_t most_tries, int64_t enough_ns);

/* Copies the best to a planner's candidate. */
void weft_search_result(const struct weft_search *search, struct weft_candidate *out);

#endif
