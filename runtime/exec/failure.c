/* SPDX-License-Identifier: Apache-2.0 */
/* Failures for tests, as tasks of the instruction's stream. */
#include <signal.h>
#include <string.h>

#include "program/lifetime.h"
#include "runtime/exec/parts.h"
#include "runtime/exec/units.h"

static enum weft_status fail_as_asked(struct weft_stream *stream, const void *argument,
                                      struct weft_error *err)
{
    (void)stream;
    enum weft_failure failure;
    memcpy(&failure, argument, sizeof failure);
    if (failure == WEFT_FAILURE_KILL) raise(SIGKILL);
    if (failure == WEFT_FAILURE_STOP) raise(SIGSTOP);
    if (failure != WEFT_FAILURE_ERROR) return WEFT_OK;
    return weft_fail(err, WEFT_E_INTERNAL, "failed as WEFT_FAILPOINT asks");
}

/* The first parameter that this rank owns; NULL: it owns none of the unit. */
static void *first_parameter(const struct weft_nn_unit *unit)
{
    if (unit->n_own == 0) return NULL;
    if (unit->master != NULL) return (float *)unit->master + unit->own[0].state_at;
    return (unsigned char *)unit->parameters +
           unit->own[0].parameter_at * weft_dtype_bytes(unit->dtype);
}

/* The numbers that the instruction wrote; NULL: none. */
static void *result_of(const struct exec_bound *bound)
{
    const struct weft_nn_call *call = bound->with.layer.call;
    switch (bound->op) {
    case WEFT_OP_FORWARD:
        return call->output;
    case WEFT_OP_BACKWARD:
        for (int i = 0; i < WEFT_LAYER_TENSORS; i++)
            if (call->gradients[i] != NULL) return call->gradients[i];
        return NULL;
    case WEFT_OP_UPDATE:
        return first_parameter(&bound->with.unit.unit->nn);
    default:
        return NULL;
    }
}

/* Flips a bit of the instruction's result: in f32 the middle of a significand. */
static void push_flip(struct weft_exec *exec, const struct exec_bound *bound)
{
    unsigned char *at = result_of(bound), byte = 0;
    if (at == NULL) return;
    at += 2;
    weft_arena_read(exec->arena, bound->stream, at, 1, &byte);
    if (weft_stream_synchronise(bound->stream, NULL) != WEFT_OK) return; /* the step tells why */
    exec->flipped = byte ^ 1;
    weft_arena_write(exec->arena, bound->stream, at, &exec->flipped, 1);
}

/* Writes NaN to the instruction's result, or to the loss if it has none. */
static void push_nan(struct weft_exec *exec, const struct exec_bound *bound)
{
    static const struct weft_range element = {
        0, sizeof(float)}; /* one number of 32 bits, or two of 16 */
    static const struct weft_range loss = {0, sizeof(double)};
    void *at = result_of(bound);
    weft_arena_fill(exec->arena, bound->stream, at != NULL ? at : EXEC_OWN(exec, loss),
                    at != NULL ? &element : &loss, 1, 0xff);
}

/* Writes the byte after the first buffer that the instruction writes. */
static void push_overrun(struct weft_exec *exec, int32_t i)
{
    static const struct weft_range one = {0, 1};
    const struct weft_program *program = exec->options.program;
    const struct weft_instruction *at = &program->instructions[i];
    for (int32_t o = at->first_operand; o < at->first_operand + at->n_operands; o++) {
        const int32_t b = program->operands[o].buffer;
        if (!program->operands[o].writes) continue;
        const int table = weft_exec_table_of(&exec->places, o, exec->parity);
        weft_arena_fill(exec->arena, exec->bound[i].stream,
                        exec->base + exec->places.offsets[table][b] +
                            program->buffers[b].used_bytes,
                        &one, 1, 0);
        return;
    }
}

static bool lives_at(const struct weft_buffer *buffer, int32_t slot)
{
    for (int32_t p = 0; p < buffer->n_pieces; p++) {
        if (weft_life_has(buffer->lives[p], slot)) return true;
    }
    return false;
}

/* Reads a byte of the first dead buffer with pages of its own. */
static void push_stale(struct weft_exec *exec, int32_t i)
{
    const struct weft_program *program = exec->options.program;
    for (int32_t b = 0; b < program->n_buffers; b++) {
        const struct weft_buffer *buffer = &program->buffers[b];
        const bool persists = weft_buffer_persists(program, buffer);
        if (persists || !exec->places.sole[b] || lives_at(buffer, exec->bound[i].slot)) continue;
        weft_arena_read(exec->arena, exec->bound[i].stream, exec->base + exec->places.offsets[0][b],
                        1, &exec->stale);
        return;
    }
}

/* A NaN or a flip comes after the instruction's work, other failures before it. A failpoint without
 * an index strikes once a step. */
void weft_exec_push_failure(struct weft_exec *exec, int32_t i, bool behind)
{
    const struct weft_failpoint *point = exec->options.failpoint;
    if (point == NULL || point->failure == WEFT_FAILURE_NONE) return;
    /* A settle does updates of the next step. */
    int64_t step = exec->inputs == NULL ? exec->last_step + 1 : exec->inputs->step;
    const struct weft_instruction *at = &exec->options.program->instructions[i];
    const struct exec_bound *bound = &exec->bound[i];
    enum weft_failure failure =
        weft_failpoint_at(point, weft_op_name(at->op), weft_comm_rank(exec->options.comm), step);
    int32_t index = at->layer >= 0 ? at->layer : at->unit;
    bool other = point->at >= 0 ? point->at != index : exec->failed_step == step;
    const bool of_result = failure == WEFT_FAILURE_NAN || failure == WEFT_FAILURE_FLIP;
    if (failure == WEFT_FAILURE_NONE || behind != of_result || other) return;
    exec->failed_step = step;
    if (failure == WEFT_FAILURE_OVERRUN) {
        push_overrun(exec, i);
    } else if (failure == WEFT_FAILURE_STALE) {
        push_stale(exec, i);
    } else if (failure == WEFT_FAILURE_FLIP) {
        push_flip(exec, bound);
    } else if (failure != WEFT_FAILURE_NAN) {
        weft_stream_push(bound->stream, fail_as_asked, &failure, sizeof failure);
    } else if (at->op == WEFT_OP_FORWARD || at->op == WEFT_OP_BACKWARD) {
        push_nan(exec, bound);
    }
}
