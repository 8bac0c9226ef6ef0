/* SPDX-License-Identifier: Apache-2.0 */
/* A choice is a set of changes from the cheapest strategies. A heap gives the sets by their cost. A
 * set with k as its dearest change has two successors: one with k + 1 in place of k, and one with
 * k + 1 added (Lawler, 1972). A set with two changes of one decision is skipped. */
#include "scheduler/search/near.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

/* Sets per try. Most of the cheapest sets exceed the limit. */
enum { SETS_A_TRY = 20, MET = 1 << 14 };

struct change {
    double cost;
    int32_t decision, strategy;
};

struct set {
    double cost;
    int32_t change, parent; /* the dearest change; the set of all others, -1: none */
};

struct near {
    struct change *changes; /* by cost */
    int32_t n_changes;
    struct set *sets;
    int32_t n_sets, most_sets;
    int32_t *heap; /* of sets */
    int32_t n_heap;
    struct change *all; /* all strategies, with the cheapest */
    int32_t n_all;
    const double *cost;    /* the dual's */
    struct weft_hash *met; /* [MET] */
};

static int compare_changes(const void *a, const void *b)
{
    const struct change *x = a, *y = b;
    if (x->cost != y->cost) return x->cost < y->cost ? -1 : 1;
    if (x->decision != y->decision) return x->decision < y->decision ? -1 : 1;
    return x->strategy < y->strategy ? -1 : x->strategy > y->strategy;
}

/* Lists the cost of each strategy, and the extra cost of each change from the cheapest. */
static void list_changes(struct near *near, const struct weft_dual *dual, const uint64_t *allowed)
{
    for (int32_t u = 0; u < dual->table->n_decisions; u++) {
        const double *cost = dual->cost + weft_digest_at(dual->table, u, 0);
        int32_t best = dual->strategies[u];
        for (int32_t p = 0; p < weft_digest_count(dual->table, u); p++) {
            if (!(allowed[u] >> p & 1u)) continue;
            near->all[near->n_all++] = (struct change){cost[p], u, p};
            if (p != best)
                near->changes[near->n_changes++] = (struct change){cost[p] - cost[best], u, p};
        }
    }
    qsort(near->changes, (size_t)near->n_changes, sizeof *near->changes, compare_changes);
}

static bool is_before(const struct near *near, int32_t a, int32_t b)
{
    double x = near->sets[near->heap[a]].cost, y = near->sets[near->heap[b]].cost;
    return x < y || (x == y && near->heap[a] < near->heap[b]);
}

static void swap_sets(struct near *near, int32_t a, int32_t b)
{
    int32_t set = near->heap[a];
    near->heap[a] = near->heap[b];
    near->heap[b] = set;
}

/* Adds the set of the parent's changes and one more. */
static void push_set(struct near *near, int32_t parent, int32_t change)
{
    if (change == near->n_changes || near->n_sets == near->most_sets) return;
    double cost = near->changes[change].cost + (parent < 0 ? 0 : near->sets[parent].cost);
    near->sets[near->n_sets] = (struct set){cost, change, parent};
    int32_t at = near->n_heap++;
    near->heap[at] = near->n_sets++;
    for (; at > 0 && is_before(near, at, (at - 1) / 2); at = (at - 1) / 2)
        swap_sets(near, at, (at - 1) / 2);
}

/* Removes the cheapest set and adds its successors. -1: none is left. */
static int32_t pop_set(struct near *near)
{
    if (near->n_heap == 0) return -1;
    int32_t set = near->heap[0];
    near->heap[0] = near->heap[--near->n_heap];
    for (int32_t at = 0;;) {
        int32_t least = at;
        for (int32_t child = 2 * at + 1; child <= 2 * at + 2 && child < near->n_heap; child++)
            if (is_before(near, child, least)) least = child;
        if (least == at) break;
        swap_sets(near, at, least);
        at = least;
    }
    push_set(near, near->sets[set].parent, near->sets[set].change + 1);
    push_set(near, set, near->sets[set].change + 1);
    return set;
}

/* Makes the set's changes. False if two are of one decision. */
static bool apply_set(const struct near *near, int32_t set, const int32_t *cheapest,
                      int32_t *strategies)
{
    for (; set >= 0; set = near->sets[set].parent) {
        const struct change *change = &near->changes[near->sets[set].change];
        if (strategies[change->decision] != cheapest[change->decision]) return false;
        strategies[change->decision] = change->strategy;
    }
    return true;
}

/* The change with the least cost per byte freed in the memory row. Bytes beyond the row's excess do
 * not count. -1: no change frees bytes. */
static int32_t best_retreat(const struct near *near, const struct weft_search *search, int32_t row,
                            const int32_t *strategies)
{
    const struct weft_digest *table = search->table;
    double least = INFINITY;
    int32_t best = -1;
    double excess = (double)(search->rows[row] - weft_digest_limit_bytes(search->table));
    weft_work_spend(search->budget.work, 4 * (int64_t)near->n_all);
    for (int32_t k = 0; k < near->n_all; k++) {
        const struct change *to = &near->all[k];
        int32_t now = strategies[to->decision];
        double freed = (double)(weft_digest_lean(table, to->decision, now, row) -
                                weft_digest_lean(table, to->decision, to->strategy, row));
        if (freed <= 0) continue;
        double cost = to->cost - near->cost[weft_digest_at(table, to->decision, now)];
        double value = cost / (freed < excess ? freed : excess);
        if (value < least) least = value, best = k;
    }
    return best;
}

/* Makes the strategies fit, the fullest row first. False if no change helps. */
static bool retreat_to_fit(const struct near *near, struct weft_search *search, int32_t *strategies)
{
    for (int32_t left = 2 * search->table->n_decisions; left > 0; left--) {
        if (weft_search_fits(search, strategies)) return true;
        int32_t row = 0;
        for (int32_t r = 1; r < search->table->n_rows; r++)
            if (search->rows[r] > search->rows[row]) row = r;
        int32_t k = best_retreat(near, search, row, strategies);
        if (k < 0) return false;
        strategies[near->all[k].decision] = near->all[k].strategy;
    }
    return false;
}

/* True if the table remembers these strategies. */
static bool was_met(struct near *near, const int32_t *strategies, size_t n_decisions)
{
    struct weft_hash hash = weft_hash_bytes(strategies, n_decisions * sizeof *strategies);
    struct weft_hash *met = &near->met[hash.low % MET];
    if (weft_hash_equal(*met, hash)) return true;
    *met = hash;
    return false;
}

static bool create_near(struct near *near, struct weft_pool *pool, const struct weft_digest *table,
                        int32_t most_tries)
{
    size_t n_changes = (size_t)table->problem->n_strategies + 1;
    near->most_sets = 2 * SETS_A_TRY * most_tries + 2;
    near->changes = weft_pool_array(pool, n_changes, sizeof *near->changes);
    near->sets = weft_pool_array(pool, (size_t)near->most_sets, sizeof *near->sets);
    near->heap = weft_pool_array(pool, (size_t)near->most_sets, sizeof *near->heap);
    near->all = weft_pool_array(pool, n_changes, sizeof *near->all);
    near->met = weft_pool_array(pool, MET, sizeof *near->met);
    return near->all && near->met && near->changes && near->sets && near->heap;
}

enum weft_status weft_near_each(struct weft_search *search, const struct weft_dual *dual,
                                const uint64_t *allowed, int64_t enough_ns, int32_t most_tries,
                                weft_near_fn *try, void *context, struct weft_error *err)
{
    struct weft_pool pool = {0};
    struct near near = {0};
    size_t n_decisions = (size_t)search->table->n_decisions;
    const int32_t *cheapest = dual->strategies;
    if (!create_near(&near, &pool, search->table, most_tries)) {
        weft_pool_finish(&pool);
        return weft_fail_memory(err, "strategies near a bound");
    }
    near.cost = dual->cost;
    list_changes(&near, dual, allowed);
    push_set(&near, -1, 0);
    int32_t set = -1; /* no change */
    for (int32_t sets_left = SETS_A_TRY * most_tries; sets_left > 0 && most_tries > 0;
         sets_left--) {
        double cost = set < 0 ? 0 : near.sets[set].cost;
        if (dual->value_ns + cost >= (double)search->step_ns || search->step_ns <= enough_ns ||
            weft_search_is_spent(search))
            break;
        memcpy(search->trial, cheapest, n_decisions * sizeof *cheapest);
        if (apply_set(&near, set, cheapest, search->trial) &&
            retreat_to_fit(&near, search, search->trial) &&
            !was_met(&near, search->trial, n_decisions)) {
            enum weft_near_answer answer = try(context, search->trial);
            if (answer == WEFT_NEAR_STOP) break;
            most_tries -= answer == WEFT_NEAR_TRIED;
        }
        set = pop_set(&near);
        if (set < 0) break;
    }
    weft_pool_finish(&pool);
    return WEFT_OK;
}

static enum weft_near_answer try_by_list(void *context, const int32_t *strategies)
{
    weft_search_try(context, strategies);
    return WEFT_NEAR_TRIED;
}

enum weft_status weft_near_try(struct weft_search *search, const struct weft_dual *dual,
                               const uint64_t *allowed, int64_t enough_ns, int32_t most_tries,
                               struct weft_error *err)
{
    return weft_near_each(search, dual, allowed, enough_ns, most_tries, try_by_list, search, err);
}
