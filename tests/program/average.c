/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of nodes that step on their own. Plan and program take the same time in each step, and
 * the plan's step is the mean. verify accepts them. It refuses programs that average a unit before
 * its update, after its gather, in several steps, in part or twice. */
#include <criterion/criterion.h>

#include "program/jitter.h"
#include "tests/effort.h"
#include "tests/program/changes.h"
#include "tests/program/random_model.h"

enum { AVERAGED_CASES = TEST_CASES(60, 20) };

static bool program_averages(const struct weft_program *program)
{
    return find_op(program, WEFT_OP_AVERAGE, 0) >= 0;
}

static bool program_gathers_averages(const struct weft_program *program)
{
    return find_op(program, WEFT_OP_AVERAGE_GATHER, 0) >= 0;
}

/* An average that a gather of its unit follows. */
static bool program_gathers_averaged(const struct weft_program *program)
{
    for (int32_t i = 0; i < program->n_instructions; i++) {
        const struct weft_instruction *at = &program->instructions[i];
        if (at->op == WEFT_OP_ALL_GATHER && at->after > 0) return program_averages(program);
    }
    return false;
}

static struct weft_instruction *average_of(struct weft_program *program)
{
    return &program->instructions[find_op(program, WEFT_OP_AVERAGE, 0)];
}

static struct weft_instruction *last_average(struct weft_program *program)
{
    int32_t at = find_op(program, WEFT_OP_AVERAGE, 0);
    for (int32_t next = at; next >= 0; next = find_op(program, WEFT_OP_AVERAGE, next + 1))
        at = next;
    return &program->instructions[at];
}

static void drop_dependencies(struct weft_program *program, struct weft_instruction *at)
{
    for (int32_t d = 0; d < at->n_dependencies; d++)
        program->dependencies[at->first_dependency + d] = 0;
    at->after = 0;
    at->slot = 0;
}

static bool average_before_the_update(struct weft_program *program)
{
    drop_dependencies(program, average_of(program));
    return true;
}

static bool average_another_block(struct weft_program *program)
{
    average_of(program)->block++;
    return true;
}

static bool average_never(struct weft_program *program)
{
    last_average(program)->op = WEFT_OP_MARK;
    return true;
}

static bool average_too_often(struct weft_program *program)
{
    average_of(program)->every++;
    return true;
}

static bool average_in_no_step(struct weft_program *program)
{
    average_of(program)->phase = average_of(program)->every;
    return true;
}

/* The second block of a unit, in another step than the first. */
static bool average_in_two_steps(struct weft_program *program)
{
    for (int32_t i = 0; i < program->n_instructions; i++) {
        struct weft_instruction *at = &program->instructions[i];
        if (at->op != WEFT_OP_AVERAGE || at->block != 1 || at->every < 2) continue;
        at->phase = (at->phase + 1) % at->every;
        return true;
    }
    return false;
}

static bool skip_steps_of_compute(struct weft_program *program)
{
    program->instructions[find_op(program, WEFT_OP_FORWARD, 0)].every = 2;
    return true;
}

static bool step_together(struct weft_program *program)
{
    program->period.every = 0;
    return true;
}

static bool average_other_parameters(struct weft_program *program)
{
    const struct weft_instruction *at = average_of(program);
    for (int32_t i = 0; i < at->n_operands; i++)
        program->operands[at->first_operand + i].writes = false;
    return true;
}

Test(average, plans_are_what_programs_hold_and_take)
{
    cr_assert_gt(check_programs_of(averaged_case_init, AVERAGED_CASES, program_averages),
                 AVERAGED_CASES / 2);
}

/* Nodes of equal speed take the plan's steps, whichever average works in them. */
Test(average, ranks_of_equal_speed_take_the_plans_mean)
{
    int32_t n_checked = 0;
    for (uint64_t seed = 1; seed <= AVERAGED_CASES; seed++) {
        const struct weft_jitter_factors none = {0, seed};
        struct weft_jitter_steps steps;
        struct weft_error err = {0};
        struct tiers_case c;
        averaged_case_init(&c, seed);
        const int64_t every = c.plan->problem->period.every, ns = c.plan->prediction.step_ns;
        if (!weft_problem_contends(c.plan->problem)) {
            n_checked++;
            cr_assert_eq(
                weft_simulate_jitter(c.plan, weft_jitter_lognormal(&none), 3 * every, &steps, &err),
                WEFT_OK, "%s", err.text);
            cr_assert(steps.mean_ns == ns || steps.mean_ns + 1 == ns, "seed %d: %lld, not %lld",
                      (int)seed, (long long)steps.mean_ns, (long long)ns);
        }
        tiers_case_finish(&c);
    }
    cr_assert_gt(n_checked, 0);
}

Test(average, what_is_not_one_average_in_its_steps_is_refused)
{
    static const struct program_change changes[] = {
        {average_before_the_update, "may start before the unit's update is over", true},
        {average_another_block, "", false},
        {average_never, "", false},
        {average_too_often, "does not work once in the steps of an average", false},
        {average_in_no_step, "the steps in which it works are out of range", false},
        {average_in_two_steps, "its unit is averaged in several steps", false},
        {skip_steps_of_compute, "the steps in which it works are out of range", false},
        {step_together, "its unit is not averaged over nodes", false},
        {average_other_parameters, "does not average its block of its unit", false},
    };
    check_refusals_of(averaged_case_init, AVERAGED_CASES, program_averages, changes,
                      sizeof changes / sizeof *changes);
}

/* The first gather of an average, or of averaged parameters, follows nothing. */
static bool gather_at_once(struct weft_program *program, enum weft_op op)
{
    for (int32_t i = 0; i < program->n_instructions; i++) {
        struct weft_instruction *at = &program->instructions[i];
        if (at->op != op || at->after == 0) continue;
        return leave_chain(program, at);
    }
    return false;
}

static bool gather_old_parameters(struct weft_program *program)
{
    return gather_at_once(program, WEFT_OP_ALL_GATHER);
}

static bool gather_before_the_average(struct weft_program *program)
{
    return gather_at_once(program, WEFT_OP_AVERAGE_GATHER);
}

static bool gather_averages_never(struct weft_program *program)
{
    program->instructions[find_op(program, WEFT_OP_AVERAGE_GATHER, 0)].op = WEFT_OP_MARK;
    return true;
}

static bool share_the_state(struct weft_program *program)
{
    const int32_t at = find_op(program, WEFT_OP_AVERAGE_GATHER, 0);
    program->ways[program->instructions[at].unit].policy = WEFT_POLICY_ZERO1;
    return true;
}

Test(average, parameters_that_are_not_averaged_are_refused)
{
    static const struct program_change changes[] = {
        {gather_old_parameters, "its block may not be averaged over nodes yet", true},
    };
    check_refusals_of(averaged_case_init, AVERAGED_CASES, program_gathers_averaged, changes,
                      sizeof changes / sizeof *changes);
}

Test(average, averages_that_a_node_does_not_share_are_refused)
{
    static const struct program_change changes[] = {
        {gather_before_the_average, "does not follow its block's average", false},
        {gather_averages_never, "", false},
        {share_the_state, "", false},
    };
    check_refusals_of(averaged_case_init, AVERAGED_CASES, program_gathers_averages, changes,
                      sizeof changes / sizeof *changes);
}
