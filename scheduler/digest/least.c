/* SPDX-License-Identifier: Apache-2.0 */
/* The least limit: the choice of strategies with the lowest peak of lean rows. No plan of given
 * strategies holds fewer bytes in a slot than their lean rows. So the problem is to choose one
 * strategy for each decision and minimise the largest row. If one strategy is leanest in every slot
 * (mostly fsdp), it is exact. Otherwise a descent starts there, and a tree (lean_tree.h) continues.
 * If the tree is cut, the slotwise least of all decisions is the proven bound. */
#include "scheduler/digest/digest.h"
#include "scheduler/digest/lean_tree.h"

#include <stdlib.h>
#include <string.h>

static int64_t peak_of(const int64_t *rows, int32_t n_rows)
{
    int32_t peak = 0;
    for (int32_t r = 1; r < n_rows; r++)
        if (rows[r] > rows[peak]) peak = r;
    return rows[peak];
}

static void lean_swap(const struct weft_digest *table, int32_t decision, int32_t from, int32_t to,
                      int64_t *rows)
{
    const struct weft_row_steps *lean = &table->lean;
    weft_row_steps_add(lean, weft_digest_at(table, decision, from), -1, table->n_rows, rows);
    weft_row_steps_add(lean, weft_digest_at(table, decision, to), 1, table->n_rows, rows);
}

/* Returns the strategy with the lowest peak of its own lean row, then with the lowest sum. */
static int32_t leanest_alone(const struct weft_digest *table, int32_t decision)
{
    int32_t best = -1;
    int64_t best_peak = 0, best_sum = 0;
    for (int32_t p = weft_digest_count(table, decision) - 1; p >= 0; p--) {
        struct weft_row_walk walk =
            weft_row_walk_begin(&table->lean, weft_digest_at(table, decision, p));
        int64_t sum = 0, peak = 0;
        for (; walk.next < walk.end; walk.next++) {
            const struct weft_row_step *step = walk.next;
            const int32_t end = step + 1 < walk.end ? step[1].row : table->n_rows;
            sum += (end - step->row) * step->bytes;
            if (step->bytes > peak) peak = step->bytes;
        }
        if (best < 0 || peak < best_peak || (peak == best_peak && sum < best_sum)) {
            best = p;
            best_peak = peak;
            best_sum = sum;
        }
    }
    return best;
}

/* Fills table->slotwise_least: each decision at its least strategy in each row. Returns the
 * largest row, a lower bound for every plan. */
static int64_t slotwise_least(struct weft_digest *table)
{
    int64_t most = 0, *sum = table->slotwise_least;
    memcpy(sum, table->common, (size_t)table->n_rows * sizeof *sum);
    for (int32_t u = 0; u < table->n_decisions; u++) {
        struct weft_row_walk walks[WEFT_MOST_STRATEGIES];
        int32_t n = weft_digest_count(table, u);
        for (int32_t p = 0; p < n; p++)
            walks[p] = weft_row_walk_begin(&table->lean, weft_digest_at(table, u, p));
        for (int32_t r = 0, end; r < table->n_rows; r = end) {
            int64_t least = INT64_MAX;
            end = table->n_rows;
            for (int32_t p = 0; p < n; p++) {
                const int64_t bytes = weft_row_walk_to(&walks[p], r);
                if (bytes < least) least = bytes;
                if (walks[p].next < walks[p].end && walks[p].next->row < end)
                    end = walks[p].next->row;
            }
            for (; least != 0 && r < end; r++)
                sum[r] += least;
        }
    }
    for (int32_t r = 0; r < table->n_rows; r++)
        if (sum[r] > most) most = sum[r];
    return most;
}

static void change_leanest(struct weft_digest *table, int32_t decision, int32_t to, int64_t *rows)
{
    lean_swap(table, decision, table->leanest[decision], to, rows);
    table->leanest[decision] = to;
}

/* A change of a decision's strategy, and the peak that it leads to. */
struct choice {
    int32_t decision; /* -1: no change lowers the peak */
    int32_t strategy;
    int64_t peak;
};

/* Returns the peak with another strategy of the decision, or any row that reaches `enough`. It
 * tries row *highest first, which usually decides. */
static int64_t peak_with(const struct weft_digest *table, int32_t decision, int32_t to,
                         const int64_t *rows, int64_t enough, int32_t *highest)
{
    const int32_t from = table->leanest[decision];
    int64_t peak = rows[*highest] + weft_digest_lean(table, decision, to, *highest) -
                   weft_digest_lean(table, decision, from, *highest);
    struct weft_row_walk old =
        weft_row_walk_begin(&table->lean, weft_digest_at(table, decision, from));
    struct weft_row_walk new =
        weft_row_walk_begin(&table->lean, weft_digest_at(table, decision, to));
    for (int32_t r = 0; r < table->n_rows && peak < enough; r++) {
        int64_t bytes = rows[r] + weft_row_walk_to(&new, r) - weft_row_walk_to(&old, r);
        if (bytes <= peak) continue;
        peak = bytes;
        *highest = r;
    }
    return peak;
}

/* Returns the change of a decision after `before` with the lowest peak below `peak`. */
static struct choice best_change(const struct weft_digest *table, int32_t before, int64_t peak,
                                 const int64_t *rows)
{
    struct choice best = {.decision = -1, .strategy = -1, .peak = peak};
    int32_t highest = 0;
    for (int32_t u = before + 1; u < table->n_decisions; u++) {
        for (int32_t p = 0; p < weft_digest_count(table, u); p++) {
            if (p == table->leanest[u]) continue;
            int64_t now = peak_with(table, u, p, rows, best.peak, &highest);
            if (now < best.peak) best = (struct choice){u, p, now};
        }
    }
    return best;
}

/* Makes the first pair of changes that lowers the peak. Returns false if there is none. */
static bool change_two(struct weft_digest *table, int64_t peak, int64_t *rows)
{
    for (int32_t u = 0; u < table->n_decisions; u++) {
        int32_t was = table->leanest[u];
        for (int32_t p = 0; p < weft_digest_count(table, u); p++) {
            if (p == was) continue;
            change_leanest(table, u, p, rows);
            struct choice second = best_change(table, u, peak, rows);
            if (second.decision >= 0) {
                change_leanest(table, second.decision, second.strategy, rows);
                return true;
            }
            change_leanest(table, u, was, rows);
        }
    }
    return false;
}

/* Changes single decisions while this lowers the peak, the best first, then pairs. With many
 * decisions it makes fewer single changes and no pairs. */
static void descend_leanest(struct weft_digest *table, int64_t *rows)
{
    enum { MOST_WORK = 100000000 };
    int64_t size = (int64_t)table->n_decisions * table->n_rows + 1;
    bool two = size * table->n_decisions < MOST_WORK;
    int64_t rounds = MOST_WORK / size + 1;
    if (rounds > 2 * (int64_t)table->n_decisions) rounds = 2 * (int64_t)table->n_decisions;
    for (int64_t round = 0; round < rounds; round++) {
        int64_t peak = peak_of(rows, table->n_rows);
        struct choice best = best_change(table, -1, peak, rows);
        if (best.decision >= 0) {
            change_leanest(table, best.decision, best.strategy, rows);
        } else if (!two || !change_two(table, peak, rows)) {
            return;
        }
    }
}

enum weft_status weft_digest_find_least(struct weft_digest *table, struct weft_error *err)
{
    int64_t *rows = calloc((size_t)table->n_rows, sizeof *rows);
    if (!rows) return weft_fail_memory(err, "memory rows");
    for (int32_t u = 0; u < table->n_decisions; u++)
        table->leanest[u] = leanest_alone(table, u);
    table->least_proven_bytes = slotwise_least(table);
    if (weft_digest_lean_rows(table, table->leanest, rows, NULL) > table->least_proven_bytes)
        descend_leanest(table, rows);
    table->least_bytes = weft_digest_lean_rows(table, table->leanest, rows, NULL);
    enum weft_status status = WEFT_OK;
    if (table->least_bytes > table->least_proven_bytes) status = weft_lean_tree_search(table, err);
    (void)weft_digest_lean_rows(table, table->leanest, rows, &table->least_row);
    free(rows);
    return status;
}

/* Bytes that the tier's limit lacks for any plan; 0 if one fits, -1 without memory. */
static int64_t lacking_bytes(const struct weft_problem *problem, int32_t tier, int32_t *peak_slot)
{
    struct weft_digest *table = NULL;
    if (weft_digest_create(problem, &table, NULL) != WEFT_OK) return -1;
    int64_t bytes = table->least_bytes - weft_digest_limit_bytes(table);
    if (peak_slot && table->least_row / table->n_slots == tier)
        *peak_slot = table->least_row % table->n_slots;
    weft_digest_destroy(table);
    return bytes > 0 ? bytes : 0;
}

/* With several tiers, the lacking bytes are a lower bound: at the raised limit another tier may
 * exceed its own. So repeat. */
int64_t weft_least_limit(const struct weft_problem *problem, int32_t tier, int32_t *peak_slot)
{
    struct weft_problem trial = *problem;
    int64_t least_bytes = 0, more_bytes = 0;
    trial.tiers[tier].limit_bytes = WEFT_PROBLEM_MOST;
    if (problem->n_tiers > 1) more_bytes = lacking_bytes(&trial, tier, NULL);
    if (more_bytes != 0) return more_bytes < 0 ? -1 : INT64_MAX;
    do {
        trial.tiers[tier].limit_bytes = least_bytes;
        more_bytes = lacking_bytes(&trial, tier, peak_slot);
        if (more_bytes < 0) return -1;
        least_bytes += more_bytes;
    } while (more_bytes > 0 && problem->n_tiers > 1);
    return least_bytes;
}
