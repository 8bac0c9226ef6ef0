/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of plans with central. verify accepts them. It refuses programs in which the owner's sum
 * and its parameters do not stay in their buffers, or do not wait for each other. */
#include <criterion/criterion.h>

#include "tests/effort.h"
#include "tests/program/changes.h"

enum { CENTRAL_CASES = TEST_CASES(300, 120) };

static int32_t find_central(const struct weft_program *program, enum weft_op op)
{
    int32_t i = find_op(program, op, 0);
    while (i >= 0 && !weft_policy_is_central(program->ways[program->instructions[i].unit].policy))
        i = find_op(program, op, i + 1);
    return i;
}

static bool program_is_central(const struct weft_program *program)
{
    return find_central(program, WEFT_OP_ALL_GATHER) >= 0;
}

static struct weft_instruction *broadcast_of(struct weft_program *program)
{
    return &program->instructions[find_central(program, WEFT_OP_ALL_GATHER)];
}

static bool own_nothing(struct weft_program *program)
{
    program->ways[broadcast_of(program)->unit].policy = WEFT_POLICY_DP;
    return true;
}

static bool own_slices(struct weft_program *program)
{
    program->ways[broadcast_of(program)->unit].policy = WEFT_POLICY_ZERO1;
    return true;
}

static bool sum_on_all_ranks(struct weft_program *program)
{
    program->instructions[find_central(program, WEFT_OP_REDUCE_SCATTER)].op = WEFT_OP_ALL_REDUCE;
    return true;
}

static bool send_before_the_update(struct weft_program *program)
{
    broadcast_of(program)->n_dependencies = 0;
    return true;
}

static bool send_another_block(struct weft_program *program)
{
    broadcast_of(program)->block++;
    return true;
}

static bool leave_the_owner_s_sum_out(struct weft_program *program)
{
    program->instructions[find_central(program, WEFT_OP_REDUCE_SCATTER)].op = WEFT_OP_MARK;
    return true;
}

Test(central, what_is_planned_is_what_the_program_holds_and_takes)
{
    cr_assert_gt(check_programs(CENTRAL_CASES, program_is_central), CENTRAL_CASES / 30);
}

Test(central, what_does_not_wait_is_refused)
{
    static const struct program_change changes[] = {
        {own_nothing, "a unit under dp is never gathered", false},
        {own_slices, "it does not read its unit's gradient", false},
        {sum_on_all_ranks, "its unit's policy reduces in another way", false},
        {send_before_the_update, "it does not wait for the mark of the slot", false},
        {send_another_block, "blocks do not move in order", false},
        {leave_the_owner_s_sum_out, "", false},
    };
    check_refusals(CENTRAL_CASES, program_is_central, changes, sizeof changes / sizeof *changes);
}
