/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "program/program_text.h"
#include "program/verify_step.h"

/* Whether `a` is complete before `b` starts, in the same step. */
bool weft_step_is_before(const struct step *step, int32_t a, int32_t b)
{
    const struct weft_program *program = step->program;
    int32_t n = program->n_instructions;
    return weft_order_before(step->order, a + (program->instructions[a].carried ? n : 0),
                             b + (program->instructions[b].carried ? n : 0));
}

enum weft_status weft_step_fault(const struct step *step, int32_t index, const char *what)
{
    char name[WEFT_PROGRAM_NAME_BYTES];
    return weft_fail(step->err, WEFT_E_DATA, "program: %s: %s",
                     weft_program_instruction_name(step->program, index, name), what);
}

/* An instruction's operand that reads or writes a buffer of this kind; NULL: none. */
const struct weft_operand *weft_step_operand(const struct weft_program *program,
                                             const struct weft_instruction *at,
                                             enum weft_buffer_kind kind, int32_t unit, bool writes)
{
    for (int32_t i = 0; i < at->n_operands; i++) {
        const struct weft_operand *operand = &program->operands[at->first_operand + i];
        const struct weft_buffer *buffer = &program->buffers[operand->buffer];
        if (operand->writes == writes && buffer->kind == kind && buffer->index == unit)
            return operand;
    }
    return NULL;
}

static bool reads_gradient(const struct weft_program *program, const struct weft_instruction *at)
{
    const bool whole = weft_policy_is_whole(program->ways[at->unit].policy);
    return weft_step_operand(program, at, whole ? WEFT_BUFFER_GRADIENT : WEFT_BUFFER_REDUCED,
                             at->unit, false) != NULL;
}

static enum weft_status check_moments(struct step *step, int32_t index)
{
    const struct weft_program *program = step->program;
    const struct weft_instruction *at = &program->instructions[index];
    if (!program->period.agreed_updates)
        return weft_step_fault(step, index, "updates are not agreed on");
    if (step->moments >= 0)
        return weft_step_fault(step, index, "the update before it has not ended");
    if (!reads_gradient(program, at))
        return weft_step_fault(step, index, "it does not read its unit's gradient");
    if (weft_step_operand(program, at, WEFT_BUFFER_TENSOR_NORMS, at->unit, true) == NULL)
        return weft_step_fault(step, index, "it does not write its tensors' norms");
    step->moments = index;
    return WEFT_OK;
}

/* Checks the sum over ranks within an update. */
static enum weft_status check_agreed(struct step *step, int32_t index)
{
    const struct weft_program *program = step->program;
    const struct weft_instruction *at = &program->instructions[index];
    if (step->moments < 0 || step->agreed >= 0 ||
        program->instructions[step->moments].unit != at->unit ||
        !weft_step_is_before(step, step->moments, index))
        return weft_step_fault(step, index, "it does not follow its unit's moments");
    if (weft_step_operand(program, at, WEFT_BUFFER_TENSOR_NORMS, at->unit, false) == NULL ||
        weft_step_operand(program, at, WEFT_BUFFER_TENSOR_NORMS_SUM, at->unit, true) == NULL)
        return weft_step_fault(step, index, "it does not use its tensors' norms and their sum");
    step->agreed = index;
    return WEFT_OK;
}

/* Checks that an agreed update uses its agreement, and ends it. */
static enum weft_status check_agreement(struct step *step, int32_t index)
{
    const struct weft_program *program = step->program;
    const struct weft_instruction *at = &program->instructions[index];
    if (!program->period.agreed_updates) return WEFT_OK;
    if (step->agreed < 0 || program->instructions[step->agreed].unit != at->unit ||
        !weft_step_is_before(step, step->agreed, index) ||
        weft_step_operand(program, at, WEFT_BUFFER_TENSOR_NORMS_SUM, at->unit, false) == NULL)
        return weft_step_fault(step, index, "it does not use what ranks have agreed on");
    step->moments = step->agreed = -1;
    return WEFT_OK;
}

static enum weft_status check_update(struct step *step, int32_t index)
{
    const struct weft_program *program = step->program;
    const struct weft_instruction *at = &program->instructions[index];
    WEFT_TRY(check_agreement(step, index));
    if (weft_program_updates_on_host(program, at->unit))
        return weft_step_fault(step, index, "its unit is updated on the host");
    if (step->updates[at->unit] >= 0)
        return weft_step_fault(step, index, "the unit is updated twice");
    const int32_t turns = program->period.layers > 0 ? program->period.n_micro : 1;
    if (step->layers > (program->period.update_ahead > 0 ? step->n_layers * turns : 0) &&
        !program->period.rotated)
        return weft_step_fault(step, index,
                               "it comes after a forward with parameters that are not updated yet");
    step->updates[at->unit] = index;
    if (weft_program_is_offloaded(program, at->unit) &&
        (weft_step_blocks_until(program, step->reads[at->unit]) !=
             weft_step_state_pieces(program, at->unit) ||
         !weft_step_is_before(step, step->reads[at->unit], index)))
        return weft_step_fault(step, index, "it may start before the unit's state is there");
    const bool gathers = weft_policy_gathers(program->ways[at->unit].policy);
    if (weft_step_operand(program, at, gathers ? WEFT_BUFFER_SHARD : WEFT_BUFFER_FULL, at->unit,
                          true) == NULL)
        return weft_step_fault(step, index, "it does not write its unit's parameters");
    return reads_gradient(program, at)
               ? WEFT_OK
               : weft_step_fault(step, index, "it does not read its unit's gradient");
}

/* Whether a layer's offloaded activations of all micro-steps are on the host at once. */
static bool keeps_all(const struct weft_program *program)
{
    return program->period.layers > 0;
}

/* Place of a layer's copies in the lists of a step: those of inputs follow those of saved
 * activations. Copies to places of their own have lists of their own. */
static int32_t copies_at(const struct weft_program *program, int32_t layer, bool of_input,
                         int32_t micro)
{
    const int32_t at = of_input ? program->n_layers + layer : layer;
    return at * program->period.n_micro + (keeps_all(program) ? micro : 0);
}

/* Whether an instruction moves activations that its program offloads. */
static bool is_of_offloaded(const struct weft_program *program, const struct weft_instruction *at)
{
    if (!weft_item_kind_is_of_input((int32_t)at->op))
        return weft_program_saves_offloaded(program, at->layer);
    return at->layer > 0 && weft_program_moves_input(program, at->layer);
}

/* A layer's activations are on the host for one micro-step at a time, or each micro-step has a
 * place of its own. In one place a copy down follows the copy up of the micro-step before. A copy
 * up follows its own copy down. Between steps the last copy up is complete before its backward, and
 * that before the next forward. */
static enum weft_status check_copied(struct step *step, int32_t index)
{
    const struct weft_program *program = step->program;
    const struct weft_instruction *at = &program->instructions[index];
    const bool of_input = weft_item_kind_is_of_input((int32_t)at->op);
    const bool up = at->op == WEFT_OP_SAVED_UP || at->op == WEFT_OP_INPUT_UP;
    const int32_t copies = copies_at(program, at->layer, of_input, at->micro);
    const int32_t down = step->downs[copies], before = step->ups[copies];
    const int32_t last = up ? before : down; /* the block before, if any */
    if (!is_of_offloaded(program, at))
        return weft_step_fault(step, index,
                               of_input ? "its layer's input is not offloaded"
                                        : "its layer's saved activations are not offloaded");
    const enum weft_buffer_kind saved = up ? WEFT_BUFFER_RESTORED : WEFT_BUFFER_SAVED;
    const enum weft_buffer_kind output = up ? WEFT_BUFFER_RESTORED_OUTPUT : WEFT_BUFFER_OUTPUT;
    const struct weft_operand *operand =
        of_input ? weft_step_operand(program, at, output, at->layer - 1, up)
                 : weft_step_operand(program, at, saved, at->layer, up);
    if (operand == NULL || program->buffers[operand->buffer].instance != at->micro)
        return weft_step_fault(step, index,
                               of_input ? "it does not move its layer's input"
                                        : "it does not move what its layer saved");
    if (program->buffers[operand->buffer].n_pieces > 1 && operand->piece != at->block)
        return weft_step_fault(step, index, "its operand is not its block");
    if (at->block > 0) {
        if (last < 0 || program->instructions[last].micro != at->micro ||
            weft_step_blocks_until(program, last) != at->block)
            return weft_step_fault(step, index, "blocks of saved activations do not move in order");
    } else if (up ? down < 0 || program->instructions[down].micro != at->micro || before > down ||
                        weft_step_blocks_until(program, down) !=
                            program->buffers[operand->buffer].n_pieces ||
                        !weft_step_is_before(step, down, index)
                  : at->micro > 0 && !keeps_all(program) &&
                        (before < 0 || program->instructions[before].micro + 1 != at->micro ||
                         !weft_step_is_before(step, before, index)))
        return weft_step_fault(step, index, "it does not follow the copy before it");
    (up ? step->ups : step->downs)[copies] = index;
    return WEFT_OK;
}

/* Whether a forward reads a unit's parameters that its backward does not. */
static bool lacks_parameters(const struct weft_program *program,
                             const struct weft_instruction *forward,
                             const struct weft_instruction *backward)
{
    for (int32_t i = 0; i < forward->n_operands; i++) {
        const struct weft_operand *operand = &program->operands[forward->first_operand + i];
        const struct weft_buffer *buffer = &program->buffers[operand->buffer];
        if (buffer->kind == WEFT_BUFFER_FULL && !operand->writes &&
            weft_step_operand(program, backward, WEFT_BUFFER_FULL, buffer->index, false) == NULL)
            return true;
    }
    return false;
}

/* Whether the layer's level keeps bytes from forward to backward. */
static bool keeps_bytes(const struct weft_program *program, int32_t layer)
{
    for (int32_t i = 0; i < program->n_buffers; i++)
        if (program->buffers[i].kind == WEFT_BUFFER_SAVED && program->buffers[i].index == layer)
            return program->buffers[i].bytes > 0;
    return false;
}

/* Backward of a recomputed layer restores with the layer's input and all parameters of its forward,
 * in its temporary buffer. It reads saved activations only if the level keeps some. */
static enum weft_status check_recomputed(struct step *step, int32_t index)
{
    const struct weft_program *program = step->program;
    const struct weft_instruction *at = &program->instructions[index];
    const enum weft_recompute level = weft_program_recompute(program, at->layer);
    if (level == WEFT_RECOMPUTE_NONE) return WEFT_OK;
    int32_t *forward = &step->forwards[at->layer * program->period.n_micro + at->micro];
    if (at->op == WEFT_OP_FORWARD) {
        *forward = index;
        return weft_step_operand(program, at, WEFT_BUFFER_FORWARD_TEMPORARY, at->layer, true) !=
                       NULL
                   ? WEFT_OK
                   : weft_step_fault(step, index, "it has no room for what it drops");
    }
    const bool restored = at->layer > 0 && weft_program_moves_input(program, at->layer);
    const enum weft_buffer_kind input = at->layer == 0 ? WEFT_BUFFER_INPUT
                                        : restored     ? WEFT_BUFFER_RESTORED_OUTPUT
                                                       : WEFT_BUFFER_OUTPUT;
    if (weft_step_operand(program, at, WEFT_BUFFER_BACKWARD_TEMPORARY, at->layer, true) == NULL)
        return weft_step_fault(step, index, "it has no room for what it restores");
    if (weft_step_operand(program, at, input, at->layer - 1, false) == NULL)
        return weft_step_fault(step, index, "it restores, and does not read its layer's input");
    if (*forward < 0 || lacks_parameters(program, &program->instructions[*forward], at))
        return weft_step_fault(step, index, "it restores, and does not read all of its parameters");
    const bool kept =
        weft_step_operand(program, at, WEFT_BUFFER_SAVED, at->layer, false) != NULL ||
        weft_step_operand(program, at, WEFT_BUFFER_RESTORED, at->layer, false) != NULL;
    if (kept != keeps_bytes(program, at->layer))
        return weft_step_fault(step, index,
                               "it does not read what its level of recomputation keeps");
    return WEFT_OK;
}

/* Whether all blocks of a copy up have arrived in the buffer of an instruction's micro-step before
 * the instruction starts. `up`: the last of these blocks so far; -1: none. */
static bool is_back(const struct step *step, int32_t up, int32_t buffer, int32_t index)
{
    const struct weft_program *program = step->program;
    const int32_t micro = program->instructions[index].micro;
    return up >= 0 && program->instructions[up].micro == micro &&
           weft_step_blocks_until(program, up) == program->buffers[buffer].n_pieces &&
           program->buffers[buffer].instance == micro && weft_step_is_before(step, up, index);
}

/* A backward reads an offloaded output of its layer, or of the layer before, only in the buffer to
 * which the output is copied back. */
static enum weft_status check_output(struct step *step, int32_t index, int32_t layer)
{
    const struct weft_program *program = step->program;
    const struct weft_instruction *at = &program->instructions[index];
    if (layer < 0 || !weft_program_moves_output(program, layer)) return WEFT_OK;
    if (weft_step_operand(program, at, WEFT_BUFFER_OUTPUT, layer, false) != NULL)
        return weft_step_fault(step, index, "it reads an offloaded input that is not back");
    const int32_t up = step->ups[copies_at(program, layer + 1, true, at->micro)];
    const struct weft_operand *operand =
        weft_step_operand(program, at, WEFT_BUFFER_RESTORED_OUTPUT, layer, false);
    /* The input of the next layer is back by this layer's backward, even if nothing reads it. */
    const int32_t buffer =
        operand != NULL
            ? operand->buffer
            : weft_program_buffer(program, WEFT_BUFFER_RESTORED_OUTPUT, layer, at->micro);
    if (operand == NULL && layer < at->layer) return WEFT_OK;
    return buffer >= 0 && is_back(step, up, buffer, index)
               ? WEFT_OK
               : weft_step_fault(step, index, "it may start before an offloaded input is back");
}

/* Whether an instruction reads a layer's output in its micro-step, or the output has no bytes. The
 * batch is the output before the first layer. */
static bool reads_output(const struct step *step, const struct weft_instruction *at, int32_t layer)
{
    const struct weft_program *program = step->program;
    const bool restored =
        at->op == WEFT_OP_BACKWARD && layer >= 0 && weft_program_moves_output(program, layer);
    const enum weft_buffer_kind kind = restored    ? WEFT_BUFFER_RESTORED_OUTPUT
                                       : layer < 0 ? WEFT_BUFFER_INPUT
                                                   : WEFT_BUFFER_OUTPUT;
    const struct weft_operand *operand = weft_step_operand(program, at, kind, layer, false);
    if (operand != NULL) return program->buffers[operand->buffer].instance == at->micro;
    return weft_program_buffer(program, kind, layer, at->micro) < 0;
}

/* A forward reads its layer's input, and a backward the activations that its kind of layer needs.
 * A read that is missing would leave its buffer to others too early. */
static enum weft_status check_reads(struct step *step, int32_t index)
{
    const struct weft_instruction *at = &step->program->instructions[index];
    struct weft_layer_reads reads = step->program->reads[at->layer];
    if (at->op == WEFT_OP_FORWARD)
        reads = (struct weft_layer_reads){.input = true, .padding = reads.padding};
    if (reads.padding && !reads_output(step, at, -1))
        return weft_step_fault(step, index, "it does not read the tokens, to leave out padding");
    if (reads.input && !reads_output(step, at, at->layer - 1))
        return weft_step_fault(step, index, "it does not read its layer's input");
    if (reads.output && !reads_output(step, at, at->layer))
        return weft_step_fault(step, index, "it does not read its layer's output");
    return WEFT_OK;
}

/* An offloaded layer's activations must be back before its backward reads them. */
static enum weft_status check_restored(struct step *step, int32_t index)
{
    const struct weft_program *program = step->program;
    const struct weft_instruction *at = &program->instructions[index];
    if (at->op != WEFT_OP_BACKWARD) return WEFT_OK;
    WEFT_TRY(check_output(step, index, at->layer - 1));
    WEFT_TRY(check_output(step, index, at->layer));
    if (!weft_program_saves_offloaded(program, at->layer)) return WEFT_OK;
    const struct weft_operand *operand =
        weft_step_operand(program, at, WEFT_BUFFER_RESTORED, at->layer, false);
    if (operand == NULL ||
        weft_step_operand(program, at, WEFT_BUFFER_SAVED, at->layer, false) != NULL)
        return weft_step_fault(step, index,
                               "it does not read what its layer saved, back from the host");
    if (!is_back(step, step->ups[copies_at(program, at->layer, false, at->micro)], operand->buffer,
                 index))
        return weft_step_fault(step, index, "it may start before what its layer saved is back");
    return WEFT_OK;
}

/* Number of blocks gathered into a buffer in every step. */
static int32_t gathered_blocks(const struct weft_program *program, int32_t full)
{
    const struct weft_buffer *buffer = &program->buffers[full];
    const struct weft_policy_groups groups = weft_step_groups(program, buffer->index);
    if (groups.state == WEFT_GROUP_NONE)
        return weft_step_averages(program, buffer->index) ? weft_step_blocks(program, buffer->index)
                                                          : 0;
    if (groups.parameters != WEFT_GROUP_NONE) return buffer->n_pieces;
    int32_t gradient = weft_program_buffer(program, WEFT_BUFFER_GRADIENT, buffer->index, 0);
    return gradient < 0 ? 0 : program->buffers[gradient].n_pieces;
}

/* A gradient gets no additions after one of its blocks was reduced. Parameters are read only with
 * all blocks gathered: a resident buffer shows no other difference between steps. */
static enum weft_status check_layer_operands(struct step *step, int32_t index)
{
    const struct weft_program *program = step->program;
    const struct weft_instruction *at = &program->instructions[index];
    for (int32_t i = 0; i < at->n_operands; i++) {
        const struct weft_operand *operand = &program->operands[at->first_operand + i];
        enum weft_buffer_kind kind = program->buffers[operand->buffer].kind;
        int32_t moved = step->moved[operand->buffer];
        if (kind == WEFT_BUFFER_GRADIENT &&
            program->buffers[operand->buffer].instance != at->micro / program->period.group)
            return weft_step_fault(step, index, "it adds to the gradient of another round");
        if (kind == WEFT_BUFFER_GRADIENT && operand->writes && moved > 0)
            return weft_step_fault(step, index,
                                   "it writes a gradient of which a block is reduced already");
        if (kind != WEFT_BUFFER_FULL) continue;
        if (moved != gathered_blocks(program, operand->buffer))
            return weft_step_fault(step, index, "it reads parameters that are not gathered yet");
        int32_t unit = program->buffers[operand->buffer].index;
        bool trains = weft_program_buffer(program, WEFT_BUFFER_GRADIENT, unit, 0) >= 0;
        if (trains && step->updates[unit] < 0)
            return weft_step_fault(step, index, "it reads parameters that are not updated yet");
    }
    return WEFT_OK;
}

/* In a period that updates in backward, the rest of a step comes before the updates that follow in
 * the period. */
static bool precedes_updates(const struct step *step, int32_t index)
{
    const struct weft_program *program = step->program;
    const struct weft_instruction *at = &program->instructions[index];
    for (int32_t i = 0; i < at->n_operands; i++) {
        const struct weft_buffer *of =
            &program->buffers[program->operands[at->first_operand + i].buffer];
        if (of->kind == WEFT_BUFFER_FULL && step->updates[of->index] >= 0 &&
            !weft_order_before(step->order, index, step->updates[of->index]))
            return false;
    }
    return true;
}

/* Goes on from the forward or backward that is next. Each micro-step has one forward per layer in
 * order, then one backward each in reverse order. If micro-steps take turns by layers, one runs
 * through a group of them, then the next micro-step through the same group. The last group turns:
 * a micro-step runs forward and backward through it. */
static void turn_next(struct step *step)
{
    const struct weft_period_rule *period = &step->program->period;
    const int32_t n = step->n_layers, each = period->layers > 0 ? period->layers : n;
    const int32_t first = step->next.layer - step->next.layer % each;
    const int32_t end = first + each < n ? first + each : n;
    if (!step->next.backward && step->next.layer + 1 < end) {
        step->next.layer++;
    } else if (!step->next.backward && end == n) {
        step->next.backward = true;
    } else if (step->next.backward && step->next.layer > first) {
        step->next.layer--;
    } else if (step->next.micro + 1 < period->n_micro) {
        step->next.micro++;
        if (end == n) step->next.backward = false;
        step->next.layer = step->next.backward ? end - 1 : first;
    } else {
        step->next.micro = 0;
        step->next.layer = step->next.backward ? first - 1 : end;
    }
}

static enum weft_status check_layer(struct step *step, int32_t index)
{
    const struct weft_instruction *at = &step->program->instructions[index];
    if (at->op == WEFT_OP_ZERO) return check_layer_operands(step, index);
    if (step->n_layers == 0) return weft_step_fault(step, index, "there is no forward");
    const bool all = step->layers++ == 2 * step->program->period.n_micro * step->n_layers;
    if (all || at->micro != step->next.micro || at->layer != step->next.layer ||
        (at->op == WEFT_OP_BACKWARD) != step->next.backward)
        return weft_step_fault(
            step, index,
            step->program->period.layers > 0
                ? "forwards do not run in order of layers and backwards in reverse order, all "
                  "micro-steps in each group of layers"
                : "forwards do not run in order of layers and backwards in reverse order, "
                  "micro-step after micro-step");
    turn_next(step);
    WEFT_TRY(check_restored(step, index));
    WEFT_TRY(check_recomputed(step, index));
    WEFT_TRY(check_reads(step, index));
    const struct weft_period_rule *period = &step->program->period;
    if ((period->delayed || period->update_after > 0) && at->carried &&
        !precedes_updates(step, index))
        return weft_step_fault(step, index, "it may read parameters of the next step");
    return check_layer_operands(step, index);
}

/* Checks that every buffer of blocks is complete: gathered, or reduced before the norm. */
static enum weft_status check_complete(struct step *step, bool gradients, int32_t index)
{
    const struct weft_program *program = step->program;
    for (int32_t b = 0; b < program->n_buffers; b++) {
        const struct weft_buffer *buffer = &program->buffers[b];
        const bool reduced =
            buffer->kind == WEFT_BUFFER_GRADIENT || buffer->kind == WEFT_BUFFER_PARTIAL;
        if (gradients ? !reduced : buffer->kind != WEFT_BUFFER_FULL) continue;
        int32_t expected = gradients ? buffer->n_pieces : gathered_blocks(program, b);
        if (step->moved[b] == expected) continue;
        char name[WEFT_PROGRAM_NAME_BYTES], at[WEFT_PROGRAM_NAME_BYTES];
        return weft_fail(step->err, WEFT_E_DATA,
                         "program: %s: %d of %d blocks of %s have moved by then",
                         weft_program_instruction_name(program, index, at), step->moved[b],
                         expected, weft_program_piece_name(program, b, 0, name));
    }
    return WEFT_OK;
}

static enum weft_status check_norm(struct step *step, int32_t index)
{
    const struct weft_program *program = step->program;
    if (step->norm >= 0) return weft_step_fault(step, index, "there is a second norm");
    step->norm = index;
    if (weft_step_operand(program, &program->instructions[index], WEFT_BUFFER_RECORD, -1, true) ==
        NULL)
        return weft_step_fault(step, index, "it does not write the record");
    if (!weft_period_norms(&program->period)) return WEFT_OK;
    if (!program->period.delayed) WEFT_TRY(check_complete(step, true, index)); /* check_sum */
    for (int32_t u = 0; u < program->n_units; u++) {
        const bool whole = weft_policy_is_whole(program->ways[u].policy);
        const bool hosted = weft_program_updates_on_host(program, u);
        if (hosted && (step->hosted[u].downs != weft_step_blocks(program, u) ||
                       !weft_step_is_before(step, step->hosted[u].down, index)))
            return weft_step_fault(step, index,
                                   "not all gradients that the host updates with are down");
        bool normed =
            hosted ||
            weft_step_operand(program, &program->instructions[index],
                              whole ? WEFT_BUFFER_GRADIENT : WEFT_BUFFER_REDUCED, u, false) != NULL;
        bool trained = weft_program_buffer(program, WEFT_BUFFER_GRADIENT, u, 0) >= 0;
        if (normed != trained || trained != (step->updates[u] >= 0))
            return weft_step_fault(step, index,
                                   "the units that train, update and are in the norm differ");
    }
    return WEFT_OK;
}

static enum weft_status check_end(struct step *step, int32_t index)
{
    bool agrees = step->program->instructions[index].op == WEFT_OP_AGREE;
    int32_t *seen = agrees ? &step->agree : &step->finish;
    int32_t before = agrees ? step->norm : step->agree;
    if (*seen >= 0 || before < 0 || !weft_step_is_before(step, before, index))
        return weft_step_fault(step, index, "norm, agree and finish do not follow each other");
    *seen = index;
    const struct weft_program *program = step->program;
    const struct weft_instruction *at = &program->instructions[index];
    bool whole = weft_step_operand(program, at, WEFT_BUFFER_RECORD_SUM, -1, agrees) != NULL &&
                 (!agrees || weft_step_operand(program, at, WEFT_BUFFER_RECORD, -1, false) != NULL);
    return whole ? WEFT_OK : weft_step_fault(step, index, "it does not use the record and its sum");
}

static enum weft_status check_instruction(struct step *step, int32_t index)
{
    const struct weft_instruction *at = &step->program->instructions[index];
    if (step->agree >= 0 && at->op != WEFT_OP_FINISH && !at->carried)
        return weft_step_fault(step, index, "it comes after the sum over ranks");
    switch (at->op) {
    case WEFT_OP_MOMENTS:
        return check_moments(step, index);
    case WEFT_OP_UPDATE:
        return check_update(step, index);
    case WEFT_OP_FORWARD:
    case WEFT_OP_ZERO:
    case WEFT_OP_BACKWARD:
        return check_layer(step, index);
    case WEFT_OP_NORM:
        return check_norm(step, index);
    case WEFT_OP_AGREE:
        return at->unit >= 0 ? check_agreed(step, index) : check_end(step, index);
    case WEFT_OP_SAVED_DOWN:
    case WEFT_OP_SAVED_UP:
    case WEFT_OP_INPUT_DOWN:
    case WEFT_OP_INPUT_UP:
        return check_copied(step, index);
    case WEFT_OP_ALL_GATHER:
    case WEFT_OP_REDUCE_SCATTER:
    case WEFT_OP_ALL_REDUCE:
    case WEFT_OP_ACROSS_REDUCE:
    case WEFT_OP_ACROSS_SCATTER:
    case WEFT_OP_ACROSS_GATHER:
    case WEFT_OP_READ:
    case WEFT_OP_WRITE:
    case WEFT_OP_COPY_UP:
    case WEFT_OP_COPY_DOWN:
    case WEFT_OP_GRADIENT_DOWN:
    case WEFT_OP_HOST_UPDATE:
    case WEFT_OP_PARAMETERS_UP:
    case WEFT_OP_PARAMETERS_DOWN:
    case WEFT_OP_PARAMETERS_FETCH:
    case WEFT_OP_AVERAGE:
    case WEFT_OP_AVERAGE_GATHER:
        return weft_verify_move(step, index);
    case WEFT_OP_FINISH:
        return check_end(step, index);
    case WEFT_OP_MARK:
    case WEFT_OP_LOAD:
    case WEFT_OP_COUNT:
        break;
    }
    return WEFT_OK;
}

/* Checks that exactly the units that train are updated. */
static enum weft_status check_trained(const struct step *step, int32_t last)
{
    for (int32_t u = 0; u < step->program->n_units; u++) {
        bool trained = weft_program_buffer(step->program, WEFT_BUFFER_GRADIENT, u, 0) >= 0;
        if (trained != (step->updates[u] >= 0))
            return weft_step_fault(step, last, "not every unit that trains has been updated");
        if (weft_program_updates_on_host(step->program, u) &&
            step->hosted[u].downs != weft_step_blocks(step->program, u))
            return weft_step_fault(step, last,
                                   "not all gradients that the host updates with are down");
        if (weft_program_fetches(step->program, u) &&
            step->hosted[u].downs != weft_step_blocks(step->program, u))
            return weft_step_fault(step, last, "not all of a shard on the host has gone down");
        if (!weft_program_is_offloaded(step->program, u) ||
            weft_program_updates_on_host(step->program, u))
            continue;
        if (weft_step_blocks_until(step->program, step->writes[u]) !=
                weft_step_state_pieces(step->program, u) ||
            !weft_step_is_before(step, step->writes[u], last))
            return weft_step_fault(step, last, "not all offloaded state has been written");
    }
    return WEFT_OK;
}

/* Bytes of a layer in the host's memory: of its saved activations, or of its input. Empty if they
 * stay on the device. */
struct host_place {
    int64_t begin, end;
    int32_t layer;
};

static struct host_place place_of(const struct weft_program *program, int32_t layer, bool of_input)
{
    const bool moves = of_input ? layer > 0 && weft_program_moves_input(program, layer)
                                : weft_program_saves_offloaded(program, layer);
    const int32_t buffer = !moves ? -1
                           : of_input
                               ? weft_program_buffer(program, WEFT_BUFFER_OUTPUT, layer - 1, 0)
                               : weft_program_buffer(program, WEFT_BUFFER_SAVED, layer, 0);
    if (buffer < 0) return (struct host_place){.layer = layer};
    const int64_t begin = of_input ? program->inputs_at[layer] : program->saved_at[layer];
    const int64_t bytes = program->buffers[buffer].used_bytes;
    int64_t end = begin + bytes;
    for (int32_t micro = 1; micro < program->period.n_micro && keeps_all(program); micro++)
        end = begin + weft_program_place(program, micro, bytes) + bytes;
    return (struct host_place){begin, end, layer};
}

/* Offloaded activations are within the host's memory, and no two share bytes. */
static enum weft_status check_places(const struct step *step)
{
    const struct weft_program *program = step->program;
    const int32_t n = 2 * program->n_layers;
    if (program->saved_at == NULL && program->inputs_at == NULL) return WEFT_OK;
    struct host_place *places = calloc((size_t)n + 1, sizeof *places);
    if (places == NULL) return weft_fail_memory(step->err, "verification");
    int32_t wrong = -1;
    for (int32_t i = 0; i < n; i++) {
        const struct host_place at = place_of(program, i / 2, i % 2 > 0);
        if (at.end > program->host_bytes) wrong = at.layer;
        for (int32_t k = 0; k < i; k++)
            if (at.begin < places[k].end && places[k].begin < at.end) wrong = at.layer;
        places[i] = at;
    }
    free(places);
    if (wrong < 0) return WEFT_OK;
    return weft_fail(step->err, WEFT_E_DATA,
                     "program: layer %d has no place of its own in the host's memory for its "
                     "offloaded activations",
                     wrong);
}

static enum weft_status check_all(struct step *step)
{
    const struct weft_program *program = step->program;
    int32_t last = program->n_instructions - 1;
    for (int32_t u = 0; u < program->n_units; u++)
        step->updates[u] = step->reads[u] = step->writes[u] = step->average[u] = -1;
    for (int32_t i = 0; i < program->n_layers * program->period.n_micro; i++)
        step->forwards[i] = -1;
    for (int32_t i = 0; i < 2 * program->n_layers * program->period.n_micro; i++)
        step->downs[i] = step->ups[i] = -1;
    for (int32_t i = 0; i <= last; i++) {
        const struct weft_instruction *at = &program->instructions[i];
        if (at->op == WEFT_OP_FORWARD && at->layer >= step->n_layers)
            step->n_layers = at->layer + 1;
        if (at->carried && !program->period.rotated)
            return weft_step_fault(step, i, "nothing is carried over the end of this period");
    }
    WEFT_TRY(check_places(step));
    for (int pass = 0; pass < 2; pass++) {
        for (int32_t i = 0; i <= last; i++) {
            if (program->instructions[i].carried == (pass > 0))
                WEFT_TRY(check_instruction(step, i));
        }
    }
    if (step->finish != last)
        return weft_step_fault(step, last, "a step does not end without finish");
    if (step->layers == 0 || step->layers != 2 * program->period.n_micro * step->n_layers)
        return weft_step_fault(step, last, "not every forward has its backward");
    WEFT_TRY(check_trained(step, last));
    WEFT_TRY(check_complete(step, true, last));
    return check_complete(step, false, last);
}

enum weft_status weft_verify_step(const struct weft_program *program,
                                  const struct weft_order *order, struct weft_error *err)
{
    const size_t n_layers = (size_t)program->n_layers * (size_t)program->period.n_micro;
    struct step step = {
        .program = program,
        .order = order,
        .err = err,
        .updates = calloc((size_t)program->n_units + 1, sizeof *step.updates),
        .reads = calloc((size_t)program->n_units + 1, sizeof *step.reads),
        .writes = calloc((size_t)program->n_units + 1, sizeof *step.writes),
        .hosted = calloc((size_t)program->n_units + 1, sizeof *step.hosted),
        .downs = calloc(2 * n_layers + 1, sizeof *step.downs),
        .ups = calloc(2 * n_layers + 1, sizeof *step.ups),
        .forwards = calloc(n_layers + 1, sizeof *step.forwards),
        .moved = calloc((size_t)program->n_buffers + 1, sizeof *step.moved),
        .averaged = calloc((size_t)program->n_units + 1, sizeof *step.averaged),
        .average = calloc((size_t)program->n_units + 1, sizeof *step.average),
        .summed = calloc((size_t)program->n_units + 1, sizeof *step.summed),
        .moments = -1,
        .agreed = -1,
        .norm = -1,
        .agree = -1,
        .finish = -1,
    };
    bool room = step.updates != NULL && step.reads != NULL && step.writes != NULL &&
                step.hosted != NULL && step.downs != NULL && step.ups != NULL &&
                step.forwards != NULL && step.moved != NULL && step.summed != NULL &&
                step.averaged != NULL && step.average != NULL;
    enum weft_status status = room ? check_all(&step) : weft_fail_memory(err, "verification");
    free(step.updates);
    free(step.reads);
    free(step.writes);
    free(step.hosted);
    free(step.downs);
    free(step.ups);
    free(step.forwards);
    free(step.moved);
    free(step.averaged);
    free(step.average);
    free(step.summed);
    return status;
}
