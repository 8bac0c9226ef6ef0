/* SPDX-License-Identifier: Apache-2.0 */
/* Projected subgradients with deflection (Camerini, Fratta and Maffioli, 1975) and Polyak's step
 * towards a target. They need no solver and are cheap enough for each node. */
#include "scheduler/relax/dual.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct ascent {
    struct weft_dual *dual;
    int32_t n, n_times, n_lambda;
    double *best, *direction; /* [n]: point and last direction, both scaled */
};

/* Scale of a coordinate, so that one step suits times (lambda, waits) and bytes (mu, nu). A whole
 * row with large steps counts fewer bytes. */
static double scale_of(const struct ascent *a, int32_t i)
{
    const struct weft_dual *dual = a->dual;
    if (i < a->n_times) return 1;
    if (i < a->n_times + dual->n_memory) return dual->bytes_per_ns;
    const struct weft_whole_row *row = &dual->rows[i - a->n_times - dual->n_memory];
    double share = (double)(row->step_bytes - row->rest_bytes) / (double)row->step_bytes;
    return dual->bytes_per_ns * share;
}

static double slope_of(const struct ascent *a, int32_t i)
{
    return a->dual->load[i] / scale_of(a, i);
}

/* True if the coordinate is at its bound and the slope leads out of it. */
static bool is_stuck(const struct ascent *a, int32_t i)
{
    double x = a->dual->lambda[i], g = a->dual->load[i];
    if (x <= 0 && g < 0) return true;
    return i < a->n_lambda && a->dual->n_moving == 1 && x >= a->dual->room[i] && g > 0;
}

/* Turns the last direction towards the slope. Returns the squared length. */
static double turn_direction(struct ascent *a)
{
    double along = 0, last = 0, length = 0;
    for (int32_t i = 0; i < a->n; i++) {
        double g = is_stuck(a, i) ? 0 : slope_of(a, i);
        along += g * a->direction[i];
        last += a->direction[i] * a->direction[i];
    }
    double keep = along < 0 && last > 0 ? -1.5 * along / last : 0;
    for (int32_t i = 0; i < a->n; i++) {
        double g = is_stuck(a, i) ? 0 : slope_of(a, i);
        a->direction[i] = g + keep * a->direction[i];
        length += a->direction[i] * a->direction[i];
    }
    return length;
}

static void move_prices(struct ascent *a, double step)
{
    struct weft_dual *dual = a->dual;
    for (int32_t i = 0; i < a->n; i++) {
        double x = dual->lambda[i] + step * a->direction[i] / scale_of(a, i);
        dual->lambda[i] = x > 0 ? x : 0;
    }
    for (int32_t s = 0; s < dual->n_slots; s++) {
        double total = 0;
        for (int32_t k = 0; k < dual->n_moving; k++)
            total += dual->lambda[k * dual->n_slots + s];
        const double room = dual->room[s];
        for (int32_t k = 0; total > room && k < dual->n_moving; k++)
            dual->lambda[k * dual->n_slots + s] *= room / total;
        weft_dual_share_wait(dual, s);
    }
}

/* Averages the strategies of the evaluations. The average nearly solves the relaxation. */
static void average_shares(struct weft_dual *dual, double weight)
{
    for (int32_t u = 0; u < dual->table->n_decisions; u++) {
        double *share = &dual->share[weft_digest_at(dual->table, u, 0)];
        for (int32_t p = 0; p < weft_digest_count(dual->table, u); p++)
            share[p] += weight * ((double)(p == dual->strategies[u]) - share[p]);
    }
}

int32_t weft_dual_ascend(struct weft_dual *dual, const struct weft_box *box, double target_ns,
                         double enough_ns, int32_t most_steps)
{
    enum { PATIENCE = 30 };
    struct ascent a = {.dual = dual, .n_lambda = dual->n_moving * dual->n_slots};
    a.n_times = a.n_lambda + dual->waits.n;
    a.n = a.n_times + dual->n_memory + dual->n_rows;
    a.best = calloc(2 * (size_t)a.n, sizeof *a.best);
    weft_dual_evaluate(dual, box);
    if (!a.best) return 1;
    a.direction = a.best + a.n;
    average_shares(dual, 1);
    double best_ns = dual->value_ns, share = 1;
    int32_t steps = 1, fails = 0;
    memcpy(a.best, dual->lambda, (size_t)a.n * sizeof *a.best);
    while (steps < most_steps && best_ns < enough_ns && share > 1e-4) {
        double length = turn_direction(&a);
        if (!(length > 0)) break;
        move_prices(&a, share * (target_ns - dual->value_ns) / length);
        weft_dual_evaluate(dual, box);
        average_shares(dual, 0.05);
        steps++;
        if (dual->value_ns > best_ns) {
            if (dual->value_ns - best_ns > 1e-3 * (target_ns - best_ns)) fails = 0;
            best_ns = dual->value_ns;
            memcpy(a.best, dual->lambda, (size_t)a.n * sizeof *a.best);
        }
        if (fails++ < PATIENCE) continue;
        fails = 0;
        share /= 2;
    }
    memcpy(dual->lambda, a.best, (size_t)a.n * sizeof *a.best);
    weft_dual_evaluate(dual, box);
    free(a.best);
    return steps;
}
