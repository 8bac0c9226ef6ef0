/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/paged_uniform.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "scheduler/paged.h"
#include "scheduler/planners/table.h"
#include "scheduler/schedule.h"
#include "tests/effort.h"
#include "tests/program/random_model.h"

/* A run with pages, and the plan of its leanest strategies. */
static void begin_run(struct weft_paged *run, const struct weft_schedule_options *options,
                      struct weft_work *work, struct tiers_case *c)
{
    struct weft_error err = {0};
    *run = (struct weft_paged){.problem = c->random.stages.problem,
                               .counted = c->random.inputs,
                               .options = options,
                               .planner = weft_planner_find("ilp", NULL),
                               .budget = weft_budget_of(work, 1)};
    run->inputs = &run->counted;
    cr_assert_eq(weft_digest_create(run->problem, &run->table, &err), WEFT_OK);
    run->candidate.strategies =
        calloc((size_t)run->table->n_decisions + 1, sizeof *run->candidate.strategies);
    run->candidate.moves = calloc((size_t)run->table->n_blocks + 1, sizeof *run->candidate.moves);
    cr_assert_eq(weft_paged_leanest(run, &err), WEFT_OK, "%s", err.text);
}

static void end_run(struct weft_paged *run)
{
    weft_plan_destroy(run->plan);
    weft_program_destroy(run->program);
    free(run->candidate.strategies);
    free(run->candidate.moves);
    weft_pool_finish(&run->pool);
    weft_digest_destroy(run->table);
}

static bool is_uniform(const struct weft_plan *plan, int32_t kind)
{
    const struct weft_problem *problem = plan->problem;
    for (int32_t d = 0; d < problem->n_decisions; d++) {
        const struct weft_problem_decision *of = &problem->decisions[d];
        for (int32_t k = 0; k < of->n_strategies && !of->is_of_layer; k++)
            if (of->strategies[k].kind == kind && plan->strategies[d] != k) return false;
    }
    return true;
}

/* A faster plan has one kind for all units that may have it, is within the limit and verified. The
 * budget is not spent, and without a faster one the plan stays. */
Test(paged_uniform, a_uniform_plan_replaces_a_slower_one)
{
    int n_faster = 0;
    for (uint64_t seed = 1; seed <= TEST_CASES_OF(60, 40, 20); seed++) {
        const struct weft_schedule_options options = {.planner = "ilp"};
        struct weft_work work = {0};
        struct tiers_case c;
        struct weft_paged run;
        struct weft_error err = {0};
        int64_t least_bytes = 0;
        (seed % 2 == 0 ? cached_case_init : tiers_case_init)(&c, seed);
        struct weft_problem *problem = c.random.stages.problem;
        cr_assert_eq(weft_least_paged_limit(problem, &c.random.inputs, &least_bytes, &err),
                     WEFT_OK);
        problem->tiers[0].limit_bytes = least_bytes + (int64_t)(seed % 5) * least_bytes / 8;
        begin_run(&run, &options, &work, &c);
        const int64_t before_ns = run.plan->prediction.step_ns, spent = work.spent;
        cr_assert_eq(weft_paged_uniform(&run, &err), WEFT_OK, "%s", err.text);
        cr_assert_eq(work.spent, spent);
        cr_assert_leq(run.plan->prediction.step_ns, before_ns);
        if (run.plan->prediction.step_ns < before_ns) {
            bool uniform = false;
            for (int32_t kind = 0; kind < problem->n_kinds; kind++)
                uniform |= is_uniform(run.plan, kind);
            cr_assert(uniform, "seed %d", (int)seed);
            cr_assert_leq(weft_paged_total_bytes(&run), problem->tiers[0].limit_bytes);
            cr_assert_eq(weft_program_verify(run.program, problem->tiers[0].limit_bytes, &err),
                         WEFT_OK, "%s", err.text);
            n_faster++;
        }
        end_run(&run);
        tiers_case_finish(&c);
    }
    cr_assert_gt(n_faster, 3, "%d", n_faster);
}
