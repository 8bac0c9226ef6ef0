/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of plans with hsdp and nodes. verify accepts them. It refuses programs in which sums
 * over nodes do not follow the sums within them, or take others' partial sums, and programs that
 * gather parameters before they have come from other nodes. */
#include <criterion/criterion.h>

#include "tests/effort.h"
#include "tests/program/changes.h"
#include "tests/program/random_model.h"

enum { HYBRID_CASES = TEST_CASES(300, 120), CACHED_CASES = TEST_CASES(60, 30) };

static bool program_is_hybrid(const struct weft_program *program)
{
    return find_op(program, WEFT_OP_ACROSS_REDUCE, 0) >= 0;
}

static struct weft_instruction *sum_over_nodes(struct weft_program *program)
{
    return &program->instructions[find_op(program, WEFT_OP_ACROSS_REDUCE, 0)];
}

static bool sum_before_the_node(struct weft_program *program)
{
    return leave_chain(program, sum_over_nodes(program));
}

static bool sum_another_block(struct weft_program *program)
{
    sum_over_nodes(program)->block++;
    return true;
}

static bool say_that_nodes_share(struct weft_program *program)
{
    program->ways[sum_over_nodes(program)->unit].policy = WEFT_POLICY_FSDP;
    return true;
}

static bool round_in_the_node(struct weft_program *program)
{
    const struct weft_instruction *at = &program->instructions[sum_over_nodes(program)->after];
    const struct weft_instruction *across = sum_over_nodes(program);
    for (int32_t i = 0; i < at->n_operands; i++) {
        struct weft_operand *operand = &program->operands[at->first_operand + i];
        if (operand->writes)
            operand->buffer =
                program->operands[across->first_operand + across->n_operands - 1].buffer;
    }
    return true;
}

static bool leave_the_sum_out(struct weft_program *program)
{
    sum_over_nodes(program)->op = WEFT_OP_MARK;
    return true;
}

/* Collectives within a node are on lanes of the network. All that crosses nodes is on one lane,
 * with the rates of the network. */
Test(hybrid, what_crosses_nodes_shares_a_lane)
{
    int n_mixed = 0;
    for (uint64_t seed = 0; seed < HYBRID_CASES; seed++) {
        struct random_case random;
        random_case_init_nodes(&random, seed);
        const struct weft_problem *problem = random.stages.problem;
        bool of_node = false, of_all = false;
        for (int32_t i = 0; i < problem->n_items && problem->ranks_per_node > 0; i++) {
            const struct weft_item *item = &problem->items[i].item;
            const struct weft_problem_decision *of = &problem->decisions[item->decision];
            if (!weft_item_is_collective(item)) continue;
            const struct weft_lane *lane = &problem->lanes[problem->items[i].lane];
            const uint32_t sharing = weft_policies_sharing(WEFT_GROUP_NODE);
            const bool hybrid = (item->strategies & weft_decision_policies(of, sharing)) != 0;
            const bool in_node = hybrid && weft_item_kind_of(item)->role != WEFT_ROLE_ACROSS;
            cr_assert_eq(lane->kind, in_node ? WEFT_LANE_KIND_NETWORK : WEFT_LANE_KIND_ACROSS,
                         "seed %d, item %d", (int)seed, (int)i);
            cr_assert_eq(lane->rates.compute, problem->lanes[WEFT_LANE_FIRST].rates.compute);
            of_node |= in_node;
            of_all |= !hybrid;
        }
        n_mixed += of_node && of_all;
        random_case_finish(&random);
    }
    cr_assert_gt(n_mixed, HYBRID_CASES / 30);
}

Test(hybrid, what_is_planned_is_what_the_program_holds_and_takes)
{
    cr_assert_gt(check_programs(HYBRID_CASES, program_is_hybrid), HYBRID_CASES / 30);
}

Test(hybrid, what_does_not_wait_is_refused)
{
    static const struct program_change changes[] = {
        {sum_before_the_node, "does not follow its block's reduction in the node", false},
        {sum_another_block, "", false},
        {say_that_nodes_share, "", false},
        {round_in_the_node, "", false},
        {leave_the_sum_out, "", false},
    };
    check_refusals(HYBRID_CASES, program_is_hybrid, changes, sizeof changes / sizeof *changes);
}

static bool program_crosses(const struct weft_program *program)
{
    return find_op(program, WEFT_OP_ACROSS_GATHER, 0) >= 0;
}

static struct weft_instruction *crossing_of(struct weft_program *program)
{
    return &program->instructions[find_op(program, WEFT_OP_ACROSS_GATHER, 0)];
}

/* The first gather in the node follows nothing. */
static bool gather_before_the_nodes(struct weft_program *program)
{
    const int32_t crossing = find_op(program, WEFT_OP_ACROSS_GATHER, 0);
    for (int32_t i = crossing; i < program->n_instructions; i++) {
        struct weft_instruction *at = &program->instructions[i];
        if (at->op != WEFT_OP_ALL_GATHER || at->after != crossing) continue;
        return leave_chain(program, at);
    }
    return false;
}

/* The first instruction of the op with a unit that crosses nodes; -1: none. */
static int32_t find_crossing(const struct weft_program *program, enum weft_op op)
{
    int32_t at = find_op(program, op, 0);
    while (at >= 0 && !weft_policy_crosses(program->ways[program->instructions[at].unit].policy))
        at = find_op(program, op, at + 1);
    return at;
}

static bool caches_nodes(const struct weft_program *program)
{
    return find_crossing(program, WEFT_OP_PARAMETERS_DOWN) >= 0;
}

static bool updates_nodes_on_host(const struct weft_program *program)
{
    return find_crossing(program, WEFT_OP_HOST_UPDATE) >= 0;
}

/* The first copy down of parts of other nodes. */
static int32_t copy_down(const struct weft_program *program)
{
    return find_crossing(program, WEFT_OP_PARAMETERS_DOWN);
}

/* The gather across nodes after the first copy up of updated parts. */
static struct weft_instruction *crossing_of_update(struct weft_program *program)
{
    const int32_t unit = program->instructions[find_crossing(program, WEFT_OP_HOST_UPDATE)].unit;
    int32_t at = find_op(program, WEFT_OP_ACROSS_GATHER, 0);
    while (program->instructions[at].unit != unit)
        at = find_op(program, WEFT_OP_ACROSS_GATHER, at + 1);
    return &program->instructions[at];
}

static bool cross_before_the_copy_up(struct weft_program *program)
{
    return leave_chain(program, crossing_of_update(program));
}

static bool bring_no_parameters_up(struct weft_program *program)
{
    program->instructions[crossing_of_update(program)->after].op = WEFT_OP_MARK;
    return true;
}

static bool go_down_after_the_sum_in_the_node(struct weft_program *program)
{
    struct weft_instruction *at =
        &program->instructions[find_crossing(program, WEFT_OP_GRADIENT_DOWN)];
    at->after = program->instructions[at->after].after;
    return true;
}

static bool say_that_the_device_updates(struct weft_program *program)
{
    program->ways[crossing_of_update(program)->unit].keep = WEFT_KEEP_DEVICE;
    return true;
}

static bool go_down_before_the_nodes(struct weft_program *program)
{
    return leave_chain(program, &program->instructions[copy_down(program)]);
}

static bool cache_a_part_alone(struct weft_program *program)
{
    program->instructions[program->instructions[copy_down(program)].after].op = WEFT_OP_MARK;
    return true;
}

static bool cross_in_a_gathers_copy(struct weft_program *program)
{
    const struct weft_instruction *at =
        &program->instructions[program->instructions[copy_down(program)].after];
    for (int32_t i = 0; i < at->n_operands; i++)
        program->operands[at->first_operand + i].buffer++;
    return true;
}

static bool say_that_the_cache_is_on_the_device(struct weft_program *program)
{
    program->ways[program->instructions[copy_down(program)].unit].parameters = WEFT_LOCATION_DEVICE;
    return true;
}

static bool cross_before_the_update(struct weft_program *program)
{
    struct weft_instruction *at = crossing_of(program);
    for (int32_t d = 0; d < at->n_dependencies; d++)
        program->dependencies[at->first_dependency + d] = 0;
    return true;
}

static bool cross_another_block(struct weft_program *program)
{
    crossing_of(program)->block++;
    return true;
}

static bool cross_never(struct weft_program *program)
{
    crossing_of(program)->op = WEFT_OP_MARK;
    return true;
}

static bool keep_the_state_in_the_node(struct weft_program *program)
{
    program->ways[crossing_of(program)->unit].policy = WEFT_POLICY_HSDP;
    return true;
}

static bool sum_for_the_whole_node(struct weft_program *program)
{
    program->instructions[find_op(program, WEFT_OP_ACROSS_SCATTER, 0)].op = WEFT_OP_ACROSS_REDUCE;
    return true;
}

Test(hybrid, parameters_of_a_node_are_planned_as_they_are_held)
{
    cr_assert_gt(check_programs(HYBRID_CASES, program_crosses), 0);
}

Test(hybrid, cached_parameters_are_planned_as_they_are_held)
{
    cr_assert_gt(check_programs_of(cached_case_init, CACHED_CASES, caches_nodes), CACHED_CASES / 3);
}

Test(hybrid, caches_of_old_parts_are_refused)
{
    static const struct program_change changes[] = {
        {go_down_before_the_nodes, "may not have come from the other nodes", true},
        {cache_a_part_alone, "", false},
        {cross_in_a_gathers_copy, "", false},
        {say_that_the_cache_is_on_the_device, "", false},
    };
    check_refusals_of(cached_case_init, CACHED_CASES, caches_nodes, changes,
                      sizeof changes / sizeof *changes);
}

Test(hybrid, updates_of_nodes_on_the_host_are_planned_as_they_are_held)
{
    cr_assert_gt(check_programs_of(cached_case_init, CACHED_CASES, updates_nodes_on_host),
                 CACHED_CASES / 10);
}

Test(hybrid, updates_of_nodes_on_the_host_in_another_order_are_refused)
{
    static const struct program_change changes[] = {
        {cross_before_the_copy_up, "it may start before the unit's update is over", true},
        {bring_no_parameters_up, "", false},
        {go_down_after_the_sum_in_the_node, "", false},
        {say_that_the_device_updates, "", false},
    };
    check_refusals_of(cached_case_init, CACHED_CASES, updates_nodes_on_host, changes,
                      sizeof changes / sizeof *changes);
}

Test(hybrid, parameters_that_have_not_come_are_refused)
{
    static const struct program_change changes[] = {
        {gather_before_the_nodes, "may not have come from the other nodes", true},
        {cross_before_the_update, "", false},
        {cross_another_block, "", false},
        {cross_never, "", false},
        {keep_the_state_in_the_node, "its unit's parameters are not of a node", false},
        {sum_for_the_whole_node, "its unit's state is shared by other ranks", false},
    };
    check_refusals(HYBRID_CASES, program_crosses, changes, sizeof changes / sizeof *changes);
}
