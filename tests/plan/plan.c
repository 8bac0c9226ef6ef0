/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/plan.h"
#include "program/predict.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/problem/small_problem.h"
#include "tests/program/random_model.h"

static const int32_t all_sdp[] = {IS_SDP, IS_SDP};

static enum weft_status create_plan(const struct weft_problem *problem, const int32_t *strategies,
                                    const struct weft_move *moves, int32_t n,
                                    struct weft_plan **out, struct weft_error *err)
{
    *err = (struct weft_error){0};
    return weft_plan_create(problem, "test", strategies, moves, n, out, err);
}

static void expect_plan(const struct weft_plan *plan, int32_t at, int32_t item, int32_t block,
                        int32_t launch, int32_t deadline)
{
    const struct weft_placement *placement = &plan->placements[at];
    cr_assert_eq(placement->item, item, "placement %d", at);
    cr_assert_eq(placement->block, block, "placement %d", at);
    cr_assert_eq(placement->launch, launch, "placement %d: %d", at, placement->launch);
    cr_assert_eq(placement->deadline, deadline, "placement %d: %d", at, placement->deadline);
}

/* Slots: 0 U:a, 1 U:b, 2 fill, 3 F:a, 4 F:b, 5 B:b, 6 B:a, 7 drain, 8 norm. */
Test(plan, windows_give_the_other_end)
{
    struct weft_problem problem = small_problem();
    struct weft_plan *plan = NULL;
    struct weft_error err;
    const struct weft_move moves[] = {{A_GATHER, 1, 0}, {A_GATHER, 2, 0}, {B_GATHER, 2, 0},
                                      {B_GATHER, 3, 0}, {B_REDUCE, 6, 0}, {B_REDUCE, 7, 0},
                                      {A_REDUCE, 7, 0}, {A_REDUCE, 7, 0}};
    cr_assert_eq(create_plan(&problem, all_sdp, moves, 8, &plan, &err), WEFT_OK, "%s", err.text);
    expect_plan(plan, 0, A_GATHER, 0, 1, 3);
    expect_plan(plan, 1, A_GATHER, 1, 2, 3);
    expect_plan(plan, 2, B_GATHER, 0, 2, 4);
    expect_plan(plan, 3, B_GATHER, 1, 3, 4);
    expect_plan(plan, 4, B_REDUCE, 0, 6, 7);
    expect_plan(plan, 5, B_REDUCE, 1, 6, 8);
    expect_plan(plan, 6, A_REDUCE, 0, 7, 8);
    expect_plan(plan, 7, A_REDUCE, 1, 7, 8);
    weft_plan_destroy(plan);
}

Test(plan, normal_form)
{
    struct weft_problem problem = small_problem();
    struct weft_plan *plan = NULL;
    struct weft_error err;
    /* The second gather of b asks for slot 2 but follows one in 3. b's first reduction asks for 7
     * but precedes one due in 6. */
    const struct weft_move moves[] = {{A_GATHER, 2, 0}, {A_GATHER, 1, 0}, {B_GATHER, 3, 0},
                                      {B_GATHER, 2, 0}, {B_REDUCE, 7, 0}, {B_REDUCE, 6, 0},
                                      {A_REDUCE, 7, 0}, {A_REDUCE, 7, 0}};
    cr_assert_eq(create_plan(&problem, all_sdp, moves, 8, &plan, &err), WEFT_OK, "%s", err.text);
    expect_plan(plan, 1, A_GATHER, 1, 2, 3);
    expect_plan(plan, 3, B_GATHER, 1, 3, 4);
    expect_plan(plan, 4, B_REDUCE, 0, 6, 7);
    expect_plan(plan, 5, B_REDUCE, 1, 6, 7);
    weft_plan_destroy(plan);
}

/* b's second gather blocks in 4. a's second follows one launched in 3, so it blocks too. b's
 * reductions wait to be launched, and a's gather before b's is due as usual. */
Test(plan, blocking_gathers_and_late_launches)
{
    struct weft_problem problem = small_problem();
    struct weft_plan *plan = NULL;
    struct weft_error err;
    const struct weft_move moves[] = {{A_GATHER, 2, 0}, {B_GATHER, 3, 0}, {A_GATHER, 1, 0},
                                      {B_GATHER, 4, 0}, {B_REDUCE, 7, 7}, {B_REDUCE, 7, 6},
                                      {A_REDUCE, 7, 0}, {A_REDUCE, 7, 7}};
    cr_assert_eq(create_plan(&problem, all_sdp, moves, 8, &plan, &err), WEFT_OK, "%s", err.text);
    expect_plan(plan, 0, A_GATHER, 0, 2, 3);
    expect_plan(plan, 1, B_GATHER, 0, 3, 4);
    expect_plan(plan, 2, A_GATHER, 1, 3, 3);
    expect_plan(plan, 3, B_GATHER, 1, 4, 4);
    expect_plan(plan, 4, B_REDUCE, 0, 7, 8);
    expect_plan(plan, 5, B_REDUCE, 1, 6, 8);
    cr_assert_eq(weft_plan_predict(plan, &err), WEFT_OK);
    /* U to 400. a's first gather 400-1000 delays F:a's slot to 1000; b's first 1000-1600, then a's
     * second to 2200, when F:a computes, to 3200. b's second 3200-3800: F:b to 4800, B:b to 6800,
     * B:a to 8800. The first reduction waits for slot 7: 8800, and all four end at 11200. */
    cr_assert_eq(plan->prediction.exposed_ns, 600 + 1200 + 600 + 2400 + 50);
    cr_assert_eq(plan->prediction.step_ns, 11350);
    int64_t rows[N_SMALL_SLOTS * WEFT_CATEGORY_COUNT];
    /*                                    U:a U:b fill F:a  F:b  B:b  B:a  drain norm */
    static const int64_t gathered[] = {0, 0, 100, 300, 400, 400, 200, 0, 0};
    static const int64_t full[] = {0, 0, 0, 0, 0, 200, 400, 400, 0};
    weft_plan_rows(plan, 0, rows);
    for (int s = 0; s < N_SMALL_SLOTS; s++) {
        const int64_t *row = &rows[s * WEFT_CATEGORY_COUNT];
        cr_assert_eq(row[WEFT_CATEGORY_GATHERED_PARAMETERS], gathered[s], "slot %d", s);
        cr_assert_eq(row[WEFT_CATEGORY_FULL_GRADIENTS], full[s], "slot %d", s);
    }
    weft_plan_destroy(plan);
}

/* A reduction ahead of a gather that blocks in slot 4 may end in it, one ahead of a gather that is
 * due before it may not. */
Test(plan, reduction_ahead_of_a_blocking_gather)
{
    struct weft_problem problem = small_problem();
    struct weft_plan *plan = NULL;
    struct weft_error err;
    const int32_t strategies[] = {IS_DP, IS_SDP};
    problem.items[A_ALL_REDUCE].item.first = 1;
    for (int blocks = 0; blocks < 2; blocks++) {
        const struct weft_move moves[] = {{A_ALL_REDUCE, 6, 0}, {B_GATHER, 3 + blocks, 0},
                                          {A_ALL_REDUCE, 6, 0}, {B_GATHER, 4, 0},
                                          {B_REDUCE, 7, 0},     {B_REDUCE, 7, 0}};
        cr_assert_eq(create_plan(&problem, strategies, moves, 6, &plan, &err), WEFT_OK, "%s",
                     err.text);
        expect_plan(plan, 0, A_ALL_REDUCE, 0, 1, blocks ? 5 : 4);
        expect_plan(plan, 2, A_ALL_REDUCE, 1, 1, 5);
        weft_plan_destroy(plan);
    }
    problem.items[A_ALL_REDUCE].item.first = 7;
}

Test(plan, dp_needs_other_items)
{
    struct weft_problem problem = small_problem();
    struct weft_plan *plan = NULL;
    struct weft_error err;
    const int32_t strategies[] = {IS_DP, IS_DP};
    const struct weft_move moves[] = {
        {B_ALL_REDUCE, 7, 0}, {B_ALL_REDUCE, 7, 0}, {A_ALL_REDUCE, 7, 0}, {A_ALL_REDUCE, 7, 0}};
    cr_assert_eq(create_plan(&problem, strategies, moves, 4, &plan, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_plan_slot_ns(plan, 0), 400);
    cr_assert_eq(weft_plan_slot_ns(plan, 3), 1000);
    weft_plan_destroy(plan);
}

static void refused_plan(const int32_t *strategies, const struct weft_move *moves, int32_t n,
                         const char *word)
{
    struct weft_problem problem = small_problem();
    struct weft_plan *plan = NULL;
    struct weft_error err;
    cr_assert_eq(create_plan(&problem, strategies, moves, n, &plan, &err), WEFT_E_INTERNAL, "%s",
                 word);
    cr_assert(strstr(err.text, word) != NULL, "\"%s\" lacks \"%s\"", err.text, word);
    cr_assert_null(plan);
}

Test(plan, wrong_moves_are_refused)
{
    const struct weft_move good[] = {{A_GATHER, 1, 0}, {A_GATHER, 2, 0}, {B_GATHER, 2, 0},
                                     {B_GATHER, 3, 0}, {B_REDUCE, 6, 0}, {B_REDUCE, 7, 0},
                                     {A_REDUCE, 7, 0}, {A_REDUCE, 7, 0}};
    struct weft_move bad[8];
    refused_plan(all_sdp, good, 7, "1 moves of item");
    memcpy(bad, good, sizeof good);
    bad[0].item = N_SMALL_ITEMS;
    refused_plan(all_sdp, bad, 8, "do not need");
    bad[0].item = -1;
    refused_plan(all_sdp, bad, 8, "do not need");
    bad[0].item = A_ALL_REDUCE;
    refused_plan(all_sdp, bad, 8, "do not need");
    bad[0] = (struct weft_move){A_GATHER, 0, 0};
    refused_plan(all_sdp, bad, 8, "outside its window");
    bad[0].slot = 4;
    refused_plan(all_sdp, bad, 8, "outside its window");
    memcpy(bad, good, sizeof good);
    bad[6].slot = 8;
    refused_plan(all_sdp, bad, 8, "outside its window");
    memcpy(bad, good, sizeof good);
    bad[4].launch = 7;
    refused_plan(all_sdp, bad, 8, "outside its window");
    memcpy(bad, good, sizeof good);
    bad[0] = (struct weft_move){B_GATHER, 2, 0};
    refused_plan(all_sdp, bad, 8, "moves of item");
    const int32_t beyond[] = {N_SMALL_STRATEGIES, IS_SDP};
    refused_plan(beyond, good, 8, "decision a has no strategy 2");
    const int32_t none[] = {IS_SDP, -1};
    refused_plan(none, good, 8, "decision b has no strategy -1");
}

Test(plan, order_that_cannot_be_in_time_is_refused)
{
    /* a's gathers, due in slot 3, follow one of b that is launched in 4. */
    const struct weft_move moves[] = {{B_GATHER, 4, 0}, {A_GATHER, 1, 0}, {A_GATHER, 2, 0},
                                      {B_GATHER, 4, 0}, {B_REDUCE, 6, 0}, {B_REDUCE, 7, 0},
                                      {A_REDUCE, 7, 0}, {A_REDUCE, 7, 0}};
    refused_plan(all_sdp, moves, 8, "due by slot 3");
    /* b's reduction is to be over by 7, but a's, launched in 7, stands ahead of it. */
    const struct weft_move late[] = {{A_GATHER, 1, 0}, {A_GATHER, 2, 0}, {B_GATHER, 2, 0},
                                     {B_GATHER, 3, 0}, {A_REDUCE, 7, 0}, {B_REDUCE, 6, 0},
                                     {B_REDUCE, 7, 0}, {A_REDUCE, 7, 0}};
    refused_plan(all_sdp, late, 8, "launched too late");
}

Test(plan, gap)
{
    struct weft_plan plan = {.bound_ns = 0, .prediction = {.step_ns = 150}};
    cr_assert_float_eq(weft_plan_gap(&plan), 0, 0);
    plan.bound_ns = 100;
    cr_assert_float_eq(weft_plan_gap(&plan), 0.5, 1e-12);
    cr_assert_float_eq(weft_plan_claimed_gap(&plan), 0.5, 1e-12);
}

/* The bound in pages is of the plan's own period, and of all plans if no page is smaller. */
Test(plan, claims_the_better_bound_of_the_weakest_period)
{
    struct weft_plan_variant other = {.bound_ns = 130};
    struct weft_plan plan = {
        .bound_ns = 100, .paged_bound_ns = 140, .prediction = {.step_ns = 150}};
    plan.pages.page_bytes = 2 * WEFT_PAGE_LEAST_BYTES;
    cr_assert_eq(weft_plan_claim_of(&plan).bound_ns, 140);
    cr_assert_eq(weft_plan_claim_of(&plan).page_bytes, 2 * WEFT_PAGE_LEAST_BYTES);
    plan.pages.page_bytes = WEFT_PAGE_LEAST_BYTES;
    cr_assert_eq(weft_plan_claim_of(&plan).page_bytes, 0);
    plan.others = &other;
    plan.n_others = 1;
    cr_assert_eq(weft_plan_claim_of(&plan).bound_ns, 130);
    cr_assert_eq(weft_plan_least_bound_ns(&plan), 100);
    other.bound_ns = 90;
    cr_assert_eq(weft_plan_claim_of(&plan).bound_ns, 90);
    plan.paged_bound_ns = 0;
    cr_assert_eq(weft_plan_claim_of(&plan).bound_ns, 90);
}

Test(plan, predicts_by_hand)
{
    struct weft_problem problem = small_problem();
    struct weft_plan *plan = NULL;
    struct weft_error err;
    const struct weft_move moves[] = {{A_GATHER, 1, 0}, {A_GATHER, 1, 0}, {B_GATHER, 2, 0},
                                      {B_GATHER, 2, 0}, {B_REDUCE, 7, 0}, {B_REDUCE, 7, 0},
                                      {A_REDUCE, 7, 0}, {A_REDUCE, 7, 0}};
    cr_assert_eq(create_plan(&problem, all_sdp, moves, 8, &plan, &err), WEFT_OK);
    cr_assert_eq(weft_plan_predict(plan, &err), WEFT_OK);
    /* U 200 + 200. a's gathers begin at 200 and end at 1400: 1000 exposed before F:a (1400-2400).
     * b's end at 2600: 200 exposed before F:b (2600-3600). B:b 3600-5600, B:a 5600-7600. b's
     * reductions run 5600-6800; a's run 7600-8800, all exposed. Norm 8800-8900, agree 50. */
    cr_assert_eq(plan->prediction.exposed_ns, 1000 + 200 + 1200 + 50);
    cr_assert_eq(plan->prediction.compute_ns, 400 + 2000 + 4000 + 100);
    cr_assert_eq(plan->prediction.channel_ns, 8 * 600 + 50);
    cr_assert_eq(plan->prediction.step_ns, 8950);
    weft_plan_destroy(plan);
}

Test(plan, matches_its_problem_only)
{
    struct weft_problem problem = small_problem(), other = small_problem();
    struct weft_plan *plan = NULL;
    struct weft_error err;
    const struct weft_move moves[] = {{A_GATHER, 1, 0}, {A_GATHER, 1, 0}, {B_GATHER, 2, 0},
                                      {B_GATHER, 2, 0}, {B_REDUCE, 7, 0}, {B_REDUCE, 7, 0},
                                      {A_REDUCE, 7, 0}, {A_REDUCE, 7, 0}};
    cr_assert_eq(create_plan(&problem, all_sdp, moves, 8, &plan, &err), WEFT_OK);
    cr_assert_eq(weft_plan_matches(plan->problem, &other, &err), WEFT_OK);
    other.ranks = 3;
    other.config_hash.low++;
    cr_assert_eq(weft_plan_matches(plan->problem, &other, &err), WEFT_E_DATA);
    cr_assert(strstr(err.text, "ranks: 2, 3") != NULL, "%s", err.text);
    cr_assert(strstr(err.text, "hash") == NULL, "%s", err.text);
    cr_assert(strstr(err.text, "plan it again") != NULL, "%s", err.text);
    weft_plan_destroy(plan);
    weft_plan_destroy(NULL);
}

Test(plan, prediction_is_what_placements_give)
{
    struct random_case random;
    struct weft_error err = {0};
    random_case_init(&random, 7);
    struct weft_plan *plan = random_plan(&random, 0);
    cr_assert_eq(weft_plan_check_prediction(plan, &err), WEFT_OK, "%s", err.text);
    struct weft_prediction *said = &plan->prediction;
    const struct {
        const char *name;
        int64_t *figure;
    } figures[] = {{"step_ns", &said->step_ns},
                   {"exposed_ns", &said->exposed_ns},
                   {"compute_ns", &said->compute_ns},
                   {"channel_ns", &said->channel_ns},
                   {"peak_bytes", &said->peak_bytes}};
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        ++*figures[i].figure;
        err = (struct weft_error){0};
        cr_assert_eq(weft_plan_check_prediction(plan, &err), WEFT_E_DATA);
        cr_assert(strstr(err.text, figures[i].name) != NULL, "%s", err.text);
        --*figures[i].figure;
    }
    said->peak_slot++;
    err = (struct weft_error){0};
    cr_assert_eq(weft_plan_check_prediction(plan, &err), WEFT_E_DATA);
    cr_assert(strstr(err.text, "peak_slot") != NULL, "%s", err.text);
    said->peak_slot--;
    plan->bound_ns = said->step_ns;
    cr_assert_eq(weft_plan_check_prediction(plan, &err), WEFT_OK);
    plan->bound_ns++;
    err = (struct weft_error){0};
    cr_assert_eq(weft_plan_check_prediction(plan, &err), WEFT_E_DATA);
    cr_assert(strstr(err.text, "no step is below") != NULL, "%s", err.text);
    weft_plan_destroy(plan);
    random_case_finish(&random);
}
