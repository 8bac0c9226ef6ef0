/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <string.h>

#include "report/study/svg.h"
#include "report/study/sweep.h"

enum known { ALWAYS, OF_PART, OF_GRID, OF_PLAN, OF_BOUND, OF_RUN };

#define AT(member) offsetof(struct weft_sweep_point, member)

/* Columns of a point; the limits come first. */
static const struct {
    const char *name;
    size_t offset;
    enum known known; /* the points that have a value */
    enum weft_figure figure;
} values[] = {
    {"memory_limit_bytes", AT(limit_bytes), ALWAYS, WEFT_FIGURE_BYTES},
    {"policy_limit_bytes", AT(policy_limit_bytes), OF_PART, WEFT_FIGURE_BYTES},
    {"host_limit_bytes", AT(host_limit_bytes), OF_GRID, WEFT_FIGURE_BYTES},
    {"fits", AT(fits), ALWAYS, WEFT_FIGURE_BOOL},
    {"step_ns", AT(step_ns), OF_PLAN, WEFT_FIGURE_NS},
    {"exposed_ns", AT(exposed_ns), OF_PLAN, WEFT_FIGURE_NS},
    {"compute_ns", AT(compute_ns), OF_PLAN, WEFT_FIGURE_NS},
    {"channel_ns", AT(channel_ns), OF_PLAN, WEFT_FIGURE_NS},
    {"total_bytes", AT(total_bytes), OF_PLAN, WEFT_FIGURE_BYTES},
    {"bound_ns", AT(bound_ns), OF_BOUND, WEFT_FIGURE_NS},
    {"measured_step_ns", AT(measured_ns), OF_RUN, WEFT_FIGURE_NS},
    {"measured_exposed_ns", AT(measured_exposed_ns), OF_RUN, WEFT_FIGURE_NS},
    {"measured_bytes", AT(measured_bytes), OF_RUN, WEFT_FIGURE_BYTES},
    {"measured_spread_ns", AT(measured_spread_ns), OF_RUN, WEFT_FIGURE_NS},
};
enum { N_VALUES = sizeof values / sizeof *values, N_LIMITS = 3, STEP = 4, BOUND = 9 };

/* Columns of the points' table. The gap follows the bound. */
enum {
    PLANNER,
    FIRST_VALUE,
    GAP = FIRST_VALUE + BOUND + 1,
    TIMES = FIRST_VALUE + N_VALUES + 1,
    LINK,
    FIRST_SHARE,
    N_COLUMNS = FIRST_SHARE + WEFT_WAY_SHARES
};

static int32_t column_of(int32_t value)
{
    return FIRST_VALUE + value + (value > BOUND ? 1 : 0);
}

/* Finds the value of a point's column; false if it is not known. */
static bool find_value(const struct weft_sweep *sweep, const struct weft_sweep_point *point,
                       int32_t column, int64_t *value)
{
    memcpy(value, (const char *)point + values[column].offset, sizeof *value);
    if (values[column].figure == WEFT_FIGURE_BOOL) *value = point->fits;
    if (values[column].known == OF_PART) return point->policy_limit_bytes > 0;
    if (values[column].known == OF_GRID) return sweep->grid;
    if (values[column].known == OF_PLAN) return point->fits;
    if (values[column].known == OF_RUN) return point->measured_ns > 0;
    if (values[column].known == ALWAYS) return true;
    *value = weft_sweep_bound(sweep, point);
    return *value > 0;
}

/* Adds a point as a row. JSON has "gap" and "link" where they are known. */
static void add_point(const struct weft_sweep *sweep, int32_t curve,
                      const struct weft_sweep_point *point, struct weft_rows *rows)
{
    int64_t value;
    weft_rows_begin(rows, NULL);
    if (point == sweep->curves[curve].points) weft_rows_begin_series(rows);
    weft_rows_word(rows, PLANNER, sweep->curves[curve].planner);
    for (int32_t k = 0; k < N_VALUES; k++)
        if (find_value(sweep, point, k, &value)) weft_rows_integer(rows, column_of(k), value);
    weft_rows_word(rows, TIMES, sweep->times);
    if (point->measured_ns > 0) weft_rows_word(rows, LINK, sweep->emulated ? "emulated" : "local");
    if (!point->fits) return;
    if (weft_sweep_bound(sweep, point) > 0) weft_rows_real(rows, GAP, weft_sweep_gap(sweep, point));
    for (int k = 0; k < WEFT_WAY_SHARES; k++) {
        const struct weft_way_share it = weft_way_share_at(&point->shares, k);
        if (it.share > 0) weft_rows_real(rows, FIRST_SHARE + k, it.share);
    }
}

void weft_sweep_put_points(const struct weft_sweep *sweep, struct weft_answer *answer)
{
    struct weft_column columns[N_COLUMNS] = {
        [PLANNER] = {"planner", NULL, 'l', WEFT_FIGURE_WORD, 0},
        [TIMES] = {"times", NULL, 'l', WEFT_FIGURE_WORD, WEFT_COLUMN_CSV | WEFT_COLUMN_QUOTED},
        [LINK] = {"link", NULL, 'l', WEFT_FIGURE_WORD, 0},
        [GAP] = {"gap", NULL, 'r', WEFT_FIGURE_PERMIL, WEFT_COLUMN_JSON}};
    for (int32_t k = 0; k < N_VALUES; k++)
        columns[column_of(k)] =
            (struct weft_column){values[k].name, NULL, 'r', values[k].figure, 0};
    for (int k = 0; k < WEFT_WAY_SHARES; k++) {
        const struct weft_way_share it = weft_way_share_at(&(struct weft_way_shares){0}, k);
        const char *key =
            it.name ? weft_pool_format(&answer->pool, "shares.%s.%s", it.group, it.name) : NULL;
        columns[FIRST_SHARE + k] =
            (struct weft_column){key, NULL, 'r', WEFT_FIGURE_PERCENT, WEFT_COLUMN_JSON};
    }
    struct weft_rows *rows = weft_answer_table(answer, "curves", columns, N_COLUMNS);
    if (rows == NULL) return;
    rows->is_flat = true;
    rows->points = "points";
    for (int32_t c = 0; c < sweep->n_curves; c++)
        for (int32_t i = 0; i < sweep->curves[c].n_points; i++)
            add_point(sweep, c, &sweep->curves[c].points[i], rows);
}

void weft_sweep_add_data(const struct weft_sweep *sweep, int32_t curve,
                         const struct weft_sweep_point *point, const char *name,
                         struct weft_text *out)
{
    weft_text_add(out, " data-planner=\"");
    weft_svg_add_escaped(out, sweep->curves[curve].planner);
    weft_text_add(out, "\"");
    for (int32_t k = 0; k < N_VALUES; k++) {
        int64_t value;
        if (k >= N_LIMITS && strcmp(values[k].name, name) != 0) continue;
        if (!find_value(sweep, point, k, &value)) continue;
        weft_text_add(out, " data-");
        for (const char *at = values[k].name; *at != '\0'; at++)
            weft_text_append(out, *at == '_' ? "-" : at, 1);
        weft_text_addf(out, "=\"%lld\"", (long long)value);
    }
}
