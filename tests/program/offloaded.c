/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of plans with randomly offloaded state. verify accepts them, and refuses a program that
 * uses state before it is there. */
#include <criterion/criterion.h>

#include "program/lifetime.h"
#include "tests/effort.h"
#include "tests/program/changes.h"
#include "tests/program/random_model.h"

enum { CASES = TEST_CASES(60, 20) };

/* Whether it moves the state of some unit. */
static bool moves_state(const struct weft_program *program)
{
    for (int32_t i = 0; i < program->n_instructions; i++)
        if (weft_op_brings_state(program->instructions[i].op)) return true;
    return false;
}

/* The first instruction that brings a unit's state, and that takes one away. */
static int32_t find_bringing(const struct weft_program *program)
{
    int32_t i = 0;
    while (!weft_op_brings_state(program->instructions[i].op))
        i++;
    return i;
}

static int32_t find_taking(const struct weft_program *program)
{
    int32_t i = 0;
    while (!weft_op_takes_state(program->instructions[i].op))
        i++;
    return i;
}

static bool has_offloaded_state(const struct weft_program *program)
{
    for (int32_t u = 0; u < program->n_units; u++)
        if (program->ways[u].keep != WEFT_KEEP_DEVICE) return true;
    return false;
}

Test(offloaded, what_is_planned_of_state_is_what_the_program_holds_and_takes)
{
    cr_assert_gt(check_programs(CASES, has_offloaded_state), CASES / 4);
}

Test(offloaded, offloaded_state_does_not_persist)
{
    for (uint64_t seed = 1; seed <= CASES; seed++) {
        struct tiers_case c;
        tiers_case_init(&c, seed);
        for (int32_t b = 0; b < c.program->n_buffers && has_offloaded_state(c.program); b++) {
            const struct weft_buffer *buffer = &c.program->buffers[b];
            if (!weft_buffer_is_state(buffer->kind)) continue;
            const bool offloaded = weft_program_is_offloaded(c.program, buffer->index);
            cr_assert_eq(weft_buffer_persists(c.program, buffer), !offloaded);
        }
        tiers_case_finish(&c);
    }
}

static int32_t find_update(const struct weft_program *program, int32_t unit)
{
    int32_t i = 0;
    while (program->instructions[i].op != WEFT_OP_UPDATE || program->instructions[i].unit != unit)
        i++;
    return i;
}

/* Nothing up to the update waits for the lane from where its state comes on. */
static bool forget_read(struct weft_program *program)
{
    const int32_t read = find_bringing(program);
    const int32_t update = find_update(program, program->instructions[read].unit);
    const struct weft_instruction *last = &program->instructions[update];
    for (int32_t d = 0; d < last->first_dependency + last->n_dependencies; d++) {
        int32_t *before = &program->dependencies[d];
        if (*before >= read &&
            program->instructions[*before].lane == program->instructions[read].lane)
            *before = 0;
    }
    return true;
}

/* It is written from the beginning of the update's slot on; false where the lane would wait. */
static bool forget_update(struct weft_program *program)
{
    const int32_t write = find_taking(program);
    struct weft_instruction *at = &program->instructions[write];
    const int32_t update = find_update(program, at->unit);
    for (int32_t i = update; i < write; i++) /* its lane waits there instead */
        if (program->instructions[i].lane == at->lane) return false;
    at->slot = program->instructions[update].slot;
    for (int32_t d = 0; d < at->n_dependencies; d++) {
        int32_t mark = 0;
        while (program->instructions[mark].op != WEFT_OP_MARK ||
               program->instructions[mark].slot != at->slot)
            mark++;
        program->dependencies[at->first_dependency + d] = mark;
    }
    return true;
}

/* Removes the waits for the last write of state. */
static bool forget_write(struct weft_program *program)
{
    int32_t write = program->n_instructions - 1;
    while (!weft_op_takes_state(program->instructions[write].op))
        write--;
    for (int32_t i = 0; i < program->n_instructions; i++) {
        const struct weft_instruction *at = &program->instructions[i];
        for (int32_t d = 0; d < at->n_dependencies; d++) {
            int32_t *before = &program->dependencies[at->first_dependency + d];
            if (*before >= write &&
                program->instructions[*before].lane == program->instructions[write].lane)
                *before = 0;
        }
    }
    return true;
}

static bool read_another_unit(struct weft_program *program)
{
    struct weft_instruction *at = &program->instructions[find_bringing(program)];
    at->unit = (at->unit + 1) % program->n_units;
    return program->n_units > 1;
}

static bool move_over_the_network(struct weft_program *program)
{
    program->instructions[find_taking(program)].lane = WEFT_LANE_FIRST;
    return true;
}

static bool say_that_it_is_here(struct weft_program *program)
{
    program->ways[program->instructions[find_bringing(program)].unit].keep = WEFT_KEEP_DEVICE;
    return true;
}

/* Moves state of a unit from another location than planned. */
static bool move_from_another_location(struct weft_program *program)
{
    enum weft_keep *keep = &program->ways[program->instructions[find_bringing(program)].unit].keep;
    *keep = *keep == WEFT_KEEP_DISK ? WEFT_KEEP_HOST : WEFT_KEEP_DISK;
    return true;
}

Test(offloaded, what_would_use_state_that_is_not_there_is_refused)
{
    static const struct program_change changes[] = {
        {forget_read, "state is there", false},
        {forget_update, "its side of the unit's update", false},
        {read_another_unit, "state", false},
        {move_over_the_network, "a lane that does not do it", false},
        {say_that_it_is_here, "not offloaded", false},
        {forget_write, "has been written", false},
        {move_from_another_location, "has another location", false},
    };
    check_refusals(CASES, moves_state, changes, sizeof changes / sizeof *changes);
}
