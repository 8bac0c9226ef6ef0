/* SPDX-License-Identifier: Apache-2.0 */
#include "program/program.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "program/lifetime.h"
#include "tests/program/random_model.h"

enum { LOWER_CASES = 150, LOWER_PLANS = 4 };

/* Figure 1(a): the planner's bytes of a slot equal the bytes live in it by happens-before. */
static void check_rows_lower(const struct random_case *random, const struct weft_plan *plan,
                             const struct weft_program *program)
{
    size_t n = (size_t)plan->problem->n_slots * WEFT_CATEGORY_COUNT;
    int64_t *rows = calloc(n, sizeof *rows), *live = calloc(n, sizeof *live);
    weft_plan_rows(plan, 0, rows);
    weft_program_live(program, live);
    for (size_t i = 0; i < n; i++) {
        cr_assert_eq(rows[i], live[i], "seed %d, slot %d (%s), %s: planned %lld, live %lld",
                     (int)random->seed, (int)(i / WEFT_CATEGORY_COUNT),
                     plan->problem->slot_names[i / WEFT_CATEGORY_COUNT],
                     weft_category_key((enum weft_category)(i % WEFT_CATEGORY_COUNT)),
                     (long long)rows[i], (long long)live[i]);
    }
    cr_assert_eq(program->live_bytes + program->base_bytes, weft_plan_peak(plan, 0, NULL));
    free(rows);
    free(live);
}

Test(lower, rows_are_lives)
{
    for (uint64_t seed = 0; seed < LOWER_CASES; seed++) {
        struct random_case random;
        random_case_init(&random, seed);
        for (uint64_t p = 0; p < LOWER_PLANS; p++) {
            struct weft_plan *plan = random_plan(&random, p);
            struct weft_program *program = random_program(&random, plan);
            check_rows_lower(&random, plan, program);
            weft_program_destroy(program);
            weft_plan_destroy(plan);
        }
        random_case_finish(&random);
    }
}

/* A decision's bytes are independent of other decisions: for two neighbours, live bytes equal the
 * held bytes under any of their strategies. */
static int32_t check_neighbours(const struct random_case *random, int32_t u, int32_t *strategies)
{
    const struct weft_problem *problem = random->stages.problem;
    const struct weft_problem_decision *a = &problem->decisions[u], *b = a + 1;
    int32_t kept[2] = {strategies[u], strategies[u + 1]};
    for (int32_t i = 0; i < a->n_strategies * b->n_strategies; i++) {
        strategies[u] = i / b->n_strategies;
        strategies[u + 1] = i % b->n_strategies;
        struct weft_plan *plan = random_placements(random, strategies, (uint64_t)i);
        struct weft_program *program = random_program(random, plan);
        check_rows_lower(random, plan, program);
        weft_program_destroy(program);
        weft_plan_destroy(plan);
    }
    strategies[u] = kept[0];
    strategies[u + 1] = kept[1];
    return a->n_strategies * b->n_strategies;
}

Test(lower, rows_are_lives_for_every_pair_of_neighbours_strategies)
{
    int32_t n_pairs = 0;
    for (uint64_t seed = 0; seed < LOWER_CASES / 3; seed++) {
        struct random_case random;
        random_case_init(&random, seed);
        struct weft_plan *plan = random_plan(&random, 0);
        size_t n = (size_t)plan->problem->n_decisions;
        int32_t *strategies = calloc(n + 1, sizeof *strategies);
        cr_assert_not_null(strategies);
        memcpy(strategies, plan->strategies, n * sizeof *strategies);
        weft_plan_destroy(plan);
        for (int32_t u = 0; u + 1 < random.stages.problem->n_decisions; u++)
            n_pairs += check_neighbours(&random, u, strategies);
        free(strategies);
        random_case_finish(&random);
    }
    cr_assert_gt(n_pairs, 1000, "%d pairs", n_pairs);
}

Test(lower, rows_are_lives_when_relaxed)
{
    for (uint64_t seed = 0; seed < LOWER_CASES; seed++) {
        struct random_case random;
        struct weft_error err = {0};
        random_case_init(&random, seed);
        struct weft_plan *plan = random_plan(&random, 0);
        int64_t limit_bytes = weft_plan_peak(plan, 0, NULL);
        cr_assert_eq(weft_plan_relax(plan, limit_bytes, &err), WEFT_OK);
        struct weft_program *program = random_program(&random, plan);
        check_rows_lower(&random, plan, program);
        weft_program_destroy(program);
        weft_plan_destroy(plan);
        random_case_finish(&random);
    }
}

/* A lane's instructions are the placements, in order. */
Test(lower, order_of_a_lane_is_placement_order)
{
    for (uint64_t seed = 0; seed < LOWER_CASES; seed++) {
        struct random_case random;
        random_case_init(&random, seed);
        struct weft_plan *plan = random_plan(&random, 7);
        struct weft_program *program = random_program(&random, plan);
        int32_t next[WEFT_MOST_LANES] = {0}, n = 0;
        for (int32_t i = 0; i < program->n_instructions; i++) {
            const struct weft_instruction *at = &program->instructions[i];
            if (weft_op_stream(at->op) == WEFT_STREAM_COMPUTE || at->op == WEFT_OP_AGREE) continue;
            const struct weft_placement *placement = &plan->placements[next[at->lane]++];
            while (plan->problem->items[placement->item].lane != at->lane)
                placement = &plan->placements[next[at->lane]++];
            n++;
            cr_assert_eq(at->item, placement->item);
            cr_assert_eq(at->block, placement->block);
            const struct weft_item *item = &plan->problem->items[placement->item].item;
            bool gathers = item->acquires;
            cr_assert_eq(at->slot, gathers ? placement->launch : item->first);
            int32_t last = program->dependencies[at->first_dependency + at->n_dependencies - 1];
            cr_assert_eq(program->instructions[last].op, WEFT_OP_MARK);
            cr_assert_eq(program->instructions[last].slot, placement->launch);
        }
        cr_assert_eq(n, plan->n_placements);
        weft_program_destroy(program);
        weft_plan_destroy(plan);
        random_case_finish(&random);
    }
}

Test(lower, refuses_stages_of_another_model)
{
    struct random_case one, other;
    struct weft_error err = {0};
    struct weft_program *program = NULL;
    uint64_t seed = 2;
    random_case_init(&one, 1);
    do
        random_case_init(&other, seed++);
    while (other.stages.period->n_slots == one.stages.period->n_slots);
    struct weft_plan *plan = random_plan(&one, 0);
    cr_assert_eq(weft_program_lower(plan, &other.inputs, &program, &err), WEFT_E_DATA);
    cr_assert(strstr(err.text, "do not belong together") != NULL, "%s", err.text);
    cr_assert_null(program);
    weft_plan_destroy(plan);
    random_case_finish(&one);
    random_case_finish(&other);
}

static void check_other_periods(uint64_t seed)
{
    struct random_case random;
    random_case_init(&random, seed);
    struct weft_plan *plan = random_plan(&random, 0);
    struct weft_period_rule *rule = &random.stages.problem->period, before = *rule;
    struct weft_program *program = random_program(&random, plan);
    weft_program_destroy(program);
    for (int which = 0; which < 3; which++) {
        struct weft_error err = {0};
        if (which == 0) rule->group = before.group == 1 ? before.n_micro + 1 : 1;
        if (which == 1) rule->rotated = !before.rotated;
        if (which == 2) rule->agreed_updates = !before.agreed_updates;
        cr_assert_eq(weft_program_lower(plan, &random.inputs, &program, &err), WEFT_E_DATA);
        cr_assert(strstr(err.text, "do not belong together") != NULL, "%s", err.text);
        *rule = before;
    }
    weft_plan_destroy(plan);
    random_case_finish(&random);
}

Test(lower, refuses_another_period)
{
    for (uint64_t seed = 0; seed < 20; seed++)
        check_other_periods(seed);
}

/* Kept pages are taken as they are; a wrong one is found by verify, or refused at once. */
Test(lower, kept_pages_are_taken_and_checked)
{
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct random_case random;
        struct weft_error err = {0};
        random_case_init(&random, seed);
        struct weft_plan *plan = random_plan(&random, 7);
        struct weft_program *first = random_program(&random, plan);
        cr_assert_eq(weft_paging_list(first->paging, &plan->pool, &plan->pages, &err), WEFT_OK);
        struct weft_program *second = random_program(&random, plan);
        cr_assert_eq(second->arena_bytes, first->arena_bytes);
        cr_assert_eq(second->live_bytes, first->live_bytes);
        cr_assert_eq(second->paging->row_pages, first->paging->row_pages);
        cr_assert_eq(second->paging->span_bytes, first->paging->span_bytes);
        for (int32_t b = 0; b < first->n_buffers; b++) {
            for (int32_t t = 0; t < WEFT_PAGE_TABLES; t++)
                cr_assert_eq(weft_program_offset(second, b, t), weft_program_offset(first, b, t));
        }
        cr_assert_eq(weft_program_verify(second, INT64_MAX, &err), WEFT_OK, "%s", err.text);
        weft_program_destroy(second);

        /* The residents' pages are held all step. */
        struct weft_page_stretch *last =
            (struct weft_page_stretch *)&plan->pages.stretches[first->paging->n_stretches - 1];
        last->first = 0;
        second = random_program(&random, plan);
        cr_assert_eq(weft_program_verify(second, INT64_MAX, &err), WEFT_E_DATA);
        weft_program_destroy(second);

        second = NULL;
        err = (struct weft_error){0};
        plan->pages.n_lists--;
        cr_assert_eq(weft_program_lower(plan, &random.inputs, &second, &err), WEFT_E_DATA);
        cr_assert(strstr(err.text, "plan again") != NULL, "%s", err.text);
        cr_assert_null(second);
        weft_program_destroy(first);
        weft_plan_destroy(plan);
        random_case_finish(&random);
    }
}
