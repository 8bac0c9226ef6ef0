/* SPDX-License-Identifier: Apache-2.0 */
#include "program/trace_chrome.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "program/works.h"

enum { NAME_BYTES = 256 };

/* An event that is being written. */
struct event {
    struct weft_json_writer writer;
    const struct weft_chrome_process *process;
    bool has_arguments;
};

/* The events of a step so far. */
struct steps {
    const struct weft_chrome_process *process;
    const struct weft_program *program;
    const struct weft_plan *plan;
    const struct weft_trace *trace;
    int64_t step, zero_ns;
    bool *has_ended;   /* [n_instructions]: the flow has reached its wait */
    int32_t *arriving; /* flows that end at the next event of the compute thread */
    int32_t n_arriving;
    struct weft_text *out;
};

/* The format counts microseconds. A double holds the nanoseconds of a year exactly enough. */
static void put_us(struct event *event, const char *name, int64_t ns)
{
    weft_json_put_number(&event->writer, name, (double)ns / 1000);
}

static void begin_event(const struct weft_chrome_process *process, const char *name,
                        const char *phase, int32_t thread, struct weft_text *out,
                        struct event *event)
{
    *event = (struct event){.process = process};
    weft_json_writer_init(&event->writer, out, 1);
    weft_json_begin_object(&event->writer);
    weft_json_flat(&event->writer);
    weft_json_put_string(&event->writer, "name", name);
    weft_json_put_string(&event->writer, "ph", phase);
    weft_json_put_integer(&event->writer, "pid", process->number);
    weft_json_put_integer(&event->writer, "tid", thread);
}

static void begin_arguments(struct event *event)
{
    weft_json_key(&event->writer, "args");
    weft_json_begin_object(&event->writer);
    event->has_arguments = true;
}

static void end_event(struct event *event)
{
    if (event->has_arguments) weft_json_end_object(&event->writer);
    weft_json_end_object(&event->writer);
    weft_text_add(event->writer.text, ",\n");
}

static void write_name(const struct weft_chrome_process *process, const char *kind, int32_t thread,
                       const char *name, struct weft_text *out)
{
    struct event event;
    begin_event(process, kind, "M", thread, out, &event);
    begin_arguments(&event);
    weft_json_put_string(&event.writer, "name", name);
    end_event(&event);
}

/* Viewers sort processes and threads by index. */
static void write_order(const struct weft_chrome_process *process, const char *kind, int32_t thread,
                        int32_t index, struct weft_text *out)
{
    struct event event;
    begin_event(process, kind, "M", thread, out, &event);
    begin_arguments(&event);
    weft_json_put_integer(&event.writer, "sort_index", index);
    end_event(&event);
}

void weft_chrome_add_names(const struct weft_chrome_process *process,
                           const struct weft_program *program, struct weft_text *out)
{
    const int32_t launches = program->n_lanes;
    write_name(process, "process_name", 0, process->title, out);
    write_order(process, "process_sort_index", 0, process->order, out);
    for (int32_t lane = 0; lane <= launches; lane++) {
        write_name(process, "thread_name", lane,
                   lane == launches ? "launches" : program->lanes[lane].name, out);
        write_order(process, "thread_sort_index", lane, lane == launches ? -1 : lane, out);
    }
}

/* Prefixes by which analysers of GPU profiles know communication and copies; "": compute. */
static const char *kernel_prefix(const struct weft_instruction *at)
{
    switch (weft_op_stream(at->op)) {
    case WEFT_STREAM_COMPUTE:
    case WEFT_STREAM_HOST:
    case WEFT_STREAM_COUNT:
        return "";
    case WEFT_STREAM_DOWN:
    case WEFT_STREAM_WRITE:
        return "Memcpy DtoH ";
    case WEFT_STREAM_UP:
    case WEFT_STREAM_READ:
        return "Memcpy HtoD ";
    case WEFT_STREAM_CHANNEL:
        break;
    }
    const enum weft_collective collective = weft_item_kind_collective((int32_t)at->op);
    if (collective == WEFT_ALL_GATHER) return "ncclKernel_AllGather ";
    return collective == WEFT_REDUCE_SCATTER ? "ncclKernel_ReduceScatter "
                                             : "ncclKernel_AllReduce ";
}

static const char *category_of(const struct steps *steps, const struct weft_instruction *at)
{
    static const char *const names[WEFT_STREAM_COUNT] = {
        [WEFT_STREAM_COMPUTE] = "compute", [WEFT_STREAM_CHANNEL] = "communication",
        [WEFT_STREAM_DOWN] = "copy",       [WEFT_STREAM_UP] = "copy",
        [WEFT_STREAM_HOST] = "host",       [WEFT_STREAM_READ] = "disk",
        [WEFT_STREAM_WRITE] = "disk",
    };
    return steps->process->names_kernels ? "kernel" : names[weft_op_stream(at->op)];
}

/* "forward h.3", "all_gather h.3 block 2", "mark F:h.3". */
static const char *event_name(const struct steps *steps, const struct weft_instruction *at,
                              char out[NAME_BYTES])
{
    const struct weft_problem *problem = steps->plan->problem;
    const char *op = weft_op_name(at->op), *slot = problem->slot_names[at->slot];
    const char *prefix = steps->process->names_kernels ? kernel_prefix(at) : "";
    if (prefix[0] == 'n') op = ""; /* the prefix says it */
    const char *space = op[0] == '\0' ? "" : " ";
    if (at->unit >= 0 && at->block >= 0) {
        snprintf(out, NAME_BYTES, "%s%s%s%s block %d", prefix, op, space,
                 problem->decisions[at->unit].name, at->block);
    } else if (at->unit >= 0) {
        snprintf(out, NAME_BYTES, "%s%s%s%s", prefix, op, space, problem->decisions[at->unit].name);
    } else {
        snprintf(out, NAME_BYTES, "%s%s%s%s", prefix, op, space, slot);
    }
    return out;
}

static void begin_slice(const struct steps *steps, const char *name, const char *category,
                        int32_t thread, struct weft_record record, struct event *event)
{
    begin_event(steps->process, name, "X", thread, steps->out, event);
    weft_json_put_string(&event->writer, "cat", category);
    put_us(event, "ts", steps->zero_ns + record.start_ns);
    put_us(event, "dur", record.end_ns - record.start_ns);
    begin_arguments(event);
    weft_json_put_integer(&event->writer, "step", steps->step);
}

/* The number of an instruction in all steps of a trace, for analysers that join launch and work. */
static int64_t correlation_of(const struct steps *steps, int32_t i)
{
    return steps->step * steps->program->n_instructions + i + 1;
}

static int64_t flow_of(const struct steps *steps, int32_t i)
{
    return ((int64_t)steps->process->number << 32) + correlation_of(steps, i);
}

static void write_flow(const struct steps *steps, int32_t i, const char *phase, int32_t thread,
                       int64_t at_ns)
{
    struct event event;
    begin_event(steps->process, "block", phase, thread, steps->out, &event);
    weft_json_put_string(&event.writer, "cat", "flow");
    weft_json_put_integer(&event.writer, "id", flow_of(steps, i));
    put_us(&event, "ts", steps->zero_ns + at_ns);
    if (phase[0] == 'f') weft_json_put_string(&event.writer, "bp", "e");
    end_event(&event);
}

static void write_work(const struct steps *steps, int32_t i)
{
    const struct weft_instruction *at = &steps->program->instructions[i];
    struct event event;
    char name[NAME_BYTES];
    begin_slice(steps, event_name(steps, at, name), category_of(steps, at), at->lane,
                steps->trace->records[i], &event);
    weft_json_put_string(&event.writer, "slot", steps->plan->problem->slot_names[at->slot]);
    weft_json_put_integer(&event.writer, "predicted_ns", at->ns);
    if (steps->process->names_kernels) {
        weft_json_put_integer(&event.writer, "device", steps->process->number);
        weft_json_put_integer(&event.writer, "stream", at->lane + 1);
        weft_json_put_integer(&event.writer, "correlation", correlation_of(steps, i));
    }
    end_event(&event);
}

/* A launch has no time of its own. One ns lets viewers begin its flow there. */
static void write_launch(const struct steps *steps, int32_t i, int64_t launch_ns)
{
    const struct weft_instruction *at = &steps->program->instructions[i];
    const int32_t thread = steps->program->n_lanes;
    struct event event;
    char name[NAME_BYTES], launch[NAME_BYTES + 8];
    snprintf(launch, sizeof launch, "launch %s", event_name(steps, at, name));
    begin_slice(steps, launch, "launch", thread, (struct weft_record){launch_ns, launch_ns + 1},
                &event);
    if (steps->process->names_kernels)
        weft_json_put_integer(&event.writer, "correlation", correlation_of(steps, i));
    end_event(&event);
    if (at->lane != WEFT_LANE_COMPUTE) write_flow(steps, i, "s", thread, launch_ns);
}

static void write_wait(const struct steps *steps, const char *name, int64_t start_ns,
                       int64_t end_ns)
{
    struct event event;
    begin_slice(steps, name, "wait", WEFT_LANE_COMPUTE, (struct weft_record){start_ns, end_ns},
                &event);
    end_event(&event);
}

static void write_live(const struct steps *steps, int32_t slot, int64_t start_ns)
{
    const int64_t *live = steps->trace->live_bytes + (int64_t)slot * WEFT_CATEGORY_COUNT;
    struct event event;
    begin_event(steps->process, "live bytes", "C", WEFT_LANE_COMPUTE, steps->out, &event);
    put_us(&event, "ts", steps->zero_ns + start_ns);
    begin_arguments(&event);
    for (int32_t c = 0; c < WEFT_CATEGORY_OF_DEVICE; c++)
        weft_json_put_integer(&event.writer, weft_category_text((enum weft_category)c), live[c]);
    end_event(&event);
}

/* Whether the instruction worked in the traced period. Others have neither a launch nor work. */
static bool has_worked(const struct steps *steps, int32_t i)
{
    return weft_instruction_works(&steps->program->instructions[i], steps->trace->updated);
}

/* Notes the flows of blocks for which compute instruction i waits. */
static void meet_flows(struct steps *steps, int32_t i)
{
    const struct weft_instruction *at = &steps->program->instructions[i];
    for (int32_t d = 0; d < at->n_dependencies; d++) {
        const int32_t before = steps->program->dependencies[at->first_dependency + d];
        if (steps->program->instructions[before].lane == WEFT_LANE_COMPUTE) continue;
        if (steps->has_ended[before] || !has_worked(steps, before)) continue;
        steps->has_ended[before] = true;
        steps->arriving[steps->n_arriving++] = before;
    }
}

/* Ends the noted flows in the slice of the compute thread that was written last. */
static void end_flows(struct steps *steps, int64_t at_ns)
{
    for (int32_t f = 0; f < steps->n_arriving; f++)
        write_flow(steps, steps->arriving[f], "f", WEFT_LANE_COMPUTE, at_ns);
    steps->n_arriving = 0;
}

static void write_compute(struct steps *steps, int32_t i, int64_t computed_ns)
{
    const struct weft_instruction *at = &steps->program->instructions[i];
    const struct weft_record record = steps->trace->records[i];
    meet_flows(steps, i);
    if (record.start_ns > computed_ns && weft_program_waits(steps->program, i)) {
        write_wait(steps, "exposed", computed_ns, record.start_ns);
        end_flows(steps, record.start_ns - 1);
    }
    if (at->op == WEFT_OP_MARK) write_live(steps, at->slot, record.start_ns);
    if (record.end_ns <= record.start_ns || !has_worked(steps, i)) return;
    if (steps->process->names_kernels) write_launch(steps, i, record.start_ns);
    write_work(steps, i);
    end_flows(steps, record.start_ns);
}

/* Analysers of GPU profiles find steps by this name. */
static void write_step(const struct steps *steps)
{
    const struct weft_trace *trace = steps->trace;
    struct weft_record whole = {-trace->data_wait_ns, 0};
    struct event event;
    char name[64];
    for (int32_t i = 0; i < trace->n_instructions; i++)
        if (trace->records[i].end_ns > whole.end_ns) whole.end_ns = trace->records[i].end_ns;
    snprintf(name, sizeof name, steps->process->names_kernels ? "ProfilerStep#%lld" : "step %lld",
             (long long)steps->step);
    /* Launches of the step's last instant are inside. */
    whole.end_ns++;
    begin_slice(steps, name, "user_annotation", steps->program->n_lanes, whole, &event);
    put_us(&event, "begins_us", steps->zero_ns); /* a wait for data comes before */
    end_event(&event);
}

static void write_instructions(struct steps *steps)
{
    const struct weft_program *program = steps->program;
    int64_t computed_ns = 0, slot_ns = 0;
    for (int32_t i = 0; i < program->n_instructions; i++) {
        const struct weft_instruction *at = &program->instructions[i];
        const struct weft_record record = steps->trace->records[i];
        if (at->lane == WEFT_LANE_COMPUTE) {
            write_compute(steps, i, computed_ns);
            computed_ns = record.end_ns;
            if (at->op == WEFT_OP_MARK) slot_ns = record.end_ns;
            continue;
        }
        if (!has_worked(steps, i)) continue;
        /* A lane may start before the mark is recorded: clocks of streams differ by some ns. */
        write_launch(steps, i, slot_ns < record.start_ns ? slot_ns : record.start_ns);
        write_work(steps, i);
        if (record.end_ns > record.start_ns) write_flow(steps, i, "t", at->lane, record.start_ns);
    }
}

void weft_chrome_add_step(const struct weft_chrome_process *process,
                          const struct weft_program *program, const struct weft_plan *plan,
                          const struct weft_trace *trace, int64_t step, int64_t zero_ns,
                          struct weft_text *out)
{
    const size_t n = (size_t)program->n_instructions + 1;
    struct steps steps = {.process = process,
                          .program = program,
                          .plan = plan,
                          .trace = trace,
                          .step = step,
                          .zero_ns = zero_ns,
                          .has_ended = calloc(n, sizeof(bool)),
                          .arriving = calloc(n, sizeof(int32_t)),
                          .out = out};
    if (steps.has_ended == NULL || steps.arriving == NULL) {
        out->failed = true;
    } else {
        write_step(&steps);
        if (trace->data_wait_ns > 0) write_wait(&steps, "wait for data", -trace->data_wait_ns, 0);
        write_instructions(&steps);
    }
    free(steps.has_ended);
    free(steps.arriving);
}

void weft_chrome_add_file(int32_t rank, int32_t ranks, const char *source,
                          const struct weft_text *events, struct weft_text *out)
{
    struct weft_json_writer writer;
    const size_t between = 2; /* ",\n" */
    weft_text_add(out, "{\"schemaVersion\": 1, \"displayTimeUnit\": \"ns\",\n\"source\": ");
    weft_json_writer_init(&writer, out, 1);
    weft_json_add_string(&writer, source);
    weft_text_addf(out, ",\n\"distributedInfo\": {\"rank\": %d, \"world_size\": %d},\n", rank,
                   ranks);
    weft_text_add(out, "\"traceEvents\": [\n");
    if (events->length >= between)
        weft_text_append(out, weft_text_chars(events), events->length - between);
    weft_text_add(out, "\n]}\n");
    if (!weft_text_ok(events)) out->failed = true;
}
