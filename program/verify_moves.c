/* SPDX-License-Identifier: Apache-2.0 */
#include "program/verify_step.h"

/* Whether a unit's gradient is summed within the node first, and then across nodes. */
static bool sums_by_levels(const struct weft_program *program, int32_t unit)
{
    return weft_step_groups(program, unit).parameters == WEFT_GROUP_NODE;
}

/* Whether a node has all parameters of a unit, and a part of their state. */
static bool crosses_nodes(const struct weft_program *program, int32_t unit)
{
    return sums_by_levels(program, unit) && weft_step_groups(program, unit).state == WEFT_GROUP_ALL;
}

static bool sums_across(enum weft_op op)
{
    return op == WEFT_OP_ACROSS_REDUCE || op == WEFT_OP_ACROSS_SCATTER;
}

/* Checks that blocks of a buffer move in index order, each once. */
static enum weft_status move_block(struct step *step, int32_t index,
                                   const struct weft_operand *operand)
{
    const struct weft_instruction *at = &step->program->instructions[index];
    const struct weft_buffer *buffer = &step->program->buffers[operand->buffer];
    if (buffer->n_pieces > 1 && operand->piece != at->block)
        return weft_step_fault(step, index, "its operand is not its block");
    if (at->block != step->moved[operand->buffer]++)
        return weft_step_fault(step, index, "blocks do not move in order, each once");
    return WEFT_OK;
}

/* Pieces in which a unit's state moves. */
int32_t weft_step_state_pieces(const struct weft_program *program, int32_t unit)
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

/* A unit with updates on the host is gathered after its parameters came up, and parameters of a
 * node after they came from other nodes, with `op`: block by block, or after all blocks. */
static bool has_come(const struct step *step, int32_t index, enum weft_op op)
{
    const struct weft_instruction *at = &step->program->instructions[index];
    const struct hosted *hosted = &step->hosted[at->unit];
    const bool crosses = op == WEFT_OP_ACROSS_GATHER;
    const int32_t n = crosses ? hosted->crossed : hosted->ups;
    if (comes_after(step->program, at, op)) return n > at->block;
    return n == weft_step_blocks(step->program, at->unit) &&
           weft_step_is_before(step, crosses ? hosted->cross : hosted->up, index);
}

/* Whether a gather takes its block from the copy up before it, for the same residency. */
static bool is_fetched(const struct weft_program *program, const struct weft_instruction *at,
                       const struct weft_operand *from, const struct weft_operand *to)
{
    return comes_after(program, at, WEFT_OP_PARAMETERS_FETCH) && from->piece == at->block &&
           program->buffers[from->buffer].instance == 1 + program->buffers[to->buffer].instance;
}

/* Whether a gather follows its block's average over nodes, or all of its unit. */
static bool is_averaged(const struct step *step, int32_t index, const struct weft_operand *from)
{
    const struct weft_program *program = step->program;
    const struct weft_instruction *at = &program->instructions[index];
    const int32_t averaged = step->averaged[at->unit];
    if (from->piece != at->block && program->buffers[from->buffer].n_pieces > 1) return false;
    if (comes_after(program, at, WEFT_OP_AVERAGE)) return averaged > at->block;
    return averaged == weft_step_blocks(program, at->unit) &&
           weft_step_is_before(step, step->average[at->unit], index);
}

static enum weft_status check_gather(struct step *step, int32_t index)
{
    const struct weft_program *program = step->program;
    const struct weft_instruction *at = &program->instructions[index];
    const struct weft_policy_groups groups = weft_step_groups(program, at->unit);
    if (groups.state == WEFT_GROUP_NONE)
        return weft_step_fault(step, index, "a unit under dp is never gathered");
    const struct weft_operand *to =
        weft_step_operand(program, at, WEFT_BUFFER_FULL, at->unit, true);
    bool resident = groups.parameters == WEFT_GROUP_NONE;
    const struct weft_operand *from = weft_step_operand(
        program, at, resident ? WEFT_BUFFER_FULL : WEFT_BUFFER_SHARD, at->unit, false);
    if (to == NULL || from == NULL)
        return weft_step_fault(step, index, "it does not gather its unit's parameters");
    int32_t update = step->updates[at->unit];
    bool trains = weft_program_buffer(program, WEFT_BUFFER_GRADIENT, at->unit, 0) >= 0;
    const bool hosted = weft_program_updates_on_host(program, at->unit);
    const bool crosses = crosses_nodes(program, at->unit);
    /* Updated on the host and of a node, its block has crossed nodes after it came up. */
    if (trains && !(hosted && crosses) &&
        (hosted ? !has_come(step, index, WEFT_OP_PARAMETERS_UP)
                : update < 0 || !weft_step_is_before(step, update, index)))
        return weft_step_fault(step, index, "it may start before the unit's update is over");
    if (weft_program_fetches(program, at->unit) && !is_fetched(program, at, from, to))
        return weft_step_fault(step, index, "it does not gather the slice that came up for it");
    const bool waits = crosses && !weft_program_fetches(program, at->unit);
    if (waits &&
        (!trains || from->piece != at->block || !has_come(step, index, WEFT_OP_ACROSS_GATHER)))
        return weft_step_fault(step, index, "its block may not have come from the other nodes");
    if (weft_step_averages(program, at->unit) && !is_averaged(step, index, from))
        return weft_step_fault(step, index, "its block may not be averaged over nodes yet");
    return move_block(step, index, to);
}

/* Whether an instruction reads and writes its block of a unit's buffer of that kind. */
static bool changes_block(const struct weft_program *program, const struct weft_instruction *at,
                          enum weft_buffer_kind kind)
{
    const struct weft_operand *from = weft_step_operand(program, at, kind, at->unit, false);
    const struct weft_operand *to = weft_step_operand(program, at, kind, at->unit, true);
    if (from == NULL || to == NULL || from->buffer != to->buffer) return false;
    return program->buffers[to->buffer].n_pieces == 1 ||
           (from->piece == at->block && to->piece == at->block);
}

/* The buffers of an average: the parameters, their master, and the states of an outer optimizer. */
static bool changes_averaged(const struct weft_program *program, const struct weft_instruction *at)
{
    static const enum weft_buffer_kind states[] = {WEFT_BUFFER_MASTER, WEFT_BUFFER_ANCHOR,
                                                   WEFT_BUFFER_OUTER};
    const bool gathers = weft_policy_gathers(program->ways[at->unit].policy);
    const size_t n = at->op == WEFT_OP_AVERAGE ? sizeof states / sizeof *states : 1;
    for (size_t i = 0; i < n; i++)
        if (weft_program_buffer(program, states[i], at->unit, 0) >= 0 &&
            !changes_block(program, at, states[i]))
            return false;
    return changes_block(program, at, gathers ? WEFT_BUFFER_SHARD : WEFT_BUFFER_FULL);
}

/* Each block of a unit that trains is averaged over nodes once in period.every steps, in the same
 * step as the unit's other blocks, after its update. Under dp the ranks of a node then gather the
 * averages. */
static enum weft_status check_average(struct step *step, int32_t index)
{
    const struct weft_program *program = step->program;
    const struct weft_instruction *at = &program->instructions[index];
    const int32_t update = step->updates[at->unit], before = step->average[at->unit];
    if (!weft_step_averages(program, at->unit))
        return weft_step_fault(step, index, "its unit is not averaged over nodes");
    if (at->every != program->period.every)
        return weft_step_fault(step, index, "it does not work once in the steps of an average");
    if (before >= 0 && program->instructions[before].phase != at->phase)
        return weft_step_fault(step, index, "its unit is averaged in several steps");
    if (update < 0 || !weft_step_is_before(step, update, index))
        return weft_step_fault(step, index, "it may start before the unit's update is over");
    if (!changes_averaged(program, at))
        return weft_step_fault(step, index, "it does not average its block of its unit");
    if (at->op == WEFT_OP_AVERAGE) {
        if (at->block != step->averaged[at->unit]++)
            return weft_step_fault(step, index, "blocks are not averaged in order, each once");
        step->average[at->unit] = index;
        return WEFT_OK;
    }
    if (weft_step_groups(program, at->unit).state != WEFT_GROUP_NONE)
        return weft_step_fault(step, index, "its unit's ranks keep their own slices");
    if (!comes_after(program, at, WEFT_OP_AVERAGE))
        return weft_step_fault(step, index, "it does not follow its block's average");
    return move_block(step, index,
                      weft_step_operand(program, at, WEFT_BUFFER_FULL, at->unit, true));
}

/* Updated parts of a node's parameters come from the other nodes, in place, once a step. */
static enum weft_status check_crossing(struct step *step, int32_t index)
{
    const struct weft_program *program = step->program;
    const struct weft_instruction *at = &program->instructions[index];
    const int32_t update = step->updates[at->unit];
    struct hosted *hosted = &step->hosted[at->unit];
    const struct weft_operand *from =
        weft_step_operand(program, at, WEFT_BUFFER_SHARD, at->unit, false);
    const struct weft_operand *to =
        weft_step_operand(program, at, WEFT_BUFFER_SHARD, at->unit, true);
    if (!crosses_nodes(program, at->unit))
        return weft_step_fault(step, index, "its unit's parameters are not of a node");
    if (from == NULL || to == NULL || from->piece != at->block || to->piece != at->block ||
        program->buffers[from->buffer].instance != 0 || from->buffer != to->buffer)
        return weft_step_fault(step, index, "it does not gather its block of its node's slice");
    const bool on_host = weft_program_updates_on_host(program, at->unit);
    if (on_host ? !has_come(step, index, WEFT_OP_PARAMETERS_UP)
                : update < 0 || !weft_step_is_before(step, update, index))
        return weft_step_fault(step, index, "it may start before the unit's update is over");
    if (at->block != hosted->crossed++)
        return weft_step_fault(step, index, "blocks do not cross nodes in order, each once");
    hosted->cross = index;
    return WEFT_OK;
}

/* A shard on the host goes down after its unit's update, once. If it crosses nodes, it goes down
 * after that. A copy up follows its block's copy down, or all of them. The use of the last copy up
 * is complete before the next update. */
static enum weft_status check_shard(struct step *step, int32_t index)
{
    const struct weft_program *program = step->program;
    const struct weft_instruction *at = &program->instructions[index];
    const bool down = at->op == WEFT_OP_PARAMETERS_DOWN;
    const int32_t update = step->updates[at->unit];
    struct hosted *hosted = &step->hosted[at->unit];
    const struct weft_operand *operand =
        weft_step_operand(program, at, WEFT_BUFFER_SHARD, at->unit, !down);
    if (!weft_program_fetches(program, at->unit))
        return weft_step_fault(step, index, "its unit's shard is not on the host");
    if (operand == NULL || down != (program->buffers[operand->buffer].instance == 0))
        return weft_step_fault(step, index, "it does not copy its unit's shard");
    if (update < 0 || !weft_step_is_before(step, update, index))
        return weft_step_fault(step, index, "it may start before the unit's update is over");
    if (down && crosses_nodes(program, at->unit) && !has_come(step, index, WEFT_OP_ACROSS_GATHER))
        return weft_step_fault(step, index, "its block may not have come from the other nodes");
    if (down) {
        hosted->downs++;
        hosted->down = index;
    } else if (!comes_after(program, at, WEFT_OP_PARAMETERS_DOWN) &&
               (hosted->downs != weft_step_blocks(program, at->unit) ||
                !weft_step_is_before(step, hosted->down, index))) {
        return weft_step_fault(step, index, "it may start before the updated shard is on the host");
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
        return weft_step_fault(step, index, "it reduces another micro-step's gradient");
    const bool sums = sums_across(at->op) ||
                      (at->op == WEFT_OP_REDUCE_SCATTER && !sums_by_levels(program, at->unit));
    bool adds = weft_step_operand(program, at, WEFT_BUFFER_REDUCED, at->unit, false) != NULL;
    if (sums && adds != (gradient->instance > 0))
        return weft_step_fault(step, index, "all gradients but the first are added to the slice");
    if (step->summed[at->unit] != gradient->instance)
        return weft_step_fault(step, index, "rounds are not added to the slice in order");
    /* A delayed update frees the slice, and the next period's comes after the norm. */
    const bool delayed = program->period.delayed;
    if (delayed && (update < 0 || !weft_order_before(step->order, update, index)))
        return weft_step_fault(step, index,
                               "its unit's update may still read the gradient before it");
    if (program->period.rotated && at->carried &&
        (update < 0 || !weft_order_before(step->order, index, delayed ? step->norm : update)))
        return weft_step_fault(step, index, "the unit's update does not wait for it");
    if (at->block + 1 == gradient->n_pieces) step->summed[at->unit]++;
    return WEFT_OK;
}

static enum weft_status check_reduction(struct step *step, int32_t index)
{
    const struct weft_program *program = step->program;
    const struct weft_instruction *at = &program->instructions[index];
    bool whole = at->op == WEFT_OP_ALL_REDUCE;
    if (whole != (weft_step_groups(program, at->unit).state == WEFT_GROUP_NONE))
        return weft_step_fault(step, index, "its unit's policy reduces in another way");
    const struct weft_operand *from =
        weft_step_operand(program, at, WEFT_BUFFER_GRADIENT, at->unit, false);
    const bool hybrid = sums_by_levels(program, at->unit);
    const bool in_place = weft_policy_is_whole(program->ways[at->unit].policy);
    const enum weft_buffer_kind sliced = hybrid ? WEFT_BUFFER_PARTIAL : WEFT_BUFFER_REDUCED;
    const struct weft_operand *to =
        weft_step_operand(program, at, in_place ? WEFT_BUFFER_GRADIENT : sliced, at->unit, true);
    if (from == NULL || to == NULL)
        return weft_step_fault(step, index, "it does not reduce its unit's gradient");
    if ((in_place || hybrid) &&
        (to->piece != from->piece ||
         program->buffers[to->buffer].instance != program->buffers[from->buffer].instance))
        return weft_step_fault(step, index, "it writes another block than it reads");
    if (!hybrid) WEFT_TRY(check_sum(step, index, from));
    return move_block(step, index, from);
}

/* A sum over nodes takes the partial sums of its block from the reduction before it. */
static enum weft_status check_across(struct step *step, int32_t index)
{
    const struct weft_program *program = step->program;
    const struct weft_instruction *at = &program->instructions[index];
    const struct weft_operand *from =
        weft_step_operand(program, at, WEFT_BUFFER_PARTIAL, at->unit, false);
    if (!sums_by_levels(program, at->unit) || from == NULL ||
        weft_step_operand(program, at, WEFT_BUFFER_PARTIAL, at->unit, true) == NULL ||
        weft_step_operand(program, at, WEFT_BUFFER_REDUCED, at->unit, true) == NULL)
        return weft_step_fault(step, index, "it does not sum its unit's partial sums");
    if ((at->op == WEFT_OP_ACROSS_SCATTER) != crosses_nodes(program, at->unit))
        return weft_step_fault(step, index, "its unit's state is shared by other ranks");
    if (!comes_after(program, at, WEFT_OP_REDUCE_SCATTER))
        return weft_step_fault(step, index, "it does not follow its block's reduction in the node");
    WEFT_TRY(check_sum(step, index, from));
    return move_block(step, index, from);
}

/* Whether it moves its block of a unit's whole state into the arena, or out of it. */
static bool moves_state(const struct weft_program *program, const struct weft_instruction *at)
{
    static const enum weft_buffer_kind kinds[] = {WEFT_BUFFER_MASTER, WEFT_BUFFER_MOMENT1,
                                                  WEFT_BUFFER_MOMENT2};
    const bool reads = weft_op_brings_state(at->op);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (weft_program_buffer(program, kinds[i], at->unit, 0) < 0) continue;
        const struct weft_operand *operand =
            weft_step_operand(program, at, kinds[i], at->unit, reads);
        if (operand == NULL || weft_step_operand(program, at, kinds[i], at->unit, !reads) != NULL)
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
    if (!weft_program_is_offloaded(program, at->unit))
        return weft_step_fault(step, index, "its unit's state is not offloaded");
    if (weft_program_location(program, at->unit) !=
        (of_disk ? WEFT_LOCATION_DISK : WEFT_LOCATION_HOST))
        return weft_step_fault(step, index, "its unit's state has another location");
    if (!moves_state(program, at))
        return weft_step_fault(step, index, "it does not move its unit's state");
    int32_t *seen = reads ? step->reads : step->writes;
    const int32_t n_seen = weft_step_blocks_until(program, seen[at->unit]);
    if (n_seen == weft_step_state_pieces(program, at->unit))
        return weft_step_fault(step, index, "the unit's state is moved twice");
    if (at->block != n_seen)
        return weft_step_fault(step, index, "blocks of state do not move in order");
    if (reads ? update >= 0 : update < 0 || !weft_step_is_before(step, update, index))
        return weft_step_fault(step, index, "it does not stand on its side of the unit's update");
    seen[at->unit] = index;
    return WEFT_OK;
}

/* A block's reduced gradient goes down after its last reduction, and after the gradient before it
 * was used. */
static enum weft_status check_gradient_down(struct step *step, int32_t index)
{
    const struct weft_program *program = step->program;
    const struct weft_instruction *at = &program->instructions[index];
    struct hosted *hosted = &step->hosted[at->unit];
    const struct weft_operand *from =
        weft_step_operand(program, at, WEFT_BUFFER_REDUCED, at->unit, false);
    const bool records = weft_step_operand(program, at, WEFT_BUFFER_RECORD, -1, true) != NULL;
    if (from == NULL || (program->buffers[from->buffer].n_pieces > 1 && from->piece != at->block))
        return weft_step_fault(step, index, "it does not copy its unit's reduced gradient");
    if (records == program->period.rotated)
        return weft_step_fault(step, index, "the norm wants its part, and with clipping alone");
    const enum weft_op sums =
        crosses_nodes(program, at->unit) ? WEFT_OP_ACROSS_SCATTER : WEFT_OP_REDUCE_SCATTER;
    if (!comes_after(program, at, sums) ||
        program->instructions[at->after].micro != program->period.n_micro - 1)
        return weft_step_fault(step, index, "it does not come after its block's last reduction");
    if (hosted->updates != weft_step_blocks(program, at->unit) ||
        !weft_step_is_before(step, hosted->update, index))
        return weft_step_fault(step, index, "the gradient before it may still be in use");
    if (program->period.rotated && !weft_order_before(step->order, index, hosted->first_update))
        return weft_step_fault(step, index, "its unit's update does not wait for it");
    if (at->block != hosted->downs++)
        return weft_step_fault(step, index, "blocks do not go down in order");
    hosted->down = index;
    return WEFT_OK;
}

static enum weft_status check_host_update(struct step *step, int32_t index)
{
    const struct weft_instruction *at = &step->program->instructions[index];
    struct hosted *hosted = &step->hosted[at->unit];
    if (at->block != hosted->updates++)
        return weft_step_fault(step, index, "blocks are not updated in order");
    if (at->block == 0) hosted->first_update = index;
    hosted->update = index;
    return WEFT_OK;
}

/* With all blocks up, the unit counts as updated on the device. */
static enum weft_status check_parameters_up(struct step *step, int32_t index)
{
    const struct weft_program *program = step->program;
    const struct weft_instruction *at = &program->instructions[index];
    struct hosted *hosted = &step->hosted[at->unit];
    const bool resident = weft_step_groups(program, at->unit).parameters == WEFT_GROUP_NONE;
    const struct weft_operand *to = weft_step_operand(
        program, at, resident ? WEFT_BUFFER_FULL : WEFT_BUFFER_SHARD, at->unit, true);
    if (to == NULL || (program->buffers[to->buffer].n_pieces > 1 && to->piece != at->block))
        return weft_step_fault(step, index, "it does not bring its block of the unit's parameters");
    if (!comes_after(program, at, WEFT_OP_HOST_UPDATE) || hosted->updates <= at->block)
        return weft_step_fault(step, index, "it does not come after its block's update");
    if (at->block != hosted->ups++)
        return weft_step_fault(step, index, "blocks do not come up in order");
    hosted->up = index;
    if (hosted->ups == weft_step_blocks(program, at->unit)) step->updates[at->unit] = index;
    return WEFT_OK;
}

static enum weft_status check_on_host(struct step *step, int32_t index)
{
    const struct weft_instruction *at = &step->program->instructions[index];
    if (!weft_program_updates_on_host(step->program, at->unit))
        return weft_step_fault(step, index, "its unit is not updated on the host");
    if (at->op == WEFT_OP_GRADIENT_DOWN) return check_gradient_down(step, index);
    return at->op == WEFT_OP_HOST_UPDATE ? check_host_update(step, index)
                                         : check_parameters_up(step, index);
}

enum weft_status weft_verify_move(struct step *step, int32_t index)
{
    const enum weft_op op = step->program->instructions[index].op;
    switch (weft_item_kinds[op].family) {
    case WEFT_ITEM_COLLECTIVE:
        if (op == WEFT_OP_ALL_GATHER) return check_gather(step, index);
        if (op == WEFT_OP_ACROSS_GATHER) return check_crossing(step, index);
        return sums_across(op) ? check_across(step, index) : check_reduction(step, index);
    case WEFT_ITEM_STATE:
        return check_moved(step, index);
    case WEFT_ITEM_HOST_UPDATE:
        return check_on_host(step, index);
    case WEFT_ITEM_PARAMETERS:
        return check_shard(step, index);
    case WEFT_ITEM_AVERAGE:
        return check_average(step, index);
    case WEFT_ITEM_SAVED:
        break;
    }
    return WEFT_OK;
}
