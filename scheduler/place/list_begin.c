/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "problem/target.h"
#include "scheduler/place/list.h"
#include "scheduler/place/list_run.h"

static void find_eager(struct weft_list *list)
{
    for (int32_t k = WEFT_LANE_FIRST; k < list->n_lanes; k++)
        list->moving[k].is_eager = list->n_lanes > WEFT_LANE_FIRST + 1;
    for (int32_t i = 0; i < list->table->n_gathers; i++)
        list->moving[weft_list_item(list, list->table->gathers[i])->lane].is_eager = false;
}

/* Sorts the positions of gathers by the first slots of their windows. `ends` [n_slots + 1] is
 * scratch: the number of gathers up to each slot. */
static void order_openings(struct weft_list *list, int32_t *ends)
{
    const struct weft_digest *table = list->table;
    memset(ends, 0, ((size_t)table->n_slots + 1) * sizeof *ends);
    for (int32_t i = 0; i < table->n_gathers; i++) {
        list->position[table->gathers[i]] = i;
        ends[weft_list_item(list, table->gathers[i])->item.first]++;
    }
    for (int32_t s = 1; s < table->n_slots; s++)
        ends[s] += ends[s - 1];
    for (int32_t i = table->n_gathers - 1; i >= 0; i--)
        list->opening[--ends[weft_list_item(list, table->gathers[i])->item.first]] = i;
}

/* Words of all sets of open gathers. */
static size_t open_words(const struct weft_list *list)
{
    return WEFT_LIST_SETS * (size_t)list->n_lanes * (size_t)list->n_words;
}

enum weft_status weft_list_create(const struct weft_digest *table, struct weft_list **out,
                                  struct weft_error *err)
{
    struct weft_list *list = calloc(1, sizeof *list);
    if (!list) return weft_fail_memory(err, "a list scheduler");
    size_t n_slots = (size_t)table->n_slots + 1, n_items = (size_t)table->n_items + 1;
    size_t n_rows = (size_t)table->problem->n_tiers * n_slots;
    list->table = table;
    list->n_tiers = table->problem->n_tiers;
    list->fixed = calloc(6 * n_rows + n_slots, sizeof *list->fixed);
    list->left = calloc(4 * n_items, sizeof *list->left);
    list->done_ns = calloc(n_items, sizeof *list->done_ns);
    list->waits = calloc(n_slots * WEFT_WAIT_KINDS, sizeof *list->waits);
    list->n_stretches = table->n_slots / WEFT_LIST_STRETCH + 1;
    list->highest =
        calloc((size_t)list->n_tiers * (size_t)list->n_stretches, sizeof *list->highest);
    list->n_lanes = table->problem->n_lanes;
    list->n_words = table->n_gathers / 64 + 1;
    list->open = calloc(open_words(list), sizeof *list->open);
    list->position = calloc(n_items + (size_t)table->n_gathers, sizeof *list->position);
    list->hooks = calloc(n_slots, sizeof *list->hooks);
    list->followers = calloc(n_items, sizeof *list->followers);
    bool ok = list->fixed && list->left && list->done_ns && list->waits && list->highest &&
              list->open && list->position && list->hooks && list->followers;
    for (int32_t k = WEFT_LANE_FIRST; k < list->n_lanes; k++) {
        struct weft_list_lane *lane = &list->moving[k];
        lane->runs = calloc((size_t)table->n_blocks + 1, sizeof *lane->runs);
        lane->upto = calloc(n_slots, sizeof *lane->upto);
        lane->flights = calloc((size_t)table->n_blocks + 1, sizeof *lane->flights);
        ok = ok && lane->runs && lane->upto && lane->flights;
    }
    if (!ok) {
        weft_list_destroy(list);
        return weft_fail_memory(err, "a list scheduler");
    }
    list->least = list->fixed + n_rows;
    list->reserved_bytes = list->least + n_rows;
    list->launched_bytes = list->reserved_bytes + n_rows;
    list->release_bytes = list->launched_bytes + n_rows;
    list->kept_bytes = list->release_bytes + n_rows;
    list->clear_ns = list->kept_bytes + n_rows;
    list->blocked = list->left + n_items;
    list->first_block = list->blocked + n_items;
    list->done = list->first_block + n_items;
    list->has_chains = weft_problem_chains(table->problem);
    weft_problem_hooks(table->problem, list->hooks);
    find_eager(list);
    list->opening = list->position + n_items;
    order_openings(list, list->moving[WEFT_LANE_FIRST].upto);
    for (int32_t i = 0; i < table->n_items; i++)
        list->first_block[i + 1] = list->first_block[i] + weft_list_item(list, i)->item.n_blocks;
    for (int32_t i = 0; i < table->n_items; i++) {
        const struct weft_problem_item *of = weft_list_item(list, i);
        if (of->after >= 0) list->followers[of->after] |= UINT32_C(1) << of->lane;
    }
    *out = list;
    return WEFT_OK;
}

void weft_list_destroy(struct weft_list *list)
{
    if (!list) return;
    for (int32_t k = WEFT_LANE_FIRST; k < list->n_lanes; k++) {
        free(list->moving[k].runs);
        free(list->moving[k].upto);
        free(list->moving[k].flights);
    }
    free(list->fixed);
    free(list->left);
    free(list->done_ns);
    free(list->waits);
    free(list->highest);
    free(list->open);
    free(list->hooks);
    free(list->followers);
    free(list->position);
    free(list);
}

void weft_list_count(struct weft_list *list, struct weft_work *work)
{
    list->work = work;
}

bool weft_list_is_late(const struct weft_list *list)
{
    return weft_work_is_late(list->work);
}

const int32_t *weft_list_first_blocks(const struct weft_list *list)
{
    return list->first_block;
}

/* Sums up the rows of a stretch. */
static void raise_stretch(struct weft_list *list, int32_t tier, int32_t stretch)
{
    const int64_t *least = list->least + weft_list_tier_at(list, tier);
    const int32_t n_rows = list->table->n_slots + 1, end = (stretch + 1) * WEFT_LIST_STRETCH;
    int64_t most = INT64_MIN;
    for (int32_t r = stretch * WEFT_LIST_STRETCH; r < end && r < n_rows; r++)
        if (least[r] > most) most = least[r];
    list->highest[(size_t)tier * (size_t)list->n_stretches + (size_t)stretch] = most;
}

void weft_list_add_least(struct weft_list *list, int32_t tier, int32_t first, int32_t end,
                         int64_t bytes)
{
    int64_t *least = list->least + weft_list_tier_at(list, tier);
    int64_t *highest = list->highest + (size_t)tier * (size_t)list->n_stretches;
    if (first >= end || bytes == 0) return;
    const int32_t from = first / WEFT_LIST_STRETCH, to = (end - 1) / WEFT_LIST_STRETCH;
    for (int32_t r = first; r < end; r++)
        least[r] += bytes;
    raise_stretch(list, tier, from);
    for (int32_t stretch = from + 1; stretch < to; stretch++)
        highest[stretch] += bytes;
    if (to > from) raise_stretch(list, tier, to);
}

/* Reserves room for the blocks of a gather, for as many as fit. Gathers that cannot block have
 * their room already. */
static void reserve_gather(struct weft_list *list, int32_t item)
{
    const struct weft_item *it = &weft_list_item(list, item)->item;
    int32_t last = weft_list_stair_at(list, it) + it->last;
    int64_t room = list->limit - list->least[last], n = it->n_blocks;
    if (it->stair_bytes == 0 || !it->may_block) return;
    while (list->launch && n > 0 && list->launch[list->first_block[item] + n - 1] > it->last)
        n--;
    if (n > room / it->stair_bytes) n = room / it->stair_bytes;
    if (n <= 0) return;
    (void)weft_list_holds(list, list->least[last] + n * it->stair_bytes);
    list->reserved_bytes[last] += n * it->stair_bytes;
    list->least[last] += n * it->stair_bytes;
}

/* Fills the fixed rows of the strategies. Each tier gets an empty slot after the period. */
static void begin_fixed(struct weft_list *list)
{
    size_t n_slots = (size_t)list->table->n_slots;
    weft_digest_fixed_rows(list->table, list->strategies, list->fixed);
    for (int32_t tier = list->n_tiers - 1; tier > 0; tier--) {
        int64_t *rows = list->fixed + weft_list_tier_at(list, tier);
        memmove(rows, list->fixed + (size_t)tier * n_slots, n_slots * sizeof *rows);
        rows[-1] = 0;
    }
}

static void begin_rows(struct weft_list *list, bool stages)
{
    const struct weft_digest *table = list->table;
    int32_t n_rows = weft_list_tier_at(list, list->n_tiers);
    memset(list->fixed, 0, 6 * (size_t)n_rows * sizeof *list->fixed);
    begin_fixed(list);
    list->has_free_gathers = false;
    for (int32_t i = 0; i < table->n_items; i++) {
        const struct weft_item *item = &weft_list_item(list, i)->item;
        bool active = weft_item_active(item, list->strategies);
        list->left[i] = active ? item->n_blocks : 0;
        list->blocked[i] = list->done[i] = 0;
        if (!active) continue;
        int32_t at = weft_list_stair_at(list, item);
        if (!item->acquires) {
            list->release_bytes[at + item->first] += item->n_blocks * item->stair_bytes;
        } else if (item->stair_bytes == 0) {
            list->has_free_gathers = true;
        } else if (!item->may_block) {
            list->kept_bytes[at + item->last] += item->n_blocks * item->stair_bytes;
        }
    }
    for (int32_t r = 0; r < n_rows; r++) {
        list->reserved_bytes[r] = list->kept_bytes[r];
        list->least[r] = list->fixed[r] + list->release_bytes[r] + list->kept_bytes[r];
    }
    for (int32_t i = 0; stages && i < table->n_gathers; i++)
        if (list->left[table->gathers[i]] > 0) reserve_gather(list, table->gathers[i]);
    for (int32_t tier = 0; tier < list->n_tiers; tier++)
        for (int32_t stretch = 0; stretch < list->n_stretches; stretch++)
            raise_stretch(list, tier, stretch);
}

/* Fills clear_ns for is_clear. */
static void begin_clear(struct weft_list *list, const bool *clear)
{
    int32_t n_slots = list->table->n_slots;
    int64_t ns = INT64_MAX;
    for (int32_t s = n_slots - 1; s >= 0; s--) {
        list->clear_ns[s] = ns;
        if (clear && clear[s]) {
            ns = 0;
        } else if (ns < INT64_MAX) {
            ns += weft_problem_slot_ns(list->table->problem, list->strategies, s);
        }
    }
}

void weft_list_begin(struct weft_list *list, const int32_t *strategies, struct weft_list_rule rule,
                     struct weft_move *moves)
{
    size_t n_slots = (size_t)list->table->n_slots + 1;
    list->strategies = strategies;
    list->moves = moves;
    list->limit = weft_digest_limit_bytes(list->table);
    list->used = 0;
    list->gather_within = rule.gather_within;
    list->launch = rule.launch;
    list->order = rule.order;
    list->late_bytes = rule.late_bytes;
    list->puts_off = rule.launch || rule.clear || rule.order || rule.late_bytes;
    for (int32_t k = WEFT_LANE_FIRST; k < list->n_lanes; k++) {
        struct weft_list_lane *lane = &list->moving[k];
        memset(lane->upto, 0, n_slots * sizeof *lane->upto);
        lane->n_put = lane->n_done = lane->flight_begin = lane->flight_end = 0;
        lane->n_runs = lane->head = 0;
        lane->begun = false;
        lane->let_ns = -1;
    }
    list->lanes = weft_problem_lanes(list->table->problem);
    memset(list->tiers, 0, sizeof list->tiers);
    list->pending = 0;
    list->n_moves = 0;
    list->gather_at = list->reduction_at = list->n_opened = 0;
    memset(list->open, 0, open_words(list) * sizeof *list->open);
    begin_rows(list, rule.stages);
    begin_clear(list, rule.clear);
}
