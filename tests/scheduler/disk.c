/* SPDX-License-Identifier: Apache-2.0 */
/* State that may be on a disk, or in the host's memory: small models in whole, whose problems weigh
 * and stages make. Every plan of them is tried. */
#include <criterion/criterion.h>
#include <string.h>

#include "scheduler/digest/digest.h"
#include "scheduler/planners/table.h"
#include "scheduler/schedule.h"
#include "tests/effort.h"
#include "tests/program/dice.h"
#include "tests/program/random_model.h"
#include "tests/scheduler/against_all.h"

#define LINE "{\"alpha\": \"%dus\", \"bandwidth\": \"1GB/s\"}"
#define HOST                                                                                       \
    "\"host\": {\"memory_limit\": \"1GB\", \"update\": \"1GB/s\", \"up\": " LINE                   \
    ", \"down\": " LINE "}}, "
#define DISK                                                                                       \
    "\"disk\": {\"path\": \".\", \"limit\": \"1GB\", \"duplex\": \"%s\", \"read\": " LINE          \
    ", \"write\": " LINE "}}, "

/* Every other config with the host's memory updates there, and there alone: its chains of copies
 * and updates are as many more plans, so both layers share a unit. */
static bool is_of_host(uint64_t seed)
{
    return seed % 3 == 0;
}

static bool updates_on_host(uint64_t seed)
{
    return seed % 6 == 0;
}

/* Two layers, a unit each, and what enumeration has time for of policies. Some have a disk, some
 * the host's memory as a tier. */
static struct weft_config *disk_config(uint64_t seed)
{
    static const char *const policies[] = {"dp", "zero1", "sdp", "fsdp", "dp,sdp"};
    struct dice dice = dice_of(seed, "disk");
    struct weft_config *config = NULL;
    struct weft_error err = {0};
    struct weft_text text;
    int hidden = (int)roll(&dice, 8, 60), outputs = (int)roll(&dice, 8, 60);
    weft_text_init(&text);
    weft_text_addf(&text,
                   "{\"version\": 1, \"model\": {\"layers\": [{\"name\": \"f\", \"type\": "
                   "\"linear\", \"hidden\": %d, \"outputs\": %d}, {\"name\": \"head\", \"type\": "
                   "\"classifier\", \"hidden\": %d, \"classes\": %d}]}, ",
                   hidden, outputs, outputs, (int)roll(&dice, 2, 60));
    const int alpha = (int)roll(&dice, 0, 60), back = (int)roll(&dice, 0, 60);
    weft_text_addf(&text, "\"cluster\": {\"ranks\": %d, ", (int)roll(&dice, 1, 3));
    if (is_of_host(seed))
        weft_text_addf(&text, HOST, alpha, back);
    else
        weft_text_addf(&text, DISK, chance(&dice, 50) ? "half" : "full", alpha, back);
    weft_text_addf(&text,
                   "\"train\": {\"steps\": 1, \"micro_batch\": 1, \"seq_len\": 1%s%s}, \"plan\": "
                   "{\"offload\": {\"activations\": [\"device\"], \"update\": [\"%s\"]}, "
                   "%s, \"update_ahead\": 1, \"policies\": \"%s\"}}",
                   chance(&dice, 50) ? ", \"clip_norm\": 0" : "",
                   chance(&dice, 50) ? ", \"precision\": {\"compute\": \"bf16\"}" : "",
                   updates_on_host(seed) ? "host" : "device",
                   updates_on_host(seed) ? "\"block_size\": \"1GiB\""
                                         : "\"blocks\": 1, \"fuse\": false",
                   updates_on_host(seed) ? policies[seed / 6 % 4 == 0 ? 1 : seed / 6 % 4]
                                         : policies[roll(&dice, 0, 4)]);
    cr_assert_eq(weft_config_parse(weft_text_chars(&text), text.length, "disk.json", ".", NULL, 0,
                                   &config, &err),
                 WEFT_OK, "%s", err.text);
    weft_text_finish(&text);
    return config;
}

static void disk_case(uint64_t seed, struct random_case *out)
{
    struct weft_profile_lack lacks[WEFT_PROFILE_LACKS];
    struct weft_error err = {0};
    int32_t n_lacks = 0;
    *out = (struct random_case){.seed = seed, .config = disk_config(seed)};
    out->profile = random_profile(out->config, seed);
    if (seed % 8 > 0) out->profile->rates = (struct weft_rates){WEFT_RATE_ONE, WEFT_RATE_ONE};
    cr_assert_eq(weft_profile_take_tiers(out->config, NULL, &out->profile->pool,
                                         &out->profile->tiers, lacks, &n_lacks, &err),
                 WEFT_OK, "%s", err.text);
    cr_assert_eq(n_lacks, 0);
    cr_assert_eq(weft_stages_create(out->config, out->profile, &out->stages, &err), WEFT_OK,
                 "seed %d: %s", (int)seed, err.text);
}

Test(disk, plans_are_the_best_of_all_and_proven, .timeout = 900)
{
    int32_t n_slower = 0, n_offloaded = 0, n_host = 0, n_there = 0;
    for (int seed = 1; seed <= TEST_CASES_OF(180, 90, 20); seed++) {
        struct random_case random;
        disk_case((uint64_t)seed, &random);
        against_set_limits(random.stages.problem, (uint64_t)seed);
        n_slower += !is_of_host((uint64_t)seed)
                        ? against_all(random.stages.problem, seed, "+disk", &n_offloaded)
                    : updates_on_host((uint64_t)seed)
                        ? against_all(random.stages.problem, seed, "+host-update", &n_there)
                        : against_all(random.stages.problem, seed, "+host", &n_host);
        random_case_finish(&random);
    }
    cr_assert_eq(n_slower, 0, "%d plans are slower than the best", n_slower);
    cr_assert_gt(n_offloaded, TEST_CASES_OF(30, 12, 1), "chosen %d times", n_offloaded);
    cr_assert_gt(n_host, TEST_CASES_OF(7, 2, 0), "chosen %d times", n_host);
    cr_assert_gt(n_there, TEST_CASES_OF(7, 2, 0), "chosen %d times", n_there);
}

Test(disk, no_number_can_be_changed_to_prove_what_is_false, .timeout = 900)
{
    struct against_changes changes = {0};
    for (uint64_t seed = 1; seed <= TEST_CASES(12, 4); seed++) {
        struct random_case random;
        disk_case(seed, &random);
        against_set_limits(random.stages.problem, seed);
        against_changes(random.stages.problem, seed, &changes);
        random_case_finish(&random);
    }
    cr_assert_gt(changes.n, TEST_CASES(400, 100));
    cr_assert_gt(changes.n_refused, changes.n / 4, "%d of %d", changes.n_refused, changes.n);
}

/* With room for everything, and a disk that is slow, nothing goes there. */
Test(disk, nothing_is_there_that_fits_elsewhere)
{
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct random_case random;
        struct weft_plan *plan = NULL;
        struct weft_error err = {0};
        struct weft_schedule_options options = {.planner = "ilp"};
        disk_case(seed, &random);
        struct weft_problem *problem = random.stages.problem;
        for (int32_t i = 0; i < problem->n_items; i++)
            problem->items[i].block_ns +=
                weft_item_is_collective(&problem->items[i].item) ? 0 : 9999999;
        cr_assert_eq(weft_schedule(problem, NULL, &options, &plan, NULL, &err), WEFT_OK, "%s",
                     err.text);
        for (int32_t u = 0; u < problem->n_decisions; u++)
            cr_assert_eq(weft_plan_chosen(plan, u)->location, WEFT_LOCATION_DEVICE, "seed %d",
                         (int)seed);
        weft_plan_destroy(plan);
        random_case_finish(&random);
    }
}

/* Where no other location is allowed, every planner has a plan, or says why not. */
Test(disk, rules_plan_with_state_that_must_be_there)
{
    for (uint64_t seed = 1; seed <= TEST_CASES(20, 5); seed++) {
        struct random_case random;
        disk_case(seed, &random);
        weft_stages_finish(&random.stages);
        const enum weft_location location =
            is_of_host(seed) ? WEFT_LOCATION_HOST : WEFT_LOCATION_DISK;
        random.config->plan.offload.state = 1 << location;
        struct weft_error err = {0};
        cr_assert_eq(weft_stages_create(random.config, random.profile, &random.stages, &err),
                     WEFT_OK, "%s", err.text);
        struct weft_problem *problem = random.stages.problem;
        int32_t n_made = 0;
        for (const struct weft_planner *planner = weft_planners(); planner->name; planner++) {
            /* There is no solver, and micro-steps do not take turns. */
            if (planner->solves || planner->turns) continue;
            struct weft_schedule_options options = {.planner = planner->name};
            struct weft_plan *plan = NULL;
            err = (struct weft_error){0};
            enum weft_status status = weft_schedule(problem, NULL, &options, &plan, NULL, &err);
            const bool refused = strstr(err.text, "which it may not have") != NULL ||
                                 strstr(err.text, "no unit may have") != NULL;
            cr_assert(status == WEFT_OK || status == WEFT_E_INFEASIBLE || refused, "seed %d: %s",
                      (int)seed, err.text);
            if (status != WEFT_OK) continue;
            n_made++;
            cr_assert_eq(weft_plan_check_rows(plan, "plan", &err), WEFT_OK, "%s", err.text);
            for (int32_t u = 0; u < problem->n_decisions; u++)
                cr_assert_eq(weft_plan_chosen(plan, u)->location, location);
            weft_plan_destroy(plan);
        }
        cr_assert_gt(n_made, 2, "seed %d", (int)seed);
        random_case_finish(&random);
    }
}

/* Blocks of items that come after one another are drawn so that every lane can be in time. */
Test(disk, random_plans_have_a_place_for_every_chain)
{
    int32_t n_there = 0;
    for (uint64_t seed = 1; seed <= TEST_CASES(400, 100); seed++) {
        struct weft_schedule_options options = {.planner = "random", .seed = seed};
        struct random_case random;
        struct weft_plan *plan = NULL;
        struct weft_error err = {0};
        random_case_init_tiers(&random, seed);
        cr_assert_eq(weft_schedule(random.stages.problem, NULL, &options, &plan, NULL, &err),
                     WEFT_OK, "seed %d: %s", (int)seed, err.text);
        for (int32_t d = 0; d < random.stages.problem->n_decisions; d++)
            n_there += weft_plan_chosen(plan, d)->updates_on_host;
        weft_plan_destroy(plan);
        random_case_finish(&random);
    }
    cr_assert_gt(n_there, TEST_CASES(40, 5), "%d units are updated on the host", n_there);
}
