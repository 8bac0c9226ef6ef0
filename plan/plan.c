/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "plan/chain.h"
#include "plan/placement.h"
#include "problem/target.h"
#include "problem/terms.h"

void weft_plan_destroy(struct weft_plan *plan)
{
    if (plan == NULL) return;
    for (int32_t i = 0; i < plan->n_others; i++)
        weft_plan_variant_finish(&plan->others[i]);
    /* The plan may own its problem, so the cast removes const. */
    if (plan->owns_problem) weft_problem_destroy((struct weft_problem *)plan->problem);
    weft_pool_finish(&plan->pool);
    free(plan);
}

static enum weft_status copy_strategies(struct weft_plan *plan, const int32_t *strategies,
                                        struct weft_error *err)
{
    const struct weft_problem *problem = plan->problem;
    for (int32_t u = 0; u < problem->n_decisions; u++) {
        if (strategies[u] < 0 || strategies[u] >= problem->decisions[u].n_strategies) {
            return weft_fail(err, WEFT_E_INTERNAL, "planner %s: decision %s has no strategy %d",
                             plan->planner, problem->decisions[u].name, strategies[u]);
        }
        plan->strategies[u] = strategies[u];
    }
    return WEFT_OK;
}

/* For a gather, the window gives the deadline and the move the launch. For a reduction, the move
 * gives both. */
static enum weft_status place_moves(struct weft_plan *plan, const struct weft_move *moves,
                                    int32_t *blocks, struct weft_error *err)
{
    const struct weft_problem *problem = plan->problem;
    for (int32_t i = 0; i < plan->n_placements; i++) {
        struct weft_move move = moves[i];
        if (move.item < 0 || move.item >= problem->n_items ||
            !weft_problem_needs(problem, plan->strategies, move.item)) {
            return weft_fail(err, WEFT_E_INTERNAL,
                             "planner %s: move %d is of item %d, which its strategies do not need",
                             plan->planner, i, move.item);
        }
        const struct weft_item *item = &problem->items[move.item].item;
        bool gathers = item->acquires;
        int32_t last = item->may_block ? item->last + 1 : item->last;
        /* A rule that blocks on every acquiring item has no plan if one cannot block. */
        if (gathers && !item->may_block && move.slot == last + 1)
            return weft_fail(err, WEFT_E_INFEASIBLE, "planner %s: items[%d] cannot block",
                             plan->planner, move.item);
        if (move.slot < item->first || move.slot > last || (!gathers && move.launch > move.slot)) {
            return weft_fail(err, WEFT_E_INTERNAL,
                             "planner %s: move %d puts item %d into slot %d, launched in %d, "
                             "outside its window %d to %d",
                             plan->planner, i, move.item, move.slot,
                             gathers ? move.slot : move.launch, item->first, last);
        }
        int32_t launch = gathers ? move.slot : move.launch;
        plan->placements[i] = (struct weft_placement){
            .item = move.item,
            .block = blocks[move.item]++,
            .launch = launch > item->first ? launch : item->first,
            .deadline = gathers ? item->last + 1 : move.slot + 1,
        };
    }
    for (int32_t i = 0; i < problem->n_items; i++) {
        bool needed = weft_problem_needs(problem, plan->strategies, i);
        int32_t expected = needed ? problem->items[i].item.n_blocks : 0;
        if (blocks[i] != expected) {
            return weft_fail(err, WEFT_E_INTERNAL,
                             "planner %s: %d moves of item %d, which has %d blocks", plan->planner,
                             blocks[i], i, expected);
        }
    }
    return WEFT_OK;
}

static enum weft_status build_plan(struct weft_plan *plan, const char *planner,
                                   const int32_t *strategies, const struct weft_move *moves,
                                   int32_t n_moves, struct weft_error *err)
{
    const struct weft_problem *problem = plan->problem;
    plan->n_placements = n_moves;
    plan->planner = weft_pool_string(&plan->pool, planner);
    plan->strategies =
        weft_pool_array(&plan->pool, (size_t)problem->n_decisions, sizeof *plan->strategies);
    plan->placements = weft_pool_array(&plan->pool, (size_t)n_moves, sizeof *plan->placements);
    if (plan->planner == NULL || plan->strategies == NULL || plan->placements == NULL) {
        return weft_fail_memory(err, "plan");
    }
    WEFT_TRY(copy_strategies(plan, strategies, err));
    int32_t *blocks = calloc((size_t)problem->n_items + 1, sizeof *blocks);
    if (blocks == NULL) return weft_fail_memory(err, "plan");
    enum weft_status status = place_moves(plan, moves, blocks, err);
    free(blocks);
    if (status != WEFT_OK) return status;
    if (weft_problem_target(problem)->in_order)
        WEFT_TRY(weft_placements_sort(problem, plan->placements, n_moves, err));
    WEFT_TRY(
        weft_placements_chain(problem, plan->placements, n_moves, planner, WEFT_E_INFEASIBLE, err));
    int32_t *scratch = calloc((size_t)n_moves + 1, sizeof *scratch);
    if (scratch == NULL) return weft_fail_memory(err, "plan");
    weft_placements_normalise(problem, plan->placements, n_moves, scratch);
    int32_t stuck = weft_placements_stuck(problem, plan->placements, n_moves, scratch);
    free(scratch);
    if (stuck < 0) return WEFT_OK;
    return weft_fail(err, weft_problem_chains(problem) ? WEFT_E_INFEASIBLE : WEFT_E_INTERNAL,
                     "planner %s: move %d (item %d) is due by slot %d, and a block before it "
                     "is launched too late for that",
                     plan->planner, stuck, plan->placements[stuck].item,
                     plan->placements[stuck].deadline);
}

enum weft_status weft_plan_create(const struct weft_problem *problem, const char *planner,
                                  const int32_t *strategies, const struct weft_move *moves,
                                  int32_t n_moves, struct weft_plan **out, struct weft_error *err)
{
    struct weft_plan *plan = calloc(1, sizeof *plan);
    if (plan == NULL) return weft_fail_memory(err, "plan");
    plan->problem = problem;
    enum weft_status status = build_plan(plan, planner, strategies, moves, n_moves, err);
    if (status != WEFT_OK) {
        weft_plan_destroy(plan);
        return status;
    }
    *out = plan;
    return WEFT_OK;
}

int64_t weft_plan_slot_ns(const struct weft_plan *plan, int32_t slot)
{
    return weft_problem_slot_ns(plan->problem, plan->strategies, slot);
}

static struct weft_hash hash_pages(const struct weft_page_lists *pages)
{
    int64_t shape[] = {pages->page_bytes, pages->n_tables, pages->n_lists};
    size_t n = (size_t)pages->n_lists, n_stretches = n > 0 ? (size_t)pages->ends[n - 1] : 0;
    struct weft_hash parts[] = {
        weft_hash_bytes(shape, sizeof shape),
        weft_hash_bytes(pages->ends, n * sizeof *pages->ends),
        weft_hash_bytes(pages->stretches, n_stretches * sizeof *pages->stretches),
    };
    return weft_hash_bytes(parts, sizeof parts);
}

/* Hashes the number of open periods, and the terms and bounds of the other planned ones. */
static struct weft_hash hash_periods(const struct weft_plan *plan)
{
    struct weft_text text;
    struct weft_json_writer writer;
    struct weft_hash hash = {0};
    weft_text_init(&text);
    weft_json_writer_init(&writer, &text, 0);
    weft_json_begin_array(&writer);
    weft_json_add_integer(&writer, plan->n_open);
    for (int32_t i = 0; i < plan->n_others; i++) {
        weft_json_add_integer(&writer, plan->others[i].bound_ns);
        if (plan->others[i].paged_bound_ns > 0) {
            weft_json_add_integer(&writer, plan->others[i].paged_bound_ns);
            weft_json_add_integer(&writer, plan->others[i].page_bytes);
        }
        weft_problem_write_terms(plan->others[i].problem, &writer);
    }
    weft_json_end_array(&writer);
    if (weft_text_ok(&text)) hash = weft_hash_bytes(weft_text_chars(&text), text.length);
    weft_text_finish(&text);
    return hash;
}

struct weft_hash weft_plan_decision_hash(const struct weft_plan *plan)
{
    struct weft_hash parts[] = {
        weft_hash_bytes(plan->strategies,
                        (size_t)plan->problem->n_decisions * sizeof *plan->strategies),
        weft_hash_bytes(plan->placements, (size_t)plan->n_placements * sizeof *plan->placements),
        hash_pages(&plan->pages),
        hash_periods(plan),
    };
    return weft_hash_bytes(parts, sizeof parts);
}

bool weft_plan_same_variant(const struct weft_problem *a, const struct weft_problem *b)
{
    return weft_period_rule_same(&a->period, &b->period) && a->blocks.scale == b->blocks.scale;
}

/* The least of a bound and those of all other periods, of plans in pages of this size; 0: of any
 * size. */
static int64_t least_with_others(const struct weft_plan *plan, int64_t least_ns, int64_t page_bytes)
{
    for (int32_t i = 0; i < plan->n_others; i++) {
        const int64_t bound_ns = weft_plan_variant_bound_ns(&plan->others[i], page_bytes);
        if (bound_ns < least_ns) least_ns = bound_ns;
    }
    return least_ns;
}

int64_t weft_plan_least_bound_ns(const struct weft_plan *plan)
{
    return least_with_others(plan, plan->bound_ns, 0);
}

struct weft_plan_claim weft_plan_claim_of(const struct weft_plan *plan)
{
    const int64_t rows_ns = weft_plan_least_bound_ns(plan);
    const int64_t page_bytes = plan->pages.page_bytes;
    const int64_t own_ns =
        plan->paged_bound_ns > plan->bound_ns ? plan->paged_bound_ns : plan->bound_ns;
    const int64_t paged_ns = least_with_others(plan, own_ns, page_bytes);
    if (paged_ns <= rows_ns) return (struct weft_plan_claim){.bound_ns = rows_ns};
    return (struct weft_plan_claim){
        .bound_ns = paged_ns, .page_bytes = page_bytes == WEFT_PAGE_LEAST_BYTES ? 0 : page_bytes};
}

enum weft_status weft_plan_check_bounds(const struct weft_plan *plan, struct weft_error *err)
{
    struct weft_error fault = {0};
    WEFT_TRY(weft_certificate_check(&plan->certificate, plan->problem, plan->bound_ns, NULL, err));
    enum weft_status of_pages =
        weft_certificate_check_in_pages(&plan->paged_certificate, plan->problem,
                                        plan->pages.page_bytes, plan->paged_bound_ns, NULL, &fault);
    if (of_pages == WEFT_OK) return WEFT_OK;
    return weft_fail(err, of_pages, "in pages: %s", fault.text);
}

static double gap_to(const struct weft_plan *plan, int64_t bound_ns)
{
    if (bound_ns <= 0) return 0;
    return (double)(plan->prediction.step_ns - bound_ns) / (double)bound_ns;
}

double weft_plan_gap(const struct weft_plan *plan)
{
    return gap_to(plan, plan->bound_ns);
}

double weft_plan_paged_gap(const struct weft_plan *plan)
{
    return gap_to(plan, plan->paged_bound_ns);
}

double weft_plan_claimed_gap(const struct weft_plan *plan)
{
    return gap_to(plan, weft_plan_claim_of(plan).bound_ns);
}

struct weft_hash weft_plan_hash(const struct weft_plan *plan)
{
    struct weft_text text;
    weft_text_init(&text);
    weft_plan_write(plan, &text);
    struct weft_hash hash = {0};
    if (weft_text_ok(&text)) hash = weft_hash_bytes(weft_text_chars(&text), text.length);
    weft_text_finish(&text);
    return hash;
}

enum weft_status weft_plan_matches(const struct weft_problem *planned,
                                   const struct weft_problem *problem, struct weft_error *err)
{
    struct weft_text differences;
    weft_text_init(&differences);
    weft_problem_compare(planned, problem, &differences);
    enum weft_status status = WEFT_OK;
    if (!weft_text_ok(&differences)) {
        status = weft_fail_memory(err, "comparison of problems");
    } else if (differences.length > 0) {
        status = weft_fail(err, WEFT_E_DATA,
                           "the plan was made for another problem; plan it again, or give the "
                           "flags that it was made with. First differences (in the plan, now):\n%s",
                           weft_text_chars(&differences));
    }
    weft_text_finish(&differences);
    return status;
}
