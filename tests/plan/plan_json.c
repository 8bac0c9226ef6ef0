/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/plan.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "program/predict.h"
#include "tests/program/random_model.h"

static enum weft_status parse_plan(const char *text, size_t length, struct weft_plan **out,
                                   struct weft_error *err)
{
    *err = (struct weft_error){0};
    return weft_plan_parse(text, length, "p.json", out, err);
}

static void expect_equal(const struct weft_plan *a, const struct weft_plan *b)
{
    struct weft_text differences;
    weft_text_init(&differences);
    weft_problem_compare(a->problem, b->problem, &differences);
    cr_assert_eq(differences.length, 0, "%s", weft_text_chars(&differences));
    weft_text_finish(&differences);
    cr_assert_str_eq(a->planner, b->planner);
    cr_assert_eq(a->n_placements, b->n_placements);
    cr_assert_eq(
        memcmp(a->placements, b->placements, (size_t)a->n_placements * sizeof *a->placements), 0);
    cr_assert_arr_eq(a->strategies, b->strategies,
                     (size_t)a->problem->n_decisions * sizeof *a->strategies);
    cr_assert_eq(a->prediction.step_ns, b->prediction.step_ns);
    cr_assert_eq(a->prediction.exposed_ns, b->prediction.exposed_ns);
    cr_assert_eq(a->prediction.compute_ns, b->prediction.compute_ns);
    cr_assert_eq(a->prediction.channel_ns, b->prediction.channel_ns);
    cr_assert_eq(a->prediction.peak_bytes, b->prediction.peak_bytes);
    cr_assert_eq(a->prediction.peak_slot, b->prediction.peak_slot);
    cr_assert_eq(a->prediction.arena_bytes, b->prediction.arena_bytes);
    cr_assert_eq(a->prediction.total_bytes, b->prediction.total_bytes);
    cr_assert_eq(a->bound_ns, b->bound_ns);
    cr_assert(weft_hash_equal(weft_plan_hash(a), weft_plan_hash(b)));
}

Test(plan_json, round_trip)
{
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct random_case random;
        struct weft_error err;
        struct weft_plan *back = NULL;
        struct weft_text text;
        random_case_init(&random, seed);
        struct weft_plan *plan = random_plan(&random, 0);
        struct weft_program *program = random_program(&random, plan);
        cr_assert_eq(weft_paging_list(program->paging, &plan->pool, &plan->pages, &err), WEFT_OK);
        weft_program_destroy(program);
        plan->prediction.arena_bytes = 4096;
        plan->prediction.total_bytes = 8192;
        plan->bound_ns = seed % 2 == 0 ? 0 : 123456789;
        plan->bound_by = seed % 2 == 0 ? NULL : "compute";
        plan->solver_stop = seed % 3 == 0 ? NULL : "time \"limit\"";
        plan->solver_name = seed % 4 == 0 ? "HiGHS 1.2.3" : NULL;
        weft_text_init(&text);
        weft_plan_write(plan, &text);
        enum weft_status status = parse_plan(weft_text_chars(&text), text.length, &back, &err);
        cr_assert_eq(status, WEFT_OK, "seed %d: %s", (int)seed, err.text);
        expect_equal(plan, back);
        cr_assert_eq(plan->bound_by == NULL, back->bound_by == NULL);
        cr_assert_eq(plan->solver_stop == NULL, back->solver_stop == NULL);
        if (back->solver_stop != NULL) cr_assert_str_eq(back->solver_stop, plan->solver_stop);
        cr_assert_eq(plan->solver_name == NULL, back->solver_name == NULL);
        if (back->solver_name != NULL) cr_assert_str_eq(back->solver_name, plan->solver_name);
        cr_assert_eq(weft_plan_matches(back->problem, random.stages.problem, &err), WEFT_OK);
        weft_plan_destroy(back);
        weft_plan_destroy(plan);
        weft_text_finish(&text);
        random_case_finish(&random);
    }
}

Test(plan_json, no_limit_is_null)
{
    struct random_case random;
    struct weft_error err;
    struct weft_plan *back = NULL;
    struct weft_text text;
    random_case_init(&random, 1);
    cr_assert_eq(random.stages.problem->tiers[0].limit_bytes, INT64_MAX);
    struct weft_plan *plan = random_plan(&random, 0);
    weft_text_init(&text);
    weft_plan_write(plan, &text);
    cr_assert(strstr(weft_text_chars(&text), "\"limit_bytes\": null") != NULL);
    cr_assert_eq(parse_plan(weft_text_chars(&text), text.length, &back, &err), WEFT_OK);
    cr_assert_eq(back->problem->tiers[0].limit_bytes, INT64_MAX);
    weft_plan_destroy(back);
    weft_plan_destroy(plan);
    weft_text_finish(&text);
    random_case_finish(&random);
}

/* The text of a plan with at least one gather and one reduction. The caller frees. */
static char *plan_text(struct random_case *random, struct weft_plan **plan)
{
    uint64_t seed = 0;
    bool fits = false;
    for (; !fits; seed++) {
        random_case_init_plain(random, seed);
        *plan = random_plan(random, 0);
        bool gathers = false, reduces = false;
        for (int32_t i = 0; i < (*plan)->n_placements; i++) {
            int32_t kind = (*plan)->problem->items[(*plan)->placements[i].item].item.kind;
            gathers |= kind == WEFT_ALL_GATHER;
            reduces |= kind == WEFT_REDUCE_SCATTER;
        }
        fits = gathers && reduces && (*plan)->problem->n_decisions >= 3;
        if (fits) break;
        weft_plan_destroy(*plan);
        random_case_finish(random);
    }
    struct weft_text text;
    struct weft_error err = {0};
    (*plan)->solver_name = "HiGHS 1.2.3";
    struct weft_program *program = random_program(random, *plan);
    cr_assert_eq(weft_paging_list(program->paging, &(*plan)->pool, &(*plan)->pages, &err), WEFT_OK);
    weft_program_destroy(program);
    weft_text_init(&text);
    weft_plan_write(*plan, &text);
    cr_assert(weft_text_ok(&text));
    return text.data;
}

/* Replaces the value of the n-th `"key": ` by `value`; the caller frees. Returns NULL without such
 * a key. */
static char *replace_value(const char *text, const char *key, int n, const char *value)
{
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\": ", key);
    const char *at = text;
    for (int i = 0; i <= n; i++) {
        at = strstr(i == 0 ? at : at + 1, quoted);
        if (at == NULL) return NULL;
    }
    at += strlen(quoted);
    const char *end = at;
    if (*at == '"') {
        end = strchr(at + 1, '"') + 1;
    } else if (*at == '[' || *at == '{') {
        int depth = 0;
        do {
            depth += *end == '[' || *end == '{';
            depth -= *end == ']' || *end == '}';
            end++;
        } while (depth > 0);
    } else {
        end += strcspn(at, ",}\n");
    }
    size_t head = (size_t)(at - text);
    char *out = malloc(strlen(text) + strlen(value) + 1);
    memcpy(out, text, head);
    strcpy(out + head, value);
    strcat(out, end);
    return out;
}

#define TEN "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, "

/* Every key, with a value of the right type that cannot be. */
static const struct {
    const char *key, *value, *word;
} corruptions[] = {
    {"format", "\"weft-trace\"", "weft-plan"},
    {"version", "1", "version 1"},
    {"version", "9", "version 9 of weft-plan"},
    {"weft", "7", "weft"},
    {"planner", "7", "planner"},
    {"decision_hash", "\"12\"", "decision_hash"},
    {"decision_hash", "null", "decision_hash"},
    {"step_ns", "-1", "step_ns"},
    {"exposed_ns", "1.5", "exposed_ns"},
    {"compute_ns", "1e300", "compute_ns"},
    {"channel_ns", "null", "channel_ns"},
    {"peak_bytes", "-5", "peak_bytes"},
    {"peak_slot", "1000000", "peak_slot"},
    {"arena_bytes", "\"0\"", "arena_bytes"},
    {"total_bytes", "[]", "total_bytes"},
    {"bound_ns", "-1", "bound_ns"},
    {"by", "3", "by"},
    {"gap", "-0.5", "gap"},
    {"stop", "3", "stop"},
    {"other_periods", "{}", "other_periods"},
    {"other_periods", "[{}]", "other_periods[0]"},
    {"other_periods", "[" TEN TEN TEN TEN TEN TEN TEN TEN TEN "91, 92]", "at most 91"},
    {"strategies", "[\"fsdp\"]", "strategies"},
    {"strategies", "[7, 7, 7, 7]", "strategies[0]"},
    {"placements", "[]", "placements"},
    {"pages", "[]", "pages"},
    {"page_bytes", "-1", "page_bytes"},
    {"page_bytes", "4097", "lists of pages of 4097 bytes"},
    {"page_bytes", "4194304", "page_bytes"},
    {"tables", "0", "in 0 tables"},
    {"tables", "3", "tables"},
    {"stretches", "7", "stretches"},
    {"stretches", "[7]", "stretches are lists"},
    {"stretches", "[[0]]", "stretches are lists"},
    {"stretches", "[[0, 0]]", "stretches are lists"},
    {"stretches", "[[-1, 1]]", "stretches are lists"},
    {"stretches", "[[2147483647, 1]]", "stretches are lists"},
    {"stretches", "[[0, \"1\"]]", "stretches are lists"},
    {"item", "100000", "item"},
    {"item", "-1", "item"},
    {"block", "9", "block"},
    {"launch", "-1", "launch"},
    {"launch", "100000", "launch"},
    {"deadline", "100000", "deadline"},
    {"deadline", "0", "placements"},
    {"config_hash", "\"12\"", "config_hash"},
    {"profile_hash", "\"zz\"", "profile_hash"},
    {"profile_source", "1", "profile_source"},
    {"ranks", "0", "ranks"},
    {"tiers", "[]", "there are 0 tiers; expected 1 to 8"},
    {"tiers", "[1]", "tiers[0]"},
    {"limit_bytes", "0", "limit_bytes"},
    {"limit_bytes", "\"all\"", "limit_bytes"},
    {"agree_ns", "-1", "agree_ns"},
    {"lanes", "[]", "there are 0 lanes"},
    {"compute_rate", "-1", "compute_rate"},
    {"rate", "\"fast\"", "rate"},
    {"lane", "0", "lane"},
    {"lane", "3", "on no lane"},
    {"acquires", "1", "acquires is not true or false"},
    {"may_block", "null", "may_block is not true or false"},
    {"after", "-2", "after"},
    {"after", "100000", "there is no item that it comes after"},
    {"after", "0", "it comes after itself, round a circle"},
    {"slots", "[]", "is not in the period"},
    {"slots", "{}", "slots"},
    {"kind", "\"lunch\"", "lunch"},
    {"index", "-2", "index"},
    {"index", "77", "slots"},
    {"time_ns", "9007199254740991", "2^53"},
    {"kinds", "[\"gold\"]", "there is no kind of strategy \"gold\""},
    {"kinds", "[]", "decisions[0].strategies[0]: there is no kind of strategy"},
    {"decisions", "[]", "there is no decision 0"},
    {"update_slot", "-2", "update_slot"},
    {"update_slot", "-1", "slots"},
    {"times", "{}", "decisions[0].strategies[0]: "},
    {"slot", "100000", "is not in the period"},
    {"holds", "{}", "decisions[0].strategies[0]: "},
    {"first", "1000", "slots"},
    {"first", "-1", "decisions[0].strategies[0].holds[0]: the member \"first\""},
    {"last", "1000", "slots"},
    {"bytes", "-1", "bytes"},
    {"bytes", "9007199254740991", "2^53"},
    {"category", "\"gold\"", "decisions[0].strategies[0].holds[0]: there is no category \"gold\""},
    {"common", "7", "common"},
    {"items", "[]", "placements"},
    {"decision", "99", "there is no decision 99"},
    {"gather", "-1", "gather"},
    {"gather", "5", "items"},
    {"blocks", "0", "blocks"},
    {"blocks", "2147483647", "blocks"},
    {"block_bytes", "-1", "block_bytes"},
    {"block_ns", "9007199254740991", "out of range"},
    {"held_bytes", "9007199254740991", "out of range"},
};

Test(plan_json, every_field_corrupted_is_refused)
{
    struct random_case random;
    struct weft_plan *plan, *out = NULL;
    char *text = plan_text(&random, &plan);
    for (size_t i = 0; i < sizeof corruptions / sizeof *corruptions; i++) {
        struct weft_error err;
        char *bad = replace_value(text, corruptions[i].key, 0, corruptions[i].value);
        cr_assert_not_null(bad, "%s is not in the file", corruptions[i].key);
        enum weft_status status = parse_plan(bad, strlen(bad), &out, &err);
        cr_assert_eq(status, WEFT_E_DATA, "%s: %s is not refused", corruptions[i].key,
                     corruptions[i].value);
        cr_assert(strncmp(err.text, "p.json", 6) == 0, "%s", err.text);
        cr_assert(strstr(err.text, corruptions[i].word) != NULL, "%s: %s: \"%s\"",
                  corruptions[i].key, corruptions[i].value, err.text);
        cr_assert_null(out);
        free(bad);
    }
    free(text);
    weft_plan_destroy(plan);
    random_case_finish(&random);
}

/* A terminal shows the name of a solver. */
Test(plan_json, a_solver_has_a_printable_name)
{
    static const char *const values[] = {"3", "null", "\"a\\u001b[31m\""};
    struct random_case random;
    struct weft_plan *plan, *out = NULL;
    char *text = plan_text(&random, &plan);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        struct weft_error err = {0};
        char *bad = replace_value(text, "name", 0, values[i]);
        cr_assert_eq(parse_plan(bad, strlen(bad), &out, &err), WEFT_E_DATA, "%s", values[i]);
        cr_assert_not_null(strstr(err.text, "solver: "), "%s", err.text);
        cr_assert_not_null(strstr(err.text, "name"), "%s", err.text);
        free(bad);
    }
    free(text);
    weft_plan_destroy(plan);
    random_case_finish(&random);
}

/* A changed decision is reported, even if the result is an equally good plan. */
Test(plan_json, changed_decision_is_told)
{
    struct random_case random;
    struct weft_error err = {0};
    struct weft_plan *plan, *out = NULL;
    char *text = plan_text(&random, &plan);
    cr_assert_eq(parse_plan(text, strlen(text), &out, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_plan_check_prediction(out, &err), WEFT_OK, "%s", err.text);
    int32_t *parts[] = {&out->placements[0].launch, &out->placements[0].deadline,
                        &out->strategies[0]};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        struct weft_hash before = weft_plan_decision_hash(out);
        ++*parts[i];
        cr_assert(!weft_hash_equal(weft_plan_decision_hash(out), before));
        --*parts[i];
        cr_assert(weft_hash_equal(weft_plan_decision_hash(out), before));
    }
    weft_plan_destroy(out);
    char *bad = replace_value(text, "decision_hash", 0, "\"00000000000000000000000000000000\"");
    cr_assert_eq(parse_plan(bad, strlen(bad), &out, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_plan_check_prediction(out, &err), WEFT_E_DATA);
    cr_assert(strstr(err.text, "decision_hash") != NULL, "%s", err.text);
    weft_plan_destroy(out);
    free(bad);
    free(text);
    weft_plan_destroy(plan);
    random_case_finish(&random);
}

/* Every member left out, wherever it stands for the first time. */
Test(plan_json, every_field_missing_is_refused)
{
    struct random_case random;
    struct weft_plan *plan, *out = NULL;
    char *text = plan_text(&random, &plan);
    for (size_t i = 0; i < sizeof corruptions / sizeof *corruptions; i++) {
        struct weft_error err;
        char quoted[64];
        snprintf(quoted, sizeof quoted, "\"%s\": ", corruptions[i].key);
        char *bad = malloc(strlen(text) + 1);
        strcpy(bad, text);
        char *at = strstr(bad, quoted);
        cr_assert_not_null(at);
        at[1] = '_';
        cr_assert_eq(parse_plan(bad, strlen(bad), &out, &err), WEFT_E_DATA, "%s",
                     corruptions[i].key);
        free(bad);
    }
    free(text);
    weft_plan_destroy(plan);
    random_case_finish(&random);
}

Test(plan_json, unknown_field_is_refused)
{
    struct random_case random;
    struct weft_plan *plan, *out = NULL;
    struct weft_error err;
    char *text = plan_text(&random, &plan);
    static const char *const places[] = {"format", "step_ns", "bound_ns", "gap",  "item",
                                         "ranks",  "index",   "decision", "bytes"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        char value[64], quoted[64];
        snprintf(quoted, sizeof quoted, "\"%s\": ", places[i]);
        char *at = strstr(text, quoted);
        cr_assert_not_null(at);
        snprintf(value, sizeof value, "\"colour\": 1, ");
        char *bad = malloc(strlen(text) + sizeof value);
        size_t head = (size_t)(at - text);
        memcpy(bad, text, head);
        strcpy(bad + head, value);
        strcat(bad, at);
        cr_assert_eq(parse_plan(bad, strlen(bad), &out, &err), WEFT_E_DATA, "beside %s", places[i]);
        cr_assert(strstr(err.text, "colour") != NULL, "%s", err.text);
        free(bad);
    }
    free(text);
    weft_plan_destroy(plan);
    random_case_finish(&random);
}

Test(plan_json, truncated_is_refused)
{
    struct random_case random;
    struct weft_plan *plan, *out = NULL;
    struct weft_error err;
    char *text = plan_text(&random, &plan);
    size_t length = strlen(text);
    for (size_t n = 0; n < length - 2; n += 1 + n / 20)
        cr_assert_eq(parse_plan(text, n, &out, &err), WEFT_E_DATA, "%d bytes", (int)n);
    free(text);
    weft_plan_destroy(plan);
    random_case_finish(&random);
}

/* Mutated bytes are refused with a reason. Otherwise the plan can be predicted, relaxed, lowered
 * and verified without harm. */
Test(plan_json, mutated_bytes_do_no_harm)
{
    static const char bytes[] = "0123456789-.,:[]{}\"en";
    struct random_case random;
    struct weft_plan *plan;
    char *paged = plan_text(&random, &plan);
    struct weft_text without;
    plan->pages = (struct weft_page_lists){0};
    weft_text_init(&without);
    weft_plan_write(plan, &without);
    cr_assert(weft_text_ok(&without));
    int accepted = 0, refused = 0, verified = 0;
    for (uint64_t i = 0; i < 4000; i++) {
        struct weft_plan *out = NULL;
        struct weft_error err;
        const char *text = i % 2 == 0 ? paged : weft_text_chars(&without);
        size_t length = strlen(text);
        char *bad = malloc(length + 1);
        memcpy(bad, text, length + 1);
        uint64_t changes = 1 + weft_rng_below(i, 1, 0, 3);
        for (uint64_t c = 0; c < changes; c++) {
            size_t at = (size_t)weft_rng_below(i, 2, c, length);
            bad[at] = bytes[weft_rng_below(i, 3, c, sizeof bytes - 1)];
        }
        if (parse_plan(bad, length, &out, &err) == WEFT_OK) {
            accepted++;
            cr_assert_eq(weft_plan_predict(out, &err), WEFT_OK);
            cr_assert_eq(weft_plan_relax(out, weft_plan_peak(out, 0, NULL), &err), WEFT_OK);
            struct weft_program *program = NULL;
            if (weft_program_lower(out, &random.inputs, &program, &err) == WEFT_OK)
                verified += weft_program_verify(program, INT64_MAX, &err) == WEFT_OK;
            weft_program_destroy(program);
            weft_plan_destroy(out);
        } else {
            refused++;
            cr_assert(err.text[0] != '\0');
        }
        free(bad);
    }
    cr_assert_gt(accepted, 10);
    cr_assert_gt(refused, 100);
    cr_assert_gt(verified, 10);
    free(paged);
    weft_text_finish(&without);
    weft_plan_destroy(plan);
    random_case_finish(&random);
}
