/* SPDX-License-Identifier: Apache-2.0 */
/* What layers saved may be on the host between their forward and their backward: decisions of
 * layers beside those of units, of small models in whole, whose problems weigh and stages make.
 * Every plan of them is tried. */
#include <criterion/criterion.h>
#include <string.h>

#include "plan/plan.h"
#include "scheduler/planners/table.h"
#include "scheduler/schedule.h"
#include "tests/effort.h"
#include "tests/program/dice.h"
#include "tests/program/random_model.h"
#include "tests/scheduler/against_all.h"

/* A block that may recompute, or that may be offloaded, or both. */
static void add_block(struct weft_text *text, struct dice *dice, int at)
{
    weft_text_addf(text,
                   ", {\"name\": \"l%d\", \"type\": \"transformer_block\", \"hidden\": 4, "
                   "\"heads\": 1, \"ffn\": %d}",
                   at, (int)roll(dice, 4, 200));
}

static void add_layer(struct weft_text *text, struct dice *dice, int at, bool has_parameters)
{
    const int parameters = has_parameters ? (int)roll(dice, 1, 400) : 0;
    weft_text_addf(text,
                   "%s{\"name\": \"l%d\", \"type\": \"custom\", \"hidden\": 4, \"forward_flops\": "
                   "\"1M\", \"backward_flops\": \"2M\", \"parameters\": %d, \"output\": \"%dB\", "
                   "\"saved\": \"%dB\"}",
                   at > 0 ? ", " : "", at, parameters, (int)roll(dice, 0, 1000),
                   (int)roll(dice, 1, 9000));
}

/* Three layers, of which the one in the middle has no unit; or two, in two micro-steps. */
static struct weft_config *saved_config(uint64_t seed, const char *locations, const char *recompute)
{
    static const char *const policies[] = {"dp", "zero1", "sdp", "fsdp", "dp,sdp"};
    struct dice dice = dice_of(seed, "saved");
    struct weft_config *config = NULL;
    struct weft_error err = {0};
    struct weft_text text;
    const bool twice = chance(&dice, 20);
    weft_text_init(&text);
    weft_text_add(&text, "{\"version\": 1, \"model\": {\"layers\": [");
    for (int l = 0; l < (twice ? 2 : 3); l++)
        if (recompute != NULL && l == 1 && !twice)
            add_block(&text, &dice, l);
        else
            add_layer(&text, &dice, l, twice || l == 2 || (l == 0 && recompute == NULL));
    weft_text_addf(&text,
                   "]}, \"cluster\": {\"ranks\": %d, \"host\": {\"memory_limit\": \"1GB\", "
                   "\"down\": {\"alpha\": \"%dus\", \"bandwidth\": \"1GB/s\"}, "
                   "\"up\": {\"alpha\": \"%dus\", \"bandwidth\": \"1GB/s\"}}}, ",
                   (int)roll(&dice, 1, 3), (int)roll(&dice, 0, 60), (int)roll(&dice, 0, 60));
    weft_text_addf(
        &text,
        "\"train\": {\"steps\": 1, \"micro_batch\": 1, \"seq_len\": 1, \"grad_accum\": "
        "%d%s}, \"plan\": {\"blocks\": 1, \"fuse\": false, \"update_ahead\": 1, "
        "\"policies\": \"%s\"%s%s%s, \"offload\": {\"state\": [\"device\"], \"activations\": "
        "%s}}}",
        twice ? 2 : 1, chance(&dice, 40) ? ", \"clip_norm\": 0" : "",
        twice ? "sdp" : policies[roll(&dice, 0, 4)],
        recompute != NULL && !twice ? ", \"recompute\": \"" : "",
        recompute != NULL && !twice ? recompute : "", recompute != NULL && !twice ? "\"" : "",
        locations);
    cr_assert_eq(weft_config_parse(weft_text_chars(&text), text.length, "saved.json", ".", NULL, 0,
                                   &config, &err),
                 WEFT_OK, "%s", err.text);
    weft_text_finish(&text);
    return config;
}

static void recompute_case(uint64_t seed, const char *locations, const char *recompute,
                           struct random_case *out)
{
    struct weft_profile_lack lacks[WEFT_PROFILE_LACKS];
    struct weft_error err = {0};
    int32_t n_lacks = 0;
    *out = (struct random_case){.seed = seed, .config = saved_config(seed, locations, recompute)};
    out->profile = random_profile(out->config, seed);
    if (seed % 8 > 0) out->profile->rates = (struct weft_rates){WEFT_RATE_ONE, WEFT_RATE_ONE};
    cr_assert_eq(weft_profile_take_tiers(out->config, NULL, &out->profile->pool,
                                         &out->profile->tiers, lacks, &n_lacks, &err),
                 WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_stages_create(out->config, out->profile, &out->stages, &err), WEFT_OK,
                 "seed %d: %s", (int)seed, err.text);
}

static void saved_case(uint64_t seed, const char *locations, struct random_case *out)
{
    recompute_case(seed, locations, NULL, out);
}

static const char either[] = "[\"device\", \"host\"]", host[] = "[\"host\"]";

Test(saved, plans_are_the_best_of_all_and_proven, .timeout = 900)
{
    int32_t n_slower = 0, n_offloaded = 0;
    for (int seed = 1; seed <= TEST_CASES(60, 20); seed++) {
        struct random_case random;
        saved_case((uint64_t)seed, either, &random);
        against_set_limits(random.stages.problem, (uint64_t)seed);
        n_slower += against_all(random.stages.problem, seed, "host", &n_offloaded);
        random_case_finish(&random);
    }
    cr_assert_eq(n_slower, 0, "%d plans are slower than the best", n_slower);
    cr_assert_gt(n_offloaded, TEST_CASES(10, 2), "chosen %d times", n_offloaded);
}

Test(saved, plans_with_recomputation_are_the_best_of_all_and_proven, .timeout = 900)
{
    int32_t n_slower = 0, n_selective = 0, n_whole = 0;
    for (int seed = 1; seed <= TEST_CASES(40, 12); seed++) {
        struct random_case random;
        recompute_case((uint64_t)seed, either, "auto", &random);
        against_set_limits(random.stages.problem, (uint64_t)seed);
        n_slower += against_all(random.stages.problem, seed, seed % 2 == 0 ? "whole" : "selective",
                                seed % 2 == 0 ? &n_whole : &n_selective);
        random_case_finish(&random);
    }
    cr_assert_eq(n_slower, 0, "%d plans are slower than the best", n_slower);
    cr_assert(n_whole > 0 && n_selective > 0, "chosen %d and %d times", n_whole, n_selective);
}

static const char inputs_too[] = "[\"device\", \"host\"], \"inputs\": [\"device\", \"host\"]",
                  inputs_alone[] = "[\"device\"], \"inputs\": [\"device\", \"host\"]";

/* Only the input of the layer in the middle may be on the host: more moves are too many to try. */
Test(saved, plans_with_inputs_are_the_best_of_all_and_proven, .timeout = 900)
{
    int32_t n_slower = 0, n_offloaded = 0;
    for (int seed = 1; seed <= TEST_CASES(40, 10); seed++) {
        struct random_case random;
        recompute_case((uint64_t)seed, inputs_alone, seed % 2 == 0 ? "auto" : NULL, &random);
        against_set_limits(random.stages.problem, (uint64_t)seed);
        n_slower += against_all(random.stages.problem, seed, "host-input", &n_offloaded);
        random_case_finish(&random);
    }
    cr_assert_eq(n_slower, 0, "%d plans are slower than the best", n_slower);
    cr_assert_gt(n_offloaded, TEST_CASES(6, 1), "chosen %d times", n_offloaded);
}

Test(saved, no_number_can_be_changed_to_prove_what_is_false, .timeout = 900)
{
    struct against_changes changes = {0};
    for (uint64_t seed = 1; seed <= TEST_CASES(12, 4); seed++) {
        struct random_case random;
        recompute_case(seed, seed % 3 == 1 ? inputs_alone : either, seed % 2 == 0 ? "auto" : NULL,
                       &random);
        against_set_limits(random.stages.problem, seed);
        against_changes(random.stages.problem, seed, &changes);
        random_case_finish(&random);
    }
    cr_assert_gt(changes.n, TEST_CASES(400, 100));
    cr_assert_gt(changes.n_refused, changes.n / 4, "%d of %d", changes.n_refused, changes.n);
}

/* Every planner plans with layers that must be away, and with the choice leaves them on the device
 * or finds that they fit nowhere else. */
Test(saved, rules_plan_with_what_must_be_there)
{
    for (uint64_t seed = 1; seed <= TEST_CASES(20, 5); seed++) {
        struct random_case random;
        saved_case(seed, host, &random);
        struct weft_problem *problem = random.stages.problem;
        const int32_t n_units = weft_problem_n_units(problem);
        int32_t n_made = 0;
        cr_assert_lt(n_units, problem->n_decisions);
        for (const struct weft_planner *planner = weft_planners(); planner->name; planner++) {
            /* There is no solver, and micro-steps do not take turns. */
            if (planner->solves || planner->turns) continue;
            struct weft_schedule_options options = {.planner = planner->name};
            struct weft_plan *plan = NULL;
            struct weft_error err = {0};
            enum weft_status status = weft_schedule(problem, NULL, &options, &plan, NULL, &err);
            const bool refused = strstr(err.text, "which it may not have") != NULL ||
                                 strstr(err.text, "no unit may have") != NULL;
            cr_assert(status == WEFT_OK || refused, "seed %d: %s", (int)seed, err.text);
            if (status != WEFT_OK) continue;
            n_made++;
            cr_assert_eq(weft_plan_check_rows(plan, "plan", &err), WEFT_OK, "%s", err.text);
            for (int32_t d = n_units; d < problem->n_decisions; d++)
                cr_assert_eq(weft_plan_chosen(plan, d)->location, WEFT_LOCATION_HOST);
            weft_plan_destroy(plan);
        }
        cr_assert_gt(n_made, 2, "seed %d", (int)seed);
        random_case_finish(&random);
    }
}

/* Where plan.offload keeps activations, nothing is decided of layers, and there is no tier. */
Test(saved, nothing_is_decided_where_all_stays)
{
    struct random_case random;
    saved_case(1, "[\"device\"]", &random);
    const struct weft_problem *problem = random.stages.problem;
    cr_assert_eq(weft_problem_n_units(problem), problem->n_decisions);
    cr_assert_eq(problem->n_tiers, 1);
    random_case_finish(&random);
}

static void expect_refused(struct weft_problem *problem, const char *says)
{
    struct weft_error err = {0};
    cr_assert_eq(weft_problem_check(problem, "changed", &err), WEFT_E_DATA, "%s", says);
    cr_assert_not_null(strstr(err.text, says), "%s", err.text);
}

static void check_refusals(uint64_t seed)
{
    struct random_case random;
    saved_case(seed, either, &random);
    struct weft_problem *problem = random.stages.problem;
    const int32_t d = weft_problem_n_units(problem);
    struct weft_item *up = NULL, *down = NULL;
    for (int32_t i = 0; i < problem->n_items; i++) {
        if (problem->items[i].item.decision != d) continue;
        *(problem->items[i].item.acquires ? &up : &down) = &problem->items[i].item;
    }
    cr_assert(up != NULL && down != NULL);
    down->first++;
    expect_refused(problem, down->first > down->last ? "window" : "next to its layer's");
    down->first--;
    up->last--;
    expect_refused(problem, up->first > up->last ? "window" : "next to its layer's");
    up->last++;
    up->kind = WEFT_ALL_GATHER;
    expect_refused(problem, "no parameters to gather");
    up->kind = WEFT_SAVED_UP;
    if (down->last + 1 == up->first) { /* else a period's end is between them */
        down->last++;
        expect_refused(problem, "turning point");
        down->last--;
    }
    problem->decisions[d].layer = 99;
    expect_refused(problem, "no such layer");
    problem->decisions[d].layer = 0;
    problem->decisions[d].is_of_layer = false;
    expect_refused(problem, "decisions[");
    problem->decisions[d].is_of_layer = true;
    cr_assert_eq(weft_problem_check(problem, "back", NULL), WEFT_OK);
    random_case_finish(&random);
}

Test(saved, windows_and_layers_that_cannot_be_are_refused)
{
    for (uint64_t seed = 1; seed <= 10; seed++)
        check_refusals(seed);
}

/* The item of a kind; the last one. */
static struct weft_item *item_of(struct weft_problem *problem, int32_t kind)
{
    struct weft_item *found = NULL;
    for (int32_t i = 0; i < problem->n_items; i++)
        if (problem->items[i].item.kind == kind) found = &problem->items[i].item;
    return found;
}

Test(saved, windows_of_inputs_that_cannot_be_are_refused)
{
    int32_t n = 0;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct random_case random;
        saved_case(seed, inputs_too, &random);
        struct weft_problem *problem = random.stages.problem;
        struct weft_item *up = item_of(problem, WEFT_INPUT_UP),
                         *down = item_of(problem, WEFT_INPUT_DOWN);
        if (up != NULL) {
            n++;
            cr_assert_not_null(down);
            up->last--;
            expect_refused(problem, up->first > up->last ? "window" : "next to its layer's");
            up->last++;
            down->first--;
            expect_refused(problem, "next to its layer's");
            down->first++;
            problem->decisions[up->decision].layer = 0;
            expect_refused(problem, "decisions[");
            problem->decisions[up->decision].layer = 1;
            down->kind = WEFT_SAVED_UP;
            expect_refused(problem, "a copy down releases them");
        }
        random_case_finish(&random);
    }
    cr_assert_gt(n, 3);
}
