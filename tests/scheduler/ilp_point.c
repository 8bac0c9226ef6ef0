/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/scheduler/ilp_point.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/relax/ilp_class.h"

/* Work of an item's blocks in a slot. The slot after its window has the blocks that block. Without
 * a column for these, they count as placed in the last slot: memory is not short there. */
static double work_in(const struct weft_ilp *ilp, const struct weft_ilp_class *of, int32_t item,
                      const int32_t *blocks, int32_t slot)
{
    const struct weft_item *it = &ilp->table->problem->items[item].item;
    const int32_t *of_item = &blocks[(size_t)item * (size_t)ilp->table->n_slots];
    int32_t n = of_item[slot];
    if (slot > it->last && !of->may_block) n = 0;
    if (slot == it->last && of->gathers && !of->may_block) n += of_item[slot + 1];
    return n == 0 ? 0 : weft_ilp_work(ilp, of, item) * n / it->n_blocks;
}

static void fill_prefix(const struct weft_ilp *ilp, const struct weft_ilp_class *of,
                        const struct weft_ilp_prefix *prefix, const int32_t *strategies,
                        const int32_t *blocks, double *x)
{
    double blocked = 0;
    for (int32_t k = 0; k < prefix->n; k++) {
        if (prefix->columns[k] < 0) continue;
        double sum = 0, blocked_here = 0;
        for (int32_t i = 0; i < of->n_items; i++) {
            const struct weft_item *item = &ilp->table->problem->items[of->items[i]].item;
            int32_t slot = prefix == &of->due ? item->last : item->first;
            if (slot <= prefix->slots[k] && weft_item_active(item, strategies))
                sum += weft_ilp_work(ilp, of, of->items[i]);
            if (slot == prefix->slots[k] && prefix->blocking[k] >= 0)
                blocked_here += work_in(ilp, of, of->items[i], blocks, slot + 1);
        }
        blocked += blocked_here;
        if (prefix->blocking[k] >= 0) x[prefix->blocking[k]] = blocked_here;
        x[prefix->columns[k]] = sum - blocked;
    }
}

/* Time that each lane is given in each slot, and for which its blocks block: [n_moving][n_slots].
 */
struct loads {
    double *given, *blocked;
};

/* Adds the moves of the class to its cumulative columns, and to the slots' loads. */
static void fill_class(const struct weft_ilp *ilp, const struct weft_ilp_class *of,
                       const int32_t *blocks, double *x, struct loads *loads)
{
    size_t lane = weft_problem_lane_at(ilp->table->problem, of->lane);
    double *given = loads->given + lane, *blocked = loads->blocked + lane;
    for (int32_t i = 0; of->may_block && i < of->n_items; i++) {
        int32_t use = ilp->table->problem->items[of->items[i]].item.last + 1;
        blocked[use] += of->unit_time * work_in(ilp, of, of->items[i], blocks, use);
    }
    double placed = 0;
    for (int32_t s = of->first; s <= of->last; s++) {
        double work = 0;
        for (int32_t i = 0; i < of->n_items; i++) {
            if (s <= ilp->table->problem->items[of->items[i]].item.last)
                work += work_in(ilp, of, of->items[i], blocks, s);
        }
        placed += work;
        given[s] += work * of->unit_time;
        if (s < of->last) x[of->column + s - of->first] = x[of->held + s - of->first] = placed;
    }
}

static double own_rate(const struct weft_problem *problem, int32_t k)
{
    return (double)problem->lanes[WEFT_LANE_FIRST + k].rates.own / WEFT_RATE_ONE;
}

/* Time that a lane is given in a slot beyond the wait for blocking blocks. */
static double load_of(const struct weft_problem *problem, const struct loads *loads, int32_t k,
                      int32_t s, double waited)
{
    size_t at = (size_t)k * (size_t)problem->n_slots + (size_t)s;
    return loads->given[at] + (loads->blocked[at] - waited);
}

/* Fills the slot's wait and its time next to busy lanes, which make room for the loads. */
static void fill_times(const struct weft_ilp *ilp, const struct loads *loads, int32_t s,
                       int64_t slot_ns, double *x)
{
    const struct weft_problem *problem = ilp->table->problem;
    double slot = ldexp((double)slot_ns, -ilp->time_shift), beside = slot, least_rate = 1;
    double waited = 0, need = 0, wait = 0;
    if (ilp->wait[s] < 0) return;
    bool shared = ilp->waits.first[s + 1] > ilp->waits.first[s];
    for (int32_t k = 0; k < problem->n_lanes - WEFT_LANE_FIRST; k++) {
        double blocked = loads->blocked[k * problem->n_slots + s];
        if (!shared) waited += blocked;
        if (shared && blocked > wait) wait = blocked; /* a part of the wait */
    }
    for (int32_t k = 0; k < problem->n_lanes - WEFT_LANE_FIRST; k++) {
        double rate = own_rate(problem, k), load = load_of(problem, loads, k, s, waited);
        if (load / rate > need) need = load / rate;
        if (rate < least_rate) least_rate = rate;
    }
    if (ilp->n_rates > 0) {
        /* At compute's least rate every lane may be busy. */
        double compute_rate = (double)ilp->rates[0] / WEFT_RATE_ONE;
        beside = slot / compute_rate < need ? slot / compute_rate : need;
        if (1 - compute_rate > least_rate || beside < 0) beside = 0; /* waiting costs less */
        x[ilp->beside[s]] = beside;
    }
    for (int32_t k = 0; k < problem->n_lanes - WEFT_LANE_FIRST; k++) {
        double left = load_of(problem, loads, k, s, waited) - own_rate(problem, k) * beside;
        if (left > wait) wait = left;
    }
    x[ilp->wait[s]] = wait;
}

bool ilp_point_of(const struct weft_ilp *ilp, const int32_t *strategies,
                  const struct weft_move *moves, int32_t n_moves, double *x)
{
    const struct weft_digest *table = ilp->table;
    size_t n_slots = (size_t)table->n_slots;
    for (int32_t u = 0; u < table->n_decisions; u++)
        if (ilp->z[weft_digest_at(ilp->table, u, strategies[u])] < 0) return false;
    int32_t *blocks = calloc((size_t)table->n_items * n_slots + 1, sizeof *blocks);
    size_t n_loads = weft_problem_lane_at(table->problem, table->problem->n_lanes);
    double *sums = calloc(2 * n_loads, sizeof *sums);
    int64_t *rows = calloc((size_t)table->n_rows, sizeof *rows);
    bool ok = blocks && sums && rows;
    if (ok) {
        struct loads loads = {sums, sums + n_loads};
        memset(x, 0, (size_t)ilp->lp.n_columns * sizeof *x);
        x[ilp->fixed] = 1;
        for (int32_t u = 0; u < table->n_decisions; u++)
            x[ilp->z[weft_digest_at(ilp->table, u, strategies[u])]] = 1;
        for (int32_t k = 0; k < n_moves; k++)
            blocks[(size_t)moves[k].item * n_slots + (size_t)moves[k].slot]++;
        for (int32_t c = 0; c < ilp->n_classes; c++) {
            fill_prefix(ilp, &ilp->classes[c], &ilp->classes[c].released, strategies, blocks, x);
            fill_prefix(ilp, &ilp->classes[c], &ilp->classes[c].due, strategies, blocks, x);
            fill_class(ilp, &ilp->classes[c], blocks, x, &loads);
        }
        weft_digest_fixed_rows(table, strategies, rows);
        for (int32_t s = 0; s < table->n_slots; s++) {
            fill_times(ilp, &loads, s, weft_problem_slot_ns(table->problem, strategies, s), x);
        }
        for (int32_t r = 0; r < table->n_rows; r++)
            if (ilp->hold[r] >= 0)
                x[ilp->hold[r]] = ldexp((double)(rows[r] - table->common[r]), -ilp->bytes_shift);
    }
    free(blocks);
    free(sums);
    free(rows);
    return ok;
}
