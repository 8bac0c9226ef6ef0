/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "program/program_text.h"
#include "program/verify.h"

static const char *buffer_fault(const struct weft_program *program, const struct weft_buffer *at)
{
    if ((unsigned)at->kind >= WEFT_BUFFER_KIND_COUNT) return "its kind is out of range";
    if ((unsigned)at->category >= WEFT_CATEGORY_COUNT) return "its category is out of range";
    const enum weft_buffer_owner owner = weft_buffer_owner(at->kind);
    if (owner == WEFT_OWNER_UNIT && (at->index < 0 || at->index >= program->n_units))
        return "its unit is out of range";
    if (owner == WEFT_OWNER_LAYER && (at->index < 0 || at->index >= program->n_layers))
        return "its layer is out of range";
    if (at->n_pieces < 1 || at->bytes < 1 || at->bytes % at->n_pieces != 0) {
        return "its bytes are not so many equal pieces";
    }
    for (int32_t p = 0; p < at->n_pieces; p++) {
        struct weft_life life = at->lives[p];
        if (life.first < 0 || life.first >= program->n_slots || life.last < 0 ||
            life.last >= program->n_slots) {
            return "its life is not within the period";
        }
    }
    return NULL;
}

/* Buffers must be sorted by kind, index and instance for weft_program_buffer. */
static bool is_sorted(const struct weft_buffer *a, const struct weft_buffer *b)
{
    if (a->kind != b->kind) return a->kind < b->kind;
    if (a->index != b->index) return a->index < b->index;
    return a->instance < b->instance;
}

static enum weft_status check_buffers(const struct weft_program *program, struct weft_error *err)
{
    int64_t pieces = 0;
    for (int32_t u = 0; u < program->n_units; u++) {
        const struct weft_way way = program->ways[u];
        if ((unsigned)way.policy >= WEFT_POLICY_COUNT || (unsigned)way.keep >= WEFT_KEEP_COUNT)
            return weft_fail(err, WEFT_E_DATA, "program: unit %d has policy %d and keep %d", u,
                             (int)way.policy, (int)way.keep);
    }
    for (int32_t l = 0; l < program->n_layers; l++) {
        if ((unsigned)weft_program_recompute(program, l) >= WEFT_RECOMPUTE_COUNT)
            return weft_fail(err, WEFT_E_DATA, "program: layer %d has level %d of recomputation", l,
                             (int)program->recomputes[l]);
    }
    for (int32_t b = 0; b < program->n_buffers; b++) {
        const char *fault = buffer_fault(program, &program->buffers[b]);
        pieces += fault == NULL ? program->buffers[b].n_pieces : 0;
        if (fault == NULL && pieces > INT32_MAX) fault = "there are too many pieces";
        if (fault == NULL && b > 0 && !is_sorted(&program->buffers[b - 1], &program->buffers[b])) {
            fault = "buffers are not in order, each once";
        }
        if (fault != NULL) {
            return weft_fail(err, WEFT_E_DATA, "program: buffer %d (%" PRId64 " bytes): %s", b,
                             program->buffers[b].bytes, fault);
        }
    }
    return WEFT_OK;
}

static const char *operand_fault(const struct weft_program *program,
                                 const struct weft_instruction *at)
{
    for (int32_t i = 0; i < at->n_operands; i++) {
        const struct weft_operand *operand = &program->operands[at->first_operand + i];
        if (operand->buffer < 0 || operand->buffer >= program->n_buffers) {
            return "an operand's buffer is out of range";
        }
        if (operand->piece < -1 || operand->piece >= program->buffers[operand->buffer].n_pieces) {
            return "an operand's piece is out of range";
        }
    }
    return NULL;
}

/* Whether the instruction's lane does such work. A disk with one lane reads and writes on it. */
static bool serves_lane(const struct weft_program *program, const struct weft_instruction *at)
{
    const enum weft_lane_kind kind = program->lanes[at->lane].kind;
    const enum weft_lane_kind last = program->lanes[program->n_lanes - 1].kind;
    switch (weft_op_stream(at->op)) {
    case WEFT_STREAM_COMPUTE:
        return at->lane == WEFT_LANE_COMPUTE;
    case WEFT_STREAM_CHANNEL:
        return kind == WEFT_LANE_KIND_NETWORK || kind == WEFT_LANE_KIND_ACROSS;
    case WEFT_STREAM_DOWN:
        return kind == WEFT_LANE_KIND_DOWN;
    case WEFT_STREAM_UP:
        return kind == WEFT_LANE_KIND_UP;
    case WEFT_STREAM_HOST:
        return kind == WEFT_LANE_KIND_HOST;
    case WEFT_STREAM_READ:
        return kind == WEFT_LANE_KIND_READ;
    case WEFT_STREAM_WRITE:
        return kind == (last == WEFT_LANE_KIND_WRITE ? last : WEFT_LANE_KIND_READ);
    case WEFT_STREAM_COUNT:
        break;
    }
    return false;
}

/* State of the walk through the instructions. */
struct walk {
    int32_t slot; /* of the last MARK */
    int32_t n_dependencies, n_operands;
};

static bool copies_saved(enum weft_op op)
{
    return weft_op_is_of(op, WEFT_ITEM_SAVED);
}

static bool moves_block(enum weft_op op)
{
    return op < WEFT_OP_AGREE;
}

/* Averages over nodes work in one step of several, and all else in each. */
static bool has_steps(const struct weft_instruction *at)
{
    if (!weft_op_is_of(at->op, WEFT_ITEM_AVERAGE)) return at->every == 0 && at->phase == 0;
    return at->every >= 1 && at->phase >= 0 && at->phase < at->every;
}

/* Dependencies on earlier instructions cannot form a cycle. */
static const char *dependency_fault(const struct weft_program *program, int32_t index)
{
    const struct weft_instruction *at = &program->instructions[index];
    bool marked = !moves_block(at->op), follows = at->after == 0;
    for (int32_t d = 0; d < at->n_dependencies; d++) {
        int32_t before = program->dependencies[at->first_dependency + d];
        if (before < 0 || before >= index) return "it depends on itself or on a later instruction";
        const struct weft_instruction *other = &program->instructions[before];
        marked |= other->op == WEFT_OP_MARK && other->slot == at->slot;
        follows |= before == at->after;
    }
    if (!follows) return "it does not wait for the block that it comes after";
    return marked ? NULL : "it does not wait for the mark of the slot that it is launched in";
}

static const char *instruction_fault(const struct weft_program *program, int32_t index,
                                     struct walk *walk)
{
    const struct weft_instruction *at = &program->instructions[index];
    if ((unsigned)at->op >= WEFT_OP_COUNT) return "its op is out of range";
    if (at->ns < 0) return "its time is negative";
    if (!has_steps(at)) return "the steps in which it works are out of range";
    if (at->lane < 0 || at->lane >= program->n_lanes || !serves_lane(program, at))
        return "it is on a lane that does not do it";
    if (at->n_dependencies < 0 || at->first_dependency != walk->n_dependencies) {
        return "its dependencies do not follow those of the instruction before it";
    }
    if (at->n_operands < 0 || at->first_operand != walk->n_operands) {
        return "its operands do not follow those of the instruction before it";
    }
    if (at->n_dependencies > INT32_MAX - walk->n_dependencies ||
        at->n_operands > INT32_MAX - walk->n_operands) {
        return "there are too many operands or dependencies";
    }
    walk->n_dependencies += at->n_dependencies;
    walk->n_operands += at->n_operands;
    if (at->op == WEFT_OP_MARK && at->slot != ++walk->slot) return "slots are not marked in order";
    if (walk->slot < 0 || at->slot < 0 || at->slot > walk->slot) {
        return "its slot has not begun";
    }
    if (!moves_block(at->op) && at->slot != walk->slot) return "its slot is over";
    bool needs_unit = (moves_block(at->op) && !copies_saved(at->op)) || at->op == WEFT_OP_MOMENTS ||
                      at->op == WEFT_OP_UPDATE || at->op == WEFT_OP_ZERO ||
                      (at->op == WEFT_OP_AGREE && at->unit != -1);
    if (needs_unit ? at->unit < 0 || at->unit >= program->n_units : at->unit != -1) {
        return "its unit is out of range";
    }
    bool needs_layer =
        at->op == WEFT_OP_FORWARD || at->op == WEFT_OP_BACKWARD || copies_saved(at->op);
    if (needs_layer != (at->layer >= 0) || at->layer >= program->n_layers)
        return "its layer is out of range";
    if (moves_block(at->op) != (at->block >= 0)) return "its block is out of range";
    if (at->micro < 0 || at->micro >= program->period.n_micro)
        return "its micro-step is out of range";
    const char *fault = operand_fault(program, at);
    return fault != NULL ? fault : dependency_fault(program, index);
}

enum weft_status weft_verify_form(const struct weft_program *program, struct weft_error *err)
{
    if (program->n_slots < 1 || program->n_lanes < 2 || program->n_lanes > WEFT_MOST_LANES ||
        program->n_instructions < 1 || program->n_buffers < 1 ||
        program->n_instructions > INT32_MAX / WEFT_ORDER_PERIODS - 1 ||
        program->period.n_micro < 1) {
        return weft_fail(err, WEFT_E_DATA,
                         "program: %d slots, %d instructions, %d buffers: out of range",
                         program->n_slots, program->n_instructions, program->n_buffers);
    }
    WEFT_TRY(check_buffers(program, err));
    struct walk walk = {.slot = -1};
    for (int32_t i = 0; i < program->n_instructions; i++) {
        const char *fault = instruction_fault(program, i, &walk);
        if (fault == NULL) continue;
        char name[WEFT_PROGRAM_NAME_BYTES] = "instruction with an unknown op";
        if ((unsigned)program->instructions[i].op < WEFT_OP_COUNT)
            weft_program_instruction_name(program, i, name);
        return weft_fail(err, WEFT_E_DATA, "program: %s: %s", name, fault);
    }
    if (walk.slot != program->n_slots - 1) {
        return weft_fail(err, WEFT_E_DATA, "program: %d of %d slots are marked", walk.slot + 1,
                         program->n_slots);
    }
    return WEFT_OK;
}
