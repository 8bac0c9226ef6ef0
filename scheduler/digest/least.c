/* The least limit: strategies whose lean rows have the lowest peak. No plan of given strategies
 * holds less in any slot than their lean rows, so it is a choice of one strategy a decision that
 * minimises a maximum over slots. Where one strategy is the leanest in every slot (fsdp, mostly)
 * taking it is exact; else a descent from there, and a tree from where that ends (lean_tree.h).
 * Where the tree is cut short, the sum of each decision's least bytes in each slot, maximum over
 * slots, says how far it can be from the least. */
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
    const int64_t *old = &table->lean[weft_digest_row(table, decision, from)];
    const int64_t *new = &table->lean[weft_digest_row(table, decision, to)];
    for (int32_t r = 0; r < table->n_rows; r++)
        rows[r] += new[r] - old[r];
}

/* The strategy whose own lean row is lowest at its highest, then in sum. */
static int32_t leanest_alone(const struct weft_digest *table, int32_t decision)
{
    int32_t best = -1;
    int64_t best_peak = 0, best_sum = 0;
    for (int32_t p = weft_digest_count(table, decision) - 1; p >= 0; p--) {
        const int64_t *row = &table->lean[weft_digest_row(table, decision, p)];
        int64_t sum = 0, peak = peak_of(row, table->n_rows);
        for (int32_t r = 0; r < table->n_rows; r++)
            sum += row[r];
        if (best < 0 || peak < best_peak || (peak == best_peak && sum < best_sum)) {
            best = p;
            best_peak = peak;
            best_sum = sum;
        }
    }
    return best;
}

/* What no plan can go below: in every row, each decision at its least there. */
static int64_t slotwise_least(struct weft_digest *table)
{
    int64_t most = 0, *sum = table->slotwise_least;
    memcpy(sum, table->common, (size_t)table->n_rows * sizeof *sum);
    for (int32_t u = 0; u < table->n_decisions; u++) {
        const int64_t *rows[WEFT_MOST_STRATEGIES];
        int32_t n = weft_digest_count(table, u);
        for (int32_t p = 0; p < n; p++)
            rows[p] = &table->lean[weft_digest_row(table, u, p)];
        for (int32_t r = 0; r < table->n_rows; r++) {
            int64_t least = INT64_MAX;
            for (int32_t k = 0; k < n; k++)
                if (rows[k][r] < least) least = rows[k][r];
            sum[r] += least;
        }
    }
    for (int32_t r = 0; r < table->n_rows; r++)
        if (sum[r] > most) most = sum[r];
    return most;
}

static void change(struct weft_digest *table, int32_t decision, int32_t to, int64_t *rows)
{
    lean_swap(table, decision, table->leanest[decision], to, rows);
    table->leanest[decision] = to;
}

/* A change of a decision's strategy, and the peak that it leads to. */
struct choice {
    int32_t decision; /* -1: none lowers the peak */
    int32_t strategy;
    int64_t peak;
};

/* The peak of the rows with another strategy of the decision, or something that is no lower than
 * `enough` where the peak is not: few changes lower the slot that was too high last. */
static int64_t peak_with(const struct weft_digest *table, int32_t decision, int32_t to,
                         const int64_t *rows, int64_t enough, int32_t *highest)
{
    const int64_t *old = &table->lean[weft_digest_row(table, decision, table->leanest[decision])];
    const int64_t *new = &table->lean[weft_digest_row(table, decision, to)];
    int64_t peak = rows[*highest] + new[*highest] - old[*highest];
    for (int32_t r = 0; r < table->n_rows && peak < enough; r++) {
        int64_t bytes = rows[r] + new[r] - old[r];
        if (bytes <= peak) continue;
        peak = bytes;
        *highest = r;
    }
    return peak;
}

/* The change of one decision behind `before` that leads to the lowest peak below `peak`. */
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

/* The first pair of changes found that lowers the peak; it is kept. */
static bool change_two(struct weft_digest *table, int64_t peak, int64_t *rows)
{
    for (int32_t u = 0; u < table->n_decisions; u++) {
        int32_t was = table->leanest[u];
        for (int32_t p = 0; p < weft_digest_count(table, u); p++) {
            if (p == was) continue;
            change(table, u, p, rows);
            struct choice second = best_change(table, u, peak, rows);
            if (second.decision >= 0) {
                change(table, second.decision, second.strategy, rows);
                return true;
            }
            change(table, u, was, rows);
        }
    }
    return false;
}

/* Changes of one decision's strategy that lower the peak, the one that lowers it most first; where
 * none does, of two. Where the decisions are so many that it would take long, fewer of the first
 * and none of the second. */
static void descend(struct weft_digest *table, int64_t *rows)
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
            change(table, best.decision, best.strategy, rows);
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
        descend(table, rows);
    table->least_bytes = weft_digest_lean_rows(table, table->leanest, rows, NULL);
    enum weft_status status = WEFT_OK;
    if (table->least_bytes > table->least_proven_bytes) status = weft_lean_tree_search(table, err);
    (void)weft_digest_lean_rows(table, table->leanest, rows, &table->least_row);
    free(rows);
    return status;
}

/* What the tier's limit lacks at least for any plan to fit; 0: some fits; -1: memory runs out. */
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

/* With several tiers, what is lacking at a limit says how much more there has to be at least; then
 * others may no longer be what is exceeded. */
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
