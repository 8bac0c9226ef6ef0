/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of plans with shards on the host. verify accepts them. It refuses programs in which
 * copies, updates and gathers do not wait for each other, or that copy only part of a shard. */
#include <criterion/criterion.h>

#include "tests/effort.h"
#include "tests/program/changes.h"

enum { FETCHED_CASES = TEST_CASES(300, 120) };

static bool program_fetches(const struct weft_program *program)
{
    return find_op(program, WEFT_OP_PARAMETERS_FETCH, 0) >= 0;
}

/* Removes the chain's wait of an instruction that follows one of that op. */
static bool forget_what_comes_before(struct weft_program *program, enum weft_op op,
                                     enum weft_op before)
{
    for (int32_t i = 0; i < program->n_instructions; i++) {
        struct weft_instruction *at = &program->instructions[i];
        if (at->op != op || at->after == 0 || program->instructions[at->after].op != before)
            continue;
        return leave_chain(program, at);
    }
    return false;
}

static bool gather_before_its_copy(struct weft_program *program)
{
    return forget_what_comes_before(program, WEFT_OP_ALL_GATHER, WEFT_OP_PARAMETERS_FETCH);
}

static bool fetch_before_it_is_down(struct weft_program *program)
{
    return forget_what_comes_before(program, WEFT_OP_PARAMETERS_FETCH, WEFT_OP_PARAMETERS_DOWN);
}

static bool fetch_another_block(struct weft_program *program)
{
    const int32_t i = find_op(program, WEFT_OP_PARAMETERS_FETCH, 0);
    program->instructions[i].block++;
    return true;
}

static bool fetch_for_another_gather(struct weft_program *program)
{
    const struct weft_instruction *at =
        &program->instructions[find_op(program, WEFT_OP_PARAMETERS_FETCH, 0)];
    program->operands[at->first_operand].buffer--;
    return true;
}

static bool say_that_shard_stays(struct weft_program *program)
{
    const int32_t i = find_op(program, WEFT_OP_PARAMETERS_DOWN, 0);
    program->ways[program->instructions[i].unit].parameters = WEFT_LOCATION_DEVICE;
    return true;
}

static bool send_down_over_the_network(struct weft_program *program)
{
    const int32_t i = find_op(program, WEFT_OP_PARAMETERS_DOWN, 0);
    program->instructions[i].lane = WEFT_LANE_FIRST;
    return true;
}

static bool send_another_unit_down(struct weft_program *program)
{
    struct weft_instruction *at =
        &program->instructions[find_op(program, WEFT_OP_PARAMETERS_DOWN, 0)];
    at->unit = (at->unit + 1) % program->n_units;
    return program->n_units > 1;
}

Test(fetched, what_is_planned_is_what_the_program_holds_and_takes)
{
    cr_assert_gt(check_programs(FETCHED_CASES, program_fetches), FETCHED_CASES / 150);
}

Test(fetched, what_does_not_wait_is_refused)
{
    static const struct program_change changes[] = {
        {gather_before_its_copy, "does not gather the slice that came up for it", false},
        {fetch_before_it_is_down, "before the updated shard is on the host", true},
        {fetch_another_block, "", false},
        {fetch_for_another_gather, "", false},
        {say_that_shard_stays, "is not on the host", false},
        {send_down_over_the_network, "a lane that does not do it", false},
        {send_another_unit_down, "shard", false},
    };
    check_refusals(FETCHED_CASES, program_fetches, changes, sizeof changes / sizeof *changes);
}
