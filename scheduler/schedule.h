/* To schedule is to make a plan: choose a planner by name, let it decide policies and placements
 * within the memory limit, prove a bound, lower the result, and plan again (scheduler/rounds.h) if
 * its layout does not fit. Pure: no process or device, and no clock but the alarm of the caller's
 * work (base/work.h); the solver is a function of the caller's. */
#ifndef WEFT_SCHEDULER_SCHEDULE_H
#define WEFT_SCHEDULER_SCHEDULE_H

#include <stdint.h>

#include "base/work.h"
#include "plan/plan.h"
#include "plan/program.h"
#include "scheduler/mip.h"

/* One way to run a rule that has parameters: "25MiB". What the values mean is the planner's. */
struct weft_setting {
    const char *name;
    int64_t values[3];
};

struct weft_schedule_options {
    const char *planner; /* a name of spec/planner.h, or "name:setting"; NULL = "ilp" */
    const struct weft_setting *setting; /* set by weft_schedule; NULL = as published */
    int64_t policy_limit_bytes; /* of "two-stage": of the choice of policies; 0 = the limit */
    uint64_t seed;              /* of "random" */
    /* For all of ilp and greedy; {0}: as much as it takes. A rule's plan has a layout or is
     * refused, whatever that takes, which may be seconds of work where memory is tight. And so that
     * ilp is no slower than a rule whose plan is easily packed, short searches come on top. */
    struct weft_budget budget;
    double gap;
    /* No proof is wanted: the plan has no bound and no certificate. ilp still bounds what it
     * searches, but neither divides that nor asks the solver to, and fills nothing in the outcome.
     */
    bool draft;
    int64_t enough_ns; /* of a draft by ilp: a step that needs no search; 0 = none is known */
    const struct weft_plan *const
        *starts; /* plans of other limits or planners, of the same units */
    int32_t n_starts;
    struct weft_solver solver;
};

/* Policies and moves in channel order: what a planner decides, before it is a plan. */
struct weft_candidate {
    enum weft_policy *policies; /* [n_units] */
    struct weft_move *moves;    /* [n_moves], room for every block of every item */
    int32_t n_moves;
};

/* What a planner proves and says beside its decision. */
struct weft_outcome {
    int64_t bound_ns;                    /* 0 = none */
    const char *bound_by;                /* static text */
    struct weft_certificate certificate; /* of the bound; empty = none */
    struct weft_pool *pool;              /* for it; set by weft_schedule */
    double solver_gap;                   /* negative = none */
    int64_t first_work; /* after which the planner had a plan that fits; 0 = not known */
    bool cut_short;     /* by the budget: with more there may be a better plan or bound */
    char solver_stop[256];
};

/* One row of the planner table. `decide` fills the candidate (its arrays are the caller's) such
 * that every memory row is within limit_bytes; WEFT_E_INFEASIBLE when it finds none. */
struct weft_planner {
    const char *name;
    const char *text; /* one line: its rule */
    bool literal;     /* the blocks lie exactly where it puts them: see weft_plan_relax */
    enum weft_status (*decide)(const struct weft_problem *problem, int64_t limit_bytes,
                               const struct weft_schedule_options *options,
                               struct weft_candidate *out, struct weft_outcome *outcome,
                               struct weft_error *err);
};

/* NULL-name-terminated table of all planners, and one by "name" or "name:setting" (NULL when there
 * is none); *setting is NULL when none was named. `setting` may be NULL. */
const struct weft_planner *weft_planners(void);
const struct weft_planner *weft_planner_find(const char *name, const struct weft_setting **setting);

/* WEFT_E_USAGE for a name that weft_planner_find does not know, with what may have been meant: the
 * nearest planner, what a policy's name is for, or the planner's settings. */
WEFT_MUST_USE enum weft_status weft_planner_need(const char *name, struct weft_error *err);

/* True for a planner that does as its rule says; false for ilp and greedy, which search. */
bool weft_planner_is_rule(const struct weft_planner *planner);

/* The settings of a planner of the table, NULL-name-terminated, the published one first; NULL when
 * its rule has no parameters. */
const struct weft_setting *weft_planner_settings(const struct weft_planner *planner);

/* The plan, its prediction (arena included) and bound filled, and its program when `program` is not
 * NULL. The plan refers to `problem`, which must outlive it. Without `inputs` (NULL) there is no
 * layout: arena_bytes is 0, total_bytes the largest row, and `program` must be NULL. The bound
 * holds for rows within the problem's limit; the price of packing is total_bytes - peak_bytes.
 * WEFT_E_INFEASIBLE names the least limit that fits, the slot and categories at that peak, and what
 * would help; WEFT_E_DATA why a rule applies to this problem at no limit; WEFT_E_USAGE an unknown
 * planner. A solver that fails is no error: the best plan found
 * without it is returned, plan->solver_stop says so. */
WEFT_MUST_USE enum weft_status weft_schedule(const struct weft_problem *problem,
                                             const struct weft_lower_inputs *inputs,
                                             const struct weft_schedule_options *options,
                                             struct weft_plan **plan, struct weft_program **program,
                                             struct weft_error *err);

/* Fills the outcome's bound, what it is by, and its certificate (in the pool) with what needs
 * neither a plan nor a search: compute alone, the channel alone, or that no plan fits, when the
 * bound is WEFT_PROBLEM_MOST. WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_prove(const struct weft_problem *problem,
                                          struct weft_pool *pool, struct weft_outcome *outcome,
                                          struct weft_error *err);

/* The least memory limit (bytes, base included, arena after layout not counted) at which any plan
 * of the problem fits: every unit at its leanest policy, all gathers blocking, reductions as early
 * as they can be. Also the slot of that peak. */
int64_t weft_least_limit(const struct weft_problem *problem, int32_t *peak_slot);

/* The same after layout, which a refusal names and planner ilp finds a plan at. */
WEFT_MUST_USE enum weft_status weft_least_packed_limit(const struct weft_problem *problem,
                                                       const struct weft_lower_inputs *inputs,
                                                       int64_t *bytes, struct weft_error *err);

#endif
