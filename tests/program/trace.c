/* SPDX-License-Identifier: Apache-2.0 */
#include "program/trace.h"

#include <criterion/criterion.h>

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
