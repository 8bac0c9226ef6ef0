#include <stdio.h>

#include "base/json/json.h"
#include "program/trace.h"

enum { NAME_BYTES = 256 };

/* The format counts microseconds. A double holds the nanoseconds of a year exactly enough. */
static void put_us(struct weft_json_writer *writer, const char *name, int64_t ns)
{
    weft_json_put_number(writer, name, (double)ns / 1000);
}

static void write_thread(struct weft_json_writer *writer, int thread, const char *name)
{
    weft_json_begin_object(writer);
    weft_json_flat(writer);
    weft_json_put_string(writer, "name", "thread_name");
    weft_json_put_string(writer, "ph", "M");
    weft_json_put_integer(writer, "pid", 0);
    weft_json_put_integer(writer, "tid", thread);
    weft_json_key(writer, "args");
    weft_json_begin_object(writer);
    weft_json_put_string(writer, "name", name);
    weft_json_end_object(writer);
    weft_json_end_object(writer);
}

/* "forward h.3", "all_gather h.3 block 2", "wait for F:h.3". */
static const char *event_name(const struct weft_plan *plan, const struct weft_instruction *at,
                              char out[NAME_BYTES])
{
    const char *op = weft_op_name(at->op), *slot = plan->problem->slot_names[at->slot];
    if (at->unit >= 0 && at->block >= 0) {
        snprintf(out, NAME_BYTES, "%s %s block %d", op, plan->problem->decisions[at->unit].name,
                 at->block);
    } else if (at->unit >= 0) {
        snprintf(out, NAME_BYTES, "%s %s", op, plan->problem->decisions[at->unit].name);
    } else {
        snprintf(out, NAME_BYTES, "%s %s", op, slot);
    }
    return out;
}

static void write_event(struct weft_json_writer *writer, const char *name, int thread,
                        int64_t start_ns, int64_t end_ns, int32_t slot)
{
    weft_json_begin_object(writer);
    weft_json_flat(writer);
    weft_json_put_string(writer, "name", name);
    weft_json_put_string(writer, "ph", "X");
    weft_json_put_integer(writer, "pid", 0);
    weft_json_put_integer(writer, "tid", thread);
    put_us(writer, "ts", start_ns);
    put_us(writer, "dur", end_ns - start_ns);
    weft_json_key(writer, "args");
    weft_json_begin_object(writer);
    weft_json_put_integer(writer, "slot", slot);
    weft_json_end_object(writer);
    weft_json_end_object(writer);
}

static void write_live(struct weft_json_writer *writer, const struct weft_trace *trace,
                       int32_t slot, int64_t start_ns)
{
    weft_json_begin_object(writer);
    weft_json_flat(writer);
    weft_json_put_string(writer, "name", "live bytes");
    weft_json_put_string(writer, "ph", "C");
    weft_json_put_integer(writer, "pid", 0);
    put_us(writer, "ts", start_ns);
    weft_json_key(writer, "args");
    weft_json_begin_object(writer);
    for (int32_t c = 0; c < WEFT_CATEGORY_OF_DEVICE; c++) {
        weft_json_put_integer(writer, weft_category_text((enum weft_category)c),
                              trace->live_bytes[slot * WEFT_CATEGORY_COUNT + c]);
    }
    weft_json_end_object(writer);
    weft_json_end_object(writer);
}

void weft_trace_write_chrome(const struct weft_program *program, const struct weft_plan *plan,
                             const struct weft_trace *trace, struct weft_text *out)
{
    struct weft_json_writer writer;
    int64_t computed_ns = 0;
    weft_json_writer_init(&writer, out, 1);
    weft_json_begin_object(&writer);
    weft_json_put_string(&writer, "displayTimeUnit", "ns");
    weft_json_put_string(&writer, "source", trace->source);
    weft_json_key(&writer, "traceEvents");
    weft_json_begin_array(&writer);
    for (int32_t lane = 0; lane < program->n_lanes; lane++)
        write_thread(&writer, lane, program->lanes[lane].name);
    if (trace->data_wait_ns > 0) {
        write_event(&writer, "wait for data", WEFT_LANE_COMPUTE, -trace->data_wait_ns, 0, 0);
    }
    for (int32_t i = 0; i < program->n_instructions; i++) {
        const struct weft_instruction *at = &program->instructions[i];
        struct weft_record record = trace->records[i];
        char name[NAME_BYTES];
        int32_t thread = at->lane;
        if (thread != WEFT_LANE_COMPUTE) {
            write_event(&writer, event_name(plan, at, name), thread, record.start_ns, record.end_ns,
                        at->slot);
            continue;
        }
        if (record.start_ns > computed_ns && weft_program_waits(program, i)) {
            write_event(&writer, "exposed", thread, computed_ns, record.start_ns, at->slot);
        }
        if (at->op == WEFT_OP_MARK) write_live(&writer, trace, at->slot, record.start_ns);
        if (record.end_ns > record.start_ns) {
            write_event(&writer, event_name(plan, at, name), thread, record.start_ns, record.end_ns,
                        at->slot);
        }
        computed_ns = record.end_ns;
    }
    weft_json_end_array(&writer);
    weft_json_end_object(&writer);
    weft_text_add(out, "\n");
}
