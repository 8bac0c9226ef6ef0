/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "program/program_text.h"
#include "program/verify.h"

/* An update on the host so far: number of blocks copied down, updated and copied up, and the last
 * instruction of each; -1: none. */
struct there {
    int32_t downs, updates, ups;
    int32_t down, first_update, update, up;
};

/* A step so far, in issue order. The carried work of a rotated period comes last, as it follows in
 * the next period. */
struct step {
    const struct weft_program *program;
    const struct weft_order *order;
    struct weft_error *err;
    int32_t *updates;    /* [n_units]: its UPDATE; -1: none */
    int32_t *reads;      /* by offloaded unit: its last READ or COPY_UP; -1: none */
    int32_t *writes;     /* the same: its last WRITE or COPY_DOWN */
    struct there *there; /* by unit with updates on the host, or a shard there (downs, down) */
    int32_t *downs;      /* [n_layers]: its last SAVED_DOWN; -1: none */
    int32_t *ups;        /* [n_layers]: its last SAVED_UP; -1: none */
    int32_t *forwards;   /* by recomputed layer: its last FORWARD; -1: none */
    int32_t moments;     /* MOMENTS of the current update; -1: none */
    int32_t agreed;      /* AGREE of the current update; -1: none */
    int32_t *moved;      /* [n_buffers]: blocks gathered into it or reduced from it */
    int32_t *summed;     /* by unit: rounds with all gradients in its slice */
    int32_t n_layers;    /* of the model */
    int32_t layers;      /* forwards and backwards so far */
    int32_t norm, agree, finish;
};

/* Whether `a` is complete before `b` starts, in the same step. */
static bool is_before(const struct step *step, int32_t a, int32_t b)
{
    const struct weft_program *program = step->program;
    int32_t n = program->n_instructions;
    return weft_order_before(step->order, a + (program->instructions[a].carried ? n : 0),
                             b + (program->instructions[b].carried ? n : 0));
}

static enum weft_status step_fault(const struct step *step, int32_t index, const char *what)
{
    char name[WEFT_PROGRAM_NAME_BYTES];
    return weft_fail(step->err, WEFT_E_DATA, "program: %s: %s",
                     weft_program_instruction_name(step->program, index, name), what);
}

/* An instruction's operand that reads or writes a buffer of this kind; NULL: none. */
static const struct weft_operand *find_operand(const struct weft_program *program,
                                               const struct weft_instruction *at,
                                               enum weft_buffer_kind kind, int32_t unit,
                                               bool writes)
{
    for (int32_t i = 0; i < at->n_operands; i++) {
        const struct weft_operand *operand = &program->operands[at->first_operand + i];
        const struct weft_buffer *buffer = &program->buffers[operand->buffer];
        if (operand->writes == writes && buffer->kind == kind && buffer->index == unit)
            return operand;
    }
    return NULL;
}

/* Checks that blocks of a buffer move in index order, each once. */
static enum weft_status move_block(struct step *step, int32_t index,
                                   const struct weft_operand *operand)
{
    const struct weft_instruction *at = &step->program->instructions[index];
    const struct weft_buffer *buffer = &step->program->buffers[operand->buffer];
    if (buffer->n_pieces > 1 && operand->piece != at->block)
        return step_fault(step, index, "its operand is not its block");
    if (at->block != step->moved[operand->buffer]++)
        return step_fault(step, index, "blocks do not move in order, each once");
    return WEFT_OK;
}

static int32_t blocks_of(const struct weft_program *program, int32_t unit)
{
    return program->buffers[weft_program_buffer(program, WEFT_BUFFER_GRADIENT, unit, 0)].n_pieces;
}

/* Blocks up to the last one of an item that has moved; -1: none has. */
static int32_t blocks_until(const struct weft_program *program, int32_t last)
{
    return last < 0 ? 0 : program->instructions[last].block + 1;
}

/* Pieces in which a unit's state moves. */
static int32_t state_pieces(const struct weft_program *program, int32_t unit)
{
    int32_t buffer = weft_program_buffer(program, WEFT_BUFFER_MASTER, unit, 0);
    if (buffer < 0) buffer = weft_program_buffer(program, WEFT_BUFFER_MOMENT1, unit, 0);
    return buffer < 0 ? 1 : program->buffers[buffer].n_pieces;
}

/* Whether an instruction follows one of that op in its chain, with its unit and block. */
static bool comes_after(const struct weft_program *program, const struct weft_instruction *at,
                        enum weft_op op)
{
    const struct weft_instruction *before = &program->instructions[at->after];
    return at->after > 0 && before->op == op && before->unit == at->unit &&
           before->block == at->block;
}

/* A unit with updates on the host is gathered after its parameters came up: block by block, or
 * after all blocks. */
static bool is_up(const struct step *step, int32_t index)
{
    const struct weft_instruction *at = &step->program->instructions[index];
    const struct there *there = &step->there[at->unit];
    if (comes_after(step->program, at, WEFT_OP_PARAMETERS_UP)) return there->ups > at->block;
    return there->ups == blocks_of(step->program, at->unit) && is_before(step, there->up, index);
}

/* Whether a gather takes its block from the copy up before it, for the same residency. */
static bool is_fetched(const struct weft_program *program, const struct weft_instruction *at,
                       const struct weft_operand *from, const struct weft_operand *to)
{
    return comes_after(program, at, WEFT_OP_PARAMETERS_FETCH) && from->piece == at->block &&
           program->buffers[from->buffer].instance == 1 + program->buffers[to->buffer].instance;
}

static enum weft_status check_gather(struct step *step, int32_t index)
{
    const struct weft_program *program = step->program;
    const struct weft_instruction *at = &program->instructions[index];
    enum weft_policy policy = program->ways[at->unit].policy;
    if (policy == WEFT_POLICY_DP)
        return step_fault(step, index, "a unit under dp is never gathered");
    const struct weft_operand *to = find_operand(program, at, WEFT_BUFFER_FULL, at->unit, true);
    bool resident = weft_policy_refreshes(policy);
    const struct weft_operand *from =
        find_operand(program, at, resident ? WEFT_BUFFER_FULL : WEFT_BUFFER_SHARD, at->unit, false);
    if (to == NULL || from == NULL)
        return step_fault(step, index, "it does not gather its unit's parameters");
    int32_t update = step->updates[at->unit];
    bool trains = weft_program_buffer(program, WEFT_BUFFER_GRADIENT, at->unit, 0) >= 0;
    const bool there = weft_program_updates_there(program, at->unit);
    if (trains && (there ? !is_up(step, index) : update < 0 || !is_before(step, update, index)))
        return step_fault(step, index, "it may start before the unit's update is over");
    if (weft_program_fetches(program, at->unit) && !is_fetched(program, at, from, to))
        return step_fault(step, index, "it does not gather the slice that came up for it");
    return move_block(step, index, to);
}

/* A shard on the host goes down after its unit's update, once. A copy up follows its block's copy
 * down, or all of them. The use of the last copy up is complete before the next update. */
static enum weft_status check_shard(struct step *step, int32_t index)
{
    const struct weft_program *program = step->program;
    const struct weft_instruction *at = &program->instructions[index];
    const bool down = at->op == WEFT_OP_PARAMETERS_DOWN;
    const int32_t update = step->updates[at->unit];
    struct there *there = &step->there[at->unit];
    const struct weft_operand *operand =
        find_operand(program, at, WEFT_BUFFER_SHARD, at->unit, !down);
    if (!weft_program_fetches(program, at->unit))
        return step_fault(step, index, "its unit's shard is not on the host");
    if (operand == NULL || down != (program->buffers[operand->buffer].instance == 0))
        return step_fault(step, index, "it does not copy its unit's shard");
    if (update < 0 || !is_before(step, update, index))
        return step_fault(step, index, "it may start before the unit's update is over");
    if (down) {
        there->downs++;
        there->down = index;
    } else if (!comes_after(program, at, WEFT_OP_PARAMETERS_DOWN) &&
               (there->downs != blocks_of(program, at->unit) ||
                !is_before(step, there->down, index))) {
        return step_fault(step, index, "it may start before the updated shard is on the host");
    }
    return move_block(step, index, operand);
}

/* Rounds are added to a slice in order, the first without earlier content. All are added
 * before the next update. */
static enum weft_status check_sum(struct step *step, int32_t index, const struct weft_operand *from)
{
    const struct weft_program *program = step->program;
    const struct weft_instruction *at = &program->instructions[index];
    const struct weft_buffer *gradient = &program->buffers[from->buffer];
    int32_t update = step->updates[at->unit];
    if (at->micro != weft_period_round_end(&program->period, gradient->instance))
        return step_fault(step, index, "it reduces another micro-step's gradient");
    const bool hybrid = program->ways[at->unit].policy == WEFT_POLICY_HSDP;
    const bool sums =
        at->op == WEFT_OP_ACROSS_REDUCE || (at->op == WEFT_OP_REDUCE_SCATTER && !hybrid);
    bool adds = find_operand(program, at, WEFT_BUFFER_REDUCED, at->unit, false) != NULL;
    if (sums && adds != (gradient->instance > 0))
        return step_fault(step, index, "all gradients but the first are added to the slice");
    if (step->summed[at->unit] != gradient->instance)
        return step_fault(step, index, "rounds are not added to the slice in order");
    /* A delayed update frees the slice, and the next period's comes after the norm. */
    const bool delayed = program->period.delayed;
    if (delayed && (update < 0 || !weft_order_before(step->order, update, index)))
        return step_fault(step, index, "its unit's update may still read the gradient before it");
    if (program->period.rotated && at->carried &&
        (update < 0 || !weft_order_before(step->order, index, delayed ? step->norm : update)))
        return step_fault(step, index, "the unit's update does not wait for it");
    if (at->block + 1 == gradient->n_pieces) step->summed[at->unit]++;
    return WEFT_OK;
}

static enum weft_status check_reduction(struct step *step, int32_t index)
{
    const struct weft_program *program = step->program;
    const struct weft_instruction *at = &program->instructions[index];
    bool whole = at->op == WEFT_OP_ALL_REDUCE;
    if (whole != (program->ways[at->unit].policy == WEFT_POLICY_DP))
        return step_fault(step, index, "its unit's policy reduces in another way");
    const struct weft_operand *from =
        find_operand(program, at, WEFT_BUFFER_GRADIENT, at->unit, false);
    const bool hybrid = program->ways[at->unit].policy == WEFT_POLICY_HSDP;
    const bool in_place = weft_policy_is_whole(program->ways[at->unit].policy);
    const enum weft_buffer_kind sliced = hybrid ? WEFT_BUFFER_PARTIAL : WEFT_BUFFER_REDUCED;
    const struct weft_operand *to =
        find_operand(program, at, in_place ? WEFT_BUFFER_GRADIENT : sliced, at->unit, true);
    if (from == NULL || to == NULL)
        return step_fault(step, index, "it does not reduce its unit's gradient");
    if ((in_place || hybrid) &&
        (to->piece != from->piece ||
         program->buffers[to->buffer].instance != program->buffers[from->buffer].instance))
        return step_fault(step, index, "it writes another block than it reads");
    if (!hybrid) WEFT_TRY(check_sum(step, index, from));
    return move_block(step, index, from);
}

/* A sum over nodes takes the partial sums of its block from the reduction before it. */
static enum weft_status check_across(struct step *step, int32_t index)
{
    const struct weft_program *program = step->program;
    const struct weft_instruction *at = &program->instructions[index];
    const struct weft_operand *from =
        find_operand(program, at, WEFT_BUFFER_PARTIAL, at->unit, false);
    if (program->ways[at->unit].policy != WEFT_POLICY_HSDP || from == NULL ||
        find_operand(program, at, WEFT_BUFFER_PARTIAL, at->unit, true) == NULL ||
        find_operand(program, at, WEFT_BUFFER_REDUCED, at->unit, true) == NULL)
        return step_fault(step, index, "it does not sum its unit's partial sums");
    if (!comes_after(program, at, WEFT_OP_REDUCE_SCATTER))
        return step_fault(step, index, "it does not follow its block's reduction in the node");
    WEFT_TRY(check_sum(step, index, from));
    return move_block(step, index, from);
}

static bool reads_gradient(const struct weft_program *program, const struct weft_instruction *at)
{
    const bool whole = weft_policy_is_whole(program->ways[at->unit].policy);
    return find_operand(program, at, whole ? WEFT_BUFFER_GRADIENT : WEFT_BUFFER_REDUCED, at->unit,
                        false) != NULL;
}

static enum weft_status check_moments(struct step *step, int32_t index)
{
    const struct weft_program *program = step->program;
    const struct weft_instruction *at = &program->instructions[index];
    if (!program->period.agreed_updates)
        return step_fault(step, index, "updates are not agreed on");
    if (step->moments >= 0) return step_fault(step, index, "the update before it has not ended");
    if (!reads_gradient(program, at))
        return step_fault(step, index, "it does not read its unit's gradient");
    if (find_operand(program, at, WEFT_BUFFER_TENSOR_NORMS, at->unit, true) == NULL)
        return step_fault(step, index, "it does not write its tensors' norms");
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
        !is_before(step, step->moments, index))
        return step_fault(step, index, "it does not follow its unit's moments");
    if (find_operand(program, at, WEFT_BUFFER_TENSOR_NORMS, at->unit, false) == NULL ||
        find_operand(program, at, WEFT_BUFFER_TENSOR_NORMS_SUM, at->unit, true) == NULL)
        return step_fault(step, index, "it does not use its tensors' norms and their sum");
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
        !is_before(step, step->agreed, index) ||
        find_operand(program, at, WEFT_BUFFER_TENSOR_NORMS_SUM, at->unit, false) == NULL)
        return step_fault(step, index, "it does not use what ranks have agreed on");
    step->moments = step->agreed = -1;
    return WEFT_OK;
}

static enum weft_status check_update(struct step *step, int32_t index)
{
    const struct weft_program *program = step->program;
    const struct weft_instruction *at = &program->instructions[index];
    WEFT_TRY(check_agreement(step, index));
    if (weft_program_updates_there(program, at->unit))
        return step_fault(step, index, "its unit is updated on the host");
    if (step->updates[at->unit] >= 0) return step_fault(step, index, "the unit is updated twice");
    if (step->layers > (program->period.update_ahead > 0 ? step->n_layers : 0) &&
        !program->period.rotated)
        return step_fault(step, index,
                          "it comes after a forward with parameters that are not updated yet");
    step->updates[at->unit] = index;
    if (weft_program_is_away(program, at->unit) &&
        (blocks_until(program, step->reads[at->unit]) != state_pieces(program, at->unit) ||
         !is_before(step, step->reads[at->unit], index)))
        return step_fault(step, index, "it may start before the unit's state is there");
    const bool gathers = weft_policy_gathers(program->ways[at->unit].policy);
    if (find_operand(program, at, gathers ? WEFT_BUFFER_SHARD : WEFT_BUFFER_FULL, at->unit, true) ==
        NULL)
        return step_fault(step, index, "it does not write its unit's parameters");
    return reads_gradient(program, at)
               ? WEFT_OK
               : step_fault(step, index, "it does not read its unit's gradient");
}

/* Whether it moves its block of a unit's whole state into the arena, or out of it. */
static bool moves_state(const struct weft_program *program, const struct weft_instruction *at)
{
    static const enum weft_buffer_kind kinds[] = {WEFT_BUFFER_MASTER, WEFT_BUFFER_MOMENT1,
                                                  WEFT_BUFFER_MOMENT2};
    const bool reads = weft_op_brings_state(at->op);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (weft_program_buffer(program, kinds[i], at->unit, 0) < 0) continue;
        const struct weft_operand *operand = find_operand(program, at, kinds[i], at->unit, reads);
        if (operand == NULL || find_operand(program, at, kinds[i], at->unit, !reads) != NULL)
            return false;
        if (program->buffers[operand->buffer].n_pieces > 1 && operand->piece != at->block)
            return false;
    }
    return true;
}

/* Offloaded state comes, is updated and goes, once each. It has gone before the period ends
 * (check_trained). So it cannot come before it went in the period before. */
static enum weft_status check_moved(struct step *step, int32_t index)
{
    const struct weft_program *program = step->program;
    const struct weft_instruction *at = &program->instructions[index];
    const bool reads = weft_op_brings_state(at->op);
    const bool of_disk = at->op == WEFT_OP_READ || at->op == WEFT_OP_WRITE;
    const int32_t update = step->updates[at->unit];
    if (!weft_program_is_away(program, at->unit))
        return step_fault(step, index, "its unit's state is not away");
    if (weft_program_home(program, at->unit) != (of_disk ? WEFT_HOME_DISK : WEFT_HOME_HOST))
        return step_fault(step, index, "its unit's state has another home");
    if (!moves_state(program, at))
        return step_fault(step, index, "it does not move its unit's state");
    int32_t *seen = reads ? step->reads : step->writes;
    const int32_t n_seen = blocks_until(program, seen[at->unit]);
    if (n_seen == state_pieces(program, at->unit))
        return step_fault(step, index, "the unit's state is moved twice");
    if (at->block != n_seen) return step_fault(step, index, "blocks of state do not move in order");
    if (reads ? update >= 0 : update < 0 || !is_before(step, update, index))
        return step_fault(step, index, "it does not stand on its side of the unit's update");
    seen[at->unit] = index;
    return WEFT_OK;
}

/* A block's reduced gradient goes down after its last reduction, and after the gradient before it
 * was used. */
static enum weft_status check_gradient_down(struct step *step, int32_t index)
{
    const struct weft_program *program = step->program;
    const struct weft_instruction *at = &program->instructions[index];
    struct there *there = &step->there[at->unit];
    const struct weft_operand *from =
        find_operand(program, at, WEFT_BUFFER_REDUCED, at->unit, false);
    const bool records = find_operand(program, at, WEFT_BUFFER_RECORD, -1, true) != NULL;
    if (from == NULL || (program->buffers[from->buffer].n_pieces > 1 && from->piece != at->block))
        return step_fault(step, index, "it does not copy its unit's reduced gradient");
    if (records == program->period.rotated)
        return step_fault(step, index, "the norm wants its part, and with clipping alone");
    if (!comes_after(program, at, WEFT_OP_REDUCE_SCATTER) ||
        program->instructions[at->after].micro != program->period.n_micro - 1)
        return step_fault(step, index, "it does not come after its block's last reduction");
    if (there->updates != blocks_of(program, at->unit) || !is_before(step, there->update, index))
        return step_fault(step, index, "the gradient before it may still be in use");
    if (program->period.rotated && !weft_order_before(step->order, index, there->first_update))
        return step_fault(step, index, "its unit's update does not wait for it");
    if (at->block != there->downs++)
        return step_fault(step, index, "blocks do not go down in order");
    there->down = index;
    return WEFT_OK;
}

static enum weft_status check_host_update(struct step *step, int32_t index)
{
    const struct weft_instruction *at = &step->program->instructions[index];
    struct there *there = &step->there[at->unit];
    if (at->block != there->updates++)
        return step_fault(step, index, "blocks are not updated in order");
    if (at->block == 0) there->first_update = index;
    there->update = index;
    return WEFT_OK;
}

/* With all blocks up, the unit counts as updated on the device. */
static enum weft_status check_parameters_up(struct step *step, int32_t index)
{
    const struct weft_program *program = step->program;
    const struct weft_instruction *at = &program->instructions[index];
    struct there *there = &step->there[at->unit];
    const bool resident = program->ways[at->unit].policy == WEFT_POLICY_ZERO1;
    const struct weft_operand *to =
        find_operand(program, at, resident ? WEFT_BUFFER_FULL : WEFT_BUFFER_SHARD, at->unit, true);
    if (to == NULL || (program->buffers[to->buffer].n_pieces > 1 && to->piece != at->block))
        return step_fault(step, index, "it does not bring its block of the unit's parameters");
    if (!comes_after(program, at, WEFT_OP_HOST_UPDATE) || there->updates <= at->block)
        return step_fault(step, index, "it does not come after its block's update");
    if (at->block != there->ups++) return step_fault(step, index, "blocks do not come up in order");
    there->up = index;
    if (there->ups == blocks_of(program, at->unit)) step->updates[at->unit] = index;
    return WEFT_OK;
}

static enum weft_status check_there(struct step *step, int32_t index)
{
    const struct weft_instruction *at = &step->program->instructions[index];
    if (!weft_program_updates_there(step->program, at->unit))
        return step_fault(step, index, "its unit is not updated on the host");
    if (at->op == WEFT_OP_GRADIENT_DOWN) return check_gradient_down(step, index);
    return at->op == WEFT_OP_HOST_UPDATE ? check_host_update(step, index)
                                         : check_parameters_up(step, index);
}

/* Saved activations are on the host for one micro-step at a time. A SAVED_DOWN follows the SAVED_UP
 * of the micro-step before, and a SAVED_UP follows its own SAVED_DOWN. Between steps the last
 * SAVED_UP is complete before its backward, and that before the next forward. */
static enum weft_status check_copied(struct step *step, int32_t index)
{
    const struct weft_program *program = step->program;
    const struct weft_instruction *at = &program->instructions[index];
    const bool up = at->op == WEFT_OP_SAVED_UP;
    const int32_t down = step->downs[at->layer], before = step->ups[at->layer];
    const int32_t last = up ? before : down; /* the block before, if any */
    if (!weft_program_saves_away(program, at->layer))
        return step_fault(step, index, "what its layer saved is not away");
    const struct weft_operand *operand =
        find_operand(program, at, up ? WEFT_BUFFER_RESTORED : WEFT_BUFFER_SAVED, at->layer, up);
    if (operand == NULL || program->buffers[operand->buffer].instance != at->micro)
        return step_fault(step, index, "it does not move what its layer saved");
    if (program->buffers[operand->buffer].n_pieces > 1 && operand->piece != at->block)
        return step_fault(step, index, "its operand is not its block");
    if (at->block > 0) {
        if (last < 0 || program->instructions[last].micro != at->micro ||
            blocks_until(program, last) != at->block)
            return step_fault(step, index, "blocks of saved activations do not move in order");
    } else if (up ? down < 0 || program->instructions[down].micro != at->micro || before > down ||
                        blocks_until(program, down) != program->buffers[operand->buffer].n_pieces ||
                        !is_before(step, down, index)
                  : at->micro > 0 &&
                        (before < 0 || program->instructions[before].micro + 1 != at->micro ||
                         !is_before(step, before, index)))
        return step_fault(step, index, "it does not follow the copy before it");
    (up ? step->ups : step->downs)[at->layer] = index;
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
            find_operand(program, backward, WEFT_BUFFER_FULL, buffer->index, false) == NULL)
            return true;
    }
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
    if (at->op == WEFT_OP_FORWARD) {
        step->forwards[at->layer] = index;
        return find_operand(program, at, WEFT_BUFFER_FORWARD_TEMPORARY, at->layer, true) != NULL
                   ? WEFT_OK
                   : step_fault(step, index, "it has no room for what it drops");
    }
    const enum weft_buffer_kind input = at->layer == 0 ? WEFT_BUFFER_INPUT : WEFT_BUFFER_OUTPUT;
    if (find_operand(program, at, WEFT_BUFFER_BACKWARD_TEMPORARY, at->layer, true) == NULL)
        return step_fault(step, index, "it has no room for what it restores");
    if (find_operand(program, at, input, at->layer - 1, false) == NULL)
        return step_fault(step, index, "it restores, and does not read its layer's input");
    if (step->forwards[at->layer] < 0 ||
        lacks_parameters(program, &program->instructions[step->forwards[at->layer]], at))
        return step_fault(step, index, "it restores, and does not read all of its parameters");
    const bool kept = find_operand(program, at, WEFT_BUFFER_SAVED, at->layer, false) != NULL ||
                      find_operand(program, at, WEFT_BUFFER_RESTORED, at->layer, false) != NULL;
    if (kept != (level == WEFT_RECOMPUTE_SELECTIVE))
        return step_fault(step, index, "it does not read what its level of recomputation keeps");
    return WEFT_OK;
}

/* An offloaded layer's activations must be back before its backward reads them. */
static enum weft_status check_restored(struct step *step, int32_t index)
{
    const struct weft_program *program = step->program;
    const struct weft_instruction *at = &program->instructions[index];
    if (at->op != WEFT_OP_BACKWARD || !weft_program_saves_away(program, at->layer)) return WEFT_OK;
    const int32_t up = step->ups[at->layer];
    const struct weft_operand *operand =
        find_operand(program, at, WEFT_BUFFER_RESTORED, at->layer, false);
    if (operand == NULL || find_operand(program, at, WEFT_BUFFER_SAVED, at->layer, false) != NULL)
        return step_fault(step, index, "it does not read what its layer saved, back from the host");
    if (up < 0 || program->instructions[up].micro != at->micro ||
        blocks_until(program, up) != program->buffers[operand->buffer].n_pieces ||
        program->buffers[operand->buffer].instance != at->micro || !is_before(step, up, index))
        return step_fault(step, index, "it may start before what its layer saved is back");
    return WEFT_OK;
}

/* Number of blocks gathered into a buffer in every step. */
static int32_t gathered_blocks(const struct weft_program *program, int32_t full)
{
    const struct weft_buffer *buffer = &program->buffers[full];
    enum weft_policy policy = program->ways[buffer->index].policy;
    if (policy == WEFT_POLICY_DP) return 0;
    if (!weft_policy_refreshes(policy)) return buffer->n_pieces;
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
            return step_fault(step, index, "it adds to the gradient of another round");
        if (kind == WEFT_BUFFER_GRADIENT && operand->writes && moved > 0)
            return step_fault(step, index,
                              "it writes a gradient of which a block is reduced already");
        if (kind != WEFT_BUFFER_FULL) continue;
        if (moved != gathered_blocks(program, operand->buffer))
            return step_fault(step, index, "it reads parameters that are not gathered yet");
        int32_t unit = program->buffers[operand->buffer].index;
        bool trains = weft_program_buffer(program, WEFT_BUFFER_GRADIENT, unit, 0) >= 0;
        if (trains && step->updates[unit] < 0)
            return step_fault(step, index, "it reads parameters that are not updated yet");
    }
    return WEFT_OK;
}

/* In a delayed period the rest of a step comes before the updates that follow in the period. */
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

/* Each micro-step has one forward per layer in order, then one backward each in reverse order. */
static enum weft_status check_layer(struct step *step, int32_t index)
{
    const struct weft_instruction *at = &step->program->instructions[index];
    if (at->op == WEFT_OP_ZERO) return check_layer_operands(step, index);
    if (step->n_layers == 0) return step_fault(step, index, "there is no forward");
    int32_t n = step->n_layers, micro = step->layers / (2 * n), within = step->layers++ % (2 * n);
    bool forward = at->op == WEFT_OP_FORWARD;
    if (at->micro != micro || at->layer != (within < n ? within : 2 * n - 1 - within) ||
        forward != (within < n))
        return step_fault(step, index,
                          "forwards do not run in order of layers and backwards in reverse order, "
                          "micro-step after micro-step");
    WEFT_TRY(check_restored(step, index));
    WEFT_TRY(check_recomputed(step, index));
    if (step->program->period.delayed && at->carried && !precedes_updates(step, index))
        return step_fault(step, index, "it may read parameters of the next step");
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
    if (step->norm >= 0) return step_fault(step, index, "there is a second norm");
    step->norm = index;
    if (find_operand(program, &program->instructions[index], WEFT_BUFFER_RECORD, -1, true) == NULL)
        return step_fault(step, index, "it does not write the record");
    if (!weft_period_norms(&program->period)) return WEFT_OK;
    if (!program->period.delayed) WEFT_TRY(check_complete(step, true, index)); /* check_sum */
    for (int32_t u = 0; u < program->n_units; u++) {
        const bool whole = weft_policy_is_whole(program->ways[u].policy);
        const bool there = weft_program_updates_there(program, u);
        if (there && (step->there[u].downs != blocks_of(program, u) ||
                      !is_before(step, step->there[u].down, index)))
            return step_fault(step, index, "not all gradients that the host updates with are down");
        bool normed = there || find_operand(program, &program->instructions[index],
                                            whole ? WEFT_BUFFER_GRADIENT : WEFT_BUFFER_REDUCED, u,
                                            false) != NULL;
        bool trained = weft_program_buffer(program, WEFT_BUFFER_GRADIENT, u, 0) >= 0;
        if (normed != trained || trained != (step->updates[u] >= 0))
            return step_fault(step, index,
                              "the units that train, update and are in the norm differ");
    }
    return WEFT_OK;
}

static enum weft_status check_end(struct step *step, int32_t index)
{
    bool agrees = step->program->instructions[index].op == WEFT_OP_AGREE;
    int32_t *seen = agrees ? &step->agree : &step->finish;
    int32_t before = agrees ? step->norm : step->agree;
    if (*seen >= 0 || before < 0 || !is_before(step, before, index))
        return step_fault(step, index, "norm, agree and finish do not follow each other");
    *seen = index;
    const struct weft_program *program = step->program;
    const struct weft_instruction *at = &program->instructions[index];
    bool whole = find_operand(program, at, WEFT_BUFFER_RECORD_SUM, -1, agrees) != NULL &&
                 (!agrees || find_operand(program, at, WEFT_BUFFER_RECORD, -1, false) != NULL);
    return whole ? WEFT_OK : step_fault(step, index, "it does not use the record and its sum");
}

static enum weft_status check_instruction(struct step *step, int32_t index)
{
    const struct weft_instruction *at = &step->program->instructions[index];
    if (step->agree >= 0 && at->op != WEFT_OP_FINISH && !at->carried)
        return step_fault(step, index, "it comes after the sum over ranks");
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
    case WEFT_OP_ALL_GATHER:
        return check_gather(step, index);
    case WEFT_OP_REDUCE_SCATTER:
    case WEFT_OP_ALL_REDUCE:
        return check_reduction(step, index);
    case WEFT_OP_ACROSS_REDUCE:
        return check_across(step, index);
    case WEFT_OP_AGREE:
        return at->unit >= 0 ? check_agreed(step, index) : check_end(step, index);
    case WEFT_OP_READ:
    case WEFT_OP_WRITE:
    case WEFT_OP_COPY_UP:
    case WEFT_OP_COPY_DOWN:
        return check_moved(step, index);
    case WEFT_OP_GRADIENT_DOWN:
    case WEFT_OP_HOST_UPDATE:
    case WEFT_OP_PARAMETERS_UP:
        return check_there(step, index);
    case WEFT_OP_SAVED_DOWN:
    case WEFT_OP_SAVED_UP:
        return check_copied(step, index);
    case WEFT_OP_PARAMETERS_DOWN:
    case WEFT_OP_PARAMETERS_FETCH:
        return check_shard(step, index);
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
            return step_fault(step, last, "not every unit that trains has been updated");
        if (weft_program_updates_there(step->program, u) &&
            step->there[u].downs != blocks_of(step->program, u))
            return step_fault(step, last, "not all gradients that the host updates with are down");
        if (weft_program_fetches(step->program, u) &&
            step->there[u].downs != blocks_of(step->program, u))
            return step_fault(step, last, "not all of a shard on the host has gone down");
        if (!weft_program_is_away(step->program, u) || weft_program_updates_there(step->program, u))
            continue;
        if (blocks_until(step->program, step->writes[u]) != state_pieces(step->program, u) ||
            !is_before(step, step->writes[u], last))
            return step_fault(step, last, "not all state that is away has been written");
    }
    return WEFT_OK;
}

static enum weft_status check_all(struct step *step)
{
    const struct weft_program *program = step->program;
    int32_t last = program->n_instructions - 1;
    for (int32_t u = 0; u < program->n_units; u++)
        step->updates[u] = step->reads[u] = step->writes[u] = -1;
    for (int32_t l = 0; l < program->n_layers; l++)
        step->downs[l] = step->ups[l] = step->forwards[l] = -1;
    for (int32_t i = 0; i <= last; i++) {
        const struct weft_instruction *at = &program->instructions[i];
        if (at->op == WEFT_OP_FORWARD && at->layer >= step->n_layers)
            step->n_layers = at->layer + 1;
        if (at->carried && !program->period.rotated)
            return step_fault(step, i, "nothing is carried over the end of this period");
    }
    for (int pass = 0; pass < 2; pass++) {
        for (int32_t i = 0; i <= last; i++) {
            if (program->instructions[i].carried == (pass > 0))
                WEFT_TRY(check_instruction(step, i));
        }
    }
    if (step->finish != last) return step_fault(step, last, "a step does not end without finish");
    if (step->layers == 0 || step->layers != 2 * program->period.n_micro * step->n_layers)
        return step_fault(step, last, "not every forward has its backward");
    WEFT_TRY(check_trained(step, last));
    WEFT_TRY(check_complete(step, true, last));
    return check_complete(step, false, last);
}

enum weft_status weft_verify_step(const struct weft_program *program,
                                  const struct weft_order *order, struct weft_error *err)
{
    struct step step = {
        .program = program,
        .order = order,
        .err = err,
        .updates = calloc((size_t)program->n_units + 1, sizeof *step.updates),
        .reads = calloc((size_t)program->n_units + 1, sizeof *step.reads),
        .writes = calloc((size_t)program->n_units + 1, sizeof *step.writes),
        .there = calloc((size_t)program->n_units + 1, sizeof *step.there),
        .downs = calloc((size_t)program->n_layers + 1, sizeof *step.downs),
        .ups = calloc((size_t)program->n_layers + 1, sizeof *step.ups),
        .forwards = calloc((size_t)program->n_layers + 1, sizeof *step.forwards),
        .moved = calloc((size_t)program->n_buffers + 1, sizeof *step.moved),
        .summed = calloc((size_t)program->n_units + 1, sizeof *step.summed),
        .moments = -1,
        .agreed = -1,
        .norm = -1,
        .agree = -1,
        .finish = -1,
    };
    bool room = step.updates != NULL && step.reads != NULL && step.writes != NULL &&
                step.there != NULL && step.downs != NULL && step.ups != NULL &&
                step.forwards != NULL && step.moved != NULL && step.summed != NULL;
    enum weft_status status = room ? check_all(&step) : weft_fail_memory(err, "verification");
    free(step.updates);
    free(step.reads);
    free(step.writes);
    free(step.there);
    free(step.downs);
    free(step.ups);
    free(step.forwards);
    free(step.moved);
    free(step.summed);
    return status;
}
