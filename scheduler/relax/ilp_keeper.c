/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/relax/ilp_keeper.h"

/* The item of strategy `other` that moves the same blocks as item `i`; -1 if there is none. Its
 * window is no narrower, and its blocks take no longer. The window's end that memory depends on has
 * the same slot and tier. */
static int32_t counterpart_of(const struct weft_digest *table, int32_t i, int32_t other)
{
    const struct weft_problem *problem = table->problem;
    const struct weft_item *a = &problem->items[i].item;
    for (int32_t k = table->first_item[a->decision]; k < table->first_item[a->decision + 1]; k++) {
        const struct weft_item *b = &problem->items[k].item;
        if (!(b->strategies >> other & 1u) || b->kind != a->kind || b->gather != a->gather ||
            b->stair_tier != a->stair_tier)
            continue;
        bool same_end = a->acquires ? b->last == a->last : b->first == a->first;
        bool wider = b->first <= a->first && b->last >= a->last;
        bool faster = problem->items[k].block_ns <= problem->items[i].block_ns;
        return b->n_blocks == a->n_blocks && same_end && wider && faster ? k : -1;
    }
    return -1;
}

/* Bytes that the blocks of `match` hold beyond the blocks of item `i`, all of them together. */
static int64_t more_bytes(const struct weft_problem *problem, int32_t i, int32_t match)
{
    const struct weft_item *item = &problem->items[i].item;
    int64_t more = problem->items[match].item.stair_bytes - item->stair_bytes;
    return more > 0 ? item->n_blocks * more : 0;
}

/* True if the other's fixed bytes make up for its larger blocks in a tier. They must in every slot
 * of a window, for the blocks of all windows: these may be held together. */
static bool makes_up(const struct weft_digest *table, int32_t decision, int32_t strategy,
                     int32_t other, int32_t tier)
{
    const struct weft_problem *problem = table->problem;
    int32_t at = weft_problem_tier_at(problem, tier);
    const int32_t first = table->first_item[decision], end = table->first_item[decision + 1];
    int64_t more = 0;
    for (int32_t i = first; i < end; i++) {
        const struct weft_item *item = &problem->items[i].item;
        if (item->strategies >> strategy & 1u && item->stair_tier == tier)
            more += more_bytes(problem, i, counterpart_of(table, i, other));
    }
    for (int32_t i = first; more > 0 && i < end; i++) {
        const struct weft_item *item = &problem->items[i].item;
        if (!(item->strategies >> strategy & 1u)) continue;
        if (item->stair_tier != tier) continue;
        if (more_bytes(problem, i, counterpart_of(table, i, other)) == 0) continue;
        for (int32_t s = item->first; s <= item->last; s++)
            if (weft_digest_fixed(table, decision, other, at + s) + more >
                weft_digest_fixed(table, decision, strategy, at + s))
                return false;
    }
    return true;
}

/* True if strategy a holds no more fixed bytes than b in any row. */
static bool holds_no_more(const struct weft_digest *table, size_t a, size_t b)
{
    struct weft_row_walk own = weft_row_walk_begin(&table->fixed, a);
    struct weft_row_walk its = weft_row_walk_begin(&table->fixed, b);
    while (own.next < own.end || its.next < its.end) {
        const bool first =
            its.next == its.end || (own.next < own.end && own.next->row <= its.next->row);
        const int32_t row = first ? own.next->row : its.next->row;
        if (weft_row_walk_to(&own, row) > weft_row_walk_to(&its, row)) return false;
    }
    return true;
}

bool weft_ilp_dominated(const struct weft_digest *table, int32_t decision, int32_t strategy,
                        int32_t other)
{
    const struct weft_problem *problem = table->problem;
    int32_t n_ours = 0, n_theirs = 0;
    const struct weft_problem_strategy *own = &problem->decisions[decision].strategies[strategy];
    const struct weft_problem_strategy *its = &problem->decisions[decision].strategies[other];
    for (int32_t i = 0; i < its->n_times; i++)
        if (its->times[i].ns > weft_strategy_ns(own, its->times[i].slot)) return false;
    if (!holds_no_more(table, weft_digest_at(table, decision, other),
                       weft_digest_at(table, decision, strategy)))
        return false;
    for (int32_t i = table->first_item[decision]; i < table->first_item[decision + 1]; i++) {
        const struct weft_item *item = &problem->items[i].item;
        n_theirs += (item->strategies >> other & 1u) != 0;
        if (!(item->strategies >> strategy & 1u)) continue;
        n_ours++;
        if (counterpart_of(table, i, other) < 0) return false;
    }
    bool dominated = n_ours == n_theirs;
    for (int32_t tier = 0; tier < problem->n_tiers && dominated; tier++)
        dominated = makes_up(table, decision, strategy, other, tier);
    return dominated;
}

bool weft_ilp_worth_a_column(const struct weft_digest *table, int32_t decision, int32_t strategy)
{
    for (int32_t other = 0; other < weft_digest_count(table, decision); other++) {
        if (other == strategy) continue;
        if (weft_ilp_dominated(table, decision, strategy, other) &&
            (other < strategy || !weft_ilp_dominated(table, decision, other, strategy)))
            return false;
    }
    return true;
}

static int64_t least_of_decision(const struct weft_digest *table, int32_t decision, int32_t row)
{
    int64_t least = INT64_MAX;
    for (int32_t p = 0; p < weft_digest_count(table, decision); p++) {
        if (weft_digest_lean(table, decision, p, row) < least)
            least = weft_digest_lean(table, decision, p, row);
    }
    return least;
}

int32_t weft_ilp_full_row(const struct weft_digest *table, int32_t decision, int32_t strategy)
{
    int32_t fullest = -1;
    int64_t most = weft_digest_limit_bytes(table);
    for (int32_t r = 0; r < table->n_rows; r++) {
        int64_t bytes = table->slotwise_least[r] - least_of_decision(table, decision, r) +
                        weft_digest_lean(table, decision, strategy, r);
        if (bytes <= most) continue;
        most = bytes;
        fullest = r;
    }
    return fullest;
}

int32_t weft_ilp_keeper(const struct weft_digest *table, int32_t decision, int32_t strategy)
{
    if (weft_ilp_worth_a_column(table, decision, strategy)) return strategy;
    for (int32_t other = 0; other < weft_digest_count(table, decision); other++) {
        if (weft_ilp_worth_a_column(table, decision, other) &&
            weft_ilp_dominated(table, decision, strategy, other))
            return other;
    }
    return strategy;
}
