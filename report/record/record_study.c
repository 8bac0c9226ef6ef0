/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "report/record/record.h"
#include "report/study/best.h"

/* Sweeps and combinations, as `weft sweep --json` and `weft best --json` print them. */

static int64_t read_bytes(const struct weft_json_value *object, const char *name)
{
    return weft_record_integer(object, name);
}

static struct weft_sweep_point read_point(const struct weft_json_value *value, bool *emulated)
{
    struct weft_sweep_point point = {
        .limit_bytes = read_bytes(value, "memory_limit_bytes"),
        .policy_limit_bytes = read_bytes(value, "policy_limit_bytes"),
        .host_limit_bytes = read_bytes(value, "host_limit_bytes"),
        .step_ns = weft_record_integer(value, "step_ns"),
        .exposed_ns = weft_record_integer(value, "exposed_ns"),
        .compute_ns = weft_record_integer(value, "compute_ns"),
        .channel_ns = weft_record_integer(value, "channel_ns"),
        .total_bytes = read_bytes(value, "total_bytes"),
        .bound_ns = weft_record_integer(value, "bound_ns"),
        .measured_ns = weft_record_integer(value, "measured_step_ns"),
        .measured_exposed_ns = weft_record_integer(value, "measured_exposed_ns"),
        .measured_bytes = read_bytes(value, "measured_bytes"),
    };
    const char *link = "";
    weft_json_bool(weft_json_member(value, "fits"), &point.fits);
    weft_json_string(weft_json_member(value, "link"), &link);
    *emulated |= strcmp(link, "emulated") == 0;
    return point;
}

static enum weft_status read_curve(const struct weft_json_value *value, struct weft_source *record,
                                   struct weft_sweep_curve *curve, struct weft_error *err)
{
    const struct weft_json_value *points = weft_json_member(value, "points");
    const size_t n = points != NULL ? weft_json_count(points) : 0;
    curve->planner = weft_record_word(record, value, "planner");
    curve->points = weft_pool_array(&record->pool, n, sizeof *curve->points);
    if (curve->points == NULL) return weft_fail_memory(err, "a sweep");
    for (const struct weft_json_value *at = n > 0 ? weft_json_first(points) : NULL; at != NULL;
         at = weft_json_next(at))
        curve->points[curve->n_points++] = read_point(at, &record->sweep->emulated);
    if (n == 0)
        return weft_fail(err, WEFT_E_DATA, "%s: a curve of the sweep has no points", record->path);
    return WEFT_OK;
}

enum weft_status weft_record_read_sweep(const struct weft_json_value *root, const char *path,
                                        struct weft_source *record, struct weft_error *err)
{
    const struct weft_json_value *curves = weft_json_member(root, "curves");
    const size_t n = weft_json_count(curves);
    struct weft_sweep *sweep = weft_pool_array(&record->pool, 1, sizeof *sweep);
    if (sweep == NULL) return weft_fail_memory(err, "a sweep");
    sweep->curves = weft_pool_array(&record->pool, n, sizeof *sweep->curves);
    if (sweep->curves == NULL) return weft_fail_memory(err, "a sweep");
    record->sweep = sweep;
    sweep->config = weft_record_word(record, root, "config");
    sweep->times = weft_record_word(record, root, "times");
    sweep->ranks = weft_record_integer(root, "ranks");
    weft_json_bool(weft_json_member(root, "split"), &sweep->split);
    weft_json_bool(weft_json_member(root, "grid"), &sweep->grid);
    if (weft_json_kind(curves) != WEFT_JSON_ARRAY || n == 0)
        return weft_fail(err, WEFT_E_DATA, "%s: \"curves\" is no list with a curve", path);
    for (const struct weft_json_value *at = weft_json_first(curves); at; at = weft_json_next(at))
        WEFT_TRY(read_curve(at, record, &sweep->curves[sweep->n_curves++], err));
    return WEFT_OK;
}

static struct weft_record_choice read_choice(const struct weft_json_value *value,
                                             struct weft_source *record)
{
    struct weft_record_choice choice = {
        .policy = weft_record_word(record, value, "policy"),
        .recompute = weft_record_word(record, value, "recompute"),
        .offload = weft_record_word(record, value, "offload"),
        .state = weft_record_word(record, value, "state"),
        .choices = weft_record_word(record, value, "choices"),
        .step_ns = weft_record_number(value, "step_ns"),
        .tokens_per_s = weft_record_number(value, "tokens_per_s"),
        .total_bytes = weft_record_number(value, "total_bytes"),
        .bound_ns = weft_record_number(value, "bound_ns"),
        .least_bytes = weft_record_number(value, "least_bytes"),
    };
    weft_json_bool(weft_json_member(value, "fits"), &choice.fits);
    return choice;
}

enum weft_status weft_record_read_best(const struct weft_json_value *root, const char *path,
                                       struct weft_source *record, struct weft_error *err)
{
    const struct weft_json_value *rows = weft_json_member(root, "combinations");
    const struct weft_json_value *joint = weft_json_member(root, "joint");
    const size_t n = weft_json_count(rows);
    struct weft_record_best *best = weft_pool_array(&record->pool, 1, sizeof *best);
    if (best == NULL) return weft_fail_memory(err, "combinations");
    best->choices = weft_pool_array(&record->pool, n + 1 + WEFT_BEST_OTHERS, sizeof *best->choices);
    if (best->choices == NULL) return weft_fail_memory(err, "combinations");
    if (weft_json_kind(rows) != WEFT_JSON_ARRAY)
        return weft_fail(err, WEFT_E_DATA, "%s: \"combinations\" is no list", path);
    best->answer = weft_record_word(record, root, "answer");
    best->config = weft_record_word(record, root, "config");
    best->times = weft_record_word(record, root, "times");
    best->ranks = weft_record_integer(root, "ranks");
    best->limit_bytes = read_bytes(root, "memory_limit_bytes");
    for (const struct weft_json_value *at = weft_json_first(rows); at; at = weft_json_next(at))
        best->choices[best->n_choices++] = read_choice(at, record);
    if (joint != NULL) {
        best->choices[best->n_choices] = read_choice(joint, record);
        best->choices[best->n_choices++].is_joint = true;
    }
    for (int other = 0; other < WEFT_BEST_OTHERS; other++) {
        const struct weft_json_value *row = weft_json_member(root, weft_best_others[other].member);
        if (row == NULL) continue;
        best->choices[best->n_choices] = read_choice(row, record);
        best->choices[best->n_choices].policy = weft_best_others[other].label;
        best->choices[best->n_choices++].is_joint = true;
    }
    record->best = best;
    return WEFT_OK;
}
