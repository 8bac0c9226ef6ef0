/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "scheduler/relax/ilp_build.h"

/* Fills the reduced costs: the worth of one unit of a column's bound. It is the column's cost less
 * the multipliers of its rows. */
static void subtract_rows(const struct weft_lp *lp, const double *row_duals, double *reduced)
{
    for (int32_t j = 0; j < lp->n_columns; j++)
        reduced[j] = lp->cost[j];
    for (int32_t i = 0; i < lp->n_rows; i++) {
        if (row_duals[i] == 0 || !isfinite(row_duals[i])) continue;
        for (int64_t k = lp->row_start[i]; k < lp->row_start[i + 1]; k++)
            reduced[lp->column[k]] -= row_duals[i] * lp->value[k];
    }
}

static double positive_or_zero(double value)
{
    return value > 0 && isfinite(value) ? value : 0;
}

enum weft_status weft_ilp_prices(const struct weft_ilp *ilp, const double *row_duals,
                                 struct weft_dual *dual, struct weft_error *err)
{
    struct weft_pool pool = {0};
    double *reduced = weft_pool_array(&pool, (size_t)ilp->lp.n_columns, sizeof *reduced);
    if (!reduced) return weft_fail_memory(err, "reduced costs");
    subtract_rows(&ilp->lp, row_duals, reduced);
    weft_dual_reset(dual, WEFT_LANE_COMPUTE);
    int32_t n_slots = ilp->table->n_slots;
    for (int32_t i = 0; i < ilp->table->n_items; i++)
        if (ilp->chain_row[i] >= 0)
            weft_dual_set_rho(dual, i, positive_or_zero(row_duals[ilp->chain_row[i]]));
    for (int32_t s = 0; s < n_slots; s++) {
        double room = dual->room[s]; /* a share of all lanes' time cannot cost more than the time */
        for (int32_t k = 0; k < dual->n_moving; k++) {
            int32_t load = ilp->load_row[k * n_slots + s];
            double lambda = load < 0 ? 0 : positive_or_zero(-row_duals[load]);
            dual->lambda[k * n_slots + s] = lambda < room ? lambda : room;
            room -= dual->lambda[k * n_slots + s];
        }
        for (int32_t k = ilp->waits.first[s]; k < ilp->waits.first[s + 1]; k++)
            dual->wait_share[k] =
                ilp->wait_row[k] < 0 ? 0 : positive_or_zero(-row_duals[ilp->wait_row[k]]);
        weft_dual_share_wait(dual, s);
    }
    for (int32_t r = 0; r < ilp->table->n_rows; r++) {
        int32_t memory = ilp->memory_row[r], hold = ilp->hold[r];
        double mu = 0;
        if (memory >= 0) mu += positive_or_zero(-row_duals[memory]);
        if (hold >= 0) mu += positive_or_zero(-reduced[hold]);
        dual->mu[r] = ldexp(mu, ilp->time_shift - ilp->bytes_shift);
    }
    for (int32_t g = 0; g < ilp->n_groups; g++) {
        double y = row_duals[ilp->group_row + g];
        dual->pi[g] = isfinite(y) ? ldexp(-y, ilp->time_shift) : 0;
        /* A limit that the group's size implies has no price: the price would mean something
         * different in a smaller box. */
        bool most = ilp->lp.row_upper[ilp->group_row + g] >= ilp->groups[g].n_decisions;
        if (dual->pi[g] > 0 ? most : ilp->lp.row_lower[ilp->group_row + g] <= 0) dual->pi[g] = 0;
    }
    for (int32_t k = 0; k < ilp->n_whole; k++) {
        int32_t lp_row = ilp->lp.n_rows - ilp->n_whole + k;
        double nu = positive_or_zero(-row_duals[lp_row]);
        if (nu == 0) continue;
        int32_t row = weft_dual_add_row(dual, ilp->whole[k].row, ilp->whole[k].step_bytes,
                                        ilp->references[k], ilp->uses[k]);
        if (row >= 0) dual->nu[row] = ldexp(nu, ilp->time_shift - ilp->bytes_shift);
    }
    weft_pool_finish(&pool);
    return WEFT_OK;
}

/* Least and most blocks of a class's only item by a slot. M counts blocks that hold memory from
 * then on, or no longer; A counts blocks that have moved. */
struct progress {
    int32_t least_held, most_held, least_moved, most_moved;
};

static struct progress progress_by(const struct weft_box *box, const struct weft_ilp_class *of,
                                   int32_t slot)
{
    int32_t i = of->items[0];
    const struct weft_item *item = &box->problem->items[i].item;
    bool always = (box->allowed[item->decision] & ~item->strategies) == 0;
    struct progress by = {0};
    for (int32_t k = box->span_start[i]; k < box->span_start[i] + box->n_spans[i]; k++) {
        const struct weft_span *span = &box->spans[k];
        bool may = span->first <= slot, must = span->last <= slot && always;
        bool over = span->hold <= slot; /* held from then on, or until then */
        if (of->gathers) {
            by.least_held += over && always ? span->n_blocks : 0;
            by.most_held += over || may ? span->n_blocks : 0;
            must = must && span->hold <= item->last;
        } else {
            by.least_held += over && must ? span->n_blocks : 0;
            by.most_held += over ? span->n_blocks : 0;
        }
        by.least_moved += must ? span->n_blocks : 0;
        by.most_moved += may ? span->n_blocks : 0;
    }
    return by;
}

/* The column of M of the class's only item at a slot; at its last slot, the column of due blocks.
 * -1: none. */
static int32_t held_column(const struct weft_ilp_class *of, int32_t slot)
{
    if (slot < of->last) return of->held + slot - of->first;
    return of->may_block ? of->due.columns[0] : -1;
}

static void restrict_class(struct weft_ilp *ilp, const struct weft_box *box,
                           const struct weft_ilp_class *of)
{
    for (int32_t s = of->first; s <= of->last; s++) {
        int32_t held = held_column(of, s), moved = of->column + s - of->first;
        struct progress by = progress_by(box, of, s);
        if (s < of->last) {
            ilp->lp.lower[moved] = by.least_moved;
            ilp->lp.upper[moved] = by.most_moved;
        }
        if (held < 0 || (held == moved && s < of->last)) continue;
        ilp->lp.lower[held] = by.least_held;
        ilp->lp.upper[held] = by.most_held;
    }
}

/* Frees whole rows that rely on counts other than the known ones: they bound nothing. */
static void restrict_whole(struct weft_ilp *ilp, struct weft_dual *dual)
{
    for (int32_t k = 0; k < ilp->n_whole; k++) {
        bool holds = true;
        weft_dual_rely(dual, ilp->references[k], ilp->uses[k], dual->relies);
        for (int32_t g = 0; g < ilp->n_groups; g++)
            holds = holds && (!ilp->uses[k][g] || dual->relies[g] >= 0);
        ilp->lp.row_upper[ilp->lp.n_rows - ilp->n_whole + k] =
            holds ? weft_ilp_bytes_units(ilp, ilp->whole[k].room_bytes) : INFINITY;
    }
}

void weft_ilp_restrict(struct weft_ilp *ilp, const struct weft_box *box, struct weft_dual *dual)
{
    weft_dual_know(dual, box);
    restrict_whole(ilp, dual);
    for (int32_t u = 0; u < ilp->table->n_decisions; u++) {
        for (int32_t p = 0; p < weft_digest_count(ilp->table, u); p++) {
            int32_t z = ilp->z[weft_digest_at(ilp->table, u, p)];
            if (z < 0) continue;
            ilp->lp.lower[z] = 0;
            ilp->lp.upper[z] = (double)(box->allowed[u] >> p & 1u);
        }
    }
    for (int32_t g = 0; g < ilp->n_groups; g++) {
        ilp->lp.row_lower[ilp->group_row + g] = box->least_count[g];
        ilp->lp.row_upper[ilp->group_row + g] = box->most_count[g];
    }
    for (int32_t c = 0; c < ilp->n_classes; c++)
        if (ilp->classes[c].n_items == 1 && ilp->classes[c].counts)
            restrict_class(ilp, box, &ilp->classes[c]);
}

int64_t weft_ilp_pressed_ns(const struct weft_ilp *ilp, int32_t lane, int32_t slot)
{
    const struct weft_problem *problem = ilp->table->problem;
    bool presses = ilp->load_row[weft_problem_lane_at(problem, lane) + (size_t)slot] >= 0 &&
                   ilp->n_rates == 0 && problem->slot_decisions[slot] < 0;
    return presses ? problem->slot_ns[slot] : 0;
}

void weft_ilp_press(struct weft_ilp *ilp, double part)
{
    const struct weft_problem *problem = ilp->table->problem;
    for (int32_t lane = WEFT_LANE_FIRST; lane < problem->n_lanes; lane++) {
        for (int32_t s = 0; s < problem->n_slots; s++) {
            int64_t ns = weft_ilp_pressed_ns(ilp, lane, s);
            if (ns == 0) continue;
            ilp->lp.row_upper[ilp->load_row[weft_problem_lane_at(problem, lane) + (size_t)s]] =
                ldexp((double)ns, -ilp->time_shift) * (1 - part);
        }
    }
}

static double undecided_part(double value)
{
    double part = value - floor(value);
    return part < 1 - part ? part : 1 - part;
}

bool weft_ilp_count(const struct weft_ilp *ilp, const struct weft_dual *dual, const double *x,
                    struct weft_count *out)
{
    const struct weft_lp *lp = &ilp->lp;
    double best = 0;
    for (int32_t g = 0; g < ilp->n_groups; g++) {
        int32_t row = ilp->group_row + g;
        double sum = 0, parts = 0;
        for (int64_t k = lp->row_start[row]; k < lp->row_start[row + 1]; k++) {
            sum += x[lp->column[k]];
            parts += undecided_part(x[lp->column[k]]);
        }
        /* A whole count is still worth knowing if decisions are undecided: whole rows rely on
         * it. */
        double value = undecided_part(sum);
        bool whole = value <= 1e-3, known = dual->known[g] >= 0;
        if (whole) value = parts > 1e-3 && !known ? 1e-3 : 0;
        if (value <= best) continue;
        int32_t n = whole ? (int32_t)lround(sum) : (int32_t)floor(sum) + 1;
        if (whole && n <= lp->row_lower[row]) n++;
        best = value;
        *out = (struct weft_count){.group = g, .n_decisions = n};
    }
    return best > 0;
}

double weft_ilp_milestone(const struct weft_ilp *ilp, const struct weft_dual *dual,
                          const double *worth, const double *x, struct weft_milestone *out)
{
    double best = 0;
    for (int32_t c = 0; c < ilp->n_classes; c++) {
        const struct weft_ilp_class *of = &ilp->classes[c];
        if (of->held == of->column) continue;
        const struct weft_problem_item *it = &ilp->table->problem->items[of->items[0]];
        for (int32_t s = of->first; s <= of->last; s++) {
            int32_t column = held_column(of, s);
            if (column < 0) continue;
            double off = undecided_part(x[column]);
            if (off < 1e-4) continue;
            int32_t row =
                weft_problem_tier_at(ilp->table->problem, of->tier) + (of->gathers ? s : s + 1);
            double value =
                off * worth[of->items[0]] *
                (dual->mu[row] * (double)it->item.stair_bytes + 1e-3 * (double)it->block_ns);
            if (value <= best) continue;
            best = value;
            *out = (struct weft_milestone){
                .item = of->items[0], .n_blocks = (int32_t)floor(x[column] + 1e-6) + 1, .slot = s};
        }
    }
    return best;
}
