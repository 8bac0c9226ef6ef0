/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/study/cases.h"

/* Shares of all measured points of a planner. */
struct shares {
    int32_t n, n_as_fast;
    double *slower, *spreads, *errors;
};

static int compare_reals(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void sort_reals(double *values, int32_t n)
{
    qsort(values, (size_t)n, sizeof *values, compare_reals);
}

/* Collects the points of a planner in a case at which the first planner was measured too. */
static void collect_case(const struct weft_case *one, const char *planner, struct shares *out)
{
    for (int32_t c = 0; c < one->n_planners; c++) {
        if (strcmp(one->curves[c].planner, planner) != 0) continue;
        for (int32_t i = 0; i < one->n_limits; i++) {
            const struct weft_sweep_point *point = &one->curves[c].points[i];
            const double first_ns = (double)one->curves[0].points[i].measured_ns;
            const double step_ns = (double)point->measured_ns;
            if (point->measured_ns == 0 || first_ns == 0) continue;
            out->n_as_fast += fabs(step_ns - first_ns) <= WEFT_SWEEP_DRIFT * first_ns;
            out->slower[out->n] = step_ns / first_ns - 1;
            out->spreads[out->n] = (double)point->measured_spread_ns / step_ns;
            out->errors[out->n++] = fabs(step_ns / (double)point->step_ns - 1);
        }
    }
}

enum { NAME, N_POINTS, AS_FAST, MEDIAN, WORST, SPREAD, WORST_SPREAD, ERROR, N_COLUMNS };

static void put_planner(const struct weft_cases *cases, const char *planner, struct shares *shares,
                        struct weft_rows *rows)
{
    shares->n = shares->n_as_fast = 0;
    for (int32_t k = 0; k < cases->n; k++)
        collect_case(&cases->cases[k], planner, shares);
    const int32_t n = shares->n, middle = (n - 1) / 2;
    weft_rows_begin(rows, NULL);
    weft_rows_word(rows, NAME, planner);
    weft_rows_integer(rows, N_POINTS, n);
    if (n == 0) return;
    sort_reals(shares->slower, n);
    sort_reals(shares->spreads, n);
    sort_reals(shares->errors, n);
    weft_rows_integer(rows, AS_FAST, shares->n_as_fast);
    weft_rows_real(rows, MEDIAN, shares->slower[middle]);
    weft_rows_real(rows, WORST, shares->slower[n - 1]);
    weft_rows_real(rows, SPREAD, shares->spreads[middle]);
    weft_rows_real(rows, WORST_SPREAD, shares->spreads[n - 1]);
    weft_rows_real(rows, ERROR, shares->errors[middle]);
}

/* True if an earlier curve, of an earlier case or of this one, has the planner. */
static bool was_met(const struct weft_cases *cases, int32_t which, int32_t curve)
{
    const char *planner = cases->cases[which].curves[curve].planner;
    for (int32_t k = 0; k < which; k++)
        for (int32_t c = 0; c < cases->cases[k].n_planners; c++)
            if (strcmp(cases->cases[k].curves[c].planner, planner) == 0) return true;
    return false;
}

static int32_t count_drifting(const struct weft_case *one)
{
    int32_t n = 0;
    for (int32_t c = 0; c < one->n_planners + one->n_limits; c++)
        for (int32_t i = 0; i < one->curves[c].n_points; i++)
            n += one->curves[c].points[i].measured_ns > 0 &&
                 weft_sweep_drifts(&one->curves[c].points[i]);
    return n;
}

/* A line for each measured case. A single run of a point has no spread, so none drifts. */
static void say_drift(const struct weft_cases *cases, struct weft_answer *answer)
{
    for (int32_t k = 0; k < cases->n; k++) {
        const struct weft_case *one = &cases->cases[k];
        const bool repeats = one->n_repeats > 1;
        if (!one->measured || (!repeats && !one->has_drift)) continue;
        weft_answer_say(answer, NULL, "  %s x%s: ", one->model, one->network);
        if (repeats)
            weft_answer_say(answer, NULL, "%d points ran again, and %d differ by more than 2 %%%s",
                            (int)one->n_repeated, (int)count_drifting(one),
                            one->has_drift ? "; " : "");
        if (one->has_drift)
            weft_answer_say(answer, NULL,
                            "after the runs layers took %+.1f %%, collectives %+.1f %%",
                            100 * one->compute_drift, 100 * one->network_drift);
        weft_answer_say(answer, NULL, "\n");
    }
}

void weft_cases_put_measured(const struct weft_cases *cases, struct weft_answer *answer)
{
    const struct weft_column columns[N_COLUMNS] = {
        [NAME] = {"planner", "planner", 'l', WEFT_FIGURE_WORD, 0},
        [N_POINTS] = {"points", "points", 'r', WEFT_FIGURE_INTEGER, 0},
        [AS_FAST] = {"as_fast", "as fast", 'r', WEFT_FIGURE_INTEGER, 0},
        [MEDIAN] = {"slower_median", "slower by", 'r', WEFT_FIGURE_PERCENT, 0},
        [WORST] = {"slower_worst", "worst", 'r', WEFT_FIGURE_PERCENT, 0},
        [SPREAD] = {"spread_median", "spread", 'r', WEFT_FIGURE_PERCENT, 0},
        [WORST_SPREAD] = {"spread_worst", "worst", 'r', WEFT_FIGURE_PERCENT, 0},
        [ERROR] = {"error_median", "error", 'r', WEFT_FIGURE_PERCENT, 0}};
    size_t n = 1;
    bool any = false;
    for (int32_t k = 0; k < cases->n; k++) {
        n += (size_t)cases->cases[k].n_limits;
        any |= cases->cases[k].measured;
    }
    if (!any) return;
    struct shares shares = {.slower = weft_pool_array(&answer->pool, n, sizeof(double)),
                            .spreads = weft_pool_array(&answer->pool, n, sizeof(double)),
                            .errors = weft_pool_array(&answer->pool, n, sizeof(double))};
    struct weft_rows *rows = weft_answer_table(answer, "measured", columns, N_COLUMNS);
    if (rows == NULL || !shares.slower || !shares.spreads || !shares.errors) {
        answer->failed = true;
        return;
    }
    weft_rows_title(rows, "measured steps next to %s's; spread of repeats; error of the prediction",
                    cases->cases[0].curves[0].planner);
    for (int32_t k = 0; k < cases->n; k++)
        for (int32_t c = 0; c < cases->cases[k].n_planners; c++)
            if (!was_met(cases, k, c))
                put_planner(cases, cases->cases[k].curves[c].planner, &shares, rows);
    say_drift(cases, answer);
}
