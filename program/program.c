/* SPDX-License-Identifier: Apache-2.0 */
#include "program/program.h"

#include <inttypes.h>
#include <stdlib.h>

const char *weft_op_name(enum weft_op op)
{
    static const char *const names[WEFT_OP_COUNT] = {
        [WEFT_OP_AGREE] = "agree",       [WEFT_OP_MARK] = "mark", [WEFT_OP_MOMENTS] = "moments",
        [WEFT_OP_UPDATE] = "update",     [WEFT_OP_LOAD] = "load", [WEFT_OP_FORWARD] = "forward",
        [WEFT_OP_ZERO] = "zero",         [WEFT_OP_NORM] = "norm", [WEFT_OP_FINISH] = "finish",
        [WEFT_OP_BACKWARD] = "backward",
    };
    const struct weft_item_kind *item = weft_op_item(op);
    return item != NULL ? item->op_name : names[op];
}

enum weft_stream_kind weft_op_stream(enum weft_op op)
{
    static const enum weft_stream_kind streams[WEFT_ROLE_COUNT] = {
        [WEFT_ROLE_GATHERS] = WEFT_STREAM_CHANNEL, [WEFT_ROLE_REDUCES] = WEFT_STREAM_CHANNEL,
        [WEFT_ROLE_DOWN] = WEFT_STREAM_DOWN,       [WEFT_ROLE_UP] = WEFT_STREAM_UP,
        [WEFT_ROLE_HOST] = WEFT_STREAM_HOST,       [WEFT_ROLE_READS] = WEFT_STREAM_READ,
        [WEFT_ROLE_WRITES] = WEFT_STREAM_WRITE,    [WEFT_ROLE_ACROSS] = WEFT_STREAM_CHANNEL,
    };
    const struct weft_item_kind *item = weft_op_item(op);
    if (item != NULL) return streams[item->role];
    return op == WEFT_OP_AGREE ? WEFT_STREAM_CHANNEL : WEFT_STREAM_COMPUTE;
}

const char *weft_buffer_kind_name(enum weft_buffer_kind kind)
{
    static const char *const names[WEFT_BUFFER_KIND_COUNT] = {
#define WEFT_BUFFER_ENTRY(name, owner, text) [WEFT_BUFFER_##name] = text,
        WEFT_BUFFER_MAP(WEFT_BUFFER_ENTRY)
#undef WEFT_BUFFER_ENTRY
    };
    return names[kind];
}

enum weft_buffer_owner weft_buffer_owner(enum weft_buffer_kind kind)
{
    static const enum weft_buffer_owner owners[WEFT_BUFFER_KIND_COUNT] = {
#define WEFT_BUFFER_ENTRY(name, owner, text) [WEFT_BUFFER_##name] = WEFT_OWNER_##owner,
        WEFT_BUFFER_MAP(WEFT_BUFFER_ENTRY)
#undef WEFT_BUFFER_ENTRY
    };
    return owners[kind];
}

void weft_program_destroy(struct weft_program *program)
{
    if (program == NULL) return;
    weft_paging_destroy(program->paging);
    weft_pool_finish(&program->pool);
    free(program);
}

static int32_t compare_integers(int32_t a, int32_t b)
{
    return (a > b) - (a < b);
}

bool weft_program_waits(const struct weft_program *program, int32_t instruction)
{
    const struct weft_instruction *at = &program->instructions[instruction];
    if (at->op == WEFT_OP_MARK || at->op == WEFT_OP_FINISH) return true;
    if (weft_op_stream(at->op) != WEFT_STREAM_COMPUTE) return false;
    for (int32_t d = 0; d < at->n_dependencies; d++) {
        int32_t before = program->dependencies[at->first_dependency + d];
        if (weft_op_stream(program->instructions[before].op) != WEFT_STREAM_COMPUTE) return true;
    }
    return false;
}

int32_t weft_program_buffer(const struct weft_program *program, enum weft_buffer_kind kind,
                            int32_t index, int32_t instance)
{
    int32_t low = 0, high = program->n_buffers; /* sorted by kind, index, instance */
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        const struct weft_buffer *at = &program->buffers[middle];
        int32_t order = compare_integers((int32_t)at->kind, (int32_t)kind);
        if (order == 0) order = compare_integers(at->index, index);
        if (order == 0) order = compare_integers(at->instance, instance);
        if (order == 0) return middle;
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return -1;
}

enum weft_status weft_program_check_prediction(const struct weft_program *program,
                                               const struct weft_plan *plan, struct weft_error *err)
{
    const struct weft_prediction *said = &plan->prediction;
    int64_t total_bytes = weft_program_outside_bytes(program) + program->arena_bytes;
    if (plan->pages.n_lists == 0) return WEFT_OK;
    if (said->arena_bytes == program->arena_bytes && said->total_bytes == total_bytes)
        return WEFT_OK;
    return weft_fail(err, WEFT_E_DATA,
                     "the plan says that it takes %" PRId64 " bytes, of which %" PRId64
                     " are its arena; its program takes %" PRId64 " and %" PRId64 ": plan again",
                     said->total_bytes, said->arena_bytes, total_bytes, program->arena_bytes);
}
