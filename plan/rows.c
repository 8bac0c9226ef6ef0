/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "plan/placement.h"
#include "plan/plan.h"
#include "problem/target.h"

/* Adds bytes to the slots of a hold; `stride` is the distance between slots in the array. */
static void add_slots(int64_t *rows, int32_t stride, int32_t n_slots, int32_t first, int32_t last,
                      int64_t bytes)
{
    int32_t slot = first;
    for (;;) {
        rows[(size_t)slot * (size_t)stride] += bytes;
        if (slot == last) return;
        slot = slot + 1 == n_slots ? 0 : slot + 1;
    }
}

static void add_holds(int64_t *rows, int32_t tier, int32_t n_slots, const struct weft_hold *holds,
                      int32_t n_holds)
{
    for (int32_t i = 0; i < n_holds; i++) {
        if (holds[i].tier != tier) continue;
        add_slots(rows + holds[i].category, WEFT_CATEGORY_COUNT, n_slots, holds[i].first,
                  holds[i].last, holds[i].bytes);
    }
}

void weft_plan_rows(const struct weft_plan *plan, int32_t tier, int64_t *rows)
{
    const struct weft_problem *problem = plan->problem;
    int32_t n_slots = problem->n_slots;
    for (int32_t i = 0; i < n_slots * WEFT_CATEGORY_COUNT; i++)
        rows[i] = 0;
    add_holds(rows, tier, n_slots, problem->common, problem->n_common);
    for (int32_t u = 0; u < problem->n_decisions; u++) {
        const struct weft_problem_strategy *of = weft_plan_chosen(plan, u);
        add_holds(rows, tier, n_slots, of->holds, of->n_holds);
    }
    for (int32_t i = 0; i < plan->n_placements; i++) {
        const struct weft_placement *at = &plan->placements[i];
        const struct weft_item *item = &problem->items[at->item].item;
        if (item->stair_tier != tier || weft_placement_blocks(at)) continue;
        add_slots(rows + item->stair_category, WEFT_CATEGORY_COUNT, n_slots,
                  plan->problem->items[at->item].item.acquires ? at->launch : item->first,
                  at->deadline - 1, item->stair_bytes);
    }
}

/* Adds bytes to the slots from `first` to `last`, as changes from each slot to the next one. */
static void add_changes(int64_t *changes, int32_t n_slots, int32_t first, int32_t last,
                        int64_t bytes)
{
    changes[first] += bytes;
    if (last < first) changes[0] += bytes; /* past the period's end */
    if (last + 1 < n_slots) changes[last + 1] -= bytes;
}

static void add_hold_changes(const struct weft_problem *problem, const struct weft_hold *holds,
                             int32_t n_holds, int64_t *changes)
{
    for (int32_t i = 0; i < n_holds; i++)
        add_changes(changes + weft_problem_tier_at(problem, holds[i].tier), problem->n_slots,
                    holds[i].first, holds[i].last, holds[i].bytes);
}

/* Sums by slot: totals[n_tiers][n_slots], or NULL. The caller frees it. The time does not depend on
 * the lengths of holds: rules ask for the sums of thousands of plans. */
static int64_t *slot_totals(const struct weft_plan *plan)
{
    const struct weft_problem *problem = plan->problem;
    const int32_t n_slots = problem->n_slots;
    int64_t *totals = calloc((size_t)weft_problem_n_rows(problem), sizeof *totals);
    if (totals == NULL) return NULL;
    add_hold_changes(problem, problem->common, problem->n_common, totals);
    for (int32_t u = 0; u < problem->n_decisions; u++) {
        const struct weft_problem_strategy *of = weft_plan_chosen(plan, u);
        add_hold_changes(problem, of->holds, of->n_holds, totals);
    }
    for (int32_t i = 0; i < plan->n_placements; i++) {
        const struct weft_placement *at = &plan->placements[i];
        const struct weft_item *item = &problem->items[at->item].item;
        if (weft_placement_blocks(at)) continue;
        add_changes(totals + weft_problem_stair_at(problem, item), n_slots,
                    item->acquires ? at->launch : item->first, at->deadline - 1, item->stair_bytes);
    }
    for (int32_t row = 0; row < weft_problem_n_rows(problem); row++)
        if (row % n_slots > 0) totals[row] += totals[row - 1];
    return totals;
}

int64_t weft_plan_peak(const struct weft_plan *plan, int32_t tier, int32_t *slot)
{
    int64_t peak = -1;
    int32_t peak_slot = 0, at = weft_problem_tier_at(plan->problem, tier);
    int64_t *totals = slot_totals(plan);
    for (int32_t s = 0; totals != NULL && s < plan->problem->n_slots; s++) {
        if (totals[at + s] > peak) {
            peak = totals[at + s];
            peak_slot = s;
        }
    }
    free(totals);
    if (slot != NULL) *slot = peak_slot;
    return peak;
}

enum weft_status weft_plan_check_rows(const struct weft_plan *plan, const char *source,
                                      struct weft_error *err)
{
    const struct weft_problem *problem = plan->problem;
    int64_t *totals = slot_totals(plan);
    if (totals == NULL) return weft_fail_memory(err, "memory rows");
    int32_t row = weft_problem_fullest_row(problem, totals), tier = row / problem->n_slots;
    int64_t bytes = totals[row], limit_bytes = problem->tiers[tier].limit_bytes;
    free(totals);
    if (bytes <= limit_bytes) return WEFT_OK;
    return weft_fail(err, WEFT_E_DATA, "%s: slot %s holds %lld bytes%s%s, over the limit of %lld",
                     source, problem->slot_names[row % problem->n_slots], (long long)bytes,
                     tier > 0 ? " of tier " : "", tier > 0 ? problem->tiers[tier].name : "",
                     (long long)limit_bytes);
}

/* Turns totals into the room left in each row. */
static void to_room(const struct weft_problem *problem, int64_t limit_bytes, int64_t *totals)
{
    for (int32_t tier = 0, r = 0; tier < problem->n_tiers; tier++) {
        int64_t most = tier == 0 ? limit_bytes : problem->tiers[tier].limit_bytes;
        for (int32_t s = 0; s < problem->n_slots; s++, r++)
            totals[r] = most - totals[r];
    }
}

/* Goes from the end of every lane to its start, so that later blocks have moved already. */
static void push_deadlines(struct weft_plan *plan, int64_t *rooms, int32_t *due_after)
{
    int32_t behind[WEFT_MOST_LANES];
    for (int32_t lane = 0; lane < plan->problem->n_lanes; lane++)
        behind[lane] = plan->problem->n_slots;
    for (int32_t i = 0; i < plan->n_placements; i++)
        due_after[i] = plan->problem->n_slots;
    for (int32_t i = plan->n_placements - 1; i >= 0; i--) {
        struct weft_placement *at = &plan->placements[i];
        const struct weft_item *item = &plan->problem->items[at->item].item;
        int64_t *room = rooms + weft_problem_stair_at(plan->problem, item);
        int32_t *due = &behind[plan->problem->items[at->item].lane];
        if (due_after[i] < *due) *due = due_after[i];
        if (!plan->problem->items[at->item].item.acquires) {
            int32_t latest = item->last + 1 < *due ? item->last + 1 : *due;
            while (at->deadline < latest && room[at->deadline] >= item->stair_bytes)
                room[at->deadline++] -= item->stair_bytes;
        }
        int32_t complete = at->deadline + (weft_placement_blocks(at) ? 1 : 0);
        if (complete < *due) *due = complete;
        if (at->after >= 0 && *due < due_after[at->after]) due_after[at->after] = *due;
    }
}

static void pull_launches(struct weft_plan *plan, const bool *hooks, int64_t *rooms,
                          int32_t *begins)
{
    int32_t ahead[WEFT_MOST_LANES] = {0};
    for (int32_t i = 0; i < plan->n_placements; i++) {
        struct weft_placement *at = &plan->placements[i];
        const struct weft_item *item = &plan->problem->items[at->item].item;
        int64_t *room = rooms + weft_problem_stair_at(plan->problem, item);
        int32_t *launched = &ahead[plan->problem->items[at->item].lane];
        if (at->after >= 0 && begins[at->after] > *launched) *launched = begins[at->after];
        if (plan->problem->items[at->item].item.acquires) {
            const int32_t earliest = item->first > *launched ? item->first : *launched;
            const bool stays = weft_problem_must_block(plan->problem, item);
            int32_t least = at->launch;
            while (!stays && least > earliest && room[least - 1] >= item->stair_bytes)
                least--;
            while (least < at->launch && !hooks[least])
                least++;
            while (at->launch > least)
                room[--at->launch] -= item->stair_bytes;
        }
        if (at->launch > *launched) *launched = at->launch;
        begins[i] = *launched;
    }
}

enum weft_status weft_plan_relax(struct weft_plan *plan, int64_t limit_bytes,
                                 struct weft_error *err)
{
    bool changed;
    int32_t *scratch = calloc((size_t)plan->n_placements + 1, sizeof *scratch);
    bool *hooks = calloc((size_t)plan->problem->n_slots, sizeof *hooks);
    if (scratch == NULL || hooks == NULL) {
        free(scratch);
        free(hooks);
        return weft_fail_memory(err, "memory rows");
    }
    weft_problem_hooks(plan->problem, hooks);
    do {
        int64_t *totals = slot_totals(plan);
        if (totals == NULL) {
            free(scratch);
            free(hooks);
            return weft_fail_memory(err, "memory rows");
        }
        to_room(plan->problem, limit_bytes, totals);
        push_deadlines(plan, totals, scratch);
        pull_launches(plan, hooks, totals, scratch);
        free(totals);
        /* A gather that no longer blocks makes reductions ahead of it due a slot earlier, which
         * frees bytes. Each gather does so at most once. */
        changed =
            weft_placements_normalise(plan->problem, plan->placements, plan->n_placements, scratch);
    } while (changed);
    free(scratch);
    free(hooks);
    return WEFT_OK;
}
