/* SPDX-License-Identifier: Apache-2.0 */
/* DeepCompile over ZeRO 3. In forward and in backward, from the last slot to the first, gathers are
 * moved ahead of their uses as far as a memory profile allows. The rest of memory then keeps units
 * gathered between forward and backward. */
#include "scheduler/planners/deepcompile.h"

#include <string.h>

#include "scheduler/planners/planners.h"

const struct weft_setting weft_deepcompile_settings[] = {
    {"published", {90, 1, 1}},
    {"prefetch", {90, 1, 0}},
    {"unshard", {90, 0, 1}},
    {"100%", {100, 1, 1}},
    {"100%-prefetch", {100, 1, 0}},
    {"100%-unshard", {100, 0, 1}},
    {NULL, {0}},
};

static const int64_t MOST_HELD_BYTES = 4000000000, MOST_FUSED_BYTES = 1000000000;

static int64_t bytes_of(const struct weft_deepcompile *run, int32_t index)
{
    const struct weft_item *item = weft_draft_item(run->draft, index);
    return item->n_blocks * item->block_bytes;
}

static double predicted_ns(const struct weft_deepcompile *run, int64_t bytes)
{
    return bytes > 0 ? run->line.fixed_ns + run->line.ns_per_byte * (double)bytes : 0;
}

/* Adds a gather to the newest group if together they are not much slower than the slower alone.
 * Otherwise begins a group. */
static void hold_gather(struct weft_deepcompile *run, int32_t item)
{
    int64_t bytes = bytes_of(run, item), together = run->group_bytes + bytes;
    double apart_ns = predicted_ns(run, run->group_bytes), own_ns = predicted_ns(run, bytes);
    if (own_ns > apart_ns) apart_ns = own_ns;
    bool open = run->first_held < run->n_held && run->group[run->n_held - 1] == run->n_groups;
    bool fuses = apart_ns * 1.2 > predicted_ns(run, together) && together < MOST_FUSED_BYTES;
    if (!open || !fuses) {
        run->n_groups++;
        run->group_bytes = 0;
    }
    run->held[run->n_held] = item;
    run->group[run->n_held++] = run->n_groups;
    run->group_bytes += bytes;
    run->held_bytes += bytes;
}

/* Launches the oldest group in `slot`. */
static void launch_group(struct weft_deepcompile *run, int32_t slot)
{
    int32_t group = run->group[run->first_held];
    while (run->first_held < run->n_held && run->group[run->first_held] == group) {
        int32_t item = run->held[run->first_held++];
        run->slots[item] = slot;
        run->held_bytes -= bytes_of(run, item);
    }
    if (run->first_held == run->n_held) run->group_bytes = 0;
}

/* Moves gathers ahead, from the last slot of a forward or backward to its first. Gathers may be
 * held across a slot if they fit next to its profile. */
static void move_ahead(struct weft_deepcompile *run, int32_t first, int32_t last)
{
    const struct weft_draft *draft = run->draft;
    run->first_held = run->n_held = run->n_groups = 0;
    run->held_bytes = run->group_bytes = 0;
    for (int32_t s = last; s >= first; s--) {
        while (run->first_held < run->n_held &&
               (run->profile[s] + run->held_bytes > run->budget_bytes ||
                run->held_bytes > MOST_HELD_BYTES))
            launch_group(run, s + 1);
        for (int32_t i = draft->n_gathers - 1; i >= 0; i--)
            if (weft_draft_item(draft, draft->gathers[i])->last + 1 == s)
                hold_gather(run, draft->gathers[i]);
    }
    while (run->first_held < run->n_held)
        launch_group(run, first);
}

static void move_all_ahead(struct weft_deepcompile *run)
{
    const struct weft_problem *problem = run->draft->problem;
    for (int32_t s = 0, end; s < problem->n_slots; s = end) {
        enum weft_slot_kind kind = problem->slots[s].kind;
        end = s + 1;
        if (kind != WEFT_SLOT_FORWARD && kind != WEFT_SLOT_BACKWARD) continue;
        while (end < problem->n_slots && problem->slots[end].kind == kind &&
               run->draft->micro[end] == run->draft->micro[s])
            end++;
        move_ahead(run, s, end - 1);
    }
}

/* Places gathers in the slots chosen for them, and reductions at once. */
static void place_items(struct weft_deepcompile *run)
{
    struct weft_draft *draft = run->draft;
    for (int32_t i = 0; i < draft->n_gathers; i++)
        weft_draft_gather_all(draft, draft->gathers[i], run->slots[draft->gathers[i]]);
    weft_draft_reduce_at_once(draft);
}

void weft_deepcompile_on_demand(struct weft_deepcompile *run)
{
    struct weft_draft *draft = run->draft;
    weft_draft_take(draft);
    for (int32_t i = 0; i < draft->n_gathers; i++)
        run->slots[draft->gathers[i]] = weft_draft_item(draft, draft->gathers[i])->last + 1;
    place_items(run);
}

void weft_deepcompile_prefetch(struct weft_deepcompile *run)
{
    struct weft_draft *draft = run->draft;
    (void)weft_draft_peak(draft, NULL);
    memcpy(run->profile, draft->rows, (size_t)draft->problem->n_slots * sizeof *run->profile);
    move_all_ahead(run);
    weft_draft_take(draft);
    place_items(run);
}

/* The time of all gathers of a unit, and the bytes of one. */
static void gather_cost(const struct weft_draft *draft, int32_t unit, double *ns, double *bytes)
{
    *ns = *bytes = 0;
    for (int32_t i = 0; i < draft->n_gathers; i++) {
        const struct weft_problem_item *item = &draft->problem->items[draft->gathers[i]];
        if (item->item.decision != unit) continue;
        *ns += (double)item->item.n_blocks * (double)item->block_ns;
        *bytes = (double)item->item.n_blocks * (double)item->item.block_bytes;
    }
}

/* Fills `units` with the sharded units, most time a byte first, equal ones in order. Returns their
 * number. */
static int32_t sort_units(const struct weft_draft *draft, int32_t *units)
{
    int32_t n = 0;
    for (int32_t u = 0; u < draft->problem->n_decisions; u++) {
        double ns, bytes, other_ns, other_bytes;
        int32_t at = n;
        if (weft_draft_policy(draft, u) != WEFT_POLICY_FSDP) continue;
        gather_cost(draft, u, &ns, &bytes);
        for (; at > 0; at--) {
            gather_cost(draft, units[at - 1], &other_ns, &other_bytes);
            if (other_ns * bytes >= ns * other_bytes) break;
            units[at] = units[at - 1];
        }
        units[at] = u;
        n++;
    }
    return n;
}

/* Keeps units gathered in that order, up to the first that does not fit. Gathers that were moved
 * ahead stay there. */
static enum weft_status keep_units(struct weft_deepcompile *run, struct weft_error *err)
{
    static const enum weft_policy kept[] = {WEFT_POLICY_SDP, WEFT_POLICY_COUNT};
    struct weft_draft *draft = run->draft;
    int32_t *units =
        weft_pool_array(&draft->pool, (size_t)draft->problem->n_decisions, sizeof *units);
    if (!units) return weft_fail_memory(err, "a profile");
    int64_t room = run->budget_bytes - weft_draft_peak(draft, NULL);
    int32_t n = sort_units(draft, units);
    for (int32_t i = 0; i < n; i++) {
        double ns, bytes;
        gather_cost(draft, units[i], &ns, &bytes);
        if (bytes > (double)room) break;
        room -= (int64_t)bytes;
        WEFT_TRY(weft_draft_choose(draft, units[i], kept, err));
    }
    weft_draft_take(draft);
    place_items(run);
    return WEFT_OK;
}

int64_t weft_deepcompile_budget(const struct weft_problem *problem, int64_t percent)
{
    int64_t limit_bytes = problem->tiers[0].limit_bytes;
    return limit_bytes < INT64_MAX / 100 ? limit_bytes * percent / 100 : INT64_MAX / 2;
}

enum weft_status weft_deepcompile_init(struct weft_draft *draft, int64_t percent,
                                       struct weft_deepcompile *out, struct weft_error *err)
{
    const struct weft_problem *problem = draft->problem;
    struct weft_pool *pool = &draft->pool;
    size_t n_items = (size_t)problem->n_items;
    *out = (struct weft_deepcompile){.draft = draft};
    out->profile = weft_pool_array(pool, (size_t)problem->n_slots, sizeof *out->profile);
    out->held = weft_pool_array(pool, n_items, sizeof *out->held);
    out->group = weft_pool_array(pool, n_items, sizeof *out->group);
    out->slots = weft_pool_array(pool, n_items, sizeof *out->slots);
    if (!out->profile || !out->held || !out->group || !out->slots)
        return weft_fail_memory(err, "a profile");
    out->line = weft_draft_line_of(problem, WEFT_ALL_GATHER);
    out->budget_bytes = weft_deepcompile_budget(problem, percent);
    return WEFT_OK;
}

enum weft_status weft_rule_deepcompile(struct weft_draft *draft, const int64_t *values,
                                       struct weft_error *err)
{
    struct weft_deepcompile run;
    WEFT_TRY(weft_deepcompile_init(draft, values[0], &run, err));
    WEFT_TRY(weft_draft_choose_all(draft, weft_draft_sharded, err));
    weft_deepcompile_on_demand(&run);
    if (values[1] != 0) weft_deepcompile_prefetch(&run);
    return values[2] != 0 ? keep_units(&run, err) : WEFT_OK;
}
