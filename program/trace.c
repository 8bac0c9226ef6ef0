/* SPDX-License-Identifier: Apache-2.0 */
#include "program/trace.h"

#include <stdlib.h>

enum weft_status weft_trace_create(const struct weft_program *program, const char *source,
                                   struct weft_trace **out, struct weft_error *err)
{
    struct weft_trace *trace = calloc(1, sizeof *trace);
    if (trace == NULL) return weft_fail_memory(err, "trace");
    trace->source = weft_pool_string(&trace->pool, source);
    trace->n_instructions = program->n_instructions;
    trace->records =
        weft_pool_array(&trace->pool, (size_t)program->n_instructions, sizeof *trace->records);
    trace->n_slots = program->n_slots;
    trace->live_bytes = weft_pool_array(
        &trace->pool, (size_t)program->n_slots * WEFT_CATEGORY_COUNT, sizeof *trace->live_bytes);
    if (trace->source == NULL || trace->records == NULL || trace->live_bytes == NULL) {
        weft_trace_destroy(trace);
        return weft_fail_memory(err, "trace");
    }
    *out = trace;
    return WEFT_OK;
}

void weft_trace_destroy(struct weft_trace *trace)
{
    if (trace == NULL) return;
    weft_pool_finish(&trace->pool);
    free(trace);
}

/* Time in which compute and a lane both run. Each runs in order without overlap. */
static int64_t overlap_ns(const struct weft_program *program, const struct weft_trace *trace,
                          int32_t lane)
{
    int64_t overlapped = 0;
    int32_t compute = 0; /* first compute instruction that may still overlap */
    for (int32_t i = 0; i < program->n_instructions; i++) {
        if (program->instructions[i].lane != lane) continue;
        struct weft_record channel = trace->records[i];
        for (int32_t c = compute; c < program->n_instructions; c++) {
            if (weft_op_stream(program->instructions[c].op) != WEFT_STREAM_COMPUTE) continue;
            struct weft_record other = trace->records[c];
            if (other.start_ns >= channel.end_ns) break;
            int64_t from = other.start_ns > channel.start_ns ? other.start_ns : channel.start_ns;
            int64_t to = other.end_ns < channel.end_ns ? other.end_ns : channel.end_ns;
            if (to > from) overlapped += to - from;
            if (other.end_ns <= channel.end_ns) compute = c + 1;
        }
    }
    return overlapped;
}

static void find_peak(const struct weft_trace *trace, struct weft_trace_summary *out)
{
    for (int32_t s = 0; s < trace->n_slots; s++) {
        int64_t total = 0;
        for (int32_t c = 0; c < WEFT_CATEGORY_COUNT; c++)
            total += trace->live_bytes[s * WEFT_CATEGORY_COUNT + c];
        if (total > out->peak_bytes) {
            out->peak_bytes = total;
            out->peak_slot = s;
        }
    }
}

void weft_trace_summarise(const struct weft_program *program, const struct weft_trace *trace,
                          struct weft_trace_summary *out)
{
    *out = (struct weft_trace_summary){0};
    int64_t computed_ns = 0; /* end of the last compute instruction */
    int64_t first_ns = INT64_MAX, last_ns = 0;
    for (int32_t i = 0; i < program->n_instructions; i++) {
        enum weft_op op = program->instructions[i].op;
        struct weft_record record = trace->records[i];
        if (record.start_ns < first_ns) first_ns = record.start_ns;
        if (record.end_ns > last_ns) last_ns = record.end_ns;
        if (weft_op_stream(op) != WEFT_STREAM_COMPUTE) {
            if (weft_op_stream(op) == WEFT_STREAM_CHANNEL)
                out->channel_ns += record.end_ns - record.start_ns;
            continue;
        }
        if (record.start_ns > computed_ns && weft_program_waits(program, i))
            out->exposed_ns += record.start_ns - computed_ns;
        out->compute_ns += record.end_ns - record.start_ns;
        computed_ns = record.end_ns;
    }
    if (program->n_instructions > 0) out->step_ns = last_ns - first_ns;
    for (int32_t lane = WEFT_LANE_FIRST; lane < program->n_lanes; lane++)
        if (program->lanes[lane].kind < WEFT_LANE_KIND_DOWN)
            out->overlapped_ns += overlap_ns(program, trace, lane);
    find_peak(trace, out);
}
