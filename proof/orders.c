/* SPDX-License-Identifier: Apache-2.0 */
#include "proof/orders.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/lanes.h"

enum { MOST_DEPTH = 1000 };        /* slots and blocks: the search recurses at each */
enum { MOST_ROW_WORDS = 1 << 22 }; /* of all strategies */
enum { MOST_MET = 1 << 16, MET_BYTES = 1 << 25 }; /* states that are remembered, a power of 2 */
enum { MOST_CHAIN = 8 };                          /* items that an item follows */
enum { ITEM_UNITS = 10, SLOT_UNITS = 5, BASE_UNITS = 200 };

/* A moment. Bytes that acquiring blocks hold from now on follow from the blocks begun. */
struct state {
    struct weft_lanes lanes;
    int32_t slot;
    bool computes; /* compute of the slot has begun */
    bool waits;    /* compute is over, and the slot goes on */
    bool stays; /* compute was over before, and the next slot waits for no block that just ended */
    bool rests[WEFT_MOST_LANES];
    int32_t on[WEFT_MOST_LANES]; /* item on a lane; -1: none */
    int32_t move[WEFT_MOST_LANES];
    int64_t late_bytes[WEFT_MOST_TIERS]; /* held in the slot by releasing items of earlier slots */
};

struct weft_orders {
    struct weft_pool pool;
    const struct weft_problem *problem; /* borrowed */
    int64_t *lean;                      /* [n_strategies][n_rows]: weft_problem_add_lean */
    int64_t *common;                    /* [n_rows] */
    int64_t *room;                      /* [n_rows]: of the strategies and the blocks begun */
    int64_t *slot_ns;                   /* [n_slots] */
    int64_t *rest_ns;                   /* [n_slots + 1]: compute from the start of a slot on */
    int64_t *begin_ns;                  /* [n_slots + 1], scratch: least starts of slots */
    int64_t *load_ns;                   /* [n_moving][n_slots], scratch: time of blocks due that
                                           begin in the slot or later */
    int32_t *by_last;                   /* [n_items]: all items, last slots rising */
    int32_t *active;                    /* [n_active]: of the strategies, in the same order */
    int32_t n_active;
    int32_t *left; /* [n_items]: blocks not begun */
    int32_t n_left[WEFT_MOST_LANES];
    /* Choices of strategies: */
    int32_t *strategies; /* [n_decisions] */
    weft_int128 *sums;   /* [n_decisions + 1]: cost of the first decisions */
    weft_int128 *least;  /* [n_decisions + 1]: least cost of the others */
    /* States met, each with its least time: */
    int32_t *key, *met; /* [key_words], [n_met][key_words] */
    int64_t *met_ns;    /* [n_met]; -1: free */
    size_t key_words, n_met;
    int32_t n_tries; /* a try knows its own states by it */
    struct weft_order_move *moves;
    int32_t n_moves;
    int64_t below_ns; /* without agreements */
    int64_t steps_left;
    enum weft_orders_end end;
    struct weft_order_found found;
};

static const struct weft_item *item_of(const struct weft_orders *orders, int32_t item)
{
    return &orders->problem->items[item].item;
}

static int32_t lane_of(const struct weft_orders *orders, int32_t item)
{
    return orders->problem->items[item].lane;
}

/* Blocks that are not complete. */
static int32_t undone_of(const struct weft_orders *orders, const struct state *at, int32_t item)
{
    return orders->left[item] + (at->on[lane_of(orders, item)] == item);
}

/* Whole ns after which a lane's work may be over at the earliest. */
static int64_t left_ns(const struct state *at, int32_t lane)
{
    return (at->lanes.left[lane] + WEFT_RATE_ONE - 1) / WEFT_RATE_ONE;
}

/* Lower bounds */

/* A lane's blocks that are due so far. */
struct load {
    int64_t free_ns; /* the block on the lane is over at the earliest */
    int64_t all_ns;  /* time of the blocks that are due */
    int64_t over_ns; /* they are complete at the earliest */
};

static int64_t max_ns(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The earliest times at which the next block of an item and its last one are complete. */
struct pass {
    int64_t next_ns, last_ns;
};

static struct pass pass_chain(const struct weft_orders *orders, const struct state *at,
                              const struct load *loads, int32_t item, int32_t slot)
{
    const int32_t after = orders->problem->items[item].after, left = orders->left[item];
    const int32_t first = item_of(orders, item)->first, from = first < slot ? first : slot;
    const int64_t ns = orders->problem->items[item].block_ns;
    const int64_t free_ns = loads[lane_of(orders, item)].free_ns;
    int64_t head_ns = from > at->slot ? max_ns(free_ns, orders->begin_ns[from]) : free_ns;
    const int32_t undone = undone_of(orders, at, item);
    if (undone == 0) return (struct pass){0, 0};
    if (left == 0) return (struct pass){free_ns, free_ns};
    int64_t last_ns = 0;
    if (after >= 0 && undone_of(orders, at, after) > 0) {
        const struct pass before = pass_chain(orders, at, loads, after, slot);
        if (undone_of(orders, at, after) >= left) head_ns = max_ns(head_ns, before.next_ns);
        last_ns = before.last_ns + ns;
    }
    last_ns = max_ns(last_ns, head_ns + left * ns);
    return (struct pass){undone > left ? free_ns : head_ns + ns, last_ns};
}

/* Adds an item's blocks to those that are due. Starts of slots up to its last one are known. */
static void add_load(struct weft_orders *orders, const struct state *at, struct load *loads,
                     int32_t item)
{
    const struct weft_problem_item *of = &orders->problem->items[item];
    struct load *load = &loads[of->lane];
    int64_t *within_ns = orders->load_ns + weft_problem_lane_at(orders->problem, of->lane);
    const int64_t ns = orders->left[item] * of->block_ns;
    if (at->on[of->lane] == item) load->over_ns = max_ns(load->over_ns, load->free_ns);
    if (orders->left[item] == 0) return;
    load->all_ns += ns;
    load->over_ns = max_ns(load->over_ns, load->free_ns + load->all_ns);
    for (int32_t s = at->slot + 1; s <= of->item.first; s++) {
        within_ns[s] += ns;
        load->over_ns = max_ns(load->over_ns, orders->begin_ns[s] + within_ns[s]);
    }
    if (of->after < 0) return;
    const struct pass pass = pass_chain(orders, at, loads, item, of->item.last);
    load->over_ns = max_ns(load->over_ns, pass.last_ns);
}

static int64_t over_all(const struct weft_orders *orders, const struct load *loads)
{
    int64_t ns = 0;
    for (int32_t lane = WEFT_LANE_FIRST; lane < orders->problem->n_lanes; lane++)
        ns = max_ns(ns, loads[lane].over_ns);
    return ns;
}

static void begin_loads(struct weft_orders *orders, const struct state *at, struct load *loads)
{
    const size_t n = weft_problem_lane_at(orders->problem, orders->problem->n_lanes);
    memset(orders->load_ns, 0, n * sizeof *orders->load_ns);
    for (int32_t lane = WEFT_LANE_FIRST; lane < orders->problem->n_lanes; lane++)
        loads[lane] = (struct load){.free_ns = at->lanes.now_ns + left_ns(at, lane)};
}

/* Adds items with the last slot `slot`, from the `k`-th active one on. Blocks of those that may
 * block are due later, but for one that has begun. */
static void add_due(struct weft_orders *orders, const struct state *at, struct load *loads,
                    int32_t slot, int32_t k, bool may_block)
{
    for (; k < orders->n_active && item_of(orders, orders->active[k])->last == slot; k++) {
        const int32_t item = orders->active[k], lane = lane_of(orders, item);
        if (item_of(orders, item)->may_block == may_block)
            add_load(orders, at, loads, item);
        else if (at->on[lane] == item)
            loads[lane].over_ns = max_ns(loads[lane].over_ns, loads[lane].free_ns);
    }
}

/* True if no continuation takes less than the limit. */
static bool is_hopeless(struct weft_orders *orders, const struct state *at)
{
    const int32_t n_slots = orders->problem->n_slots;
    struct load loads[WEFT_MOST_LANES];
    int32_t k = 0;
    begin_loads(orders, at, loads);
    for (; k < orders->n_active && item_of(orders, orders->active[k])->last < at->slot; k++)
        if (undone_of(orders, at, orders->active[k]) > 0)
            add_load(orders, at, loads, orders->active[k]);
    int64_t ns = at->lanes.now_ns + left_ns(at, WEFT_LANE_COMPUTE);
    if (!at->computes) ns = max_ns(ns, over_all(orders, loads)) + orders->slot_ns[at->slot];
    for (int32_t s = at->slot;; s++) { /* compute of slot s is over after `ns` */
        if (ns + orders->rest_ns[s + 1] >= orders->below_ns) return true;
        if (s + 1 == n_slots) return false;
        add_due(orders, at, loads, s, k, false);
        orders->begin_ns[s + 1] = ns = max_ns(ns, over_all(orders, loads));
        add_due(orders, at, loads, s, k, true);
        ns = max_ns(ns, over_all(orders, loads)) + orders->slot_ns[s + 1];
        while (k < orders->n_active && item_of(orders, orders->active[k])->last == s)
            k++;
    }
}

/* States that were met */

static int32_t *put_word(int32_t *key, int64_t value)
{
    key[0] = (int32_t)(uint32_t)((uint64_t)value & UINT32_MAX);
    key[1] = (int32_t)(uint32_t)((uint64_t)value >> 32);
    return key + 2;
}

static void make_key(const struct weft_orders *orders, const struct state *at)
{
    const struct weft_problem *problem = orders->problem;
    int32_t *key = orders->key;
    memset(key, 0, orders->key_words * sizeof *key);
    *key++ = orders->n_tries;
    *key++ = at->slot;
    *key++ = at->stays * 4 + at->computes * 2 + at->waits;
    key = put_word(key, at->lanes.left[WEFT_LANE_COMPUTE]);
    for (int32_t lane = WEFT_LANE_FIRST; lane < problem->n_lanes; lane++) {
        const bool rests = at->rests[lane] && orders->n_left[lane] > 0;
        key = put_word(key, at->lanes.left[lane]);
        *key++ = 2 * at->on[lane] + rests;
    }
    for (int32_t tier = 0; tier < problem->n_tiers; tier++)
        key = put_word(key, at->late_bytes[tier]);
    for (int32_t k = 0; k < orders->n_active; k++)
        *key++ = orders->left[orders->active[k]];
}

/* True if this try met the state before, at the same time or earlier. Compares whole states: a file
 * that somebody forged could have two states with one hash. */
static bool was_met(struct weft_orders *orders, const struct state *at)
{
    const size_t bytes = orders->key_words * sizeof *orders->key;
    make_key(orders, at);
    /* The place is the same in every try, and so is the number of steps. */
    const struct weft_hash hash = weft_hash_bytes(orders->key + 1, bytes - sizeof *orders->key);
    const size_t place = (size_t)hash.low & (orders->n_met - 1);
    int32_t *met = orders->met + place * orders->key_words;
    const bool same = orders->met_ns[place] >= 0 && memcmp(met, orders->key, bytes) == 0;
    if (same && orders->met_ns[place] <= at->lanes.now_ns) return true;
    if (!same) memcpy(met, orders->key, bytes);
    orders->met_ns[place] = at->lanes.now_ns;
    return false;
}

/* Moments */

/* Completes the blocks whose work is done. */
static void complete_blocks(struct weft_orders *orders, struct state *at)
{
    for (int32_t lane = WEFT_LANE_FIRST; lane < orders->problem->n_lanes; lane++) {
        const int32_t item = at->on[lane];
        if (item < 0 || weft_lanes_busy(&at->lanes, lane)) continue;
        const struct weft_item *of = item_of(orders, item);
        at->on[lane] = -1;
        at->waits = false;
        if (!of->acquires) orders->moves[at->move[lane]].slot = at->slot;
        if (!of->acquires || of->last == at->slot) at->stays = false;
        for (int32_t k = 0; k < orders->n_active; k++)
            if (orders->problem->items[orders->active[k]].after == item)
                at->rests[lane_of(orders, orders->active[k])] = false;
    }
}

/* True if compute waits for a block that is due and not complete. */
static bool must_block(const struct weft_orders *orders, const struct state *at)
{
    for (int32_t k = 0; k < orders->n_active; k++) {
        const int32_t item = orders->active[k];
        if (item_of(orders, item)->last >= at->slot) break;
        if (undone_of(orders, at, item) > 0) return true;
    }
    return false;
}

static bool may_begin(const struct weft_orders *orders, const struct state *at, int32_t item)
{
    const struct weft_item *of = item_of(orders, item);
    const int32_t after = orders->problem->items[item].after;
    if (orders->left[item] == 0 || of->first > at->slot) return false;
    if (after >= 0 && undone_of(orders, at, after) >= orders->left[item]) return false;
    if (!of->acquires) return true;
    if (of->last < at->slot) return !at->computes;
    const int64_t *room = orders->room + weft_problem_stair_at(orders->problem, of);
    const int32_t end = of->may_block ? of->last + 1 : of->last; /* lean rows have the last slot */
    for (int32_t s = at->slot; s < end; s++) {
        const int64_t late_bytes = s == at->slot ? at->late_bytes[of->stair_tier] : 0;
        if (room[s] - late_bytes < of->stair_bytes) return false;
    }
    return true;
}

/* Takes the bytes of a block that begins in the slot from the rows, or returns them. */
static void take_room(struct weft_orders *orders, int32_t item, int32_t slot, int64_t sign)
{
    const struct weft_item *of = item_of(orders, item);
    int64_t *room = orders->room + weft_problem_stair_at(orders->problem, of);
    const int32_t end = of->may_block ? of->last + 1 : of->last;
    for (int32_t s = slot; of->acquires && s < end; s++)
        room[s] -= sign * of->stair_bytes;
}

static void explore_state(struct weft_orders *orders, struct state *at);

static void begin_block(struct weft_orders *orders, const struct state *from, int32_t item)
{
    const struct weft_problem_item *of = &orders->problem->items[item];
    struct state at = *from;
    orders->moves[orders->n_moves] = (struct weft_order_move){item, at.slot, at.slot};
    at.move[of->lane] = orders->n_moves++;
    at.on[of->lane] = item;
    weft_lanes_start(&at.lanes, of->lane, of->block_ns);
    orders->left[item]--;
    orders->n_left[of->lane]--;
    take_room(orders, item, from->slot, 1);
    explore_state(orders, &at);
    if (orders->end == WEFT_ORDERS_FOUND) return; /* the moves stay */
    take_room(orders, item, from->slot, -1);
    orders->n_left[of->lane]++;
    orders->left[item]++;
    orders->n_moves--;
}

/* An idle lane with blocks left that does not rest; -1: none. */
static int32_t idle_lane(const struct weft_orders *orders, const struct state *at)
{
    for (int32_t lane = WEFT_LANE_FIRST; lane < orders->problem->n_lanes; lane++)
        if (at->on[lane] < 0 && !at->rests[lane] && orders->n_left[lane] > 0) return lane;
    return -1;
}

/* Tries each block that the idle lane may begin, the first one due first. Then the lane rests. */
static void serve_lane(struct weft_orders *orders, struct state *at, int32_t lane)
{
    for (int32_t k = 0; k < orders->n_active; k++) {
        const int32_t item = orders->active[k];
        if (lane_of(orders, item) != lane || !may_begin(orders, at, item)) continue;
        begin_block(orders, at, item);
        if (orders->end != WEFT_ORDERS_NONE) return;
    }
    at->rests[lane] = true;
}

/* True if a block is missing without which the slot does not end. */
static bool lacks_blocks(const struct weft_orders *orders, const struct state *at)
{
    for (int32_t k = 0; k < orders->n_active; k++) {
        const int32_t item = orders->active[k];
        const struct weft_item *of = item_of(orders, item);
        if (of->last > at->slot) return false;
        if (at->on[lane_of(orders, item)] == item) return true;
        if (orders->left[item] > 0 && !of->may_block) return true;
    }
    return false;
}

/* Sums the bytes that blocks of earlier slots hold in the slot until they are complete. Rows have
 * the first slot of each item. False if a row exceeds its limit. */
static bool fill_late(const struct weft_orders *orders, struct state *at)
{
    memset(at->late_bytes, 0, sizeof at->late_bytes);
    for (int32_t k = 0; k < orders->n_active; k++) {
        const int32_t item = orders->active[k];
        const struct weft_item *of = item_of(orders, item);
        if (of->acquires || of->first >= at->slot) continue;
        at->late_bytes[of->stair_tier] += undone_of(orders, at, item) * of->stair_bytes;
    }
    for (int32_t tier = 0; tier < orders->problem->n_tiers; tier++)
        if (orders->room[weft_problem_tier_at(orders->problem, tier) + at->slot] <
            at->late_bytes[tier])
            return false;
    return true;
}

static void enter_next(struct weft_orders *orders, const struct state *from)
{
    struct state at = *from;
    if (lacks_blocks(orders, from)) return;
    at.slot++;
    if (at.slot == orders->problem->n_slots) {
        if (at.lanes.now_ns >= orders->below_ns) return;
        orders->end = WEFT_ORDERS_FOUND;
        orders->found.step_ns = at.lanes.now_ns + weft_problem_agreements_ns(orders->problem);
        orders->found.n_moves = orders->n_moves;
        return;
    }
    if (!fill_late(orders, &at)) return;
    at.computes = at.waits = at.stays = false;
    memset(at.rests, 0, sizeof at.rests);
    explore_state(orders, &at);
}

/* Tries all continuations. The caller owns the state, which changes. */
static void explore_state(struct weft_orders *orders, struct state *at)
{
    bool passed = true; /* time, or a choice, since the last look */
    while (orders->end == WEFT_ORDERS_NONE) {
        if (orders->steps_left-- <= 0) {
            orders->end = WEFT_ORDERS_SPENT;
            return;
        }
        complete_blocks(orders, at);
        if (!at->computes && !must_block(orders, at)) {
            at->computes = true;
            weft_lanes_start(&at->lanes, WEFT_LANE_COMPUTE, orders->slot_ns[at->slot]);
        }
        const int32_t lane = idle_lane(orders, at);
        const bool over = at->computes && !weft_lanes_busy(&at->lanes, WEFT_LANE_COMPUTE);
        const bool enters = over && !at->waits && !at->stays;
        if (passed && (lane >= 0 || enters) && (is_hopeless(orders, at) || was_met(orders, at)))
            return;
        passed = lane < 0;
        if (lane >= 0) {
            serve_lane(orders, at, lane);
            continue;
        }
        if (enters) enter_next(orders, at);
        if (orders->end != WEFT_ORDERS_NONE) return;
        if (over) at->waits = true;
        const int64_t next_ns = weft_lanes_next(&at->lanes);
        if (next_ns == INT64_MAX) return;
        at->stays = over;
        weft_lanes_advance(&at->lanes, next_ns);
    }
}

/* Strategies */

/* Fills rows, times and blocks. False if the strategies exceed a limit at their least. */
static bool take_strategies(struct weft_orders *orders, const int32_t *strategies)
{
    const struct weft_problem *problem = orders->problem;
    const int32_t n_rows = weft_problem_n_rows(problem), n_slots = problem->n_slots;
    orders->rest_ns[n_slots] = 0;
    for (int32_t s = n_slots - 1; s >= 0; s--) {
        orders->slot_ns[s] = weft_problem_slot_ns(problem, strategies, s);
        orders->rest_ns[s] = orders->rest_ns[s + 1] + orders->slot_ns[s];
    }
    for (int32_t r = 0; r < n_rows; r++)
        orders->room[r] = problem->tiers[r / n_slots].limit_bytes - orders->common[r];
    for (int32_t u = 0; u < problem->n_decisions; u++) {
        const int64_t *lean =
            orders->lean + weft_strategy_at(problem, u, strategies[u]) * (size_t)n_rows;
        for (int32_t r = 0; r < n_rows; r++)
            orders->room[r] -= lean[r];
    }
    orders->n_active = 0;
    memset(orders->n_left, 0, sizeof orders->n_left);
    for (int32_t k = 0; k < problem->n_items; k++) {
        const int32_t item = orders->by_last[k];
        const bool active = weft_problem_needs(problem, strategies, item);
        orders->left[item] = active ? item_of(orders, item)->n_blocks : 0;
        orders->n_left[lane_of(orders, item)] += orders->left[item];
        if (active) orders->active[orders->n_active++] = item;
    }
    for (int32_t r = 0; r < n_rows; r++)
        if (orders->room[r] < 0) return false;
    return true;
}

static enum weft_orders_end search_orders(struct weft_orders *orders, const int32_t *strategies,
                                          int64_t below_ns)
{
    struct state at = {.lanes = weft_problem_lanes(orders->problem)};
    for (int32_t lane = 0; lane < WEFT_MOST_LANES; lane++)
        at.on[lane] = -1;
    orders->n_tries++;
    orders->n_moves = 0;
    orders->below_ns = below_ns - weft_problem_agreements_ns(orders->problem);
    orders->end = WEFT_ORDERS_NONE;
    if (orders->steps_left-- <= 0) return WEFT_ORDERS_SPENT;
    if (!take_strategies(orders, strategies)) return WEFT_ORDERS_NONE;
    explore_state(orders, &at);
    return orders->end;
}

enum weft_orders_end weft_orders_try(struct weft_orders *orders, const int32_t *strategies,
                                     int64_t below_ns, int64_t *steps)
{
    const size_t n = (size_t)orders->problem->n_decisions;
    if (strategies != orders->strategies)
        memcpy(orders->strategies, strategies, n * sizeof *strategies);
    orders->steps_left = *steps;
    const enum weft_orders_end end = search_orders(orders, orders->strategies, below_ns);
    *steps = orders->steps_left > 0 ? orders->steps_left : 0;
    return end;
}

/* Fills the least costs of the decisions from each one on. False if one has no strategy. */
static bool sum_least(struct weft_orders *orders, const struct weft_box *box,
                      const struct weft_priced *priced)
{
    const struct weft_problem *problem = orders->problem;
    orders->least[problem->n_decisions] = 0;
    for (int32_t u = problem->n_decisions - 1; u >= 0; u--) {
        weft_int128 least = WEFT_PRICED_OUT;
        for (int32_t p = 0; p < problem->decisions[u].n_strategies; p++) {
            const weft_int128 cost = priced->cost[weft_strategy_at(problem, u, p)];
            if (box->allowed[u] >> p & 1u && cost < least) least = cost;
        }
        if (least == WEFT_PRICED_OUT) return false;
        orders->least[u] = orders->least[u + 1] + least;
    }
    return true;
}

/* The decision's next strategy with which the prices leave a step below the limit; -1: none. */
static int32_t next_strategy(const struct weft_orders *orders, const struct weft_box *box,
                             const struct weft_priced *priced, weft_int128 most, int32_t decision)
{
    const struct weft_problem *problem = orders->problem;
    const int32_t n = problem->decisions[decision].n_strategies;
    for (int32_t p = orders->strategies[decision] + 1; p < n; p++) {
        const weft_int128 cost = priced->cost[weft_strategy_at(problem, decision, p)];
        if (!(box->allowed[decision] >> p & 1u) || cost == WEFT_PRICED_OUT) continue;
        if (orders->sums[decision] + cost + orders->least[decision + 1] <= most) return p;
    }
    return -1;
}

static enum weft_orders_end try_choices(struct weft_orders *orders, const struct weft_box *box,
                                        const struct weft_priced *priced, int64_t below_ns)
{
    const struct weft_problem *problem = orders->problem;
    const weft_int128 most = ((weft_int128)below_ns - 1) * WEFT_PRICE_ONE;
    int32_t u = 0;
    if (!sum_least(orders, box, priced)) return WEFT_ORDERS_NONE;
    orders->sums[0] = priced->rest;
    orders->strategies[0] = -1;
    while (u >= 0) {
        if (orders->steps_left-- <= 0) return WEFT_ORDERS_SPENT;
        const int32_t p = next_strategy(orders, box, priced, most, u);
        if (p < 0) {
            u--;
            continue;
        }
        orders->strategies[u] = p;
        orders->sums[u + 1] = orders->sums[u] + priced->cost[weft_strategy_at(problem, u, p)];
        if (u + 1 < problem->n_decisions) {
            orders->strategies[++u] = -1;
            continue;
        }
        const enum weft_orders_end end = search_orders(orders, orders->strategies, below_ns);
        if (end != WEFT_ORDERS_NONE) return end;
    }
    return WEFT_ORDERS_NONE;
}

enum weft_orders_end weft_orders_try_box(struct weft_orders *orders, const struct weft_box *box,
                                         const struct weft_priced *priced, int64_t below_ns,
                                         int64_t *steps)
{
    if (box->empty) return WEFT_ORDERS_NONE;
    orders->steps_left = *steps;
    const enum weft_orders_end end = try_choices(orders, box, priced, below_ns);
    *steps = orders->steps_left > 0 ? orders->steps_left : 0;
    return end;
}

const struct weft_order_found *weft_orders_found(const struct weft_orders *orders)
{
    return &orders->found;
}

/* Making */

bool weft_orders_can(const struct weft_problem *problem)
{
    const int64_t depth = (int64_t)problem->n_slots + weft_problem_count_blocks(problem);
    const int64_t words = (int64_t)problem->n_strategies * weft_problem_n_rows(problem);
    if (problem->n_decisions == 0 || depth > MOST_DEPTH || words > MOST_ROW_WORDS) return false;
    if (weft_problem_contends(problem) && problem->period.every > 1) return false;
    for (int32_t i = 0; i < problem->n_items; i++)
        if (weft_problem_depth(problem, i) > MOST_CHAIN) return false;
    return true;
}

int64_t weft_orders_step_units(const struct weft_problem *problem)
{
    const int64_t n_items = problem->n_items, n_slots = problem->n_slots;
    const int64_t n_rows = weft_problem_n_rows(problem), n_decisions = problem->n_decisions;
    return BASE_UNITS + ITEM_UNITS * n_items + SLOT_UNITS * n_slots + n_items * n_slots / 2 +
           n_decisions * n_rows / 4;
}

int64_t weft_orders_most_steps(const struct weft_problem *problem)
{
    const int64_t steps = WEFT_ORDERS_MOST_UNITS / weft_orders_step_units(problem);
    return steps < WEFT_ORDERS_MOST_STEPS ? steps : WEFT_ORDERS_MOST_STEPS;
}

/* Sorts items by their last slots, stably. */
static void sort_items(struct weft_orders *orders)
{
    for (int32_t i = 0; i < orders->problem->n_items; i++) {
        int32_t to = i;
        for (; to > 0 && item_of(orders, orders->by_last[to - 1])->last > item_of(orders, i)->last;
             to--)
            orders->by_last[to] = orders->by_last[to - 1];
        orders->by_last[to] = i;
    }
}

static bool make_arrays(struct weft_orders *orders)
{
    const struct weft_problem *problem = orders->problem;
    struct weft_pool *pool = &orders->pool;
    const size_t n_rows = (size_t)weft_problem_n_rows(problem), n_slots = (size_t)problem->n_slots;
    const size_t n_items = (size_t)problem->n_items, n_lanes = (size_t)problem->n_lanes;
    const size_t n_decisions = (size_t)problem->n_decisions;
    orders->key_words = 5 + 3 * n_lanes + 2 * (size_t)problem->n_tiers + n_items;
    orders->n_met = MOST_MET;
    while (orders->n_met * orders->key_words * sizeof *orders->key > MET_BYTES)
        orders->n_met /= 2;
    orders->lean =
        weft_pool_array(pool, (size_t)problem->n_strategies * n_rows, sizeof *orders->lean);
    orders->common = weft_pool_array(pool, 2 * n_rows, sizeof *orders->common);
    orders->slot_ns = weft_pool_array(pool, 3 * (n_slots + 1), sizeof *orders->slot_ns);
    orders->load_ns = weft_pool_array(pool, n_lanes * n_slots, sizeof *orders->load_ns);
    orders->by_last = weft_pool_array(pool, 3 * n_items + n_decisions, sizeof *orders->by_last);
    orders->sums = weft_pool_array(pool, 2 * (n_decisions + 1), sizeof *orders->sums);
    orders->key = weft_pool_array(pool, orders->key_words, sizeof *orders->key);
    orders->met = weft_pool_array(pool, orders->n_met * orders->key_words, sizeof *orders->met);
    orders->met_ns = weft_pool_array(pool, orders->n_met, sizeof *orders->met_ns);
    orders->moves =
        weft_pool_array(pool, (size_t)weft_problem_count_blocks(problem), sizeof *orders->moves);
    if (!orders->lean || !orders->common || !orders->slot_ns || !orders->load_ns ||
        !orders->by_last || !orders->sums || !orders->key || !orders->met || !orders->met_ns ||
        !orders->moves)
        return false;
    orders->room = orders->common + n_rows;
    orders->rest_ns = orders->slot_ns + n_slots + 1;
    orders->begin_ns = orders->rest_ns + n_slots + 1;
    orders->active = orders->by_last + n_items;
    orders->left = orders->active + n_items;
    orders->strategies = orders->left + n_items;
    orders->least = orders->sums + n_decisions + 1;
    return true;
}

enum weft_status weft_orders_create(const struct weft_problem *problem, struct weft_orders **out,
                                    struct weft_error *err)
{
    struct weft_orders *orders = calloc(1, sizeof *orders);
    if (orders == NULL) return weft_fail_memory(err, "a search of orders");
    orders->problem = problem;
    if (!make_arrays(orders)) {
        weft_orders_destroy(orders);
        return weft_fail_memory(err, "a search of orders");
    }
    weft_problem_fixed_rows(problem, orders->lean);
    weft_problem_add_lean(problem, orders->lean);
    for (int32_t i = 0; i < problem->n_common; i++)
        weft_hold_add(&problem->common[i], problem->n_slots, orders->common);
    for (size_t i = 0; i < orders->n_met; i++)
        orders->met_ns[i] = -1;
    sort_items(orders);
    orders->found.strategies = orders->strategies;
    orders->found.moves = orders->moves;
    *out = orders;
    return WEFT_OK;
}

void weft_orders_destroy(struct weft_orders *orders)
{
    if (orders == NULL) return;
    weft_pool_finish(&orders->pool);
    free(orders);
}
