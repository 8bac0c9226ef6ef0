/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/relax/ilp_build.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool grow_array(void *array, int64_t *most, int64_t need, size_t size)
{
    int64_t wanted = *most;
    if (need <= wanted) return true;
    while (wanted < need)
        wanted = wanted < 1024 ? 1024 : 2 * wanted;
    void *old, *grown;
    memcpy(&old, array, sizeof old);
    grown = realloc(old, (size_t)wanted * size);
    if (!grown) return false;
    memcpy(array, &grown, sizeof grown);
    *most = wanted;
    return true;
}

static bool grow_columns(struct weft_ilp_build *build)
{
    struct weft_lp *lp = &build->ilp->lp;
    int64_t need = build->n_columns + 1, most = build->most_columns;
    struct {
        void *array;
        size_t size;
    } arrays[] = {{&lp->cost, sizeof *lp->cost},
                  {&lp->lower, sizeof *lp->lower},
                  {&lp->upper, sizeof *lp->upper},
                  {&build->row, sizeof *build->row},
                  {&build->touched, sizeof *build->touched},
                  {&build->in_row, sizeof *build->in_row}};
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) {
        most = build->most_columns;
        if (!grow_array(arrays[i].array, &most, need, arrays[i].size)) return false;
    }
    memset(build->in_row + build->most_columns, 0, (size_t)(most - build->most_columns));
    build->most_columns = (int32_t)most;
    return true;
}

int32_t weft_ilp_add_column(struct weft_ilp_build *build, double cost, double lower, double upper)
{
    struct weft_lp *lp = &build->ilp->lp;
    if (build->failed) return 0;
    if (build->n_columns == build->most_columns && !grow_columns(build)) {
        build->failed = true;
        return 0;
    }
    int32_t j = build->n_columns++;
    lp->cost[j] = cost;
    lp->lower[j] = lower;
    lp->upper[j] = upper;
    build->in_row[j] = false;
    build->row[j] = 0;
    return j;
}

void weft_ilp_add_entry(struct weft_ilp_build *build, int32_t column, double value)
{
    if (build->failed) return;
    if (!build->in_row[column]) {
        build->in_row[column] = true;
        build->row[column] = 0;
        build->touched[build->n_touched++] = column;
    }
    build->row[column] += value;
}

void weft_ilp_end_row(struct weft_ilp_build *build, double lower, double upper)
{
    struct weft_lp *lp = &build->ilp->lp;
    if (build->failed) return;
    int64_t most = build->most_rows, again = build->most_rows, starts = build->most_rows;
    int64_t columns = build->most_entries;
    bool ok = grow_array(&lp->row_lower, &most, build->n_rows + 2, sizeof *lp->row_lower) &&
              grow_array(&lp->row_upper, &again, build->n_rows + 2, sizeof *lp->row_upper) &&
              grow_array(&lp->row_start, &starts, build->n_rows + 2, sizeof *lp->row_start) &&
              grow_array(&lp->column, &columns, build->n_entries + build->n_touched,
                         sizeof *lp->column) &&
              grow_array(&lp->value, &build->most_entries, build->n_entries + build->n_touched,
                         sizeof *lp->value);
    if (!ok) {
        build->failed = true;
        return;
    }
    build->most_rows = (int32_t)most;
    lp->row_start[build->n_rows] = build->n_entries;
    for (int32_t k = 0; k < build->n_touched; k++) {
        int32_t column = build->touched[k];
        build->in_row[column] = false;
        if (build->row[column] == 0) continue;
        lp->column[build->n_entries] = column;
        lp->value[build->n_entries++] = build->row[column];
    }
    build->n_touched = 0;
    lp->row_lower[build->n_rows] = lower;
    lp->row_upper[build->n_rows] = upper;
    lp->row_start[++build->n_rows] = build->n_entries;
}

double weft_ilp_time_units(const struct weft_ilp *ilp, int64_t ns)
{
    return ldexp((double)ns, -ilp->time_shift);
}

double weft_ilp_bytes_units(const struct weft_ilp *ilp, int64_t bytes)
{
    return ldexp((double)bytes, -ilp->bytes_shift);
}

void weft_ilp_add_item(struct weft_ilp_build *build, const struct weft_ilp_class *of, int32_t item,
                       double factor)
{
    const struct weft_ilp *ilp = build->ilp;
    int32_t decision = ilp->table->problem->items[item].item.decision;
    uint64_t mask = weft_ilp_strategy_mask(ilp, item);
    for (int32_t p = 0; p < weft_digest_count(ilp->table, decision); p++) {
        if (mask >> p & 1u)
            weft_ilp_add_entry(build, ilp->z[weft_digest_at(ilp->table, decision, p)],
                               factor * weft_ilp_work(ilp, of, item));
    }
}

void weft_ilp_add_prefix(struct weft_ilp_build *build, const struct weft_ilp_class *of,
                         const struct weft_ilp_prefix *prefix, int32_t slot, double factor)
{
    int32_t k = -1;
    while (k + 1 < prefix->n && prefix->slots[k + 1] <= slot)
        k++;
    if (k < 0) return;
    if (prefix->columns[k] >= 0) {
        weft_ilp_add_entry(build, prefix->columns[k], factor);
        return;
    }
    for (int32_t i = 0; i < of->n_items; i++) {
        const struct weft_item *item = &build->ilp->table->problem->items[of->items[i]].item;
        if ((prefix == &of->due ? item->last : item->first) <= slot)
            weft_ilp_add_item(build, of, of->items[i], factor);
    }
}

void weft_ilp_add_placed(struct weft_ilp_build *build, const struct weft_ilp_class *of,
                         int32_t slot, double factor)
{
    if (slot < of->first) return;
    if (slot >= of->last) {
        weft_ilp_add_prefix(build, of, &of->due, of->last, factor);
    } else {
        weft_ilp_add_entry(build, of->column + slot - of->first, factor);
    }
}

void weft_ilp_add_held(struct weft_ilp_build *build, const struct weft_ilp_class *of, int32_t slot,
                       double factor)
{
    if (slot < of->first || slot >= of->last) {
        weft_ilp_add_placed(build, of, slot, factor);
    } else {
        weft_ilp_add_entry(build, of->held + slot - of->first, factor);
    }
}
