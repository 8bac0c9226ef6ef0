/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that update units in the backward of their own gradients. */
#include <criterion/criterion.h>
#include <string.h>

#include "tests/effort.h"
#include "tests/program/random_model.h"

enum { BACKWARD_CASES = TEST_CASES(160, 40) };

static void open_backward(struct tiers_case *c, uint64_t seed)
{
    random_case_init_backward(&c->random, seed);
    cr_assert_gt(c->random.stages.problem->period.update_after, 0, "seed %d", (int)seed);
    c->plan = random_plan(&c->random, seed);
    c->program = random_program(&c->random, c->plan);
}

static enum weft_status verify_backward(const struct tiers_case *c, struct weft_error *err)
{
    return weft_program_verify(c->program, INT64_MAX, err);
}

/* Units that update before the drain. Their reductions end before their update, and their reduced
 * gradients end with it. */
static int check_early(const struct random_case *random)
{
    const struct weft_problem *problem = random->stages.problem;
    const struct weft_period *period = random->stages.period;
    int early = 0;
    for (int32_t u = 0; u < period->n_units; u++) {
        const int32_t last = (period->rule.n_micro - 1) * period->n_units + u;
        if (period->update[u] < 0 || period->update[u] > period->drain) continue;
        early++;
        cr_assert_gt(period->update[u], period->last_gradient[last] + 1, "unit %d", (int)u);
        for (int32_t k = 0; k < problem->decisions[u].n_strategies; k++) {
            const struct weft_problem_strategy *strategy = &problem->decisions[u].strategies[k];
            for (int32_t h = 0; h < strategy->n_holds; h++)
                if (strategy->holds[h].category == WEFT_CATEGORY_SHARDED_GRADIENTS &&
                    strategy->holds[h].tier == 0)
                    cr_assert_leq(strategy->holds[h].last, period->update[u], "unit %d", (int)u);
        }
    }
    return early;
}

Test(backward, plans_are_what_programs_hold_and_take)
{
    int early = 0, offloaded = 0, turns = 0;
    for (uint64_t seed = 1; seed <= BACKWARD_CASES; seed++) {
        struct tiers_case c;
        struct weft_error err = {0};
        open_backward(&c, seed);
        tiers_case_check(&c);
        cr_assert_eq(verify_backward(&c, &err), WEFT_OK, "seed %d: %s", (int)seed, err.text);
        early += check_early(&c.random);
        offloaded += c.plan->problem->period.offloaded;
        turns += c.plan->problem->period.layers > 0;
        tiers_case_finish(&c);
    }
    cr_assert(early > BACKWARD_CASES && offloaded > BACKWARD_CASES / 4 &&
                  turns > BACKWARD_CASES / 8,
              "%d early, %d offloaded, %d by turns", early, offloaded, turns);
}

/* The last reduction of a unit that is updated before the drain; -1: none. */
static int32_t find_reduction(const struct tiers_case *c)
{
    const struct weft_program *program = c->program;
    for (int32_t i = program->n_instructions - 1; i >= 0; i--) {
        const struct weft_instruction *at = &program->instructions[i];
        if ((at->op == WEFT_OP_REDUCE_SCATTER || at->op == WEFT_OP_ALL_REDUCE) && at->carried &&
            c->random.stages.period->update[at->unit] < c->random.stages.period->drain)
            return i;
    }
    return -1;
}

Test(backward, an_update_that_does_not_wait_for_its_reduction_is_refused)
{
    int spoilt = 0;
    for (uint64_t seed = 1; seed <= BACKWARD_CASES; seed++) {
        struct tiers_case c;
        struct weft_error err = {0};
        open_backward(&c, seed);
        const int32_t reduction = find_reduction(&c);
        /* The reduction belongs to another step, so nothing makes its update wait. */
        if (reduction >= 0) {
            c.program->instructions[reduction].carried = false;
            cr_assert_neq(verify_backward(&c, &err), WEFT_OK, "seed %d", (int)seed);
            spoilt++;
        }
        tiers_case_finish(&c);
    }
    cr_assert_gt(spoilt, BACKWARD_CASES / 3, "%d", spoilt);
}

/* Problems with an update in another place of backward, or before its reduction. */
Test(backward, an_update_before_its_reduction_is_refused)
{
    int moved = 0;
    for (uint64_t seed = 1; seed <= BACKWARD_CASES; seed++) {
        struct tiers_case c;
        struct weft_error err = {0};
        open_backward(&c, seed);
        struct weft_problem *problem = c.random.stages.problem;
        for (int32_t i = 0; i < problem->n_items; i++) {
            struct weft_item *item = &problem->items[i].item;
            const int32_t update = problem->decisions[item->decision].update_slot;
            if ((item->kind != WEFT_REDUCE_SCATTER && item->kind != WEFT_ALL_REDUCE) ||
                update > c.random.stages.period->drain || item->last >= update)
                continue;
            item->last = update;
            cr_assert_eq(weft_problem_check(problem, "p", &err), WEFT_E_DATA, "seed %d", (int)seed);
            moved++;
            break;
        }
        tiers_case_finish(&c);
    }
    cr_assert_gt(moved, BACKWARD_CASES / 2, "%d", moved);
}
