/* SPDX-License-Identifier: Apache-2.0 */
/* Rules for micro-steps that take turns by groups of layers. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "problem/stages.h"
#include "scheduler/planners/table.h"
#include "scheduler/schedule.h"
#include "tests/effort.h"
#include "tests/program/random_model.h"

/* Writes collectives in lane order: "h.1@F1:h.0" for a gather with its launch, and
 * "h.1@B1:h.0>drain" for a reduction that is complete before drain. */
static void write_collectives(const struct weft_plan *plan, char *text, size_t room)
{
    const struct weft_problem *problem = plan->problem;
    size_t n = 0;
    text[0] = '\0';
    for (int32_t k = 0; k < plan->n_placements; k++) {
        const struct weft_placement *at = &plan->placements[k];
        const struct weft_item *item = &problem->items[at->item].item;
        if (!weft_item_is_collective(item)) continue;
        n += (size_t)snprintf(text + n, room - n, "%s%s@%s", n > 0 ? " " : "",
                              problem->decisions[item->decision].name,
                              problem->slot_names[at->launch]);
        if (!item->acquires)
            n += (size_t)snprintf(text + n, room - n, ">%s", problem->slot_names[at->deadline]);
    }
}

static void stage_order(struct random_case *random, int64_t order)
{
    struct weft_variant variants[WEFT_MOST_VARIANTS];
    struct weft_error err = {0};
    struct weft_train *train = &random->config->train;
    random->config->plan.micro_step_order = order;
    random->config->plan.fuse = false;
    train->grad_accum = train->asked.grad_accum = 2;
    train->cadence = WEFT_CADENCE_STEP;
    weft_stages_finish(&random->stages);
    cr_assert_geq(weft_variants_list(random->config, variants), 1);
    cr_assert_eq(weft_stages_create_variant(random->config, random->profile, &variants[0],
                                            &random->stages, &err),
                 WEFT_OK, "%s", err.text);
}

/* Layers wte h.0 | h.1 h.2 | h.3 ln_f | head. The first group is gathered when its forward begins.
 * Each later group is gathered when the pass before it begins. The group before the last one stays
 * gathered over the turn. A group's gradients are reduced after its pass, within the next one. */
Test(turns, breadth_first_gathers_a_group_ahead)
{
    struct random_case random;
    struct weft_plan *plan = NULL;
    struct weft_error err = {0};
    char text[2048];
    const struct weft_schedule_options options = {.planner = "breadth-first:2", .draft = true};
    random_case_read(&random, "configs/runs/gpt-tiny.json");
    stage_order(&random, 2);
    cr_assert_eq(weft_schedule(random.stages.problem, NULL, &options, &plan, NULL, &err), WEFT_OK,
                 "%s", err.text);
    write_collectives(plan, text, sizeof text);
    cr_assert_str_eq(text,
                     "wte.tokens@F1:wte wte@F1:wte h.0@F1:wte h.1@F1:wte h.2@F1:wte h.3@F1:h.1 "
                     "ln_f@F1:h.1 wte.tokens@F1:h.3 h.2@B1:ln_f h.1@B1:ln_f ln_f@B1:h.2>B1:h.0 "
                     "h.3@B1:h.2>B1:h.0 h.0@B1:h.2 h.2@B1:h.0>drain h.1@B1:h.0>drain "
                     "h.0@drain>norm wte@drain>norm wte.tokens@drain>norm",
                     "%s", text);
    weft_plan_destroy(plan);
    random_case_finish(&random);
}

/* A rule of turns is refused in the other order, and with other groups, by the key. */
Test(turns, rules_name_the_key_of_another_order)
{
    static const char *const names[] = {"breadth-first:3", "breadth-first", "greedysnake"};
    struct random_case random;
    random_case_read(&random, "configs/runs/gpt-tiny.json");
    for (int i = 0; i < 6; i++) {
        const char *name = names[i / 2];
        struct weft_plan *plan = NULL;
        struct weft_error err = {0};
        const struct weft_schedule_options options = {.planner = name, .draft = true};
        stage_order(&random, i % 2 == 0 ? 0 : 2);
        const enum weft_status status =
            weft_schedule(random.stages.problem, NULL, &options, &plan, NULL, &err);
        if (i == 3) { /* any number of layers */
            cr_assert_eq(status, WEFT_OK, "%s", err.text);
            weft_plan_destroy(plan);
            continue;
        }
        cr_assert_eq(status, WEFT_E_DATA, "%s", name);
        cr_assert_not_null(strstr(err.text, "plan.micro_step_order"), "%s", err.text);
    }
    random_case_finish(&random);
}

/* Bytes and times of the program are those of the plan. */
static void check_program(struct tiers_case *c)
{
    struct weft_error err = {0};
    c->program = random_program(&c->random, c->plan);
    tiers_case_check(c);
    cr_assert_eq(weft_program_verify(c->program, INT64_MAX, &err), WEFT_OK, "%s, seed %d: %s",
                 c->plan->planner, (int)c->random.seed, err.text);
    weft_program_destroy(c->program);
}

/* Whether the rule applies to the case; ilp is not slower then. */
static bool check_rule(struct tiers_case *c, const char *name)
{
    struct weft_problem *problem = c->random.stages.problem;
    struct weft_work work = {0};
    const struct weft_schedule_options rule = {.planner = name, .draft = true};
    const struct weft_schedule_options options = {.planner = "ilp",
                                                  .budget = weft_budget_of(&work, 1)};
    struct weft_plan *best = NULL;
    struct weft_error err = {0};
    problem->tiers[0].limit_bytes = INT64_MAX;
    const enum weft_status status =
        weft_schedule(problem, &c->random.inputs, &rule, &c->plan, NULL, &err);
    if (status != WEFT_OK) {
        const bool why = strstr(err.text, "which it may not have") != NULL ||
                         strstr(err.text, "plan.micro_step_order") != NULL ||
                         strstr(err.text, "above the limit") != NULL ||
                         strstr(err.text, "no plan fits") != NULL;
        cr_assert(why, "%s: %s", name, err.text);
        return false;
    }
    check_program(c);
    cr_assert_eq(weft_schedule(problem, &c->random.inputs, &options, &best, NULL, &err), WEFT_OK,
                 "%s", err.text);
    cr_assert_leq(best->prediction.step_ns, c->plan->prediction.step_ns, "%s, seed %d", name,
                  (int)c->random.seed);
    weft_plan_destroy(best);
    weft_plan_destroy(c->plan);
    return true;
}

Test(turns, rules_do_as_they_plan_and_are_no_faster_than_ilp, .timeout = 300)
{
    int n = 0;
    for (uint64_t seed = 1; seed <= TEST_CASES(120, 40); seed++) {
        struct tiers_case c = {0};
        random_case_init_turns(&c.random, seed);
        for (const struct weft_planner *rule = weft_planners(); rule->name; rule++) {
            const struct weft_setting *setting = rule->settings;
            for (; rule->turns && setting->name; setting++) {
                char name[64];
                snprintf(name, sizeof name, "%s:%s", rule->name, setting->name);
                n += check_rule(&c, name);
            }
        }
        random_case_finish(&c.random);
    }
    cr_assert_gt(n, 20);
}
