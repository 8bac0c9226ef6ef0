#include "program/trace.h"

#include <criterion/criterion.h>
#include <string.h>

#include "base/json/json.h"
#include "program/program_text.h"
#include "tests/program/random_model.h"

/* A program without buffers: F of 10, a gather after its mark, a mark that waits for the gather, F
 * of 5. */
static struct weft_instruction instructions_trace[] = {
    {.op = WEFT_OP_MARK, .slot = 0, .layer = -1, .unit = -1, .block = -1, .item = -1},
    {.op = WEFT_OP_ALL_GATHER, .lane = 1, .slot = 0, .layer = -1, .ns = 25, .n_dependencies = 1},
    {.op = WEFT_OP_FORWARD, .slot = 0, .unit = -1, .block = -1, .ns = 10, .first_dependency = 1},
    {.op = WEFT_OP_MARK,
     .slot = 1,
     .layer = -1,
     .unit = -1,
     .block = -1,
     .first_dependency = 1,
     .n_dependencies = 1},
    {.op = WEFT_OP_FORWARD, .slot = 1, .unit = -1, .block = -1, .ns = 5, .first_dependency = 2},
};
static int32_t dependencies_trace[] = {0, 1};

static struct weft_lane lanes_trace[] = {
    {"compute", WEFT_LANE_KIND_COMPUTE, {WEFT_RATE_ONE, WEFT_RATE_ONE}},
    {"network", WEFT_LANE_KIND_NETWORK, {WEFT_RATE_ONE, WEFT_RATE_ONE}}};

static struct weft_program hand_program_trace(void)
{
    return (struct weft_program){.n_slots = 2,
                                 .n_lanes = 2,
                                 .lanes = lanes_trace,
                                 .n_instructions = 5,
                                 .instructions = instructions_trace,
                                 .dependencies = dependencies_trace,
                                 .base_bytes = 7};
}

Test(trace, summary_by_hand)
{
    struct weft_program program = hand_program_trace();
    struct weft_trace *trace = NULL;
    struct weft_error err = {0};
    struct weft_trace_summary summary;
    cr_assert_eq(weft_simulate(&program, &trace, &err), WEFT_OK);
    cr_assert_eq(trace->records[1].start_ns, 0);
    cr_assert_eq(trace->records[1].end_ns, 25);
    cr_assert_eq(trace->records[3].start_ns, 25);
    cr_assert_eq(trace->records[4].end_ns, 30);
    weft_trace_summarise(&program, trace, &summary);
    cr_assert_eq(summary.step_ns, 30);
    cr_assert_eq(summary.exposed_ns, 15);
    cr_assert_eq(summary.compute_ns, 15);
    cr_assert_eq(summary.channel_ns, 25);
    cr_assert_eq(summary.overlapped_ns, 10);
    cr_assert_eq(summary.peak_bytes, 7);
    cr_assert_eq(summary.peak_slot, 0);
    weft_trace_destroy(trace);
    weft_trace_destroy(NULL);
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

Test(trace, written_forms_are_json)
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
        weft_trace_write_chrome(program, plan, trace, &text);
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
Test(trace, chrome_counts_in_microseconds)
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
    weft_trace_write_chrome(program, plan, trace, &text);
    cr_assert(strstr(weft_text_chars(&text), "\"ts\": 1234.567, \"dur\": 0.001") != NULL, "%s",
              weft_text_chars(&text));
    cr_assert(strstr(weft_text_chars(&text), "\"ts\": 0, \"dur\": 1234.567") != NULL);
    weft_text_finish(&text);
    weft_trace_destroy(trace);
    weft_program_destroy(program);
    weft_plan_destroy(plan);
    random_case_finish(&random);
}
