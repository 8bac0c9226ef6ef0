/* SPDX-License-Identifier: Apache-2.0 */
#include "report/study/cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A plan is as fast as another within this share, and clearly slower from the next one. */
static const double TIE = 1e-6, CLEAR = 0.05;

int64_t weft_case_step(const struct weft_sweep_point *point, enum weft_clock_of_case clock)
{
    if (clock == WEFT_CASE_MEASURED) return point->measured_ns;
    return point->fits ? point->step_ns : 0;
}

double weft_case_overlap(const struct weft_sweep_point *point, enum weft_clock_of_case clock)
{
    const bool measured = clock == WEFT_CASE_MEASURED;
    const int64_t channel_ns = measured ? point->measured_channel_ns : point->channel_ns;
    const int64_t exposed_ns = measured ? point->measured_exposed_ns : point->exposed_ns;
    return channel_ns > 0 ? 1 - (double)exposed_ns / (double)channel_ns : 1;
}

const struct weft_sweep_point *weft_case_best_rule(const struct weft_case *one, int32_t limit,
                                                   enum weft_clock_of_case clock)
{
    const struct weft_sweep_point *best = NULL;
    for (int32_t c = 0; c < one->n_planners; c++) {
        const struct weft_sweep_point *point = &one->curves[c].points[limit];
        const int64_t step_ns = weft_case_step(point, clock);
        if (!one->is_rule[c] || step_ns == 0) continue;
        if (best == NULL || step_ns < weft_case_step(best, clock)) best = point;
    }
    return best;
}

/* Columns of a point. */
enum {
    MODEL,
    NETWORK,
    PLANNER,
    LIMIT,
    POLICY_LIMIT,
    FITS,
    STEP,
    EXPOSED,
    COMPUTE,
    CHANNEL,
    OVERLAP,
    TOTAL,
    BOUND,
    MEASURED,
    MEASURED_EXPOSED,
    MEASURED_CHANNEL,
    MEASURED_BYTES,
    SPREAD,
    FIRST_POLICY,
    N_COLUMNS = FIRST_POLICY + WEFT_POLICY_COUNT
};

static const struct {
    const char *name, *type, *text;
    enum weft_figure figure;
} columns_of_points[FIRST_POLICY] = {
    [MODEL] = {"model", "string", "name of the config", WEFT_FIGURE_WORD},
    [NETWORK] = {"network", "string", "factor of the config's bandwidths", WEFT_FIGURE_WORD},
    [PLANNER] = {"planner", "string", "planner, rule or rival", WEFT_FIGURE_WORD},
    [LIMIT] = {"memory_limit_bytes", "integer", "memory limit of a rank", WEFT_FIGURE_BYTES},
    [POLICY_LIMIT] = {"policy_limit_bytes", "integer",
                      "part within which policies were chosen; empty: no division",
                      WEFT_FIGURE_BYTES},
    [FITS] = {"fits", "integer", "1: the planner has a plan; 0: the next columns are empty",
              WEFT_FIGURE_BOOL},
    [STEP] = {"step_ns", "integer", "simulated step", WEFT_FIGURE_NS},
    [EXPOSED] = {"exposed_ns", "integer", "compute waits for communication", WEFT_FIGURE_NS},
    [COMPUTE] = {"compute_ns", "integer", "compute of a step", WEFT_FIGURE_NS},
    [CHANNEL] = {"communication_ns", "integer", "communication of a step", WEFT_FIGURE_NS},
    [OVERLAP] = {"overlap", "number", "1 - exposed_ns / communication_ns", WEFT_FIGURE_PERCENT},
    [TOTAL] = {"total_bytes", "integer", "memory of a rank in whole pages", WEFT_FIGURE_BYTES},
    [BOUND] = {"bound_ns", "integer",
               "proven: no plan within the limit is faster; empty: none is known", WEFT_FIGURE_NS},
    [MEASURED] = {"measured_step_ns", "integer",
                  "median of repeated runs; empty: none was run, like the next four columns",
                  WEFT_FIGURE_NS},
    [MEASURED_EXPOSED] = {"measured_exposed_ns", "integer", "exposed_ns of that run",
                          WEFT_FIGURE_NS},
    [MEASURED_CHANNEL] = {"measured_communication_ns", "integer", "communication_ns of that run",
                          WEFT_FIGURE_NS},
    [MEASURED_BYTES] = {"measured_bytes", "integer", "most memory of a rank in that run",
                        WEFT_FIGURE_BYTES},
    [SPREAD] = {"measured_spread_ns", "integer", "longest step of all runs less the shortest",
                WEFT_FIGURE_NS},
};

static void put_point(const struct weft_case *one, const struct weft_sweep_curve *curve,
                      const struct weft_sweep_point *point, struct weft_rows *rows)
{
    const struct weft_sweep all = {.n_curves = one->n_planners + one->n_limits,
                                   .curves = one->curves};
    const int64_t bound_ns = weft_sweep_bound(&all, point);
    weft_rows_begin(rows, NULL);
    weft_rows_word(rows, MODEL, one->model);
    weft_rows_word(rows, NETWORK, one->network);
    weft_rows_word(rows, PLANNER, curve->planner);
    weft_rows_integer(rows, LIMIT, point->limit_bytes);
    if (point->policy_limit_bytes > 0)
        weft_rows_integer(rows, POLICY_LIMIT, point->policy_limit_bytes);
    weft_rows_integer(rows, FITS, point->fits);
    if (bound_ns > 0) weft_rows_integer(rows, BOUND, bound_ns);
    if (!point->fits) return;
    weft_rows_integer(rows, STEP, point->step_ns);
    weft_rows_integer(rows, EXPOSED, point->exposed_ns);
    weft_rows_integer(rows, COMPUTE, point->compute_ns);
    weft_rows_integer(rows, CHANNEL, point->channel_ns);
    weft_rows_real(rows, OVERLAP, weft_case_overlap(point, WEFT_CASE_SIMULATED));
    weft_rows_integer(rows, TOTAL, point->total_bytes);
    if (point->measured_ns > 0) {
        weft_rows_integer(rows, MEASURED, point->measured_ns);
        weft_rows_integer(rows, MEASURED_EXPOSED, point->measured_exposed_ns);
        weft_rows_integer(rows, MEASURED_CHANNEL, point->measured_channel_ns);
        weft_rows_integer(rows, MEASURED_BYTES, point->measured_bytes);
        weft_rows_integer(rows, SPREAD, point->measured_spread_ns);
    }
    for (int p = 0; p < WEFT_POLICY_COUNT; p++)
        weft_rows_real(rows, FIRST_POLICY + p, point->shares.policies[p]);
}

void weft_cases_put_points(const struct weft_cases *cases, struct weft_answer *answer)
{
    struct weft_column columns[N_COLUMNS];
    for (int k = 0; k < FIRST_POLICY; k++)
        columns[k] = (struct weft_column){columns_of_points[k].name, NULL, 'r',
                                          columns_of_points[k].figure, 0};
    for (int p = 0; p < WEFT_POLICY_COUNT; p++)
        columns[FIRST_POLICY + p] = (struct weft_column){
            weft_pool_format(&answer->pool, "share_%s", weft_policy_name((enum weft_policy)p)),
            NULL, 'r', WEFT_FIGURE_PERCENT, 0};
    struct weft_rows *rows = weft_answer_table(answer, "points", columns, N_COLUMNS);
    for (int32_t k = 0; k < cases->n; k++) {
        const struct weft_case *one = &cases->cases[k];
        for (int32_t c = 0; c < one->n_planners + one->n_limits; c++)
            for (int32_t i = 0; i < one->curves[c].n_points; i++)
                put_point(one, &one->curves[c], &one->curves[c].points[i], rows);
    }
}

static void put_field(const char *name, const char *type, const char *text,
                      struct weft_json_writer *writer)
{
    weft_json_begin_object(writer);
    weft_json_flat(writer);
    weft_json_put_string(writer, "name", name);
    weft_json_put_string(writer, "type", type);
    weft_json_put_string(writer, "description", text);
    weft_json_end_object(writer);
}

void weft_cases_schema(struct weft_text *out)
{
    struct weft_json_writer writer;
    weft_json_writer_init(&writer, out, 2);
    weft_json_begin_object(&writer);
    weft_json_key(&writer, "fields");
    weft_json_begin_array(&writer);
    for (int k = 0; k < FIRST_POLICY; k++)
        put_field(columns_of_points[k].name, columns_of_points[k].type, columns_of_points[k].text,
                  &writer);
    for (int p = 0; p < WEFT_POLICY_COUNT; p++) {
        char name[64];
        snprintf(name, sizeof name, "share_%s", weft_policy_name((enum weft_policy)p));
        put_field(name, "number", "share of all parameters in units with this policy", &writer);
    }
    weft_json_end_array(&writer);
    weft_json_end_object(&writer);
    weft_text_add(out, "\n");
}

static int compare_reals(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Shares of all points of a planner, or of the best rule (planner -1). */
struct shares {
    int32_t n, n_as_fast, n_bound;
    double *slower, *overlaps, *gaps;
};

static bool make_shares(const struct weft_cases *cases, struct weft_pool *pool, struct shares *out)
{
    size_t n = 1;
    for (int32_t k = 0; k < cases->n; k++)
        n += (size_t)cases->cases[k].n_limits;
    out->slower = weft_pool_array(pool, n, sizeof *out->slower);
    out->overlaps = weft_pool_array(pool, n, sizeof *out->overlaps);
    out->gaps = weft_pool_array(pool, n, sizeof *out->gaps);
    return out->slower && out->overlaps && out->gaps;
}

/* Finds the curve of a planner in a case; NULL if it has no part there. */
static const struct weft_sweep_curve *find_curve(const struct weft_case *one, const char *planner)
{
    for (int32_t c = 0; c < one->n_planners; c++)
        if (strcmp(one->curves[c].planner, planner) == 0) return &one->curves[c];
    return NULL;
}

/* Collects the shares of a planner's points, or of the best rule's (NULL). */
static void collect_shares(const struct weft_cases *cases, const char *planner, struct shares *out)
{
    out->n = out->n_as_fast = out->n_bound = 0;
    for (int32_t k = 0; k < cases->n; k++) {
        const struct weft_case *one = &cases->cases[k];
        const struct weft_sweep all = {.n_curves = one->n_planners, .curves = one->curves};
        const struct weft_sweep_curve *curve = planner ? find_curve(one, planner) : NULL;
        for (int32_t i = 0; i < one->n_limits; i++) {
            const struct weft_sweep_point *first = &one->curves[0].points[i];
            const struct weft_sweep_point *point =
                planner ? (curve ? &curve->points[i] : NULL)
                        : weft_case_best_rule(one, i, WEFT_CASE_SIMULATED);
            if (!first->fits || point == NULL || !point->fits) continue;
            const double slower = (double)point->step_ns / (double)first->step_ns - 1;
            const double gap = weft_sweep_gap(&all, point);
            if (gap >= 0) out->gaps[out->n_bound++] = gap;
            out->n_as_fast += slower < TIE;
            out->slower[out->n] = slower;
            out->overlaps[out->n++] = weft_case_overlap(point, WEFT_CASE_SIMULATED);
        }
    }
    qsort(out->slower, (size_t)out->n, sizeof *out->slower, compare_reals);
    qsort(out->overlaps, (size_t)out->n, sizeof *out->overlaps, compare_reals);
    qsort(out->gaps, (size_t)out->n_bound, sizeof *out->gaps, compare_reals);
}

enum { NAME, N_POINTS, AS_FAST, MEDIAN, WORST, HIDDEN, GAP, N_SUMMARY };

/* The lower one of two medians, so that it is the figure of a point. */
static double median_of(const double *sorted, int32_t n)
{
    return sorted[(n - 1) / 2];
}

static void put_planner(const char *name, const struct shares *shares, struct weft_rows *rows)
{
    weft_rows_begin(rows, NULL);
    weft_rows_word(rows, NAME, name);
    weft_rows_integer(rows, N_POINTS, shares->n);
    if (shares->n == 0) return;
    weft_rows_integer(rows, AS_FAST, shares->n_as_fast);
    weft_rows_real(rows, MEDIAN, median_of(shares->slower, shares->n));
    weft_rows_real(rows, WORST, shares->slower[shares->n - 1]);
    weft_rows_real(rows, HIDDEN, median_of(shares->overlaps, shares->n));
    if (shares->n_bound > 0) weft_rows_real(rows, GAP, median_of(shares->gaps, shares->n_bound));
}

static void put_planners(const struct weft_cases *cases, struct weft_answer *answer)
{
    const struct weft_column columns[N_SUMMARY] = {
        [NAME] = {"planner", "planner", 'l', WEFT_FIGURE_WORD, 0},
        [N_POINTS] = {"points", "points", 'r', WEFT_FIGURE_INTEGER, 0},
        [AS_FAST] = {"as_fast", "as fast", 'r', WEFT_FIGURE_INTEGER, 0},
        [MEDIAN] = {"slower_median", "slower by", 'r', WEFT_FIGURE_PERCENT, 0},
        [WORST] = {"slower_worst", "worst", 'r', WEFT_FIGURE_PERCENT, 0},
        [HIDDEN] = {"overlap_median", "overlap", 'r', WEFT_FIGURE_PERCENT, 0},
        [GAP] = {"gap_median", "gap", 'r', WEFT_FIGURE_PERCENT, 0}};
    struct weft_rows *rows = weft_answer_table(answer, "planners", columns, N_SUMMARY);
    struct shares shares;
    if (rows == NULL || !make_shares(cases, &answer->pool, &shares)) {
        answer->failed = true;
        return;
    }
    weft_rows_title(rows, "planners next to %s, medians over all points with a plan",
                    cases->cases[0].curves[0].planner);
    /* Cases may have other planners: rules that do not apply to a config are left out. */
    for (int32_t k = 0; k < cases->n; k++) {
        for (int32_t c = 0; c < cases->cases[k].n_planners; c++) {
            const char *planner = cases->cases[k].curves[c].planner;
            bool met = false;
            for (int32_t before = 0; before < k && !met; before++)
                met = find_curve(&cases->cases[before], planner) != NULL;
            if (met) continue;
            collect_shares(cases, planner, &shares);
            put_planner(planner, &shares, rows);
        }
    }
    collect_shares(cases, NULL, &shares);
    put_planner("best rule", &shares, rows);
}

/* A row for each case: the points at which the first planner clearly beats the rules. */
static void put_gains(const struct weft_cases *cases, struct weft_answer *answer)
{
    enum { CASE_MODEL, CASE_NETWORK, POINTS, CLEARLY, ALONE, MOST, CASE_COLUMNS };
    const char *first = cases->cases[0].curves[0].planner;
    const struct weft_column columns[CASE_COLUMNS] = {
        [CASE_MODEL] = {"model", "model", 'l', WEFT_FIGURE_WORD, 0},
        [CASE_NETWORK] = {"network", "network", 'r', WEFT_FIGURE_WORD, 0},
        [POINTS] = {"points", "points", 'r', WEFT_FIGURE_INTEGER, 0},
        [CLEARLY] = {"faster_by_5_percent", "5 % faster", 'r', WEFT_FIGURE_INTEGER, 0},
        [ALONE] = {"without_a_rule", "no rule fits", 'r', WEFT_FIGURE_INTEGER, 0},
        [MOST] = {"most_gain", "most", 'r', WEFT_FIGURE_PERCENT, 0}};
    struct weft_rows *rows = weft_answer_table(answer, "gains", columns, CASE_COLUMNS);
    int32_t all = 0, all_clearly = 0;
    weft_rows_title(rows, "%s next to the best rule at each limit", first);
    for (int32_t k = 0; k < cases->n; k++) {
        const struct weft_case *one = &cases->cases[k];
        int32_t n = 0, clearly = 0, alone = 0;
        double most = 0;
        for (int32_t i = 0; i < one->n_limits; i++) {
            const struct weft_sweep_point *own = &one->curves[0].points[i];
            const struct weft_sweep_point *rule = weft_case_best_rule(one, i, WEFT_CASE_SIMULATED);
            if (!own->fits) continue;
            const double gain = rule ? (double)rule->step_ns / (double)own->step_ns - 1 : 0;
            n++;
            alone += rule == NULL;
            clearly += rule == NULL || gain >= CLEAR;
            if (gain > most) most = gain;
        }
        weft_rows_begin(rows, NULL);
        weft_rows_word(rows, CASE_MODEL, one->model);
        weft_rows_word(rows, CASE_NETWORK, one->network);
        weft_rows_integer(rows, POINTS, n);
        weft_rows_integer(rows, CLEARLY, clearly);
        weft_rows_integer(rows, ALONE, alone);
        weft_rows_real(rows, MOST, most);
        all += n;
        all_clearly += clearly;
    }
    weft_rows_note(rows,
                   "  %s is 5 %% faster than every rule, or alone has a plan, at %d of %d points\n",
                   first, (int)all_clearly, (int)all);
}

void weft_cases_report(const struct weft_cases *cases, struct weft_answer *answer)
{
    put_planners(cases, answer);
    put_gains(cases, answer);
    weft_cases_put_measured(cases, answer);
}
