/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of strategies, and sets in files. */
#include "problem/decision.h"

#include <criterion/criterion.h>

#include "tests/problem/small_problem.h"

/* Strategies of four policies, two of them twice, of kinds 10, 11 ... */
enum { N = 6 };
static struct weft_problem_strategy strategies[N] = {
    {.name = "fsdp", .kind = 10, .policy = WEFT_POLICY_FSDP},
    {.name = "sdp", .kind = 11, .policy = WEFT_POLICY_SDP},
    {.name = "dp", .kind = 12, .policy = WEFT_POLICY_DP},
    {.name = "fsdp+host", .kind = 13, .policy = WEFT_POLICY_FSDP},
    {.name = "sdp+host", .kind = 14, .policy = WEFT_POLICY_SDP},
    {.name = "zero1", .kind = 15, .policy = WEFT_POLICY_ZERO1},
};
static const struct weft_problem_decision six = {
    .name = "u", .n_strategies = N, .strategies = strategies};

Test(decision, the_first_strategy_of_a_kind_policy_or_name_is_found)
{
    for (int32_t k = 0; k < N; k++) {
        cr_assert_eq(weft_decision_of_kind(&six, 10 + k), k);
        cr_assert_eq(weft_decision_of_name(&six, strategies[k].name), k);
    }
    cr_assert_eq(weft_decision_of_kind(&six, 9), -1);
    cr_assert_eq(weft_decision_of_kind(&six, 10 + N), -1);
    cr_assert_eq(weft_decision_of_name(&six, "fsdp+"), -1);
    cr_assert_eq(weft_decision_of_policy(&six, WEFT_POLICY_FSDP), 0);
    cr_assert_eq(weft_decision_of_policy(&six, WEFT_POLICY_ZERO1), N - 1);
    const struct weft_problem_decision two = {.n_strategies = 2, .strategies = strategies};
    cr_assert_eq(weft_decision_of_policy(&two, WEFT_POLICY_DP), -1);
    cr_assert_eq(weft_decision_of_name(&two, "dp"), -1);
}

/* For every set of policies, by the definition. */
Test(decision, sets_of_policies_are_sets_of_strategies)
{
    for (uint32_t policies = 0; policies < 1u << WEFT_POLICY_COUNT; policies++) {
        const uint64_t found = weft_decision_policies(&six, policies);
        for (int32_t k = 0; k < N; k++)
            cr_assert_eq(found >> k & 1, policies >> strategies[k].policy & 1, "policies %x: %d",
                         policies, k);
        cr_assert_eq(found >> N, 0);
    }
    for (int32_t n = 1; n <= WEFT_MOST_STRATEGIES; n++) {
        const struct weft_problem_decision some = {.n_strategies = n};
        cr_assert_eq(weft_decision_all(&some) >> (n - 1), 1, "%d strategies", n);
        cr_assert_eq(weft_decision_all(&some) & 1, 1, "%d strategies", n);
    }
}

/* Writes a set as a file does, and reads it back. */
static enum weft_status read_text(const char *text, uint64_t *out, struct weft_error *err)
{
    struct weft_json *json;
    WEFT_TRY(weft_json_parse(text, strlen(text), "here", &json, err));
    const enum weft_status status =
        weft_strategies_read(&six, weft_json_root(json), "here", out, err);
    weft_json_destroy(json);
    return status;
}

Test(decision, every_set_of_strategies_is_read_back)
{
    for (uint64_t set = 1; set < UINT64_C(1) << N; set++) {
        struct weft_text text;
        struct weft_json_writer writer;
        struct weft_error err = {0};
        uint64_t found = 0;
        weft_text_init(&text);
        weft_json_writer_init(&writer, &text, 0);
        weft_json_begin_object(&writer);
        weft_strategies_write(&six, set, &writer);
        weft_json_end_object(&writer);
        cr_assert_eq(read_text(weft_text_chars(&text), &found, &err), WEFT_OK, "%s", err.text);
        cr_assert_eq(found, set, "%s", weft_text_chars(&text));
        weft_text_finish(&text);
    }
}

Test(decision, lists_of_no_strategy_are_refused)
{
    static const char *const cases[][2] = {
        {"{\"strategies\": []}", "here: strategies names none of u"},
        {"{\"strategies\": [\"dp\", \"nothing\"]}", "here: \"nothing\" is no strategy of u"},
        {"{\"strategies\": [3]}", "here: \"\" is no strategy of u"},
        {"{\"strategies\": \"dp\"}", "strategies"},
        {"{}", "strategies"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct weft_error err = {0};
        uint64_t found = 77;
        cr_assert_eq(read_text(cases[i][0], &found, &err), WEFT_E_DATA, "%s", cases[i][0]);
        cr_assert_not_null(strstr(err.text, cases[i][1]), "%s: %s", cases[i][0], err.text);
        cr_assert_eq(found, 77, "untouched on failure");
    }
}

Test(decision, a_strategy_s_time_is_of_its_slots_alone)
{
    struct weft_slot_time times[] = {{2, 30}, {5, 0}, {7, 11}};
    const struct weft_problem_strategy strategy = {.n_times = 3, .times = times};
    const int64_t known[] = {0, 0, 30, 0, 0, 0, 0, 11, 0};
    for (int32_t s = 0; s < 9; s++)
        cr_assert_eq(weft_strategy_ns(&strategy, s), known[s], "slot %d", s);
}

Test(decision, the_way_to_keep_state_is_the_location_or_an_update_there)
{
    struct weft_problem_strategy strategy = {.location = WEFT_LOCATION_DISK};
    cr_assert_eq(weft_strategy_way(&strategy).keep, WEFT_KEEP_DISK);
    strategy.location = WEFT_LOCATION_HOST;
    cr_assert_eq(weft_strategy_way(&strategy).keep, WEFT_KEEP_HOST);
    strategy.updates_on_host = true;
    cr_assert_eq(weft_strategy_way(&strategy).keep, WEFT_KEEP_HOST_UPDATE);
}
