/* A second memory: tiny problems get a tier of the host and a lane that copies, by hand, and
 * strategies that keep a unit's optimizer state there between its update and the last backward.
 * Others hold what they hold in tiers that are drawn. Planner, proof and files take them as they
 * take any other, and every plan of them is tried. */
#include <criterion/criterion.h>
#include <string.h>

#include "base/rng.h"
#include "program/predict.h"
#include "scheduler/digest/digest.h"
#include "scheduler/schedule.h"
#include "tests/effort.h"
#include "tests/scheduler/enumerate.h"
#include "tests/scheduler/tiny.h"

static const char away_name[] = "sdp+away";

static void *longer(struct weft_problem *problem, const void *old, int32_t n, size_t size)
{
    unsigned char *made = weft_pool_array(&problem->pool, (size_t)n + 3, size);
    cr_assert_not_null(made);
    if (n > 0) memcpy(made, old, (size_t)n * size);
    return made;
}

static void add_host(struct weft_problem *problem)
{
    problem->tiers[problem->n_tiers++] =
        (struct weft_problem_tier){"host", WEFT_HOME_HOST, INT64_MAX};
}

static void add_copy_lane(struct weft_problem *problem)
{
    const struct weft_rates full = {WEFT_RATE_ONE, WEFT_RATE_ONE};
    problem->lanes = longer(problem, problem->lanes, problem->n_lanes, sizeof *problem->lanes);
    problem->lanes[problem->n_lanes++] = (struct weft_lane){"copy", WEFT_LANE_KIND_DOWN, full};
}

/* Puts an item where the order of decision, kind, gather wants it. */
static void insert_item(struct weft_problem *problem, struct weft_problem_item item)
{
    int32_t at = problem->n_items++;
    for (; at > 0; at--) {
        const struct weft_item *before = &problem->items[at - 1].item;
        if (before->decision < item.item.decision) break;
        if (before->decision == item.item.decision &&
            (before->kind < item.item.kind ||
             (before->kind == item.item.kind && before->gather < item.item.gather)))
            break;
        problem->items[at] = problem->items[at - 1];
    }
    problem->items[at] = item;
}

/* The state goes to the host behind the update, and is back before the last backward. */
static void add_copies(struct weft_problem *problem, int32_t unit, int32_t away, int64_t bytes,
                       int64_t copy_ns)
{
    int32_t n = problem->n_decisions;
    struct weft_item down = {.decision = unit,
                             .kind = WEFT_ALL_REDUCE,
                             .strategies = UINT64_C(1) << away,
                             .n_blocks = 1,
                             .first = unit + 1,
                             .last = n + 1,
                             .block_bytes = bytes,
                             .stair_bytes = bytes,
                             .stair_category = WEFT_CATEGORY_OPTIMIZER_STATE};
    struct weft_item up = down;
    up.kind = WEFT_ALL_GATHER;
    up.acquires = true;
    up.may_block = copy_ns % 2 == 0;
    up.gather = 1;
    up.first = 2 * n + 1;
    up.last = 3 * n - 1;
    int32_t lane = problem->n_lanes - 1;
    insert_item(problem, (struct weft_problem_item){down, lane, copy_ns, -1});
    insert_item(problem, (struct weft_problem_item){up, lane, copy_ns, -1});
}

/* A copy of sdp whose state is on the host, and on the device from the last backward to the update.
 */
static void add_away(struct weft_problem *problem, int32_t unit, int64_t copy_ns)
{
    struct weft_problem_decision *d = &problem->decisions[unit];
    int32_t sdp = weft_decision_of_policy(d, WEFT_POLICY_SDP), away = d->n_strategies;
    if (sdp < 0) return;
    d->strategies = longer(problem, d->strategies, away, sizeof *d->strategies);
    struct weft_problem_strategy *to = &d->strategies[away];
    *to = d->strategies[sdp];
    to->name = away_name;
    to->kind = problem->n_kinds - 1;
    to->holds = longer(problem, to->holds, to->n_holds, sizeof *to->holds);
    d->n_strategies++;
    for (int32_t i = 0; i < to->n_holds; i++) {
        struct weft_hold *hold = &to->holds[i];
        if (hold->category != WEFT_CATEGORY_OPTIMIZER_STATE) continue;
        struct weft_hold there = *hold;
        there.tier = 1;
        hold->first = 3 * problem->n_decisions;
        hold->last = unit;
        to->holds[to->n_holds++] = there;
        for (int32_t k = 0; k < problem->n_items; k++) {
            struct weft_item *item = &problem->items[k].item;
            if (item->decision == unit && (item->strategies >> sdp & 1u) != 0)
                item->strategies |= UINT64_C(1) << away;
        }
        add_copies(problem, unit, away, there.bytes, copy_ns);
        return;
    }
}

static void check_toy_problem(struct weft_problem *problem)
{
    struct weft_error err = {0};
    cr_assert_eq(weft_problem_link(problem, "toy", NULL), WEFT_OK);
    cr_assert_eq(weft_problem_check(problem, "toy", &err), WEFT_OK, "%s", err.text);
}

/* Limits between the least and the most, of the device first. */
static void set_toy_limits(struct weft_problem *problem, uint64_t seed)
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

static struct weft_problem *away_problem(uint64_t seed)
{
    struct tiny_shape shape = {.n_units = 2,
                               .most_blocks = 1,
                               .policies = 1u << WEFT_POLICY_SDP | 1u << WEFT_POLICY_ZERO1,
                               .load = 0.1 * (double)(seed % 15),
                               .contends = seed % 7 == 1};
    struct weft_problem *problem = tiny_problem(&shape, seed);
    problem->kinds = longer(problem, problem->kinds, problem->n_kinds, sizeof *problem->kinds);
    problem->kinds[problem->n_kinds++] = away_name;
    problem->items = longer(problem, problem->items, problem->n_items + 4, sizeof *problem->items);
    add_host(problem);
    add_copy_lane(problem);
    for (int32_t u = 0; u < problem->n_decisions; u++)
        add_away(problem, u, 50 + (int64_t)(seed * 37 % 700) + u);
    check_toy_problem(problem);
    set_toy_limits(problem, seed);
    return problem;
}

/* All that strategies hold, and blocks, is in a tier by lot. */
static struct weft_problem *drawn_problem(uint64_t seed)
{
    struct weft_problem *problem = tiny_problem_of(seed, 1);
    uint64_t n = 0;
    add_host(problem);
    for (int32_t u = 0; u < problem->n_decisions; u++) {
        struct weft_problem_decision *d = &problem->decisions[u];
        for (int32_t k = 0; k < d->n_strategies; k++)
            for (int32_t i = 0; i < d->strategies[k].n_holds; i++)
                d->strategies[k].holds[i].tier = (int32_t)weft_rng_below(seed, 11, n++, 2);
    }
    for (int32_t i = 0; i < problem->n_items; i++)
        problem->items[i].item.stair_tier = (int32_t)weft_rng_below(seed, 12, n++, 2);
    check_toy_problem(problem);
    set_toy_limits(problem, seed);
    return problem;
}

static struct weft_plan *plan_toy(const struct weft_problem *problem, const char *planner)
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
    cr_assert_eq(weft_plan_parse(weft_text_chars(&text), text.length, "toy", &back, &err), WEFT_OK,
                 "%s", err.text);
    cr_assert_eq(weft_plan_check_rows(back, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_plan_check_prediction(back, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_plan_check_bounds(back, &err), WEFT_OK, "%s", err.text);
    weft_plan_write(back, &again);
    cr_assert_str_eq(weft_text_chars(&text), weft_text_chars(&again));
    weft_plan_destroy(back);
    weft_text_finish(&text);
    weft_text_finish(&again);
}

/* Greedy is feasible wherever some plan is, no planner beats the best, and none exceeds a limit. */
static void check_toy_planners(const struct weft_problem *problem, int64_t best_ns)
{
    static const char *const planners[] = {"greedy", "random", "two-stage"};
    for (size_t k = 0; k < sizeof planners / sizeof *planners; k++) {
        struct weft_error err = {0};
        struct weft_plan *plan = plan_toy(problem, planners[k]);
        cr_assert(plan != NULL || k > 0, "greedy finds none");
        if (plan == NULL) continue;
        cr_assert_eq(weft_plan_check_rows(plan, &err), WEFT_OK, "%s: %s", planners[k], err.text);
        cr_assert_geq(plan->prediction.step_ns, best_ns, "%s", planners[k]);
        weft_plan_destroy(plan);
    }
}

/* Returns how many plans are slower than the best. */
static int32_t check_against_all(struct weft_problem *problem, int *seed, int32_t *n_away)
{
    struct weft_error err = {0};
    int64_t best_ns = enumerate_best(problem, problem->tiers[0].limit_bytes, NULL);
    struct weft_plan *plan = plan_toy(problem, "ilp");
    cr_assert_eq(plan != NULL, best_ns >= 0, "seed %d", *seed);
    if (plan == NULL) return 0;
    cr_assert_leq(plan->bound_ns, best_ns, "seed %d: bound %lld, best %lld", *seed,
                  (long long)plan->bound_ns, (long long)best_ns);
    cr_assert_geq(plan->prediction.step_ns, best_ns, "seed %d", *seed);
    cr_assert_eq(weft_certificate_check(&plan->certificate, problem, plan->bound_ns, NULL, &err),
                 WEFT_OK, "%s", err.text);
    check_plan_file(plan);
    check_toy_planners(problem, best_ns);
    for (int32_t u = 0; u < problem->n_decisions; u++)
        *n_away += strcmp(weft_plan_chosen(plan, u)->name, away_name) == 0;
    int32_t slower = plan->prediction.step_ns > best_ns;
    weft_plan_destroy(plan);
    return slower;
}

Test(toy_tier, state_that_may_be_on_the_host_is_planned_and_proven, .timeout = 170)
{
    int32_t n_slower = 0, n_away = 0;
    for (int seed = 1; seed <= TEST_CASES(60, 20); seed++) {
        struct weft_problem *problem = away_problem((uint64_t)seed);
        n_slower += check_against_all(problem, &seed, &n_away);
        weft_problem_destroy(problem);
    }
    cr_assert_eq(n_slower, 0, "%d plans are slower than the best", n_slower);
    cr_assert_gt(n_away, TEST_CASES(10, 2), "chosen %d times", n_away);
}

Test(toy_tier, rows_of_two_tiers_are_planned_and_proven, .timeout = 170)
{
    int32_t n_slower = 0, n_away = 0;
    for (int seed = 1; seed <= TEST_CASES(100, 25); seed++) {
        struct weft_problem *problem = drawn_problem((uint64_t)seed);
        n_slower += check_against_all(problem, &seed, &n_away);
        weft_problem_destroy(problem);
    }
    cr_assert_eq(n_slower, 0, "%d plans are slower than the best", n_slower);
}

/* The least limit of each tier, with the other as it is, is what the oracle says. */
Test(toy_tier, least_limits_are_those_of_each_tier, .timeout = 170)
{
    for (uint64_t seed = 1; seed <= TEST_CASES(40, 10); seed++) {
        struct weft_problem *problem = drawn_problem(seed);
        int64_t least = weft_least_limit(problem, 0, NULL);
        cr_assert_eq(least, enumerate_least_limit(problem), "seed %d", (int)seed);
        problem->tiers[0].limit_bytes = least;
        int64_t host = weft_least_limit(problem, 1, NULL);
        problem->tiers[1].limit_bytes = host;
        cr_assert_geq(enumerate_best(problem, least, NULL), 0, "seed %d", (int)seed);
        problem->tiers[1].limit_bytes = host - 1;
        cr_assert_lt(enumerate_best(problem, least, NULL), 0, "seed %d", (int)seed);
        struct weft_schedule_options options = {.planner = "ilp"};
        struct weft_plan *plan = NULL;
        struct weft_error err = {0};
        cr_assert_eq(weft_schedule(problem, NULL, &options, &plan, NULL, &err), WEFT_E_INFEASIBLE);
        cr_assert_not_null(strstr(err.text, "tier host (limit "), "%s", err.text);
        weft_problem_destroy(problem);
    }
}

static void *mutable(const void *constant)
{
    void *out;
    memcpy(&out, &constant, sizeof out);
    return out;
}

/* Another number somewhere in the certificate; false when there is none to change. */
static bool mutate_toy(const struct weft_problem *problem, struct weft_certificate *certificate,
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

/* Changed prices are refused, or prove what is true; a changed problem is refused. */
Test(toy_tier, no_number_can_be_changed_to_prove_what_is_false, .timeout = 170)
{
    int32_t n_refused = 0, n_changed = 0;
    for (uint64_t seed = 1; seed <= 8; seed++) {
        struct weft_problem *problem = seed % 2 ? away_problem(seed) : drawn_problem(seed);
        int64_t best_ns = enumerate_best(problem, problem->tiers[0].limit_bytes, NULL);
        struct weft_plan *plan = plan_toy(problem, "ilp");
        if (plan == NULL) continue;
        for (uint64_t k = 0; k < 100; k++) {
            struct weft_pool pool = {0};
            struct weft_certificate changed;
            struct weft_error err = {0};
            int64_t proven_ns = 0;
            cr_assert_eq(weft_certificate_copy(&plan->certificate, problem, &pool, &changed, &err),
                         WEFT_OK);
            if (mutate_toy(problem, &changed, seed, k)) {
                enum weft_status status =
                    weft_certificate_check(&changed, problem, plan->bound_ns, &proven_ns, &err);
                n_changed++;
                n_refused += status != WEFT_OK;
                cr_assert(status != WEFT_OK || proven_ns <= best_ns, "seed %d, %d", (int)seed,
                          (int)k);
            }
            weft_pool_finish(&pool);
        }
        struct weft_error err = {0};
        struct weft_hold *hold = mutable(&problem->decisions[0].strategies[0].holds[0]);
        hold->tier = 1 - hold->tier;
        cr_assert_neq(weft_plan_check_bounds(plan, &err), WEFT_OK);
        hold->tier = 1 - hold->tier;
        problem->tiers[1].limit_bytes++;
        cr_assert_neq(weft_plan_check_bounds(plan, &err), WEFT_OK);
        weft_plan_destroy(plan);
        weft_problem_destroy(problem);
    }
    cr_assert_gt(n_changed, 200);
    cr_assert_gt(n_refused, 100, "%d of %d", n_refused, n_changed);
}
