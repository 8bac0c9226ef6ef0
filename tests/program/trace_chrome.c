/* SPDX-License-Identifier: Apache-2.0 */
#include "program/trace_chrome.h"

#include <criterion/criterion.h>
#include <string.h>

#include "base/json/json.h"
#include "program/program_text.h"
#include "tests/program/random_model.h"

/* A file of rank 3 with one step, 5 us after the clock's zero. */
static void write_file(const struct weft_program *program, const struct weft_plan *plan,
                       const struct weft_trace *trace, bool names_kernels, struct weft_text *out)
{
    const struct weft_chrome_process process = {
        .number = 3, .order = 3, .title = "rank 3", .names_kernels = names_kernels};
    struct weft_text events;
    weft_text_init(&events);
    weft_chrome_add_names(&process, program, &events);
    weft_chrome_add_step(&process, program, plan, trace, 7, 5000, &events);
    weft_chrome_add_file(3, 4, trace->source, &events, out);
    weft_text_finish(&events);
}

static void expect_parses(const struct weft_text *text, const char *array, size_t least)
{
    struct weft_json *document = NULL;
    struct weft_error err = {0};
    enum weft_status status =
        weft_json_parse(weft_text_chars(text), text->length, "trace", &document, &err);
    cr_assert_eq(status, WEFT_OK, "%s", err.text);
    const struct weft_json_value *events = weft_json_member(weft_json_root(document), array);
    cr_assert_geq(weft_json_count(events), least);
    weft_json_destroy(document);
}

Test(trace_chrome, written_forms_are_json)
{
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct random_case random;
        struct weft_error err = {0};
        struct weft_text text;
        struct weft_trace *trace = NULL;
        random_case_init(&random, seed);
        struct weft_plan *plan = random_plan(&random, 0);
        struct weft_program *program = random_program(&random, plan);
        cr_assert_eq(weft_simulate(program, &trace, &err), WEFT_OK);
        weft_text_init(&text);
        write_file(program, plan, trace, false, &text);
        /* A name a lane, a counter a slot, and every collective. */
        expect_parses(&text, "traceEvents",
                      (size_t)program->n_lanes + (size_t)program->n_slots +
                          (size_t)plan->n_placements);
        cr_assert(strstr(weft_text_chars(&text), "\"network\"") != NULL);
        weft_text_finish(&text);
        weft_program_write(program, &text);
        expect_parses(&text, "instructions", (size_t)program->n_instructions);
        weft_text_finish(&text);
        weft_trace_destroy(trace);
        weft_program_destroy(program);
        weft_plan_destroy(plan);
        random_case_finish(&random);
    }
}

/* Nanoseconds become thousandths of microseconds. */
Test(trace_chrome, counts_in_microseconds)
{
    struct random_case random;
    struct weft_error err = {0};
    struct weft_text text;
    struct weft_trace *trace = NULL;
    random_case_init(&random, 3);
    struct weft_plan *plan = random_plan(&random, 0);
    struct weft_program *program = random_program(&random, plan);
    cr_assert_eq(weft_simulate(program, &trace, &err), WEFT_OK);
    for (int32_t i = 0; i < program->n_instructions; i++)
        trace->records[i] = (struct weft_record){0, 0};
    trace->records[program->n_instructions - 1] = (struct weft_record){1234567, 1234568};
    weft_text_init(&text);
    write_file(program, plan, trace, false, &text);
    cr_assert(strstr(weft_text_chars(&text), "\"ts\": 1239.567, \"dur\": 0.001") != NULL, "%s",
              weft_text_chars(&text));
    cr_assert(strstr(weft_text_chars(&text), "\"ts\": 5, \"dur\": 1234.567") != NULL);
    weft_text_finish(&text);
    weft_trace_destroy(trace);
    weft_program_destroy(program);
    weft_plan_destroy(plan);
    random_case_finish(&random);
}

struct found {
    int32_t n_launches, n_blocks, n_starts, n_ends, n_kernels;
};

static bool has_text(const struct weft_json_value *event, const char *key, const char *begin)
{
    const char *text = NULL;
    return weft_json_string(weft_json_member(event, key), &text) &&
           strncmp(text, begin, strlen(begin)) == 0;
}

static void count_events(const struct weft_json_value *events, struct found *out)
{
    const struct weft_json_value *event = weft_json_first(events);
    for (; event != NULL; event = weft_json_next(event)) {
        out->n_launches += has_text(event, "cat", "launch");
        out->n_blocks += has_text(event, "cat", "communication");
        out->n_starts += has_text(event, "ph", "s");
        out->n_ends += has_text(event, "ph", "f");
        out->n_kernels += has_text(event, "cat", "kernel") && has_text(event, "name", "nccl");
    }
}

static struct found find_events(const struct weft_program *program, const struct weft_plan *plan,
                                const struct weft_trace *trace, bool names_kernels)
{
    struct weft_json *document = NULL;
    struct weft_error err = {0};
    struct weft_text text;
    struct found found = {0};
    weft_text_init(&text);
    write_file(program, plan, trace, names_kernels, &text);
    cr_assert_eq(weft_json_parse(weft_text_chars(&text), text.length, "trace", &document, &err),
                 WEFT_OK, "%s", err.text);
    count_events(weft_json_member(weft_json_root(document), "traceEvents"), &found);
    weft_json_destroy(document);
    weft_text_finish(&text);
    return found;
}

/* Every block has a launch and a flow through it. A flow ends once, where compute waits. */
Test(trace_chrome, flows_lead_from_launch_to_wait)
{
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct random_case random;
        struct weft_error err = {0};
        struct weft_trace *trace = NULL;
        random_case_init(&random, seed);
        struct weft_plan *plan = random_plan(&random, 0);
        struct weft_program *program = random_program(&random, plan);
        int32_t n_blocks = 0, n_awaited = 0, n_sums = 0;
        for (int32_t i = 0; i < program->n_instructions; i++)
            if (weft_op_stream(program->instructions[i].op) == WEFT_STREAM_CHANNEL) n_sums++;
        for (int32_t i = 0; i < program->n_instructions; i++) {
            bool is_awaited = false;
            if (program->instructions[i].lane == WEFT_LANE_COMPUTE) continue;
            n_blocks++;
            for (int32_t w = i + 1; w < program->n_instructions; w++) {
                const struct weft_instruction *at = &program->instructions[w];
                if (at->lane != WEFT_LANE_COMPUTE) continue;
                for (int32_t d = 0; d < at->n_dependencies; d++)
                    is_awaited |= program->dependencies[at->first_dependency + d] == i;
            }
            n_awaited += is_awaited;
        }
        cr_assert_eq(weft_simulate(program, &trace, &err), WEFT_OK);
        const struct found plain = find_events(program, plan, trace, false);
        cr_assert_eq(plain.n_launches, n_blocks);
        cr_assert_eq(plain.n_starts, n_blocks);
        cr_assert_eq(plain.n_ends, n_awaited, "seed %d", (int)seed);
        cr_assert_eq(plain.n_blocks, n_sums);
        cr_assert_eq(plain.n_kernels, 0);
        const struct found kernels = find_events(program, plan, trace, true);
        cr_assert_eq(kernels.n_kernels, n_sums);
        cr_assert_geq(kernels.n_launches, n_blocks);
        cr_assert_eq(kernels.n_ends, n_awaited);
        weft_trace_destroy(trace);
        weft_program_destroy(program);
        weft_plan_destroy(plan);
        random_case_finish(&random);
    }
}
