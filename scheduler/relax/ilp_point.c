/* From plans to points of the integer program and back. */
#include "scheduler/relax/ilp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/relax/ilp_class.h"

/* Work of an item's blocks that are placed in a slot; the one behind its window is of those that
 * block. Without a column for them, they count as placed in the last slot: nothing is lost where
 * memory is not short. */
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

/* What each lane is given in every slot, and for how long blocks of it block: [n_moving][n_slots].
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

/* What a lane is given in a slot beyond the time that is waited for blocks in any case. */
static double load_of(const struct weft_problem *problem, const struct loads *loads, int32_t k,
                      int32_t s, double waited)
{
    size_t at = (size_t)k * (size_t)problem->n_slots + (size_t)s;
    return loads->given[at] + (loads->blocked[at] - waited);
}

/* The slot's wait, and its time beside lanes, that make room for the loads. */
static void fill_times(const struct weft_ilp *ilp, const struct loads *loads, int32_t s,
                       int64_t slot_ns, double *x)
{
    const struct weft_problem *problem = ilp->table->problem;
    double slot = ldexp((double)slot_ns, -ilp->time_shift), beside = slot, least_rate = 1;
    double waited = 0, need = 0, wait = 0;
    if (ilp->wait[s] < 0) return;
    for (int32_t k = 0; k < problem->n_lanes - WEFT_LANE_FIRST; k++)
        waited += loads->blocked[k * problem->n_slots + s];
    if (ilp->n_blocking[s] > 1) waited /= ilp->n_blocking[s];
    for (int32_t k = 0; k < problem->n_lanes - WEFT_LANE_FIRST; k++) {
        double rate = own_rate(problem, k), load = load_of(problem, loads, k, s, waited);
        if (load / rate > need) need = load / rate;
        if (rate < least_rate) least_rate = rate;
    }
    if (ilp->n_rates > 0) {
        /* At the least rate of compute, beside which every lane may be busy. */
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

bool weft_ilp_point(const struct weft_ilp *ilp, const int32_t *strategies,
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
        memset(x, 0, (size_t)ilp->mip.n_columns * sizeof *x);
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

/* How many blocks of an item of the class are left when those that block are taken from the last of
 * the items that are due with it. */
static int32_t staged(const struct weft_ilp *ilp, const struct weft_ilp_class *of, const double *x,
                      const int32_t *strategies, int32_t i)
{
    const struct weft_problem *problem = ilp->table->problem;
    const struct weft_item *item = &problem->items[of->items[i]].item;
    double blocking = 0, behind = 0;
    if (!weft_item_active(item, strategies)) return 0;
    for (int32_t k = 0; of->may_block && k < of->due.n; k++)
        if (of->due.slots[k] == item->last) blocking = x[of->due.blocking[k]];
    for (int32_t j = i + 1; j < of->n_items; j++) {
        const struct weft_item *other = &problem->items[of->items[j]].item;
        if (other->last == item->last && weft_item_active(other, strategies))
            behind += weft_ilp_work(ilp, of, of->items[j]);
    }
    double block = weft_ilp_work(ilp, of, of->items[i]) / item->n_blocks;
    int64_t n = llround((blocking - behind) / block);
    return n <= 0 ? item->n_blocks : n >= item->n_blocks ? 0 : item->n_blocks - (int32_t)n;
}

/* Deals the class's counts out to its items, in their order; false when they do not come out. */
static bool deal(const struct weft_ilp *ilp, const struct weft_ilp_class *of, const double *x,
                 const int32_t *strategies, struct weft_move *moves, int32_t *n_moves)
{
    const struct weft_problem *problem = ilp->table->problem;
    int64_t placed = 0, total = 0;
    int32_t at = 0, left = 0;
    for (int32_t i = 0; i < of->n_items; i++) {
        const struct weft_item *item = &problem->items[of->items[i]].item;
        int32_t n = staged(ilp, of, x, strategies, i);
        total += n;
        for (int32_t b = n; weft_item_active(item, strategies) && b < item->n_blocks; b++)
            moves[(*n_moves)++] = (struct weft_move){.item = of->items[i], .slot = item->last + 1};
    }
    for (int32_t s = of->first; s <= of->last; s++) {
        int64_t upto = s < of->last ? llround(x[of->column + s - of->first]) : total;
        if (upto > total || upto < placed) return false;
        for (; placed < upto; placed++) {
            while (left == 0) {
                if (at == of->n_items) return false;
                left = staged(ilp, of, x, strategies, at++);
            }
            const struct weft_item *item = &problem->items[of->items[at - 1]].item;
            if (s < item->first || s > item->last) return false;
            moves[(*n_moves)++] = (struct weft_move){.item = of->items[at - 1], .slot = s};
            left--;
        }
    }
    return true;
}

/* Sort key within a slot: lower goes first. */
static int32_t rank_of(const struct weft_item *item, int32_t slot, enum weft_ilp_order order)
{
    bool gathers = item->acquires;
    if (gathers && slot > item->last) return -1; /* compute waits for it */
    switch (order) {
    case WEFT_ILP_REDUCE_FIRST:
        return gathers ? 1 : 0;
    case WEFT_ILP_DUE_FIRST:
        return !gathers ? 1 : item->last == slot ? 0 : 2;
    case WEFT_ILP_GATHER_FIRST:
        return gathers ? 0 : 1;
    case WEFT_ILP_ORDER_COUNT:
        break;
    }
    return 0;
}

struct keyed {
    int32_t slot, rank, deadline, index;
    struct weft_move move;
};

static int compare_keyed(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;
    if (x->slot != y->slot) return x->slot < y->slot ? -1 : 1;
    if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
    if (x->deadline != y->deadline) return x->deadline < y->deadline ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

bool weft_ilp_moves(const struct weft_ilp *ilp, const double *x, const int32_t *strategies,
                    enum weft_ilp_order order, struct weft_move *moves, int32_t *n_moves)
{
    *n_moves = 0;
    if (!ilp->all_counts) return false;
    for (int32_t c = 0; c < ilp->n_classes; c++)
        if (!deal(ilp, &ilp->classes[c], x, strategies, moves, n_moves)) return false;
    struct keyed *keyed = calloc((size_t)*n_moves + 1, sizeof *keyed);
    if (!keyed) return false;
    for (int32_t k = 0; k < *n_moves; k++) {
        const struct weft_item *item = &ilp->table->problem->items[moves[k].item].item;
        keyed[k] = (struct keyed){
            .slot = moves[k].slot,
            .rank = rank_of(item, moves[k].slot, order),
            .deadline = item->acquires ? item->last : item->first,
            .index = k,
            .move = moves[k],
        };
    }
    qsort(keyed, (size_t)*n_moves, sizeof *keyed, compare_keyed);
    for (int32_t k = 0; k < *n_moves; k++)
        moves[k] = keyed[k].move;
    free(keyed);
    return true;
}

/* A[class, slot] at x; `total` behind its last column. */
static double placed_at(const struct weft_ilp_class *of, const double *x, double total,
                        int32_t slot)
{
    if (slot < of->first) return 0;
    return slot < of->last ? x[of->column + slot - of->first] : total;
}

/* Work of the class's items up to each slot: of gathers those due, of reductions those released. */
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

/* A class's gathers go in order of deadline; those that block come last of them. */
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
        int32_t n = staged(ilp, of, x, strategies, i);
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

/* A class's reductions go in order of release. */
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
