/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/search/hooks.h"

#include <stdlib.h>
#include <string.h>

#include "problem/target.h"
#include "problem/twins.h"
#include "program/predict.h"
#include "scheduler/place/micro_steps.h"

/* Strategies with a launch slot for each gather, and their figures. */
struct choice {
    int32_t *strategies; /* [n_decisions] */
    int32_t *launch;     /* [n_items]; of gathers that the strategies need */
    int64_t step_ns;     /* -1: none */
    int64_t peak_bytes;
};

struct weft_hooks {
    struct weft_pool pool;
    const struct weft_digest *table;
    struct weft_budget budget;
    bool *hooks;    /* [n_slots] */
    bool has_twins; /* launches of twins follow from their leader */
    struct weft_twins twins;
    struct choice best, present, trial; /* of all starts, of this one, and a neighbour */
    struct weft_move *moves;
    int64_t *rows;
};

static bool make_choice(struct weft_hooks *h, struct choice *choice)
{
    const size_t n_decisions = (size_t)h->table->n_decisions, n_items = (size_t)h->table->n_items;
    choice->strategies = weft_pool_array(&h->pool, n_decisions + 1, sizeof *choice->strategies);
    choice->launch = weft_pool_array(&h->pool, n_items + 1, sizeof *choice->launch);
    choice->step_ns = -1;
    return choice->strategies && choice->launch;
}

enum weft_status weft_hooks_create(const struct weft_digest *table, struct weft_budget budget,
                                   struct weft_hooks **out, struct weft_error *err)
{
    struct weft_hooks *h = calloc(1, sizeof *h);
    if (!h) return weft_fail_memory(err, "a search of hooks");
    h->table = table;
    h->budget = budget;
    h->hooks = weft_pool_array(&h->pool, (size_t)table->n_slots, sizeof *h->hooks);
    h->moves = weft_pool_array(&h->pool, (size_t)table->n_blocks + 1, sizeof *h->moves);
    h->rows = weft_pool_array(&h->pool, (size_t)table->n_rows + 1, sizeof *h->rows);
    if (!h->hooks || !h->moves || !h->rows || !make_choice(h, &h->best) ||
        !make_choice(h, &h->present) || !make_choice(h, &h->trial)) {
        weft_hooks_destroy(h);
        return weft_fail_memory(err, "a search of hooks");
    }
    weft_problem_hooks(table->problem, h->hooks);
    h->has_twins = weft_problem_has_twins(table->problem);
    if (h->has_twins) {
        const enum weft_status status = weft_twins_find(table->problem, &h->pool, &h->twins, err);
        if (status != WEFT_OK) {
            weft_hooks_destroy(h);
            return status;
        }
    }
    *out = h;
    return WEFT_OK;
}

void weft_hooks_destroy(struct weft_hooks *hooks)
{
    if (!hooks) return;
    weft_pool_finish(&hooks->pool);
    free(hooks);
}

static void copy_choice(const struct weft_hooks *h, const struct choice *from, struct choice *to)
{
    memcpy(to->strategies, from->strategies,
           (size_t)h->table->n_decisions * sizeof *to->strategies);
    memcpy(to->launch, from->launch, (size_t)h->table->n_items * sizeof *to->launch);
    to->step_ns = from->step_ns;
    to->peak_bytes = from->peak_bytes;
}

static const struct weft_item *item_of(const struct weft_hooks *h, int32_t i)
{
    return &h->table->problem->items[i].item;
}

/* Sets the launch of a gather, and of its twins. A leader alone gives launches. */
static void set_launch(const struct weft_hooks *h, struct choice *choice, int32_t i, int32_t launch)
{
    choice->launch[i] = launch;
    if (!h->has_twins) return;
    for (int32_t k = h->twins.next[i]; k >= 0; k = h->twins.next[k])
        choice->launch[k] = weft_twins_launch(h->table->problem, &h->twins, k, launch);
}

static bool is_leader(const struct weft_hooks *h, int32_t i)
{
    return !h->has_twins || h->twins.leader[i] == i;
}

/* Lists the choice's moves, gathers by their use. */
static int32_t list_moves(const struct weft_hooks *h, const struct choice *choice,
                          struct weft_move *moves)
{
    const struct weft_digest *table = h->table;
    int32_t n = 0;
    for (int32_t k = 0; k < table->n_gathers; k++) {
        const int32_t i = table->gathers[k], slot = choice->launch[i];
        if (!weft_item_active(item_of(h, i), choice->strategies)) continue;
        moves[n++] = (struct weft_move){.item = i, .slot = slot, .launch = slot};
    }
    for (int32_t k = 0; k < table->n_reductions; k++) {
        const int32_t i = table->reductions[k];
        const struct weft_item *item = item_of(h, i);
        if (!weft_item_active(item, choice->strategies)) continue;
        moves[n++] = (struct weft_move){.item = i, .slot = item->last, .launch = item->first};
    }
    return n;
}

static bool fits_rows(const struct weft_hooks *h, const struct choice *choice, int32_t n_moves)
{
    const int64_t limit_bytes = weft_digest_limit_bytes(h->table);
    weft_digest_move_rows(h->table, choice->strategies, h->moves, n_moves, h->rows);
    for (int32_t r = 0; r < h->table->n_rows; r++)
        if (h->rows[r] > limit_bytes) return false;
    return true;
}

/* Finds the trial's figures; step_ns is -1 if it does not fit. */
static enum weft_status measure_trial(struct weft_hooks *h, struct weft_error *err)
{
    const struct weft_problem *problem = h->table->problem;
    struct choice *trial = &h->trial;
    struct weft_plan *plan = NULL;
    struct weft_error why = {0};
    const int32_t n = list_moves(h, trial, h->moves);
    trial->step_ns = -1;
    weft_work_spend(h->budget.work, 60 * (int64_t)h->table->n_slots + 100 * (int64_t)n);
    if (!fits_rows(h, trial, n)) return WEFT_OK;
    enum weft_status status =
        weft_plan_create(problem, "ilp", trial->strategies, h->moves, n, &plan, &why);
    if (status == WEFT_E_INFEASIBLE) return WEFT_OK;
    if (status == WEFT_OK) status = weft_plan_predict(plan, &why);
    if (status == WEFT_OK) {
        trial->step_ns = plan->prediction.step_ns;
        trial->peak_bytes = weft_plan_peak(plan, 0, NULL);
    }
    weft_plan_destroy(plan);
    return status == WEFT_OK ? WEFT_OK : weft_fail(err, status, "%s", why.text);
}

static bool is_better(const struct choice *a, const struct choice *than)
{
    if (a->step_ns < 0 || than->step_ns < 0) return a->step_ns >= 0;
    return a->step_ns != than->step_ns ? a->step_ns < than->step_ns
                                       : a->peak_bytes < than->peak_bytes;
}

/* Measures the trial, and makes it the present choice if it is better. The trial is then a copy of
 * the present choice again. */
static enum weft_status try_trial(struct weft_hooks *h, bool *better, struct weft_error *err)
{
    WEFT_TRY(measure_trial(h, err));
    const bool is = is_better(&h->trial, &h->present);
    if (is) copy_choice(h, &h->trial, &h->present);
    if (!is) copy_choice(h, &h->present, &h->trial);
    *better |= is;
    return WEFT_OK;
}

/* The next hook of an item's window from a launch, `by` steps of 1 or -1; its use comes last. -1:
 * none. */
static int32_t next_hook(const struct weft_hooks *h, const struct weft_item *item, int32_t launch,
                         int32_t by)
{
    const int32_t use = item->last + 1;
    for (int32_t s = launch + by; s >= item->first && s <= use; s += by)
        if (s == use || h->hooks[s]) return s;
    return -1;
}

/* FSDP2's own launch: in forward at the use, otherwise one unit ahead. */
static int32_t own_launch(const struct weft_hooks *h, int32_t i)
{
    const struct weft_problem *problem = h->table->problem;
    const struct weft_item *item = item_of(h, i);
    const int32_t use = item->last + 1;
    const bool forward = problem->slots[use].kind == WEFT_SLOT_FORWARD;
    const int32_t before = next_hook(h, item, use, -1);
    return forward || before < 0 || weft_problem_must_block(problem, item) ? use : before;
}

static enum weft_status try_launches(struct weft_hooks *h, int32_t i, bool *better,
                                     struct weft_error *err)
{
    enum { NEAR = 3 };
    const struct weft_item *item = item_of(h, i);
    if (!is_leader(h, i) || !weft_item_active(item, h->present.strategies)) return WEFT_OK;
    if (weft_problem_must_block(h->table->problem, item)) return WEFT_OK;
    const int32_t from = h->present.launch[i];
    for (int32_t by = -1; by <= 1; by += 2) {
        int32_t at = from;
        for (int k = 0; k < NEAR && !weft_budget_is_over(h->budget); k++) {
            at = next_hook(h, item, at, by);
            if (at < 0) break;
            set_launch(h, &h->trial, i, at);
            WEFT_TRY(try_trial(h, better, err));
        }
    }
    if (weft_budget_is_over(h->budget)) return WEFT_OK;
    set_launch(h, &h->trial, i, item->last + 1);
    return try_trial(h, better, err);
}

/* Tries the decision's other strategies, each with its present launches. Gathers that only the
 * other strategy needs have FSDP2's own launch from the start. */
static enum weft_status try_strategies(struct weft_hooks *h, int32_t d, bool *better,
                                       struct weft_error *err)
{
    for (int32_t k = 0; k < weft_digest_count(h->table, d); k++) {
        if (k == h->present.strategies[d] || weft_budget_is_over(h->budget)) continue;
        h->trial.strategies[d] = k;
        WEFT_TRY(try_trial(h, better, err));
    }
    return WEFT_OK;
}

static enum weft_status search_on(struct weft_hooks *h, struct weft_error *err)
{
    bool better = true;
    h->present.step_ns = -1;
    WEFT_TRY(try_trial(h, &better, err));
    if (h->present.step_ns < 0) return WEFT_OK;
    while (better && !weft_budget_is_over(h->budget)) {
        better = false;
        for (int32_t d = 0; d < h->table->n_decisions; d++)
            WEFT_TRY(try_strategies(h, d, &better, err));
        for (int32_t k = 0; k < h->table->n_gathers; k++)
            WEFT_TRY(try_launches(h, h->table->gathers[k], &better, err));
    }
    if (is_better(&h->present, &h->best)) copy_choice(h, &h->present, &h->best);
    return WEFT_OK;
}

static void launch_plainly(struct weft_hooks *h, const int32_t *strategies)
{
    memcpy(h->trial.strategies, strategies, (size_t)h->table->n_decisions * sizeof *strategies);
    for (int32_t k = 0; k < h->table->n_gathers; k++) {
        const int32_t i = h->table->gathers[k];
        if (is_leader(h, i)) set_launch(h, &h->trial, i, own_launch(h, i));
    }
}

/* Gives twins of the trial alike launches that fit: those of the micro-step that is the fastest for
 * all. */
static enum weft_status align_trial(struct weft_hooks *h, struct weft_error *err)
{
    const int32_t n = list_moves(h, &h->trial, h->moves);
    struct weft_plan *plan = NULL;
    struct weft_error why = {0};
    if (!h->has_twins) return WEFT_OK;
    enum weft_status status =
        weft_plan_create(h->table->problem, "ilp", h->trial.strategies, h->moves, n, &plan, &why);
    if (status == WEFT_E_INFEASIBLE) return WEFT_OK;
    if (status == WEFT_OK) status = weft_plan_predict(plan, &why);
    if (status == WEFT_OK) status = weft_place_micro_steps(plan, &why);
    for (int32_t p = 0; status == WEFT_OK && p < plan->n_placements; p++) {
        const struct weft_placement *at = &plan->placements[p];
        if (item_of(h, at->item)->acquires && is_leader(h, at->item))
            set_launch(h, &h->trial, at->item, at->launch);
    }
    weft_plan_destroy(plan);
    return status == WEFT_OK ? WEFT_OK : weft_fail(err, status, "%s", why.text);
}

enum weft_status weft_hooks_start(struct weft_hooks *hooks, const struct weft_candidate *from,
                                  struct weft_error *err)
{
    launch_plainly(hooks, from->strategies);
    for (int32_t k = 0; k < from->n_moves; k++) {
        const struct weft_move *move = &from->moves[k];
        const struct weft_item *item = item_of(hooks, move->item);
        int32_t at = move->slot;
        if (!item->acquires) continue;
        if (at <= item->last && !hooks->hooks[at]) at = next_hook(hooks, item, at, 1);
        if (weft_problem_must_block(hooks->table->problem, item)) at = item->last + 1;
        hooks->trial.launch[move->item] = at;
    }
    WEFT_TRY(align_trial(hooks, err));
    return search_on(hooks, err);
}

enum weft_status weft_hooks_start_plain(struct weft_hooks *hooks, const int32_t *strategies,
                                        struct weft_error *err)
{
    launch_plainly(hooks, strategies);
    return search_on(hooks, err);
}

int64_t weft_hooks_result(const struct weft_hooks *hooks, struct weft_candidate *out)
{
    const struct choice *best = &hooks->best;
    if (best->step_ns < 0) return -1;
    memcpy(out->strategies, best->strategies,
           (size_t)hooks->table->n_decisions * sizeof *out->strategies);
    out->n_moves = list_moves(hooks, best, out->moves);
    return best->step_ns;
}
