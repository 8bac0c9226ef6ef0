#include "plan/milestones.h"

bool weft_milestone_is_of(const struct weft_milestone *milestone,
                          const struct weft_problem *problem)
{
    if (milestone->item < 0 || milestone->item >= problem->n_items) return false;
    const struct weft_item *item = &problem->items[milestone->item].item;
    int32_t last = item->kind == WEFT_ALL_GATHER ? item->last : item->last - 1;
    return milestone->n_blocks >= 1 && milestone->n_blocks <= item->n_blocks &&
           milestone->slot >= item->first && milestone->slot <= last;
}

static void forget_item(struct weft_milestones *all, int32_t i)
{
    for (int32_t b = all->start[i]; b < all->start[i + 1]; b++) {
        all->told_by[b] = INT32_MAX;
        all->told_behind[b] = -1;
    }
    all->n_told[i] = 0;
}

bool weft_milestones_init(struct weft_milestones *all, const struct weft_problem *problem,
                          struct weft_pool *pool)
{
    size_t n_items = (size_t)problem->n_items;
    all->problem = problem;
    all->start = weft_pool_array(pool, n_items + 1, sizeof *all->start);
    all->n_told = weft_pool_array(pool, n_items + 1, sizeof *all->n_told);
    if (all->start == NULL || all->n_told == NULL) return false;
    for (size_t i = 0; i < n_items; i++)
        all->start[i + 1] = all->start[i] + problem->items[i].item.n_blocks;
    size_t n_blocks = (size_t)all->start[n_items];
    all->told_by = weft_pool_array(pool, 4 * n_blocks + 1, sizeof *all->told_by);
    if (all->told_by == NULL) return false;
    all->told_behind = all->told_by + n_blocks;
    all->by = all->told_behind + n_blocks;
    all->behind = all->by + n_blocks;
    for (int32_t i = 0; i < problem->n_items; i++)
        forget_item(all, i);
    return true;
}

struct weft_told weft_milestones_tell(struct weft_milestones *all,
                                      const struct weft_milestone *milestone)
{
    int32_t block = all->start[milestone->item] + milestone->n_blocks - 1;
    int32_t *slot = milestone->reached ? &all->told_by[block] : &all->told_behind[block];
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

void weft_milestones_settle(struct weft_milestones *all)
{
    for (int32_t i = 0; i < all->problem->n_items; i++) {
        if (all->n_told[i] == 0) continue;
        int32_t by = INT32_MAX, behind = -1;
        for (int32_t b = all->start[i + 1] - 1; b >= all->start[i]; b--) {
            if (all->told_by[b] < by) by = all->told_by[b];
            all->by[b] = by;
        }
        for (int32_t b = all->start[i]; b < all->start[i + 1]; b++) {
            if (all->told_behind[b] > behind) behind = all->told_behind[b];
            all->behind[b] = behind;
        }
    }
}

/* How many of an item's blocks have a slot of at most `slot`; slots do not decrease. */
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
    return count_upto(all->by + all->start[item], n, slot);
}

int32_t weft_milestones_most(const struct weft_milestones *all, int32_t item, int32_t slot)
{
    int32_t n = all->start[item + 1] - all->start[item];
    if (all->n_told[item] == 0) return n;
    return count_upto(all->behind + all->start[item], n, slot - 1);
}
