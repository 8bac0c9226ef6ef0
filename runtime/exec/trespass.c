/* SPDX-License-Identifier: Apache-2.0 */
/* A trespass is an access to the arena outside live buffers: past a buffer's end, or in dead
 * memory. A signal handler reports it, so nothing here takes memory or a lock. */
#include <string.h>

#include "program/lifetime.h"
#include "runtime/exec/exec.h"
#include "runtime/exec/parts.h"
#include "runtime/exec/poison.h"

enum { NOT_YET_NS = -1, NUMBER_CHARS = 20 };

void weft_exec_forget_stamps(struct weft_exec *exec)
{
    for (int32_t i = 0; i < exec->options.program->n_instructions; i++)
        exec->records[i] = (struct weft_record){NOT_YET_NS, NOT_YET_NS};
}

static void add_word(struct weft_error *to, const char *word)
{
    const size_t length = strlen(to->text), room = sizeof to->text - 1 - length;
    const size_t n = strlen(word) < room ? strlen(word) : room;
    memcpy(to->text + length, word, n);
    to->text[length + n] = '\0';
}

static void add_number(struct weft_error *to, int64_t number)
{
    char digits[NUMBER_CHARS + 1];
    int at = NUMBER_CHARS;
    digits[at] = '\0';
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0 && at > 0);
    add_word(to, digits + at);
}

static void add_owner(struct weft_error *to, const char *what, const char *name)
{
    if (name == NULL) return;
    add_word(to, what);
    add_word(to, name);
}

static const char *layer_name(const struct weft_exec *exec, int32_t layer)
{
    return layer >= 0 ? exec->options.config->model->layers[layer].name : NULL;
}

static const char *unit_name(const struct weft_exec *exec, int32_t unit)
{
    return unit >= 0 ? exec->options.shards->units[unit].name : NULL;
}

struct weft_buffer_name weft_exec_name_buffer(const struct weft_exec *exec, int32_t b)
{
    const struct weft_buffer *buffer = &exec->options.program->buffers[b];
    struct weft_buffer_name name = {weft_buffer_kind_name(buffer->kind), NULL, NULL};
    switch (weft_buffer_owner(buffer->kind)) {
    case WEFT_OWNER_LAYER:
        name.of = " of layer ";
        name.owner = layer_name(exec, buffer->index);
        break;
    case WEFT_OWNER_UNIT:
        name.of = " of unit ";
        name.owner = unit_name(exec, buffer->index);
        break;
    case WEFT_OWNER_MICRO:
    case WEFT_OWNER_STEP:
        break;
    }
    return name;
}

/* The instruction that a stream executes: it has begun and not ended; -1: none. */
static int32_t find_under_way(const struct weft_exec *exec, int32_t lane)
{
    const struct weft_program *program = exec->options.program;
    int32_t found = -1;
    for (int32_t i = 0; i < program->n_instructions; i++) {
        const volatile struct weft_record *record = &exec->records[i];
        if (program->instructions[i].lane != lane) continue;
        if (record->start_ns != NOT_YET_NS && record->end_ns == NOT_YET_NS) found = i;
    }
    return found;
}

/* A buffer and its distance from an address; 0: inside. */
struct nearest {
    int32_t buffer; /* -1: none */
    int64_t begin;
    int64_t distance;
};

static void look_at_buffer(const struct weft_exec *exec, int32_t b, int table, int64_t at,
                           struct nearest *nearest)
{
    const int64_t begin = exec->places.offsets[table][b];
    const int64_t end = begin + exec->options.program->buffers[b].used_bytes;
    int64_t distance = at < begin ? begin - at : at - end + 1;
    if (at >= begin && at < end) distance = 0;
    if (nearest->buffer < 0 || distance < nearest->distance)
        *nearest = (struct nearest){b, begin, distance};
}

static struct nearest find_nearest(const struct weft_exec *exec, int64_t at)
{
    struct nearest nearest = {.buffer = -1};
    for (int table = 0; table < exec->places.n_tables; table++) {
        for (int32_t b = 0; b < exec->options.program->n_buffers; b++)
            look_at_buffer(exec, b, table, at, &nearest);
    }
    return nearest;
}

/* The nearest of the instruction's operands. */
static struct nearest find_given(const struct weft_exec *exec, int32_t i, int64_t at)
{
    const struct weft_instruction *instruction = &exec->options.program->instructions[i];
    struct nearest nearest = {.buffer = -1};
    for (int32_t o = 0; o < instruction->n_operands; o++) {
        const int32_t operand = instruction->first_operand + o;
        const int table = weft_exec_table_of(&exec->places, operand, exec->parity);
        look_at_buffer(exec, exec->options.program->operands[operand].buffer, table, at, &nearest);
    }
    return nearest;
}

/* An overrun reaches the end of the buffer's last page, and then a guard page. So an address that
 * is so near to an operand counts as that operand's. */
static struct nearest find_buffer(const struct weft_exec *exec, int32_t i, int64_t at)
{
    const struct nearest any = find_nearest(exec, at);
    if (any.distance == 0 || i < 0) return any;
    const struct nearest given = find_given(exec, i, at);
    const bool near = given.buffer >= 0 && given.distance <= 2 * exec->places.paging->page_bytes;
    return near ? given : any;
}

/* "forward of layer h.2" */
static void add_instruction(const struct weft_exec *exec, int32_t i, struct weft_error *to)
{
    if (i < 0) {
        add_word(to, "work between steps");
        return;
    }
    const struct weft_instruction *at = &exec->options.program->instructions[i];
    add_word(to, weft_op_name(at->op));
    add_owner(to, " of layer ", layer_name(exec, at->layer));
    add_owner(to, " of unit ", at->layer >= 0 ? NULL : unit_name(exec, at->unit));
    if (at->item < 0) return;
    add_word(to, ", block ");
    add_number(to, at->block);
}

/* "byte 1 of the output of layer h.2" */
static void add_place(const struct weft_exec *exec, struct nearest nearest, int64_t at,
                      struct weft_error *to)
{
    const struct weft_buffer_name name = weft_exec_name_buffer(exec, nearest.buffer);
    add_word(to, "byte ");
    add_number(to, nearest.distance == 0 ? at - nearest.begin : nearest.distance);
    add_word(to, nearest.distance == 0 ? " of the "
                 : at < nearest.begin  ? " in front of the "
                                       : " after the ");
    add_word(to, name.kind);
    add_owner(to, name.of, name.owner);
}

bool weft_exec_tell_trespass(const struct weft_exec *exec, const void *address, bool is_mapped,
                             struct weft_error *out)
{
    const unsigned char *memory = weft_arena_memory(exec->arena);
    const uintptr_t first = (uintptr_t)memory - (uintptr_t)WEFT_PAGE_LEAST_BYTES;
    const uintptr_t here = (uintptr_t)address;
    const uintptr_t span = (uintptr_t)(exec->places.paging->span_bytes + 2 * WEFT_PAGE_LEAST_BYTES);
    if (memory == NULL || here < first || here - first >= span) return false;
    int32_t lane = WEFT_LANE_COMPUTE;
    for (int32_t l = 0; l < WEFT_MOST_LANES; l++)
        if (exec->streams[l] != NULL && weft_stream_is_here(exec->streams[l])) lane = l;
    const int32_t i = find_under_way(exec, lane);
    const int64_t at = (int64_t)(here - (uintptr_t)memory);
    const struct nearest nearest = find_buffer(exec, i, at);
    const enum weft_status status = is_mapped ? WEFT_E_SYSTEM : WEFT_E_INTERNAL;
    out->status = status;
    out->exit_code = weft_status_exit_code(status);
    out->of_rank = 0;
    out->text[0] = '\0';
    add_word(out, "step ");
    add_number(out, exec->last_step);
    add_word(out, ": ");
    add_instruction(exec, i, out);
    add_word(out, " touched ");
    add_place(exec, nearest, at, out);
    add_word(out,
             is_mapped ? ", and the system has lost that page of memory"
             : nearest.distance == 0
                 ? ", which was dead: its kernel reads or writes what it was not given in this step"
                 : ", where nothing is: its kernel leaves its buffer");
    return true;
}
