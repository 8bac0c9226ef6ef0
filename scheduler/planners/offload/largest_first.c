/* SPDX-License-Identifier: Apache-2.0 */
/* FSDP2's partial offload: the largest units go to the host, which updates them, as many as the
 * limit asks for. Policies and placement are fsdp2's. */
#include <stdlib.h>
#include <string.h>

#include "scheduler/planners/ahead.h"
#include "scheduler/planners/locations.h"
#include "scheduler/planners/planners.h"

struct sized {
    const char *name;
    int64_t elements;
    int32_t unit;
};

static int compare_sized(const void *a, const void *b)
{
    const struct sized *x = a, *y = b;
    if (x->elements != y->elements) return x->elements > y->elements ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* Fills `units` with those that the host may update, the largest first; equal ones go by name, as
 * in the source. *n: their number. The draft has fsdp2's policies afterwards. */
static enum weft_status sort_units(struct weft_draft *draft, struct sized *units, int32_t *n,
                                   struct weft_error *err)
{
    *n = 0;
    WEFT_TRY(weft_ahead_choose(draft, err));
    for (int32_t u = 0; u < draft->problem->n_decisions; u++) {
        const struct weft_problem_decision *it = &draft->problem->decisions[u];
        const int32_t before = draft->out->strategies[u];
        if (!weft_locations_update_one(draft, u)) continue;
        draft->out->strategies[u] = before;
        units[(*n)++] = (struct sized){it->name, it->elements, u};
    }
    qsort(units, (size_t)*n, sizeof *units, compare_sized);
    return WEFT_OK;
}

/* Places fsdp2 with the first k units updated on the host. */
static enum weft_status place_offloaded(struct weft_draft *draft, const struct sized *units,
                                        int32_t k, int32_t depth, struct weft_error *err)
{
    WEFT_TRY(weft_ahead_choose(draft, err));
    for (int32_t i = 0; i < k; i++)
        (void)weft_locations_update_one(draft, units[i].unit);
    weft_ahead_place(draft, depth);
    weft_locations_update(draft);
    weft_draft_fill(draft);
    return WEFT_OK;
}

/* The source takes the largest parameters up to a budget of bytes. Here the budget is the least
 * that fits, by bisection. */
enum weft_status weft_rule_largest_first_offload(struct weft_draft *draft, const int64_t *values,
                                                 struct weft_error *err)
{
    const size_t n_units = (size_t)draft->problem->n_decisions;
    struct sized *units = weft_pool_array(&draft->pool, n_units, sizeof *units);
    int32_t n, too_few = -1, enough;
    if (units == NULL) return weft_fail_memory(err, "units");
    WEFT_TRY(sort_units(draft, units, &n, err));
    enough = n;
    while (enough - too_few > 1) {
        const int32_t k = too_few + (enough - too_few) / 2;
        WEFT_TRY(place_offloaded(draft, units, k, (int32_t)values[0], err));
        if (weft_draft_peak(draft, NULL) <= draft->problem->tiers[0].limit_bytes)
            enough = k;
        else
            too_few = k;
    }
    return place_offloaded(draft, units, enough, (int32_t)values[0], err);
}
