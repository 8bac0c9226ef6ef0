#include "tests/scheduler/against_all.h"

#include <criterion/criterion.h>
#include <string.h>

#include "base/rng.h"
#include "program/predict.h"
#include "scheduler/digest/digest.h"
#include "scheduler/schedule.h"
#include "tests/scheduler/enumerate.h"

void against_set_limits(struct weft_problem *problem, uint64_t seed)
{
    struct weft_digest *table = NULL;
    problem->tiers[0].limit_bytes = problem->tiers[1].limit_bytes = INT64_MAX;
    cr_assert_eq(weft_digest_create(problem, &table, NULL), WEFT_OK);
    for (int32_t tier = 0; tier < 2; tier++) {
        int64_t least = weft_least_limit(problem, tier, NULL), most = table->tier_most_bytes[tier];
        double share = tier == 0 ? 0.03 * (double)(seed % 6) : 0.2 * (double)(seed % 5);
        cr_assert_geq(least, 0);
        problem->tiers[tier].limit_bytes = least + 1 + (int64_t)(share * (double)(most - least));
    }
    weft_digest_destroy(table);
}

static struct weft_plan *plan_against(const struct weft_problem *problem, const char *planner)
{
    struct weft_work work = {0};
    struct weft_schedule_options options = {
        .planner = planner, .seed = 5, .budget = weft_budget_of(&work, 10000000000)};
    struct weft_plan *plan = NULL;
    struct weft_error err = {0};
    enum weft_status status = weft_schedule(problem, NULL, &options, &plan, NULL, &err);
    if (status == WEFT_E_INFEASIBLE) return NULL;
    cr_assert_eq(status, WEFT_OK, "%s: %s", planner, err.text);
    return plan;
}

/* A plan that was written and read is the same, and says that it is within all limits. */
static void check_plan_file(const struct weft_plan *plan)
{
    struct weft_error err = {0};
    struct weft_text text, again;
    struct weft_plan *back = NULL;
    weft_text_init(&text);
    weft_text_init(&again);
    weft_plan_write(plan, &text);
    cr_assert_eq(weft_plan_parse(weft_text_chars(&text), text.length, "a plan", &back, &err),
                 WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_plan_check_rows(back, "plan", &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_plan_check_prediction(back, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_plan_check_bounds(back, &err), WEFT_OK, "%s", err.text);
    weft_plan_write(back, &again);
    cr_assert_str_eq(weft_text_chars(&text), weft_text_chars(&again));
    weft_plan_destroy(back);
    weft_text_finish(&text);
    weft_text_finish(&again);
}

/* Greedy is feasible wherever some plan is, no planner beats the best, and none exceeds a limit. */
static void check_planners(const struct weft_problem *problem, int64_t best_ns)
{
    static const char *const planners[] = {"greedy", "random", "two-stage"};
    for (size_t k = 0; k < sizeof planners / sizeof *planners; k++) {
        struct weft_error err = {0};
        struct weft_plan *plan = plan_against(problem, planners[k]);
        cr_assert(plan != NULL || k > 0, "greedy finds none");
        if (plan == NULL) continue;
        cr_assert_eq(weft_plan_check_rows(plan, "plan", &err), WEFT_OK, "%s: %s", planners[k],
                     err.text);
        cr_assert_geq(plan->prediction.step_ns, best_ns, "%s", planners[k]);
        weft_plan_destroy(plan);
    }
}

int32_t against_all(struct weft_problem *problem, int seed, const char *name, int32_t *n_chosen)
{
    struct weft_error err = {0};
    int64_t best_ns = enumerate_best(problem, problem->tiers[0].limit_bytes, NULL);
    struct weft_plan *plan = plan_against(problem, "ilp");
    cr_assert_eq(plan != NULL, best_ns >= 0, "seed %d", seed);
    if (plan == NULL) return 0;
    cr_assert_leq(plan->bound_ns, best_ns, "seed %d: bound %lld, best %lld", seed,
                  (long long)plan->bound_ns, (long long)best_ns);
    cr_assert_geq(plan->prediction.step_ns, best_ns, "seed %d", seed);
    cr_assert_eq(weft_certificate_check(&plan->certificate, problem, plan->bound_ns, NULL, &err),
                 WEFT_OK, "%s", err.text);
    check_plan_file(plan);
    check_planners(problem, best_ns);
    for (int32_t u = 0; u < problem->n_decisions; u++)
        *n_chosen += strstr(weft_plan_chosen(plan, u)->name, name) != NULL;
    int32_t slower = plan->prediction.step_ns > best_ns;
    weft_plan_destroy(plan);
    return slower;
}

static void *mutable(const void *constant)
{
    void *out;
    memcpy(&out, &constant, sizeof out);
    return out;
}

/* Another number somewhere in the certificate; false when there is none to change. */
static bool mutate(const struct weft_problem *problem, struct weft_certificate *certificate,
                   uint64_t seed, uint64_t k)
{
    struct weft_prices *prices =
        &certificate->prices[weft_rng_below(seed, 1, k, (uint64_t)certificate->n_prices)];
    int64_t by = (int64_t)weft_rng_below(seed, 2, k, UINT64_C(1) << weft_rng_below(seed, 3, k, 45));
    if (weft_rng_below(seed, 4, k, 2) > 0) by = -by;
    uint64_t n_rows = (uint64_t)weft_problem_n_rows(problem);
    uint64_t n_lambda = (uint64_t)weft_problem_n_moving(problem) * (uint64_t)problem->n_slots;
    switch (weft_rng_below(seed, 5, k, 4)) {
    case 0:
        prices->mu[weft_rng_below(seed, 6, k, n_rows)] += by;
        return true;
    case 1:
        prices->lambda[weft_rng_below(seed, 6, k, n_lambda)] += by;
        return true;
    case 2:
        if (prices->n_whole == 0) return false;
        prices->whole[0].nu += by;
        return true;
    default:
        if (prices->n_whole == 0) return false;
        prices->whole[0].row = (int32_t)weft_rng_below(seed, 6, k, n_rows);
        return true;
    }
}

void against_changes(struct weft_problem *problem, uint64_t seed, struct against_changes *changes)
{
    int64_t best_ns = enumerate_best(problem, problem->tiers[0].limit_bytes, NULL);
    struct weft_plan *plan = plan_against(problem, "ilp");
    struct weft_error err = {0};
    if (plan == NULL) return;
    for (uint64_t k = 0; k < 100; k++) {
        struct weft_pool pool = {0};
        struct weft_certificate changed;
        int64_t proven_ns = 0;
        cr_assert_eq(weft_certificate_copy(&plan->certificate, problem, &pool, &changed, &err),
                     WEFT_OK);
        if (mutate(problem, &changed, seed, k)) {
            enum weft_status status =
                weft_certificate_check(&changed, problem, plan->bound_ns, &proven_ns, &err);
            changes->n++;
            changes->n_refused += status != WEFT_OK;
            cr_assert(status != WEFT_OK || proven_ns <= best_ns, "seed %d, %d", (int)seed, (int)k);
        }
        weft_pool_finish(&pool);
    }
    struct weft_hold *hold = mutable(&problem->decisions[0].strategies[0].holds[0]);
    hold->tier = 1 - hold->tier;
    cr_assert_neq(weft_plan_check_bounds(plan, &err), WEFT_OK);
    hold->tier = 1 - hold->tier;
    problem->tiers[1].limit_bytes++;
    cr_assert_neq(weft_plan_check_bounds(plan, &err), WEFT_OK);
    weft_plan_destroy(plan);
}
