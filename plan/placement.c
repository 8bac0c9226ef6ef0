/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/placement.h"
#include "problem/target.h"
#include "problem/twins.h"

#include <stdlib.h>

static const struct weft_problem_item *item_of(const struct weft_problem *problem,
                                               const struct weft_placement *at)
{
    return &problem->items[at->item];
}

/* Place of a block in its lane under a target that launches in order: the slot that launches it.
 * Reductions come first, the last unit's ahead, then gathers that the slot waits for, then the
 * others. */
static int64_t order_of(const struct weft_problem *problem, const struct weft_placement *at)
{
    const struct weft_item *item = &item_of(problem, at)->item;
    const int64_t n = problem->n_decisions, slot = (int64_t)at->launch * (n + 2);
    if (!item->acquires) return slot + n - 1 - item->decision;
    return slot + n + (weft_placement_blocks(at) ? 0 : 1);
}

/* Moves a gather to the next slot that may launch it, at the latest the one that uses it. */
static void move_to_hook(const struct weft_problem *problem, const bool *hooks,
                         struct weft_placement *at)
{
    while (at->launch < at->deadline &&
           (!hooks[at->launch] || weft_problem_must_block(problem, &item_of(problem, at)->item)))
        at->launch++;
}

enum weft_status weft_placements_sort(const struct weft_problem *problem,
                                      struct weft_placement *placements, int32_t n_placements,
                                      struct weft_error *err)
{
    bool *hooks = calloc((size_t)problem->n_slots, sizeof *hooks);
    if (hooks == NULL) return weft_fail_memory(err, "plan");
    weft_problem_hooks(problem, hooks);
    for (int32_t i = 0; i < n_placements; i++) {
        struct weft_placement at = placements[i];
        const struct weft_item *item = &item_of(problem, &at)->item;
        if (item->acquires) {
            move_to_hook(problem, hooks, &at);
        } else {
            at.launch = item->first;
            at.deadline = item->last + 1;
        }
        /* Insertion keeps the order of equal ones, and most come sorted. */
        int32_t to = i;
        for (; to > 0 && order_of(problem, &placements[to - 1]) > order_of(problem, &at); to--)
            placements[to] = placements[to - 1];
        placements[to] = at;
    }
    free(hooks);
    return WEFT_OK;
}

/* Finds the first placement that a target that launches in order cannot launch there; -1: none. */
static int32_t find_unordered(const struct weft_problem *problem,
                              const struct weft_placement *placements, int32_t n_placements,
                              bool *hooks)
{
    int64_t reached[WEFT_MOST_LANES] = {0};
    weft_problem_hooks(problem, hooks);
    for (int32_t i = 0; i < n_placements; i++) {
        const struct weft_placement *at = &placements[i];
        const struct weft_problem_item *of = item_of(problem, at);
        const int64_t order = order_of(problem, at);
        struct weft_placement moved = *at;
        if (of->item.acquires)
            move_to_hook(problem, hooks, &moved);
        else
            moved.launch = of->item.first;
        if (order < reached[of->lane] || moved.launch != at->launch) return i;
        reached[of->lane] = order;
    }
    return -1;
}

/* Finds the first gather that is not launched as its twin of the first micro-step; -1: none. */
static enum weft_status find_unlike(const struct weft_problem *problem,
                                    const struct weft_placement *placements, int32_t n_placements,
                                    int32_t *out, struct weft_error *err)
{
    struct weft_pool pool = {0};
    struct weft_twins twins = {0};
    enum weft_status status = weft_twins_find(problem, &pool, &twins, err);
    int32_t *launches = weft_pool_array(&pool, (size_t)problem->n_items + 1, sizeof *launches);
    if (status == WEFT_OK && launches == NULL) status = weft_fail_memory(err, "plan");
    *out = -1;
    for (int32_t i = 0; status == WEFT_OK && i < n_placements; i++)
        launches[placements[i].item] = placements[i].launch;
    for (int32_t i = 0; status == WEFT_OK && i < n_placements && *out < 0; i++) {
        const int32_t item = placements[i].item, leader = twins.leader[item];
        if (leader == item) continue;
        const int32_t launch = weft_twins_launch(problem, &twins, item, launches[leader]);
        if (launch != placements[i].launch) *out = i;
    }
    weft_pool_finish(&pool);
    return status;
}

/* Raises `slot` to the begin of the predecessor of `at`. */
static void follow_predecessor(const struct weft_placement *at, const int32_t *begins,
                               int32_t *slot)
{
    if (at->after >= 0 && begins[at->after] > *slot) *slot = begins[at->after];
}

static bool raise_launches(const struct weft_problem *problem, struct weft_placement *placements,
                           int32_t n_placements, int32_t *begins)
{
    bool changed = false;
    int32_t launched[WEFT_MOST_LANES] = {0};
    for (int32_t i = 0; i < n_placements; i++) {
        struct weft_placement *at = &placements[i];
        int32_t *ahead = &launched[item_of(problem, at)->lane];
        follow_predecessor(at, begins, ahead);
        if (at->launch < *ahead && item_of(problem, at)->item.acquires) {
            at->launch = *ahead;
            changed = true;
        }
        if (at->launch > *ahead) *ahead = at->launch;
        begins[i] = *ahead;
    }
    return changed;
}

static bool lower_deadlines(const struct weft_problem *problem, struct weft_placement *placements,
                            int32_t n_placements, int32_t *due_after)
{
    bool changed = false;
    int32_t due[WEFT_MOST_LANES];
    for (int32_t lane = 0; lane < problem->n_lanes; lane++)
        due[lane] = problem->n_slots;
    for (int32_t i = 0; i < n_placements; i++)
        due_after[i] = problem->n_slots;
    for (int32_t i = n_placements - 1; i >= 0; i--) {
        struct weft_placement *at = &placements[i];
        int32_t *behind = &due[item_of(problem, at)->lane];
        if (due_after[i] < *behind) *behind = due_after[i];
        if (at->deadline > *behind && !item_of(problem, at)->item.acquires) {
            at->deadline = *behind;
            changed = true;
        }
        int32_t complete = at->deadline + (weft_placement_blocks(at) ? 1 : 0);
        if (complete < *behind) *behind = complete;
        if (at->after >= 0 && *behind < due_after[at->after]) due_after[at->after] = *behind;
    }
    return changed;
}

bool weft_placements_normalise(const struct weft_problem *problem,
                               struct weft_placement *placements, int32_t n_placements,
                               int32_t *scratch)
{
    bool raised = raise_launches(problem, placements, n_placements, scratch);
    return lower_deadlines(problem, placements, n_placements, scratch) || raised;
}

int32_t weft_placements_stuck(const struct weft_problem *problem,
                              const struct weft_placement *placements, int32_t n_placements,
                              int32_t *scratch)
{
    int32_t ahead[WEFT_MOST_LANES] = {0};
    for (int32_t i = 0; i < n_placements; i++) {
        const struct weft_placement *at = &placements[i];
        const struct weft_problem_item *of = item_of(problem, at);
        int32_t *launched = &ahead[of->lane];
        follow_predecessor(at, scratch, launched);
        if (at->launch > *launched) *launched = at->launch;
        scratch[i] = *launched;
        if (of->item.may_block ? *launched > at->deadline : *launched >= at->deadline) return i;
    }
    return -1;
}

/* Returns the fault of a placement by itself and against those before it, or NULL. `blocks` counts
 * the blocks of each item so far. */
static const char *placement_fault(const struct weft_problem *problem, const int32_t *strategies,
                                   const struct weft_placement *at, int32_t *blocks)
{
    const struct weft_item *item = &problem->items[at->item].item;
    if (!weft_problem_needs(problem, strategies, at->item)) {
        return "the strategies do not need this item";
    }
    if (at->block != blocks[at->item]++) return "blocks of an item are not in index order";
    if (at->launch < item->first || at->launch > item->last + (item->may_block ? 1 : 0)) {
        return "launch is outside the item's window";
    }
    if (item->acquires ? at->deadline != item->last + 1
                       : at->deadline <= at->launch || at->deadline > item->last + 1) {
        return "deadline is outside the item's window";
    }
    return NULL;
}

enum weft_status weft_placements_check(const struct weft_problem *problem,
                                       const int32_t *strategies,
                                       const struct weft_placement *placements,
                                       int32_t n_placements, const char *where,
                                       struct weft_error *err)
{
    size_t n = (size_t)n_placements;
    int32_t *blocks = calloc((size_t)problem->n_items + 1, sizeof *blocks);
    struct weft_placement *normal = calloc(n + 1, sizeof *normal);
    int32_t *scratch = calloc(n + 1, sizeof *scratch);
    bool *hooks = calloc((size_t)problem->n_slots, sizeof *hooks);
    const char *fault = NULL;
    int32_t at = 0;
    if (blocks == NULL || normal == NULL || scratch == NULL || hooks == NULL) {
        free(blocks);
        free(normal);
        free(scratch);
        free(hooks);
        return weft_fail_memory(err, "plan");
    }
    for (; fault == NULL && at < n_placements; at++) {
        fault = placement_fault(problem, strategies, &placements[at], blocks);
        normal[at] = placements[at];
    }
    at--;
    if (fault == NULL) {
        weft_placements_normalise(problem, normal, n_placements, scratch);
        for (size_t i = 0; fault == NULL && i < n; i++) {
            at = (int32_t)i;
            if (normal[i].launch != placements[i].launch) {
                fault = "its launch is before that of an earlier one on its lane or in its chain";
            } else if (normal[i].deadline != placements[i].deadline) {
                fault = "its deadline is after that of a later one on its lane or in its chain";
            }
        }
    }
    if (fault == NULL) {
        at = weft_placements_stuck(problem, placements, n_placements, scratch);
        if (at >= 0)
            fault = "it is due before an earlier one on its lane or in its chain is launched";
    }
    if (fault == NULL && weft_problem_target(problem)->in_order) {
        at = find_unordered(problem, placements, n_placements, hooks);
        if (at >= 0)
            fault = "the runtime that the plan is for launches in slots in which a unit begins: "
                    "first reductions, after their gradient, then gathers that the slot waits "
                    "for, then others";
    }
    enum weft_status status = WEFT_OK;
    if (fault == NULL && weft_problem_has_twins(problem)) {
        status = find_unlike(problem, placements, n_placements, &at, err);
        if (at >= 0)
            fault = "the runtime that the plan is for has one list of gathers for all micro-steps, "
                    "and the first one launches its gather elsewhere";
    }
    free(blocks);
    free(normal);
    free(scratch);
    free(hooks);
    if (status != WEFT_OK) return status;
    if (fault == NULL) return WEFT_OK;
    return weft_fail(err, WEFT_E_DATA, "%s: placements[%d]: %s", where, at, fault);
}
