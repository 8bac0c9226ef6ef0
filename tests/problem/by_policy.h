/* SPDX-License-Identifier: Apache-2.0 */
/* Problems that tests build by hand, in the words of policies. */
#ifndef WEFT_TESTS_PROBLEM_BY_POLICY_H
#define WEFT_TESTS_PROBLEM_BY_POLICY_H

#include <stdlib.h>

#include "problem/problem.h"

/* Kinds of strategies are all policies, in their order. */
static inline void by_policy_kinds(struct weft_problem *problem)
{
    problem->kinds = weft_pool_array(&problem->pool, WEFT_POLICY_COUNT, sizeof *problem->kinds);
    if (problem->kinds == NULL) abort();
    problem->n_kinds = WEFT_POLICY_COUNT;
    for (int p = 0; p < WEFT_POLICY_COUNT; p++)
        problem->kinds[p] = weft_policy_name((enum weft_policy)p);
}

/* The decision's next strategy, with room for so many holds; it takes so long in the decision's
 * update slot. */
static inline struct weft_problem_strategy *by_policy_add(struct weft_problem *problem,
                                                          struct weft_problem_decision *decision,
                                                          enum weft_policy policy,
                                                          int64_t update_ns, int32_t most_holds)
{
    struct weft_pool *pool = &problem->pool;
    if (decision->strategies == NULL)
        decision->strategies =
            weft_pool_array(pool, WEFT_POLICY_COUNT, sizeof *decision->strategies);
    if (decision->strategies == NULL) abort();
    struct weft_problem_strategy *to = &decision->strategies[decision->n_strategies++];
    *to = (struct weft_problem_strategy){
        .name = problem->kinds[policy],
        .kind = (int32_t)policy,
        .policy = policy,
        .n_times = 1,
        .times = weft_pool_array(pool, 1, sizeof *to->times),
        .holds = weft_pool_array(pool, (size_t)most_holds, sizeof *to->holds)};
    if (to->times == NULL || to->holds == NULL) abort();
    to->times[0] = (struct weft_slot_time){decision->update_slot, update_ns};
    return to;
}

/* For every decision the strategy of the policy; aborts where it has none. */
static inline void by_policy_choose(const struct weft_problem *problem,
                                    const enum weft_policy *policies, int32_t *strategies)
{
    for (int32_t u = 0; u < problem->n_decisions; u++) {
        strategies[u] = weft_decision_of_policy(&problem->decisions[u], policies[u]);
        if (strategies[u] < 0) abort();
    }
}

#endif
