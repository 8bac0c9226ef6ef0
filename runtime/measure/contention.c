/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/measure/parts.h"

static bool is_compute(enum weft_op op)
{
    return weft_op_stream(op) == WEFT_STREAM_COMPUTE;
}

/* Walks the instructions in issue order and appends the dependencies of each. */
struct serial {
    struct weft_program *program;
    int32_t *dependencies;
    int32_t n;
    int32_t last[WEFT_MOST_LANES]; /* latest instruction on the lane; -1: none */
};

static void append_dependency(struct serial *serial, int32_t first, int32_t instruction)
{
    if (instruction < 0) return;
    for (int32_t i = first; i < serial->n; i++) {
        if (serial->dependencies[i] == instruction) return;
    }
    serial->dependencies[serial->n++] = instruction;
}

static void serialise_instruction(struct serial *serial, int32_t i)
{
    struct weft_instruction *at = &serial->program->instructions[i];
    int32_t first = serial->n, own = serial->program->instructions[i].lane;
    for (int32_t d = 0; d < at->n_dependencies; d++)
        append_dependency(serial, first, serial->program->dependencies[at->first_dependency + d]);
    for (int32_t lane = 0; lane < serial->program->n_lanes && at->op != WEFT_OP_MARK; lane++) {
        bool contends = (lane == WEFT_LANE_COMPUTE) != (own == WEFT_LANE_COMPUTE);
        if (contends) append_dependency(serial, first, serial->last[lane]);
    }
    at->first_dependency = first;
    at->n_dependencies = serial->n - first;
    serial->last[own] = i;
}

enum weft_status weft_measure_serialise(struct weft_program *program, struct weft_error *err)
{
    struct serial serial = {
        .program = program,
    };
    for (int32_t lane = 0; lane < program->n_lanes; lane++)
        serial.last[lane] = -1;
    size_t most = 0;
    for (int32_t i = 0; i < program->n_instructions; i++)
        most += (size_t)program->instructions[i].n_dependencies + (size_t)program->n_lanes;
    serial.dependencies = weft_pool_array(&program->pool, most, sizeof *serial.dependencies);
    if (serial.dependencies == NULL) return weft_fail_memory(err, "a program's dependencies");
    for (int32_t i = 0; i < program->n_instructions; i++)
        serialise_instruction(&serial, i);
    program->dependencies = serial.dependencies;
    return WEFT_OK;
}

/* The first instruction at or after `i` that works on the stream. */
static int32_t next_work(const struct weft_program *program, enum weft_stream_kind stream,
                         int32_t i)
{
    while (i < program->n_instructions && (program->instructions[i].op == WEFT_OP_MARK ||
                                           weft_op_stream(program->instructions[i].op) != stream))
        i++;
    return i;
}

void weft_measure_read_channel(const struct weft_program *program, const struct weft_trace *trace,
                               int64_t *ready_ns, int64_t *over_ns)
{
    for (int32_t i = 0; i < program->n_instructions; i++) {
        const struct weft_instruction *at = &program->instructions[i];
        ready_ns[i] = over_ns[i] = 0;
        if (is_compute(at->op)) continue;
        int64_t ready = at->n_dependencies == 0 ? trace->records[i].start_ns : 0;
        for (int32_t d = 0; d < at->n_dependencies; d++) {
            int32_t before = program->dependencies[at->first_dependency + d];
            if (trace->records[before].end_ns > ready) ready = trace->records[before].end_ns;
        }
        ready_ns[i] = trace->zero_ns + ready;
        over_ns[i] = trace->zero_ns + trace->records[i].end_ns;
    }
}

static void find_spans(const struct weft_program *program, const struct weft_trace *trace,
                       const int64_t *ready_ns, const int64_t *over_ns, struct measure_times *out)
{
    int64_t channel_ns = 0; /* time at which it became free */
    for (int32_t i = 0; i < program->n_instructions; i++) {
        enum weft_op op = program->instructions[i].op;
        if (is_compute(op)) {
            out->from_ns[i] = trace->zero_ns + trace->records[i].start_ns;
            out->to_ns[i] = trace->zero_ns + trace->records[i].end_ns;
            if (op == WEFT_OP_MARK) out->to_ns[i] = out->from_ns[i];
            continue;
        }
        out->from_ns[i] = ready_ns[i] > channel_ns ? ready_ns[i] : channel_ns;
        out->to_ns[i] = channel_ns = over_ns[i];
    }
}

void weft_measure_read_times(const struct weft_program *program, const struct weft_trace *trace,
                             const int64_t *ready_ns, const int64_t *over_ns,
                             struct measure_times *out)
{
    int32_t n = program->n_instructions;
    find_spans(program, trace, ready_ns, over_ns, out);
    memset(out->beside_ns, 0, (size_t)n * sizeof *out->beside_ns);
    int32_t a = next_work(program, WEFT_STREAM_COMPUTE, 0);
    int32_t b = next_work(program, WEFT_STREAM_CHANNEL, 0);
    while (a < n && b < n) {
        int64_t from = out->from_ns[out->from_ns[a] > out->from_ns[b] ? a : b];
        bool a_first = out->to_ns[a] < out->to_ns[b];
        int64_t to = out->to_ns[a_first ? a : b];
        if (to > from) {
            out->beside_ns[a] += to - from;
            out->beside_ns[b] += to - from;
        }
        if (a_first) {
            a = next_work(program, WEFT_STREAM_COMPUTE, a + 1);
        } else {
            b = next_work(program, WEFT_STREAM_CHANNEL, b + 1);
        }
    }
}

void weft_measure_add_times(const struct weft_program *program, const struct measure_times *alone,
                            const struct measure_times *beside, struct measure_slowing *total)
{
    for (int32_t i = 0; i < program->n_instructions; i++) {
        int s = weft_op_stream(program->instructions[i].op);
        if (beside->beside_ns[i] <= 0) continue;
        total->longer_ns[s] += beside->to_ns[i] - beside->from_ns[i];
        total->longer_ns[s] -= alone->to_ns[i] - alone->from_ns[i];
        total->beside_ns[s] += beside->beside_ns[i];
    }
}

/* The rate of work that took `longer_ns` more because of another stream, which ran for `beside_ns`
 * of it. */
static int32_t rate_of(int64_t longer_ns, int64_t beside_ns)
{
    if (beside_ns <= 0) return WEFT_RATE_ONE;
    double rate = WEFT_RATE_ONE * (1 - (double)longer_ns / (double)beside_ns);
    if (rate >= WEFT_RATE_ONE) return WEFT_RATE_ONE;
    return rate > WEFT_RATE_LEAST ? (int32_t)lround(rate) : WEFT_RATE_LEAST;
}

struct weft_rates weft_measure_rates(const struct measure_slowing *total)
{
    int32_t compute =
        rate_of(total->longer_ns[WEFT_STREAM_COMPUTE], total->beside_ns[WEFT_STREAM_COMPUTE]);
    int32_t channel =
        rate_of(total->longer_ns[WEFT_STREAM_CHANNEL], total->beside_ns[WEFT_STREAM_CHANNEL]);
    int32_t sum = compute + channel;
    if (sum < WEFT_RATE_ONE) {
        compute = (compute * WEFT_RATE_ONE + sum - 1) / sum;
        channel = (channel * WEFT_RATE_ONE + sum - 1) / sum;
    }
    return (struct weft_rates){compute, channel};
}
