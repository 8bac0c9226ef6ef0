#include <stdlib.h>

#include "plan/placement.h"
#include "plan/plan.h"

static bool is_gather(const struct weft_plan *plan, const struct weft_placement *at)
{
    return plan->problem->items[at->item].item.acquires;
}

/* Adds to the slots of a hold; `stride` is the distance between slots in the array. */
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

static void add_holds(int64_t *rows, int32_t n_slots, const struct weft_hold *holds,
                      int32_t n_holds)
{
    for (int32_t i = 0; i < n_holds; i++) {
        add_slots(rows + holds[i].category, WEFT_CATEGORY_COUNT, n_slots, holds[i].first,
                  holds[i].last, holds[i].bytes);
    }
}

void weft_plan_rows(const struct weft_plan *plan, int64_t *rows)
{
    const struct weft_problem *problem = plan->problem;
    int32_t n_slots = problem->n_slots;
    for (int32_t i = 0; i < n_slots * WEFT_CATEGORY_COUNT; i++)
        rows[i] = 0;
    add_holds(rows, n_slots, problem->common, problem->n_common);
    for (int32_t u = 0; u < problem->n_decisions; u++) {
        const struct weft_problem_strategy *of = weft_plan_chosen(plan, u);
        add_holds(rows, n_slots, of->holds, of->n_holds);
    }
    for (int32_t i = 0; i < plan->n_placements; i++) {
        const struct weft_placement *at = &plan->placements[i];
        const struct weft_item *item = &problem->items[at->item].item;
        if (weft_placement_blocks(at)) continue;
        add_slots(rows + item->stair_category, WEFT_CATEGORY_COUNT, n_slots,
                  is_gather(plan, at) ? at->launch : item->first, at->deadline - 1,
                  item->stair_bytes);
    }
}

/* Sums by slot alone: totals[n_slots], or NULL. The caller frees. */
static int64_t *slot_totals(const struct weft_plan *plan)
{
    int32_t n_slots = plan->problem->n_slots;
    int64_t *rows = calloc((size_t)n_slots * WEFT_CATEGORY_COUNT, sizeof *rows);
    if (rows == NULL) return NULL;
    weft_plan_rows(plan, rows);
    for (int32_t s = 0; s < n_slots; s++) {
        int64_t total = 0;
        for (int32_t c = 0; c < WEFT_CATEGORY_COUNT; c++)
            total += rows[s * WEFT_CATEGORY_COUNT + c];
        rows[s] = total; /* behind what is still to be read */
    }
    return rows;
}

int64_t weft_plan_peak(const struct weft_plan *plan, int32_t *slot)
{
    int64_t peak = -1;
    int32_t peak_slot = 0;
    int64_t *totals = slot_totals(plan);
    for (int32_t s = 0; totals != NULL && s < plan->problem->n_slots; s++) {
        if (totals[s] > peak) {
            peak = totals[s];
            peak_slot = s;
        }
    }
    free(totals);
    if (slot != NULL) *slot = peak_slot;
    return peak;
}

/* From the end of every lane to its start, so that what is behind has moved already. */
static void push_deadlines(struct weft_plan *plan, int64_t *totals, int64_t limit_bytes,
                           int32_t *due_after)
{
    int32_t behind[WEFT_MOST_LANES];
    for (int32_t lane = 0; lane < plan->problem->n_lanes; lane++)
        behind[lane] = plan->problem->n_slots;
    for (int32_t i = 0; i < plan->n_placements; i++)
        due_after[i] = plan->problem->n_slots;
    for (int32_t i = plan->n_placements - 1; i >= 0; i--) {
        struct weft_placement *at = &plan->placements[i];
        const struct weft_item *item = &plan->problem->items[at->item].item;
        int32_t *due = &behind[plan->problem->items[at->item].lane];
        if (due_after[i] < *due) *due = due_after[i];
        if (!is_gather(plan, at)) {
            int32_t latest = item->last + 1 < *due ? item->last + 1 : *due;
            while (at->deadline < latest &&
                   totals[at->deadline] <= limit_bytes - item->stair_bytes) {
                totals[at->deadline++] += item->stair_bytes;
            }
        }
        int32_t complete = at->deadline + (weft_placement_blocks(at) ? 1 : 0);
        if (complete < *due) *due = complete;
        if (at->after >= 0 && *due < due_after[at->after]) due_after[at->after] = *due;
    }
}

static void pull_launches(struct weft_plan *plan, int64_t *totals, int64_t limit_bytes,
                          int32_t *begins)
{
    int32_t ahead[WEFT_MOST_LANES] = {0};
    for (int32_t i = 0; i < plan->n_placements; i++) {
        struct weft_placement *at = &plan->placements[i];
        const struct weft_item *item = &plan->problem->items[at->item].item;
        int32_t *launched = &ahead[plan->problem->items[at->item].lane];
        if (at->after >= 0 && begins[at->after] > *launched) *launched = begins[at->after];
        if (is_gather(plan, at)) {
            int32_t earliest = item->first > *launched ? item->first : *launched;
            while (at->launch > earliest &&
                   totals[at->launch - 1] <= limit_bytes - item->stair_bytes) {
                totals[--at->launch] += item->stair_bytes;
            }
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
    if (scratch == NULL) return weft_fail_memory(err, "memory rows");
    do {
        int64_t *totals = slot_totals(plan);
        if (totals == NULL) {
            free(scratch);
            return weft_fail_memory(err, "memory rows");
        }
        push_deadlines(plan, totals, limit_bytes, scratch);
        pull_launches(plan, totals, limit_bytes, scratch);
        free(totals);
        /* A gather that no longer blocks makes reductions ahead of it due a slot earlier, and their
         * bytes are free for others. Each gather can do so once. */
        changed =
            weft_placements_normalise(plan->problem, plan->placements, plan->n_placements, scratch);
    } while (changed);
    free(scratch);
    return WEFT_OK;
}
