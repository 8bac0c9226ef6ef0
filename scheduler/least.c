/* The least limit: policies whose lean rows have the lowest peak. No plan of given policies holds
 * less in any slot than their lean rows, so it is a choice of one policy a unit that minimises a
 * maximum over slots. Where one policy is the leanest in every slot (fsdp, mostly) taking it is
 * exact; else a descent from there, and the sum of each unit's least bytes in each slot, maximum
 * over slots, says how far it can be from the least. */
#include "scheduler/digest.h"
#include "scheduler/schedule.h"

#include <stdlib.h>
#include <string.h>

static int64_t peak_of(const int64_t *rows, int32_t n_slots, int32_t *slot)
{
    int32_t peak = 0;
    for (int32_t s = 1; s < n_slots; s++)
        if (rows[s] > rows[peak]) peak = s;
    if (slot) *slot = peak;
    return rows[peak];
}

static void lean_swap(const struct weft_digest *table, int32_t unit, int from, int to,
                      int64_t *rows)
{
    const int64_t *old = &table->lean[weft_digest_row(table, unit, from)];
    const int64_t *new = &table->lean[weft_digest_row(table, unit, to)];
    for (int32_t s = 0; s < table->n_slots; s++)
        rows[s] += new[s] - old[s];
}

/* The allowed policy whose own lean row is lowest at its highest, then in sum. */
static enum weft_policy leanest_alone(const struct weft_digest *table, int32_t unit)
{
    enum weft_policy best = WEFT_POLICY_COUNT;
    int64_t best_peak = 0, best_sum = 0;
    for (int p = WEFT_POLICY_COUNT - 1; p >= 0; p--) {
        if (!(table->problem->units[unit].policies >> p & 1u)) continue;
        const int64_t *row = &table->lean[weft_digest_row(table, unit, p)];
        int64_t sum = 0, peak = peak_of(row, table->n_slots, NULL);
        for (int32_t s = 0; s < table->n_slots; s++)
            sum += row[s];
        if (best == WEFT_POLICY_COUNT || peak < best_peak ||
            (peak == best_peak && sum < best_sum)) {
            best = (enum weft_policy)p;
            best_peak = peak;
            best_sum = sum;
        }
    }
    return best;
}

/* What no plan can go below: in every slot, each unit at its least there. */
static int64_t slotwise_least(struct weft_digest *table)
{
    int64_t most = 0;
    for (int32_t s = 0; s < table->n_slots; s++) {
        int64_t sum = table->common[s];
        for (int32_t u = 0; u < table->n_units; u++) {
            int64_t least = INT64_MAX;
            for (int p = 0; p < WEFT_POLICY_COUNT; p++) {
                if (!(table->problem->units[u].policies >> p & 1u)) continue;
                int64_t bytes = table->lean[weft_digest_row(table, u, p) + (size_t)s];
                if (bytes < least) least = bytes;
            }
            sum += least;
        }
        table->slotwise_least[s] = sum;
        if (sum > most) most = sum;
    }
    return most;
}

/* Changes of one unit's policy that lower the peak, the one that lowers it most first. */
static void descend(struct weft_digest *table, int64_t *rows)
{
    int64_t peak = peak_of(rows, table->n_slots, NULL);
    for (int32_t round = 0; round < 2 * table->n_units; round++) {
        int32_t best_unit = -1;
        enum weft_policy best = WEFT_POLICY_COUNT;
        for (int32_t u = 0; u < table->n_units; u++) {
            for (int p = 0; p < WEFT_POLICY_COUNT; p++) {
                if (p == (int)table->leanest[u] || !(table->problem->units[u].policies >> p & 1u))
                    continue;
                lean_swap(table, u, table->leanest[u], p, rows);
                int64_t now = peak_of(rows, table->n_slots, NULL);
                if (now < peak) {
                    peak = now;
                    best_unit = u;
                    best = (enum weft_policy)p;
                }
                lean_swap(table, u, p, table->leanest[u], rows);
            }
        }
        if (best_unit < 0) return;
        lean_swap(table, best_unit, table->leanest[best_unit], best, rows);
        table->leanest[best_unit] = best;
    }
}

enum weft_status weft_digest_find_least(struct weft_digest *table, struct weft_error *err)
{
    int64_t *rows = calloc((size_t)table->n_slots, sizeof *rows);
    if (!rows) return weft_fail_memory(err, "memory rows");
    for (int32_t u = 0; u < table->n_units; u++)
        table->leanest[u] = leanest_alone(table, u);
    table->least_proven_bytes = slotwise_least(table);
    if (weft_digest_lean_rows(table, table->leanest, rows, NULL) > table->least_proven_bytes)
        descend(table, rows);
    table->least_bytes = weft_digest_lean_rows(table, table->leanest, rows, &table->least_slot);
    free(rows);
    return WEFT_OK;
}

int64_t weft_least_limit(const struct weft_problem *problem, int32_t *peak_slot)
{
    struct weft_digest *table = NULL;
    if (weft_digest_create(problem, &table, NULL) != WEFT_OK) return -1;
    int64_t least = table->least_bytes;
    if (peak_slot) *peak_slot = table->least_slot;
    weft_digest_destroy(table);
    return least;
}
