/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/planners/fixed.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/planners/table.h"
#include "tests/scheduler/tiny.h"

struct decision {
    struct weft_problem *problem;
    int32_t strategies[8];
    struct weft_move moves[200];
    struct weft_candidate candidate;
};

static enum weft_status decide(struct decision *d, const char *planner, uint32_t policies,
                               int64_t limit_bytes, struct weft_error *err)
{
    struct tiny_shape shape = {.n_units = 4, .most_blocks = 3, .policies = policies, .load = 0.5};
    struct weft_outcome outcome = {0};
    struct weft_schedule_options options = {0};
    d->problem = tiny_problem(&shape, 9);
    d->problem->tiers[0].limit_bytes = limit_bytes;
    d->candidate = (struct weft_candidate){.strategies = d->strategies, .moves = d->moves};
    return weft_planner_decide(weft_planner_find(planner, NULL), d->problem, &options,
                               &d->candidate, &outcome, err);
}

static enum weft_policy policy_of(const struct decision *d, int32_t unit)
{
    return weft_problem_chosen(d->problem, d->strategies, unit)->policy;
}

/* Every block that the policies need once, and launches in channel order. */
static void check_moves(const struct decision *d)
{
    int32_t n[20] = {0}, launched = 0;
    for (int32_t k = 0; k < d->candidate.n_moves; k++) {
        const struct weft_item *item = &d->problem->items[d->moves[k].item].item;
        int32_t launch = item->acquires ? d->moves[k].slot : item->first;
        cr_assert_geq(launch, launched);
        launched = launch;
        n[d->moves[k].item]++;
    }
    for (int32_t i = 0; i < d->problem->n_items; i++) {
        const struct weft_item *item = &d->problem->items[i].item;
        cr_assert_eq(n[i], weft_item_active(item, d->strategies) ? item->n_blocks : 0);
    }
}

Test(fixed, all_fsdp_gathers_one_use_ahead_and_reduces_at_once)
{
    struct decision d = {0};
    cr_assert_eq(decide(&d, "all-fsdp", 15, INT64_MAX, NULL), WEFT_OK);
    check_moves(&d);
    for (int u = 0; u < 3; u++)
        cr_assert_eq(policy_of(&d, u), WEFT_POLICY_FSDP);
    cr_assert_eq(policy_of(&d, 3), WEFT_POLICY_SDP, "the last unit is never released");
    for (int32_t k = 0; k < d.candidate.n_moves; k++) {
        const struct weft_item *item = &d.problem->items[d.moves[k].item].item;
        bool gathers = item->acquires;
        cr_assert_eq(d.moves[k].slot, gathers ? item->last : item->first);
    }
    weft_problem_destroy(d.problem);
}

Test(fixed, all_sdp_gathers_after_the_update)
{
    struct decision d = {0};
    cr_assert_eq(decide(&d, "all-sdp", 15, INT64_MAX, NULL), WEFT_OK);
    check_moves(&d);
    for (int32_t k = 0; k < d.candidate.n_moves; k++) {
        const struct weft_item *item = &d.problem->items[d.moves[k].item].item;
        cr_assert_eq(policy_of(&d, item->decision), WEFT_POLICY_SDP);
        cr_assert_eq(d.moves[k].slot, item->first);
    }
    weft_problem_destroy(d.problem);
}

Test(fixed, all_dp_only_reduces)
{
    struct decision d = {0};
    cr_assert_eq(decide(&d, "all-dp", 15, INT64_MAX, NULL), WEFT_OK);
    check_moves(&d);
    for (int32_t k = 0; k < d.candidate.n_moves; k++)
        cr_assert_eq(d.problem->items[d.moves[k].item].item.kind, WEFT_ALL_REDUCE);
    weft_problem_destroy(d.problem);
}

Test(fixed, refuses_what_is_not_allowed_by_name)
{
    struct decision d = {0};
    struct weft_error err = {0};
    cr_assert_eq(decide(&d, "all-dp", 1 << WEFT_POLICY_SDP, INT64_MAX, &err), WEFT_E_INFEASIBLE);
    cr_assert_not_null(strstr(err.text, "planner all-dp: its rule gives unit unit0 the policy dp"),
                       "%s", err.text);
    weft_problem_destroy(d.problem);
}

Test(fixed, refuses_one_byte_below_what_it_needs)
{
    struct decision d = {0};
    cr_assert_eq(decide(&d, "all-sdp", 15, INT64_MAX, NULL), WEFT_OK);
    struct weft_plan *plan = NULL;
    cr_assert_eq(weft_plan_create(d.problem, "all-sdp", d.strategies, d.moves, d.candidate.n_moves,
                                  &plan, NULL),
                 WEFT_OK);
    int32_t slot = 0;
    int64_t peak = weft_plan_peak(plan, 0, &slot);
    weft_plan_destroy(plan);
    weft_problem_destroy(d.problem);
    cr_assert_eq(decide(&d, "all-sdp", 15, peak, NULL), WEFT_OK);
    weft_problem_destroy(d.problem);
    struct weft_error err = {0};
    cr_assert_eq(decide(&d, "all-sdp", 15, peak - 1, &err), WEFT_E_INFEASIBLE);
    cr_assert_not_null(strstr(err.text, d.problem->slot_names[slot]), "%s", err.text);
    weft_problem_destroy(d.problem);
}

/* A blocking gather holds nothing before its slot: the least of these policies. */
Test(fixed, blocking_gathers_hold_the_least)
{
    struct decision d = {0};
    struct weft_digest *table = NULL;
    cr_assert_eq(decide(&d, "all-fsdp", 15, INT64_MAX, NULL), WEFT_OK);
    cr_assert_eq(weft_digest_create(d.problem, &table, NULL), WEFT_OK);
    int64_t lean[100], rows[100];
    cr_assert_leq(table->n_slots, 100);
    (void)weft_digest_lean_rows(table, d.strategies, lean, NULL);
    weft_fixed_place(d.problem, WEFT_GATHER_BLOCKING, &d.candidate);
    check_moves(&d);
    weft_digest_move_rows(table, d.strategies, d.moves, d.candidate.n_moves, rows);
    for (int32_t s = 0; s < table->n_slots; s++)
        cr_assert_eq(rows[s], lean[s], "slot %d", (int)s);
    weft_digest_destroy(table);
    weft_problem_destroy(d.problem);
}
