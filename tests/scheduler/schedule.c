/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/schedule.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/digest/digest.h"
#include "scheduler/digest/infeasible.h"
#include "scheduler/planners/names.h"
#include "scheduler/planners/table.h"
#include "tests/effort.h"
#include "tests/program/random_model.h"
#include "tests/scheduler/enumerate.h"
#include "tests/scheduler/solver.h"
#include "tests/scheduler/tiny.h"

static struct weft_work counted;

static struct weft_schedule_options options_of(const char *planner)
{
    struct weft_schedule_options options = {.planner = planner,
                                            .seed = 5,
                                            .budget = weft_budget_of(&counted, 10000000000),
                                            .gap = 0.0001};
    if (test_solver_exists()) options.solver = test_solver();
    return options;
}

/* Nothing fits, or the rule cannot be applied to the problem. */
static bool is_without_plan(enum weft_status status)
{
    return status == WEFT_E_INFEASIBLE || status == WEFT_E_DATA;
}

static struct weft_plan *plan_by(const struct weft_problem *problem, const char *planner)
{
    struct weft_schedule_options options = options_of(planner);
    struct weft_plan *plan = NULL;
    struct weft_error err = {0};
    enum weft_status status = weft_schedule(problem, NULL, &options, &plan, NULL, &err);
    cr_assert(status == WEFT_OK || is_without_plan(status), "%s: %s", planner, err.text);
    return plan;
}

static void check_against(const struct weft_plan *best, const char *planner)
{
    struct weft_plan *plan = plan_by(best->problem, planner);
    if (!plan) return;
    cr_assert_str_eq(plan->planner, planner);
    cr_assert_leq(plan->prediction.peak_bytes, best->problem->tiers[0].limit_bytes, "%s", planner);
    cr_assert_leq(best->prediction.step_ns, plan->prediction.step_ns, "ilp against %s", planner);
    cr_assert_leq(best->bound_ns, plan->prediction.step_ns, "%s", planner);
    cr_assert_leq(plan->bound_ns, plan->prediction.step_ns, "%s", planner);
    weft_plan_destroy(plan);
}

/* By what the certificates of the plans so far branch. */
static int n_nodes[WEFT_NODE_COUNT + 1];

static void count_nodes(const struct weft_certificate *certificate)
{
    for (int32_t i = 0; i < certificate->n_nodes; i++)
        n_nodes[certificate->nodes[i].kind]++;
}

/* ilp is never slower than another in any setting, its bound is below all, and every plan is within
 * its limit. */
static void check_planners(const struct weft_problem *problem)
{
    struct weft_plan *best = plan_by(problem, "ilp");
    cr_assert_not_null(best);
    cr_assert_eq(weft_certificate_check(&best->certificate, problem, best->bound_ns, NULL, NULL),
                 WEFT_OK);
    count_nodes(&best->certificate);
    cr_assert_leq(best->prediction.peak_bytes, problem->tiers[0].limit_bytes);
    cr_assert_gt(best->bound_ns, 0);
    cr_assert_leq(best->bound_ns, best->prediction.step_ns);
    for (const struct weft_planner *planner = weft_planners() + 1; planner->name; planner++) {
        const struct weft_setting *setting = planner->settings;
        if (planner->solves) continue; /* tests/scheduler/planners/seed */
        check_against(best, planner->name);
        for (; setting && setting->name; setting++) {
            char name[64];
            snprintf(name, sizeof name, "%s:%s", planner->name, setting->name);
            check_against(best, name);
        }
    }
    weft_plan_destroy(best);
}

Test(schedule, ilp_beats_every_planner_on_tiny_problems, .timeout = 900)
{
    for (uint64_t seed = 1; seed <= 16; seed++) {
        if (!test_draws(seed, 3, 8)) continue;
        struct tiny_shape shape = {.n_units = 2 + (int32_t)(seed % 4),
                                   .most_blocks = 3,
                                   .policies = 15,
                                   .load = 0.1 * (double)(seed % 20),
                                   .contends = seed % 3 == 1,
                                   .two_networks = seed % 4 == 1};
        struct weft_problem *problem = tiny_problem(&shape, seed);
        tiny_set_limit(problem, 0.1 * (double)(seed % 9));
        check_planners(problem);
        weft_problem_destroy(problem);
    }
    if (!test_solver_exists()) return;
    if (TEST_CASES_OF(false, true, true)) return; /* too few cases for each kind of node */
    cr_assert_gt(n_nodes[WEFT_NODE_STRATEGIES], 5, "%d", n_nodes[WEFT_NODE_STRATEGIES]);
    cr_assert_gt(n_nodes[WEFT_NODE_MILESTONE], 0, "%d", n_nodes[WEFT_NODE_MILESTONE]);
}

/* The plan is the best of all, the bound is below it, and its certificate proves that. Every tenth
 * with the solver; without it the same has to come out. */
Test(schedule, the_plan_is_the_best_of_all_by_enumeration, .timeout = 900)
{
    int n_closed = 0, n = 0;
    double gaps = 0;
    for (uint64_t seed = 1; seed <= 520; seed++) {
        if (!test_draws(seed, 6, 24)) continue;
        struct weft_problem *problem = tiny_problem_of(seed, 1 + (int32_t)(seed & 1));
        int64_t best_ns = enumerate_best(problem, problem->tiers[0].limit_bytes, NULL);
        struct weft_schedule_options options = options_of("ilp");
        struct weft_plan *plan = NULL;
        struct weft_error err = {0};
        options.gap = 0;
        if (seed % 10 != 0) options.solver = (struct weft_solver){0};
        cr_assert_eq(weft_schedule(problem, NULL, &options, &plan, NULL, &err), WEFT_OK, "%s",
                     err.text);
        cr_assert_eq(plan->prediction.step_ns, best_ns, "seed %d: %lld, the best is %lld (%s)",
                     (int)seed, (long long)plan->prediction.step_ns, (long long)best_ns,
                     plan->solver_stop);
        cr_assert_leq(plan->bound_ns, best_ns, "seed %d", (int)seed);
        cr_assert_eq(
            weft_certificate_check(&plan->certificate, problem, plan->bound_ns, NULL, &err),
            WEFT_OK, "%s", err.text);
        n++;
        n_closed += plan->bound_ns == best_ns;
        gaps += weft_plan_gap(plan);
        weft_plan_destroy(plan);
        weft_problem_destroy(problem);
    }
    cr_log_info("of %d the bound proves %d; gap %.4f %% on average", n, n_closed, 100 * gaps / n);
    cr_assert_gt(n_closed, n / 4);
}

Test(schedule, without_a_limit_only_time_counts)
{
    struct tiny_shape shape = {.n_units = 4, .most_blocks = 3, .policies = 15, .load = 3};
    struct weft_problem *problem = tiny_problem(&shape, 13);
    cr_assert_eq(problem->tiers[0].limit_bytes, INT64_MAX);
    check_planners(problem);
    struct weft_plan *best = plan_by(problem, "ilp");
    tiny_set_limit(problem, 1);
    struct weft_plan *wide = plan_by(problem, "ilp");
    tiny_set_limit(problem, 0);
    struct weft_plan *tight = plan_by(problem, "ilp");
    cr_assert_eq(best->prediction.step_ns, wide->prediction.step_ns);
    cr_assert_eq(best->bound_ns, wide->bound_ns);
    cr_assert_lt(best->prediction.step_ns, tight->prediction.step_ns);
    cr_assert_lt(best->bound_ns, tight->bound_ns);
    weft_plan_destroy(best);
    weft_plan_destroy(wide);
    weft_plan_destroy(tight);
    weft_problem_destroy(problem);
}

/* A draft has the plan of its rule and no proof; ilp's begins with the plan that it is given, and
 * looks no further where that is enough. */
Test(schedule, a_draft_proves_nothing)
{
    struct tiny_shape shape = {.n_units = 4, .most_blocks = 3, .policies = 15, .load = 0.7};
    struct weft_problem *problem = tiny_problem(&shape, 11);
    struct weft_plan *rule = plan_by(problem, "random"), *best = plan_by(problem, "ilp"), *draft;
    struct weft_schedule_options options = options_of("random");
    cr_assert_lt(best->prediction.step_ns, rule->prediction.step_ns);
    options.draft = true;
    cr_assert_eq(weft_schedule(problem, NULL, &options, &draft, NULL, NULL), WEFT_OK);
    cr_assert_eq(draft->prediction.step_ns, rule->prediction.step_ns);
    cr_assert_eq(draft->bound_ns, 0);
    cr_assert_eq(draft->certificate.n_nodes, 0);
    weft_plan_destroy(draft);
    const struct weft_plan *starts[] = {rule};
    options.planner = "ilp";
    options.starts = starts;
    options.n_starts = 1;
    for (int enough = 0; enough < 2; enough++) {
        options.enough_ns = enough ? INT64_MAX : best->prediction.step_ns;
        cr_assert_eq(weft_schedule(problem, NULL, &options, &draft, NULL, NULL), WEFT_OK);
        cr_assert_eq(draft->bound_ns, 0);
        cr_assert_eq(draft->certificate.n_nodes, 0);
        if (!enough) cr_assert_lt(draft->prediction.step_ns, rule->prediction.step_ns);
        if (enough)
            for (int32_t u = 0; u < problem->n_decisions; u++)
                cr_assert_eq(draft->strategies[u], rule->strategies[u]);
        weft_plan_destroy(draft);
    }
    weft_plan_destroy(rule);
    weft_plan_destroy(best);
    weft_problem_destroy(problem);
}

Test(schedule, without_a_solver_says_so_and_plans_all_the_same)
{
    struct tiny_shape shape = {.n_units = 4, .most_blocks = 3, .policies = 15, .load = 0.7};
    struct weft_problem *problem = tiny_problem(&shape, 11);
    tiny_set_limit(problem, 0.3);
    struct weft_schedule_options options = {.planner = "ilp", .gap = 0.001};
    struct weft_plan *plan = NULL;
    struct weft_error err = {0};
    cr_assert_eq(weft_schedule(problem, NULL, &options, &plan, NULL, &err), WEFT_OK, "%s",
                 err.text);
    cr_assert_eq(strncmp(plan->solver_stop, "no solver: ", 11), 0);
    cr_assert_str_eq(plan->bound_by, "dual ascent, weak duality");
    cr_assert_eq(weft_certificate_check(&plan->certificate, problem, plan->bound_ns, NULL, &err),
                 WEFT_OK, "%s", err.text);
    cr_assert_leq(plan->bound_ns, plan->prediction.step_ns);
    weft_plan_destroy(plan);
    weft_problem_destroy(problem);
}

static enum weft_status failing(void *context, const struct weft_lp *lp,
                                const struct weft_lp_limits *limits, struct weft_pool *pool,
                                struct weft_lp_result *result, struct weft_error *err)
{
    (void)context, (void)lp, (void)limits, (void)pool, (void)result;
    return weft_fail(err, WEFT_E_HANG, "killed after 30 s");
}

Test(schedule, a_solver_that_fails_is_told_and_is_no_error)
{
    struct tiny_shape shape = {.n_units = 3, .most_blocks = 2, .policies = 15, .load = 0.7};
    struct weft_problem *problem = tiny_problem(&shape, 12);
    tiny_set_limit(problem, 0.2);
    struct weft_schedule_options options = {.planner = "ilp", .solver = {.solve = failing}};
    struct weft_plan *plan = NULL;
    cr_assert_eq(weft_schedule(problem, NULL, &options, &plan, NULL, NULL), WEFT_OK);
    cr_assert_str_eq(plan->solver_stop, "solver failed: killed after 30 s");
    weft_plan_destroy(plan);
    weft_problem_destroy(problem);
}

/* Claims that everything is infeasible, or gives numbers that mean nothing. */
static enum weft_status lying(void *context, const struct weft_lp *lp,
                              const struct weft_lp_limits *limits, struct weft_pool *pool,
                              struct weft_lp_result *result, struct weft_error *err)
{
    (void)limits, (void)err;
    *result = (struct weft_lp_result){.status = WEFT_LP_OPTIMAL, .stop = "optimal"};
    result->value = result->bound = 1e12;
    result->duals = weft_pool_array(pool, (size_t)lp->n_rows, sizeof(double));
    result->x = weft_pool_array(pool, (size_t)lp->n_columns, sizeof(double));
    for (int32_t i = 0; i < lp->n_rows; i++)
        result->duals[i] = (i * 7 % 13 - 6) * *(double *)context;
    for (int32_t j = 0; j < lp->n_columns; j++)
        result->x[j] = 0.3 * (j % 5);
    return WEFT_OK;
}

Test(schedule, nothing_that_a_solver_says_makes_a_false_bound)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct tiny_shape shape = {.n_units = 2, .most_blocks = 2, .policies = 15, .load = 0.9};
        struct weft_problem *problem = tiny_problem(&shape, seed);
        tiny_set_limit(problem, 0.2);
        double scale = seed % 2 ? 0.01 : 1e6;
        struct weft_schedule_options options = {.planner = "ilp",
                                                .solver = {.solve = lying, .context = &scale}};
        struct weft_plan *plan = NULL;
        cr_assert_eq(weft_schedule(problem, NULL, &options, &plan, NULL, NULL), WEFT_OK);
        int64_t best_ns = enumerate_best(problem, problem->tiers[0].limit_bytes, NULL);
        cr_assert_leq(plan->bound_ns, best_ns);
        cr_assert_geq(plan->prediction.step_ns, best_ns);
        weft_plan_destroy(plan);
        weft_problem_destroy(problem);
    }
}

Test(schedule, the_same_inputs_give_the_same_plan)
{
    struct tiny_shape shape = {.n_units = 6, .most_blocks = 3, .policies = 15, .load = 0.8};
    struct weft_problem *problem = tiny_problem(&shape, 21);
    tiny_set_limit(problem, 0.25);
    const char *const names[] = {"ilp", "greedy", "random"};
    for (int i = 0; i < 3; i++) {
        struct weft_plan *a = plan_by(problem, names[i]), *b = plan_by(problem, names[i]);
        cr_assert(weft_hash_equal(weft_plan_hash(a), weft_plan_hash(b)), "%s", names[i]);
        weft_plan_destroy(a);
        weft_plan_destroy(b);
    }
    weft_problem_destroy(problem);
}

static int n_schedule_looks;

static void see_plan(struct weft_watch *watch)
{
    n_schedule_looks++;
    if (watch->best_ns > 0 && watch->bound_ns > 0)
        cr_assert_leq(watch->bound_ns, watch->best_ns, "at look %d", n_schedule_looks);
}

static int64_t read_schedule_clock(void)
{
    return 0;
}

Test(schedule, a_watch_sees_best_and_bound_and_changes_nothing)
{
    struct tiny_shape shape = {.n_units = 6, .most_blocks = 3, .policies = 15, .load = 0.8};
    struct weft_problem *problem = tiny_problem(&shape, 21);
    tiny_set_limit(problem, 0.25);
    struct weft_plan *unseen = plan_by(problem, "ilp"), *seen = NULL;
    struct weft_watch watch = {.look = see_plan, .now_ns = read_schedule_clock, .share = -1};
    struct weft_schedule_options options = options_of("ilp");
    struct weft_error err = {0};
    struct weft_work work = {0};
    weft_work_be_watched(&work, &watch, 10000000000);
    options.budget = weft_budget_of(&work, 10000000000);
    weft_watch_begin(&watch, "plan");
    enum weft_status status = weft_schedule(problem, NULL, &options, &seen, NULL, &err);
    cr_assert_eq(status, WEFT_OK, "%s", err.text);
    cr_assert(weft_hash_equal(weft_plan_hash(seen), weft_plan_hash(unseen)));
    cr_assert_gt(n_schedule_looks, 2);
    cr_assert_eq(watch.best_ns, seen->prediction.step_ns);
    cr_assert(watch.bound_ns > 0 && watch.bound_ns <= watch.best_ns);
    cr_assert_gt(watch.share, 0);
    weft_plan_destroy(seen);
    weft_plan_destroy(unseen);
    weft_problem_destroy(problem);
}

Test(schedule, random_seeds_give_different_plans_that_fit)
{
    struct tiny_shape shape = {.n_units = 5, .most_blocks = 3, .policies = 15, .load = 0.8};
    struct weft_problem *problem = tiny_problem(&shape, 22);
    tiny_set_limit(problem, 0.3);
    struct weft_schedule_options options = options_of("random");
    int n_different = 0;
    int64_t last_ns = 0;
    for (options.seed = 0; options.seed < 50; options.seed++) {
        struct weft_plan *plan = NULL;
        struct weft_error err = {0};
        cr_assert_eq(weft_schedule(problem, NULL, &options, &plan, NULL, &err), WEFT_OK, "%s",
                     err.text);
        cr_assert_leq(plan->prediction.peak_bytes, problem->tiers[0].limit_bytes);
        n_different += plan->prediction.step_ns != last_ns;
        last_ns = plan->prediction.step_ns;
        weft_plan_destroy(plan);
    }
    cr_assert_gt(n_different, 40);
    weft_problem_destroy(problem);
}

Test(schedule, an_unknown_planner_is_a_usage_error_that_lists_them)
{
    struct tiny_shape shape = {.n_units = 2, .most_blocks = 1, .policies = 15, .load = 0.5};
    struct weft_problem *problem = tiny_problem(&shape, 1);
    struct weft_schedule_options options = {.planner = "nonsense"};
    struct weft_plan *plan = NULL;
    struct weft_error err = {0};
    cr_assert_eq(weft_schedule(problem, NULL, &options, &plan, NULL, &err), WEFT_E_USAGE);
    cr_assert_not_null(strstr(err.text, "\"nonsense\""));
    for (const struct weft_planner *planner = weft_planners(); planner->name; planner++) {
        cr_assert_not_null(strstr(err.text, planner->name), "%s", err.text);
        cr_assert_eq(weft_planner_find(planner->name, NULL), planner);
    }
    cr_assert_null(plan);
    err = (struct weft_error){0};
    cr_assert_eq(weft_planner_need("ipl", &err), WEFT_E_USAGE);
    cr_assert_str_eq(err.text,
                     "no planner \"ipl\"; did you mean ilp? `weft help plan` tells of all");
    err = (struct weft_error){0};
    cr_assert_eq(weft_planner_need("zero3", &err), WEFT_E_USAGE);
    cr_assert_not_null(strstr(err.text, "it is a policy. Planner all-fsdp"), "%s", err.text);
    weft_problem_destroy(problem);
}

Test(schedule, the_list_of_names_is_the_table_s)
{
    char names[sizeof WEFT_PLANNER_NAMES] = "";
    size_t used = 0;
    for (const struct weft_planner *planner = weft_planners(); planner->name; planner++) {
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "",
                                 planner->name);
        cr_assert_lt(used, sizeof names, "%s", planner->name);
    }
    cr_assert_str_eq(names, WEFT_PLANNER_NAMES);
}

Test(schedule, a_setting_is_named_after_a_colon)
{
    struct tiny_shape shape = {.n_units = 2, .most_blocks = 1, .policies = 15, .load = 0.5};
    struct weft_problem *problem = tiny_problem(&shape, 1);
    static const char *const cases[][2] = {
        {"ddp:7MiB", "planner ddp has no setting \"7MiB\"; there are 25MiB 1MiB"},
        {"greedy:7", "planner greedy has no setting \"7\"; there are each alike"},
        {"all-fsdp:7", "planner all-fsdp has no settings; write \"all-fsdp\""}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct weft_schedule_options options = {.planner = cases[i][0]};
        struct weft_plan *plan = NULL;
        struct weft_error err = {0};
        cr_assert_eq(weft_schedule(problem, NULL, &options, &plan, NULL, &err), WEFT_E_USAGE);
        cr_assert_not_null(strstr(err.text, cases[i][1]), "%s", err.text);
    }
    const struct weft_setting *setting = NULL;
    const struct weft_planner *ddp = weft_planner_find("ddp:5MiB", &setting);
    cr_assert_eq(ddp, weft_planner_find("ddp", NULL));
    cr_assert_eq(setting->values[0], 5 << 20);
    weft_problem_destroy(problem);
}

/* On whole models, in pages: the limit binds base + arena, and the program verifies. */
static void check_model(struct random_case *random, int64_t limit_bytes, const char *planner)
{
    struct weft_schedule_options options = options_of(planner);
    struct weft_plan *plan = NULL;
    struct weft_program *program = NULL;
    struct weft_error err = {0};
    random->stages.problem->tiers[0].limit_bytes = limit_bytes;
    enum weft_status status =
        weft_schedule(random->stages.problem, &random->inputs, &options, &plan, &program, &err);
    if (is_without_plan(status)) {
        cr_assert_null(plan);
        return;
    }
    cr_assert_eq(status, WEFT_OK, "%s", err.text);
    cr_assert_leq(plan->prediction.total_bytes, limit_bytes);
    cr_assert_eq(plan->prediction.total_bytes, program->base_bytes + program->arena_bytes);
    cr_assert_leq(plan->prediction.peak_bytes, plan->prediction.total_bytes);
    cr_assert_eq(weft_program_verify(program, limit_bytes, &err), WEFT_OK, "%s", err.text);
    weft_plan_destroy(plan);
    weft_program_destroy(program);
}

Test(schedule, models_fit_in_pages_and_verify, .timeout = 900)
{
    /* Seven models in `make check-all`, otherwise two of the first six, or one with a sanitizer. */
    const bool all = TEST_CASES_OF(1, 0, 0);
    const uint64_t each = TEST_CASES(2, 1), first = all ? 1 : 1 + each * test_turn(6 / each);
    const uint64_t last = all ? 7 : first + each - 1;
    for (uint64_t seed = first; seed <= last; seed++) {
        struct random_case random;
        random_case_init(&random, seed);
        int32_t peak_slot = -1;
        int64_t least = weft_least_limit(random.stages.problem, 0, &peak_slot);
        cr_assert_geq(peak_slot, 0);
        for (const struct weft_planner *planner = weft_planners(); planner->name; planner++)
            if (!planner->solves)
                check_model(&random, least + (int64_t)(seed % 7) * least / 6, planner->name);
        random_case_finish(&random);
    }
}

/* What the rule decides in the rows as they are is within the limit in pages too; *step_ns is its
 * step time. */
static bool has_pages(const struct random_case *random, const char *rule, int64_t *step_ns)
{
    struct weft_problem *problem = random->stages.problem;
    struct weft_schedule_options options = {.planner = rule};
    struct weft_plan *plan = NULL;
    struct weft_program *program = NULL;
    struct weft_error err = {0};
    enum weft_status status = weft_schedule(problem, NULL, &options, &plan, NULL, &err);
    if (is_without_plan(status)) return false;
    cr_assert_eq(status, WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_program_lower(plan, &random->inputs, &program, &err), WEFT_OK, "%s",
                 err.text);
    bool fits = program->base_bytes + program->arena_bytes <= problem->tiers[0].limit_bytes;
    *step_ns = plan->prediction.step_ns;
    weft_program_destroy(program);
    weft_plan_destroy(plan);
    return fits;
}

/* However little work there is, ilp is not slower than a rule whose pages are within the limit. */
Test(schedule, no_rule_is_faster_in_no_work, .timeout = 900)
{
    static const char *const rules[] = {"all-fsdp", "all-sdp", "all-zero1", "all-dp"};
    int n_compared = 0;
    for (uint64_t seed = 1; seed <= TEST_CASES_OF(60, 40, 15); seed++) {
        struct random_case random;
        random_case_init(&random, seed);
        struct weft_problem *problem = random.stages.problem;
        struct weft_work work = {0};
        struct weft_schedule_options options = {.planner = "ilp",
                                                .budget = weft_budget_of(&work, 1)};
        struct weft_plan *best = NULL;
        struct weft_error err = {0};
        int64_t least = 0;
        cr_assert_eq(weft_least_paged_limit(problem, &random.inputs, &least, &err), WEFT_OK);
        problem->tiers[0].limit_bytes = least * 5 / 4;
        enum weft_status status =
            weft_schedule(problem, &random.inputs, &options, &best, NULL, &err);
        cr_assert_eq(status, WEFT_OK, "%s", err.text);
        for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
            int64_t step_ns = 0;
            if (!has_pages(&random, rules[i], &step_ns)) continue;
            n_compared++;
            cr_assert_leq(best->prediction.step_ns, step_ns, "seed %llu: ilp against %s",
                          (unsigned long long)seed, rules[i]);
        }
        weft_plan_destroy(best);
        random_case_finish(&random);
    }
    cr_assert_gt(n_compared, 10, "%d", n_compared);
}

/* all-hsdp and all-nodes give every trained unit their policy where it is allowed, and are refused
 * elsewhere. ilp is not slower. */
Test(schedule, rules_of_nodes_are_for_configs_with_their_policy)
{
    int n_compared = 0, n_refused = 0;
    for (uint64_t seed = 1; seed <= TEST_CASES_OF(200, 150, 100); seed++) {
        struct random_case random;
        random_case_init_nodes(&random, seed);
        struct weft_problem *problem = random.stages.problem;
        struct weft_work work = {0};
        const bool crosses = seed % 2 == 0;
        struct weft_schedule_options rule = {.planner = crosses ? "all-nodes" : "all-hsdp"};
        const char *policies = random.config->plan.policies;
        const bool allowed =
            problem->ranks_per_node > 0 && (!crosses || strstr(policies, "nodes") != NULL);
        struct weft_schedule_options options = {.planner = "ilp",
                                                .budget = weft_budget_of(&work, 1)};
        struct weft_plan *plan = NULL, *best = NULL;
        struct weft_error err = {0};
        problem->tiers[0].limit_bytes = INT64_MAX;
        enum weft_status status = weft_schedule(problem, NULL, &rule, &plan, NULL, &err);
        if (!allowed) {
            cr_assert_eq(status, WEFT_E_DATA);
            cr_assert(strstr(err.text, crosses ? "which it may not have"
                                               : "the policy hsdp, which it may not have"),
                      "%s", err.text);
            n_refused++;
        } else {
            cr_assert_eq(status, WEFT_OK, "%s", err.text);
            for (int32_t u = 0; u < weft_problem_n_units(problem); u++)
                cr_assert_eq(weft_plan_chosen(plan, u)->policy,
                             crosses && problem->decisions[u].update_slot >= 0 ? WEFT_POLICY_NODES
                                                                               : WEFT_POLICY_HSDP);
            cr_assert_eq(weft_schedule(problem, &random.inputs, &options, &best, NULL, &err),
                         WEFT_OK, "%s", err.text);
            cr_assert_leq(best->prediction.step_ns, plan->prediction.step_ns, "seed %d", (int)seed);
            n_compared++;
        }
        weft_plan_destroy(best);
        weft_plan_destroy(plan);
        random_case_finish(&random);
    }
    cr_assert(n_compared > 3 && n_refused > 3, "%d, %d", n_compared, n_refused);
}

/* Where the first plan's pages fit and the gap is open, most of the work goes on closing it. */
Test(schedule, the_work_goes_on_where_the_first_plan_fits, .timeout = 900)
{
    int n_open = 0, n_better = 0;
    for (uint64_t seed = 1; seed <= TEST_CASES_OF(40, 30, 10); seed++) {
        struct random_case random;
        random_case_init(&random, seed);
        struct weft_problem *problem = random.stages.problem;
        enum { UNITS = 4000000 };
        struct weft_work work = {0};
        struct weft_plan *plan = NULL;
        struct weft_error err = {0};
        int64_t least = 0;
        cr_assert_eq(weft_least_paged_limit(problem, &random.inputs, &least, &err), WEFT_OK);
        problem->tiers[0].limit_bytes = least * 3 / 2;
        struct weft_schedule_options options = {.planner = "ilp",
                                                .budget = weft_budget_of(&work, UNITS)};
        cr_assert_eq(weft_schedule(problem, &random.inputs, &options, &plan, NULL, &err), WEFT_OK,
                     "%s", err.text);
        bool at_once = strstr(plan->solver_stop, "before pages") == NULL;
        bool cut_short = strstr(plan->solver_stop, "work limit") != NULL;
        if (at_once && cut_short && weft_plan_gap(plan) > 1e-4) {
            n_open++;
            cr_assert_gt(work.spent, UNITS / 2, "seed %llu: %lld units", (unsigned long long)seed,
                         (long long)work.spent);
        }
        n_better += at_once && !cut_short;
        weft_plan_destroy(plan);
        random_case_finish(&random);
    }
    cr_assert_gt(n_open, 0);
    cr_log_info("%d open to the end, %d closed", n_open, n_better);
}

/* It always runs: its first plan does not fit in pages. */
static const uint64_t SEED_OF_SECOND_PLAN = 17;

/* Near the least limit most first plans take more in pages than in rows. */
Test(schedule, no_rule_is_faster_in_lower_rows, .timeout = 900)
{
    int n_again = 0;
    for (uint64_t seed = 15; seed <= 45; seed++) {
        if (seed != SEED_OF_SECOND_PLAN && !test_draws(seed, 3, 8)) continue;
        struct random_case random;
        random_case_init(&random, seed);
        struct weft_problem *problem = random.stages.problem;
        int64_t least = 0, best_ns = 0;
        struct weft_error err = {0};
        cr_assert_eq(weft_least_paged_limit(problem, &random.inputs, &least, &err), WEFT_OK);
        problem->tiers[0].limit_bytes = least + least / 50;
        for (const struct weft_planner *planner = weft_planners(); planner->name; planner++) {
            struct weft_schedule_options options = {.planner = planner->name, .seed = 5};
            /* No rule: its blocks may round up less, and rows do not know. */
            if (strcmp(planner->name, "random") == 0 || planner->solves) continue;
            struct weft_plan *plan = NULL;
            enum weft_status status =
                weft_schedule(problem, &random.inputs, &options, &plan, NULL, &err);
            if (is_without_plan(status)) continue;
            cr_assert_eq(status, WEFT_OK, "%s", err.text);
            if (planner == weft_planners()) {
                best_ns = plan->prediction.step_ns;
                n_again += strstr(plan->solver_stop, ", before pages") != NULL;
            }
            cr_assert_leq(best_ns, plan->prediction.step_ns, "seed %llu: ilp against %s",
                          (unsigned long long)seed, planner->name);
            weft_plan_destroy(plan);
        }
        random_case_finish(&random);
    }
    cr_assert_gt(n_again, 0, "all first plans fit");
}

/* The limit that a refusal names is one at which a plan is found. */
Test(schedule, the_least_limit_named_is_true, .timeout = 900)
{
    for (uint64_t seed = 1; seed <= 25; seed++) {
        if (!test_draws(seed, 3, 8)) continue;
        struct random_case random;
        random_case_init(&random, seed);
        struct weft_problem *problem = random.stages.problem;
        struct weft_schedule_options options = {.planner = "ilp", .gap = 0.001};
        struct weft_plan *plan = NULL;
        struct weft_error err = {0};
        problem->tiers[0].limit_bytes = weft_least_limit(problem, 0, NULL) - 1;
        cr_assert_eq(weft_schedule(problem, &random.inputs, &options, &plan, NULL, &err),
                     WEFT_E_INFEASIBLE);
        const char *at = strstr(err.text, "the least limit that fits is ");
        cr_assert_not_null(at, "%s", err.text);
        long long named = 0;
        cr_assert_eq(sscanf(strchr(at, '(') + 1, "%lld bytes", &named), 1, "%s", err.text);
        int64_t least_bytes = 0;
        cr_assert_eq(weft_least_paged_limit(problem, &random.inputs, &least_bytes, &err), WEFT_OK);
        cr_assert_eq(named, least_bytes, "what sweep begins at is what a refusal names");
        problem->tiers[0].limit_bytes = named;
        err = (struct weft_error){0};
        cr_assert_eq(weft_schedule(problem, &random.inputs, &options, &plan, NULL, &err), WEFT_OK,
                     "%s", err.text);
        cr_assert_leq(plan->prediction.total_bytes, named);
        weft_plan_destroy(plan);
        random_case_finish(&random);
    }
}

/* The refusal of a hint names the least rows, and tries no limit in pages. */
Test(schedule, a_hint_is_refused_by_rows_alone, .timeout = 900)
{
    int n = 0;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct random_case random;
        random_case_init(&random, seed);
        struct weft_problem *problem = random.stages.problem;
        const int64_t least_bytes = weft_least_limit(problem, 0, NULL);
        for (int hint = 0; hint < 2; hint++) {
            const struct weft_schedule_options options = {.planner = "greedy", .hint = hint > 0};
            struct weft_plan *plan = NULL;
            struct weft_error err = {0};
            problem->tiers[0].limit_bytes = least_bytes - 1;
            cr_assert_eq(weft_schedule(problem, &random.inputs, &options, &plan, NULL, &err),
                         WEFT_E_INFEASIBLE);
            const int64_t named = weft_problem_moves(problem) ? 0 : least_bytes;
            if (hint) cr_assert_eq(err.needs_bytes, named, "%s", err.text);
            if (!hint) n += err.needs_bytes > least_bytes;
        }
        random_case_finish(&random);
    }
    cr_assert_gt(n, 0, "pages round up");
}

/* Rings at the first look. */
static int64_t clock_of_alarm(void)
{
    static int64_t now_ns;
    return now_ns += 10;
}

/* After the alarm, a plan may take the work of a few placements and of two plans in pages. */
static int64_t work_after_alarm(const struct weft_problem *problem)
{
    const int64_t n_slots = problem->n_slots, n_blocks = weft_problem_count_blocks(problem);
    return 4 * (80 * n_slots + 12 * n_blocks) + 2 * (2000 * n_slots + 400 * n_blocks);
}

Test(schedule, after_the_alarm_the_cheapest_plan_is_made)
{
    int32_t n_lower = 0;
    for (uint64_t number = 1; number <= 60; number++) {
        struct random_case random;
        random_case_init(&random, number);
        struct weft_problem *problem = random.stages.problem;
        struct weft_work work = weft_work_begin(clock_of_alarm, 1);
        const struct weft_schedule_options options = {.planner = "ilp",
                                                      .budget = weft_budget_of(&work, 10000000000)};
        struct weft_plan *plan = NULL;
        struct weft_error err = {0};
        int64_t least_bytes = 0;
        cr_assert_eq(weft_least_paged_limit(problem, &random.inputs, &least_bytes, &err), WEFT_OK);
        problem->tiers[0].limit_bytes = least_bytes + least_bytes / 1000;
        weft_work_look(&work);
        cr_assert(work.rang);
        cr_assert_eq(weft_schedule(problem, &random.inputs, &options, &plan, NULL, &err), WEFT_OK,
                     "%s", err.text);
        cr_assert_leq(plan->prediction.total_bytes, problem->tiers[0].limit_bytes);
        /* Pages of the leanest plan may exceed a limit at which another plan fits. */
        if (strstr(plan->solver_stop, ", before pages") == NULL)
            cr_assert_leq(work.spent, work_after_alarm(problem), "random case %d", (int)number);
        cr_assert_not_null(strstr(plan->solver_stop, "time limit"), "%s", plan->solver_stop);
        n_lower += strstr(plan->solver_stop, "leanest strategies") != NULL;
        weft_plan_destroy(plan);
        random_case_finish(&random);
    }
    cr_assert_gt(n_lower, 0, "the test means nothing without a plan that exceeds its pages");
}

Test(schedule, a_refusal_names_slot_categories_and_remedies)
{
    struct random_case random;
    random_case_init(&random, 3);
    struct weft_problem *problem = random.stages.problem;
    struct weft_schedule_options options = {.planner = "ilp"};
    struct weft_plan *plan = NULL;
    struct weft_error err = {0};
    int32_t slot = 0;
    problem->tiers[0].limit_bytes = weft_least_limit(problem, 0, &slot) / 2;
    cr_assert_eq(weft_schedule(problem, &random.inputs, &options, &plan, NULL, &err),
                 WEFT_E_INFEASIBLE);
    cr_assert_not_null(strstr(err.text, "no plan fits the memory limit"), "%s", err.text);
    cr_assert_not_null(strstr(err.text, problem->slot_names[slot]), "%s", err.text);
    cr_assert_not_null(strstr(err.text, "optimizer state"), "%s", err.text);
    cr_assert_not_null(strstr(err.text, "What would help"), "%s", err.text);
    cr_assert_null(strstr(err.text, "pages take"), "%s", err.text);
    struct weft_digest *table = NULL;
    err = (struct weft_error){0};
    cr_assert_eq(weft_digest_create(problem, &table, &err), WEFT_OK);
    enum weft_status status =
        weft_fail_infeasible(table, "ilp", "", table->least_bytes + 512, &err);
    cr_assert_eq(status, WEFT_E_INFEASIBLE);
    cr_assert_not_null(
        strstr(err.text, "of which 512 B (512 bytes) are what whole pages round up."), "%s",
        err.text);
    weft_digest_destroy(table);
    random_case_finish(&random);
}

Test(schedule, a_fixed_planner_is_refused_and_not_replaced)
{
    struct tiny_shape shape = {.n_units = 4, .most_blocks = 2, .policies = 15, .load = 0.5};
    struct weft_problem *problem = tiny_problem(&shape, 2);
    tiny_set_limit(problem, 0.0);
    struct weft_schedule_options options = options_of("all-dp");
    struct weft_plan *plan = NULL;
    struct weft_error err = {0};
    cr_assert_eq(weft_schedule(problem, NULL, &options, &plan, NULL, &err), WEFT_E_INFEASIBLE);
    cr_assert_not_null(strstr(err.text, "planner all-dp: its plan holds"), "%s", err.text);
    cr_assert_not_null(strstr(err.text, "Planner ilp can go down to"), "%s", err.text);
    weft_problem_destroy(problem);
}

Test(schedule, a_rule_that_cannot_be_applied_is_no_question_of_the_limit)
{
    static const char *const rules[] = {"all-dp", "ddp", "bytescheduler", "mg-wfbp"};
    struct tiny_shape shape = {.n_units = 4,
                               .most_blocks = 2,
                               .policies = 1 << WEFT_POLICY_SDP | 1 << WEFT_POLICY_FSDP,
                               .load = 0.5};
    struct weft_problem *problem = tiny_problem(&shape, 2);
    for (int tight = 0; tight < 2; tight++) {
        problem->tiers[0].limit_bytes = tight ? 1 : INT64_MAX;
        for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
            struct weft_schedule_options options = options_of(rules[i]);
            struct weft_plan *plan = NULL;
            struct weft_error err = {0};
            cr_assert_eq(weft_schedule(problem, NULL, &options, &plan, NULL, &err), WEFT_E_DATA);
            cr_assert_not_null(strstr(err.text, "plan.policies leaves it out"), "%s", err.text);
            cr_assert_null(strstr(err.text, "limit"), "%s", err.text);
        }
    }
    weft_problem_destroy(problem);
}
