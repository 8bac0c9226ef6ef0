/* A planner decides strategies and placements of a problem: this is what it gets and what it gives.
 */
#ifndef WEFT_SCHEDULER_DIGEST_PLANNER_H
#define WEFT_SCHEDULER_DIGEST_PLANNER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/pool.h"
#include "base/status.h"
#include "base/work.h"
#include "plan/plan.h"
#include "scheduler/solver/lp.h"

/* One way to run a rule that has parameters: "25MiB". What the values mean is the planner's. */
struct weft_setting {
    const char *name;
    int64_t values[3];
};

enum { WEFT_GREEDY_PART = 5 };

struct weft_schedule_options {
    const char *planner; /* a name of spec/planner.h, or "name:setting"; NULL = "ilp" */
    const struct weft_setting *setting; /* set by weft_schedule; NULL = as published */
    int64_t policy_limit_bytes; /* of "two-stage": of the choice of strategies; 0 = the limit */
    uint64_t seed;              /* of "random" */
    /* For all that ilp and greedy do; {0}: as much as it takes. A rule's plan that is asked for is
     * made whole whatever that takes. */
    struct weft_budget budget;
    /* Greedy has this of the budget, and ilp begins with its plan: so ilp is never slower by
     * the same budget. 0: one part of WEFT_GREEDY_PART of what is left. */
    int64_t greedy_units;
    bool after_greedy; /* the first start is greedy's plan: ilp need not make it again */
    double gap;
    /* No proof is wanted: the plan has no bound and no certificate. ilp still bounds what it
     * searches, but neither divides that nor asks the solver to, and fills nothing in the outcome.
     */
    bool draft;
    int64_t enough_ns; /* of a draft by ilp: a step that needs no search; 0 = none is known */
    const struct weft_plan *const
        *starts; /* plans of other limits or planners, of the same decisions */
    int32_t n_starts;
    struct weft_solver solver;
};

/* Strategies and moves in channel order: what a planner decides, before it is a plan. */
struct weft_candidate {
    int32_t *strategies;     /* [n_decisions] */
    struct weft_move *moves; /* [n_moves], room for every block of every item */
    int32_t n_moves;
};

/* What a planner proves and says beside its decision. */
struct weft_outcome {
    int64_t bound_ns;                    /* 0 = none */
    const char *bound_by;                /* static text */
    struct weft_certificate certificate; /* of the bound; empty = none */
    struct weft_pool *pool;              /* for it; set by weft_schedule */
    int64_t first_work; /* after which the planner had a plan that fits; 0 = not known */
    bool cut_short;     /* by the budget: with more there may be a better plan or bound */
    char solver_stop[256];
};

/* One row of the planner table. `decide` fills the candidate (its arrays are the caller's) such
 * that every memory row is within the problem's limit; WEFT_E_INFEASIBLE when it finds none. */
struct weft_planner {
    const char *name;
    const char *text; /* one line: its rule */
    bool literal;     /* the blocks lie exactly where it puts them: see weft_plan_relax */
    enum weft_status (*decide)(const struct weft_problem *problem,
                               const struct weft_schedule_options *options,
                               struct weft_candidate *out, struct weft_outcome *outcome,
                               struct weft_error *err);
};

#endif
