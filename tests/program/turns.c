/* SPDX-License-Identifier: Apache-2.0 */
/* Programs whose micro-steps take turns by layers: bytes and times are the plan's, each unit is
 * gathered once a pass and reduced once a step, and other orders are refused. */
#include <criterion/criterion.h>
#include <string.h>

#include "tests/effort.h"
#include "tests/program/random_model.h"

enum { TURNS_CASES = TEST_CASES(120, 40) };

static void open_turns(struct tiers_case *c, uint64_t seed)
{
    random_case_init_turns(&c->random, seed);
    c->plan = random_plan(&c->random, seed);
    c->program = random_program(&c->random, c->plan);
}

static enum weft_status verify_turns(const struct tiers_case *c, struct weft_error *err)
{
    return weft_program_verify(c->program, INT64_MAX, err);
}

static bool is_reduction(const struct weft_item *item)
{
    return item->kind == WEFT_REDUCE_SCATTER || item->kind == WEFT_ALL_REDUCE;
}

/* A unit of one group has at most two gathers a step, and every unit one reduction. */
static void check_items(const struct random_case *random)
{
    const struct weft_problem *problem = random->stages.problem;
    const int32_t each = problem->period.layers;
    for (int32_t i = 0; i < problem->n_items; i++) {
        const struct weft_item *item = &problem->items[i].item;
        if (problem->decisions[item->decision].is_of_layer) continue;
        const struct weft_unit *unit = &random->stages.shards->units[item->decision];
        const bool one = unit->layers[0] / each == unit->layers[unit->n_layers - 1] / each;
        if (item->kind == WEFT_ALL_GATHER && one)
            cr_assert_lt(item->gather, 2, "seed %d, unit %s", (int)random->seed, unit->name);
        if (is_reduction(item))
            cr_assert_eq(item->gather, 0, "seed %d, unit %s", (int)random->seed, unit->name);
    }
}

Test(turns, plans_are_what_programs_hold_and_take)
{
    int n = 0, rotated = 0, offloaded = 0;
    for (uint64_t seed = 1; seed <= TURNS_CASES; seed++) {
        struct tiers_case c;
        struct weft_error err = {0};
        open_turns(&c, seed);
        tiers_case_check(&c);
        cr_assert_eq(verify_turns(&c, &err), WEFT_OK, "seed %d: %s", (int)seed, err.text);
        if (c.plan->problem->period.layers > 0) check_items(&c.random);
        n += c.plan->problem->period.layers > 0;
        rotated += c.plan->problem->period.rotated;
        offloaded += c.program->host_bytes > 0;
        tiers_case_finish(&c);
    }
    cr_assert_gt(n, TURNS_CASES / 2);
    cr_assert(rotated > TURNS_CASES / 8 && offloaded > TURNS_CASES / 20, "%d and %d", rotated,
              offloaded);
}

/* Swaps two layers' instructions of a kind, with their operands if they have equally many. */
static void swap_layers(struct weft_program *program, int32_t a, int32_t b)
{
    struct weft_instruction *x = &program->instructions[a], *y = &program->instructions[b];
    const int32_t layer = x->layer, micro = x->micro;
    x->layer = y->layer;
    x->micro = y->micro;
    y->layer = layer;
    y->micro = micro;
    for (int32_t i = 0; i < x->n_operands && x->n_operands == y->n_operands; i++) {
        struct weft_operand *p = &program->operands[x->first_operand + i];
        struct weft_operand *q = &program->operands[y->first_operand + i];
        const struct weft_operand operand = *p;
        *p = *q;
        *q = operand;
    }
}

/* The next forward, or backward, after `i`; -1: none in the period. */
static int32_t next_of(const struct weft_program *program, int32_t i, enum weft_op op)
{
    const bool carried = program->instructions[i].carried;
    for (i++; i < program->n_instructions; i++)
        if (program->instructions[i].op == op)
            return program->instructions[i].carried == carried ? i : -1;
    return -1;
}

/* Micro-steps that change places, or one after the other, would give other sums. */
Test(turns, another_order_of_micro_steps_is_refused)
{
    int spoilt = 0;
    for (uint64_t seed = 1; seed <= TURNS_CASES; seed++) {
        struct tiers_case c;
        open_turns(&c, seed);
        const bool turns = c.program->period.layers > 0;
        int left = 6; /* swaps of a case */
        for (int32_t i = 0; i < c.program->n_instructions && turns && left > 0; i++) {
            const struct weft_instruction *at = &c.program->instructions[i];
            if (at->op != WEFT_OP_FORWARD && at->op != WEFT_OP_BACKWARD) continue;
            const int32_t next = next_of(c.program, i, at->op);
            struct weft_error err = {0};
            if (next < 0) continue;
            left--;
            swap_layers(c.program, i, next);
            cr_assert_eq(verify_turns(&c, &err), WEFT_E_DATA, "seed %d", (int)seed);
            swap_layers(c.program, i, next);
            spoilt += strstr(err.text, "all micro-steps in each group of layers") != NULL;
        }
        if (turns) {
            struct weft_error err = {0};
            c.program->period.layers = 0; /* said to run one micro-step after the other */
            cr_assert_eq(verify_turns(&c, &err), WEFT_E_DATA, "seed %d", (int)seed);
            spoilt += strstr(err.text, "micro-step after micro-step") != NULL;
        }
        tiers_case_finish(&c);
    }
    cr_assert_gt(spoilt, 3 * TURNS_CASES, "%d", spoilt);
}
