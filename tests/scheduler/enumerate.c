#include "enumerate.h"

#include <criterion/criterion.h>
#include <string.h>

struct placed {
    int32_t item, launch, deadline; /* equal for a blocking gather */
};

struct state {
    const struct weft_problem *problem;
    int64_t limit_bytes, best_ns, best_peak;
    enum weft_policy policies[ENUMERATE_MOST_UNITS], best_policies[ENUMERATE_MOST_UNITS];
    struct placed placed[ENUMERATE_MOST_MOVES];
    int32_t n_placed;
    int32_t left[5 * ENUMERATE_MOST_UNITS], n_left;
    int64_t rows[ENUMERATE_MOST_SLOTS];
};

static void add_hold(struct state *state, const struct weft_hold *hold)
{
    int32_t n = state->problem->n_slots, s = hold->first;
    for (;;) {
        state->rows[s] += hold->bytes;
        if (s == hold->last) return;
        s = (s + 1) % n;
    }
}

static int64_t slot_time(const struct state *state, int32_t slot)
{
    const struct weft_slot *at = &state->problem->slots[slot];
    if (at->kind != WEFT_SLOT_UPDATE) return state->problem->slot_ns[slot];
    return state->problem->units[at->index].update_ns[state->policies[at->index]];
}

static int32_t needed(const struct state *state, int32_t next, int32_t slot, bool blocking)
{
    int32_t need = next;
    for (int32_t k = next; k < state->n_placed; k++) {
        const struct placed *at = &state->placed[k];
        if ((at->launch == at->deadline) == blocking && at->deadline <= slot) need = k + 1;
    }
    return need;
}

/* Event by event: a collective starts when the channel is free and its launch slot has begun. */
static int64_t step_time(const struct state *state)
{
    int64_t starts[ENUMERATE_MOST_SLOTS], now = 0, channel = 0;
    int32_t next = 0;
    for (int32_t s = 0; s < state->problem->n_slots; s++) {
        starts[s] = now;
        for (int blocking = 0; blocking < 2; blocking++) {
            int32_t need = needed(state, next, s, blocking != 0);
            bool waits = need > next;
            for (; next < need; next++) {
                int64_t launched = starts[state->placed[next].launch];
                channel = (channel > launched ? channel : launched) +
                          state->problem->items[state->placed[next].item].block_ns;
            }
            if (waits && channel > now) now = channel;
            if (!blocking) starts[s] = now;
        }
        now += slot_time(state, s);
    }
    return now + state->problem->agree_ns;
}

static void leaf(struct state *state)
{
    int64_t peak = 0;
    for (int32_t s = 0; s < state->problem->n_slots; s++)
        if (state->rows[s] > peak) peak = state->rows[s];
    if (state->best_peak < 0 || peak < state->best_peak) state->best_peak = peak;
    if (peak > state->limit_bytes) return;
    int64_t ns = step_time(state);
    if (state->best_ns >= 0 && ns >= state->best_ns) return;
    state->best_ns = ns;
    memcpy(state->best_policies, state->policies, sizeof state->policies);
}

static void add_stair(struct state *state, int32_t first, int32_t last, int64_t bytes)
{
    for (int32_t s = first; s <= last; s++)
        state->rows[s] += bytes;
}

/* Every block next, at every slot that keeps the normal form (plan.h), so that nothing else is
 * another plan. A reduction launched later than it could be is no faster. */
static void extend(struct state *state, int32_t launch, int32_t deadline)
{
    if (state->n_left == 0) {
        leaf(state);
        return;
    }
    for (int32_t i = 0; i < state->problem->n_items; i++) {
        if (state->left[i] == 0) continue;
        const struct weft_item *item = &state->problem->items[i].item;
        bool gathers = item->kind == WEFT_ALL_GATHER;
        for (int32_t s = item->first; s <= item->last + (gathers ? 1 : 0); s++) {
            struct placed placed = {.item = i,
                                    .launch = gathers ? s : item->first,
                                    .deadline = gathers ? item->last + 1 : s + 1};
            if (gathers && placed.launch < launch) continue;
            if (placed.launch < launch) placed.launch = launch;
            /* The slot by whose start it, and what is ahead of it, is complete. */
            int32_t complete = placed.deadline + (placed.launch == placed.deadline && gathers);
            if (complete < deadline || placed.launch >= complete) continue;
            int32_t first = gathers ? placed.launch : item->first;
            int32_t last = gathers ? item->last : placed.deadline - 1;
            add_stair(state, first, last, item->stair_bytes);
            state->placed[state->n_placed++] = placed;
            state->left[i]--;
            state->n_left--;
            /* A gather's deadline binds only those before it that are reductions. */
            extend(state, placed.launch, gathers ? deadline : placed.deadline);
            state->n_left++;
            state->left[i]++;
            state->n_placed--;
            add_stair(state, first, last, -item->stair_bytes);
        }
    }
}

static void with_policies(struct state *state)
{
    const struct weft_problem *problem = state->problem;
    memset(state->rows, 0, sizeof state->rows);
    state->n_left = 0;
    for (int32_t i = 0; i < problem->n_common; i++)
        add_hold(state, &problem->common[i]);
    for (int32_t u = 0; u < problem->n_units; u++)
        for (int32_t i = 0; i < problem->units[u].n_holds[state->policies[u]]; i++)
            add_hold(state, &problem->units[u].holds[state->policies[u]][i]);
    for (int32_t i = 0; i < problem->n_items; i++) {
        const struct weft_item *item = &problem->items[i].item;
        bool active = item->policies >> state->policies[item->unit] & 1u;
        state->left[i] = active ? item->n_blocks : 0;
        state->n_left += state->left[i];
    }
    cr_assert_leq(state->n_left, ENUMERATE_MOST_MOVES);
    extend(state, 0, 0);
}

static void choose(struct state *state, int32_t unit)
{
    if (unit == state->problem->n_units) {
        with_policies(state);
        return;
    }
    for (int p = 0; p < WEFT_POLICY_COUNT; p++) {
        if (!(state->problem->units[unit].policies >> p & 1u)) continue;
        state->policies[unit] = (enum weft_policy)p;
        choose(state, unit + 1);
    }
}

static struct state run(const struct weft_problem *problem, int64_t limit_bytes)
{
    struct state state = {
        .problem = problem, .limit_bytes = limit_bytes, .best_ns = -1, .best_peak = -1};
    cr_assert_leq(problem->n_slots, ENUMERATE_MOST_SLOTS);
    cr_assert_leq(problem->n_units, ENUMERATE_MOST_UNITS);
    choose(&state, 0);
    return state;
}

int64_t enumerate_best(const struct weft_problem *problem, int64_t limit_bytes,
                       enum weft_policy *policies)
{
    struct state state = run(problem, limit_bytes);
    if (policies)
        memcpy(policies, state.best_policies, (size_t)problem->n_units * sizeof *policies);
    return state.best_ns;
}

int64_t enumerate_least_limit(const struct weft_problem *problem)
{
    return run(problem, 0).best_peak;
}
