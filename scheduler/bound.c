/* Why long double with a margin, and not integers: the program's coefficients are integers scaled
 * by powers of two (ilp.c), hence exact in a double; multipliers are doubles, hence exact too; a
 * product of the two is rounded once, and a sum of n terms is wrong by at most n + 1 roundings of
 * the sum of magnitudes (Higham, Accuracy and Stability of Numerical Algorithms, 3.1). Doubling
 * that covers the rounding of the margin itself. The margin is about 1e-17 of the magnitudes; exact
 * integers would lose more, by rounding the multipliers to fit them. */
#include "scheduler/bound.h"

#include <float.h>
#include <math.h>

/* A sum, and the sum of its terms' magnitudes. */
struct sum {
    long double value, magnitude;
    int64_t n;
};

static void add(struct sum *sum, long double term)
{
    sum->value += term;
    sum->magnitude += fabsl(term);
    sum->n++;
}

static long double margin(const struct sum *sum)
{
    return 2 * (long double)(sum->n + 2) * LDBL_EPSILON * sum->magnitude;
}

static double usable(const struct weft_mip *mip, int32_t row, double multiplier)
{
    if (!isfinite(multiplier)) return 0;
    if (multiplier > 0 && !isfinite(mip->row_lower[row])) return 0;
    if (multiplier < 0 && !isfinite(mip->row_upper[row])) return 0;
    return multiplier;
}

/* The least of d * x over lower <= x <= upper and over all d within `slack` of `d`. */
static long double least_product(long double d, long double slack, double lower, double upper)
{
    long double least = INFINITY;
    for (int corner = 0; corner < 4; corner++) {
        long double factor = corner & 1 ? d - slack : d + slack;
        long double x = corner & 2 ? lower : upper;
        long double product = factor == 0 || x == 0 ? 0 : factor * x;
        if (product < least) least = product;
    }
    return least;
}

enum weft_status weft_bound(const struct weft_mip *mip, const double *multipliers,
                            long double *bound, struct weft_error *err)
{
    struct weft_pool pool = {0};
    struct sum *reduced = weft_pool_array(&pool, (size_t)mip->n_columns, sizeof *reduced);
    if (!reduced) return weft_fail_memory(err, "reduced costs");
    struct sum total = {0};
    for (int32_t j = 0; j < mip->n_columns; j++)
        add(&reduced[j], mip->cost[j]);
    for (int32_t i = 0; i < mip->n_rows; i++) {
        long double y = usable(mip, i, multipliers[i]);
        if (y == 0) continue;
        add(&total, y * (y > 0 ? mip->row_lower[i] : mip->row_upper[i]));
        for (int64_t k = mip->row_start[i]; k < mip->row_start[i + 1]; k++)
            add(&reduced[mip->column[k]], -y * mip->value[k]);
    }
    for (int32_t j = 0; j < mip->n_columns; j++) {
        long double least =
            least_product(reduced[j].value, margin(&reduced[j]), mip->lower[j], mip->upper[j]);
        add(&total, least);
    }
    long double result = total.value - margin(&total);
    *bound = isfinite(result) ? result : -INFINITY;
    weft_pool_finish(&pool);
    return WEFT_OK;
}

static int64_t unit_channel_ns(const struct weft_problem *problem, int32_t unit, int policy)
{
    int64_t ns = 0;
    for (int32_t i = 0; i < problem->n_items; i++) {
        const struct weft_problem_item *item = &problem->items[i];
        if (item->item.unit == unit && item->item.policies >> policy & 1u)
            ns += item->item.n_blocks * item->block_ns;
    }
    return ns;
}

int64_t weft_bound_trivial(const struct weft_problem *problem, const char **by)
{
    int64_t compute_ns = problem->agree_ns, channel_ns = problem->agree_ns;
    for (int32_t s = 0; s < problem->n_slots; s++)
        if (problem->slots[s].kind != WEFT_SLOT_UPDATE) compute_ns += problem->slot_ns[s];
    for (int32_t u = 0; u < problem->n_units; u++) {
        const struct weft_problem_unit *unit = &problem->units[u];
        int64_t least_update_ns = INT64_MAX, least_channel_ns = INT64_MAX;
        for (int p = 0; p < WEFT_POLICY_COUNT; p++) {
            if (!(unit->policies >> p & 1u)) continue;
            int64_t ns = unit_channel_ns(problem, u, p);
            if (ns < least_channel_ns) least_channel_ns = ns;
            if (unit->update_ns[p] < least_update_ns) least_update_ns = unit->update_ns[p];
        }
        if (unit->update_slot >= 0) compute_ns += least_update_ns;
        channel_ns += least_channel_ns;
    }
    *by = channel_ns > compute_ns ? "channel" : "compute";
    return channel_ns > compute_ns ? channel_ns : compute_ns;
}
