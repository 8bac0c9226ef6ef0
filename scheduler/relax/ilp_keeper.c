#include "scheduler/relax/ilp_keeper.h"

/* The item of strategy `other` that moves the same blocks as item `i`; -1 if there is none. Its
 * window is no narrower, and its blocks take no longer. The window's end that memory depends on has
 * the same slot and tier. */
static int32_t counterpart(const struct weft_problem *problem, int32_t i, int32_t other)
{
    const struct weft_item *a = &problem->items[i].item;
    for (int32_t k = 0; k < problem->n_items; k++) {
        const struct weft_item *b = &problem->items[k].item;
        if (b->decision != a->decision || !(b->strategies >> other & 1u) || b->kind != a->kind ||
            b->gather != a->gather || b->stair_tier != a->stair_tier)
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
    const int64_t *ours = &table->fixed[weft_digest_row(table, decision, strategy)];
    const int64_t *theirs = &table->fixed[weft_digest_row(table, decision, other)];
    int32_t at = weft_problem_tier_at(problem, tier);
    int64_t more = 0;
    for (int32_t i = 0; i < table->n_items; i++) {
        const struct weft_item *item = &problem->items[i].item;
        if (item->decision == decision && item->strategies >> strategy & 1u &&
            item->stair_tier == tier)
            more += more_bytes(problem, i, counterpart(problem, i, other));
    }
    for (int32_t i = 0; more > 0 && i < table->n_items; i++) {
        const struct weft_item *item = &problem->items[i].item;
        if (item->decision != decision || !(item->strategies >> strategy & 1u)) continue;
        if (item->stair_tier != tier) continue;
        if (more_bytes(problem, i, counterpart(problem, i, other)) == 0) continue;
        for (int32_t s = item->first; s <= item->last; s++)
            if (theirs[at + s] + more > ours[at + s]) return false;
    }
    return true;
}

bool weft_ilp_dominated(const struct weft_digest *table, int32_t decision, int32_t strategy,
                        int32_t other)
{
    const struct weft_problem *problem = table->problem;
    const int64_t *ours = &table->fixed[weft_digest_row(table, decision, strategy)];
    const int64_t *theirs = &table->fixed[weft_digest_row(table, decision, other)];
    int32_t n_ours = 0, n_theirs = 0;
    const struct weft_problem_strategy *own = &problem->decisions[decision].strategies[strategy];
    const struct weft_problem_strategy *its = &problem->decisions[decision].strategies[other];
    for (int32_t i = 0; i < its->n_times; i++)
        if (its->times[i].ns > weft_strategy_ns(own, its->times[i].slot)) return false;
    for (int32_t r = 0; r < table->n_rows; r++)
        if (theirs[r] > ours[r]) return false;
    for (int32_t i = 0; i < table->n_items; i++) {
        const struct weft_item *item = &problem->items[i].item;
        if (item->decision != decision) continue;
        n_theirs += (item->strategies >> other & 1u) != 0;
        if (!(item->strategies >> strategy & 1u)) continue;
        n_ours++;
        if (counterpart(problem, i, other) < 0) return false;
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

static int64_t lean_bytes(const struct weft_digest *table, int32_t decision, int32_t strategy,
                          int32_t row)
{
    return table->lean[weft_digest_row(table, decision, strategy) + (size_t)row];
}

static int64_t least_of_decision(const struct weft_digest *table, int32_t decision, int32_t row)
{
    int64_t least = INT64_MAX;
    for (int32_t p = 0; p < weft_digest_count(table, decision); p++) {
        if (lean_bytes(table, decision, p, row) < least)
            least = lean_bytes(table, decision, p, row);
    }
    return least;
}

int32_t weft_ilp_full_row(const struct weft_digest *table, int32_t decision, int32_t strategy)
{
    int32_t fullest = -1;
    int64_t most = weft_digest_limit_bytes(table);
    for (int32_t r = 0; r < table->n_rows; r++) {
        int64_t bytes = table->slotwise_least[r] - least_of_decision(table, decision, r) +
                        lean_bytes(table, decision, strategy, r);
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
