/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/place/repair.h"

#include <stdlib.h>
#include <string.h>

#include "base/pool.h"

/* The arrays of a rule that repairs change. */
struct change {
    int32_t *launch;     /* [n_blocks] */
    int32_t *order;      /* [n_blocks] */
    bool *clear;         /* [n_slots] */
    int64_t *late_bytes; /* [n_slots] */
};

struct weft_repair {
    struct weft_pool pool;
    const struct weft_digest *table; /* borrowed */
    /* The best placement so far. */
    struct change kept;
    struct weft_list_wait *waits; /* [n_slots][WEFT_WAIT_KINDS] */
    struct weft_move *moves;      /* [n_blocks] */
    int32_t n_moves;
    int64_t step_ns;
    /* State of one run. */
    struct change trial;
    struct weft_move *trial_moves;
    int32_t n_trial_moves;
    int32_t *launched; /* [n_items], scratch */
    struct weft_list *list;
    const int32_t *strategies;
    struct weft_list_rule rule;
    int32_t tries_left;
};

/* A wait and its index among the waits of a placement. */
struct wait_at {
    int64_t ns;
    int32_t at;
};

static const struct wait_at BEFORE_ALL = {INT64_MAX, -1};

static bool create_change(const struct weft_digest *table, struct weft_pool *pool,
                          struct change *change)
{
    change->launch = weft_pool_array(pool, (size_t)table->n_blocks + 1, sizeof *change->launch);
    change->order = weft_pool_array(pool, (size_t)table->n_blocks + 1, sizeof *change->order);
    change->clear = weft_pool_array(pool, (size_t)table->n_slots, sizeof *change->clear);
    change->late_bytes = weft_pool_array(pool, (size_t)table->n_slots, sizeof *change->late_bytes);
    return change->launch && change->order && change->clear && change->late_bytes;
}

enum weft_status weft_repair_create(const struct weft_digest *table, struct weft_repair **out,
                                    struct weft_error *err)
{
    struct weft_repair *repair = calloc(1, sizeof *repair);
    if (!repair) return weft_fail_memory(err, "repairs");
    size_t n_waits = (size_t)table->n_slots * WEFT_WAIT_KINDS;
    size_t n_blocks = (size_t)table->n_blocks + 1;
    repair->table = table;
    repair->waits = weft_pool_array(&repair->pool, n_waits, sizeof *repair->waits);
    repair->moves = weft_pool_array(&repair->pool, 2 * n_blocks, sizeof *repair->moves);
    repair->launched =
        weft_pool_array(&repair->pool, (size_t)table->n_items + 1, sizeof *repair->launched);
    if (!create_change(table, &repair->pool, &repair->kept) ||
        !create_change(table, &repair->pool, &repair->trial) || !repair->waits || !repair->moves ||
        !repair->launched) {
        weft_repair_destroy(repair);
        return weft_fail_memory(err, "repairs");
    }
    repair->trial_moves = repair->moves + n_blocks;
    *out = repair;
    return WEFT_OK;
}

void weft_repair_destroy(struct weft_repair *repair)
{
    if (!repair) return;
    weft_pool_finish(&repair->pool);
    free(repair);
}

static void copy_change(const struct weft_repair *repair, const struct change *from,
                        struct change *to)
{
    memcpy(to->launch, from->launch, (size_t)repair->table->n_blocks * sizeof *to->launch);
    memcpy(to->order, from->order, (size_t)repair->table->n_blocks * sizeof *to->order);
    memcpy(to->clear, from->clear, (size_t)repair->table->n_slots * sizeof *to->clear);
    memcpy(to->late_bytes, from->late_bytes,
           (size_t)repair->table->n_slots * sizeof *to->late_bytes);
}

static const struct weft_item *item_of(const struct weft_repair *repair, int32_t item)
{
    return &repair->table->problem->items[item].item;
}

/* Returns the next wait after `before`, ordered by falling length; its ns is 0 if there is none. */
static struct wait_at next_wait(const struct weft_repair *repair,
                                const struct weft_list_wait *waits, struct wait_at before)
{
    struct wait_at next = {0, 0};
    for (int32_t at = 0; at < repair->table->n_slots * WEFT_WAIT_KINDS; at++) {
        int64_t ns = waits[at].ns;
        bool behind = ns < before.ns || (ns == before.ns && at > before.at);
        if (behind && ns > next.ns) next = (struct wait_at){ns, at};
    }
    return next;
}

/* Counts, for each item, the blocks that the trial launches in the slot or before it. */
static void count_launched(struct weft_repair *repair, int32_t slot)
{
    memset(repair->launched, 0, (size_t)repair->table->n_items * sizeof *repair->launched);
    for (int32_t k = 0; k < repair->n_trial_moves; k++)
        repair->launched[repair->trial_moves[k].item] += repair->trial_moves[k].slot <= slot;
}

/* Postpones the item's blocks from the nth on until `slot`. Returns false if all waited already. */
static bool put_off_blocks(struct weft_repair *repair, int32_t item, int32_t nth, int32_t slot)
{
    int32_t *launch = repair->trial.launch + weft_list_first_blocks(repair->list)[item];
    bool any = false;
    for (int32_t k = nth; k < item_of(repair, item)->n_blocks; k++) {
        if (launch[k] >= slot) continue;
        launch[k] = slot;
        any = true;
    }
    return any;
}

/* Postpones gathers in the slot until it is past, latest deadlines first, until they free
 * short_bytes. Returns false if there are none. */
static bool put_off_gathers(struct weft_repair *repair, int32_t slot, int64_t short_bytes)
{
    const struct weft_digest *table = repair->table;
    bool any = false;
    count_launched(repair, slot);
    for (int32_t g = table->n_gathers - 1; g >= 0 && short_bytes > 0; g--) {
        int32_t i = table->gathers[g];
        const struct weft_item *item = item_of(repair, i);
        int32_t n = repair->launched[i];
        if (item->last < slot || item->stair_bytes == 0 || n == 0) continue;
        int64_t off = (short_bytes + item->stair_bytes - 1) / item->stair_bytes;
        if (off > n) off = n;
        any |= put_off_blocks(repair, i, n - (int32_t)off, slot + 1);
        short_bytes -= off * item->stair_bytes;
    }
    return any;
}

/* Postpones the cause of a wait. Returns false if nothing can be postponed. */
static bool put_off(struct weft_repair *repair, const struct weft_list_wait *waits, int32_t at)
{
    const struct weft_list_wait *wait = &waits[at];
    int32_t slot = at / WEFT_WAIT_KINDS;
    if (at % WEFT_WAIT_KINDS == WEFT_WAIT_SHORT)
        return put_off_gathers(repair, slot + 1, wait->short_bytes);
    if (at % WEFT_WAIT_KINDS == WEFT_WAIT_ROOM)
        return slot > 0 && put_off_gathers(repair, slot - 1, wait->short_bytes);
    if (at % WEFT_WAIT_KINDS == WEFT_WAIT_FULL) {
        if (wait->short_bytes <= 0 || repair->trial.late_bytes[slot] == 0) return false;
        repair->trial.late_bytes[slot] = 0;
        return true;
    }
    if (wait->ahead < 0) return false;
    if (wait->straddles) {
        if (repair->trial.clear[slot]) return false;
        repair->trial.clear[slot] = true;
        return true;
    }
    if (item_of(repair, wait->ahead)->last <= slot) return false;
    return put_off_blocks(repair, wait->ahead, wait->nth, slot);
}

/* Places the trial's rule. Keeps the placement and returns true if it is the best so far. */
static bool place_trial(struct weft_repair *repair)
{
    const struct weft_digest *table = repair->table;
    repair->rule.launch = repair->trial.launch;
    repair->rule.order = repair->trial.order;
    repair->rule.clear = repair->trial.clear;
    repair->rule.late_bytes = repair->trial.late_bytes;
    repair->tries_left = weft_list_is_late(repair->list) ? 0 : repair->tries_left - 1;
    int64_t ns = weft_list_place(repair->list, repair->strategies, repair->rule,
                                 repair->trial_moves, &repair->n_trial_moves);
    if (ns < 0) {
        repair->n_trial_moves = 0;
        return false;
    }
    if (repair->step_ns >= 0 && ns >= repair->step_ns) return false;
    repair->step_ns = ns;
    repair->n_moves = repair->n_trial_moves;
    memcpy(repair->moves, repair->trial_moves, (size_t)repair->n_moves * sizeof *repair->moves);
    memcpy(repair->waits, weft_list_waits(repair->list),
           (size_t)table->n_slots * WEFT_WAIT_KINDS * sizeof *repair->waits);
    copy_change(repair, &repair->trial, &repair->kept);
    return true;
}

/* Copies the best placement into the trial. */
static void begin_trial(struct weft_repair *repair)
{
    copy_change(repair, &repair->kept, &repair->trial);
    repair->n_trial_moves = repair->n_moves;
    memcpy(repair->trial_moves, repair->moves, (size_t)repair->n_moves * sizeof *repair->moves);
}

/* Postpones the cause of one wait of the best placement, then of the longest new wait, a few
 * times. Returns true once the result is faster. */
static bool follow_wait(struct weft_repair *repair, struct wait_at wait)
{
    enum { DEPTH = 4 };
    begin_trial(repair);
    if (!put_off(repair, repair->waits, wait.at)) return false;
    for (int depth = 0; repair->tries_left > 0; depth++) {
        if (place_trial(repair)) return true;
        if (repair->n_trial_moves == 0 || depth == DEPTH) return false;
        const struct weft_list_wait *waits = weft_list_waits(repair->list);
        wait = next_wait(repair, waits, BEFORE_ALL);
        while (wait.ns > 0 && !put_off(repair, waits, wait.at))
            wait = next_wait(repair, waits, wait);
        if (wait.ns == 0) return false;
    }
    return false;
}

static void put_off_causes(struct weft_repair *repair)
{
    struct wait_at wait = next_wait(repair, repair->waits, BEFORE_ALL);
    while (wait.ns > 0 && repair->tries_left > 0) {
        bool better = follow_wait(repair, wait);
        wait = next_wait(repair, repair->waits, better ? BEFORE_ALL : wait);
    }
}

/* Releases the first n postponed blocks of the item. Returns false if none was postponed. */
static bool release_blocks(struct weft_repair *repair, int32_t item, int32_t n)
{
    int32_t *launch = repair->trial.launch + weft_list_first_blocks(repair->list)[item];
    bool any = false;
    for (int32_t k = 0; k < item_of(repair, item)->n_blocks && n > 0; k++) {
        if (launch[k] == 0) continue;
        launch[k] = 0;
        any = true;
        n--;
    }
    return any;
}

/* Undoes changes that no longer help: for each item one postponed block, then all, and each mark
 * of a slot. Returns true if a try was faster. */
static bool take_back(struct weft_repair *repair)
{
    bool any = false;
    for (int32_t i = 0; i < repair->table->n_items && repair->tries_left > 0; i++) {
        for (int all = 0; all < 2; all++) {
            begin_trial(repair);
            if (release_blocks(repair, i, all ? INT32_MAX : 1)) any |= place_trial(repair);
        }
    }
    for (int32_t s = 0; s < repair->table->n_slots && repair->tries_left > 0; s++) {
        if (!repair->kept.clear[s]) continue;
        begin_trial(repair);
        repair->trial.clear[s] = false;
        any |= place_trial(repair);
    }
    for (int32_t s = 0; s < repair->table->n_slots && repair->tries_left > 0; s++) {
        if (repair->kept.late_bytes[s] == INT64_MAX) continue;
        begin_trial(repair);
        repair->trial.late_bytes[s] = INT64_MAX;
        any |= place_trial(repair);
    }
    return any;
}

/* Copies the arrays of the rule into the trial, with neutral values for missing ones. */
static void begin_change(struct weft_repair *repair, struct weft_list_rule rule)
{
    const struct weft_digest *table = repair->table;
    const int32_t *first_block = weft_list_first_blocks(repair->list);
    struct change *trial = &repair->trial;
    for (int32_t i = 0; i < table->n_items; i++) {
        for (int32_t b = first_block[i]; b < first_block[i + 1]; b++) {
            trial->launch[b] = rule.launch ? rule.launch[b] : 0;
            trial->order[b] = rule.order ? rule.order[b] : item_of(repair, i)->first;
        }
    }
    for (int32_t s = 0; s < table->n_slots; s++) {
        trial->clear[s] = rule.clear && rule.clear[s];
        trial->late_bytes[s] = rule.late_bytes ? rule.late_bytes[s] : INT64_MAX;
    }
}

int64_t weft_repair_place(struct weft_repair *repair, struct weft_list *list,
                          const int32_t *strategies, struct weft_list_rule rule, int32_t most_tries,
                          struct weft_move *moves, int32_t *n_moves)
{
    repair->list = list;
    repair->strategies = strategies;
    repair->rule = rule;
    repair->tries_left = most_tries + 1;
    repair->step_ns = -1;
    begin_change(repair, rule);
    if (!place_trial(repair)) return -1;
    do
        put_off_causes(repair);
    while (repair->tries_left > 0 && take_back(repair));
    *n_moves = repair->n_moves;
    memcpy(moves, repair->moves, (size_t)repair->n_moves * sizeof *moves);
    return repair->step_ns;
}

struct weft_list_rule weft_repair_rule(const struct weft_repair *repair)
{
    struct weft_list_rule rule = repair->rule;
    rule.launch = repair->kept.launch;
    rule.order = repair->kept.order;
    rule.clear = repair->kept.clear;
    rule.late_bytes = repair->kept.late_bytes;
    return rule;
}
