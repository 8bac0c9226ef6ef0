/* SPDX-License-Identifier: Apache-2.0 */
#include "report/study/sweep.h"

#include "base/units.h"

/* Longer steps than so many times the least are drawn at the top. So one slow planner does not hide
 * the differences of the others. */
enum { TALLEST = 3 };

const char *weft_sweep_name(const struct weft_sweep *sweep, int32_t curve,
                            char text[WEFT_UNITS_TEXT_BYTES])
{
    const struct weft_sweep_curve *at = &sweep->curves[curve];
    if (!sweep->grid) return at->planner;
    return weft_units_show_bytes(at->points[0].host_limit_bytes, text);
}

int64_t weft_sweep_x(const struct weft_sweep *sweep, const struct weft_sweep_point *point)
{
    return sweep->split && point->policy_limit_bytes > 0 ? point->policy_limit_bytes
                                                         : point->limit_bytes;
}

int64_t weft_sweep_bound(const struct weft_sweep *sweep, const struct weft_sweep_point *point)
{
    int64_t bound_ns = 0;
    for (int32_t c = 0; c < sweep->n_curves; c++) {
        for (int32_t i = 0; i < sweep->curves[c].n_points; i++) {
            const struct weft_sweep_point *other = &sweep->curves[c].points[i];
            if (other->fits && other->limit_bytes >= point->limit_bytes &&
                other->host_limit_bytes >= point->host_limit_bytes && other->bound_ns > bound_ns)
                bound_ns = other->bound_ns;
        }
    }
    return bound_ns;
}

double weft_sweep_gap(const struct weft_sweep *sweep, const struct weft_sweep_point *point)
{
    int64_t bound_ns = weft_sweep_bound(sweep, point);
    if (bound_ns <= 0 || !point->fits) return -1;
    return (double)(point->step_ns - bound_ns) / (double)bound_ns;
}

/* Widens the axes to a drawn value. */
static void include_ns(struct weft_sweep_axes *axes, int64_t ns)
{
    if (ns > 0 && ns < axes->low) axes->low = ns;
    if (ns > axes->high) axes->high = ns;
}

bool weft_sweep_axes(const struct weft_sweep *sweep, bool measured, struct weft_sweep_axes *out)
{
    struct weft_sweep_axes axes = {.left = INT64_MAX, .low = INT64_MAX}, steps = axes;
    for (int32_t c = 0; c < sweep->n_curves; c++) {
        for (int32_t i = 0; i < sweep->curves[c].n_points; i++) {
            const struct weft_sweep_point *point = &sweep->curves[c].points[i];
            int64_t x = weft_sweep_x(sweep, point), bound_ns = weft_sweep_bound(sweep, point);
            if (x < axes.left) axes.left = x;
            if (x > axes.right) axes.right = x;
            if (!point->fits) continue;
            include_ns(&steps, point->step_ns);
            if (bound_ns > 0 && bound_ns < axes.low) axes.low = bound_ns;
            if (measured) include_ns(&axes, point->measured_ns);
        }
    }
    if (steps.low == INT64_MAX) return false;
    bool tall = !sweep->grid && steps.high / TALLEST > steps.low;
    include_ns(&axes, steps.low);
    include_ns(&axes, tall ? TALLEST * steps.low : steps.high);
    axes.cut = steps.high > axes.high;
    if (axes.right <= axes.left) axes.right = axes.left + 1;
    if (axes.high <= axes.low) axes.high = axes.low + 1;
    *out = axes;
    return true;
}

/* The first curve with a point for every column. */
static const struct weft_sweep_curve *find_longest(const struct weft_sweep *sweep)
{
    const struct weft_sweep_curve *longest = &sweep->curves[0];
    for (int32_t c = 1; c < sweep->n_curves; c++)
        if (sweep->curves[c].n_points > longest->n_points) longest = &sweep->curves[c];
    return longest;
}

/* The fastest step of any planner at a column's limit. */
static int64_t least_step(const struct weft_sweep *sweep, int64_t x)
{
    int64_t least_ns = INT64_MAX;
    for (int32_t c = 0; c < sweep->n_curves; c++) {
        for (int32_t i = 0; i < sweep->curves[c].n_points; i++) {
            const struct weft_sweep_point *point = &sweep->curves[c].points[i];
            if (point->fits && weft_sweep_x(sweep, point) == x && point->step_ns < least_ns)
                least_ns = point->step_ns;
        }
    }
    return least_ns;
}

static void add_step(const struct weft_sweep *sweep, const struct weft_sweep_point *point,
                     bool measured, int32_t column, struct weft_rows *rows)
{
    const int64_t ns = !point->fits ? 0 : measured ? point->measured_ns : point->step_ns;
    const bool best = !measured && ns == least_step(sweep, weft_sweep_x(sweep, point));
    weft_rows_paint(rows, column,
                    ns <= 0 ? WEFT_PAINT_FAINT
                    : best  ? WEFT_PAINT_GOOD
                            : WEFT_PAINT_NONE);
    if (ns > 0) weft_rows_integer(rows, column, ns);
}

static void add_steps(const struct weft_sweep *sweep, int32_t which, int32_t n_columns,
                      bool measured, struct weft_rows *rows)
{
    const struct weft_sweep_curve *curve = &sweep->curves[which];
    char name[WEFT_UNITS_TEXT_BYTES];
    weft_rows_begin(rows, NULL);
    weft_rows_show(rows, 0, WEFT_PAINT_NONE, "%s%s%s", weft_sweep_name(sweep, which, name),
                   measured ? ", measured" : "", measured && sweep->emulated ? ", emulated" : "");
    for (int32_t i = 0; i < n_columns; i++) {
        /* The joint plan of a split is one point, in the last column. */
        int32_t at = curve->n_points == 1 ? i - (n_columns - 1) : i;
        if (at >= 0)
            add_step(sweep, &curve->points[at], measured, 1 + i, rows);
        else
            weft_rows_show(rows, 1 + i, WEFT_PAINT_NONE, "%s", "");
    }
}

bool weft_sweep_drifts(const struct weft_sweep_point *point)
{
    return (double)point->measured_spread_ns > WEFT_SWEEP_DRIFT * (double)point->measured_ns;
}

int32_t weft_sweep_count_fits(const struct weft_sweep_curve *curve)
{
    int32_t n = 0;
    for (int32_t i = 0; i < curve->n_points; i++)
        n += curve->points[i].fits;
    return n;
}

static int32_t count_measured(const struct weft_sweep_curve *curve)
{
    int32_t n = 0;
    for (int32_t i = 0; i < curve->n_points; i++)
        n += curve->points[i].measured_ns > 0;
    return n;
}

/* Shows a share in a column; below 0: none is known. */
static void show_share(struct weft_rows *rows, int32_t column, int digits, double share)
{
    if (share < 0) return;
    weft_rows_real(rows, column, share);
    weft_rows_show(rows, column, WEFT_PAINT_NONE, "%.*f %%", digits, 100 * share);
}

static void add_gaps(const struct weft_sweep *sweep, int32_t which, struct weft_rows *rows)
{
    const struct weft_sweep_curve *curve = &sweep->curves[which];
    char name[WEFT_UNITS_TEXT_BYTES];
    if (weft_sweep_count_fits(curve) == 0) return;
    weft_rows_begin(rows, NULL);
    weft_rows_show(rows, 0, WEFT_PAINT_NONE, "gap %s %s", sweep->grid ? "at" : "of",
                   weft_sweep_name(sweep, which, name));
    for (int32_t i = 0; i < curve->n_points; i++)
        show_share(rows, 1 + i, 3, weft_sweep_gap(sweep, &curve->points[i]));
}

static void add_bounds(const struct weft_sweep *sweep, const struct weft_sweep_curve *columns,
                       struct weft_rows *rows)
{
    weft_rows_begin(rows, NULL);
    weft_rows_show(rows, 0, WEFT_PAINT_NONE, "proven bound");
    for (int32_t i = 0; i < columns->n_points; i++) {
        const int64_t bound_ns = weft_sweep_bound(sweep, &columns->points[i]);
        if (bound_ns > 0) weft_rows_integer(rows, 1 + i, bound_ns);
    }
}

/* A row for each strategy that any plan of the curve has: its share of parameters, or of saved
 * activations. Strategies of all plans alike have no row. */
static void add_shares(const struct weft_sweep_curve *curve, struct weft_rows *rows)
{
    for (int k = 0; k < WEFT_WAY_SHARES; k++) {
        double most = 0, least = 1;
        for (int32_t i = 0; i < curve->n_points; i++) {
            if (!curve->points[i].fits) continue;
            const double share = weft_way_share_at(&curve->points[i].shares, k).share;
            if (share > most) most = share;
            if (share < least) least = share;
        }
        if (most <= 0 || least >= 1) continue;
        const struct weft_way_share it = weft_way_share_at(&curve->points[0].shares, k);
        weft_rows_begin(rows, NULL);
        weft_rows_show(rows, 0, WEFT_PAINT_NONE, "%s %s", it.group, it.name);
        for (int32_t i = 0; i < curve->n_points; i++) {
            const struct weft_sweep_point *point = &curve->points[i];
            show_share(rows, 1 + i, 0,
                       point->fits ? weft_way_share_at(&point->shares, k).share : -1);
        }
    }
}

static void add_title(const struct weft_sweep *sweep, struct weft_rows *rows)
{
    const char *times = sweep->times;
    if (sweep->grid)
        weft_rows_title(rows,
                        "step time of %s by memory limit (across) and the host's (down); %s, %lld "
                        "ranks, times %s",
                        sweep->curves[0].planner, sweep->config, (long long)sweep->ranks, times);
    else
        weft_rows_title(rows, "step time by %s; %s, %lld ranks, times %s",
                        sweep->split ? "the memory that policies were chosen within"
                                     : "memory limit",
                        sweep->config, (long long)sweep->ranks, times);
}

/* Names planners without any plan, which have no row. A grid has all rows. */
static void add_absent(const struct weft_sweep *sweep, struct weft_answer *answer)
{
    int32_t n = 0;
    for (int32_t c = 0; c < sweep->n_curves && !sweep->grid; c++)
        if (weft_sweep_count_fits(&sweep->curves[c]) == 0)
            weft_answer_say(answer, NULL, "%s%s",
                            n++ == 0 ? "  no plan within any of these limits: " : ", ",
                            sweep->curves[c].planner);
    if (n > 0) weft_answer_say(answer, NULL, "\n");
}

/* Begins the table with a column for each point of the longest curve. */
static struct weft_rows *begin_table(const struct weft_sweep *sweep,
                                     const struct weft_sweep_curve *longest,
                                     struct weft_answer *answer)
{
    const int32_t n = longest->n_points;
    char text[WEFT_UNITS_TEXT_BYTES];
    struct weft_column *columns = weft_pool_array(&answer->pool, (size_t)n + 1, sizeof *columns);
    if (columns == NULL) {
        answer->failed = true;
        return NULL;
    }
    columns[0] = (struct weft_column){NULL,
                                      sweep->grid    ? "host limit"
                                      : sweep->split ? "policies within"
                                                     : "limit",
                                      'l', WEFT_FIGURE_WORD, 0};
    for (int32_t i = 1; i <= n; i++)
        columns[i] = (struct weft_column){NULL, NULL, 'r', WEFT_FIGURE_NS, 0};
    struct weft_rows *rows = weft_answer_table(answer, NULL, columns, n + 1);
    for (int32_t i = 0; i < n; i++)
        weft_rows_head(rows, 1 + i, "%s",
                       weft_units_show_bytes(weft_sweep_x(sweep, &longest->points[i]), text));
    add_title(sweep, rows);
    return rows;
}

static void add_table(const struct weft_sweep *sweep, struct weft_answer *answer)
{
    const struct weft_sweep_curve *longest = find_longest(sweep);
    const int32_t n = longest->n_points;
    struct weft_rows *rows = begin_table(sweep, longest, answer);
    int32_t n_missing = 0;
    bool measured = false;
    for (int32_t c = 0; c < sweep->n_curves; c++) {
        const int32_t fits = weft_sweep_count_fits(&sweep->curves[c]);
        const int32_t runs = count_measured(&sweep->curves[c]);
        if (fits == 0 && !sweep->grid) continue;
        add_steps(sweep, c, n, false, rows);
        if (runs > 0) add_steps(sweep, c, n, true, rows);
        n_missing += sweep->curves[c].n_points - (runs > 0 ? runs : fits);
        measured |= runs > 0;
    }
    if (!sweep->grid) add_bounds(sweep, longest, rows);
    for (int32_t c = 0; c < (sweep->grid ? sweep->n_curves : 1); c++)
        if (sweep->curves[c].n_points == n) add_gaps(sweep, c, rows);
    if (!sweep->grid && sweep->curves[0].n_points == n) add_shares(&sweep->curves[0], rows);
    if (n_missing > 0)
        weft_rows_note(rows, "  (-: the planner has no plan that fits%s)",
                       measured ? ", or it was not measured" : "");
}

void weft_sweep_report(const struct weft_sweep *sweep, struct weft_answer *answer)
{
    weft_answer_word(answer, "config", sweep->config);
    weft_answer_integer(answer, "ranks", sweep->ranks);
    weft_answer_word(answer, "times", sweep->times);
    weft_answer_bool(answer, "split", sweep->split);
    weft_answer_bool(answer, "grid", sweep->grid);
    weft_sweep_put_points(sweep, answer);
    add_table(sweep, answer);
    add_absent(sweep, answer);
}
