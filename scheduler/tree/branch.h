/* SPDX-License-Identifier: Apache-2.0 */
/* A branch is the state of branch and bound (scheduler/tree/grow.h). It asks the solver. */
#ifndef WEFT_SCHEDULER_TREE_BRANCH_H
#define WEFT_SCHEDULER_TREE_BRANCH_H

#include "scheduler/relax/ilp.h"
#include "scheduler/search/search.h"
#include "scheduler/tree/exact.h"
#include "scheduler/tree/proof.h"

/* Choices of a decision and a strategy that a node keeps as ways to divide it. */
enum { WEFT_BRANCH_CHOICES = 6 };
/* Nodes in a row that pressure may fail to help (scheduler/tree/press.h). */
enum { WEFT_BRANCH_PRESSES = 8 };

/* Ways to divide a node, suggested by its relaxation: by a count, at a milestone, or at a
 * decision's strategy. */
struct weft_branch_split {
    bool chosen;     /* false: the node has no relaxation of its own yet */
    bool decided;    /* the relaxation gives every decision one strategy */
    bool untried;    /* a closed leaf whose placements have not all been tried */
    double pressure; /* scheduler/tree/press.h; 0: not known */
    int32_t n_choices;
    struct {
        int32_t decision, strategy;
        double value;
    } choices[WEFT_BRANCH_CHOICES];  /* the most undecided first */
    struct weft_milestone milestone; /* n_blocks 0: none */
    struct weft_count count;         /* n_decisions 0: none */
};

struct weft_branch {
    struct weft_pool pool;
    const struct weft_digest *table; /* borrowed, as are the next three */
    const struct weft_schedule_options *options;
    struct weft_search *search;
    struct weft_ilp *ilp; /* NULL without a solver, and if the relaxation is coarse */
    bool is_coarse;       /* the root's relaxation is that of a coarse problem */
    struct weft_exact *exact;
    int64_t exact_left; /* steps left for exact placement */
    int64_t leaf_steps; /* for one choice of strategies */
    int32_t n_untried;  /* leaves with placements that have not been tried */
    bool exhausted;     /* every closed node is a leaf */
    struct weft_dual *dual;
    struct weft_proof *proof;
    int32_t nodes_left;              /* nodes that may still be solved */
    int32_t milestones_left;         /* milestones that may still be branched on */
    int32_t presses_left;            /* presses that may still fail */
    double *share;                   /* [n_strategies]: strategies of the node's relaxation */
    struct weft_milestone milestone; /* the relaxation's least decided one; n_blocks 0: none */
    struct weft_count count;         /* an undecided one; n_decisions 0: none */
    int32_t n_groups;
    struct weft_group *groups; /* of alike decisions, by strategy */
    bool *grouped;             /* [n_decisions]: in a group */
    double *weight;            /* [n_decisions]: its channel time */
    /* Factors on the value of milestones, of placed bytes and of the channel's order. A division
     * that fails to raise both bounds halves its factor. */
    double *worth, *order_worth;      /* [n_items], [n_slots] */
    struct weft_branch_split *splits; /* by node: ways to divide its relaxation */
    uint8_t *keeper;                  /* [n_strategies]: the strategy that is nowhere worse */
    const char *bound_by, *stop;
    bool answered;     /* by the solver, at least once */
    bool is_solved;    /* some relaxation to its optimum */
    char failure[160]; /* of the solver; "" = none */
    bool too_slow;     /* the failure: no answer when the alarm rang */
};

WEFT_MUST_USE enum weft_status weft_branch_create(const struct weft_digest *table,
                                                  const struct weft_schedule_options *options,
                                                  struct weft_search *search,
                                                  struct weft_branch **out, struct weft_error *err);
void weft_branch_destroy(struct weft_branch *branch); /* accepts NULL */

/* Factor of the tree's limits: one for each 2.5e9 units of the search's budget (base/work.h), 1 to
 * 16; 1 without a budget. */
int32_t weft_branch_effort(const struct weft_search *search);

/* The proven bound so far, and the step time at which options->gap is closed. */
int64_t weft_branch_bound_ns(const struct weft_branch *branch);
int64_t weft_branch_enough_ns(const struct weft_branch *branch);
/* The same for another bound. */
int64_t weft_branch_enough_of(const struct weft_branch *branch, int64_t bound_ns);

/* True if the search's best closes the gap. */
bool weft_branch_has_enough(const struct weft_branch *branch);

/* True if it does, or if the search's budget is used up. */
bool weft_branch_is_over(const struct weft_branch *branch);

/* Solves a linear program within the search's budget, in at most `iterations` (0: a limit by its
 * size). Spends the answer's work. True if it was solved to optimality. `failure` names a
 * failure of the solver. Until its first answer the solver gets three quarters of the budget and of
 * the time until the alarm. The rest lets ascent prove a bound without it. Result arrays belong to
 * the pool. */
bool weft_branch_solve(struct weft_branch *branch, const struct weft_lp *lp, int64_t iterations,
                       struct weft_pool *pool, struct weft_lp_result *result);

/* The same for the relaxation within a box. */
bool weft_branch_relax(struct weft_branch *branch, const struct weft_box *box, int64_t iterations,
                       struct weft_pool *pool, struct weft_lp_result *result);

#endif
