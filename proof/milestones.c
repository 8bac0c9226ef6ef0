/* SPDX-License-Identifier: Apache-2.0 */
#include "proof/milestones.h"

bool weft_milestone_is_of(const struct weft_milestone *milestone,
                          const struct weft_problem *problem)
{
    if (milestone->item < 0 || milestone->item >= problem->n_items) return false;
    const struct weft_item *item = &problem->items[milestone->item].item;
    int32_t last = item->acquires ? item->last : item->last - 1;
    if (milestone->moment != WEFT_PLACED && problem->items[milestone->item].block_ns == 0)
        return false;
    return milestone->n_blocks >= 1 && milestone->n_blocks <= item->n_blocks &&
           milestone->slot >= item->first && milestone->slot <= last;
}

static void forget_item(struct weft_milestones *all, int32_t i)
{
    for (int m = 0; m < WEFT_MOMENT_COUNT; m++) {
        for (int32_t b = all->start[i]; b < all->start[i + 1]; b++) {
            all->told_by[m][b] = INT32_MAX;
            all->told_behind[m][b] = -1;
        }
    }
    all->n_told[i] = 0;
}

bool weft_milestones_init(struct weft_milestones *all, const struct weft_problem *problem,
                          struct weft_pool *pool)
{
    size_t n_items = (size_t)problem->n_items;
    size_t n_ends = weft_problem_lane_at(problem, problem->n_lanes);
    all->problem = problem;
    all->start = weft_pool_array(pool, n_items + 1, sizeof *all->start);
    all->n_told = weft_pool_array(pool, n_items + 1, sizeof *all->n_told);
    all->under_way = weft_pool_array(pool, n_ends + 1, sizeof *all->under_way);
    if (all->start == NULL || all->n_told == NULL || all->under_way == NULL) return false;
    for (size_t i = 0; i < n_items; i++)
        all->start[i + 1] = all->start[i] + problem->items[i].item.n_blocks;
    size_t n_blocks = (size_t)all->start[n_items];
    int32_t *slots = weft_pool_array(pool, 4 * WEFT_MOMENT_COUNT * n_blocks + 1, sizeof *slots);
    if (slots == NULL) return false;
    for (size_t m = 0; m < WEFT_MOMENT_COUNT; m++) {
        all->told_by[m] = slots + 4 * m * n_blocks;
        all->told_behind[m] = all->told_by[m] + n_blocks;
        all->by[m] = all->told_behind[m] + n_blocks;
        all->behind[m] = all->by[m] + n_blocks;
    }
    for (int32_t i = 0; i < problem->n_items; i++)
        forget_item(all, i);
    return true;
}

struct weft_told weft_milestones_tell(struct weft_milestones *all,
                                      const struct weft_milestone *milestone)
{
    int32_t block = all->start[milestone->item] + milestone->n_blocks - 1;
    int32_t *slot = milestone->reached ? &all->told_by[milestone->moment][block]
                                       : &all->told_behind[milestone->moment][block];
    struct weft_told told = {slot, *slot, &all->n_told[milestone->item]};
    bool news = milestone->reached ? milestone->slot < *slot : milestone->slot > *slot;
    if (news) *slot = milestone->slot;
    ++*told.n_told;
    return told;
}

void weft_milestones_take_back(const struct weft_told *told)
{
    *told->slot = told->before;
    if (told->n_told != NULL) --*told->n_told;
}

void weft_milestones_forget(struct weft_milestones *all)
{
    for (int32_t i = 0; i < all->problem->n_items; i++)
        if (all->n_told[i] > 0) forget_item(all, i);
}

static int32_t lesser_of(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

static int32_t greater_of(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

/* From the last block to the first: earlier blocks have reached every moment of a later block. */
static void settle_by(struct weft_milestones *all, int32_t i)
{
    int32_t placed = INT32_MAX, begun = INT32_MAX, ended = INT32_MAX;
    for (int32_t b = all->start[i + 1] - 1; b >= all->start[i]; b--) {
        placed = lesser_of(placed, all->told_by[WEFT_PLACED][b]);
        ended = lesser_of(lesser_of(ended, begun), all->told_by[WEFT_ENDED][b]);
        if (!all->problem->items[i].item.acquires) ended = lesser_of(ended, placed);
        begun = lesser_of(lesser_of(begun, ended), all->told_by[WEFT_BEGUN][b]);
        if (all->problem->items[i].item.acquires) placed = lesser_of(placed, begun);
        all->by[WEFT_PLACED][b] = placed;
        all->by[WEFT_BEGUN][b] = begun;
        all->by[WEFT_ENDED][b] = ended;
    }
}

/* From the first block to the last: later blocks have not reached a moment before an earlier block.
 */
static void settle_behind(struct weft_milestones *all, int32_t i)
{
    int32_t placed = -1, begun = -1, ended = -1;
    for (int32_t b = all->start[i]; b < all->start[i + 1]; b++) {
        placed = greater_of(placed, all->told_behind[WEFT_PLACED][b]);
        begun = greater_of(greater_of(begun, ended), all->told_behind[WEFT_BEGUN][b]);
        if (all->problem->items[i].item.acquires) begun = greater_of(begun, placed);
        ended = greater_of(greater_of(ended, begun), all->told_behind[WEFT_ENDED][b]);
        if (!all->problem->items[i].item.acquires) placed = greater_of(placed, ended);
        all->behind[WEFT_PLACED][b] = placed;
        all->behind[WEFT_BEGUN][b] = begun;
        all->behind[WEFT_ENDED][b] = ended;
    }
}

/* Notes the blocks of the item that are under way; false if others are under way there. */
static bool settle_under_way(struct weft_milestones *all, int32_t i)
{
    int32_t *under_way =
        all->under_way + weft_problem_lane_at(all->problem, all->problem->items[i].lane);
    for (int32_t b = all->start[i]; b < all->start[i + 1]; b++) {
        for (int32_t s = all->by[WEFT_BEGUN][b]; s <= all->behind[WEFT_ENDED][b]; s++) {
            if (under_way[s] >= 0) return false;
            under_way[s] = b;
            all->any_under_way = true;
        }
    }
    return true;
}

bool weft_milestones_settle(struct weft_milestones *all)
{
    size_t n_ends = weft_problem_lane_at(all->problem, all->problem->n_lanes);
    bool alone = true;
    for (size_t k = 0; k < n_ends; k++)
        all->under_way[k] = -1;
    all->any_under_way = false;
    for (int32_t i = 0; i < all->problem->n_items && alone; i++) {
        if (all->n_told[i] == 0) continue;
        settle_by(all, i);
        settle_behind(all, i);
        alone = settle_under_way(all, i);
    }
    return alone;
}

void weft_milestones_narrow(const struct weft_milestones *all, int32_t item, int32_t block,
                            int32_t *first, int32_t *last)
{
    int32_t self = all->start[item] + block;
    const int32_t *under_way =
        all->under_way + weft_problem_lane_at(all->problem, all->problem->items[item].lane);
    if (!all->any_under_way) return;
    int32_t begun = weft_milestones_by(all, WEFT_BEGUN, item, block);
    int32_t ended = weft_milestones_behind(all, WEFT_ENDED, item, block);
    for (int32_t s = begun; s <= *last; s++)
        if (under_way[s] >= 0 && under_way[s] != self) *last = s; /* it has ended by then */
    for (int32_t s = ended; s >= *first; s--)
        if (under_way[s] >= 0 && under_way[s] != self) *first = s + 1; /* it begins after that */
    for (; *first <= *last && *first > 0; ++*first) {
        int32_t through = under_way[*first]; /* under way for the whole slot */
        if (through < 0 || through == self || through != under_way[*first - 1]) break;
    }
    for (; *last >= *first && *last > 0; --*last) {
        int32_t through = under_way[*last];
        if (through < 0 || through == self || through != under_way[*last - 1]) break;
    }
}

bool weft_milestones_exist(const struct weft_milestones *all, int32_t item)
{
    enum weft_moment least = all->problem->items[item].item.acquires ? WEFT_PLACED : WEFT_BEGUN;
    return weft_milestones_by(all, least, item, 0) < INT32_MAX;
}

/* The number of an item's blocks with a slot of at most `slot`; slots do not decrease. */
static int32_t count_upto(const int32_t *slots, int32_t n, int32_t slot)
{
    int32_t low = 0, high = n;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (slots[middle] <= slot)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int32_t weft_milestones_least(const struct weft_milestones *all, int32_t item, int32_t slot)
{
    if (all->n_told[item] == 0) return 0;
    int32_t n = all->start[item + 1] - all->start[item];
    return count_upto(all->by[WEFT_PLACED] + all->start[item], n, slot);
}

int32_t weft_milestones_most(const struct weft_milestones *all, int32_t item, int32_t slot)
{
    int32_t n = all->start[item + 1] - all->start[item];
    if (all->n_told[item] == 0) return n;
    return count_upto(all->behind[WEFT_PLACED] + all->start[item], n, slot - 1);
}
