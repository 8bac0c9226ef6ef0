/* SPDX-License-Identifier: Apache-2.0 */
/* Rules that offload state, over random whole models: the program does as they plan. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program/trace.h"
#include "scheduler/planners/table.h"
#include "scheduler/schedule.h"
#include "tests/effort.h"
#include "tests/program/random_model.h"

/* NULL: the rule does not fit, or has not got the tier. A plan that waits for itself is a failure.
 */
static struct weft_plan *plan_offloaded(const struct weft_problem *problem, const char *name)
{
    struct weft_schedule_options options = {.planner = name, .draft = true};
    struct weft_plan *plan = NULL;
    struct weft_error err = {0};
    enum weft_status status = weft_schedule(problem, NULL, &options, &plan, NULL, &err);
    cr_assert(status == WEFT_OK || strstr(err.text, "above the limit") != NULL ||
                  strstr(err.text, "no plan fits") != NULL ||
                  strstr(err.text, "which it may not have") != NULL,
              "%s: %s", name, err.text);
    return plan;
}

/* The program holds the planned bytes and takes the planned time. */
static void check_program(struct tiers_case *c)
{
    struct weft_error err = {0};
    c->program = random_program(&c->random, c->plan);
    tiers_case_check(c);
    cr_assert_eq(weft_program_verify(c->program, INT64_MAX, &err), WEFT_OK, "%s, seed %d: %s",
                 c->plan->planner, (int)c->random.seed, err.text);
    weft_program_destroy(c->program);
}

/* Without a limit, then at the peak of that plan, then a little below. */
static int check_rule(struct tiers_case *c, const char *name)
{
    struct weft_problem *problem = c->random.stages.problem;
    int n = 0;
    problem->tiers[0].limit_bytes = INT64_MAX;
    for (int i = 0; i < 3; i++) {
        c->plan = plan_offloaded(problem, name);
        if (c->plan == NULL) break;
        n++;
        check_program(c);
        problem->tiers[0].limit_bytes =
            i == 0 ? c->plan->prediction.peak_bytes : problem->tiers[0].limit_bytes * 31 / 32;
        weft_plan_destroy(c->plan);
    }
    return n;
}

Test(locations, what_rules_plan_is_what_a_program_does, .timeout = 300)
{
    for (const struct weft_planner *rule = weft_planners(); rule->name; rule++) {
        int n = 0;
        if (rule->locations == 0 || rule->fixed != NULL || rule->turns)
            continue; /* cached.c has fcdp, and turns.c rules of turns */
        for (uint64_t seed = 1; seed <= TEST_CASES(60, 20); seed++) {
            struct tiers_case c = {0};
            random_case_init_tiers(&c.random, seed);
            const struct weft_setting *setting = rule->settings;
            do {
                char name[64];
                snprintf(name, sizeof name, "%s%s%s", rule->name, setting ? ":" : "",
                         setting ? setting->name : "");
                n += check_rule(&c, name);
            } while (setting && (++setting)->name);
            random_case_finish(&c.random);
        }
        cr_assert_gt(n, TEST_CASES(60, 20), "%s", rule->name);
    }
}

/* When the first slot that reads a unit is over, and the last copy up of all units but the one that
 * comes up last. */
static void time_first_use(const struct weft_plan *plan, int64_t *use_ns, int64_t *up_ns)
{
    const struct weft_problem *problem = plan->problem;
    const size_t n_slots = (size_t)problem->n_slots, n = (size_t)plan->n_placements;
    int64_t *words = calloc(weft_simulate_words(problem) + n_slots + 2 * n, sizeof *words);
    cr_assert_not_null(words);
    struct weft_plan_times times = {words, words + n_slots, words + n_slots + n};
    weft_simulate_plan_times(plan, words + n_slots + 2 * n, &times);
    int32_t use = problem->n_slots, last = -1;
    *up_ns = 0;
    for (int32_t k = 0; k < plan->n_placements; k++) {
        const struct weft_item *item = &problem->items[plan->placements[k].item].item;
        if (item->kind == WEFT_ALL_GATHER && item->last + 1 < use) use = item->last + 1;
        if (item->kind == WEFT_PARAMETERS_UP) last = item->decision;
    }
    for (int32_t k = 0; k < plan->n_placements; k++) {
        const struct weft_item *item = &problem->items[plan->placements[k].item].item;
        const bool counts = item->kind == WEFT_PARAMETERS_UP && item->decision != last;
        if (counts && times.end_ns[k] > *up_ns) *up_ns = times.end_ns[k];
    }
    *use_ns = times.slot_start_ns[use + 1];
    free(words);
}

/* With clipping all updates may stand before forward, and do. */
Test(locations, forward_waits_for_all_that_the_host_updates)
{
    static const char *const rules[] = {"zero-offload", "zero-offload:stage-3", "twin-flow",
                                        "twin-flow:stage-2", "fsdp2-cpu-offload"};
    int n = 0;
    for (uint64_t seed = 1; seed <= TEST_CASES(120, 40); seed++) {
        struct random_case random;
        random_case_init_tiers(&random, seed);
        random.stages.problem->tiers[0].limit_bytes = INT64_MAX;
        for (size_t r = 0; r < sizeof rules / sizeof *rules; r++) {
            int64_t use_ns, up_ns;
            if (random.stages.problem->period.rotated) continue;
            struct weft_plan *plan = plan_offloaded(random.stages.problem, rules[r]);
            if (plan == NULL) continue;
            n++;
            time_first_use(plan, &use_ns, &up_ns);
            cr_assert_geq(use_ns, up_ns, "%s, seed %d: %lld, %lld", rules[r], (int)seed,
                          (long long)use_ns, (long long)up_ns);
            weft_plan_destroy(plan);
        }
        random_case_finish(&random);
    }
    cr_assert_gt(n, TEST_CASES(100, 30), "%d", n);
}
