/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/estimate.h"

#include <criterion/criterion.h>
#include <string.h>

#include "scheduler/digest/digest.h"
#include "scheduler/planners/table.h"
#include "scheduler/schedule.h"
#include "tests/effort.h"
#include "tests/program/random_model.h"

static void fill_needs(const struct weft_problem *problem, bool timed,
                       struct weft_need rows[WEFT_ESTIMATE_ROWS])
{
    struct weft_error err = {0};
    weft_estimate_init(rows);
    enum weft_status status = weft_estimate_fill(problem, timed, WEFT_ESTIMATE_ALL, rows, &err);
    cr_assert_eq(status, WEFT_OK, "%s", err.text);
}

static const struct weft_need *need_row_of(const struct weft_need *rows, enum weft_policy policy,
                                           enum weft_need_way way)
{
    for (int i = 0; i < WEFT_ESTIMATE_ROWS; i++)
        if (rows[i].policy == policy && rows[i].way == way) return &rows[i];
    cr_assert_fail("no such row");
    return NULL;
}

/* The plan that `weft plan` makes by the rule. */
static void check_rule_row(struct weft_problem *problem, const struct weft_need *row)
{
    struct weft_schedule_options options = {.planner = row->rule, .draft = true};
    struct weft_plan *plan = NULL;
    struct weft_error err = {0};
    enum weft_status status = weft_schedule(problem, NULL, &options, &plan, NULL, &err);
    cr_assert_eq(status == WEFT_OK, row->applies, "%s: %s", row->rule, err.text);
    if (status != WEFT_OK) return;
    int64_t sum = 0;
    cr_assert_eq(row->bytes, plan->prediction.peak_bytes, "%s", row->rule);
    cr_assert_eq(row->slot, plan->prediction.peak_slot, "%s", row->rule);
    cr_assert_eq(row->step_ns, plan->prediction.step_ns, "%s", row->rule);
    for (int c = 0; c < WEFT_CATEGORY_COUNT; c++)
        sum += row->categories[c];
    cr_assert_eq(sum, row->bytes);
    weft_plan_destroy(plan);
    /* And at just that limit, with the same step. */
    problem->tiers[0].limit_bytes = row->bytes;
    status = weft_schedule(problem, NULL, &options, &plan, NULL, &err);
    cr_assert_eq(status, WEFT_OK, "%s", err.text);
    cr_assert_eq(row->step_ns, plan->prediction.step_ns, "%s", row->rule);
    weft_plan_destroy(plan);
    problem->tiers[0].limit_bytes = INT64_MAX;
}

Test(estimate, a_rule_s_row_is_the_plan_that_it_makes)
{
    int n_rules = 0;
    for (uint64_t seed = 1; seed <= TEST_CASES(60, 20); seed++) {
        struct random_case random;
        struct weft_need rows[WEFT_ESTIMATE_ROWS];
        random_case_init(&random, seed);
        random.stages.problem->tiers[0].limit_bytes = INT64_MAX;
        fill_needs(random.stages.problem, true, rows);
        for (int i = 0; i < WEFT_ESTIMATE_ROWS; i++) {
            if (rows[i].rule == NULL) continue;
            check_rule_row(random.stages.problem, &rows[i]);
            n_rules += rows[i].applies;
        }
        random_case_finish(&random);
    }
    cr_assert_gt(n_rules, TEST_CASES(100, 30));
}

Test(estimate, just_in_time_is_the_least_and_nothing_of_the_policy_is_faster_than_the_fastest)
{
    for (uint64_t seed = 1; seed <= TEST_CASES(60, 20); seed++) {
        struct random_case random;
        struct weft_need rows[WEFT_ESTIMATE_ROWS];
        random_case_init(&random, seed);
        random.stages.problem->tiers[0].limit_bytes = INT64_MAX;
        fill_needs(random.stages.problem, true, rows);
        for (int p = 0; p < WEFT_POLICY_HSDP; p++) { /* the default lacks hsdp */
            const struct weft_need *least = need_row_of(rows, p, WEFT_NEED_JUST_IN_TIME);
            const struct weft_need *fastest = need_row_of(rows, p, WEFT_NEED_FASTEST);
            const struct weft_need *rule = need_row_of(rows, p, WEFT_NEED_PUBLISHED);
            cr_assert_eq(least->applies, fastest->applies);
            if (!least->applies) continue;
            cr_assert_leq(least->bytes, fastest->bytes, "seed %d, %s", (int)seed,
                          weft_policy_name(p));
            double most_ns = (double)fastest->step_ns;
            cr_assert_geq((double)least->step_ns * 1.0005, most_ns, "seed %d", (int)seed);
            if (!rule->applies) continue;
            cr_assert_leq(least->bytes, rule->bytes, "seed %d, %s", (int)seed, rule->rule);
            cr_assert_geq((double)rule->step_ns * 1.0005, most_ns, "seed %d, %s", (int)seed,
                          rule->rule);
        }
        random_case_finish(&random);
    }
}

/* The least limit of any plan is never above what one policy needs just in time. */
Test(estimate, no_plan_at_all_needs_more_than_the_leanest_policy_just_in_time)
{
    for (uint64_t seed = 1; seed <= TEST_CASES(40, 15); seed++) {
        struct random_case random;
        struct weft_need rows[WEFT_ESTIMATE_ROWS];
        int64_t least = INT64_MAX;
        random_case_init(&random, seed);
        fill_needs(random.stages.problem, true, rows);
        for (int i = 0; i < WEFT_ESTIMATE_ROWS; i++)
            if (rows[i].applies && rows[i].bytes < least) least = rows[i].bytes;
        cr_assert_geq(least, weft_least_limit(random.stages.problem, 0, NULL), "seed %d",
                      (int)seed);
        random_case_finish(&random);
    }
}

Test(estimate, without_times_memory_is_the_same_and_the_third_way_is_the_earliest)
{
    struct random_case random;
    struct weft_need timed[WEFT_ESTIMATE_ROWS], rows[WEFT_ESTIMATE_ROWS];
    random_case_init_plain(&random, 3);
    fill_needs(random.stages.problem, true, timed);
    fill_needs(random.stages.problem, false, rows);
    for (int i = 0; i < WEFT_ESTIMATE_ROWS; i++) {
        cr_assert(rows[i].applies);
        cr_assert_eq(rows[i].step_ns, 0);
        cr_assert_gt(timed[i].step_ns, 0);
        if (rows[i].way == WEFT_NEED_JUST_IN_TIME) cr_assert_eq(rows[i].bytes, timed[i].bytes);
        cr_assert_neq(rows[i].way, WEFT_NEED_FASTEST);
    }
    for (int p = 0; p < WEFT_POLICY_HSDP; p++) {
        const struct weft_need *most = need_row_of(rows, p, WEFT_NEED_EARLIEST);
        cr_assert_leq(need_row_of(rows, p, WEFT_NEED_JUST_IN_TIME)->bytes, most->bytes);
    }
    random_case_finish(&random);
}

Test(estimate, a_policy_that_cannot_be_has_no_rows)
{
    struct random_case random;
    struct weft_need rows[WEFT_ESTIMATE_ROWS];
    random_case_init_plain(&random, 3);
    random.config->plan.policies = "fsdp,sdp";
    struct weft_stages stages;
    cr_assert_eq(weft_stages_create(random.config, random.profile, &stages, NULL), WEFT_OK);
    fill_needs(stages.problem, true, rows);
    weft_stages_finish(&stages);
    for (int p = 0; p < WEFT_POLICY_HSDP; p++) {
        bool may_be = p != WEFT_POLICY_DP;
        cr_assert_eq(need_row_of(rows, p, WEFT_NEED_JUST_IN_TIME)->applies, may_be, "%d", p);
        cr_assert_eq(need_row_of(rows, p, WEFT_NEED_FASTEST)->applies, may_be, "%d", p);
        may_be = p == WEFT_POLICY_SDP || p == WEFT_POLICY_FSDP;
        cr_assert_eq(need_row_of(rows, p, WEFT_NEED_PUBLISHED)->applies, may_be, "%d", p);
    }
    random_case_finish(&random);
}

/* What is not asked for costs nothing and stays as it is; but the fastest may be any of its policy.
 */
Test(estimate, rows_that_are_asked_for_are_those_of_all)
{
    struct random_case random;
    struct weft_need all[WEFT_ESTIMATE_ROWS];
    struct weft_error err = {0};
    random_case_init_plain(&random, 3);
    fill_needs(random.stages.problem, true, all);
    for (int i = 0; i < WEFT_ESTIMATE_ROWS; i++) {
        struct weft_need rows[WEFT_ESTIMATE_ROWS];
        weft_estimate_init(rows);
        cr_assert_eq(weft_estimate_fill(random.stages.problem, true, 1u << i, rows, &err), WEFT_OK);
        cr_assert_eq(rows[i].bytes, all[i].bytes, "row %d", i);
        cr_assert_eq(rows[i].step_ns, all[i].step_ns, "row %d", i);
        for (int k = 0; k < WEFT_ESTIMATE_ROWS; k++)
            cr_assert(!rows[k].applies || rows[k].policy == rows[i].policy);
    }
    cr_assert_eq(weft_estimate_rows_of(1u << WEFT_NEED_JUST_IN_TIME),
                 1u | 1u << 3 | 1u << 6 | 1u << 9);
    random_case_finish(&random);
}
