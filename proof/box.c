/* SPDX-License-Identifier: Apache-2.0 */
#include "proof/box.h"

#include <stdlib.h>
#include <string.h>

/* Rows with more numbers than this (128 MiB) are not made. */
enum { MOST_ROWS = 1 << 24 };

static size_t row_of(const struct weft_problem *problem, int32_t decision, int32_t strategy)
{
    return weft_strategy_at(problem, decision, strategy) * (size_t)weft_problem_n_rows(problem);
}

void weft_hold_add(const struct weft_hold *hold, int32_t n_slots, int64_t *rows)
{
    rows += (size_t)hold->tier * (size_t)n_slots;
    for (int32_t s = hold->first;; s = s + 1 == n_slots ? 0 : s + 1) {
        rows[s] += hold->bytes;
        if (s == hold->last) return;
    }
}

void weft_problem_fixed_rows(const struct weft_problem *problem, int64_t *rows)
{
    for (int32_t u = 0; u < problem->n_decisions; u++) {
        const struct weft_problem_decision *decision = &problem->decisions[u];
        for (int32_t p = 0; p < decision->n_strategies; p++) {
            const struct weft_problem_strategy *strategy = &decision->strategies[p];
            for (int32_t i = 0; i < strategy->n_holds; i++)
                weft_hold_add(&strategy->holds[i], problem->n_slots, rows + row_of(problem, u, p));
        }
    }
}

void weft_problem_add_lean(const struct weft_problem *problem, int64_t *rows)
{
    for (int32_t i = 0; i < problem->n_items; i++) {
        const struct weft_item *item = &problem->items[i].item;
        if (item->may_block) continue;
        int32_t slot = item->acquires ? item->last : item->first;
        int32_t row = weft_problem_stair_at(problem, item) + slot;
        for (int32_t p = 0; p < problem->decisions[item->decision].n_strategies; p++)
            if (item->strategies >> p & 1u)
                rows[row_of(problem, item->decision, p) + (size_t)row] +=
                    item->n_blocks * item->stair_bytes;
    }
}

size_t weft_box_most_spans(const struct weft_problem *problem)
{
    size_t n = 0;
    for (int32_t i = 0; i < problem->n_items; i++)
        n += (size_t)problem->items[i].item.n_blocks;
    return n;
}

static bool make_spans(struct weft_box *box)
{
    const struct weft_problem *problem = box->problem;
    size_t n_items = (size_t)problem->n_items;
    box->span_start = weft_pool_array(&box->pool, n_items + 1, sizeof *box->span_start);
    box->n_spans = weft_pool_array(&box->pool, n_items + 1, sizeof *box->n_spans);
    box->held = weft_pool_array(&box->pool, (size_t)problem->n_slots, sizeof *box->held);
    if (!box->span_start || !box->n_spans || !box->held) return false;
    for (int32_t i = 0; i < problem->n_items; i++)
        box->span_start[i + 1] = box->span_start[i] + problem->items[i].item.n_blocks;
    box->spans =
        weft_pool_array(&box->pool, (size_t)box->span_start[n_items] + 1, sizeof *box->spans);
    return box->spans != NULL;
}

static bool make_rows(struct weft_box *box)
{
    const struct weft_problem *problem = box->problem;
    size_t n_decisions = (size_t)problem->n_decisions;
    size_t n_rows = (size_t)weft_problem_n_rows(problem);
    size_t n_strategies = (size_t)problem->n_strategies;
    if (n_strategies * n_rows > MOST_ROWS) return true;
    box->lean = weft_pool_array(&box->pool, n_strategies * n_rows + 1, sizeof *box->lean);
    box->least = weft_pool_array(&box->pool, n_decisions * n_rows + 1, sizeof *box->least);
    box->common = weft_pool_array(&box->pool, 3 * n_rows + 1, sizeof *box->common);
    if (!box->lean || !box->least || !box->common) return false;
    box->room = box->common + n_rows;
    box->own = box->room + n_rows;
    weft_problem_fixed_rows(problem, box->lean);
    weft_problem_add_lean(problem, box->lean);
    for (int32_t i = 0; i < problem->n_common; i++)
        weft_hold_add(&problem->common[i], problem->n_slots, box->common);
    return true;
}

static enum weft_status create_box(const struct weft_problem *problem, bool with_rows,
                                   struct weft_box **out, struct weft_error *err)
{
    struct weft_box *box = calloc(1, sizeof *box);
    if (box == NULL) return weft_fail_memory(err, "a box of strategies");
    box->problem = problem;
    size_t n_decisions = (size_t)problem->n_decisions;
    box->allowed = weft_pool_array(&box->pool, n_decisions + 1, sizeof *box->allowed);
    uint64_t *all = weft_pool_array(&box->pool, n_decisions + 1, sizeof *all);
    if (box->allowed == NULL || all == NULL || !make_spans(box) || (with_rows && !make_rows(box)) ||
        !weft_milestones_init(&box->moved, problem, &box->pool)) {
        weft_box_destroy(box);
        return weft_fail_memory(err, "a box of strategies");
    }
    for (int32_t u = 0; u < problem->n_decisions; u++)
        all[u] = weft_decision_all(&problem->decisions[u]);
    weft_box_restrict(box, &(struct weft_facts){.allowed = all});
    *out = box;
    return WEFT_OK;
}

enum weft_status weft_box_create(const struct weft_problem *problem, struct weft_box **out,
                                 struct weft_error *err)
{
    return create_box(problem, true, out, err);
}

enum weft_status weft_box_create_plain(const struct weft_problem *problem, struct weft_box **out,
                                       struct weft_error *err)
{
    return create_box(problem, false, out, err);
}

void weft_box_destroy(struct weft_box *box)
{
    if (box == NULL) return;
    weft_pool_finish(&box->pool);
    free(box);
}

/* For rows `first` to `last` of a decision, the least over the strategies. */
static void least_rows(const struct weft_box *box, int32_t decision, uint64_t strategies,
                       int32_t first, int32_t last, int64_t *rows)
{
    bool any = false;
    for (int32_t p = 0; p < box->problem->decisions[decision].n_strategies; p++) {
        if (!(strategies >> p & 1u)) continue;
        const int64_t *row = box->lean + row_of(box->problem, decision, p);
        for (int32_t s = first; s <= last; s++)
            rows[s] = any && rows[s] < row[s] ? rows[s] : row[s];
        any = true;
    }
}

static int64_t *least_of(const struct weft_box *box, int32_t decision)
{
    return box->least + (size_t)decision * (size_t)weft_problem_n_rows(box->problem);
}

static void find_room(struct weft_box *box)
{
    const struct weft_problem *problem = box->problem;
    int32_t n_rows = weft_problem_n_rows(problem);
    for (int32_t tier = 0, r = 0; tier < problem->n_tiers; tier++)
        for (int32_t s = 0; s < problem->n_slots; s++, r++)
            box->room[r] = problem->tiers[tier].limit_bytes - box->common[r];
    for (int32_t u = 0; u < problem->n_decisions; u++) {
        const int64_t *least = least_of(box, u);
        least_rows(box, u, box->allowed[u], 0, n_rows - 1, least_of(box, u));
        for (int32_t r = 0; r < n_rows; r++)
            box->room[r] -= least[r];
    }
}

static bool fits_strategy(const struct weft_box *box, int32_t decision, int32_t strategy)
{
    const int64_t *least = least_of(box, decision);
    const int64_t *row = box->lean + row_of(box->problem, decision, strategy);
    int32_t n_rows = weft_problem_n_rows(box->problem);
    for (int32_t r = 0; r < n_rows; r++)
        if (row[r] - least[r] > box->room[r]) return false;
    return true;
}

/* Removes strategies that cannot fit; true if any. */
static bool rule_out(struct weft_box *box)
{
    bool changed = false;
    for (int32_t u = 0; u < box->problem->n_decisions; u++) {
        uint64_t left = box->allowed[u];
        for (int32_t p = 0; p < box->problem->decisions[u].n_strategies; p++)
            if (left >> p & 1u && !fits_strategy(box, u, p)) left &= ~(UINT64_C(1) << p);
        changed |= left != box->allowed[u];
        if (left == 0) box->empty = true;
        box->allowed[u] = left;
    }
    return changed;
}

/* Fills `held` with the number of blocks that milestones require in every slot of the item's
 * window. All blocks are held anyway in the first slot of a releasing item, and in the last of one
 * that cannot block; these count as 0 here. */
static void find_held(const struct weft_box *box, int32_t i, int32_t *held)
{
    const struct weft_item *item = &box->problem->items[i].item;
    const struct weft_milestones *moved = &box->moved;
    int32_t n = item->n_blocks, placed = 0;
    if (moved->n_told[i] == 0) {
        memset(held + item->first, 0, (size_t)(item->last - item->first + 1) * sizeof *held);
        return;
    }
    for (int32_t s = item->first; s <= item->last; s++) {
        if (item->acquires) {
            while (placed < n && weft_milestones_by(moved, WEFT_PLACED, i, placed) <= s)
                placed++;
            held[s] = s == item->last && !item->may_block ? 0 : placed;
        } else {
            while (placed < n && weft_milestones_behind(moved, WEFT_PLACED, i, placed) < s - 1)
                placed++;
            held[s] = s == item->first ? 0 : n - placed;
        }
    }
}

/* Adds `sign` times an item's bytes from milestones to the rows of its strategies. */
static void add_known(struct weft_box *box, int32_t i, int64_t sign)
{
    const struct weft_item *item = &box->problem->items[i].item;
    find_held(box, i, box->held);
    for (int32_t p = 0; p < box->problem->decisions[item->decision].n_strategies; p++) {
        int64_t *row = box->lean + row_of(box->problem, item->decision, p) +
                       weft_problem_stair_at(box->problem, item);
        if (!(item->strategies >> p & 1u)) continue;
        for (int32_t s = item->first; s <= item->last; s++)
            row[s] += sign * box->held[s] * item->stair_bytes;
    }
}

static void add_all_known(struct weft_box *box, int64_t sign)
{
    for (int32_t i = 0; i < box->problem->n_items && box->lean != NULL; i++)
        if (box->moved.n_told[i] > 0) add_known(box, i, sign);
}

/* Fills box->held with the most blocks of the item in every slot of its window. They are the
 * required blocks, and as many more as fit next to the decision's other bytes. */
static void find_most(struct weft_box *box, int32_t i, uint64_t strategies)
{
    const struct weft_item *item = &box->problem->items[i].item;
    const int64_t n = item->n_blocks, bytes = item->stair_bytes;
    const int32_t at = weft_problem_stair_at(box->problem, item);
    find_held(box, i, box->held);
    if (box->lean != NULL && bytes > 0)
        least_rows(box, item->decision, strategies, at + item->first, at + item->last, box->own);
    for (int32_t s = item->first; s <= item->last; s++) {
        int64_t more = n;
        if (box->lean != NULL && bytes > 0) {
            int32_t r = at + s;
            int64_t room = box->room[r] + least_of(box, item->decision)[r] - box->own[r];
            if (room < n * bytes) more = room < bytes ? 0 : room / bytes;
        }
        if (more < n - box->held[s])
            box->held[s] += (int32_t)more;
        else
            box->held[s] = item->n_blocks;
    }
}

/* Adds a block's span, merged with the last one if they are equal. */
static void add_span(struct weft_box *box, int32_t i, struct weft_span span)
{
    struct weft_span *spans = box->spans + box->span_start[i];
    int32_t n = box->n_spans[i];
    bool alike = n > 0 && spans[n - 1].first == span.first && spans[n - 1].last == span.last &&
                 spans[n - 1].hold == span.hold;
    if (alike)
        spans[n - 1].n_blocks++;
    else
        spans[box->n_spans[i]++] = span;
}

/* Adds a gather's block with launches from `first` on. False if it must be launched earlier. */
static bool add_gather(struct weft_box *box, int32_t i, int32_t block, int32_t first)
{
    const struct weft_item *item = &box->problem->items[i].item;
    const struct weft_milestones *moved = &box->moved;
    int32_t by = weft_milestones_by(moved, WEFT_PLACED, i, block);
    int32_t not_by = weft_milestones_behind(moved, WEFT_PLACED, i, block);
    int32_t begun = weft_milestones_behind(moved, WEFT_BEGUN, i, block) + 1;
    int32_t ended = weft_milestones_by(moved, WEFT_ENDED, i, block);
    if (!item->may_block && by > item->last) by = item->last;
    bool may_block = by > item->last;
    struct weft_span span = {1, first > not_by ? first : not_by + 1,
                             ended < item->last ? ended : item->last,
                             may_block ? item->last + 1 : by};
    if (!may_block && span.first > span.hold) return false;
    if (begun > span.first) span.first = begun;
    weft_milestones_narrow(moved, i, block, &span.first, &span.last);
    if (!may_block && span.first > span.last) return false;
    add_span(box, i, span);
    return true;
}

/* Adds a reduction's block that must be complete by the end of `last`. False if it cannot be. */
static bool add_reduction(struct weft_box *box, int32_t i, int32_t block, int32_t last)
{
    const struct weft_item *item = &box->problem->items[i].item;
    const struct weft_milestones *moved = &box->moved;
    int32_t by = weft_milestones_by(moved, WEFT_PLACED, i, block);
    int32_t not_by = weft_milestones_behind(moved, WEFT_PLACED, i, block);
    int32_t begun = weft_milestones_behind(moved, WEFT_BEGUN, i, block) + 1;
    int32_t ended = weft_milestones_by(moved, WEFT_ENDED, i, block);
    struct weft_span span = {1, begun > item->first ? begun : item->first, by < last ? by : last,
                             not_by + 1 > item->first ? not_by + 1 : item->first};
    if (span.hold > span.last) return false;
    if (ended < span.last) span.last = ended;
    weft_milestones_narrow(moved, i, block, &span.first, &span.last);
    if (span.first > span.last) return false;
    add_span(box, i, span);
    return true;
}

static bool narrow_gather(struct weft_box *box, int32_t i)
{
    const struct weft_item *item = &box->problem->items[i].item;
    int32_t left = item->n_blocks;
    /* The last slot always has room for blocks that cannot block. */
    int32_t from = item->may_block ? item->last : item->last - 1;
    for (int32_t s = from; s >= item->first && left > 0; s--) {
        int32_t most = box->held[s];
        for (; left > most; left--)
            if (!add_gather(box, i, left - 1, s + 1)) return false;
    }
    for (; left > 0; left--)
        if (!add_gather(box, i, left - 1, item->first)) return false;
    return true;
}

static bool narrow_reduction(struct weft_box *box, int32_t i)
{
    const struct weft_item *item = &box->problem->items[i].item;
    int32_t n = item->n_blocks, done = 0;
    for (int32_t s = item->first + 1; s <= item->last && done < n; s++) {
        int32_t least = n - box->held[s];
        for (; done < least; done++)
            if (!add_reduction(box, i, done, s - 1)) return false;
    }
    for (; done < n; done++)
        if (!add_reduction(box, i, done, item->last)) return false;
    return true;
}

/* Makes the item's spans; false if no plan in the box has the item. */
static bool narrow_item(struct weft_box *box, int32_t i)
{
    const struct weft_item *item = &box->problem->items[i].item;
    uint64_t strategies = box->allowed[item->decision] & item->strategies;
    box->n_spans[i] = 0;
    if (strategies == 0) return true;
    find_most(box, i, strategies);
    return item->acquires ? narrow_gather(box, i) : narrow_reduction(box, i);
}

/* Makes all spans; false if that ruled out strategies. */
static bool narrow_all(struct weft_box *box)
{
    bool whole = true;
    for (int32_t i = 0; i < box->problem->n_items && !box->empty; i++) {
        const struct weft_item *item = &box->problem->items[i].item;
        if (narrow_item(box, i)) continue;
        whole = false;
        box->allowed[item->decision] &= ~item->strategies;
        box->empty = box->allowed[item->decision] == 0;
    }
    return whole;
}

/* Counts the decisions of a group that must have its strategies, and the decisions that may have
 * them. */
static void count_decisions(const struct weft_box *box, int32_t g, int32_t *must, int32_t *may)
{
    const struct weft_group *group = &box->groups[g];
    *must = *may = 0;
    for (int32_t k = 0; k < group->n_decisions; k++) {
        uint64_t allowed = box->allowed[group->decisions[k]];
        *must += (allowed & ~group->strategies) == 0;
        *may += (allowed & group->strategies) != 0;
    }
}

int32_t weft_box_count(const struct weft_box *box, int32_t group)
{
    int32_t least, most;
    count_decisions(box, group, &least, &most);
    if (box->least_count[group] > least) least = box->least_count[group];
    if (box->most_count[group] < most) most = box->most_count[group];
    return least == most ? least : -1;
}

static bool settle_group(struct weft_box *box, int32_t g)
{
    const struct weft_group *group = &box->groups[g];
    int32_t must, may;
    bool changed = false;
    count_decisions(box, g, &must, &may);
    if (must > box->most_count[g] || may < box->least_count[g]) {
        box->allowed[group->decisions[0]] = 0;
        box->empty = true;
    }
    for (int32_t k = 0; k < group->n_decisions && !box->empty; k++) {
        uint64_t *allowed = &box->allowed[group->decisions[k]], before = *allowed;
        bool both = (before & ~group->strategies) != 0 && (before & group->strategies) != 0;
        if (both && must == box->most_count[g]) *allowed &= ~group->strategies;
        if (both && may == box->least_count[g]) *allowed &= group->strategies;
        changed |= *allowed != before;
    }
    return changed;
}

/* Removes strategies that contradict the counts; true if any. */
static bool settle_groups(struct weft_box *box)
{
    bool changed = false;
    for (int32_t g = 0; g < box->n_groups && !box->empty; g++)
        changed |= settle_group(box, g);
    return changed;
}

static void forget_counts(struct weft_box *box)
{
    for (int32_t g = 0; g < box->n_groups; g++) {
        box->least_count[g] = 0;
        box->most_count[g] = box->groups[g].n_decisions;
    }
}

enum weft_status weft_box_set_groups(struct weft_box *box, const struct weft_group *groups,
                                     int32_t n_groups, struct weft_error *err)
{
    box->least_count =
        weft_pool_array(&box->pool, 2 * (size_t)n_groups + 1, sizeof *box->least_count);
    if (box->least_count == NULL) return weft_fail_memory(err, "a box of strategies");
    box->most_count = box->least_count + n_groups;
    box->groups = groups;
    box->n_groups = n_groups;
    forget_counts(box);
    return WEFT_OK;
}

struct weft_told weft_box_tell(struct weft_box *box, const struct weft_milestone *milestone)
{
    return weft_milestones_tell(&box->moved, milestone);
}

struct weft_told weft_box_tell_count(struct weft_box *box, const struct weft_count *count)
{
    int32_t *at = count->reached ? &box->least_count[count->group] : &box->most_count[count->group];
    struct weft_told told = {at, *at, NULL};
    if (count->reached && count->n_decisions > *at) *at = count->n_decisions;
    if (!count->reached && count->n_decisions <= *at) *at = count->n_decisions - 1;
    return told;
}

void weft_box_take_back(const struct weft_told *told)
{
    weft_milestones_take_back(told);
}

/* An item with a moved block exists, so its decision has a strategy with the item. */
static void allow_strategies(struct weft_box *box, const uint64_t *allowed)
{
    const struct weft_problem *problem = box->problem;
    memcpy(box->allowed, allowed, (size_t)problem->n_decisions * sizeof *box->allowed);
    box->empty = false;
    for (int32_t i = 0; i < problem->n_items; i++) {
        const struct weft_item *item = &problem->items[i].item;
        if (!weft_milestones_exist(&box->moved, i)) continue;
        box->allowed[item->decision] &= item->strategies;
        box->empty = box->empty || box->allowed[item->decision] == 0;
    }
}

void weft_box_make(struct weft_box *box, const uint64_t *allowed)
{
    memset(box->n_spans, 0, (size_t)box->problem->n_items * sizeof *box->n_spans);
    bool alone = weft_milestones_settle(&box->moved);
    allow_strategies(box, allowed);
    if (!alone && box->problem->n_decisions > 0) {
        box->allowed[0] = 0;
        box->empty = true;
    }
    add_all_known(box, 1);
    do {
        do {
            if (box->lean != NULL && !box->empty) find_room(box);
        } while (!box->empty && ((box->lean != NULL && rule_out(box)) || settle_groups(box)));
    } while (!narrow_all(box) && !box->empty);
    add_all_known(box, -1);
}

void weft_box_restrict(struct weft_box *box, const struct weft_facts *facts)
{
    weft_milestones_forget(&box->moved);
    forget_counts(box);
    for (int32_t k = 0; k < facts->n_milestones; k++)
        (void)weft_box_tell(box, &facts->milestones[k]);
    for (int32_t k = 0; k < facts->n_counts; k++)
        (void)weft_box_tell_count(box, &facts->counts[k]);
    weft_box_make(box, facts->allowed);
}
