#include "plan/placement.h"

#include <stdlib.h>

static bool is_gather(const struct weft_problem *problem, const struct weft_placement *at)
{
    return problem->items[at->item].item.kind == WEFT_ALL_GATHER;
}

bool weft_placements_normalise(const struct weft_problem *problem,
                               struct weft_placement *placements, int32_t n_placements)
{
    bool changed = false;
    int32_t launched[WEFT_MOST_LANES] = {0}, due[WEFT_MOST_LANES];
    for (int32_t i = 0; i < n_placements; i++) {
        struct weft_placement *at = &placements[i];
        int32_t *ahead = &launched[problem->items[at->item].lane];
        if (at->launch < *ahead && is_gather(problem, at)) {
            at->launch = *ahead;
            changed = true;
        }
        if (at->launch > *ahead) *ahead = at->launch;
    }
    for (int32_t lane = 0; lane < problem->n_lanes; lane++)
        due[lane] = problem->n_slots;
    for (int32_t i = n_placements - 1; i >= 0; i--) {
        struct weft_placement *at = &placements[i];
        int32_t *behind = &due[problem->items[at->item].lane];
        if (at->deadline > *behind && !is_gather(problem, at)) {
            at->deadline = *behind;
            changed = true;
        }
        int32_t complete = at->deadline + (weft_placement_blocks(at) ? 1 : 0);
        if (complete < *behind) *behind = complete;
    }
    return changed;
}

int32_t weft_placements_stuck(const struct weft_problem *problem,
                              const struct weft_placement *placements, int32_t n_placements)
{
    int32_t ahead[WEFT_MOST_LANES] = {0};
    for (int32_t i = 0; i < n_placements; i++) {
        int32_t *launched = &ahead[problem->items[placements[i].item].lane];
        if (placements[i].launch > *launched) *launched = placements[i].launch;
        bool gathers = is_gather(problem, &placements[i]);
        if (gathers ? *launched > placements[i].deadline : *launched >= placements[i].deadline)
            return i;
    }
    return -1;
}

/* What is wrong with a placement by itself and after those before it; NULL when nothing is.
 * `blocks` counts the blocks of each item so far. */
static const char *placement_fault(const struct weft_problem *problem, const int32_t *strategies,
                                   const struct weft_placement *at, int32_t *blocks)
{
    const struct weft_item *item = &problem->items[at->item].item;
    if (!weft_problem_needs(problem, strategies, at->item)) {
        return "the strategies do not need this item";
    }
    if (at->block != blocks[at->item]++) return "blocks of an item are not in index order";
    bool gathers = item->kind == WEFT_ALL_GATHER;
    if (at->launch < item->first || at->launch > item->last + (gathers ? 1 : 0)) {
        return "launch is outside the item's window";
    }
    if (gathers ? at->deadline != item->last + 1
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
    const char *fault = NULL;
    int32_t at = 0;
    if (blocks == NULL || normal == NULL) {
        free(blocks);
        free(normal);
        return weft_fail_memory(err, "plan");
    }
    for (; fault == NULL && at < n_placements; at++) {
        fault = placement_fault(problem, strategies, &placements[at], blocks);
        normal[at] = placements[at];
    }
    at--;
    if (fault == NULL) {
        weft_placements_normalise(problem, normal, n_placements);
        for (size_t i = 0; fault == NULL && i < n; i++) {
            at = (int32_t)i;
            if (normal[i].launch != placements[i].launch) {
                fault = "its launch is before one ahead of it on its lane";
            } else if (normal[i].deadline != placements[i].deadline) {
                fault = "its deadline is behind one behind it on its lane";
            }
        }
    }
    if (fault == NULL) {
        at = weft_placements_stuck(problem, placements, n_placements);
        if (at >= 0) fault = "it is due before something ahead of it on its lane is launched";
    }
    free(blocks);
    free(normal);
    if (fault == NULL) return WEFT_OK;
    return weft_fail(err, WEFT_E_DATA, "%s: placements[%d]: %s", where, at, fault);
}
