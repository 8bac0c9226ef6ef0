/* SPDX-License-Identifier: Apache-2.0 */
/* Programs whose updates apply the gradient of the step before. */
#include <criterion/criterion.h>
#include <string.h>

#include "program/program.h"
#include "tests/program/random_model.h"

enum { DELAYED_CASES = 120 };

static void open_delayed(struct tiers_case *c, uint64_t seed)
{
    random_case_init_delayed(&c->random, seed);
    cr_assert(c->random.stages.problem->period.delayed);
    c->plan = random_plan(&c->random, seed);
    c->program = random_program(&c->random, c->plan);
}

static enum weft_status verify_delayed(const struct tiers_case *c, struct weft_error *err)
{
    return weft_program_verify(c->program, c->program->arena_bytes + c->program->base_bytes, err);
}

Test(delay, plans_are_what_programs_hold_and_take)
{
    int beyond = 0; /* reductions that may run into the next forward */
    for (uint64_t seed = 0; seed < DELAYED_CASES; seed++) {
        struct tiers_case c;
        struct weft_error err = {0};
        open_delayed(&c, seed);
        tiers_case_check(&c);
        cr_assert_eq(verify_delayed(&c, &err), WEFT_OK, "seed %d: %s", (int)seed, err.text);
        for (int32_t i = 0; i < c.plan->n_placements; i++) {
            const struct weft_item *item = &c.plan->problem->items[c.plan->placements[i].item].item;
            beyond +=
                !item->acquires && c.plan->placements[i].deadline > c.random.stages.period->fill;
        }
        tiers_case_finish(&c);
    }
    cr_assert_gt(beyond, DELAYED_CASES, "%d reductions run into a forward", beyond);
}

/* The last dependency of an instruction is on a MARK; it gets another one. */
static void depend_on(struct weft_program *program, const struct weft_instruction *at, int32_t mark)
{
    program->dependencies[at->first_dependency + at->n_dependencies - 1] = mark;
}

static int32_t mark_of_slot(const struct weft_program *program, int32_t slot)
{
    int32_t i = 0;
    while (program->instructions[i].op != WEFT_OP_MARK || program->instructions[i].slot != slot)
        i++;
    return i;
}

Test(delay, a_reduction_before_its_units_update_is_refused)
{
    int spoilt = 0;
    for (uint64_t seed = 0; seed < DELAYED_CASES; seed++) {
        struct tiers_case c;
        open_delayed(&c, seed);
        int32_t first = 0;
        while (first < c.program->n_instructions &&
               c.program->instructions[first].op != WEFT_OP_REDUCE_SCATTER)
            first++;
        struct weft_instruction *at = &c.program->instructions[first];
        if (first < c.program->n_instructions && at->n_dependencies == 1) {
            const int32_t update = c.plan->problem->decisions[at->unit].update_slot;
            struct weft_error err = {0};
            at->slot = update;
            depend_on(c.program, at, mark_of_slot(c.program, update));
            /* It is accepted if a gather before it on the lane comes after the update. */
            if (verify_delayed(&c, &err) != WEFT_OK)
                spoilt += strstr(err.text, "may still read the gradient before it") != NULL;
        }
        tiers_case_finish(&c);
    }
    cr_assert_gt(spoilt, DELAYED_CASES / 8, "%d", spoilt);
}
