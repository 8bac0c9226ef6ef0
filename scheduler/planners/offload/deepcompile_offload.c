/* SPDX-License-Identifier: Apache-2.0 */
/* DeepCompile with optimizer state offloaded as far as a profile asks. When forward begins, state
 * is copied to the host, the first unit's first. It is the state of as many units as forward will
 * have no room for. Each copy is complete before the layer that needs its room. State is back
 * before the first update. In a rotated period it comes back as soon as the rest of backward has
 * room for it. */
#include <string.h>

#include "scheduler/planners/deepcompile.h"
#include "scheduler/planners/locations.h"
#include "scheduler/planners/planners.h"

const struct weft_setting weft_deepcompile_offload_settings[] = {
    {"published", {80, 0, 0}},
    {"prefetch", {80, 90, 0}},
    {"100%", {100, 0, 1}},
    {"100%-prefetch", {100, 100, 1}},
    {NULL, {0}},
};

/* The decision on a unit's state. */
struct stay {
    int64_t bytes; /* 0: it cannot move */
    bool offloaded;
    int32_t gone; /* slot; the state is on the host by its end */
    int32_t back; /* slot; the copy back is launched at its start */
};

struct offload {
    struct weft_draft *draft;
    const int64_t *values;
    int64_t budget_bytes;
    int64_t left_bytes; /* of all state that is not offloaded */
    int64_t *rows; /* [n_slots]: of the device, with all state offloaded and gathers on demand */
    struct stay *stays; /* by unit */
    int32_t fill;
};

/* Offloads all state to the host. Adds up the bytes of units' state while it is on the device. */
static void send_all_offloaded(struct offload *run)
{
    const struct weft_problem *problem = run->draft->problem;
    for (int32_t u = 0; u < problem->n_decisions; u++)
        run->stays[u].offloaded = weft_locations_move(run->draft, u, WEFT_LOCATION_HOST);
    for (int32_t i = 0; i < problem->n_items; i++) {
        const struct weft_item *item = weft_draft_item(run->draft, i);
        struct stay *stay = &run->stays[item->decision];
        if (!stay->offloaded || !weft_item_moves_state(item) || item->acquires ||
            !weft_item_active(item, run->draft->out->strategies))
            continue;
        stay->bytes = item->n_blocks * item->stair_bytes;
        run->left_bytes += stay->bytes;
    }
}

/* Offloads the state of more units, the first unit first, until such a row has room. The state is
 * gone by the end of slot `gone`. */
static void make_room(struct offload *run, int64_t row_bytes, int32_t gone, int32_t *next)
{
    for (; *next < run->draft->problem->n_decisions &&
           row_bytes + run->left_bytes > run->budget_bytes;
         ++*next) {
        run->left_bytes -= run->stays[*next].bytes;
        run->stays[*next].gone = gone;
    }
}

/* True if a slot asks for room: a slot of forward, or of backward if the setting says so. */
static bool does_ask(const struct offload *run, int32_t slot)
{
    const enum weft_slot_kind kind = run->draft->problem->slots[slot].kind;
    const bool is_backward = kind == WEFT_SLOT_BACKWARD || kind == WEFT_SLOT_DRAIN;
    return kind == WEFT_SLOT_FORWARD || (is_backward && run->values[2] != 0);
}

/* Chooses the units with offloaded state. It follows the order of a step, which in a rotated period
 * ends in the period's first slots. Other state stays on the device, if it may be there. */
static void choose_offloaded(struct offload *run)
{
    const struct weft_problem *problem = run->draft->problem;
    int64_t most = 0;
    int32_t next = 0;
    for (int32_t i = 1; i < problem->n_slots; i++) {
        const int32_t s = (run->fill + i) % problem->n_slots;
        if (!does_ask(run, s)) continue;
        if (run->rows[s] > most) most = run->rows[s];
        make_room(run, most, (s > run->fill ? s : problem->n_slots) - 1, &next);
    }
    for (int32_t u = 0; u < problem->n_decisions; u++) {
        struct stay *stay = &run->stays[u];
        if (stay->offloaded && u < next) continue;
        stay->gone = WEFT_DRAFT_NOT_WAITED_FOR;
        stay->offloaded =
            stay->offloaded && !weft_locations_move(run->draft, u, WEFT_LOCATION_DEVICE);
        if (stay->offloaded) run->left_bytes -= stay->bytes;
    }
}

/* The number of slots of the backward that begins a rotated period; 0 in other periods. */
static int32_t backward_end(const struct weft_problem *problem)
{
    int32_t end = 0;
    while (problem->slots[end].kind == WEFT_SLOT_BACKWARD)
        end++;
    return end;
}

/* After each slot of that backward, state comes back if the rest of backward has room for it. After
 * the last one all other state comes back. State that is updated first comes last, so that its
 * update waits for all. */
static void choose_back(struct offload *run)
{
    const int32_t end = backward_end(run->draft->problem);
    int32_t next = run->draft->problem->n_decisions - 1;
    for (int32_t s = end - 2; s >= 0; s--)
        if (run->rows[s + 1] > run->rows[s]) run->rows[s] = run->rows[s + 1];
    for (int32_t s = 0; s <= end; s++) {
        for (; next >= 0; next--) {
            struct stay *stay = &run->stays[next];
            const bool fits =
                s == end || run->rows[s] + run->left_bytes + stay->bytes < run->budget_bytes;
            if (stay->offloaded && !fits) break;
            stay->back = s < end ? s + 1 : end;
            if (stay->offloaded) run->left_bytes += stay->bytes;
        }
    }
}

static void place_state(struct offload *run)
{
    struct weft_draft *draft = run->draft;
    /* Items are in order of units, so the first unit's state goes first. */
    for (int32_t i = 0; i < draft->problem->n_items; i++) {
        const struct weft_item *item = weft_draft_item(draft, i);
        if (!weft_item_moves_state(item) || item->acquires ||
            !weft_item_active(item, draft->out->strategies))
            continue;
        weft_draft_reduce_all(draft, i, run->fill + 1, run->stays[item->decision].gone);
    }
    for (int32_t i = draft->problem->n_items - 1; i >= 0; i--) {
        const struct weft_item *item = weft_draft_item(draft, i);
        if (!weft_item_moves_state(item) || !item->acquires ||
            !weft_item_active(item, draft->out->strategies))
            continue;
        weft_draft_gather_all(draft, i, run->stays[item->decision].back);
    }
    draft->streams = true;
}

static enum weft_status begin_profile(struct offload *run, struct weft_error *err)
{
    const struct weft_problem *problem = run->draft->problem;
    struct weft_pool *pool = &run->draft->pool;
    run->budget_bytes = weft_deepcompile_budget(problem, run->values[0]);
    run->rows = weft_pool_array(pool, (size_t)problem->n_slots, sizeof *run->rows);
    run->stays = weft_pool_array(pool, (size_t)problem->n_decisions, sizeof *run->stays);
    if (!run->rows || !run->stays) return weft_fail_memory(err, "a profile");
    while (problem->slots[run->fill].kind != WEFT_SLOT_FILL)
        run->fill++;
    return WEFT_OK;
}

static void decide_state(struct offload *run, struct weft_deepcompile *gathers)
{
    struct weft_draft *draft = run->draft;
    send_all_offloaded(run);
    weft_deepcompile_on_demand(gathers);
    (void)weft_draft_peak(draft, NULL);
    memcpy(run->rows, draft->rows, (size_t)draft->problem->n_slots * sizeof *run->rows);
    choose_offloaded(run);
    choose_back(run);
    weft_deepcompile_on_demand(gathers);
    place_state(run);
    if (run->values[1] == 0) return;
    weft_deepcompile_prefetch(gathers);
    place_state(run);
}

enum weft_status weft_rule_deepcompile_offload(struct weft_draft *draft, const int64_t *values,
                                               struct weft_error *err)
{
    struct weft_deepcompile gathers;
    struct offload run = {.draft = draft, .values = values};
    if (draft->problem->period.update_after > 0)
        return weft_fail(err, WEFT_E_INFEASIBLE,
                         "planner %s: its rule has all state back before the first update, and "
                         "units are updated in backward: set plan.update_in to \"forward\"",
                         draft->planner);
    WEFT_TRY(weft_deepcompile_init(draft, values[1], &gathers, err));
    WEFT_TRY(begin_profile(&run, err));
    WEFT_TRY(weft_draft_choose_all(draft, weft_draft_sharded, err));
    decide_state(&run, &gathers);
    return WEFT_OK;
}
