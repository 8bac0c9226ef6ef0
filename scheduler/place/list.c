/* SPDX-License-Identifier: Apache-2.0 */
/* The invariant: for a slot r after the current slot s, `least[r]` counts the least bytes of a
 * tier. There reductions complete at once. Gathers launch in the last slot of their window, in
 * reserved bytes, or block. Each choice keeps `least` within the limit, so the schedule can always
 * go on. The tier's `row` holds the bytes of slot s. */
#include "scheduler/place/list.h"

#include <limits.h>

#include "problem/target.h"
#include "scheduler/place/list_run.h"

const struct weft_list_rule weft_list_rules[WEFT_LIST_RULES] = {
    {.gather_within = 1, .stages = true},          {.gather_within = 0, .stages = true},
    {.gather_within = 2, .stages = true},          {.gather_within = 4, .stages = true},
    {.gather_within = INT32_MAX, .stages = true},  {.gather_within = 1, .stages = false},
    {.gather_within = INT32_MAX, .stages = false},
};

static struct weft_list_lane *lane_of(struct weft_list *list, int32_t item)
{
    return &list->moving[weft_list_item(list, item)->lane];
}

/* Adds the item's next blocks to the lane's last run, or as a new one. */
static void add_run(struct weft_list *list, struct weft_list_lane *lane, int32_t item)
{
    const struct weft_item *it = &weft_list_item(list, item)->item;
    const struct weft_list_run *last = lane->n_runs > 0 ? &lane->runs[lane->n_runs - 1] : NULL;
    const int32_t ahead = last ? last->furthest : -1, nth = it->n_blocks - list->left[item];
    /* An item's blocks are put in order, so those of its run continue it. */
    if (last && last->item == item) return;
    lane->runs[lane->n_runs++] =
        (struct weft_list_run){.begin = lane->n_put,
                               .item = item,
                               .nth = nth,
                               .furthest = it->last > ahead ? it->last : ahead};
}

/* The words of a lane's set of open gathers. */
static uint64_t *open_set(const struct weft_list *list, enum weft_list_set set, int32_t lane)
{
    return list->open + (size_t)((int32_t)set * list->n_lanes + lane) * (size_t)list->n_words;
}

static void mark_gather(struct weft_list *list, int32_t position, bool open)
{
    const struct weft_problem_item *of = weft_list_item(list, list->table->gathers[position]);
    const bool in[WEFT_LIST_SETS] = {[WEFT_LIST_ALL] = true,
                                     [WEFT_LIST_FREE] = of->item.stair_bytes == 0,
                                     [WEFT_LIST_CHAINED] = of->after >= 0};
    const uint64_t bit = UINT64_C(1) << position % 64;
    for (int set = 0; set < WEFT_LIST_SETS; set++) {
        uint64_t *word = open_set(list, (enum weft_list_set)set, of->lane) + position / 64;
        if (in[set]) *word = open ? *word | bit : *word & ~bit;
    }
}

/* Opens the gathers with a window that begins in the slot. */
static void open_gathers(struct weft_list *list)
{
    const struct weft_digest *table = list->table;
    for (; list->n_opened < table->n_gathers; list->n_opened++) {
        const int32_t position = list->opening[list->n_opened], item = table->gathers[position];
        if (weft_list_item(list, item)->item.first > list->slot) return;
        if (list->left[item] > 0) mark_gather(list, position, true);
    }
}

/* Number of the lowest bit of a word, which is not 0. */
static int32_t lowest_bit(uint64_t word)
{
    int32_t at = 0;
    for (int32_t half = 32; half > 0; half /= 2) {
        if ((word & ((UINT64_C(1) << half) - 1)) != 0) continue;
        word >>= half;
        at += half;
    }
    return at;
}

/* Position of the first gather of a set from `at` on, or -1. */
static int32_t next_open(const struct weft_list *list, const uint64_t *set, int32_t at)
{
    int32_t w = at / 64;
    if (w >= list->n_words) return -1;
    uint64_t word = set[w] & (UINT64_MAX << at % 64);
    while (word == 0 && ++w < list->n_words)
        word = set[w];
    return word == 0 ? -1 : w * 64 + lowest_bit(word);
}

/* Puts the item's next n blocks on its lane. Returns the index of their first move, or -1 if the
 * caller wants no moves. */
static int32_t put_blocks(struct weft_list *list, int32_t item, int32_t n)
{
    struct weft_list_lane *lane = lane_of(list, item);
    const int32_t move = list->n_moves;
    add_run(list, lane, item);
    lane->n_put += n;
    lane->upto[weft_list_item(list, item)->item.last] = lane->n_put;
    list->left[item] -= n;
    if (list->left[item] == 0 && weft_list_item(list, item)->item.acquires)
        mark_gather(list, list->position[item], false);
    if (!list->moves) return -1;
    /* A launch keeps a postponed block from an earlier one. */
    const bool launches = list->puts_off || list->has_chains;
    for (int32_t b = 0; b < n; b++)
        list->moves[move + b] = (struct weft_move){
            .item = item, .slot = list->slot, .launch = launches ? list->slot : 0};
    list->n_moves += n;
    return move;
}

static bool is_reserved(const struct weft_list *list, const struct weft_item *it)
{
    int32_t last = weft_list_stair_at(list, it) + it->last;
    int64_t kept = it->may_block ? list->kept_bytes[last] : 0; /* for items that cannot block */
    return list->reserved_bytes[last] - kept >= it->stair_bytes;
}

/* Launches a block. In the last slot of its window it uses reserved bytes if enough are left. */
static void put_gather(struct weft_list *list, int32_t item)
{
    const struct weft_item *it = &weft_list_item(list, item)->item;
    bool reserved = is_reserved(list, it);
    struct weft_list_tier *tier = &list->tiers[it->stair_tier];
    int32_t at = weft_list_stair_at(list, it), last = at + it->last;
    weft_list_add_least(list, it->stair_tier, list->slot + 1, it->last + !reserved,
                        it->stair_bytes);
    if (reserved) {
        list->reserved_bytes[last] -= it->stair_bytes;
        if (!it->may_block) list->kept_bytes[last] -= it->stair_bytes;
    }
    list->launched_bytes[last] += it->stair_bytes;
    tier->held += it->stair_bytes;
    if (it->last > list->slot || !reserved) tier->row += it->stair_bytes;
    if (it->last > list->slot + 1 || (it->last == list->slot + 1 && !reserved))
        tier->next_row += it->stair_bytes;
    put_blocks(list, item, 1);
}

/* Launches all blocks of an item in the last slot of its window, as far as reserved bytes reach,
 * and at least one. Equal to put_gather for each. */
static void put_reserved(struct weft_list *list, int32_t item)
{
    const struct weft_item *it = &weft_list_item(list, item)->item;
    const int32_t last = weft_list_stair_at(list, it) + it->last;
    const int64_t kept = it->may_block ? list->kept_bytes[last] : 0, bytes = it->stair_bytes;
    const int64_t most = bytes > 0 ? (list->reserved_bytes[last] - kept) / bytes : INT32_MAX;
    const int32_t n = most < list->left[item] ? (int32_t)most : list->left[item];
    if (list->launch || it->last != list->slot || n < 1) {
        put_gather(list, item);
        return;
    }
    list->reserved_bytes[last] -= n * bytes;
    if (!it->may_block) list->kept_bytes[last] -= n * bytes;
    list->launched_bytes[last] += n * bytes;
    list->tiers[it->stair_tier].held += n * bytes;
    put_blocks(list, item, n);
}

static void put_reductions(struct weft_list *list, int32_t item, int32_t n)
{
    struct weft_list_lane *lane = lane_of(list, item);
    const struct weft_item *it = &weft_list_item(list, item)->item;
    const int32_t begin = lane->n_put, move = put_blocks(list, item, n);
    lane->flights[lane->flight_end++] = (struct weft_list_flight){
        .move = move, .begin = begin, .n = n, .bytes = it->stair_bytes, .tier = it->stair_tier};
}

static void put_reduction(struct weft_list *list, int32_t item)
{
    put_reductions(list, item, 1);
}

/* Removes completed reductions of a lane from the next row. They still count in this slot. */
static void land_reductions(struct weft_list *list, struct weft_list_lane *lane)
{
    while (lane->flight_begin < lane->flight_end) {
        struct weft_list_flight *flight = &lane->flights[lane->flight_begin];
        const int32_t over = lane->n_done - flight->begin, n = over < flight->n ? over : flight->n;
        if (n <= 0) return;
        list->tiers[flight->tier].next_row -= n * flight->bytes;
        list->tiers[flight->tier].pending -= n * flight->bytes;
        list->pending -= n * flight->bytes;
        for (int32_t b = 0; flight->move >= 0 && b < n; b++)
            list->moves[flight->move++].slot = list->slot;
        flight->begin += n;
        flight->n -= n;
        if (flight->n > 0) return;
        lane->flight_begin++;
    }
}

/* The item of the lane's first incomplete block. */
static int32_t head_item(struct weft_list_lane *lane)
{
    while (lane->head + 1 < lane->n_runs && lane->runs[lane->head + 1].begin <= lane->n_done)
        lane->head++;
    return lane->runs[lane->head].item;
}

/* True if a block that begins now ends before the next slot that must begin clear. */
static bool is_clear(const struct weft_list *list, int32_t item)
{
    if (list->clear_ns[list->slot] == INT64_MAX) return true;
    int64_t left_ns = list->lanes.left[WEFT_LANE_COMPUTE] / WEFT_RATE_ONE;
    return weft_list_item(list, item)->block_ns <= left_ns + list->clear_ns[list->slot];
}

/* Index of the item's next block among all blocks. */
static int32_t next_block(const struct weft_list *list, int32_t item)
{
    return list->first_block[item] + weft_list_item(list, item)->item.n_blocks - list->left[item];
}

/* True if the rule postpones the item's next block and the block need not be put now. */
static bool is_put_off(const struct weft_list *list, int32_t item)
{
    const struct weft_item *it = &weft_list_item(list, item)->item;
    if (!list->puts_off) return false;
    if (it->acquires && !it->may_block && it->last == list->slot) return false;
    if (list->launch && list->slot < list->launch[next_block(list, item)]) return true;
    return !is_clear(list, item);
}

/* True if the gather's next block blocks the slot that uses it: by the rule, or because the last
 * slot of its window launches nothing. */
static bool is_to_block(const struct weft_list *list, int32_t item)
{
    const struct weft_item *it = &weft_list_item(list, item)->item;
    return (it->may_block && list->launch && list->launch[next_block(list, item)] > it->last) ||
           !list->hooks[it->last] || weft_problem_must_block(list->table->problem, it);
}

/* Number of the item's next blocks without a pending predecessor: 0 if the next one must wait,
 * INT32_MAX without a predecessor. */
static int32_t blocks_ahead(const struct weft_list *list, int32_t item)
{
    const struct weft_problem_item *of = weft_list_item(list, item);
    if (of->after < 0) return INT32_MAX;
    return list->done[of->after] - (of->item.n_blocks - list->left[item]);
}

/* True if the predecessor of the item's next block completed at this moment. */
static bool is_fresh(const struct weft_list *list, int32_t item)
{
    return blocks_ahead(list, item) == 1 &&
           list->done_ns[weft_list_item(list, item)->after] == list->lanes.now_ns;
}

/* True if the rule allows the reduction now. Lanes that are never idle ignore the rule. So do
 * reductions that are due in the slot: postponed, they would be put at its end and begin before
 * it. */
static bool may_reduce(struct weft_list *list, int32_t item)
{
    if (lane_of(list, item)->is_eager || weft_list_item(list, item)->item.last == list->slot)
        return true;
    return !is_put_off(list, item);
}

/* Rank of the item's next block in the rule's order. */
static int32_t order_of(const struct weft_list *list, int32_t item)
{
    return list->order[next_block(list, item)];
}

/* Returns the next reduction for a lane, or -1. With `must`, postponed reductions count too. */
static int32_t ready_reduction(struct weft_list *list, int32_t lane, bool must)
{
    const struct weft_digest *table = list->table;
    int32_t best = -1, least = 0;
    while (list->reduction_at < table->n_reductions &&
           list->left[table->reductions[list->reduction_at]] == 0)
        list->reduction_at++;
    for (int32_t i = list->reduction_at; i < table->n_reductions; i++) {
        int32_t item = table->reductions[i];
        if (weft_list_item(list, item)->item.first > list->slot) break;
        if (list->left[item] == 0 || weft_list_item(list, item)->lane != lane) continue;
        if (!(must || may_reduce(list, item)) || blocks_ahead(list, item) <= 0) continue;
        if (!list->order) return item;
        int32_t order = order_of(list, item);
        if (best >= 0 && order >= least) continue;
        best = item;
        least = order;
    }
    return best;
}

/* Notes that a block of the item ended now. */
static void end_item_block(struct weft_list *list, int32_t item)
{
    list->done[item]++;
    list->done_ns[item] = list->lanes.now_ns;
    for (int32_t k = WEFT_LANE_FIRST; (list->followers[item] >> k) != 0; k++)
        if ((list->followers[item] >> k & 1) != 0) list->moving[k].let_ns = list->lanes.now_ns;
}

/* Begins and ends a lane's blocks at the present time. Returns true if a block completed. */
static bool serve_lane(struct weft_list *list, int32_t k)
{
    struct weft_list_lane *lane = &list->moving[k];
    int32_t before = lane->n_done;
    for (; lane->n_done < lane->n_put; lane->n_done++) {
        int32_t item = head_item(lane), after = weft_list_item(list, item)->after;
        if (!lane->begun && after >= 0 && list->done[after] <= list->done[item]) break;
        if (!lane->begun) weft_lanes_start(&list->lanes, k, weft_list_item(list, item)->block_ns);
        lane->begun = weft_lanes_busy(&list->lanes, k);
        if (lane->begun) break;
        end_item_block(list, item);
    }
    return lane->n_done > before;
}

/* Serves each lane, and repeats while chains exist: a block that ends on one lane may let another
 * begin. */
static void serve_lanes(struct weft_list *list)
{
    for (bool any = true; any;) {
        any = false;
        for (int32_t k = WEFT_LANE_FIRST; k < list->n_lanes; k++)
            any = serve_lane(list, k) || any;
        if (!list->has_chains) return;
    }
}

/* Puts ready reductions on eager lanes. Returns true if it put any. */
static bool put_eagerly(struct weft_list *list)
{
    bool any = false;
    int32_t item;
    for (int32_t k = WEFT_LANE_FIRST; k < list->n_lanes; k++) {
        struct weft_list_lane *lane = &list->moving[k];
        while (lane->is_eager && lane->n_done == lane->n_put &&
               (item = ready_reduction(list, k, false)) >= 0) {
            put_reduction(list, item);
            serve_lane(list, k);
            any = true;
        }
    }
    return any;
}

/* Serves all lanes. Eager lanes launch reductions as soon as possible, also while the slot
 * waits. */
static void serve_all(struct weft_list *list)
{
    do {
        serve_lanes(list);
    } while (put_eagerly(list) && list->has_chains);
    for (int32_t k = WEFT_LANE_FIRST; k < list->n_lanes; k++)
        land_reductions(list, &list->moving[k]);
}

/* Advances to the next end of a block or of the slot's compute. */
static void pass_time(struct weft_list *list)
{
    weft_lanes_advance(&list->lanes, weft_lanes_next(&list->lanes));
    serve_all(list);
}

/* Returns the next gather if it is due after `slot`, otherwise -1. Skips completed items. */
static int32_t due_gather(struct weft_list *list, int32_t slot)
{
    const struct weft_digest *table = list->table;
    while (list->gather_at < table->n_gathers && list->left[table->gathers[list->gather_at]] == 0)
        list->gather_at++;
    if (list->gather_at == table->n_gathers) return -1;
    int32_t item = table->gathers[list->gather_at];
    return weft_list_item(list, item)->item.last == slot ? item : -1;
}

/* The last row of a tier after this slot and before `end` without room for the bytes; -1: none. */
static int32_t full_row(struct weft_list *list, int32_t tier, int32_t end, int64_t bytes)
{
    const int64_t *least = list->least + weft_list_tier_at(list, tier);
    const int64_t *highest = list->highest + (size_t)tier * (size_t)list->n_stretches;
    for (int32_t r = end - 1; r > list->slot;) {
        const int32_t stretch = r / WEFT_LIST_STRETCH, first = stretch * WEFT_LIST_STRETCH;
        const bool whole = (r + 1) % WEFT_LIST_STRETCH == 0 && first > list->slot;
        if (whole && weft_list_holds(list, highest[stretch] + bytes)) {
            r = first - 1;
            continue;
        }
        for (; r > list->slot && r >= first; r--)
            if (!weft_list_holds(list, least[r] + bytes)) return r;
    }
    return -1;
}

/* True if a block fits when launched now: in this slot, in the next, and in every slot up to its
 * deadline. A later slot without room sets `blocked`, since `least` never falls: no retry can
 * succeed before that slot is past. */
static bool gather_fits(struct weft_list *list, int32_t item)
{
    const struct weft_item *it = &weft_list_item(list, item)->item;
    const struct weft_list_tier *tier = &list->tiers[it->stair_tier];
    const int64_t bytes = it->stair_bytes;
    bool reserved = is_reserved(list, it);
    if (bytes == 0) return true;
    if (it->last == list->slot) return reserved || weft_list_holds(list, tier->row + bytes);
    if (list->blocked[item] > list->slot) return false;
    const int32_t full = full_row(list, it->stair_tier, it->last + !reserved, bytes);
    if (full > list->slot) {
        list->blocked[item] = full < it->last ? full + 1 : full;
        return false;
    }
    if (!weft_list_holds(list, tier->row + bytes)) return false;
    /* The next slot already counts its reserved bytes, whether the block is launched now or
     * then. */
    return (it->last == list->slot + 1 && reserved) ||
           weft_list_holds(list, tier->next_row + bytes);
}

/* Returns the gather with the earliest deadline that may start on a lane now, or -1. After a
 * gather that does not fit, only gathers of zero bytes are tried. */
static int32_t early_gather(struct weft_list *list, int32_t lane)
{
    const struct weft_digest *table = list->table;
    const uint64_t *set = open_set(list, WEFT_LIST_ALL, lane);
    list->moving[lane].is_full = false;
    if (!list->hooks[list->slot]) return -1;
    for (int32_t i = list->gather_at; (i = next_open(list, set, i)) >= 0; i++) {
        int32_t item = table->gathers[i];
        const struct weft_item *it = &weft_list_item(list, item)->item;
        if (is_put_off(list, item) || weft_problem_must_block(list->table->problem, it)) continue;
        if (blocks_ahead(list, item) <= 0) continue;
        if (gather_fits(list, item)) return item;
        list->moving[lane].is_full = true;
        if (it->last == list->slot) continue; /* this gather will block, the next need not */
        if (!list->has_free_gathers) break;
        set = open_set(list, WEFT_LIST_FREE, lane);
    }
    return -1;
}

/* Bytes by which the next slot exceeds the limit, in its fullest tier; at most 0 if it fits. */
static int64_t excess_of_next(struct weft_list *list)
{
    int64_t most = list->tiers[0].next_row;
    for (int32_t tier = 1; tier < list->n_tiers; tier++)
        if (list->tiers[tier].next_row > most) most = list->tiers[tier].next_row;
    (void)weft_list_holds(list, most);
    return most - list->limit;
}

/* True if the next slot fits and the rule lets it begin before the pending reductions complete. */
static bool may_begin_next(struct weft_list *list)
{
    int32_t next = list->slot + 1;
    if (excess_of_next(list) > 0) return false;
    return !list->late_bytes || next == list->table->n_slots ||
           list->pending <= list->late_bytes[next];
}

/* Returns the first gather on a lane that is due after the slot, or -1. */
static int32_t due_on(const struct weft_list *list, int32_t lane)
{
    const struct weft_digest *table = list->table;
    for (int32_t i = list->gather_at; i < table->n_gathers; i++) {
        int32_t item = table->gathers[i];
        const struct weft_problem_item *of = weft_list_item(list, item);
        if (of->item.last > list->slot) return -1;
        if (of->lane == lane && list->left[item] > 0) return item;
    }
    return -1;
}

/* Puts one block on a lane that is idle while the slot computes. Returns false if no block may
 * start. */
static bool put_next(struct weft_list *list, int32_t lane)
{
    int32_t due = due_on(list, lane);
    if (due >= 0 && !is_to_block(list, due) && blocks_ahead(list, due) > 0 &&
        gather_fits(list, due)) {
        put_gather(list, due);
        return true;
    }
    int32_t reduction = ready_reduction(list, lane, false);
    if (!may_begin_next(list)) {
        int32_t any = ready_reduction(list, lane, true);
        if (any >= 0) {
            put_reduction(list, any);
            return true;
        }
    }
    int32_t gather = early_gather(list, lane);
    if (gather >= 0 && reduction >= 0 &&
        weft_list_item(list, gather)->item.last - list->slot > list->gather_within)
        gather = -1;
    if (gather >= 0) {
        put_gather(list, gather);
    } else if (reduction >= 0) {
        put_reduction(list, reduction);
    } else {
        return false;
    }
    return true;
}

/* Puts a block on an idle lane if its predecessor completed at this moment. Returns false if there
 * is none. Any other block put now would begin at an earlier time. */
static bool put_fresh(struct weft_list *list, int32_t lane)
{
    const struct weft_digest *table = list->table;
    bool must = !may_begin_next(list);
    const uint64_t *chained = open_set(list, WEFT_LIST_CHAINED, lane);
    if (list->moving[lane].let_ns != list->lanes.now_ns) return false;
    for (int32_t i = list->gather_at; (i = next_open(list, chained, i)) >= 0; i++) {
        int32_t item = table->gathers[i];
        if (!is_fresh(list, item)) continue;
        bool due = weft_list_item(list, item)->item.last == list->slot;
        if ((!due && is_put_off(list, item)) || !gather_fits(list, item)) continue;
        put_gather(list, item);
        return true;
    }
    for (int32_t i = list->reduction_at; i < table->n_reductions && list->has_chains; i++) {
        int32_t item = table->reductions[i];
        if (weft_list_item(list, item)->item.first > list->slot) break;
        if (list->left[item] == 0 || weft_list_item(list, item)->lane != lane) continue;
        if (!is_fresh(list, item) || !(must || may_reduce(list, item))) continue;
        put_reduction(list, item);
        return true;
    }
    return false;
}

/* Gives a lane new work each time it becomes idle while the slot computes. Eager lanes are left
 * out. A lane that stayed idle takes only fresh blocks: another block would begin when the lane
 * became idle, in the past. */
static void feed_lane(struct weft_list *list, int32_t k)
{
    struct weft_list_lane *lane = &list->moving[k];
    while (!lane->is_eager && lane->n_done == lane->n_put) {
        bool was_idle = lane->idle;
        lane->idle = was_idle ? !put_fresh(list, k) : !put_next(list, k);
        if (!was_idle) lane->idle_ns = list->lanes.now_ns;
        if (was_idle && lane->idle) return;
        serve_all(list);
    }
}

static void feed_all(struct weft_list *list)
{
    for (int32_t k = WEFT_LANE_FIRST; k < list->n_lanes; k++)
        feed_lane(list, k);
}

/* True if the only moving lane has no chains and nothing computes. Its blocks then run one after
 * another. */
static bool is_alone(const struct weft_list *list)
{
    return list->n_lanes == WEFT_LANE_FIRST + 1 && !list->has_chains &&
           !weft_lanes_busy(&list->lanes, WEFT_LANE_COMPUTE);
}

/* Ends the block in progress, if any. */
static void end_block(struct weft_list *list, int32_t k)
{
    struct weft_list_lane *lane = &list->moving[k];
    int64_t *left = &list->lanes.left[k];
    if (!lane->begun) return;
    if (*left > 0) list->lanes.now_ns += (*left - 1) / WEFT_RATE_ONE + 1;
    *left = 0;
    lane->begun = false;
    lane->n_done++;
}

/* Ends blocks until n_done are complete, without the event loop. An item's blocks take equal times,
 * so those of a run end together. Without chains nobody reads list->done. */
static void drain_lane(struct weft_list *list, int32_t k, int32_t n_done)
{
    struct weft_list_lane *lane = &list->moving[k];
    if (lane->n_done < n_done) end_block(list, k);
    while (lane->n_done < n_done) {
        const int32_t item = head_item(lane), end = weft_list_run_end(lane, lane->head);
        const int32_t n = (end < n_done ? end : n_done) - lane->n_done;
        list->lanes.now_ns += n * weft_list_item(list, item)->block_ns;
        lane->n_done += n;
    }
    serve_all(list);
}

/* Waits until n_done blocks of a lane are complete. With `feeds`, other lanes get work meanwhile:
 * blocks put on them later would begin when they became idle. */
static void wait_for(struct weft_list *list, int32_t lane, int32_t n_done, bool feeds)
{
    if (is_alone(list)) {
        drain_lane(list, lane, n_done);
        return;
    }
    while (list->moving[lane].n_done < n_done) {
        pass_time(list);
        if (feeds) feed_all(list);
    }
}

/* Runs the slot's compute and keeps the lanes at work. */
static void compute_slot(struct weft_list *list, int64_t slot_ns)
{
    int64_t late_bytes = list->pending;
    for (int32_t tier = 0; tier < list->n_tiers; tier++)
        late_bytes -= list->release_bytes[weft_list_tier_at(list, tier) + list->slot];
    weft_lanes_start(&list->lanes, WEFT_LANE_COMPUTE, slot_ns);
    while (weft_lanes_busy(&list->lanes, WEFT_LANE_COMPUTE)) {
        feed_all(list);
        pass_time(list);
    }
    for (int32_t k = WEFT_LANE_FIRST; k < list->n_lanes; k++) {
        const struct weft_list_lane *lane = &list->moving[k];
        if (!lane->is_eager && lane->idle && lane->is_full)
            weft_list_note_full(list, late_bytes, lane->idle_ns);
    }
}

/* Puts the reductions that the slot may launch, ahead of all else (spec/target.h, in_order). */
static void put_in_order(struct weft_list *list)
{
    const struct weft_digest *table = list->table;
    for (int32_t i = list->reduction_at; i < table->n_reductions; i++) {
        const int32_t item = table->reductions[i];
        if (weft_list_item(list, item)->item.first > list->slot) return;
        if (list->left[item] > 0) put_reductions(list, item, list->left[item]);
    }
}

static void begin_slot(struct weft_list *list)
{
    int32_t s = list->slot;
    open_gathers(list);
    if (weft_problem_target(list->table->problem)->in_order) put_in_order(list);
    for (int32_t k = WEFT_LANE_FIRST; k < list->n_lanes; k++) {
        list->moving[k].n_before = list->moving[k].n_put;
        list->moving[k].idle = false;
    }
    for (int32_t k = 0; k < list->n_tiers; k++) {
        struct weft_list_tier *tier = &list->tiers[k];
        int32_t at = weft_list_tier_at(list, k) + s;
        list->pending += list->release_bytes[at];
        tier->pending += list->release_bytes[at];
        tier->row = list->fixed[at] + tier->held + list->reserved_bytes[at] + tier->pending;
        tier->next_row = list->fixed[at + 1] + tier->held - list->launched_bytes[at] +
                         list->reserved_bytes[at + 1] + tier->pending + list->release_bytes[at + 1];
    }
}

/* Puts gathers that the slot uses and that were not launched before it, and waits for them. */
static void put_blocking(struct weft_list *list)
{
    int32_t item;
    while ((item = due_gather(list, list->slot - 1)) >= 0)
        put_blocks(list, item, list->left[item]);
    int32_t upto[WEFT_MOST_LANES];
    bool several = list->n_lanes > WEFT_LANE_FIRST + 1;
    for (int32_t k = WEFT_LANE_FIRST; k < list->n_lanes; k++)
        upto[k] = list->moving[k].is_eager ? list->moving[k].n_before : list->moving[k].n_put;
    serve_all(list);
    for (int32_t k = WEFT_LANE_FIRST; k < list->n_lanes; k++) {
        const struct weft_list_lane *lane = &list->moving[k];
        int64_t from_ns = list->lanes.now_ns;
        if (upto[k] == lane->n_before) continue;
        if (several) feed_all(list);
        wait_for(list, k, lane->n_before, several);
        weft_list_note_blocking(list, lane, lane->n_before, from_ns);
        wait_for(list, k, upto[k], several);
    }
}

/* Puts gathers that are due and cannot block. Their room is reserved from the start. */
static void put_kept(struct weft_list *list)
{
    const struct weft_digest *table = list->table;
    for (int32_t i = list->gather_at; i < table->n_gathers; i++) {
        const struct weft_item *it = &weft_list_item(list, table->gathers[i])->item;
        if (it->last > list->slot) return;
        while (!it->may_block && list->left[table->gathers[i]] > 0)
            put_reserved(list, table->gathers[i]);
    }
}

static void put_due_reductions(struct weft_list *list)
{
    const struct weft_digest *table = list->table;
    for (int32_t i = list->reduction_at; i < table->n_reductions; i++) {
        int32_t item = table->reductions[i];
        if (weft_list_item(list, item)->item.first > list->slot) return;
        if (weft_list_item(list, item)->item.last != list->slot) continue;
        if (list->left[item] > 0) put_reductions(list, item, list->left[item]);
    }
}

/* Puts reductions that must complete before the next slot begins, also postponed ones. Serves idle
 * lanes, or lanes without a reduction in flight. Returns true if it put any. */
static bool put_late(struct weft_list *list, bool only_idle)
{
    bool any = false;
    int32_t item;
    for (int32_t k = WEFT_LANE_FIRST; k < list->n_lanes; k++) {
        const struct weft_list_lane *lane = &list->moving[k];
        if (only_idle ? lane->n_done < lane->n_put : lane->flight_begin < lane->flight_end)
            continue;
        if (may_begin_next(list) || (item = ready_reduction(list, k, true)) < 0) continue;
        put_reduction(list, item);
        any = true;
    }
    if (any) serve_all(list);
    return any;
}

static bool has_flights(const struct weft_list *list)
{
    bool any = false;
    for (int32_t k = WEFT_LANE_FIRST; k < list->n_lanes; k++)
        any = any || list->moving[k].flight_begin < list->moving[k].flight_end;
    return any || (list->has_chains && weft_lanes_next(&list->lanes) < INT64_MAX);
}

/* Waits until all blocks due in the slot are complete. With several lanes, a lane that becomes
 * idle gets the reductions that the next slot waits for: put later, they would begin at this
 * moment anyway. */
static void wait_for_due(struct weft_list *list)
{
    bool several = list->n_lanes > WEFT_LANE_FIRST + 1;
    if (several) put_late(list, true);
    for (int32_t k = WEFT_LANE_FIRST; k < list->n_lanes; k++) {
        int64_t from_ns = list->lanes.now_ns;
        if (is_alone(list)) drain_lane(list, k, list->moving[k].upto[list->slot]);
        while (list->moving[k].n_done < list->moving[k].upto[list->slot]) {
            pass_time(list);
            if (several) put_late(list, true);
        }
        weft_list_note_due(list, &list->moving[k], from_ns);
    }
}

/* Puts the blocks that must complete before the next slot, and waits for them. Returns false if
 * the next slot cannot fit. */
static bool end_slot(struct weft_list *list)
{
    int32_t item;
    while ((item = due_gather(list, list->slot)) >= 0 && !is_to_block(list, item) &&
           is_reserved(list, &weft_list_item(list, item)->item))
        put_reserved(list, item);
    put_kept(list);
    put_due_reductions(list);
    serve_all(list);
    wait_for_due(list);
    int64_t from_ns = list->lanes.now_ns, short_bytes = excess_of_next(list);
    while (!may_begin_next(list)) {
        if (put_late(list, false)) continue;
        if (!has_flights(list)) break;
        pass_time(list);
    }
    if (excess_of_next(list) > 0) return false;
    weft_list_note_short(list, short_bytes, from_ns);
    for (int32_t tier = 0; tier < list->n_tiers; tier++)
        list->tiers[tier].held -= list->launched_bytes[weft_list_tier_at(list, tier) + list->slot];
    return true;
}

int64_t weft_list_place(struct weft_list *list, const int32_t *strategies,
                        struct weft_list_rule rule, struct weft_move *moves, int32_t *n_moves)
{
    const struct weft_digest *table = list->table;
    weft_work_spend(list->work, 80 * (int64_t)table->n_slots + 12 * (int64_t)table->n_blocks);
    weft_list_begin(list, strategies, rule, moves);
    for (int32_t r = 0; r < weft_list_tier_at(list, list->n_tiers); r++)
        if (!weft_list_holds(list, list->least[r])) {
            list->used = 0; /* no smaller limit would do */
            return -1;
        }
    for (list->slot = 0; list->slot < table->n_slots; list->slot++) {
        weft_list_begin_waits(list);
        begin_slot(list);
        put_blocking(list);
        compute_slot(list, weft_problem_slot_ns(table->problem, strategies, list->slot));
        if (!end_slot(list)) return -1;
    }
    if (n_moves) *n_moves = list->n_moves;
    return list->lanes.now_ns + weft_problem_agreements_ns(table->problem);
}

int64_t weft_list_used(const struct weft_list *list)
{
    return list->used;
}

int64_t weft_list_best(struct weft_list *list, const int32_t *strategies, int32_t *rule)
{
    int64_t best_ns = -1;
    for (int32_t i = 0; i < WEFT_LIST_RULES; i++) {
        int64_t ns = weft_list_place(list, strategies, weft_list_rules[i], NULL, NULL);
        if (ns < 0 || (best_ns >= 0 && ns >= best_ns)) continue;
        best_ns = ns;
        if (rule) *rule = i;
    }
    return best_ns;
}
