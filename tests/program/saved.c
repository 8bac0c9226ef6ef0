/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of plans with randomly offloaded saved activations. verify accepts them, and refuses a
 * program that uses them before they arrive or after they are gone. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "tests/effort.h"
#include "tests/program/changes.h"
#include "tests/program/random_model.h"

enum { SAVED_CASES = TEST_CASES(200, 60) };

/* Checks that the host's rows hold the layers' offloaded activations in all slots. */
static void check_host_rows(const struct tiers_case *c)
{
    const size_t n = (size_t)c->plan->problem->n_slots * WEFT_CATEGORY_COUNT;
    int64_t *rows = calloc(n, sizeof *rows);
    weft_plan_rows(c->plan, 1, rows); /* the host's comes before a disk's */
    cr_assert_eq(c->plan->problem->tiers[1].kind, WEFT_LOCATION_HOST);
    for (size_t i = WEFT_CATEGORY_ACTIVATIONS; i < n; i += WEFT_CATEGORY_COUNT)
        cr_assert_eq(rows[i], c->program->host_bytes, "seed %d", (int)c->random.seed);
    free(rows);
}

static bool has_offloaded_activations(const struct weft_program *program)
{
    return program->saved_at != NULL;
}

Test(saved, what_is_planned_of_layers_is_what_the_program_holds_and_takes)
{
    cr_assert_gt(check_programs(SAVED_CASES, has_offloaded_activations), SAVED_CASES / 20);
    for (uint64_t seed = 1; seed <= SAVED_CASES; seed++) {
        struct tiers_case c;
        tiers_case_init(&c, seed);
        if (has_offloaded_activations(c.program)) check_host_rows(&c);
        tiers_case_finish(&c);
    }
}

/* The backward that reads the buffer to which a copy up writes. */
static int32_t find_backward(const struct weft_program *program, int32_t of)
{
    const struct weft_operand *to = &program->operands[program->instructions[of].first_operand];
    for (int32_t i = 0; i < program->n_instructions; i++) {
        const struct weft_instruction *at = &program->instructions[i];
        for (int32_t k = 0; k < at->n_operands && at->op == WEFT_OP_BACKWARD; k++)
            if (program->operands[at->first_operand + k].buffer == to->buffer) return i;
    }
    cr_assert(false, "nothing reads the copy");
    return -1;
}

/* Removes all waits, up to the instruction `end`, for the lane's work from `from` on. */
static void forget_lane(struct weft_program *program, int32_t from, int32_t end)
{
    const struct weft_instruction *last = &program->instructions[end];
    for (int32_t d = 0; d < last->first_dependency + last->n_dependencies; d++) {
        int32_t *before = &program->dependencies[d];
        if (*before >= from &&
            program->instructions[*before].lane == program->instructions[from].lane)
            *before = 0;
    }
}

static bool forget_up(struct weft_program *program)
{
    const int32_t up = find_op(program, WEFT_OP_SAVED_UP, 0);
    forget_lane(program, up, find_backward(program, up));
    return true;
}

static bool forget_down(struct weft_program *program)
{
    const int32_t down = find_op(program, WEFT_OP_SAVED_DOWN, 0);
    forget_lane(program, down, program->n_instructions - 1);
    return true;
}

/* The operand of an instruction that is a buffer of a kind. */
static struct weft_operand *operand_of(struct weft_program *program, int32_t instruction,
                                       enum weft_buffer_kind kind)
{
    const struct weft_instruction *at = &program->instructions[instruction];
    for (int32_t i = 0; i < at->n_operands; i++) {
        struct weft_operand *operand = &program->operands[at->first_operand + i];
        if (program->buffers[operand->buffer].kind == kind) return operand;
    }
    return NULL;
}

static bool read_what_is_offloaded(struct weft_program *program)
{
    const int32_t up = find_op(program, WEFT_OP_SAVED_UP, 0), back = find_backward(program, up);
    const struct weft_instruction *at = &program->instructions[back];
    operand_of(program, back, WEFT_BUFFER_RESTORED)->buffer =
        weft_program_buffer(program, WEFT_BUFFER_SAVED, at->layer, at->micro);
    return true;
}

static bool say_that_it_stays(struct weft_program *program)
{
    program->saved_at[program->instructions[find_op(program, WEFT_OP_SAVED_DOWN, 0)].layer] = -1;
    return true;
}

static bool bring_another_layer(struct weft_program *program)
{
    struct weft_instruction *at = &program->instructions[find_op(program, WEFT_OP_SAVED_UP, 0)];
    at->layer = at->layer > 0 ? at->layer - 1 : at->layer + 1;
    return true;
}

static bool bring_another_micro_step(struct weft_program *program)
{
    struct weft_instruction *at = &program->instructions[find_op(program, WEFT_OP_SAVED_UP, 0)];
    at->micro = (at->micro + 1) % program->period.n_micro;
    return program->period.n_micro > 1;
}

static bool copy_over_the_network(struct weft_program *program)
{
    program->instructions[find_op(program, WEFT_OP_SAVED_DOWN, 0)].lane = WEFT_LANE_FIRST;
    return true;
}

static bool move_of_a_unit(struct weft_program *program)
{
    program->instructions[find_op(program, WEFT_OP_SAVED_DOWN, 0)].unit = 0;
    return true;
}

Test(saved, what_would_use_what_is_not_there_is_refused)
{
    static const struct program_change changes[] = {
        {forget_up, "is back", false},
        {forget_down, "does not follow the copy before it", false},
        {read_what_is_offloaded, "back from the host", false},
        {say_that_it_stays, "not offloaded", false},
        {bring_another_layer, "saved", false},
        {bring_another_micro_step, "does not move what its layer saved", false},
        {copy_over_the_network, "a lane that does not do it", false},
        {move_of_a_unit, "unit is out of range", false},
    };
    check_refusals(SAVED_CASES, has_offloaded_activations, changes,
                   sizeof changes / sizeof *changes);
}

static bool has_offloaded_inputs(const struct weft_program *program)
{
    return program->inputs_at != NULL;
}

Test(saved, what_is_planned_of_inputs_is_what_the_program_holds_and_takes)
{
    cr_assert_gt(check_programs(SAVED_CASES, has_offloaded_inputs), SAVED_CASES / 20);
    for (uint64_t seed = 1; seed <= SAVED_CASES; seed++) {
        struct tiers_case c;
        tiers_case_init(&c, seed);
        if (has_offloaded_inputs(c.program)) check_host_rows(&c);
        tiers_case_finish(&c);
    }
}

static struct weft_instruction *input_up(struct weft_program *program)
{
    return &program->instructions[find_op(program, WEFT_OP_INPUT_UP, 0)];
}

static bool forget_input_up(struct weft_program *program)
{
    const int32_t up = find_op(program, WEFT_OP_INPUT_UP, 0);
    forget_lane(program, up, find_backward(program, up));
    return true;
}

static bool forget_input_down(struct weft_program *program)
{
    forget_lane(program, find_op(program, WEFT_OP_INPUT_DOWN, 0), program->n_instructions - 1);
    return true;
}

static bool read_an_input_that_is_offloaded(struct weft_program *program)
{
    const struct weft_instruction *up = input_up(program);
    const int32_t back = find_backward(program, find_op(program, WEFT_OP_INPUT_UP, 0));
    operand_of(program, back, WEFT_BUFFER_RESTORED_OUTPUT)->buffer =
        weft_program_buffer(program, WEFT_BUFFER_OUTPUT, up->layer - 1, up->micro);
    return true;
}

/* Points a backward's operand with an offloaded input to a buffer that it reads anyway. The copy up
 * has two readers: the backward of its layer, and of the layer before. */
static bool miss_the_input(struct weft_program *program, bool of_own_layer)
{
    const struct weft_instruction *up = input_up(program);
    for (int32_t i = 0; i < program->n_instructions; i++) {
        const struct weft_instruction *at = &program->instructions[i];
        if (at->op != WEFT_OP_BACKWARD || at->micro != up->micro ||
            at->layer != up->layer - !of_own_layer)
            continue;
        for (int32_t k = 0; k < at->n_operands; k++) {
            struct weft_operand *operand = &program->operands[at->first_operand + k];
            const struct weft_buffer *buffer = &program->buffers[operand->buffer];
            if (buffer->kind != WEFT_BUFFER_RESTORED_OUTPUT || buffer->index != up->layer - 1)
                continue;
            operand->buffer = operand_of(program, i, WEFT_BUFFER_OUTPUT_GRADIENT)->buffer;
            return true;
        }
    }
    return false;
}

static bool miss_the_own_input(struct weft_program *program)
{
    return miss_the_input(program, true);
}

static bool miss_the_input_of_the_next(struct weft_program *program)
{
    return miss_the_input(program, false);
}

static bool say_that_an_input_stays(struct weft_program *program)
{
    program->inputs_at[input_up(program)->layer] = -1;
    return true;
}

static bool bring_the_input_of_another_layer(struct weft_program *program)
{
    struct weft_instruction *up = input_up(program);
    up->layer = up->layer > 1 ? up->layer - 1 : up->layer + 1;
    return true;
}

static bool bring_the_input_of_another_micro_step(struct weft_program *program)
{
    struct weft_instruction *up = input_up(program);
    up->micro = (up->micro + 1) % program->period.n_micro;
    return program->period.n_micro > 1;
}

static bool bring_the_batch(struct weft_program *program)
{
    input_up(program)->layer = 0;
    return true;
}

static bool move_an_input_over_the_network(struct weft_program *program)
{
    program->instructions[find_op(program, WEFT_OP_INPUT_DOWN, 0)].lane = WEFT_LANE_FIRST;
    return true;
}

static bool place_an_input_after_the_end(struct weft_program *program)
{
    program->inputs_at[input_up(program)->layer] = program->host_bytes - 1;
    return true;
}

static bool share_a_place(struct weft_program *program)
{
    const int32_t layer = input_up(program)->layer;
    for (int32_t l = 0; l < program->n_layers; l++)
        if (weft_program_saves_offloaded(program, l) ||
            (l != layer && program->inputs_at[l] >= 0)) {
            program->inputs_at[layer] = weft_program_saves_offloaded(program, l)
                                            ? program->saved_at[l]
                                            : program->inputs_at[l];
            return true;
        }
    return false;
}

Test(saved, what_would_use_an_input_that_is_not_there_is_refused)
{
    static const struct program_change changes[] = {
        {forget_input_up, "is back", false},
        {forget_input_down, "does not follow the copy before it", false},
        {read_an_input_that_is_offloaded, "an offloaded input that is not back", false},
        {miss_the_own_input, "does not read its layer's input", false},
        {miss_the_input_of_the_next, "does not read its layer's output", false},
        {say_that_an_input_stays, "input is not offloaded", false},
        {bring_the_input_of_another_layer, "input", false},
        {bring_the_input_of_another_micro_step, "does not move its layer's input", false},
        {bring_the_batch, "input is not offloaded", false},
        {move_an_input_over_the_network, "a lane that does not do it", false},
        {place_an_input_after_the_end, "no place of its own", false},
        {share_a_place, "no place of its own", false},
    };
    check_refusals(SAVED_CASES, has_offloaded_inputs, changes, sizeof changes / sizeof *changes);
}

/* A recomputed layer of the program at a level; -1: none. */
static int32_t find_recomputed(const struct weft_program *program, enum weft_recompute level)
{
    for (int32_t l = 0; l < program->n_layers; l++)
        if (weft_program_recompute(program, l) == level) return l;
    return -1;
}

static int32_t find_of_layer(const struct weft_program *program, enum weft_op op, int32_t layer)
{
    int32_t i = 0;
    while (program->instructions[i].op != op || program->instructions[i].layer != layer)
        i++;
    return i;
}

static bool recomputes_layers(const struct weft_program *program)
{
    return program->recomputes != NULL;
}

Test(saved, recomputed_layers_hold_and_take_what_is_planned)
{
    int32_t n_seen[WEFT_RECOMPUTE_COUNT] = {0};
    check_programs(SAVED_CASES, recomputes_layers);
    for (uint64_t seed = 1; seed <= SAVED_CASES; seed++) {
        struct tiers_case c;
        tiers_case_init(&c, seed);
        if (recomputes_layers(c.program)) {
            for (int level = 0; level < WEFT_RECOMPUTE_COUNT; level++)
                n_seen[level] += find_recomputed(c.program, (enum weft_recompute)level) >= 0;
        }
        tiers_case_finish(&c);
    }
    const int32_t derived =
        n_seen[WEFT_RECOMPUTE_LIGHT] + n_seen[WEFT_RECOMPUTE_MEDIUM] + n_seen[WEFT_RECOMPUTE_DEEP];
    cr_assert_gt(n_seen[WEFT_RECOMPUTE_SELECTIVE], SAVED_CASES / 20);
    cr_assert_gt(n_seen[WEFT_RECOMPUTE_WHOLE], SAVED_CASES / 20);
    cr_assert_gt(derived, SAVED_CASES / 20, "derived: %d", derived);
}

static bool say_that_a_kept_one_is_recomputed(struct weft_program *program)
{
    for (int32_t l = 0; l < program->n_layers; l++) {
        const int32_t forward = find_of_layer(program, WEFT_OP_FORWARD, l);
        if (program->recomputes[l] != WEFT_RECOMPUTE_NONE ||
            operand_of(program, forward, WEFT_BUFFER_FORWARD_TEMPORARY) != NULL)
            continue;
        program->recomputes[l] = WEFT_RECOMPUTE_WHOLE;
        return true;
    }
    return false;
}

/* Makes an operand of a recomputed layer's backward one that it has already. */
static bool forget_operand(struct weft_program *program, enum weft_buffer_kind kind)
{
    int32_t layer = -1;
    for (int level = WEFT_RECOMPUTE_FIRST; level < WEFT_RECOMPUTE_COUNT && layer < 0; level++)
        layer = find_recomputed(program, (enum weft_recompute)level);
    if (layer < 0) return false;
    const int32_t back = find_of_layer(program, WEFT_OP_BACKWARD, layer);
    struct weft_operand *of = operand_of(program, back, kind);
    if (of == NULL) return false;
    of->buffer = operand_of(program, back, WEFT_BUFFER_OUTPUT_GRADIENT)->buffer;
    return true;
}

static bool forget_input(struct weft_program *program)
{
    return forget_operand(program, WEFT_BUFFER_OUTPUT);
}

static bool forget_parameters(struct weft_program *program)
{
    return forget_operand(program, WEFT_BUFFER_FULL);
}

static bool forget_kept(struct weft_program *program)
{
    return forget_operand(program, WEFT_BUFFER_SAVED);
}

static bool give_no_level(struct weft_program *program)
{
    program->recomputes[0] = WEFT_RECOMPUTE_COUNT;
    return true;
}

Test(saved, a_backward_that_cannot_restore_is_refused)
{
    static const struct program_change changes[] = {
        {forget_kept, "what its level of recomputation keeps", false},
        {say_that_a_kept_one_is_recomputed, "no room for what it drops", false},
        {forget_input, "does not read its layer's input", false},
        {forget_parameters, "does not read all of its parameters", false},
        {give_no_level, "level 6 of recomputation", false},
    };
    check_refusals(SAVED_CASES, recomputes_layers, changes, sizeof changes / sizeof *changes);
}
