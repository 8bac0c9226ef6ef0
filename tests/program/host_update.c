/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of plans that update units on the host. verify accepts them. It refuses programs in
 * which copies and updates do not wait for each other, or that update only part of a unit. */
#include <criterion/criterion.h>

#include "tests/effort.h"
#include "tests/program/changes.h"

enum { HOST_CASES = TEST_CASES(160, 50) };

static bool has_host_updates(const struct weft_program *program)
{
    return find_op(program, WEFT_OP_HOST_UPDATE, 0) >= 0;
}

static bool gather_before_it_is_up(struct weft_program *program)
{
    for (int32_t i = 0; i < program->n_instructions; i++) {
        struct weft_instruction *at = &program->instructions[i];
        if (at->op != WEFT_OP_ALL_GATHER || at->after == 0) continue;
        return leave_chain(program, at);
    }
    return false;
}

/* All blocks of the unit were sent up earlier in the program, so only the missing wait is wrong. */
static bool gather_before_the_last_is_up(struct weft_program *program)
{
    for (int32_t i = 0; i < program->n_instructions; i++) {
        struct weft_instruction *at = &program->instructions[i];
        if (at->op != WEFT_OP_ALL_GATHER || at->after == 0) continue;
        bool is_last = program->instructions[at->after].op == WEFT_OP_PARAMETERS_UP;
        int32_t up = find_op(program, WEFT_OP_PARAMETERS_UP, at->after + 1);
        for (; up >= 0; up = find_op(program, WEFT_OP_PARAMETERS_UP, up + 1))
            is_last = is_last && program->instructions[up].unit != at->unit;
        if (!is_last) continue;
        return leave_chain(program, at);
    }
    return false;
}

static bool send_up_before_the_update(struct weft_program *program)
{
    return leave_chain(program, &program->instructions[find_op(program, WEFT_OP_PARAMETERS_UP, 0)]);
}

static bool send_down_before_the_reduction(struct weft_program *program)
{
    return leave_chain(program, &program->instructions[find_op(program, WEFT_OP_GRADIENT_DOWN, 0)]);
}

static bool leave_a_block_out(struct weft_program *program)
{
    int32_t last = find_op(program, WEFT_OP_HOST_UPDATE, 0);
    for (int32_t i = last; i >= 0; i = find_op(program, WEFT_OP_HOST_UPDATE, i + 1))
        last = i;
    program->instructions[last].block++;
    return true;
}

static bool update_another_unit(struct weft_program *program)
{
    struct weft_instruction *at = &program->instructions[find_op(program, WEFT_OP_HOST_UPDATE, 0)];
    at->unit = (at->unit + 1) % program->n_units;
    return program->n_units > 1;
}

static bool say_that_it_is_updated_here(struct weft_program *program)
{
    const int32_t i = find_op(program, WEFT_OP_HOST_UPDATE, 0);
    program->ways[program->instructions[i].unit].keep = WEFT_KEEP_HOST;
    return true;
}

static bool send_up_over_the_network(struct weft_program *program)
{
    program->instructions[find_op(program, WEFT_OP_PARAMETERS_UP, 0)].lane = WEFT_LANE_FIRST;
    return true;
}

/* Compute does not wait for the lane of copies down before the norm. */
static bool forget_before_the_norm(struct weft_program *program)
{
    int32_t down = -1;
    for (int32_t i = 0; i < program->n_instructions; i++)
        if (program->instructions[i].op == WEFT_OP_GRADIENT_DOWN) down = i;
    for (int32_t i = down + 1; i < program->n_instructions && !program->period.rotated; i++)
        if (weft_op_stream(program->instructions[i].op) == WEFT_STREAM_COMPUTE)
            drop_wait(program, &program->instructions[i], down);
    return !program->period.rotated;
}

Test(host_update, what_is_planned_is_what_the_program_holds_and_takes)
{
    cr_assert_gt(check_programs(HOST_CASES, has_host_updates), HOST_CASES / 12);
}

Test(host_update, what_does_not_wait_is_refused)
{
    static const struct program_change changes[] = {
        {gather_before_it_is_up, "before the unit's update is over", true},
        {gather_before_the_last_is_up, "before the unit's update is over", true},
        {send_up_before_the_update, "does not come after its block's update", false},
        {send_down_before_the_reduction, "does not come after its block's last reduction", false},
        {leave_a_block_out, "blocks are not updated in order", false},
        {update_another_unit, "host", false},
        {say_that_it_is_updated_here, "is not updated on the host", false},
        {send_up_over_the_network, "a lane that does not do it", false},
        {forget_before_the_norm, "", false},
    };
    check_refusals(HOST_CASES, has_host_updates, changes, sizeof changes / sizeof *changes);
}
