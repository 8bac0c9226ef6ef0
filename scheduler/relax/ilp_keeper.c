#include "scheduler/relax/ilp_keeper.h"

/* The item of `other` that moves the same blocks as item `i` does under its own policy, in a window
 * that is no narrower, with the end that memory depends on in the same place; -1 when none does. */
static int32_t counterpart(const struct weft_problem *problem, int32_t i, enum weft_policy other)
{
    const struct weft_item *a = &problem->items[i].item;
    for (int32_t k = 0; k < problem->n_items; k++) {
        const struct weft_item *b = &problem->items[k].item;
        if (b->unit != a->unit || !(b->policies >> other & 1u) || b->kind != a->kind ||
            b->gather != a->gather)
            continue;
        bool same_end = a->kind == WEFT_ALL_GATHER ? b->last == a->last : b->first == a->first;
        bool wider = b->first <= a->first && b->last >= a->last;
        bool faster = problem->items[k].block_ns <= problem->items[i].block_ns;
        return b->n_blocks == a->n_blocks && same_end && wider && faster ? k : -1;
    }
    return -1;
}

/* What the other's blocks hold more than those of item `i`, all of them together. */
static int64_t more_bytes(const struct weft_problem *problem, int32_t i, int32_t match)
{
    const struct weft_item *item = &problem->items[i].item;
    int64_t more = problem->items[match].item.stair_bytes - item->stair_bytes;
    return more > 0 ? item->n_blocks * more : 0;
}

/* Where the other's blocks hold more, what the policy holds anyway must make up for it: in every
 * slot of a window for the blocks of all windows, because they may be held together. */
static bool makes_up(const struct weft_digest *table, int32_t unit, enum weft_policy policy,
                     enum weft_policy other)
{
    const struct weft_problem *problem = table->problem;
    const int64_t *ours = &table->fixed[weft_digest_row(table, unit, policy)];
    const int64_t *theirs = &table->fixed[weft_digest_row(table, unit, other)];
    int64_t more = 0;
    for (int32_t i = 0; i < table->n_items; i++) {
        const struct weft_item *item = &problem->items[i].item;
        if (item->unit == unit && item->policies >> policy & 1u)
            more += more_bytes(problem, i, counterpart(problem, i, other));
    }
    for (int32_t i = 0; more > 0 && i < table->n_items; i++) {
        const struct weft_item *item = &problem->items[i].item;
        if (item->unit != unit || !(item->policies >> policy & 1u)) continue;
        if (more_bytes(problem, i, counterpart(problem, i, other)) == 0) continue;
        for (int32_t s = item->first; s <= item->last; s++)
            if (theirs[s] + more > ours[s]) return false;
    }
    return true;
}

bool weft_ilp_dominated(const struct weft_digest *table, int32_t unit, enum weft_policy policy,
                        enum weft_policy other)
{
    const struct weft_problem *problem = table->problem;
    const int64_t *ours = &table->fixed[weft_digest_row(table, unit, policy)];
    const int64_t *theirs = &table->fixed[weft_digest_row(table, unit, other)];
    int32_t n_ours = 0, n_theirs = 0;
    if (problem->units[unit].update_ns[other] > problem->units[unit].update_ns[policy])
        return false;
    for (int32_t s = 0; s < table->n_slots; s++)
        if (theirs[s] > ours[s]) return false;
    for (int32_t i = 0; i < table->n_items; i++) {
        const struct weft_item *item = &problem->items[i].item;
        if (item->unit != unit) continue;
        n_theirs += item->policies >> other & 1u;
        if (!(item->policies >> policy & 1u)) continue;
        n_ours++;
        if (counterpart(problem, i, other) < 0) return false;
    }
    return n_ours == n_theirs && makes_up(table, unit, policy, other);
}

bool weft_ilp_worth_a_column(const struct weft_digest *table, int32_t unit, int policy)
{
    uint32_t allowed = table->problem->units[unit].policies;
    if (!(allowed >> policy & 1u)) return false;
    for (int other = 0; other < WEFT_POLICY_COUNT; other++) {
        if (other == policy || !(allowed >> other & 1u)) continue;
        if (weft_ilp_dominated(table, unit, (enum weft_policy)policy, (enum weft_policy)other) &&
            (other < policy ||
             !weft_ilp_dominated(table, unit, (enum weft_policy)other, (enum weft_policy)policy)))
            return false;
    }
    return true;
}

static int64_t lean_bytes(const struct weft_digest *table, int32_t unit, int policy, int32_t slot)
{
    return table->lean[weft_digest_row(table, unit, policy) + (size_t)slot];
}

static int64_t least_of_unit(const struct weft_digest *table, int32_t unit, int32_t slot)
{
    int64_t least = INT64_MAX;
    for (int p = 0; p < WEFT_POLICY_COUNT; p++) {
        if (!(table->problem->units[unit].policies >> p & 1u)) continue;
        if (lean_bytes(table, unit, p, slot) < least) least = lean_bytes(table, unit, p, slot);
    }
    return least;
}

int32_t weft_ilp_full_slot(const struct weft_digest *table, int32_t unit, int policy)
{
    int32_t fullest = -1;
    int64_t most = weft_digest_limit_bytes(table);
    for (int32_t s = 0; s < table->n_slots; s++) {
        int64_t bytes = table->slotwise_least[s] - least_of_unit(table, unit, s) +
                        lean_bytes(table, unit, policy, s);
        if (bytes <= most) continue;
        most = bytes;
        fullest = s;
    }
    return fullest;
}

int weft_ilp_keeper(const struct weft_digest *table, int32_t unit, int policy)
{
    if (weft_ilp_worth_a_column(table, unit, policy)) return policy;
    for (int other = 0; other < WEFT_POLICY_COUNT; other++) {
        if (table->problem->units[unit].policies >> other & 1u &&
            weft_ilp_worth_a_column(table, unit, other) &&
            weft_ilp_dominated(table, unit, (enum weft_policy)policy, (enum weft_policy)other))
            return other;
    }
    return policy;
}
