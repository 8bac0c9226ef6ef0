/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "program/predict.h"
#include "program/trace.h"
#include "scheduler/place/repair.h"
#include "tests/program/random_model.h"
#include "tests/scheduler/chain.h"
#include "tests/scheduler/limit.h"
#include "tests/scheduler/tiny.h"

enum { MOST_TRIES = 100 };

/* Repairs what a rule makes of the strategies, holds it to plan/, and returns its step time. */
static int64_t repair(const struct weft_digest *table, const int32_t *strategies,
                      int64_t limit_bytes, int rule, int64_t *plain_ns)
{
    struct weft_list *list = NULL;
    struct weft_repair *repair = NULL;
    struct weft_plan *plan = NULL;
    struct weft_error err = {0};
    cr_assert_eq(weft_list_create(with_limit(table, limit_bytes), &list, NULL), WEFT_OK);
    cr_assert_eq(weft_repair_create(table, &repair, NULL), WEFT_OK);
    struct weft_move *moves = calloc((size_t)table->n_blocks + 1, sizeof *moves);
    int32_t n_moves = 0;
    *plain_ns = weft_list_place(list, strategies, weft_list_rules[rule], moves, &n_moves);
    int64_t ns = weft_repair_place(repair, list, strategies, weft_list_rules[rule], MOST_TRIES,
                                   moves, &n_moves);
    cr_assert_eq(*plain_ns >= 0, ns >= 0);
    cr_assert_leq(ns, *plain_ns);
    if (ns >= 0) {
        cr_assert_eq(
            weft_plan_create(table->problem, "list", strategies, moves, n_moves, &plan, &err),
            WEFT_OK, "%s", err.text);
        cr_assert_eq(weft_plan_predict(plan, &err), WEFT_OK);
        cr_assert_eq(plan->prediction.step_ns, ns, "event-exact");
        cr_assert_leq(plan->prediction.peak_bytes, limit_bytes);
        weft_plan_destroy(plan);
    }
    cr_assert_eq(weft_repair_place(repair, list, strategies, weft_list_rules[rule], MOST_TRIES,
                                   moves, &n_moves),
                 ns, "nothing is left of the run before");
    free(moves);
    weft_repair_destroy(repair);
    weft_list_destroy(list);
    return ns;
}

Test(repair, is_event_exact_within_the_limit_and_never_slower)
{
    int n_faster = 0;
    for (uint64_t seed = 1; seed <= 30; seed++) {
        struct random_case random;
        random_case_init(&random, seed);
        const struct weft_problem *problem = random.stages.problem;
        int32_t *strategies = calloc((size_t)problem->n_decisions, sizeof *strategies);
        struct weft_digest *table = NULL;
        cr_assert_eq(weft_digest_create(problem, &table, NULL), WEFT_OK);
        for (int step = 0; step <= 6; step++) {
            int64_t plain_ns,
                limit = table->least_bytes + (table->most_bytes - table->least_bytes) * step / 6;
            tiny_draw_strategies(problem, (unsigned)(seed * 31 + (uint64_t)step), strategies);
            n_faster +=
                repair(table, strategies, limit, step % WEFT_LIST_RULES, &plain_ns) < plain_ns;
        }
        weft_digest_destroy(table);
        free(strategies);
        random_case_finish(&random);
    }
    cr_assert_gt(n_faster, 0);
}

enum { LAYERS = 5, BLOCK = 1000 };

/* Places the chain with memory that is no object, then with room for one block beside what a slot
 * must hold, and for none in the one before if `narrow`: *plain_ns as the rule does, and the time
 * of repairs. The first time is returned. */
static int64_t repair_chain(const struct chain *chain, const int32_t *strategies, int32_t slot,
                            bool narrow, int64_t *plain_ns, int64_t *repaired_ns)
{
    struct weft_problem *problem = chain_problem(chain);
    struct weft_digest *table = NULL;
    cr_assert_eq(weft_digest_create(problem, &table, NULL), WEFT_OK);
    int64_t *rows = calloc((size_t)problem->n_slots, sizeof *rows);
    int64_t limit_bytes = table->most_bytes;
    cr_assert_gt(weft_digest_lean_rows(table, strategies, rows, NULL), 0);
    int64_t free_ns = repair(table, strategies, limit_bytes, 0, plain_ns);
    cr_assert_eq(*plain_ns, free_ns, "nothing to put off where memory is no object");
    weft_digest_destroy(table);

    struct weft_hold common[8] = {
        {.first = slot, .last = slot, .bytes = limit_bytes - rows[slot] - BLOCK},
        {.first = slot - 1, .last = slot - 1, .bytes = narrow ? limit_bytes - rows[slot - 1] : 0}};
    cr_assert_leq(problem->n_common, 6);
    memcpy(common + 2, problem->common, (size_t)problem->n_common * sizeof *common);
    problem->common = common;
    problem->n_common += 2;
    cr_assert_eq(weft_digest_create(problem, &table, NULL), WEFT_OK);
    *repaired_ns = repair(table, strategies, limit_bytes, 0, plain_ns);
    free(rows);
    weft_digest_destroy(table);
    weft_problem_destroy(problem);
    return free_ns;
}

/* The strategies of one_block_each. The last layer has sdp alone. */
enum { KEPT, RELEASED };

static struct chain one_block_each(void)
{
    struct chain chain = {.n_layers = LAYERS,
                          .policies = 1 << WEFT_POLICY_FSDP | 1 << WEFT_POLICY_SDP};
    for (int i = 0; i < LAYERS; i++) {
        chain.n_blocks[i] = 1;
        chain.block_bytes[i] = BLOCK;
        chain.gather_ns[i] = 100;
    }
    return chain;
}

/* Five layers, U0..U4 fill F0..F4 B4..B0 drain norm, of which B2 has room for one block: the
 * reduction of layer 4, which takes longer than B3, or the copy of layer 0, which may be gathered
 * long before B0. The rule gathers as soon as there is room, and then B2 waits for the reduction.
 */
Test(repair, puts_off_gathers_that_a_reduction_has_no_room_beside)
{
    enum { B2 = 13 };
    const int32_t strategies[LAYERS] = {RELEASED, KEPT, KEPT, KEPT, KEPT};
    struct chain chain = one_block_each();
    int64_t plain_ns, ns;
    chain.gather_ns[4] = 300;
    int64_t free_ns = repair_chain(&chain, strategies, B2, false, &plain_ns, &ns);
    cr_assert_eq(plain_ns, free_ns + 100, "B2 waits");
    cr_assert_eq(ns, free_ns);
}

/* B3 has room for one block: the copy of layer 1, for which there is no time in B2 alone, or that
 * of layer 0, which may be gathered before it and has B2 and B1. */
Test(repair, puts_off_gathers_that_one_due_sooner_has_no_room_beside)
{
    enum { B3 = 12 };
    const int32_t strategies[LAYERS] = {RELEASED, RELEASED, KEPT, KEPT, KEPT};
    struct chain chain = one_block_each();
    int64_t plain_ns, ns;
    chain.forward_ns[1] = 1000; /* in which layer 0 is gathered again */
    chain.forward_ns[2] = 20;
    int64_t free_ns = repair_chain(&chain, strategies, B3, false, &plain_ns, &ns);
    cr_assert_gt(plain_ns, free_ns, "B1 waits");
    cr_assert_eq(ns, free_ns);
}

/* B2 has time for the copy of layer 0, which there was no room for before it, and room for one
 * block: what the reduction of layer 4 holds that is 100 ns late. If B2 waits for it, B0 need not
 * wait for the copy. */
Test(repair, waits_for_a_reduction_that_holds_what_a_gather_needs)
{
    enum { B2 = 13 };
    const int32_t strategies[LAYERS] = {RELEASED, KEPT, KEPT, KEPT, KEPT};
    struct chain chain = one_block_each();
    int64_t plain_ns, ns;
    chain.forward_ns[2] = 500;
    chain.gather_ns[0] = 500;
    chain.gather_ns[4] = 300;
    int64_t free_ns = repair_chain(&chain, strategies, B2, true, &plain_ns, &ns);
    cr_assert_eq(plain_ns, free_ns + 300, "B0 waits");
    cr_assert_eq(ns, free_ns + 100, "B2 waits");
}
