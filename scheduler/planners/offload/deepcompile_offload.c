/* DeepCompile with the optimizer's state away as far as a profile asks. When forward begins, the
 * state of as many units as the forward will have no room for is copied to the host, the first
 * unit's first, and each is gone before the layer that has no room for it. It is back before the
 * first update: in a rotated period from where the rest of backward has room for it. */
#include <string.h>

#include "scheduler/planners/deepcompile.h"
#include "scheduler/planners/homes.h"
#include "scheduler/planners/planners.h"

const struct weft_setting weft_deepcompile_offload_settings[] = {
    {"published", {80, 0, 0}},
    {"prefetch", {80, 90, 0}},
    {"100%", {100, 0, 1}},
    {"100%-prefetch", {100, 100, 1}},
    {NULL, {0}},
};

/* What is decided of a unit's state. */
struct stay {
    int64_t bytes; /* 0: it cannot move */
    bool away;
    int32_t gone; /* slot by whose end it is on the host */
    int32_t back; /* slot at whose start it is launched back */
};

struct offload {
    struct weft_draft *draft;
    const int64_t *values;
    int64_t budget_bytes;
    int64_t left_bytes; /* of all state that is not away */
    int64_t *rows;      /* [n_slots]: of the device, with all state away and gathers on demand */
    struct stay *stays; /* by unit */
    int32_t fill;
};

/* Sends all state to the host, with what then is on the device when it is not there. */
static void send_all_away(struct offload *run)
{
    const struct weft_problem *problem = run->draft->problem;
    for (int32_t u = 0; u < problem->n_decisions; u++)
        run->stays[u].away = weft_homes_move(run->draft, u, WEFT_HOME_HOST);
    for (int32_t i = 0; i < problem->n_items; i++) {
        const struct weft_item *item = weft_draft_item(run->draft, i);
        struct stay *stay = &run->stays[item->decision];
        if (!stay->away || !weft_item_moves_state(item) || item->acquires ||
            !weft_item_active(item, run->draft->out->strategies))
            continue;
        stay->bytes = item->n_blocks * item->stair_bytes;
        run->left_bytes += stay->bytes;
    }
}

/* Sends as many away, the first unit first, as leave room for such a row; gone by the end of a
 * slot. */
static void make_room(struct offload *run, int64_t row_bytes, int32_t gone, int32_t *next)
{
    for (; *next < run->draft->problem->n_decisions &&
           row_bytes + run->left_bytes > run->budget_bytes;
         ++*next) {
        run->left_bytes -= run->stays[*next].bytes;
        run->stays[*next].gone = gone;
    }
}

/* Whether a slot asks for room: forward's do, and as set those of backward. */
static bool does_ask(const struct offload *run, int32_t slot)
{
    const enum weft_slot_kind kind = run->draft->problem->slots[slot].kind;
    const bool is_backward = kind == WEFT_SLOT_BACKWARD || kind == WEFT_SLOT_DRAIN;
    return kind == WEFT_SLOT_FORWARD || (is_backward && run->values[2] != 0);
}

/* In the order of a step, which in a rotated period ends in its first slots. What was sent away
 * stays there. Other state stays on the device, if it may be there. */
static void choose_away(struct offload *run)
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
        if (stay->away && u < next) continue;
        stay->gone = WEFT_DRAFT_NOT_WAITED_FOR;
        stay->away = stay->away && !weft_homes_move(run->draft, u, WEFT_HOME_DEVICE);
        if (stay->away) run->left_bytes -= stay->bytes;
    }
}

/* Slots of the backward that a rotated period begins with; 0 in others. */
static int32_t backward_end(const struct weft_problem *problem)
{
    int32_t end = 0;
    while (problem->slots[end].kind == WEFT_SLOT_BACKWARD)
        end++;
    return end;
}

/* Behind each slot of that backward comes back what the rest of it has room for; behind the last
 * one all that is left. What is updated first stands last, so that it waits for all. */
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
            if (stay->away && !fits) break;
            stay->back = s < end ? s + 1 : end;
            if (stay->away) run->left_bytes += stay->bytes;
        }
    }
}

static void place_state(struct offload *run)
{
    struct weft_draft *draft = run->draft;
    /* The list is in order of units. */
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

static enum weft_status begin(struct offload *run, struct weft_error *err)
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
    send_all_away(run);
    weft_deepcompile_on_demand(gathers);
    (void)weft_draft_peak(draft, NULL);
    memcpy(run->rows, draft->rows, (size_t)draft->problem->n_slots * sizeof *run->rows);
    choose_away(run);
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
    WEFT_TRY(weft_deepcompile_init(draft, values[1], &gathers, err));
    WEFT_TRY(begin(&run, err));
    WEFT_TRY(weft_draft_choose_all(draft, weft_draft_sharded, err));
    decide_state(&run, &gathers);
    return WEFT_OK;
}
