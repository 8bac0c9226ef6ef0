/* SPDX-License-Identifier: Apache-2.0 */
/* The options that a planner gets, and the results that it returns. */
#ifndef WEFT_SCHEDULER_DIGEST_PLANNER_H
#define WEFT_SCHEDULER_DIGEST_PLANNER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/pool.h"
#include "base/status.h"
#include "base/work.h"
#include "plan/plan.h"
#include "scheduler/solver/lp.h"

struct weft_digest;

/* A setting of a rule with parameters, such as "25MiB". Each planner defines its values. */
struct weft_setting {
    const char *name;
    int64_t values[3];
};

enum { WEFT_GREEDY_PART = 5 };

struct weft_outcome;

struct weft_schedule_options {
    const char *planner; /* a name of scheduler/planners/names.h, or "name:setting"; NULL = "ilp" */
    const struct weft_setting *setting; /* set by weft_schedule; NULL = as published */
    int64_t policy_limit_bytes; /* for "two-stage": limit of the choice of strategies; 0 = the
                                   problem's */
    uint64_t seed;              /* for "random" */
    /* Budget of ilp and greedy; {0}: no limit. A rule that the user asks for is always
     * completed. */
    struct weft_budget budget;
    /* Greedy's part of the budget. ilp begins with its plan, so with the same budget it is never
     * slower. 0: one part of WEFT_GREEDY_PART of the rest. */
    int64_t greedy_units;
    int64_t ascent_units; /* for a bound if the budget is over before the search; 0: a part of it */
    bool after_greedy;    /* the first start is greedy's plan, so ilp does not repeat it */
    bool may_stop;        /* a rule may end with WEFT_E_INFEASIBLE once the alarm rang */
    double gap;
    /* The plan needs no proof: no bound, no certificate, and an empty outcome. ilp bounds its
     * search, but neither branches nor asks the solver to. */
    bool draft;
    bool hint; /* a rule plans for the limit alone, and a refusal names no limit in pages */
    bool
        is_spare; /* another problem has a plan: a refusal names no limit, which saves its probes */
    int64_t kept_ns;   /* step of that plan; 0: none */
    int64_t rival_ns;  /* step of a plan of another problem: ilp ends once it proves that no plan is
                          faster; 0: none */
    bool hidden;       /* the watch is not told the best step and the bound */
    bool of_early;     /* the problem is an early form: no order has the time of a plan */
    int64_t enough_ns; /* for a draft by ilp: a step time that ends the search; 0 = none */
    const struct weft_plan *const
        *starts; /* plans of the same decisions by other planners or for other limits */
    int32_t n_starts;
    struct weft_solver solver;
    const struct weft_digest *table; /* of the problem, at some limit; NULL: planners make one */
    /* The bound that was proven before pages refused the problem, with its certificate in the
     * outcome's pool. weft_schedule fills it with WEFT_E_INFEASIBLE alone. NULL: not wanted. */
    struct weft_outcome *refused;
    struct weft_outcome *refused_paged; /* the same for plans in pages, of the least size if that is
                                           open */
};

/* A planner's decision before it is a plan: strategies, and moves in the order of lanes. */
struct weft_candidate {
    int32_t *strategies;     /* [n_decisions] */
    struct weft_move *moves; /* [n_moves], room for each block of each item */
    int32_t n_moves;
};

/* A planner's proof and reports. */
struct weft_outcome {
    int64_t bound_ns;                    /* 0 = none */
    const char *bound_by;                /* static text */
    struct weft_certificate certificate; /* of the bound; empty = none */
    struct weft_pool *pool;              /* owns the certificate; set by weft_schedule */
    int64_t first_work;                  /* work at the first plan that fits; 0 = unknown */
    bool cut_short; /* the budget ended the search: more may give a better plan or bound */
    char solver_stop[256];
};

#endif
