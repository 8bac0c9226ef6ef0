/* SPDX-License-Identifier: Apache-2.0 */
/* Random problems on three lanes with rates of their own, with items that come after others and
 * items that cannot block: what is planned, lowered and simulated is the same. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "program/lifetime.h"
#include "program/predict.h"
#include "program/trace.h"
#include "program/verify.h"
#include "scheduler/place/list.h"
#include "tests/effort.h"
#include "tests/program/random_model.h"

struct chained {
    struct random_case random;
    struct weft_problem *problem;
    uint64_t draws;
    int32_t n_after, n_kept; /* items that come after others; that cannot block */
};

static int32_t draw_chained(struct chained *of, int32_t below)
{
    return (int32_t)weft_rng_below(of->random.seed, 77, of->draws++, (uint64_t)below);
}

/* Reductions of a unit, which add to one buffer, are on one lane. */
static void draw_lanes(struct chained *of)
{
    static const char *const names[] = {"compute", "network", "across", "beyond"};
    struct weft_problem *problem = of->problem;
    problem->n_lanes = 4;
    problem->lanes = weft_pool_array(&problem->pool, 4, sizeof *problem->lanes);
    cr_assert_not_null(problem->lanes);
    for (int32_t lane = 0; lane < 4; lane++) {
        const int32_t half = WEFT_RATE_ONE / 2;
        problem->lanes[lane].name = names[lane];
        problem->lanes[lane].rates.compute = half + draw_chained(of, half + 1);
        problem->lanes[lane].rates.own = half + draw_chained(of, half + 1);
    }
    problem->lanes[0].kind = WEFT_LANE_KIND_COMPUTE;
    problem->lanes[1].kind = WEFT_LANE_KIND_NETWORK;
    problem->lanes[2].kind = WEFT_LANE_KIND_ACROSS;
    problem->lanes[3].kind = WEFT_LANE_KIND_ACROSS;
    for (int32_t i = 0; i < problem->n_items; i++) {
        struct weft_problem_item *item = &problem->items[i];
        int32_t lane = WEFT_LANE_FIRST + draw_chained(of, 3);
        item->lane = item->item.acquires ? lane : WEFT_LANE_FIRST + item->item.decision % 3;
    }
}

/* What the check refuses is taken back. */
static void draw_chains(struct chained *of)
{
    struct weft_problem *problem = of->problem;
    for (int32_t i = 0; i < problem->n_items; i++) {
        struct weft_problem_item *item = &problem->items[i];
        bool may_block = item->item.may_block;
        if (draw_chained(of, 3) == 0) item->item.may_block = false;
        if (weft_problem_check(problem, "chained", NULL) != WEFT_OK)
            item->item.may_block = may_block;
        of->n_kept += may_block && !item->item.may_block;
        for (int32_t j = 0; j < problem->n_items && item->after < 0; j++) {
            bool near = problem->items[j].item.decision == item->item.decision && j != i;
            if (!near || draw_chained(of, 2) == 0) continue;
            item->after = j;
            if (weft_problem_check(problem, "chained", NULL) != WEFT_OK) item->after = -1;
        }
        of->n_after += item->after >= 0;
    }
}

static void chained_init(struct chained *of, uint64_t seed)
{
    struct weft_error err = {0};
    *of = (struct chained){0};
    random_case_init(&of->random, seed);
    of->problem = of->random.stages.problem;
    draw_lanes(of);
    draw_chains(of);
    cr_assert_eq(weft_problem_check(of->problem, "chained", &err), WEFT_OK, "%s", err.text);
}

static void check_rows_chained(const struct chained *of, const struct weft_plan *plan,
                               const struct weft_program *program)
{
    size_t n = (size_t)plan->problem->n_slots * WEFT_CATEGORY_COUNT;
    int64_t *rows = calloc(n, sizeof *rows), *live = calloc(n, sizeof *live);
    weft_plan_rows(plan, 0, rows);
    weft_program_live(program, live);
    for (size_t i = 0; i < n; i++)
        cr_assert_eq(rows[i], live[i], "seed %d, %s, %s: planned %lld, live %lld",
                     (int)of->random.seed, plan->problem->slot_names[i / WEFT_CATEGORY_COUNT],
                     weft_category_key((enum weft_category)(i % WEFT_CATEGORY_COUNT)),
                     (long long)rows[i], (long long)live[i]);
    free(rows);
    free(live);
}

/* Nothing begins before what it comes after is over. */
static void check_order_chained(const struct weft_program *program, const struct weft_trace *trace)
{
    for (int32_t i = 0; i < program->n_instructions; i++) {
        int32_t after = program->instructions[i].after;
        if (after > 0) cr_assert_geq(trace->records[i].start_ns, trace->records[after].end_ns);
    }
}

static void check_plan_chained(const struct chained *of, const int32_t *strategies,
                               const struct weft_move *moves, int32_t n_moves, int64_t list_ns)
{
    struct weft_plan *plan = NULL;
    struct weft_trace *trace = NULL;
    struct weft_trace_summary summary;
    struct weft_error err = {0};
    cr_assert_eq(weft_plan_create(of->problem, "list", strategies, moves, n_moves, &plan, &err),
                 WEFT_OK, "seed %d: %s", (int)of->random.seed, err.text);
    cr_assert_eq(weft_plan_predict(plan, &err), WEFT_OK);
    cr_assert_eq(plan->prediction.step_ns, list_ns, "seed %d: simulated %lld, placed %lld",
                 (int)of->random.seed, (long long)plan->prediction.step_ns, (long long)list_ns);
    cr_assert_leq(plan->prediction.peak_bytes, of->problem->tiers[0].limit_bytes);
    struct weft_program *program = random_program(&of->random, plan);
    check_rows_chained(of, plan, program);
    cr_assert_eq(weft_program_verify(program, INT64_MAX, &err), WEFT_OK, "seed %d: %s",
                 (int)of->random.seed, err.text);
    cr_assert_eq(weft_simulate(program, &trace, &err), WEFT_OK);
    weft_trace_summarise(program, trace, &summary);
    cr_assert_eq(summary.step_ns, list_ns, "seed %d", (int)of->random.seed);
    check_order_chained(program, trace);
    weft_trace_destroy(trace);
    weft_program_destroy(program);
    weft_plan_destroy(plan);
}

Test(chains, lowering_and_simulation_do_what_list_scheduling_says)
{
    int32_t n_after = 0, n_kept = 0, n_cases = TEST_CASES(120, 30);
    for (uint64_t seed = 0; seed < (uint64_t)n_cases; seed++) {
        struct chained of;
        struct weft_digest *table = NULL;
        struct weft_list *list = NULL;
        chained_init(&of, seed);
        cr_assert_eq(weft_digest_create(of.problem, &table, NULL), WEFT_OK);
        int64_t room = table->most_bytes - table->least_bytes, ns;
        cr_assert_eq(weft_list_create(table, &list, NULL), WEFT_OK);
        struct weft_move *moves = calloc((size_t)table->n_blocks + 1, sizeof *moves);
        for (int32_t part = 0; part < 4; part++) {
            int32_t n_moves = 0;
            of.problem->tiers[0].limit_bytes = table->least_bytes + room / 3 * part;
            ns = weft_list_place(list, table->leanest, weft_list_rules[(seed + part) % 7], moves,
                                 &n_moves);
            cr_assert_geq(ns, 0, "seed %d: leanest strategies fit", (int)seed);
            check_plan_chained(&of, table->leanest, moves, n_moves, ns);
        }
        n_after += of.n_after;
        n_kept += of.n_kept;
        free(moves);
        weft_list_destroy(list);
        weft_digest_destroy(table);
        random_case_finish(&of.random);
    }
    cr_assert(n_after > 2 * n_cases && n_kept > 2 * n_cases,
              "%d after others, %d cannot block, of %d", n_after, n_kept, n_cases);
}
