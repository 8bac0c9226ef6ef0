/* SPDX-License-Identifier: Apache-2.0 */
/* Whole rows of the dual function: the counts of blocks and strategies in them (proof/prices.h). */
#include <string.h>

#include "scheduler/relax/dual.h"

void weft_dual_rely(const struct weft_dual *dual, const uint8_t *reference, const uint8_t *uses,
                    int32_t *relies)
{
    memset(dual->taken, 0, (size_t)dual->table->n_decisions * sizeof *dual->taken);
    for (int32_t g = 0; g < dual->n_groups; g++) {
        const struct weft_group *group = &dual->groups[g];
        int32_t n = 0;
        bool taken = false;
        relies[g] = -1;
        if (uses != NULL && !uses[g]) continue;
        for (int32_t k = 0; k < group->n_decisions && dual->known[g] >= 0; k++) {
            n += (int32_t)(group->strategies >> reference[group->decisions[k]] & 1u);
            taken = taken || dual->taken[group->decisions[k]];
        }
        if (n != dual->known[g] || n == 0 || n == group->n_decisions || taken) continue;
        relies[g] = n;
        for (int32_t k = 0; k < group->n_decisions; k++)
            dual->taken[group->decisions[k]] = true;
    }
}

int64_t weft_dual_compare(const struct weft_dual *dual, int32_t row, const uint8_t *reference,
                          const int32_t *relies, struct weft_usual *usual)
{
    const struct weft_digest *table = dual->table;
    int64_t room_bytes = weft_digest_limit_bytes(table) - table->common[row];
    for (int32_t u = 0; u < table->n_decisions; u++) {
        int64_t bytes = weft_digest_fixed(table, u, reference[u], row);
        usual[u] = (struct weft_usual){0, bytes, bytes};
    }
    for (int32_t g = 0; g < dual->n_groups; g++)
        if (relies[g] >= 0)
            (void)weft_usual_of_group(&dual->groups[g], reference, relies[g], usual);
    room_bytes -= weft_usual_sum(usual, reference, table->n_decisions);
    return room_bytes;
}

/* Fills row k for the memory row and step, with its counts. */
static void count_row(struct weft_dual *dual, int32_t k, int32_t at, int64_t step_bytes)
{
    const struct weft_digest *table = dual->table;
    double *counts = dual->counts[k];
    weft_dual_rely(dual, dual->references[k], dual->uses[k], dual->relies);
    int64_t room_bytes =
        weft_dual_compare(dual, at, dual->references[k], dual->relies, dual->usual);
    struct weft_whole_row row = weft_whole_row(at, step_bytes, room_bytes);
    for (int32_t n = 0; n < dual->n_sizes; n++)
        counts[n] = (double)weft_whole_count(&row, dual->sizes[n]);
    for (int32_t u = 0; u < table->n_decisions; u++) {
        for (int32_t p = 0; p < weft_digest_count(dual->table, u); p++) {
            int64_t more =
                weft_digest_fixed(table, u, p, at) - weft_usual_bytes(&dual->usual[u], p);
            counts[dual->n_sizes + weft_digest_at(dual->table, u, p)] =
                (double)weft_whole_count(&row, more);
        }
    }
    dual->rows[k] = row;
}

static bool relies_alike(const uint8_t *a, const uint8_t *b, int32_t n_groups)
{
    for (int32_t g = 0; g < n_groups; g++)
        if (a[g] != (b ? b[g] : 0)) return false;
    return true;
}

int32_t weft_dual_add_row(struct weft_dual *dual, int32_t row, int64_t step_bytes,
                          const uint8_t *reference, const uint8_t *uses)
{
    size_t n_groups = (size_t)dual->n_groups;
    size_t n_decisions = (size_t)dual->table->n_decisions,
           n_costs = (size_t)dual->table->problem->n_strategies;
    for (int32_t k = dual->first_row[row]; k >= 0; k = dual->next_row[k])
        if (dual->rows[k].step_bytes == step_bytes &&
            memcmp(dual->references[k], reference, n_decisions) == 0 &&
            relies_alike(dual->uses[k], uses, dual->n_groups))
            return k;
    if (dual->n_rows == dual->most_rows) return -1;
    int32_t added = dual->n_rows;
    double *counts = weft_pool_array(&dual->pool, (size_t)dual->n_sizes + n_costs, sizeof *counts);
    uint8_t *copy = weft_pool_array(&dual->pool, n_decisions + n_groups, sizeof *copy);
    if (!counts || !copy) return -1;
    memcpy(copy, reference, n_decisions);
    if (uses) memcpy(copy + n_decisions, uses, n_groups);
    dual->references[added] = copy;
    dual->uses[added] = copy + n_decisions;
    dual->counts[added] = counts;
    count_row(dual, added, row, step_bytes);
    dual->nu[added] = dual->over[added] = 0;
    dual->next_row[added] = dual->first_row[row];
    dual->first_row[row] = added;
    dual->n_rows++;
    return added;
}

void weft_dual_know(struct weft_dual *dual, const struct weft_box *box)
{
    bool news = false;
    for (int32_t g = 0; g < dual->n_groups; g++) {
        int32_t known = weft_box_count(box, g);
        news |= known != dual->known[g];
        dual->known[g] = known;
    }
    for (int32_t k = 0; k < dual->n_rows && news; k++)
        count_row(dual, k, dual->rows[k].row, dual->rows[k].step_bytes);
}
