/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/tree/exact.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/lanes.h"

enum { MEMORY_SLOTS = 1 << 16 };                                /* states met; a power of 2 */
enum { STEPS_A_LOOK = 4096 };                                   /* at the budget */
enum { KEY_WORDS = 9 + 2 * WEFT_MOST_LANES + WEFT_MOST_TIERS }; /* of a state, less its items */
enum { FIRST_STRAYS = 2 };                      /* of the first round; each round doubles them */
enum { GUIDE_REPAIRS = 8 };                     /* of the placement that guides a leaf */
enum { MOST_EVENTS = 1000, MOST_DEPTH = 2500 }; /* slots and blocks; choices that the stack holds */

/* A partial schedule. Bytes that gathers hold from now on follow from the number of blocks put. */
struct state {
    struct weft_lanes lanes;
    int32_t slot;
    bool computes;               /* compute of the slot has begun */
    int32_t on[WEFT_MOST_LANES]; /* item on a lane; -1: none */
    int32_t move[WEFT_MOST_LANES];
    bool rests[WEFT_MOST_LANES]; /* nothing more in this slot */
    bool waits;                  /* compute is over, and the next slot is put off */
    bool stays; /* the last block to complete ends no wait: the next slot is not entered yet */
    int64_t late_bytes[WEFT_MOST_TIERS]; /* held in the slot by reductions released before it */
    int32_t strays;                      /* choices that may still differ from the first one */
};

struct met {
    struct weft_hash key; /* {0}: free */
    int64_t now_ns;
    int32_t strays;
};

/* An item's window, to sort by it. */
struct order {
    int32_t item, first, last;
};

struct weft_exact {
    struct weft_search *search;
    const struct weft_problem *problem;
    int64_t *rows;    /* [n_rows]: bytes of strategies, gathers put, and least of reductions */
    int64_t *rest_ns; /* [n_slots + 1]: compute from the start of a slot to the end */
    int64_t *key;     /* scratch of one state's key */
    int32_t *left;    /* [n_items]: blocks not put */
    int32_t *undone;  /* [n_items]: blocks not complete */
    int32_t *by_last,
        *by_first;         /* [n_items]: all items, last slots rising and first ones falling */
    int32_t *last, *first; /* [n_active]: the same of the items that the strategies need */
    int32_t n_active;
    int32_t *rank;   /* [n_blocks]: places in the guide's order, by weft_list_first_blocks */
    int32_t *launch; /* [n_blocks]: slots before which the guide does not put a block */
    bool is_guided;
    struct weft_move *moves;
    struct met *met;
    int64_t left_ns[WEFT_MOST_LANES]; /* of blocks not put, by lane */
    const int32_t *strategies;
    int32_t n_moves;
    int64_t steps, steps_left;
    int64_t n_rounds; /* of all tries: a round knows its own states by it */
    bool strayed;     /* a choice was left out, for it strays too far */
    struct weft_error *err;
    enum weft_status status;
};

static int compare_last(const void *a, const void *b)
{
    const struct order *x = a, *y = b;
    if (x->last != y->last) return x->last < y->last ? -1 : 1;
    return x->item < y->item ? -1 : x->item > y->item;
}

static int compare_first(const void *a, const void *b)
{
    const struct order *x = a, *y = b;
    if (x->first != y->first) return x->first > y->first ? -1 : 1;
    return x->item < y->item ? -1 : x->item > y->item;
}

static enum weft_status sort_items(struct weft_exact *exact, struct weft_error *err)
{
    const int32_t n = exact->problem->n_items;
    struct order *orders = calloc((size_t)n + 1, sizeof *orders);
    if (!orders) return weft_fail_memory(err, "an exact search");
    for (int32_t i = 0; i < n; i++) {
        const struct weft_item *it = &exact->problem->items[i].item;
        orders[i] = (struct order){.item = i, .first = it->first, .last = it->last};
    }
    qsort(orders, (size_t)n, sizeof *orders, compare_last);
    for (int32_t i = 0; i < n; i++)
        exact->by_last[i] = orders[i].item;
    qsort(orders, (size_t)n, sizeof *orders, compare_first);
    for (int32_t i = 0; i < n; i++)
        exact->by_first[i] = orders[i].item;
    free(orders);
    return WEFT_OK;
}

enum weft_status weft_exact_create(struct weft_search *search, struct weft_exact **out,
                                   struct weft_error *err)
{
    struct weft_exact *exact = calloc(1, sizeof *exact);
    if (!exact) return weft_fail_memory(err, "an exact search");
    size_t n_slots = (size_t)search->table->n_slots, n_items = (size_t)search->table->n_items;
    exact->search = search;
    exact->problem = search->table->problem;
    size_t n_rows = (size_t)search->table->n_rows;
    exact->rows = calloc(n_rows + n_slots + 1 + n_items + KEY_WORDS, sizeof *exact->rows);
    const size_t n_blocks = (size_t)search->table->n_blocks;
    exact->left = calloc(6 * n_items + 2 * n_blocks + 1, sizeof *exact->left);
    exact->moves = calloc(n_blocks + 1, sizeof *exact->moves);
    exact->met = calloc(MEMORY_SLOTS, sizeof *exact->met);
    if (!exact->rows || !exact->left || !exact->moves || !exact->met) {
        weft_exact_destroy(exact);
        return weft_fail_memory(err, "an exact search");
    }
    exact->rest_ns = exact->rows + n_rows;
    exact->key = exact->rest_ns + n_slots + 1;
    exact->undone = exact->left + n_items;
    exact->by_last = exact->undone + n_items;
    exact->by_first = exact->by_last + n_items;
    exact->last = exact->by_first + n_items;
    exact->first = exact->last + n_items;
    exact->rank = exact->first + n_items;
    exact->launch = exact->rank + n_blocks;
    const enum weft_status status = sort_items(exact, err);
    if (status != WEFT_OK) {
        weft_exact_destroy(exact);
        return status;
    }
    *out = exact;
    return WEFT_OK;
}

void weft_exact_destroy(struct weft_exact *exact)
{
    if (!exact) return;
    free(exact->rows);
    free(exact->left);
    free(exact->moves);
    free(exact->met);
    free(exact);
}

static const struct weft_item *item_of(const struct weft_exact *exact, int32_t item)
{
    return &exact->problem->items[item].item;
}

static int32_t lane_of(const struct weft_exact *exact, int32_t item)
{
    return exact->problem->items[item].lane;
}

static int64_t slot_ns(const struct weft_exact *exact, int32_t slot)
{
    return weft_problem_slot_ns(exact->search->table->problem, exact->strategies, slot);
}

/* Sums the bytes that late reductions hold of each tier in the slot. Their blocks could have
 * completed before it, so `rows` does not contain them. */
static void sum_late(const struct weft_exact *exact, int32_t slot,
                     int64_t late_bytes[WEFT_MOST_TIERS])
{
    memset(late_bytes, 0, WEFT_MOST_TIERS * sizeof *late_bytes);
    for (int32_t i = 0; i < exact->search->table->n_reductions; i++) {
        int32_t item = exact->search->table->reductions[i];
        const struct weft_item *it = item_of(exact, item);
        if (it->first >= slot) break;
        late_bytes[it->stair_tier] += exact->undone[item] * it->stair_bytes;
    }
}

/* True if the slot's rows are within the limit. */
static bool fits_slot(const struct weft_exact *exact, const struct state *at, int32_t slot)
{
    const struct weft_digest *table = exact->search->table;
    for (int32_t tier = 0; tier < exact->problem->n_tiers; tier++)
        if (exact->rows[weft_problem_tier_at(exact->problem, tier) + slot] + at->late_bytes[tier] >
            weft_digest_limit_bytes(table))
            return false;
    return true;
}

static int64_t left_of(const struct weft_exact *exact, int32_t item)
{
    return exact->left[item] * exact->problem->items[item].block_ns;
}

/* True if a lane cannot carry all blocks that are due by the end of some slot, and compute
 * afterwards, before `best_ns`. */
static bool misses_due(const struct weft_exact *exact, const struct state *at, int64_t best_ns)
{
    int64_t free_ns[WEFT_MOST_LANES];
    for (int32_t lane = WEFT_LANE_FIRST; lane < exact->problem->n_lanes; lane++)
        free_ns[lane] =
            at->lanes.now_ns + (at->lanes.left[lane] + WEFT_RATE_ONE - 1) / WEFT_RATE_ONE;
    for (int32_t k = 0; k < exact->n_active; k++) {
        const int32_t item = exact->last[k];
        if (exact->left[item] == 0) continue;
        int64_t *ns = &free_ns[lane_of(exact, item)];
        *ns += left_of(exact, item);
        if (*ns + exact->rest_ns[item_of(exact, item)->last + 1] >= best_ns) return true;
    }
    return false;
}

/* True if a lane cannot carry all blocks that some later slot releases before `best_ns`. Compute
 * ends at `end_ns` at the earliest. */
static bool misses_end(const struct weft_exact *exact, const struct state *at, int64_t end_ns,
                       int64_t best_ns)
{
    int64_t work_ns[WEFT_MOST_LANES] = {0};
    for (int32_t k = 0; k < exact->n_active; k++) {
        const int32_t item = exact->first[k], first = item_of(exact, item)->first;
        if (first <= at->slot) break;
        if (exact->left[item] == 0) continue;
        int64_t *ns = &work_ns[lane_of(exact, item)];
        *ns += left_of(exact, item);
        if (end_ns - exact->rest_ns[first] + *ns >= best_ns) return true;
    }
    return false;
}

/* True if no continuation can beat the best known step. */
static bool is_hopeless(const struct weft_exact *exact, const struct state *at)
{
    const struct weft_problem *problem = exact->problem;
    int64_t best_ns = exact->search->step_ns - weft_problem_agreements_ns(problem);
    int64_t one = WEFT_RATE_ONE, norm_ns = slot_ns(exact, problem->n_slots - 1);
    int64_t compute_ns = (at->lanes.left[WEFT_LANE_COMPUTE] + one - 1) / one +
                         exact->rest_ns[at->computes ? at->slot + 1 : at->slot];
    if (at->lanes.now_ns + compute_ns >= best_ns) return true;
    for (int32_t lane = WEFT_LANE_FIRST; lane < exact->problem->n_lanes; lane++) {
        int64_t ns = exact->left_ns[lane] + (at->lanes.left[lane] + one - 1) / one;
        if (ns > 0 && at->lanes.now_ns + ns + norm_ns >= best_ns) return true;
    }
    return misses_due(exact, at, best_ns) ||
           misses_end(exact, at, at->lanes.now_ns + compute_ns, best_ns - norm_ns);
}

/* True if the state was met before in this round, at the same time or earlier, with at least as
 * many strays. */
static bool was_met(struct weft_exact *exact, const struct state *at)
{
    size_t n = 0;
    exact->key[n++] = exact->n_rounds;
    exact->key[n++] = at->slot * 8 + at->stays * 4 + at->computes * 2 + at->waits;
    for (int32_t lane = 0; lane < exact->problem->n_lanes; lane++) {
        exact->key[n++] = at->lanes.left[lane];
        exact->key[n++] = (int64_t)at->on[lane] * 2 + at->rests[lane];
    }
    for (int32_t i = 0; i < exact->search->table->n_items; i++)
        exact->key[n++] = exact->left[i];
    for (int32_t tier = 0; tier < exact->problem->n_tiers; tier++)
        exact->key[n++] = at->late_bytes[tier];
    struct weft_hash hash = weft_hash_bytes(exact->key, n * sizeof *exact->key);
    struct met *met = &exact->met[hash.low & (MEMORY_SLOTS - 1)];
    if (weft_hash_equal(met->key, hash) && met->now_ns <= at->lanes.now_ns &&
        met->strays >= at->strays)
        return true;
    *met = (struct met){hash, at->lanes.now_ns, at->strays};
    return false;
}

/* Work units of a step. Copies of the state and its key take most of them. */
static int64_t step_units(const struct weft_exact *exact)
{
    return 300 + 8 * (int64_t)exact->search->table->n_items;
}

/* Recurses as deep as a step has events; MOST_EVENTS limits them. */
static void explore_state(struct weft_exact *exact, struct state at);

static void offer_plan(struct weft_exact *exact)
{
    enum weft_status status = weft_search_try_moves(exact->search, exact->strategies, exact->moves,
                                                    exact->n_moves, exact->err);
    if (status != WEFT_OK && exact->status == WEFT_OK) exact->status = status;
}

/* True if a gather has blocks left in its last slot and compute may not wait for them. */
static bool lacks_kept(const struct weft_exact *exact, const struct state *at)
{
    for (int32_t i = 0; i < exact->search->table->n_gathers; i++) {
        int32_t item = exact->search->table->gathers[i];
        const struct weft_item *it = item_of(exact, item);
        if (!it->may_block && it->last == at->slot && exact->left[item] > 0) return true;
    }
    return false;
}

/* True if the block that precedes the item's next block is complete. */
static bool may_follow(const struct weft_exact *exact, int32_t item)
{
    int32_t after = exact->problem->items[item].after;
    return after < 0 || exact->undone[after] < exact->left[item];
}

/* The last slot in which a put block adds bytes to the rows. Rows already hold the last slot of a
 * block that compute may not wait for. */
static int32_t last_of(const struct weft_item *it)
{
    return it->may_block ? it->last : it->last - 1;
}

/* Enters the next slot if its rows fit and no block that is due is missing. Offers the plan after
 * the last slot. */
static void enter_next(struct weft_exact *exact, struct state at)
{
    int32_t next = at.slot + 1;
    for (int32_t lane = WEFT_LANE_FIRST; lane < exact->problem->n_lanes; lane++)
        if (at.on[lane] >= 0 && item_of(exact, at.on[lane])->last == at.slot) return;
    for (int32_t i = 0; i < exact->search->table->n_reductions; i++) {
        int32_t item = exact->search->table->reductions[i];
        if (exact->undone[item] > 0 && item_of(exact, item)->last == at.slot) return;
    }
    if (lacks_kept(exact, &at)) return;
    if (next == exact->problem->n_slots) {
        offer_plan(exact);
        return;
    }
    sum_late(exact, next, at.late_bytes);
    if (!fits_slot(exact, &at, next)) return;
    at.slot = next;
    at.computes = at.waits = at.stays = false;
    memset(at.rests, 0, sizeof at.rests);
    explore_state(exact, at);
}

/* True if compute must wait for a gather that is due and not complete. */
static bool must_block(const struct weft_exact *exact, const struct state *at)
{
    for (int32_t i = 0; i < exact->search->table->n_gathers; i++) {
        int32_t item = exact->search->table->gathers[i];
        if (exact->undone[item] > 0 && item_of(exact, item)->last == at->slot - 1) return true;
    }
    return false;
}

static bool may_put(const struct weft_exact *exact, const struct state *at, int32_t item)
{
    const struct weft_item *it = item_of(exact, item);
    if (exact->left[item] == 0 || it->first > at->slot || !may_follow(exact, item)) return false;
    if (!it->acquires) return true;
    if (it->last == at->slot - 1) return !at->computes;
    const int64_t *rows = exact->rows + weft_problem_stair_at(exact->problem, it);
    for (int32_t s = at->slot; s <= last_of(it) && it->stair_bytes > 0; s++) {
        int64_t held = rows[s] + (s == at->slot ? at->late_bytes[it->stair_tier] : 0);
        if (held + it->stair_bytes > weft_digest_limit_bytes(exact->search->table)) return false;
    }
    return it->last >= at->slot;
}

static void add_rows(struct weft_exact *exact, int32_t item, int32_t slot, int64_t sign)
{
    const struct weft_item *it = item_of(exact, item);
    int64_t *rows = exact->rows + weft_problem_stair_at(exact->problem, it);
    for (int32_t s = slot; it->acquires && s <= last_of(it); s++)
        rows[s] += sign * it->stair_bytes;
}

static void put_block(struct weft_exact *exact, struct state at, int32_t item)
{
    int32_t lane = lane_of(exact, item);
    int64_t ns = exact->problem->items[item].block_ns;
    exact->moves[exact->n_moves] =
        (struct weft_move){.item = item, .slot = at.slot, .launch = at.slot};
    at.move[lane] = exact->n_moves++;
    at.on[lane] = item;
    weft_lanes_start(&at.lanes, lane, ns);
    exact->left[item]--;
    exact->left_ns[lane] -= ns;
    add_rows(exact, item, at.slot, 1);
    explore_state(exact, at);
    add_rows(exact, item, at.slot, -1);
    exact->left_ns[lane] += ns;
    exact->left[item]++;
    exact->n_moves--;
}

/* Takes a stray for a choice that is not the first one. False if none is left. */
static bool may_stray(struct weft_exact *exact, struct state *at)
{
    exact->strayed |= at->strays == 0;
    return at->strays > 0 && at->strays-- > 0;
}

static int32_t next_block(const struct weft_exact *exact, int32_t item)
{
    const int32_t n_blocks = item_of(exact, item)->n_blocks;
    return weft_list_first_blocks(exact->search->list)[item] + n_blocks - exact->left[item];
}

/* The item on the lane whose next block has the least rank above `rank`; -1: none. */
static int32_t next_item(const struct weft_exact *exact, int32_t lane, int32_t rank)
{
    int32_t next = -1, least = INT32_MAX;
    for (int32_t k = 0; k < exact->n_active; k++) {
        const int32_t item = exact->last[k];
        if (exact->left[item] == 0 || lane_of(exact, item) != lane) continue;
        const int32_t own = exact->rank[next_block(exact, item)];
        if (own <= rank || own >= least) continue;
        next = item;
        least = own;
    }
    return next;
}

/* True if the guide puts no block of the lane now. */
static bool guide_rests(const struct weft_exact *exact, const struct state *at, int32_t lane)
{
    const int32_t item = exact->is_guided ? next_item(exact, lane, -1) : -1;
    if (item < 0) return false;
    return exact->launch[next_block(exact, item)] > at->slot || !may_put(exact, at, item);
}

static void rest_lane(struct weft_exact *exact, struct state at, int32_t lane)
{
    at.rests[lane] = true;
    explore_state(exact, at);
}

/* Tries each block that the idle lane may carry, in the guide's order, and rest until the next
 * slot. The guide's own choice comes first. */
static void choose_block(struct weft_exact *exact, struct state at, int32_t lane)
{
    const bool rests = guide_rests(exact, &at, lane);
    bool strays = rests;
    if (rests) rest_lane(exact, at, lane);
    for (int32_t i = next_item(exact, lane, -1); i >= 0;
         i = next_item(exact, lane, exact->rank[next_block(exact, i)])) {
        if (!may_put(exact, &at, i)) continue;
        struct state put = at;
        if (strays && !may_stray(exact, &put)) return;
        strays = true;
        put_block(exact, put, i);
    }
    if (rests || (strays && !may_stray(exact, &at))) return;
    rest_lane(exact, at, lane);
}

/* Ends the rest of lanes with an item that waited for a block of item `done`. */
static void wake_followers(const struct weft_exact *exact, struct state *at, int32_t done)
{
    for (int32_t i = 0; i < exact->search->table->n_items; i++)
        if (exact->problem->items[i].after == done) at->rests[lane_of(exact, i)] = false;
}

/* Explores from `next_ns`, the end of a lane's block. Completes the blocks that are done, and
 * restores them afterwards. */
static void advance_to(struct weft_exact *exact, struct state at, int64_t next_ns)
{
    int32_t done[WEFT_MOST_LANES];
    int64_t before_ns = at.lanes.now_ns;
    bool over = at.computes && !weft_lanes_busy(&at.lanes, WEFT_LANE_COMPUTE), ends_wait = false;
    weft_lanes_advance(&at.lanes, next_ns);
    for (int32_t lane = WEFT_LANE_FIRST; lane < exact->problem->n_lanes; lane++) {
        done[lane] = weft_lanes_busy(&at.lanes, lane) ? -1 : at.on[lane];
        if (done[lane] < 0) continue;
        exact->undone[done[lane]]--;
        bool gathers = item_of(exact, done[lane])->acquires;
        if (!gathers) exact->moves[at.move[lane]].slot = at.slot;
        ends_wait |= !gathers || item_of(exact, done[lane])->last == at.slot;
        at.on[lane] = -1;
        at.waits = false;
        wake_followers(exact, &at, done[lane]);
    }
    if (over && next_ns > before_ns) at.stays = !ends_wait;
    explore_state(exact, at);
    for (int32_t lane = WEFT_LANE_FIRST; lane < exact->problem->n_lanes; lane++)
        if (done[lane] >= 0) exact->undone[done[lane]]++;
}

static void explore_state(struct weft_exact *exact, struct state at)
{
    if (exact->steps_left % STEPS_A_LOOK == 0) {
        weft_work_spend(exact->search->budget.work, STEPS_A_LOOK * step_units(exact));
        if (weft_search_is_spent(exact->search)) exact->steps_left = 0;
    }
    if (exact->steps_left-- <= 0 || is_hopeless(exact, &at) || was_met(exact, &at)) return;
    for (int32_t lane = WEFT_LANE_FIRST; lane < exact->problem->n_lanes; lane++) {
        if (at.on[lane] < 0 || weft_lanes_busy(&at.lanes, lane)) continue;
        advance_to(exact, at, at.lanes.now_ns);
        return;
    }
    if (!at.computes && !must_block(exact, &at)) {
        at.computes = true;
        weft_lanes_start(&at.lanes, WEFT_LANE_COMPUTE, slot_ns(exact, at.slot));
    }
    for (int32_t lane = WEFT_LANE_FIRST; lane < exact->problem->n_lanes; lane++) {
        if (at.on[lane] >= 0 || at.rests[lane] || exact->left_ns[lane] == 0) continue;
        choose_block(exact, at, lane);
        return;
    }
    bool over = at.computes && !weft_lanes_busy(&at.lanes, WEFT_LANE_COMPUTE);
    if (over && !at.waits) {
        if (!at.stays) enter_next(exact, at);
        at.waits = true;
    }
    int64_t next_ns = weft_lanes_next(&at.lanes);
    if (next_ns < INT64_MAX) advance_to(exact, at, next_ns);
}

/* Guides by the search's best if it has the strategies, otherwise by a placement of their own. */
static void set_guide(struct weft_exact *exact)
{
    struct weft_search *search = exact->search;
    const int32_t *first_blocks = weft_list_first_blocks(search->list);
    const size_t bytes = (size_t)search->table->n_decisions * sizeof *search->strategies;
    const bool is_best =
        search->step_ns >= 0 && memcmp(search->strategies, exact->strategies, bytes) == 0;
    const struct weft_move *moves = is_best ? search->moves : exact->moves;
    int32_t n_moves = search->n_moves, rule = 0;
    exact->is_guided = is_best || weft_list_best(search->list, exact->strategies, &rule) >= 0;
    if (exact->is_guided && !is_best)
        exact->is_guided =
            weft_repair_place(search->repair, search->list, exact->strategies,
                              weft_list_rules[rule], GUIDE_REPAIRS, exact->moves, &n_moves) >= 0;
    for (int32_t b = 0; b < search->table->n_blocks; b++) {
        exact->rank[b] = b;
        exact->launch[b] = 0;
    }
    if (!exact->is_guided) return;
    memset(exact->undone, 0, (size_t)search->table->n_items * sizeof *exact->undone);
    for (int32_t k = 0; k < n_moves; k++) {
        const int32_t item = moves[k].item, block = first_blocks[item] + exact->undone[item]++;
        exact->rank[block] = k;
        if (item_of(exact, item)->acquires) exact->launch[block] = moves[k].slot;
    }
}

static void list_active(struct weft_exact *exact)
{
    int32_t n_first = 0;
    exact->n_active = 0;
    for (int32_t k = 0; k < exact->problem->n_items; k++) {
        const int32_t late = exact->by_first[k], early = exact->by_last[k];
        if (weft_item_active(item_of(exact, late), exact->strategies))
            exact->first[n_first++] = late;
        if (weft_item_active(item_of(exact, early), exact->strategies))
            exact->last[exact->n_active++] = early;
    }
}

static bool begin_exact(struct weft_exact *exact)
{
    const struct weft_digest *table = exact->search->table;
    memset(exact->left_ns, 0, sizeof exact->left_ns);
    weft_digest_lean_rows(table, exact->strategies, exact->rows, NULL);
    exact->rest_ns[table->n_slots] = 0;
    for (int32_t s = table->n_slots - 1; s >= 0; s--)
        exact->rest_ns[s] = exact->rest_ns[s + 1] + slot_ns(exact, s);
    for (int32_t r = 0; r < table->n_rows; r++)
        if (exact->rows[r] > weft_digest_limit_bytes(table)) return false;
    list_active(exact);
    for (int32_t i = 0; i < table->n_items; i++) {
        bool active = weft_item_active(item_of(exact, i), exact->strategies);
        exact->left[i] = exact->undone[i] = active ? item_of(exact, i)->n_blocks : 0;
        exact->left_ns[lane_of(exact, i)] += exact->left[i] * exact->problem->items[i].block_ns;
    }
    return true;
}

/* Explores all plans with at most `strays` choices that differ from the first one. */
static void explore_round(struct weft_exact *exact, int32_t strays)
{
    struct state at = {.strays = strays, .lanes = weft_problem_lanes(exact->problem)};
    for (int32_t lane = 0; lane < exact->problem->n_lanes; lane++)
        at.on[lane] = -1;
    exact->n_rounds++;
    exact->strayed = false;
    explore_state(exact, at);
}

bool weft_exact_can(const struct weft_exact *exact)
{
    const struct weft_digest *table = exact->search->table;
    const int64_t rests = (int64_t)table->n_slots * (exact->problem->n_lanes - 1);
    return table->n_slots + table->n_blocks <= MOST_EVENTS &&
           rests + 2 * (int64_t)table->n_blocks <= MOST_DEPTH;
}

enum weft_status weft_exact_try(struct weft_exact *exact, const int32_t *strategies,
                                int64_t most_steps, bool *complete, struct weft_error *err)
{
    exact->strategies = strategies;
    exact->steps = exact->steps_left = most_steps;
    exact->n_moves = 0;
    exact->err = err;
    exact->status = WEFT_OK;
    if (!weft_exact_can(exact)) {
        exact->steps = exact->steps_left = 0;
        *complete = false;
        return WEFT_OK;
    }
    *complete = true;
    int64_t guide_ns = -1; /* the step of the guide's plan */
    for (int32_t strays = FIRST_STRAYS;; strays *= 2) {
        if (guide_ns != exact->search->step_ns) {
            guide_ns = exact->search->step_ns;
            strays = FIRST_STRAYS;
            set_guide(exact);
            if (!begin_exact(exact)) return exact->status;
        }
        explore_round(exact, strays);
        if (!exact->strayed || exact->steps_left <= 0) break;
    }
    *complete = !exact->strayed && exact->steps_left > 0;
    return exact->status;
}

int64_t weft_exact_steps(const struct weft_exact *exact)
{
    return exact->steps - (exact->steps_left > 0 ? exact->steps_left : 0);
}
