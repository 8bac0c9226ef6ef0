/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/study/sweep.h"

void weft_study_add_curve(struct weft_study *study, const char *planner, int32_t n)
{
    struct weft_sweep_curve *curve = &study->curves[study->sweep.n_curves++];
    curve->planner = planner;
    curve->n_points = n;
    study->n_rows += n;
}

enum weft_status weft_study_make_rows(struct weft_study *study, struct weft_error *err)
{
    const size_t n = (size_t)study->n_rows;
    struct weft_study_row *row = weft_pool_array(&study->pool, n, sizeof *row);
    struct weft_sweep_point *point = weft_pool_array(&study->pool, n, sizeof *point);
    if (row == NULL || point == NULL) return weft_fail_memory(err, "a sweep");
    study->rows = row;
    for (int32_t c = 0; c < study->sweep.n_curves; c++) {
        struct weft_sweep_curve *curve = &study->curves[c];
        curve->points = point;
        for (int32_t i = 0; i < curve->n_points; i++, row++, point++) {
            *row =
                (struct weft_study_row){.planner = curve->planner, .point = point, .first = i == 0};
            point->limit_bytes = study->limits[i];
            if (study->sweep.grid) point->host_limit_bytes = study->hosts[c];
            if (!study->sweep.grid && c >= study->n_planners &&
                c < study->n_planners + study->n_rivals)
                row->rival = &study->rivals[c - study->n_planners];
        }
    }
    return WEFT_OK;
}

/* Hashes the options that decide which limits are chosen. */
static struct weft_hash hash_options(const struct weft_study *study)
{
    struct weft_text text;
    char hash[WEFT_HASH_TEXT_BYTES];
    weft_text_init(&text);
    weft_text_addf(&text, "%d %d %d %d", study->n_limits, study->to_all, study->n_hosts,
                   study->hosts_given);
    for (int32_t i = 0; study->to_all && i < study->n_planners; i++)
        weft_text_addf(&text, " %s", study->planners[i]);
    for (int32_t i = 0; study->hosts_given && i < study->n_hosts; i++)
        weft_text_addf(&text, " %lld", (long long)study->hosts[i]);
    weft_hash_show(weft_hash_bytes(weft_text_chars(&text), text.length), hash);
    weft_text_finish(&text);
    return weft_kept_key(&study->kept, "limits %s", hash);
}

enum weft_status weft_study_find_limits(struct weft_study *study, struct weft_error *err)
{
    const struct weft_hash key = hash_options(study);
    const int32_t n = weft_kept_find_numbers(&study->kept, key, WEFT_SWEEP_POINTS, study->limits);
    if (n == study->n_limits) return WEFT_OK;
    WEFT_TRY(weft_study_choose_limits(study, err));
    weft_kept_add_numbers(&study->kept, key, study->n_limits, study->limits);
    return WEFT_OK;
}
