/* SPDX-License-Identifier: Apache-2.0 */
/* Offloads state as far as the limit asks, until all fits. The unit that frees the most device
 * bytes for the time of moving its state goes first. Policies and placement are fsdp2's. */
#include <stdlib.h>

#include "scheduler/planners/ahead.h"
#include "scheduler/planners/locations.h"
#include "scheduler/planners/planners.h"

/* A location that a unit's state may have, with the device bytes that it frees for the time of
 * moving. */
struct freed {
    int32_t unit;
    enum weft_location location;
    double bytes_per_ns;
};

static double moving_ns(const struct weft_draft *draft, int32_t unit)
{
    double ns = 0;
    for (int32_t i = 0; i < draft->problem->n_items; i++) {
        const struct weft_item *item = weft_draft_item(draft, i);
        if (item->decision != unit || !weft_item_moves_state(item) ||
            !weft_item_active(item, draft->out->strategies))
            continue;
        ns += (double)item->n_blocks * (double)draft->problem->items[i].block_ns;
    }
    return ns;
}

/* The bytes of a unit's state that the device holds in all slots. */
static int64_t state_bytes(const struct weft_draft *draft, int32_t unit)
{
    const struct weft_problem_strategy *of =
        weft_problem_chosen(draft->problem, draft->out->strategies, unit);
    int64_t bytes = 0;
    for (int32_t i = 0; i < of->n_holds; i++) {
        const struct weft_hold *hold = &of->holds[i];
        const bool all = hold->first == 0 && hold->last == draft->problem->n_slots - 1;
        if (hold->category == WEFT_CATEGORY_OPTIMIZER_STATE && hold->tier == 0 && all)
            bytes += hold->bytes;
    }
    return bytes;
}

static int compare_freed(const void *a, const void *b)
{
    const struct freed *x = a, *y = b;
    if (x->bytes_per_ns != y->bytes_per_ns) return x->bytes_per_ns > y->bytes_per_ns ? -1 : 1;
    return x->unit != y->unit ? (x->unit < y->unit ? -1 : 1) : (int)x->location - (int)y->location;
}

/* Fills `freed` with all locations that state may move to, in the order of moving. Returns their
 * number. */
static int32_t rank_locations(struct weft_draft *draft, struct freed *freed)
{
    int32_t n = 0;
    for (int32_t u = 0; u < draft->problem->n_decisions; u++) {
        const int32_t before = draft->out->strategies[u];
        const int64_t bytes = state_bytes(draft, u);
        for (int location = WEFT_LOCATION_HOST; location < WEFT_LOCATION_COUNT; location++) {
            if (!weft_locations_move(draft, u, (enum weft_location)location)) continue;
            const double ns = moving_ns(draft, u);
            freed[n++] =
                (struct freed){u, (enum weft_location)location, (double)bytes / (ns > 1 ? ns : 1)};
            draft->out->strategies[u] = before;
        }
    }
    qsort(freed, (size_t)n, sizeof *freed, compare_freed);
    return n;
}

/* Places all items. True if they fit the device's memory; *others: if they fit all other tiers. */
static bool does_fit(struct weft_draft *draft, bool *others)
{
    const struct weft_problem *problem = draft->problem;
    weft_ahead_place(draft, 1);
    weft_locations_stream(draft);
    const int64_t peak_bytes = weft_draft_peak(draft, NULL);
    *others = true;
    for (int32_t r = problem->n_slots; r < weft_problem_n_rows(problem); r++)
        *others &= draft->rows[r] <= problem->tiers[r / problem->n_slots].limit_bytes;
    return peak_bytes <= problem->tiers[0].limit_bytes;
}

/* State stays on the device if its tier has no room for it. */
static void move_until_it_fits(struct weft_draft *draft, const struct freed *freed, int32_t n)
{
    bool others;
    for (int32_t i = 0; i < n && !does_fit(draft, &others); i++) {
        const int32_t unit = freed[i].unit, before = draft->out->strategies[unit];
        if (weft_problem_chosen(draft->problem, draft->out->strategies, unit)->location !=
            WEFT_LOCATION_DEVICE)
            continue;
        (void)weft_locations_move(draft, unit, freed[i].location);
        (void)does_fit(draft, &others);
        if (!others) draft->out->strategies[unit] = before;
    }
    (void)does_fit(draft, &others);
}

enum weft_status weft_rule_offload_greedy(struct weft_draft *draft, const int64_t *values,
                                          struct weft_error *err)
{
    const size_t most = (size_t)draft->problem->n_decisions * WEFT_LOCATION_COUNT;
    struct freed *freed = weft_pool_array(&draft->pool, most, sizeof *freed);
    (void)values;
    if (freed == NULL) return weft_fail_memory(err, "units");
    WEFT_TRY(weft_ahead_choose(draft, err));
    move_until_it_fits(draft, freed, rank_locations(draft, freed));
    return WEFT_OK;
}
