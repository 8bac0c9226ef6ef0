/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/scheduler/enumerate.h"

#include <criterion/criterion.h>
#include <string.h>

struct placed {
    int32_t item, launch, deadline; /* equal for a blocking gather */
};

struct state {
    const struct weft_problem *problem;
    int64_t limit_bytes, best_ns, best_peak;
    bool wants_peak;
    int64_t page_bytes; /* 0: rows count bytes */
    int32_t strategies[ENUMERATE_MOST_UNITS], best_policies[ENUMERATE_MOST_UNITS];
    struct placed placed[ENUMERATE_MOST_MOVES];
    int32_t n_placed;
    int32_t left[8 * ENUMERATE_MOST_UNITS], n_left;
    int64_t rows[ENUMERATE_MOST_TIERS][ENUMERATE_MOST_SLOTS];
};

static void add_hold(struct state *state, const struct weft_hold *hold)
{
    int32_t n = state->problem->n_slots, s = hold->first;
    for (;;) {
        state->rows[hold->tier][s] += hold->bytes;
        if (s == hold->last) return;
        s = (s + 1) % n;
    }
}

static int64_t slot_time(const struct state *state, int32_t slot)
{
    const struct weft_problem *problem = state->problem;
    int64_t ns = problem->slot_ns[slot];
    for (int32_t u = 0; u < problem->n_decisions; u++)
        ns += weft_strategy_ns(weft_problem_chosen(problem, state->strategies, u), slot);
    return ns;
}

/* The clock of one candidate. What is left of the slot's compute and of the block at the head of
 * each lane is in 1/1024 ns; compute has lane 0. */
enum { LANES = 6 };
struct clock {
    int64_t now, left[LANES];
    int32_t head[LANES]; /* first placement of the lane that is not over */
    int32_t slot;        /* started */
    bool under_way[LANES];
};

static int32_t next_of(const struct state *state, int32_t lane, int32_t from)
{
    while (from < state->n_placed && state->problem->items[state->placed[from].item].lane != lane)
        from++;
    return from;
}

static int64_t rate_in(const struct state *state, const struct clock *clock, int32_t lane)
{
    int64_t least = 1024;
    for (int32_t k = 1; k < state->problem->n_lanes && lane == 0; k++)
        if (clock->under_way[k] && state->problem->lanes[k].rates.compute < least)
            least = state->problem->lanes[k].rates.compute;
    if (lane == 0) return least;
    return clock->left[0] > 0 ? state->problem->lanes[lane].rates.own : 1024;
}

/* What a placement comes after is over: the block of the same number of that item. */
static bool may_follow(const struct state *state, const struct clock *clock, int32_t at)
{
    const int32_t item = state->placed[at].item, after = state->problem->items[item].after;
    int32_t block = 0, before = -1;
    if (after < 0) return true;
    for (int32_t k = 0; k < at; k++)
        block += state->placed[k].item == item;
    for (int32_t k = 0; k < state->n_placed && block >= 0; k++)
        if (state->placed[k].item == after && block-- == 0) before = k;
    return before < clock->head[state->problem->items[after].lane];
}

/* Begins what a lane can begin; true when something took no time and so is over. */
static bool begin_on(const struct state *state, struct clock *clock, int32_t lane)
{
    bool any = false;
    int32_t at = clock->head[lane] = next_of(state, lane, clock->head[lane]);
    while (!clock->under_way[lane] && at < state->n_placed &&
           state->placed[at].launch <= clock->slot && may_follow(state, clock, at)) {
        clock->left[lane] = 1024 * state->problem->items[state->placed[at].item].block_ns;
        clock->under_way[lane] = clock->left[lane] > 0;
        if (clock->under_way[lane]) break;
        at = clock->head[lane] = next_of(state, lane, at + 1);
        any = true;
    }
    return any;
}

/* Begins what can begin, and goes on to the first end. */
static void tick(const struct state *state, struct clock *clock)
{
    int64_t ns = INT64_MAX, rates[LANES];
    int32_t n_lanes = state->problem->n_lanes;
    for (bool any = true; any;) {
        any = false;
        for (int32_t k = 1; k < n_lanes; k++)
            any = begin_on(state, clock, k) || any;
    }
    clock->under_way[0] = clock->left[0] > 0;
    for (int32_t k = 0; k < n_lanes; k++) {
        rates[k] = rate_in(state, clock, k);
        int64_t until = (clock->left[k] + rates[k] - 1) / rates[k];
        if (clock->under_way[k] && until < ns) ns = until;
    }
    if (ns == INT64_MAX) return;
    clock->now += ns;
    for (int32_t k = 0; k < n_lanes; k++) {
        clock->left[k] -= ns * rates[k];
        if (clock->left[k] < 0) clock->left[k] = 0;
        if (!clock->under_way[k] || clock->left[k] > 0) continue;
        clock->under_way[k] = false;
        clock->head[k]++;
    }
}

static bool waits(const struct state *state, const struct clock *clock, int32_t slot, bool blocking)
{
    for (int32_t k = 0; k < state->n_placed; k++) {
        const struct placed *at = &state->placed[k];
        bool over = k < clock->head[state->problem->items[at->item].lane];
        if (!over && (at->launch == at->deadline) == blocking && at->deadline <= slot) return true;
    }
    return false;
}

/* At the end of the step, and where the period says so behind every update; nothing else is under
 * way then. */
static int64_t n_agreements(const struct weft_problem *problem)
{
    int64_t n = 1;
    for (int32_t s = 0; s < problem->n_slots && problem->period.agreed_updates; s++)
        n += problem->slots[s].kind == WEFT_SLOT_UPDATE;
    return n;
}

static bool is_no_faster(const struct state *state, int64_t ns)
{
    return state->best_ns >= 0 && ns >= state->best_ns;
}

/* Event by event: a collective starts when its lane is free and its launch slot has begun. The
 * clock stops early when the candidate is no faster than the best so far. */
static int64_t step_time(const struct state *state)
{
    int64_t agreements = n_agreements(state->problem) * state->problem->agree_ns;
    struct clock clock = {.now = agreements, .slot = -1};
    for (int32_t s = 0; s < state->problem->n_slots; s++) {
        while (waits(state, &clock, s, false))
            tick(state, &clock);
        clock.slot = s;
        while (waits(state, &clock, s, true))
            tick(state, &clock);
        clock.left[0] = 1024 * slot_time(state, s);
        while (clock.left[0] > 0)
            tick(state, &clock);
        if (is_no_faster(state, clock.now)) break;
    }
    return clock.now;
}

/* A further placement only adds bytes, so no completion of a partial plan mends a row. */
static bool is_hopeless(const struct state *state, int32_t tier, int32_t first, int32_t last)
{
    int64_t most = state->problem->tiers[tier].limit_bytes;
    if (tier == 0) most = state->wants_peak ? state->best_peak - 1 : state->limit_bytes;
    if (tier == 0 && state->wants_peak && state->best_peak < 0) return false;
    for (int32_t s = first; s <= last; s++)
        if (state->rows[tier][s] > most) return true;
    return false;
}

static bool is_hopeless_anywhere(const struct state *state)
{
    for (int32_t tier = 0; tier < state->problem->n_tiers; tier++)
        if (is_hopeless(state, tier, 0, state->problem->n_slots - 1)) return true;
    return false;
}

/* The pages of one slot: of large buffers, and the bytes of those that may share pages. */
struct slot_pages {
    int64_t whole, loose_bytes;
};

static void add_buffer(const struct state *state, struct slot_pages *to, int64_t held_bytes,
                       int64_t all_bytes)
{
    if (all_bytes < state->page_bytes)
        to->loose_bytes += held_bytes;
    else
        to->whole += (held_bytes + state->page_bytes - 1) / state->page_bytes;
}

static bool lives_in(const struct state *state, const struct weft_hold *hold, int32_t slot)
{
    const int32_t n = state->problem->n_slots;
    return (slot - hold->first + n) % n <= (hold->last - hold->first + n) % n;
}

static void add_holds_in(const struct state *state, const struct weft_hold *holds, int32_t n_holds,
                         int32_t slot, struct slot_pages *to, int64_t *outside_bytes)
{
    const int32_t n = state->problem->n_slots;
    for (int32_t i = 0; i < n_holds; i++) {
        const struct weft_hold *hold = &holds[i];
        if (hold->tier != 0 || !lives_in(state, hold, slot)) continue;
        if (weft_category_is_outside(hold->category))
            *outside_bytes += hold->bytes - 255; /* a buffer is rounded up to 256 */
        else if ((hold->last + 1 - hold->first + n) % n == 0)
            to->loose_bytes += hold->bytes;
        else
            add_buffer(state, to, hold->bytes, hold->bytes);
    }
}

/* The blocks of an item that the slot holds. */
static int32_t held_blocks(const struct state *state, int32_t i, int32_t slot)
{
    const struct weft_item *item = &state->problem->items[i].item;
    int32_t held = 0;
    for (int32_t k = 0; k < state->n_placed; k++) {
        const struct placed *at = &state->placed[k];
        int32_t first = item->acquires ? at->launch : item->first;
        int32_t last = item->acquires ? item->last : at->deadline - 1;
        held += at->item == i && slot >= first && slot <= last;
    }
    return held;
}

/* The fewest bytes that any paging takes, where small buffers and those of all slots share pages.
 */
static int64_t paged_peak(const struct state *state)
{
    const struct weft_problem *problem = state->problem;
    int64_t peak = 0;
    for (int32_t s = 0; s < problem->n_slots; s++) {
        struct slot_pages in = {0};
        int64_t outside_bytes = 0;
        add_holds_in(state, problem->common, problem->n_common, s, &in, &outside_bytes);
        for (int32_t u = 0; u < problem->n_decisions; u++) {
            const struct weft_problem_strategy *of =
                weft_problem_chosen(problem, state->strategies, u);
            add_holds_in(state, of->holds, of->n_holds, s, &in, &outside_bytes);
        }
        for (int32_t i = 0; i < problem->n_items; i++) {
            const struct weft_item *item = &problem->items[i].item;
            if (item->stair_tier == 0)
                add_buffer(state, &in, held_blocks(state, i, s) * item->stair_bytes,
                           item->n_blocks * item->stair_bytes);
        }
        int64_t pages = in.whole + (in.loose_bytes + state->page_bytes - 1) / state->page_bytes;
        if (outside_bytes + pages * state->page_bytes > peak)
            peak = outside_bytes + pages * state->page_bytes;
    }
    return peak;
}

static void leaf(struct state *state)
{
    if (state->wants_peak) {
        int64_t peak = 0;
        for (int32_t s = 0; s < state->problem->n_slots; s++)
            if (state->rows[0][s] > peak) peak = state->rows[0][s];
        if (state->page_bytes > 0) {
            const int64_t in_pages = paged_peak(state);
            if (in_pages > peak) peak = in_pages;
        }
        if (state->best_peak < 0 || peak < state->best_peak) state->best_peak = peak;
        return;
    }
    if (state->page_bytes > 0 && paged_peak(state) > state->limit_bytes) return;
    int64_t ns = step_time(state);
    if (is_no_faster(state, ns)) return;
    state->best_ns = ns;
    memcpy(state->best_policies, state->strategies, sizeof state->strategies);
}

static void add_stair(struct state *state, int32_t tier, int32_t first, int32_t last, int64_t bytes)
{
    for (int32_t s = first; s <= last; s++)
        state->rows[tier][s] += bytes;
}

static void extend(struct state *state, int32_t lane, int32_t launch, int32_t deadline);

/* Places a block after the others, then all remaining blocks. */
static void place(struct state *state, struct placed placed, int32_t due)
{
    const struct weft_problem_item *of = &state->problem->items[placed.item];
    bool gathers = of->item.acquires;
    int32_t first = gathers ? placed.launch : of->item.first;
    int32_t last = gathers ? of->item.last : placed.deadline - 1;
    add_stair(state, of->item.stair_tier, first, last, of->item.stair_bytes);
    state->placed[state->n_placed++] = placed;
    state->left[placed.item]--;
    state->n_left--;
    /* A gather's deadline binds only the reductions before it. */
    if (!is_hopeless(state, of->item.stair_tier, first, last))
        extend(state, of->lane, placed.launch, gathers ? due : placed.deadline);
    state->n_left++;
    state->left[placed.item]++;
    state->n_placed--;
    add_stair(state, of->item.stair_tier, first, last, -of->item.stair_bytes);
}

/* Every block next, at every slot that keeps the normal form (plan.h), so that nothing else is
 * another plan. A reduction launched later than it could be is no faster where nothing slows beside
 * communication. */
static void extend(struct state *state, int32_t lane, int32_t launch, int32_t deadline)
{
    const struct weft_problem *problem = state->problem;
    bool slows = weft_problem_contends(problem);
    if (state->n_left == 0) {
        leaf(state);
        return;
    }
    for (int32_t i = 0; i < problem->n_items; i++) {
        /* Lanes one after the other: how they are mixed means nothing. */
        int32_t on = problem->items[i].lane;
        if (state->left[i] == 0 || on < lane) continue;
        int32_t ahead = on > lane ? 0 : launch, due = on > lane ? 0 : deadline;
        const struct weft_item *item = &problem->items[i].item;
        bool gathers = item->acquires;
        for (int32_t s = item->first; s <= item->last + (item->may_block ? 1 : 0); s++) {
            struct placed placed = {.item = i,
                                    .launch = gathers ? s : item->first,
                                    .deadline = gathers ? item->last + 1 : s + 1};
            if (gathers && placed.launch < ahead) continue;
            if (placed.launch < ahead) placed.launch = ahead;
            /* The slot by whose start it, and what is ahead of it, is complete. */
            int32_t complete = placed.deadline + (placed.launch == placed.deadline && gathers);
            if (complete < due) continue;
            int32_t last_launch = gathers || !slows ? placed.launch : complete - 1;
            for (; placed.launch <= last_launch && placed.launch < complete; placed.launch++)
                place(state, placed, due);
        }
    }
}

/* No plan of these strategies takes less than their compute. */
static int64_t least_time(const struct state *state)
{
    int64_t ns = n_agreements(state->problem) * state->problem->agree_ns;
    for (int32_t s = 0; s < state->problem->n_slots && !state->wants_peak; s++)
        ns += slot_time(state, s);
    return ns;
}

static void with_strategies(struct state *state)
{
    const struct weft_problem *problem = state->problem;
    memset(state->rows, 0, sizeof state->rows);
    state->n_left = 0;
    for (int32_t i = 0; i < problem->n_common; i++)
        add_hold(state, &problem->common[i]);
    for (int32_t u = 0; u < problem->n_decisions; u++) {
        const struct weft_problem_strategy *of = weft_problem_chosen(problem, state->strategies, u);
        for (int32_t i = 0; i < of->n_holds; i++)
            add_hold(state, &of->holds[i]);
    }
    for (int32_t i = 0; i < problem->n_items; i++) {
        const struct weft_item *item = &problem->items[i].item;
        bool active = item->strategies >> state->strategies[item->decision] & 1u;
        state->left[i] = active ? item->n_blocks : 0;
        state->n_left += state->left[i];
    }
    cr_assert_leq(state->n_left, ENUMERATE_MOST_MOVES);
    if (is_hopeless_anywhere(state) || is_no_faster(state, least_time(state))) return;
    extend(state, 0, 0, 0);
}

static void choose(struct state *state, int32_t unit)
{
    /* Never more units than there is room for, which a compiler that unrolls this cannot know. */
    if (unit == state->problem->n_decisions || unit == ENUMERATE_MOST_UNITS) {
        with_strategies(state);
        return;
    }
    for (int32_t p = 0; p < state->problem->decisions[unit].n_strategies; p++) {
        state->strategies[unit] = p;
        choose(state, unit + 1);
    }
}

static struct state run(const struct weft_problem *problem, int64_t page_bytes, int64_t limit_bytes,
                        bool wants_peak)
{
    struct state state = {.problem = problem,
                          .limit_bytes = limit_bytes,
                          .best_ns = -1,
                          .best_peak = -1,
                          .wants_peak = wants_peak,
                          .page_bytes = page_bytes};
    cr_assert_leq(problem->n_slots, ENUMERATE_MOST_SLOTS);
    cr_assert_leq(problem->n_decisions, ENUMERATE_MOST_UNITS);
    cr_assert_leq(problem->n_tiers, ENUMERATE_MOST_TIERS);
    choose(&state, 0);
    return state;
}

int64_t enumerate_best(const struct weft_problem *problem, int64_t limit_bytes, int32_t *strategies)
{
    struct state state = run(problem, 0, limit_bytes, false);
    if (strategies)
        memcpy(strategies, state.best_policies, (size_t)problem->n_decisions * sizeof *strategies);
    return state.best_ns;
}

int64_t enumerate_of(const struct weft_problem *problem, const int32_t *strategies)
{
    struct state state = {.problem = problem,
                          .limit_bytes = problem->tiers[0].limit_bytes,
                          .best_ns = -1,
                          .best_peak = -1};
    cr_assert_leq(problem->n_decisions, ENUMERATE_MOST_UNITS);
    memcpy(state.strategies, strategies, (size_t)problem->n_decisions * sizeof *strategies);
    with_strategies(&state);
    return state.best_ns;
}

int64_t enumerate_least_limit(const struct weft_problem *problem)
{
    return run(problem, 0, 0, true).best_peak;
}

int64_t enumerate_best_in_pages(const struct weft_problem *problem, int64_t page_bytes,
                                int64_t limit_bytes)
{
    return run(problem, page_bytes, limit_bytes, false).best_ns;
}

int64_t enumerate_least_limit_in_pages(const struct weft_problem *problem, int64_t page_bytes)
{
    return run(problem, page_bytes, 0, true).best_peak;
}
