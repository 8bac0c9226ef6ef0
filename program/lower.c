/* SPDX-License-Identifier: Apache-2.0 */
#include "program/lower.h"

#include <stdlib.h>

#include "memory_model/moves.h"
#include "memory_model/period.h"
#include "plan/placement.h"
#include "program/lifetime.h"
#include "program/paging.h"

enum access { READ = 1, WRITE = 2 };

/* The same code emits instructions twice: once to count them, once to fill them in. */
struct emitter {
    struct weft_lowering *lowering;
    bool counting;
    int32_t n_instructions, n_dependencies, n_operands;
    int32_t *marks; /* [n_slots]: its MARK */
    /* By lane and slot: last placement due by then, and last that blocks the slot; -1: none. */
    int32_t *due, *blocking;
    int32_t blocked[WEFT_MOST_LANES]; /* instructions that this slot's layer waits for; -1: none */
    int32_t *issued;                  /* [n_placements]: its instruction */
    bool recorded;                    /* the record was begun in this period */
};

/* Begins an instruction and returns its index. Later calls add to it. */
static int32_t begin_instruction(struct emitter *e, enum weft_op op, int32_t slot, int32_t layer,
                                 int32_t unit, int64_t ns)
{
    if (!e->counting) {
        e->lowering->program->instructions[e->n_instructions] = (struct weft_instruction){
            .op = op,
            .slot = slot,
            .layer = layer,
            .unit = unit,
            .block = -1,
            .item = -1,
            .ns = ns,
            .first_dependency = e->n_dependencies,
            .first_operand = e->n_operands,
        };
    }
    return e->n_instructions++;
}

static struct weft_instruction *current_instruction(struct emitter *e)
{
    return &e->lowering->program->instructions[e->n_instructions - 1];
}

static void put_on(struct emitter *e, int32_t lane)
{
    if (!e->counting) current_instruction(e)->lane = lane;
}

static int32_t begin_agree(struct emitter *e, int32_t slot, int32_t unit)
{
    const struct weft_problem *problem = e->lowering->plan->problem;
    int32_t agree = begin_instruction(e, WEFT_OP_AGREE, slot, -1, unit, problem->agree_ns);
    put_on(e, weft_problem_agree_lane(problem));
    return agree;
}

static void wait_for(struct emitter *e, int32_t instruction)
{
    if (!e->counting) {
        e->lowering->program->dependencies[e->n_dependencies] = instruction;
        current_instruction(e)->n_dependencies++;
    }
    e->n_dependencies++;
}

static void wait_for_blocked(struct emitter *e)
{
    for (int32_t lane = WEFT_LANE_FIRST; lane < e->lowering->program->n_lanes; lane++)
        if (e->blocked[lane] >= 0) wait_for(e, e->blocked[lane]);
}

static void add_operand(struct emitter *e, int32_t buffer, int32_t piece, bool writes)
{
    if (!e->counting) {
        e->lowering->program->operands[e->n_operands] =
            (struct weft_operand){.buffer = buffer, .piece = piece, .writes = writes};
        current_instruction(e)->n_operands++;
    }
    e->n_operands++;
}

/* Skips a missing buffer: a layer without temporaries, a unit without a master. */
static void touch_piece(struct emitter *e, enum weft_buffer_kind kind, int32_t index,
                        int32_t instance, int32_t piece, int access)
{
    int32_t buffer = e->lowering->buffers[kind][index < 0 ? 0 : index];
    if (buffer < 0) return;
    if ((access & READ) != 0) add_operand(e, buffer + instance, piece, false);
    if ((access & WRITE) != 0) add_operand(e, buffer + instance, piece, true);
}

static void touch_buffer(struct emitter *e, enum weft_buffer_kind kind, int32_t index, int access)
{
    touch_piece(e, kind, index, 0, -1, access);
}

/* The same for a buffer of one micro-step. */
static void touch_of(struct emitter *e, enum weft_buffer_kind kind, int32_t index, int32_t micro,
                     int access)
{
    touch_piece(e, kind, index, micro, -1, access);
}

/* Sets an instruction's micro-step. In a rotated period everything before drain belongs to the last
 * step, and so do the reductions of its last micro-step. */
static void set_micro_step(struct emitter *e, int32_t micro, bool carried)
{
    if (e->counting) return;
    current_instruction(e)->micro = micro;
    current_instruction(e)->carried = carried;
}

/* Instance of the gradient that a micro-step adds to: its round. */
static int32_t gradient_of(const struct emitter *e, int32_t micro)
{
    return micro / e->lowering->inputs->period->rule.group;
}

/* The first write of a period begins the record. It comes after a collective of the period, because
 * other ranks may read the last record until then. */
static void add_to_record(struct emitter *e)
{
    touch_buffer(e, WEFT_BUFFER_RECORD, -1, e->recorded ? READ | WRITE : WRITE);
    e->recorded = true;
}

static bool updates_on_host(const struct emitter *e, int32_t unit)
{
    return weft_program_updates_on_host(e->lowering->program, unit);
}

static bool shards_parameters(const struct emitter *e, int32_t unit)
{
    return weft_policy_gathers(weft_plan_chosen(e->lowering->plan, unit)->policy);
}

static bool crosses_nodes(const struct emitter *e, int32_t unit)
{
    return weft_policy_crosses(e->lowering->program->ways[unit].policy);
}

/* The unit's first item, or the place of it if the unit has none. */
static int32_t first_item(const struct weft_problem *problem, int32_t unit)
{
    int32_t low = 0, high = problem->n_items;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (problem->items[middle].item.decision < unit) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Number of the residency of a unit's gathered parameters in a slot. It is the last gather with a
 * window before the slot; without one, the last of the period. 0 for a unit without gathers. */
static int32_t find_residency(const struct weft_plan *plan, int32_t unit, int32_t slot)
{
    const struct weft_problem *problem = plan->problem;
    int32_t residency = 0, latest = -1;
    bool before = false;
    for (int32_t i = first_item(problem, unit);
         i < problem->n_items && problem->items[i].item.decision == unit; i++) {
        const struct weft_item *item = &problem->items[i].item;
        if (item->kind != WEFT_ALL_GATHER || !weft_problem_needs(problem, plan->strategies, i))
            continue;
        if (before && item->last >= slot) continue;
        if (item->last < slot && !before) latest = -1;
        before |= item->last < slot;
        if (item->last <= latest) continue;
        latest = item->last;
        residency = item->gather;
    }
    return residency;
}

int32_t weft_lower_residencies(const struct weft_plan *plan, int32_t unit)
{
    const struct weft_problem *problem = plan->problem;
    int32_t n = 1;
    for (int32_t i = first_item(problem, unit);
         i < problem->n_items && problem->items[i].item.decision == unit; i++) {
        const struct weft_item *item = &problem->items[i].item;
        bool gathers =
            item->kind == WEFT_ALL_GATHER && weft_problem_needs(problem, plan->strategies, i);
        if (gathers && item->gather + 1 > n) n = item->gather + 1;
    }
    return n;
}

/* Whether a slot is the first use after a gather's window. */
static bool begins_residency(const struct emitter *e, int32_t unit, int32_t residency, int32_t slot)
{
    const struct weft_plan *plan = e->lowering->plan;
    const struct weft_problem *problem = plan->problem;
    for (int32_t i = first_item(problem, unit);
         i < problem->n_items && problem->items[i].item.decision == unit; i++) {
        const struct weft_item *item = &problem->items[i].item;
        if (item->kind == WEFT_ALL_GATHER && item->gather == residency &&
            weft_problem_needs(problem, plan->strategies, i))
            return item->last + 1 == slot;
    }
    return false;
}

static void read_parameters(struct emitter *e, int32_t layer, int32_t slot, bool backward)
{
    const struct weft_lowering *lowering = e->lowering;
    for (int32_t i = lowering->first_layer_unit[layer]; i < lowering->first_layer_unit[layer + 1];
         i++) {
        const struct weft_layer_unit *use = &lowering->layer_units[i];
        if (backward && !use->in_backward) continue;
        int32_t residency = find_residency(lowering->plan, use->unit, slot);
        touch_piece(e, WEFT_BUFFER_FULL, use->unit, residency, -1, READ);
        /* A gather may block its first use, so the slices are held to the end of that slot. */
        if (weft_program_fetches(lowering->program, use->unit) &&
            begins_residency(e, use->unit, residency, slot))
            touch_piece(e, WEFT_BUFFER_SHARD, use->unit, 1 + residency, -1, READ);
    }
}

static void read_gradient(struct emitter *e, int32_t unit)
{
    const bool whole = weft_policy_is_whole(weft_plan_chosen(e->lowering->plan, unit)->policy);
    touch_buffer(e, whole ? WEFT_BUFFER_GRADIENT : WEFT_BUFFER_REDUCED, unit, READ);
}

/* Emits the first half of an agreed update, and its agreement on the tensors' norms. Returns the
 * agreement's instruction. */
static int32_t emit_moments(struct emitter *e, int32_t slot, int32_t unit, int64_t ns)
{
    int32_t moments = begin_instruction(e, WEFT_OP_MOMENTS, slot, -1, unit, ns);
    read_gradient(e, unit);
    touch_buffer(e, shards_parameters(e, unit) ? WEFT_BUFFER_SHARD : WEFT_BUFFER_FULL, unit, READ);
    touch_buffer(e, WEFT_BUFFER_MASTER, unit, READ);
    touch_buffer(e, WEFT_BUFFER_MOMENT1, unit, READ | WRITE);
    touch_buffer(e, WEFT_BUFFER_MOMENT2, unit, READ | WRITE);
    touch_buffer(e, WEFT_BUFFER_TENSOR_NORMS, unit, WRITE);
    int32_t agree = begin_agree(e, slot, unit);
    wait_for(e, moments);
    touch_buffer(e, WEFT_BUFFER_TENSOR_NORMS, unit, READ);
    touch_buffer(e, WEFT_BUFFER_TENSOR_NORMS_SUM, unit, WRITE);
    return agree;
}

/* The piece that a copy's block moves: all of a buffer that goes in one block. */
static int32_t piece_of(const struct weft_item *item, int32_t block)
{
    return item->n_blocks > 1 ? block : -1;
}

static void touch_state(struct emitter *e, const struct weft_item *item, int32_t block)
{
    const int access = item->acquires ? WRITE : READ;
    touch_piece(e, WEFT_BUFFER_MASTER, item->decision, 0, piece_of(item, block), access);
    touch_piece(e, WEFT_BUFFER_MOMENT1, item->decision, 0, piece_of(item, block), access);
    touch_piece(e, WEFT_BUFFER_MOMENT2, item->decision, 0, piece_of(item, block), access);
}

static void emit_update(struct emitter *e, int32_t slot, int32_t unit)
{
    enum { PASSES = 3 }; /* over moments: to update them, for norms, and to apply them */
    bool agreed = e->lowering->plan->problem->period.agreed_updates;
    int64_t ns = weft_plan_slot_ns(e->lowering->plan, slot);
    int64_t update_ns = agreed ? ns / PASSES : ns;
    if (updates_on_host(e, unit)) return;
    int32_t agree = agreed ? emit_moments(e, slot, unit, ns - update_ns) : -1;
    begin_instruction(e, WEFT_OP_UPDATE, slot, -1, unit, update_ns);
    wait_for_blocked(e);
    if (agreed) wait_for(e, agree);
    touch_buffer(e, WEFT_BUFFER_TENSOR_NORMS_SUM, unit, READ);
    read_gradient(e, unit);
    /* A skipped step leaves all state unchanged, so each buffer is read too. A shard that goes to
     * the host is made from the master. */
    const bool fetches = weft_program_fetches(e->lowering->program, unit);
    touch_buffer(e, shards_parameters(e, unit) ? WEFT_BUFFER_SHARD : WEFT_BUFFER_FULL, unit,
                 fetches ? WRITE : READ | WRITE);
    touch_buffer(e, WEFT_BUFFER_MASTER, unit, READ | WRITE);
    touch_buffer(e, WEFT_BUFFER_MOMENT1, unit, agreed ? READ : READ | WRITE);
    touch_buffer(e, WEFT_BUFFER_MOMENT2, unit, agreed ? READ : READ | WRITE);
}

/* Reads a layer's output. In backward an offloaded one is back in another buffer. */
static void read_output(struct emitter *e, int32_t layer, int32_t micro, bool backward)
{
    const bool restored = backward && weft_program_moves_output(e->lowering->program, layer);
    touch_of(e, restored ? WEFT_BUFFER_RESTORED_OUTPUT : WEFT_BUFFER_OUTPUT, layer, micro, READ);
}

static void read_input(struct emitter *e, int32_t layer, int32_t micro, bool backward)
{
    if (layer == 0)
        touch_of(e, WEFT_BUFFER_INPUT, -1, micro, READ);
    else
        read_output(e, layer - 1, micro, backward);
}

/* The tokens stay until the first layer's backward, so a read takes no byte. */
static void read_padding(struct emitter *e, int32_t layer, int32_t micro)
{
    if (e->lowering->program->reads[layer].padding) touch_of(e, WEFT_BUFFER_INPUT, -1, micro, READ);
}

static void emit_forward(struct emitter *e, int32_t slot, int32_t layer, int32_t micro)
{
    const struct weft_lowering *lowering = e->lowering;
    if (layer == 0) {
        begin_instruction(e, WEFT_OP_LOAD, slot, -1, -1, 0);
        set_micro_step(e, micro, false);
        touch_of(e, WEFT_BUFFER_INPUT, -1, micro, WRITE);
        touch_of(e, WEFT_BUFFER_TARGETS, -1, micro, WRITE);
    }
    begin_instruction(e, WEFT_OP_FORWARD, slot, layer, -1, weft_plan_slot_ns(lowering->plan, slot));
    set_micro_step(e, micro, false);
    wait_for_blocked(e);
    read_parameters(e, layer, slot, false);
    read_input(e, layer, micro, false);
    read_padding(e, layer, micro);
    if (layer + 1 == lowering->inputs->model->n_layers)
        touch_of(e, WEFT_BUFFER_TARGETS, -1, micro, READ);
    touch_of(e, WEFT_BUFFER_OUTPUT, layer, micro, WRITE);
    touch_of(e, WEFT_BUFFER_SAVED, layer, micro, WRITE);
    touch_of(e, WEFT_BUFFER_FORWARD_TEMPORARY, layer, micro, WRITE);
}

/* Whether nothing was added to the round's gradient of the unit before this slot. */
static bool begins_gradient(const struct emitter *e, int32_t unit, int32_t slot, int32_t micro)
{
    const struct weft_period *period = e->lowering->inputs->period;
    return micro % period->rule.group == 0 &&
           slot == period->first_gradient[micro * period->n_units + unit];
}

static void add_gradients(struct emitter *e, int32_t slot, int32_t layer, int32_t micro)
{
    const struct weft_lowering *lowering = e->lowering;
    for (int32_t i = lowering->first_layer_unit[layer]; i < lowering->first_layer_unit[layer + 1];
         i++) {
        int32_t unit = lowering->layer_units[i].unit;
        touch_of(e, WEFT_BUFFER_GRADIENT, unit, gradient_of(e, micro),
                 begins_gradient(e, unit, slot, micro) ? WRITE : READ | WRITE);
    }
}

static void emit_backward(struct emitter *e, int32_t slot, int32_t layer, int32_t micro)
{
    const struct weft_lowering *lowering = e->lowering;
    bool carried = lowering->inputs->period->rule.rotated && slot < lowering->inputs->period->drain;
    for (int32_t i = lowering->first_layer_unit[layer]; i < lowering->first_layer_unit[layer + 1];
         i++) {
        int32_t unit = lowering->layer_units[i].unit;
        if (!begins_gradient(e, unit, slot, micro)) continue;
        begin_instruction(e, WEFT_OP_ZERO, slot, -1, unit, 0);
        set_micro_step(e, micro, carried);
        touch_of(e, WEFT_BUFFER_GRADIENT, unit, gradient_of(e, micro), WRITE);
    }
    begin_instruction(e, WEFT_OP_BACKWARD, slot, layer, -1,
                      weft_plan_slot_ns(lowering->plan, slot));
    set_micro_step(e, micro, carried);
    wait_for_blocked(e);
    read_parameters(e, layer, slot, true);
    if (lowering->program->reads[layer].input) read_input(e, layer, micro, true);
    if (lowering->program->reads[layer].output) read_output(e, layer, micro, true);
    read_padding(e, layer, micro);
    if (layer + 1 == lowering->inputs->model->n_layers)
        touch_of(e, WEFT_BUFFER_TARGETS, -1, micro, READ);
    const bool offloaded = weft_program_saves_offloaded(lowering->program, layer);
    touch_of(e, offloaded ? WEFT_BUFFER_RESTORED : WEFT_BUFFER_SAVED, layer, micro, READ);
    touch_of(e, WEFT_BUFFER_OUTPUT_GRADIENT, layer, micro, READ);
    if (layer > 0) touch_of(e, WEFT_BUFFER_OUTPUT_GRADIENT, layer - 1, micro, WRITE);
    add_gradients(e, slot, layer, micro);
    touch_of(e, WEFT_BUFFER_BACKWARD_TEMPORARY, layer, micro, WRITE);
}

static void emit_norm(struct emitter *e, int32_t slot)
{
    const struct weft_plan *plan = e->lowering->plan;
    int32_t norm = begin_instruction(e, WEFT_OP_NORM, slot, -1, -1, weft_plan_slot_ns(plan, slot));
    const bool norms = weft_period_norms(&plan->problem->period);
    for (int32_t u = 0; norms && u < e->lowering->program->n_units; u++)
        if (!updates_on_host(e, u)) read_gradient(e, u);
    add_to_record(e);
    int32_t agree = begin_agree(e, slot, -1);
    wait_for(e, norm);
    touch_buffer(e, WEFT_BUFFER_RECORD, -1, READ);
    touch_buffer(e, WEFT_BUFFER_RECORD_SUM, -1, WRITE);
    begin_instruction(e, WEFT_OP_FINISH, slot, -1, -1, 0);
    wait_for(e, agree);
    touch_buffer(e, WEFT_BUFFER_RECORD_SUM, -1, READ);
}

/* Sets the micro-step and step of a move for a use or of a gradient. */
static void belong_to_step(struct emitter *e, const struct weft_unit_move *move,
                           const struct weft_item *item)
{
    const struct weft_period *period = e->lowering->inputs->period;
    const int32_t last = period->rule.n_micro - 1;
    const bool down = move->kind == WEFT_GRADIENT_DOWN;
    if (move->kind == WEFT_ALL_GATHER || move->kind == WEFT_PARAMETERS_FETCH) {
        set_micro_step(e, 0, period->rule.rotated && item->last < period->drain);
    } else if (down || move->from == WEFT_BUFFER_GRADIENT || move->from == WEFT_BUFFER_PARTIAL) {
        const int32_t micro = down ? last : weft_period_round_end(&period->rule, item->gather);
        set_micro_step(e, micro, period->rule.rotated && micro == last);
    }
}

/* Touches the end of a move in a unit's buffer. A shard on the host has an instance for its update
 * and its way down, and one for each gather. Buffers that persist are one piece, unless the host
 * updates them block by block, or blocks cross nodes. */
static void touch_end(struct emitter *e, const struct weft_item *item, enum weft_buffer_kind kind,
                      int32_t block, int access)
{
    const struct weft_program *program = e->lowering->program;
    const int32_t unit = item->decision;
    const bool fetches = weft_program_fetches(program, unit);
    const bool in_place = kind == WEFT_BUFFER_FULL && !shards_parameters(e, unit);
    const bool persists =
        kind == WEFT_BUFFER_REDUCED || (kind == WEFT_BUFFER_SHARD && !fetches) || in_place;
    int32_t instance = persists ? 0 : item->gather;
    const bool updated = item->kind == WEFT_PARAMETERS_DOWN || item->kind == WEFT_ACROSS_GATHER;
    if (kind == WEFT_BUFFER_SHARD && fetches) instance = updated ? 0 : 1 + item->gather;
    const bool averages = program->period.every > 0 && kind != WEFT_BUFFER_REDUCED;
    const bool in_blocks = updates_on_host(e, unit) || averages ||
                           (kind == WEFT_BUFFER_SHARD && crosses_nodes(e, unit));
    touch_piece(e, kind, unit, instance, persists && !in_blocks ? -1 : block, access);
}

/* The ends of a block's move in the arena. In place, and across nodes, the first is written too:
 * each rank receives the other ranks' parts there. A slice is read too when it gets another sum, or
 * if a skipped step leaves it unchanged. */
static void touch_move(struct emitter *e, const struct weft_item *item, int32_t block)
{
    const struct weft_moves moves = weft_moves_of(e->lowering->program->ways[item->decision],
                                                  e->lowering->program->period.every > 0);
    const struct weft_unit_move *move = weft_moves_find(&moves, item->kind);
    const bool passes = move->from == move->to || move->group == WEFT_GROUP_ACROSS;
    const bool adds =
        move->kind == WEFT_PARAMETERS_UP || (move->to == WEFT_BUFFER_REDUCED && item->gather > 0);
    belong_to_step(e, move, item);
    if (move->from != WEFT_BUFFER_KIND_COUNT)
        touch_end(e, item, move->from, block, passes ? READ | WRITE : READ);
    if (move->to != WEFT_BUFFER_KIND_COUNT && move->to != move->from)
        touch_end(e, item, move->to, block, adds ? READ | WRITE : WRITE);
    if (move->kind == WEFT_GRADIENT_DOWN && !e->lowering->inputs->period->rule.rotated)
        add_to_record(e);
}

/* The part of an average: a block of this rank's slices of the master, or under dp of all. Without
 * a master it is the parameters'. These are rounded from the master. */
static void touch_average(struct emitter *e, const struct weft_item *item, int32_t block)
{
    enum { BOTH = READ | WRITE };
    const int32_t unit = item->decision;
    const bool gathered = shards_parameters(e, unit);
    touch_piece(e, gathered ? WEFT_BUFFER_SHARD : WEFT_BUFFER_FULL, unit, 0, block, BOTH);
    touch_piece(e, WEFT_BUFFER_MASTER, unit, 0, block, BOTH);
    if (item->kind != WEFT_AVERAGE) return;
    touch_buffer(e, WEFT_BUFFER_ANCHOR, unit, BOTH);
    touch_buffer(e, WEFT_BUFFER_OUTER, unit, BOTH);
}

/* A copy of a layer's activations or of its input, down from their own buffer or up to another. */
static void touch_saved(struct emitter *e, const struct weft_item *item, int32_t block)
{
    const struct weft_period *period = e->lowering->inputs->period;
    const struct weft_layer_copy copy =
        weft_layer_copy_of(item->kind, e->lowering->plan->problem->decisions[item->decision].layer);
    set_micro_step(e, item->gather,
                   item->acquires && period->rule.rotated && item->last < period->drain);
    touch_piece(e, copy.buffer, copy.layer, item->gather, piece_of(item, block),
                item->acquires ? WRITE : READ);
}

/* An average works in one step of several, and takes its time there. */
static void set_average(struct emitter *e, const struct weft_problem_item *item)
{
    struct weft_instruction *at = current_instruction(e);
    if (!weft_item_averages(&item->item)) return;
    at->ns = item->average_ns;
    at->every = e->lowering->plan->problem->period.every;
    at->phase = item->phase;
}

/* Emits a placed block's instruction, on any lane. */
static void emit_placed(struct emitter *e, int32_t placement)
{
    const struct weft_plan *plan = e->lowering->plan;
    const struct weft_placement *at = &plan->placements[placement];
    const struct weft_item *item = &plan->problem->items[at->item].item;
    /* A reduction holds its operands from its window's start, even if it is launched later. */
    int32_t held = item->acquires ? at->launch : item->first;
    const struct weft_problem_decision *decision = &plan->problem->decisions[item->decision];
    e->issued[placement] = begin_instruction(
        e, (enum weft_op)item->kind, held, decision->is_of_layer ? decision->layer : -1,
        decision->is_of_layer ? -1 : item->decision, plan->problem->items[at->item].block_ns);
    put_on(e, plan->problem->items[at->item].lane);
    if (!e->counting) {
        current_instruction(e)->item = at->item;
        current_instruction(e)->block = at->block;
        set_average(e, &plan->problem->items[at->item]);
    }
    if (at->after >= 0) {
        wait_for(e, e->issued[at->after]);
        if (!e->counting) current_instruction(e)->after = e->issued[at->after];
    }
    wait_for(e, e->marks[held]);
    if (at->launch > held) wait_for(e, e->marks[at->launch]);
    switch (weft_item_kind_of(item)->family) {
    case WEFT_ITEM_COLLECTIVE:
    case WEFT_ITEM_HOST_UPDATE:
    case WEFT_ITEM_PARAMETERS:
        touch_move(e, item, at->block);
        break;
    case WEFT_ITEM_AVERAGE:
        touch_average(e, item, at->block);
        break;
    case WEFT_ITEM_STATE:
        touch_state(e, item, at->block);
        break;
    case WEFT_ITEM_SAVED:
        touch_saved(e, item, at->block);
        break;
    }
}

static void emit_compute(struct emitter *e, int32_t slot)
{
    struct weft_slot what = e->lowering->plan->problem->slots[slot];
    switch (what.kind) {
    case WEFT_SLOT_UPDATE:
        emit_update(e, slot, what.index);
        break;
    case WEFT_SLOT_FORWARD:
        emit_forward(e, slot, what.index, what.micro);
        break;
    case WEFT_SLOT_BACKWARD:
        emit_backward(e, slot, what.index, what.micro);
        break;
    case WEFT_SLOT_NORM:
        emit_norm(e, slot);
        break;
    case WEFT_SLOT_FILL:
    case WEFT_SLOT_DRAIN:
    case WEFT_SLOT_OPEN:
    case WEFT_SLOT_KIND_COUNT:
        break;
    }
}

/* The first placement on the lane from `from` on; n_placements: none. */
static int32_t next_on_lane(const struct weft_plan *plan, int32_t lane, int32_t from)
{
    while (from < plan->n_placements &&
           plan->problem->items[plan->placements[from].item].lane != lane)
        from++;
    return from;
}

/* Emits a lane's launches of the slot until one must follow a placement that was not emitted yet. A
 * lane runs in issue order, so later blocks wait for it. Returns whether any was emitted. */
static bool emit_launched(struct emitter *e, int32_t lane, int32_t slot, int32_t *next)
{
    const struct weft_plan *plan = e->lowering->plan;
    int32_t first = next[lane];
    while (next[lane] < plan->n_placements && plan->placements[next[lane]].launch <= slot) {
        int32_t after = plan->placements[next[lane]].after;
        if (after >= 0 && next[plan->problem->items[plan->placements[after].item].lane] <= after)
            break;
        emit_placed(e, next[lane]);
        next[lane] = next_on_lane(plan, lane, next[lane] + 1);
    }
    return next[lane] > first;
}

static void emit_instructions(struct emitter *e)
{
    const struct weft_plan *plan = e->lowering->plan;
    const struct weft_problem *problem = plan->problem;
    int32_t next[WEFT_MOST_LANES];    /* the next placement to issue */
    int32_t awaited[WEFT_MOST_LANES]; /* the last placement that compute waits for */
    for (int32_t lane = WEFT_LANE_FIRST; lane < problem->n_lanes; lane++) {
        next[lane] = next_on_lane(plan, lane, 0);
        awaited[lane] = -1;
    }
    for (int32_t s = 0; s < problem->n_slots; s++) {
        e->marks[s] = begin_instruction(e, WEFT_OP_MARK, s, -1, -1, 0);
        for (int32_t lane = WEFT_LANE_FIRST; lane < problem->n_lanes; lane++) {
            int32_t due = e->due[weft_problem_lane_at(problem, lane) + (size_t)s];
            if (due <= awaited[lane]) continue;
            awaited[lane] = due;
            wait_for(e, e->issued[due]);
        }
        for (bool any = true; any;) {
            any = false;
            for (int32_t lane = WEFT_LANE_FIRST; lane < problem->n_lanes; lane++)
                any = emit_launched(e, lane, s, next) || any;
        }
        for (int32_t lane = WEFT_LANE_FIRST; lane < problem->n_lanes; lane++) {
            int32_t blocking = e->blocking[weft_problem_lane_at(problem, lane) + (size_t)s];
            e->blocked[lane] = blocking < 0 ? -1 : e->issued[blocking];
            if (blocking > awaited[lane]) awaited[lane] = blocking;
        }
        emit_compute(e, s);
    }
}

static enum weft_status emit_all(struct weft_lowering *lowering, struct weft_error *err)
{
    const struct weft_plan *plan = lowering->plan;
    struct weft_program *program = lowering->program;
    size_t n_slots = (size_t)plan->problem->n_slots;
    struct emitter counter = {.lowering = lowering, .counting = true};
    counter.marks = weft_pool_array(&lowering->pool, n_slots, sizeof(int32_t));
    size_t n_due = weft_problem_lane_at(plan->problem, plan->problem->n_lanes);
    counter.due = weft_pool_array(&lowering->pool, n_due, sizeof(int32_t));
    counter.blocking = weft_pool_array(&lowering->pool, n_due, sizeof(int32_t));
    counter.issued = weft_pool_array(&lowering->pool, (size_t)plan->n_placements, sizeof(int32_t));
    if (counter.marks == NULL || counter.due == NULL || counter.blocking == NULL ||
        counter.issued == NULL) {
        return weft_fail_memory(err, "program");
    }
    for (size_t i = 0; i < n_due; i++)
        counter.due[i] = counter.blocking[i] = -1;
    for (int32_t i = 0; i < plan->n_placements; i++) {
        const struct weft_placement *at = &plan->placements[i];
        size_t lane = weft_problem_lane_at(plan->problem, plan->problem->items[at->item].lane);
        (weft_placement_blocks(at) ? counter.blocking : counter.due)[lane + (size_t)at->deadline] =
            i;
    }
    struct emitter emitter = counter;
    emit_instructions(&counter);
    program->instructions = weft_pool_array(&program->pool, (size_t)counter.n_instructions,
                                            sizeof *program->instructions);
    program->dependencies = weft_pool_array(&program->pool, (size_t)counter.n_dependencies,
                                            sizeof *program->dependencies);
    program->operands =
        weft_pool_array(&program->pool, (size_t)counter.n_operands, sizeof *program->operands);
    if (program->instructions == NULL || program->dependencies == NULL ||
        program->operands == NULL) {
        return weft_fail_memory(err, "program");
    }
    emitter.counting = false;
    emit_instructions(&emitter);
    program->n_instructions = emitter.n_instructions;
    return WEFT_OK;
}

static enum weft_status find_lives(struct weft_lowering *lowering, struct weft_error *err)
{
    struct weft_program *program = lowering->program;
    size_t n_pieces = (size_t)weft_program_pieces(program);
    struct weft_life *lives = weft_pool_array(&program->pool, n_pieces, sizeof *lives);
    size_t n_rows = (size_t)program->n_slots * WEFT_CATEGORY_COUNT;
    int64_t *rows = weft_pool_array(&lowering->pool, n_rows, sizeof *rows);
    if (lives == NULL || rows == NULL) return weft_fail_memory(err, "program");
    WEFT_TRY(weft_program_lives(program, lives, err));
    for (int32_t b = 0; b < program->n_buffers; b++) {
        program->buffers[b].lives = lives;
        lives += program->buffers[b].n_pieces;
    }
    weft_program_live(program, rows);
    for (int32_t s = 0; s < program->n_slots; s++) {
        int64_t sum = -weft_program_outside_bytes(program);
        for (int c = 0; c < WEFT_CATEGORY_COUNT; c++)
            sum += rows[(size_t)s * WEFT_CATEGORY_COUNT + (size_t)c];
        if (sum > program->live_bytes) program->live_bytes = sum;
    }
    return WEFT_OK;
}

struct weft_lower_inputs weft_lower_inputs_of(const struct weft_config *config,
                                              const struct weft_profile *profile,
                                              const struct weft_stages *stages)
{
    return (struct weft_lower_inputs){
        .model = config->model,
        .shards = stages->shards,
        .period = stages->period,
        .weigh = weft_stages_weigh_options(config, profile, &stages->variant),
        .page_bytes = config->cluster.page_bytes,
    };
}

enum weft_status weft_program_lower(const struct weft_plan *plan,
                                    const struct weft_lower_inputs *inputs,
                                    struct weft_program **out, struct weft_error *err)
{
    enum weft_status status;
    struct weft_lowering lowering = {.plan = plan, .inputs = inputs};
    lowering.program = calloc(1, sizeof *lowering.program);
    if (lowering.program == NULL) return weft_fail_memory(err, "program");
    WEFT_TRY_GOTO(done, weft_lower_prepare(&lowering, err));
    WEFT_TRY_GOTO(done, emit_all(&lowering, err));
    WEFT_TRY_GOTO(done, find_lives(&lowering, err));
    WEFT_TRY_GOTO(done, weft_program_mark_begun(lowering.program, err));
    WEFT_TRY_GOTO(done,
                  weft_program_page(lowering.program, inputs->page_bytes, inputs->most_bytes,
                                    &plan->pages, inputs->work, &lowering.program->paging, err));
    lowering.program->arena_bytes =
        lowering.program->paging->n_pages * lowering.program->paging->page_bytes;
    *out = lowering.program;
    lowering.program = NULL;
done:
    weft_program_destroy(lowering.program);
    weft_pool_finish(&lowering.pool);
    return status;
}
