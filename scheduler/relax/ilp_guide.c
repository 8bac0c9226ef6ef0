/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a point of the relaxation: its strategies, and when it launches blocks. */
#include "scheduler/relax/ilp.h"

#include <math.h>
#include <string.h>

#include "scheduler/relax/ilp_class.h"

void weft_ilp_strategies(const struct weft_ilp *ilp, const double *x, int32_t *strategies)
{
    for (int32_t u = 0; u < ilp->table->n_decisions; u++) {
        double most = -1;
        for (int32_t p = 0; p < weft_digest_count(ilp->table, u); p++) {
            int32_t z = ilp->z[weft_digest_at(ilp->table, u, p)];
            if (z < 0 || x[z] <= most) continue;
            most = x[z];
            strategies[u] = p;
        }
    }
}

int32_t weft_ilp_staged(const struct weft_ilp *ilp, const struct weft_ilp_class *of,
                        const double *x, const int32_t *strategies, int32_t i)
{
    const struct weft_problem *problem = ilp->table->problem;
    const struct weft_item *item = &problem->items[of->items[i]].item;
    double blocking = 0, after = 0;
    if (!weft_item_active(item, strategies)) return 0;
    for (int32_t k = 0; of->may_block && k < of->due.n; k++)
        if (of->due.slots[k] == item->last) blocking = x[of->due.blocking[k]];
    for (int32_t j = i + 1; j < of->n_items; j++) {
        const struct weft_item *other = &problem->items[of->items[j]].item;
        if (other->last == item->last && weft_item_active(other, strategies))
            after += weft_ilp_work(ilp, of, of->items[j]);
    }
    double block = weft_ilp_work(ilp, of, of->items[i]) / item->n_blocks;
    int64_t n = llround((blocking - after) / block);
    return n <= 0 ? item->n_blocks : n >= item->n_blocks ? 0 : item->n_blocks - (int32_t)n;
}

/* A[class, slot] at x; `total` after its last column. */
static double placed_at(const struct weft_ilp_class *of, const double *x, double total,
                        int32_t slot)
{
    if (slot < of->first) return 0;
    return slot < of->last ? x[of->column + slot - of->first] : total;
}

/* Work of the class by a slot: of gathers that are due, or of reductions that are released. */
static double total_work(const struct weft_ilp *ilp, const struct weft_ilp_class *of,
                         const int32_t *strategies, int32_t slot)
{
    double sum = 0;
    for (int32_t i = 0; i < of->n_items; i++) {
        const struct weft_item *item = &ilp->table->problem->items[of->items[i]].item;
        if (weft_item_active(item, strategies) && (of->gathers ? item->last : item->first) <= slot)
            sum += weft_ilp_work(ilp, of, of->items[i]);
    }
    return sum;
}

/* Gathers of a class move in order of deadline, and those of one deadline that block come last. */
static void guide_gathers(const struct weft_ilp *ilp, const struct weft_ilp_class *of,
                          const double *x, const int32_t *strategies, double part,
                          const int32_t *first_block, int32_t *launch)
{
    const struct weft_problem *problem = ilp->table->problem;
    double work = 0, total = total_work(ilp, of, strategies, INT32_MAX);
    for (int32_t k = 0; of->may_block && k < of->due.n; k++)
        total -= x[of->due.blocking[k]];
    int32_t slot = of->first;
    for (int32_t i = 0; i < of->n_items; i++) {
        const struct weft_item *item = &problem->items[of->items[i]].item;
        int32_t *of_item = launch + first_block[of->items[i]];
        if (item->stair_bytes == 0) continue;
        if (!weft_item_active(item, strategies)) {
            for (int32_t b = 0; b < item->n_blocks; b++)
                of_item[b] = slot < item->first ? item->first : slot;
            continue;
        }
        int32_t n = weft_ilp_staged(ilp, of, x, strategies, i);
        double block = weft_ilp_work(ilp, of, of->items[i]) / item->n_blocks;
        for (int32_t b = 0; b < item->n_blocks; b++) {
            if (b >= n) {
                of_item[b] = item->last + 1;
                continue;
            }
            while (slot < item->last &&
                   placed_at(of, x, total, slot) < (work + part * block) * (1 - 1e-9))
                slot++;
            of_item[b] = slot;
            work += block;
        }
    }
}

/* Reductions of a class move in order of release. */
static void guide_reductions(const struct weft_ilp *ilp, const struct weft_ilp_class *of,
                             const double *x, const int32_t *strategies, double part,
                             const int32_t *first_block, int32_t *order)
{
    double work = 0;
    int32_t slot = of->first;
    for (int32_t i = 0; i < of->n_items; i++) {
        const struct weft_item *item = &ilp->table->problem->items[of->items[i]].item;
        double block = weft_ilp_work(ilp, of, of->items[i]) / item->n_blocks;
        for (int32_t b = 0; b < item->n_blocks; b++) {
            if (weft_item_active(item, strategies)) {
                while (slot < of->last &&
                       placed_at(of, x, INFINITY, slot) < (work + part * block) * (1 - 1e-9))
                    slot++;
                work += block;
            }
            order[first_block[of->items[i]] + b] = slot < item->first ? item->first : slot;
        }
    }
}

void weft_ilp_guide(const struct weft_ilp *ilp, const double *x, const int32_t *strategies,
                    double part, const int32_t *first_block, int32_t *launch, int32_t *order,
                    int64_t *late_bytes)
{
    const struct weft_digest *table = ilp->table;
    memset(launch, 0, (size_t)table->n_blocks * sizeof *launch);
    memset(order, 0, (size_t)table->n_blocks * sizeof *order);
    for (int32_t c = 0; c < ilp->n_classes; c++) {
        const struct weft_ilp_class *of = &ilp->classes[c];
        if (of->gathers)
            guide_gathers(ilp, of, x, strategies, part, first_block, launch);
        else
            guide_reductions(ilp, of, x, strategies, part, first_block, order);
    }
    for (int32_t s = 0; s < table->n_slots; s++) {
        double units = 0;
        for (int32_t c = 0; c < ilp->n_classes; c++) {
            const struct weft_ilp_class *of = &ilp->classes[c];
            if (of->gathers || of->unit_bytes == 0 || s <= of->first || s > of->last) continue;
            units += of->unit_bytes *
                     (total_work(ilp, of, strategies, s - 1) - placed_at(of, x, 0, s - 1));
        }
        late_bytes[s] = units > 0 ? llround(ldexp(units, ilp->bytes_shift)) : 0;
    }
}
