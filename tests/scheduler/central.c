/* SPDX-License-Identifier: Apache-2.0 */
/* central is never better than zero1: its collectives move more bytes through the owner's port, its
 * updates take longer and it holds more. So ilp never gives it to a unit that may have zero1.
 * Limits are quarters of the fastest plan's memory. */
#include <criterion/criterion.h>

#include "scheduler/schedule.h"
#include "tests/effort.h"
#include "tests/program/random_model.h"
#include "tests/scheduler/solver.h"

enum { GAP = 10000 };

static void allow_policies(struct random_case *random, const char *policies)
{
    struct weft_error err = {0};
    weft_stages_finish(&random->stages);
    random->config->plan.policies = policies;
    random->config->train.cadence = WEFT_CADENCE_STEP;
    cr_assert_eq(weft_stages_create(random->config, random->profile, &random->stages, &err),
                 WEFT_OK, "seed %d: %s", (int)random->seed, err.text);
}

/* ilp's plan with these policies; NULL: none fits. It lives as long as the case's stages. */
static struct weft_plan *plan_with(struct random_case *random, const char *policies,
                                   int64_t limit_bytes)
{
    struct weft_work counted = {0};
    struct weft_schedule_options options = {
        .planner = "ilp", .budget = weft_budget_of(&counted, 300000000), .gap = 1.0 / GAP};
    struct weft_plan *plan = NULL;
    struct weft_error err = {0};
    allow_policies(random, policies);
    if (test_solver_exists()) options.solver = test_solver();
    random->stages.problem->tiers[0].limit_bytes = limit_bytes;
    const enum weft_status status =
        weft_schedule(random->stages.problem, NULL, &options, &plan, NULL, &err);
    cr_assert(status == WEFT_OK || status == WEFT_E_INFEASIBLE, "seed %d: %s", (int)random->seed,
              err.text);
    return plan;
}

static int32_t count_central(const struct weft_plan *plan)
{
    int32_t n = 0;
    for (int32_t u = 0; u < plan->problem->n_decisions; u++)
        n += weft_policy_is_central(weft_plan_chosen(plan, u)->policy);
    return n;
}

/* Plans with central, with zero1 and with both. Returns whether one with central fits. */
static bool compare_within(struct random_case *random, int64_t limit_bytes)
{
    int64_t central_ns = 0, zero1_ns = INT64_MAX;
    struct weft_plan *plan = plan_with(random, "sdp,fsdp,central", limit_bytes);
    const bool fits = plan != NULL;
    if (fits) central_ns = plan->prediction.step_ns;
    weft_plan_destroy(plan);
    plan = plan_with(random, "sdp,fsdp,zero1", limit_bytes);
    if (plan != NULL) zero1_ns = plan->prediction.step_ns;
    weft_plan_destroy(plan);
    cr_assert(!fits || zero1_ns - zero1_ns / GAP <= central_ns, "seed %d: %lld ns, with zero1 %lld",
              (int)random->seed, (long long)central_ns, (long long)zero1_ns);
    plan = plan_with(random, "sdp,fsdp,zero1,central", limit_bytes);
    cr_assert(!fits || plan != NULL, "seed %d", (int)random->seed);
    if (plan != NULL) cr_assert_eq(count_central(plan), 0, "seed %d", (int)random->seed);
    weft_plan_destroy(plan);
    return fits;
}

static bool trains_any_unit(const struct random_case *random)
{
    bool any = false;
    for (int32_t u = 0; u < random->stages.shards->n_units; u++)
        any = any || random->stages.shards->units[u].trainable;
    return any;
}

Test(central, ilp_never_prefers_it_where_zero1_is_allowed, .timeout = 900)
{
    int32_t n_fit = 0, n = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        if (!test_draws(seed, 3, 8)) continue;
        struct random_case random;
        n++;
        random_case_init_plain(&random, seed);
        if (trains_any_unit(&random) && random.config->cluster.ranks > 1 &&
            weft_config_moments(random.config) > 0) {
            struct weft_plan *plan = plan_with(&random, "central", INT64_MAX);
            cr_assert_gt(count_central(plan), 0);
            const int64_t most = plan->prediction.peak_bytes;
            weft_plan_destroy(plan);
            for (int64_t share = 1; share <= 4; share++)
                n_fit += compare_within(&random, most / 4 * share);
        }
        random_case_finish(&random);
    }
    cr_assert_gt(n_fit, n / 4);
}
