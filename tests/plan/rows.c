/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/plan.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "plan/placement.h"
#include "tests/problem/small_problem.h"
#include "tests/program/random_model.h"

enum { ROWS_CASES = 100 };

static struct weft_plan *plan_of_rows(const struct weft_problem *problem)
{
    static const int32_t strategies[] = {IS_SDP, IS_SDP};
    static const struct weft_move moves[] = {{A_GATHER, 2, 0}, {A_GATHER, 2, 0}, {B_GATHER, 3, 0},
                                             {B_GATHER, 3, 0}, {B_REDUCE, 6, 0}, {B_REDUCE, 6, 0},
                                             {A_REDUCE, 7, 0}, {A_REDUCE, 7, 0}};
    struct weft_plan *plan = NULL;
    struct weft_error err = {0};
    enum weft_status status = weft_plan_create(problem, "test", strategies, moves, 8, &plan, &err);
    cr_assert_eq(status, WEFT_OK, "%s", err.text);
    return plan;
}

Test(rows, by_hand)
{
    struct weft_problem problem = small_problem();
    struct weft_plan *plan = plan_of_rows(&problem);
    int64_t rows[N_SMALL_SLOTS * WEFT_CATEGORY_COUNT];
    /*                                    U:a  U:b  fill F:a  F:b  B:b  B:a  drain norm */
    static const int64_t gathered[] = {0, 0, 200, 400, 400, 400, 200, 0, 0};
    static const int64_t full[] = {0, 0, 0, 0, 0, 200, 400, 200, 0};
    static const int64_t sharded[] = {200, 100, 0, 0, 0, 0, 100, 200, 200};
    weft_plan_rows(plan, 0, rows);
    for (int s = 0; s < N_SMALL_SLOTS; s++) {
        const int64_t *row = &rows[s * WEFT_CATEGORY_COUNT];
        cr_assert_eq(row[WEFT_CATEGORY_BASE], 1000);
        cr_assert_eq(row[WEFT_CATEGORY_GATHERED_PARAMETERS], gathered[s], "slot %d", s);
        cr_assert_eq(row[WEFT_CATEGORY_FULL_GRADIENTS], full[s], "slot %d", s);
        cr_assert_eq(row[WEFT_CATEGORY_SHARDED_GRADIENTS], sharded[s], "slot %d", s);
        cr_assert_eq(row[WEFT_CATEGORY_ACTIVATIONS], 0);
    }
    int32_t slot = -1;
    cr_assert_eq(weft_plan_peak(plan, 0, &slot), 1700);
    cr_assert_eq(slot, 6);
    weft_plan_destroy(plan);
}

/* With 1700 bytes b's gathers may start in slot 2 (1200 to 1400). Its reductions would add 200 to
 * the 1400 of slot 7 and may end there. a's gathers may start in slot 1. */
Test(rows, relax_uses_what_is_free)
{
    struct weft_problem problem = small_problem();
    struct weft_plan *plan = plan_of_rows(&problem);
    struct weft_error err = {0};
    cr_assert_eq(weft_plan_relax(plan, 1700, &err), WEFT_OK);
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(plan->placements[i].launch, 1);
        cr_assert_eq(plan->placements[2 + i].launch, 2);
        cr_assert_eq(plan->placements[4 + i].deadline, 8);
        cr_assert_eq(plan->placements[6 + i].deadline, 8);
    }
    cr_assert_eq(weft_plan_peak(plan, 0, NULL), 1700);
    weft_plan_destroy(plan);
}

Test(rows, relax_stays_within_the_limit)
{
    struct weft_problem problem = small_problem();
    struct weft_plan *plan = plan_of_rows(&problem);
    struct weft_error err = {0};
    /* Slot 2 holds 1200: one block of b fits under 1300. Slots 1 (1100) takes two of a. */
    cr_assert_eq(weft_plan_relax(plan, 1300, &err), WEFT_OK);
    cr_assert_eq(plan->placements[0].launch, 1);
    cr_assert_eq(plan->placements[1].launch, 1);
    cr_assert_eq(plan->placements[2].launch, 2);
    cr_assert_eq(plan->placements[3].launch, 3);
    cr_assert_eq(plan->placements[4].deadline, 7, "slot 7 holds 1400");
    cr_assert_eq(weft_plan_peak(plan, 0, NULL), 1700, "what was above the limit stays");
    weft_plan_destroy(plan);
}

/* b's reduction fills slot 5 while a's gather blocks there. Launched earlier, a's gather makes the
 * reduction due a slot sooner, and b's gather takes the bytes that it held. */
Test(rows, relax_uses_what_its_own_moves_free)
{
    static const int32_t strategies[] = {IS_SDP, IS_SDP};
    static const struct weft_move moves[] = {
        {B_REDUCE, 5, 0}, {A_GATHER, 5, 0}, {B_GATHER, 6, 0}, {A_REDUCE, 7, 0}};
    struct weft_problem problem = small_problem();
    struct weft_plan *plan = NULL;
    struct weft_error err = {0};
    problem.items[A_GATHER] = small_item(0, WEFT_ALL_GATHER, SDP, 1, 4, 100);
    problem.items[B_GATHER] = small_item(1, WEFT_ALL_GATHER, SDP, 2, 6, 100);
    problem.items[B_REDUCE] = small_item(1, WEFT_REDUCE_SCATTER, SDP, 4, 7, 100);
    for (int i = 0; i < 4; i++)
        problem.items[moves[i].item].item.n_blocks = 1;
    cr_assert_eq(weft_plan_create(&problem, "test", strategies, moves, 4, &plan, &err), WEFT_OK,
                 "%s", err.text);
    cr_assert(weft_placement_blocks(&plan->placements[1]));
    cr_assert_eq(plan->placements[0].deadline, 6);
    cr_assert_eq(weft_plan_peak(plan, 0, NULL), 1700);
    cr_assert_eq(weft_plan_relax(plan, 1700, &err), WEFT_OK);
    cr_assert_eq(plan->placements[0].deadline, 5);
    cr_assert_eq(plan->placements[1].launch, 4);
    cr_assert_eq(plan->placements[2].launch, 4, "slots 4 and 5 have room for it");
    cr_assert_eq(weft_plan_peak(plan, 0, NULL), 1700);
    weft_plan_destroy(plan);
}

/* The limit of each tier equal to its need, and a byte below. */
Test(rows, every_tier_is_held_to_its_own_limit)
{
    static const char *const names[] = {"device", "host", "disk"};
    struct weft_hold common[] = {{WEFT_CATEGORY_BASE, 0, N_SMALL_SLOTS - 1, 1000, 0},
                                 {WEFT_CATEGORY_OPTIMIZER_STATE, 0, N_SMALL_SLOTS - 1, 300, 1},
                                 {WEFT_CATEGORY_ACTIVATIONS, 4, 5, 50, 1},
                                 {WEFT_CATEGORY_OPTIMIZER_STATE, 3, 3, 40, 2}};
    struct weft_problem problem = small_problem();
    problem.common = common;
    problem.n_common = 4;
    problem.n_tiers = 3;
    for (int t = 0; t < 3; t++)
        problem.tiers[t] = (struct weft_problem_tier){names[t], (enum weft_location)t, INT64_MAX};
    struct weft_plan *plan = plan_of_rows(&problem);
    static const int64_t held[] = {1700, 350, 40};
    for (int32_t t = 0; t < 3; t++) {
        struct weft_error err = {0};
        cr_assert_eq(weft_plan_peak(plan, t, NULL), held[t]);
        problem.tiers[t].limit_bytes = held[t];
        cr_assert_eq(weft_plan_check_rows(plan, "it", &err), WEFT_OK, "%s", err.text);
        problem.tiers[t].limit_bytes = held[t] - 1;
        cr_assert_eq(weft_plan_check_rows(plan, "it", &err), WEFT_E_DATA, "%s", names[t]);
        cr_assert(t == 0 || strstr(err.text, names[t]) != NULL, "%s", err.text);
        problem.tiers[t].limit_bytes = INT64_MAX;
    }
    int32_t slot = -1;
    (void)weft_plan_peak(plan, 1, &slot);
    cr_assert_eq(slot, 4, "slots 4 and 5 hold as much, and the first is named: %d", slot);
    weft_plan_destroy(plan);
}

/* Blocks that another tier holds have that tier's room, and no other. */
Test(rows, relax_stays_within_the_limit_of_the_tier_that_holds_a_block)
{
    static const int64_t rooms[] = {0, 100, 200};
    for (int i = 0; i < 3; i++) {
        struct weft_problem problem = small_problem();
        struct weft_problem_item items[N_SMALL_ITEMS];
        struct weft_error err = {0};
        memcpy(items, problem.items, sizeof items);
        items[A_GATHER].item.stair_tier = 1;
        problem.items = items;
        problem.n_tiers = 2;
        problem.tiers[1] = (struct weft_problem_tier){"host", WEFT_LOCATION_HOST, rooms[i]};
        struct weft_plan *plan = plan_of_rows(&problem);
        cr_assert_eq(weft_plan_relax(plan, INT64_MAX / 2, &err), WEFT_OK);
        /* Both come for slot 3, and may be launched from slot 1 on. */
        cr_assert_eq(plan->placements[0].launch, rooms[i] > 0 ? 1 : 2, "room %d", i);
        cr_assert_eq(plan->placements[1].launch, rooms[i] > 100 ? 1 : 2, "room %d", i);
        weft_plan_destroy(plan);
    }
}

static void check_slots(const struct weft_plan *plan, const int64_t *before, int64_t limit_bytes)
{
    int32_t n_slots = plan->problem->n_slots;
    int64_t *rows = calloc((size_t)n_slots * WEFT_CATEGORY_COUNT, sizeof *rows);
    weft_plan_rows(plan, 0, rows);
    for (int32_t s = 0; s < n_slots; s++) {
        int64_t total = 0, old = 0;
        for (int32_t c = 0; c < WEFT_CATEGORY_COUNT; c++) {
            total += rows[s * WEFT_CATEGORY_COUNT + c];
            old += before[s * WEFT_CATEGORY_COUNT + c];
        }
        cr_assert(total <= limit_bytes || total <= old);
    }
    free(rows);
}

/* Nothing that could move further alone is left. */
static void check_maximal(const struct weft_plan *plan, int64_t limit_bytes)
{
    int32_t n_slots = plan->problem->n_slots;
    int64_t *rows = calloc((size_t)n_slots * WEFT_CATEGORY_COUNT, sizeof *rows);
    weft_plan_rows(plan, 0, rows);
    int32_t launched = 0;
    for (int32_t i = 0; i < plan->n_placements; i++) {
        struct weft_placement at = plan->placements[i];
        const struct weft_item *item = &plan->problem->items[at.item].item;
        if (item->acquires && at.launch > item->first && at.launch > launched) {
            int64_t total = item->stair_bytes;
            for (int32_t c = 0; c < WEFT_CATEGORY_COUNT; c++)
                total += rows[(at.launch - 1) * WEFT_CATEGORY_COUNT + c];
            cr_assert_gt(total, limit_bytes, "placement %d may be launched earlier", i);
        }
        if (at.launch > launched) launched = at.launch;
    }
    free(rows);
}

Test(rows, relax_of_random_plans)
{
    for (uint64_t seed = 0; seed < ROWS_CASES; seed++) {
        struct random_case random;
        struct weft_error err = {0};
        random_case_init(&random, seed);
        struct weft_plan *plan = random_plan(&random, 3);
        size_t n = (size_t)plan->problem->n_slots * WEFT_CATEGORY_COUNT;
        int64_t *before = calloc(n, sizeof *before);
        weft_plan_rows(plan, 0, before);
        int64_t limit_bytes = weft_plan_peak(plan, 0, NULL) * (90 + (int64_t)seed % 15) / 100;
        cr_assert_eq(weft_plan_relax(plan, limit_bytes, &err), WEFT_OK);
        cr_assert_eq(weft_placements_check(plan->problem, plan->strategies, plan->placements,
                                           plan->n_placements, "relaxed", &err),
                     WEFT_OK, "%s", err.text);
        check_slots(plan, before, limit_bytes);
        check_maximal(plan, limit_bytes);
        free(before);
        weft_plan_destroy(plan);
        random_case_finish(&random);
    }
}
