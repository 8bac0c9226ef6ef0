/* SPDX-License-Identifier: Apache-2.0 */
#include "report/plan_report.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/program/random_model.h"
#include "tests/report/answer_text.h"
#include "tests/report/small_plan.h"

static char *text_of(const struct weft_plan *plan)
{
    struct weft_text out;
    weft_text_init(&out);
    ADD_TEXT(&out, weft_report_plan(plan, &answer));
    cr_assert(weft_text_ok(&out));
    return out.data;
}

static void expect_line(const struct weft_plan *plan, const char *line)
{
    char *text = text_of(plan);
    cr_assert(strstr(text, line), "no line '%s' in\n%s", line, text);
    free(text);
}

static void expect_no(const struct weft_plan *plan, const char *words)
{
    char *text = text_of(plan);
    cr_assert(!strstr(text, words), "'%s' in\n%s", words, text);
    free(text);
}

Test(plan_report, says_what_was_predicted)
{
    struct weft_problem problem = small_problem();
    struct weft_plan *plan = small_plan(&problem);
    plan->prediction = (struct weft_prediction){.step_ns = 12000,
                                                .exposed_ns = 4500,
                                                .compute_ns = 7500,
                                                .channel_ns = 4850,
                                                .peak_bytes = 1700,
                                                .peak_slot = 6,
                                                .arena_bytes = 870,
                                                .total_bytes = 1870};
    plan->pages.page_bytes = 4096;
    plan->bound_ns = 10000;
    plan->bound_by = "channel";
    plan->solver_stop = "time limit";
    problem.tiers[0].limit_bytes = 2048;
    char *text = text_of(plan);
    cr_assert_str_eq(
        text, "plan      by test, 2 ranks, times by hand\n"
              "policies  a+b sdp\n"
              "step      12.0 us predicted; compute 7.50 us, communication 4.85 us, of which "
              "4.50 us exposed\n"
              "proven    no plan is faster than 10.0 us (channel): gap 20.000 %\n"
              "solver    time limit\n"
              "memory    1.83 KiB a rank of 2.00 KiB; largest row 1.66 KiB, pages of 4.00 KiB "
              "round up 10.00 %\n"
              "  memory at the peak, slot B:a\n"
              "  sharded parameters        0 B\n"
              "  gathered parameters     200 B\n"
              "  sharded gradients       100 B\n"
              "  full gradients          400 B\n"
              "  optimizer state           0 B\n"
              "  activations               0 B\n"
              "  communication             0 B\n"
              "  temporary                 0 B\n"
              "  base                   1000 B\n"
              "  in all               1.66 KiB\n");
    free(text);
    weft_plan_destroy(plan);
}

Test(plan_report, says_when_nothing_outside_the_arena_is_counted)
{
    struct weft_problem problem = small_problem();
    struct weft_plan *plan = small_plan(&problem);
    expect_no(plan, "outside the arena");
    problem.n_common = 0;
    expect_line(plan, "          nothing outside the arena is counted: give cluster.base, or a "
                      "profile\n");
    weft_plan_destroy(plan);
}

Test(plan_report, says_that_no_limit_was_given)
{
    struct weft_problem problem = small_problem();
    struct weft_plan *plan = small_plan(&problem);
    plan->prediction.total_bytes = 1870;
    expect_line(plan, "\nmemory    1.83 KiB a rank (largest row 1.66 KiB), no limit given\n");
    expect_no(plan, "EiB");
    weft_plan_destroy(plan);
}

Test(plan_report, says_nothing_of_pages_before_there_are_any)
{
    struct weft_problem problem = small_problem();
    struct weft_plan *plan = small_plan(&problem);
    expect_line(plan, "\nmemory    largest row 1.66 KiB a rank, without pages; no limit given\n");
    problem.tiers[0].limit_bytes = 2048;
    expect_line(plan, "\nmemory    largest row 1.66 KiB a rank, without pages; limit 2.00 KiB\n");
    weft_plan_destroy(plan);
}

/* The plan's own period is closed, and that says nothing of the other. */
Test(plan_report, tells_the_gap_over_all_periods_where_that_is_wider)
{
    struct weft_problem problem = small_problem();
    struct weft_plan *plan = small_plan(&problem);
    struct weft_plan_variant other = {.problem = &problem, .bound_ns = 8000};
    plan->prediction.step_ns = plan->bound_ns = 10000;
    plan->bound_by = "channel";
    plan->n_others = 1;
    plan->others = &other;
    expect_line(plan, ": gap 0.000 %\n");
    expect_line(plan, "none faster than 8.00 us: gap 25.000 %\n");
    other.bound_ns = 11000;
    expect_line(plan, "none faster than 10.0 us\n");
    plan->n_others = 0;
    weft_plan_destroy(plan);
}

/* Without a bound and a solver there is no line for them. */
Test(plan_report, leaves_out_what_is_not_known)
{
    struct weft_problem problem = small_problem();
    struct weft_plan *plan = small_plan(&problem);
    expect_no(plan, "proven");
    expect_no(plan, "solver");
    plan->solver_stop = "";
    expect_no(plan, "solver");
    plan->solver_stop = "solver missing: no HiGHS";
    expect_line(plan, "\nsolver    solver missing: no HiGHS\n");
    plan->solver_stop = "gap closed";
    plan->solver_name = "HiGHS 1.2.3";
    expect_line(plan, "\nsolver    gap closed, by HiGHS 1.2.3\n");
    plan->solver_stop = "";
    expect_line(plan, "\nsolver    HiGHS 1.2.3\n");
    weft_plan_destroy(plan);
}

/* A problem of units alone, named for their order. */
static void expect_policies(const enum weft_policy *policies, int32_t n, const char *text)
{
    static const char *const names[] = {"a", "b+c", "h.0", "h.1", "\xC3\xA9"};
    struct weft_problem_decision decisions[5] = {{0}};
    struct weft_problem_strategy own[5] = {{0}};
    for (int i = 0; i < n; i++) {
        own[i] = (struct weft_problem_strategy){weft_policy_name(policies[i]),
                                                (int32_t)policies[i],
                                                policies[i],
                                                0,
                                                0,
                                                NULL,
                                                NULL,
                                                WEFT_LOCATION_DEVICE,
                                                false,
                                                WEFT_RECOMPUTE_NONE,
                                                WEFT_LOCATION_DEVICE,
                                                WEFT_LOCATION_DEVICE};
        decisions[i] = (struct weft_problem_decision){names[i], i, 1, &own[i], -1, 0, 0, false, 0};
    }
    int32_t first_of_each[5] = {0};
    struct weft_problem problem = {.n_decisions = n, .decisions = decisions};
    struct weft_plan plan = {.problem = &problem, .strategies = first_of_each};
    struct weft_text out;
    weft_text_init(&out);
    weft_report_policies(&plan, &out);
    cr_assert_str_eq(weft_text_chars(&out), text);
    weft_text_finish(&out);
}

Test(plan_report, policies_fold_equal_neighbours)
{
    const enum weft_policy dp = WEFT_POLICY_DP, sdp = WEFT_POLICY_SDP, fsdp = WEFT_POLICY_FSDP;
    expect_policies((const enum weft_policy[]){dp}, 1, "a dp");
    expect_policies((const enum weft_policy[]){fsdp, fsdp, fsdp, fsdp, fsdp}, 5,
                    "a+b+c+h.0+h.1+\xC3\xA9 fsdp");
    expect_policies((const enum weft_policy[]){dp, sdp, sdp, dp, dp}, 5,
                    "a dp, b+c+h.0 sdp, h.1+\xC3\xA9 dp");
    expect_policies((const enum weft_policy[]){sdp, dp, sdp}, 3, "a sdp, b+c dp, h.0 sdp");
}

/* Many runs make many lines, none of them wide, of the same words in the same order. */
Test(plan_report, policies_wrap)
{
    enum { UNITS = 60 };
    struct weft_problem problem = small_problem();
    struct weft_problem_decision decisions[UNITS] = {{0}};
    struct weft_problem_strategy own[2] = {
        {"sdp", 0, WEFT_POLICY_SDP, 0, 0, NULL, NULL, WEFT_LOCATION_DEVICE, false,
         WEFT_RECOMPUTE_NONE, WEFT_LOCATION_DEVICE, WEFT_LOCATION_DEVICE},
        {"fsdp", 1, WEFT_POLICY_FSDP, 0, 0, NULL, NULL, WEFT_LOCATION_DEVICE, false,
         WEFT_RECOMPUTE_NONE, WEFT_LOCATION_DEVICE, WEFT_LOCATION_DEVICE}};
    int32_t strategies[UNITS];
    char names[UNITS][16];
    for (int u = 0; u < UNITS; u++) {
        snprintf(names[u], sizeof names[u], "layers.%d", u);
        decisions[u] = (struct weft_problem_decision){names[u], 2 * u, 2, own, -1, 0, 0, false, 0};
        strategies[u] = u % 2;
    }
    problem.n_decisions = UNITS;
    problem.decisions = decisions;
    const struct weft_plan wide = {
        .problem = &problem, .planner = "test", .strategies = strategies};
    struct weft_text list, unwrapped;
    weft_text_init(&list);
    weft_text_init(&unwrapped);
    weft_report_policies(&wide, &list);
    struct weft_text report;
    weft_text_init(&report);
    report.columns = 72;
    ADD_TEXT(&report, weft_report_plan(&wide, &answer));
    char *text = report.data;
    char *at = strstr(text, "policies  ") + 10, *end = strstr(text, "\nstep ");
    *end = '\0';
    for (int line = 0; at; line++) {
        char *next = strchr(at, '\n');
        size_t length = next ? (size_t)(next - at) : strlen(at);
        cr_assert_leq(length + 10, 72);
        cr_assert(length + 10 > 52 || !next, "line %d is short", line);
        weft_text_addf(&unwrapped, "%s%.*s", line ? " " : "", (int)length, at);
        if (next) cr_assert_eq(strspn(next + 1, " "), 10);
        at = next ? next + 11 : NULL;
    }
    cr_assert_str_eq(weft_text_chars(&unwrapped), weft_text_chars(&list));
    free(text);
    weft_text_finish(&list);
    weft_text_finish(&unwrapped);
}

Test(plan_report, memory_names_its_slot)
{
    struct weft_problem problem = small_problem();
    struct weft_plan *plan = small_plan(&problem);
    struct weft_text out;
    weft_text_init(&out);
    ADD_TEXT(&out, weft_report_memory(plan, 2, &answer));
    cr_assert(strstr(weft_text_chars(&out), "  memory in slot fill"), "%s", out.data);
    cr_assert(strstr(weft_text_chars(&out), "gathered parameters     200 B\n"), "%s", out.data);
    cr_assert(strstr(weft_text_chars(&out), "in all               1.17 KiB\n"), "%s", out.data);
    weft_text_finish(&out);
    weft_plan_destroy(plan);
}

static struct weft_json *json_of(const struct weft_plan *plan)
{
    struct weft_text out;
    struct weft_json *document = NULL;
    struct weft_error err = {0};
    weft_text_init(&out);
    ADD_JSON(&out, 2, weft_report_plan(plan, &answer));
    enum weft_status status =
        weft_json_parse(weft_text_chars(&out), out.length, "report", &document, &err);
    cr_assert_eq(status, WEFT_OK, "%s", err.text);
    weft_text_finish(&out);
    return document;
}

static int64_t integer_of(const struct weft_json_value *object, const char *name)
{
    int64_t value = -1;
    cr_assert(weft_json_integer(weft_json_member(object, name), &value), "no integer %s", name);
    return value;
}

static void expect_string(const struct weft_json_value *object, const char *name, const char *text)
{
    const char *value = NULL;
    cr_assert(weft_json_string(weft_json_member(object, name), &value), "no string %s", name);
    cr_assert_str_eq(value, text);
}

Test(plan_report, json_leaves_out_what_is_not_known)
{
    struct weft_problem problem = small_problem();
    problem.decisions[0].name = "a \"quoted\" \xC3\xA9";
    struct weft_plan *plan = small_plan(&problem);
    struct weft_json *document = json_of(plan);
    const struct weft_json_value *root = weft_json_root(document);
    cr_assert_null(weft_json_member(root, "memory_limit_bytes"));
    static const char *const of_bound[] = {"bound_ns", "bound_by",    "least_bound_ns",
                                           "gap",      "solver_stop", "solver"};
    for (size_t i = 0; i < sizeof of_bound / sizeof of_bound[0]; i++)
        cr_assert_null(weft_json_member(root, of_bound[i]), "%s", of_bound[i]);
    expect_string(root, "peak_slot", "B:a");
    expect_string(weft_json_member(root, "policies"), problem.decisions[0].name, "sdp");
    weft_json_destroy(document);
    problem.tiers[0].limit_bytes = 2048;
    plan->certificate.n_nodes = 1;
    document = json_of(plan);
    root = weft_json_root(document);
    cr_assert_eq(integer_of(root, "memory_limit_bytes"), 2048);
    cr_assert_eq(integer_of(root, "bound_ns"), plan->bound_ns);
    expect_string(root, "bound_by", "");
    expect_string(root, "solver_stop", "");
    weft_json_destroy(document);
    weft_plan_destroy(plan);
}

/* The categories at the peak sum to the peak, and every unit has the policy that it got. */
Test(plan_report, json_agrees_with_the_plan)
{
    for (uint64_t seed = 1; seed <= 30; seed++) {
        struct random_case random;
        random_case_init(&random, seed);
        struct weft_plan *plan = random_plan(&random, seed);
        struct weft_json *document = json_of(plan);
        const struct weft_json_value *root = weft_json_root(document);
        int64_t sum = 0;
        const struct weft_json_value *memory = weft_json_member(root, "peak_memory_bytes");
        for (int c = 0; c < WEFT_CATEGORY_OF_DEVICE; c++)
            sum += integer_of(memory, weft_category_key((enum weft_category)c));
        cr_assert_eq(sum, integer_of(root, "peak_bytes"));
        cr_assert_eq(sum, plan->prediction.peak_bytes);
        cr_assert_eq(integer_of(root, "step_ns"), plan->prediction.step_ns);
        cr_assert_eq(integer_of(root, "exposed_ns"), plan->prediction.exposed_ns);
        const struct weft_json_value *policies = weft_json_member(root, "policies");
        cr_assert_eq(weft_json_count(policies), (size_t)plan->problem->n_decisions);
        for (int32_t u = 0; u < plan->problem->n_decisions; u++)
            expect_string(policies, plan->problem->decisions[u].name,
                          weft_plan_chosen(plan, u)->name);
        weft_json_destroy(document);
        weft_plan_destroy(plan);
        random_case_finish(&random);
    }
}
