#include <stddef.h>
#include <string.h>

#include "report/study/svg.h"
#include "report/study/sweep.h"

enum known { ALWAYS, OF_PART, OF_GRID, OF_PLAN, OF_BOUND, OF_RUN };

#define AT(member) offsetof(struct weft_sweep_point, member)

/* Columns of a point; the limits come first. */
static const struct column {
    const char *name;
    size_t offset;
    enum known known; /* the points that have a value */
} columns[] = {
    {"memory_limit_bytes", AT(limit_bytes), ALWAYS},
    {"policy_limit_bytes", AT(policy_limit_bytes), OF_PART},
    {"host_limit_bytes", AT(host_limit_bytes), OF_GRID},
    {"fits", AT(fits), ALWAYS},
    {"step_ns", AT(step_ns), OF_PLAN},
    {"exposed_ns", AT(exposed_ns), OF_PLAN},
    {"compute_ns", AT(compute_ns), OF_PLAN},
    {"channel_ns", AT(channel_ns), OF_PLAN},
    {"total_bytes", AT(total_bytes), OF_PLAN},
    {"bound_ns", AT(bound_ns), OF_BOUND},
    {"measured_step_ns", AT(measured_ns), OF_RUN},
    {"measured_exposed_ns", AT(measured_exposed_ns), OF_RUN},
    {"measured_bytes", AT(measured_bytes), OF_RUN},
};
enum { N_COLUMNS = sizeof columns / sizeof *columns, N_LIMITS = 3 };

/* Finds the value of a point's column; false if it is not known. */
static bool find_value(const struct weft_sweep *sweep, const struct weft_sweep_point *point,
                       const struct column *column, int64_t *value)
{
    bool known = true;
    memcpy(value, (const char *)point + column->offset, sizeof *value);
    if (column->offset == AT(fits)) *value = point->fits;
    if (column->known == OF_PART) known = point->policy_limit_bytes > 0;
    if (column->known == OF_GRID) known = sweep->grid;
    if (column->known == OF_PLAN) known = point->fits;
    if (column->known == OF_RUN) known = point->measured_ns > 0;
    if (column->known != OF_BOUND) return known;
    *value = weft_sweep_bound(sweep, point);
    return *value > 0;
}

static const char *name_link(const struct weft_sweep *sweep)
{
    return sweep->emulated ? "emulated" : "local";
}

void weft_sweep_csv(const struct weft_sweep *sweep, struct weft_text *out)
{
    weft_text_add(out, "planner");
    for (int k = 0; k < N_COLUMNS; k++)
        weft_text_addf(out, ",%s", columns[k].name);
    weft_text_add(out, ",times,link\n");
    for (int32_t c = 0; c < sweep->n_curves; c++) {
        for (int32_t i = 0; i < sweep->curves[c].n_points; i++) {
            const struct weft_sweep_point *point = &sweep->curves[c].points[i];
            weft_text_add(out, sweep->curves[c].planner);
            for (int k = 0; k < N_COLUMNS; k++) {
                int64_t value;
                weft_text_add(out, ",");
                if (find_value(sweep, point, &columns[k], &value))
                    weft_text_addf(out, "%lld", (long long)value);
            }
            weft_text_add(out, ",\"");
            for (const char *at = sweep->times; *at != '\0'; at++)
                weft_text_append(out, *at == '"' ? "\"\"" : at, *at == '"' ? 2 : 1);
            weft_text_addf(out, "\",%s\n", point->measured_ns > 0 ? name_link(sweep) : "");
        }
    }
}

static void put_point(const struct weft_sweep *sweep, const struct weft_sweep_point *point,
                      struct weft_json_writer *writer)
{
    weft_json_begin_object(writer);
    weft_json_flat(writer);
    for (int k = 0; k < N_COLUMNS; k++) {
        int64_t value;
        if (!find_value(sweep, point, &columns[k], &value)) continue;
        if (columns[k].offset == AT(fits))
            weft_json_put_bool(writer, "fits", point->fits);
        else
            weft_json_put_integer(writer, columns[k].name, value);
        if (columns[k].known == OF_BOUND && point->fits)
            weft_json_put_number(writer, "gap", weft_sweep_gap(sweep, point));
    }
    if (point->measured_ns > 0) weft_json_put_string(writer, "link", name_link(sweep));
    if (point->fits) weft_way_shares_json(&point->shares, writer);
    weft_json_end_object(writer);
}

void weft_sweep_json(const struct weft_sweep *sweep, struct weft_json_writer *writer)
{
    weft_json_begin_object(writer);
    weft_json_put_string(writer, "config", sweep->config);
    weft_json_put_integer(writer, "ranks", sweep->ranks);
    weft_json_put_string(writer, "times", sweep->times);
    weft_json_put_bool(writer, "split", sweep->split);
    weft_json_put_bool(writer, "grid", sweep->grid);
    weft_json_key(writer, "curves");
    weft_json_begin_array(writer);
    for (int32_t c = 0; c < sweep->n_curves; c++) {
        weft_json_begin_object(writer);
        weft_json_put_string(writer, "planner", sweep->curves[c].planner);
        weft_json_key(writer, "points");
        weft_json_begin_array(writer);
        for (int32_t i = 0; i < sweep->curves[c].n_points; i++)
            put_point(sweep, &sweep->curves[c].points[i], writer);
        weft_json_end_array(writer);
        weft_json_end_object(writer);
    }
    weft_json_end_array(writer);
    weft_json_end_object(writer);
}

void weft_sweep_add_data(const struct weft_sweep *sweep, int32_t curve,
                         const struct weft_sweep_point *point, const char *name,
                         struct weft_text *out)
{
    weft_text_add(out, " data-planner=\"");
    weft_svg_add_escaped(out, sweep->curves[curve].planner);
    weft_text_add(out, "\"");
    for (int k = 0; k < N_COLUMNS; k++) {
        int64_t value;
        if (k >= N_LIMITS && strcmp(columns[k].name, name) != 0) continue;
        if (!find_value(sweep, point, &columns[k], &value)) continue;
        weft_text_add(out, " data-");
        for (const char *at = columns[k].name; *at != '\0'; at++)
            weft_text_append(out, *at == '_' ? "-" : at, 1);
        weft_text_addf(out, "=\"%lld\"", (long long)value);
    }
}
