/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/units.h"
#include "cli/study/crew.h"
#include "cli/study/sweep.h"

/* The rows while they are planned. */
struct planning {
    struct weft_study *study;
    const char *start;           /* plan file that the next row starts from, or NULL */
    struct weft_hash start_hash; /* of that plan */
    struct weft_crew crew;
};

/* Hashes the row's inputs, except the inputs of all rows. */
static struct weft_hash hash_inputs(void *context, int32_t index)
{
    const struct planning *planning = context;
    const struct weft_study_row *row = &planning->study->rows[index];
    const struct weft_sweep_point *point = row->point;
    char hash[WEFT_HASH_TEXT_BYTES], file[WEFT_HASH_TEXT_BYTES] = "";
    if (row->rival) weft_hash_show(row->rival->hash, file);
    return weft_kept_key(&planning->study->kept, "plan %s%s within %lld, %lld, %lld from %s",
                         row->planner, file, (long long)point->limit_bytes,
                         (long long)point->host_limit_bytes, (long long)point->policy_limit_bytes,
                         planning->start ? weft_hash_show(planning->start_hash, hash) : "none");
}

static int fill_arguments(void *context, int32_t index, struct weft_place *place, const char **argv)
{
    const struct planning *planning = context;
    const struct weft_study *study = planning->study;
    const struct weft_study_row *row = &study->rows[index];
    *place = weft_study_place(study, row->point);
    int n = weft_place_plan(study->cli, place, study->times.path[0] != '\0', argv);
    if (row->rival)
        weft_place_flag(argv, &n, "--rival", row->rival->file);
    else
        weft_place_flag(argv, &n, "--planner", row->planner);
    if (planning->start) weft_place_flag(argv, &n, "--start", planning->start);
    return n;
}

static void name_row(void *context, int32_t index, char out[WEFT_ROW_NAME_BYTES])
{
    const struct weft_study_row *row = &((struct planning *)context)->study->rows[index];
    char bytes[WEFT_UNITS_TEXT_BYTES];
    snprintf(out, WEFT_ROW_NAME_BYTES, "planner %.100s within %s", row->planner,
             weft_units_show_bytes(row->point->limit_bytes, bytes));
}

static bool takes_starts(const struct weft_study_row *row)
{
    return strcmp(row->planner, "ilp") == 0;
}

static enum weft_status read_plan(const struct weft_study *study, struct weft_study_row *row,
                                  const struct weft_text *text, struct weft_error *err)
{
    struct weft_sweep_point *point = row->point;
    struct weft_plan *plan = NULL;
    WEFT_TRY(weft_plan_parse(weft_text_chars(text), text->length, row->planner, &plan, err));
    if (!point->fits || plan->prediction.step_ns < point->step_ns) {
        point->fits = true;
        point->step_ns = plan->prediction.step_ns;
        point->exposed_ns = plan->prediction.exposed_ns;
        point->compute_ns = plan->prediction.compute_ns;
        point->channel_ns = plan->prediction.channel_ns;
        point->total_bytes = plan->prediction.total_bytes;
        /* If the config leaves the period open, other periods may beat this one's bound. */
        point->bound_ns = weft_plan_least_bound_ns(plan);
        point->shares = weft_way_shares_of(plan);
        weft_text_finish(&row->plan);
        if (study->cli->measure || takes_starts(row))
            weft_text_append(&row->plan, weft_text_chars(text), text->length);
    }
    weft_plan_destroy(plan);
    return weft_text_ok(&row->plan) ? WEFT_OK : weft_fail_memory(err, "a plan");
}

/* Fills the row's point. A config is valid here, so WEFT_E_DATA means that the rule does not apply,
 * or that a rival's file is wrong. */
static enum weft_status take_end(void *context, int32_t index, const struct weft_row_end *end,
                                 struct weft_error *err)
{
    const struct weft_study *study = ((struct planning *)context)->study;
    struct weft_study_row *row = &study->rows[index];
    if (end->plan != NULL) return read_plan(study, row, end->plan, err);
    if (end->status == WEFT_E_DATA && row->rival)
        return weft_fail(err, WEFT_E_DATA, "%s", end->reason);
    if (end->status == WEFT_E_DATA && row->first) weft_log(WEFT_LOG_INFO, "sweep: %s", end->reason);
    return WEFT_OK;
}

static enum weft_status plan_from(struct planning *planning, int32_t index,
                                  const struct weft_text *plan, struct weft_error *err)
{
    char path[WEFT_SHARED_PATH_BYTES] = "";
    int fd = -1;
    planning->start_hash = weft_hash_bytes(weft_text_chars(plan), plan->length);
    WEFT_TRY(weft_study_share(plan, "plan", path, &fd, err));
    planning->start = path;
    const enum weft_status status = weft_crew_plan(&planning->crew, &index, 1, err);
    planning->start = NULL;
    close(fd);
    return status;
}

/* Returns the neighbour with the next smaller limit, of the device or in a grid of the host, that
 * has the faster plan; NULL if neither has one. */
static const struct weft_study_row *find_before(const struct weft_study *study, int32_t index)
{
    const struct weft_study_row *row = &study->rows[index], *best = NULL;
    const int32_t n = study->curves[0].n_points; /* equal for all curves of a grid */
    const struct weft_study_row *before[] = {row->first ? NULL : row - 1,
                                             study->sweep.grid && index >= n ? row - n : NULL};
    for (int i = 0; i < 2; i++) {
        if (!before[i] || !before[i]->point->fits) continue;
        if (!best || before[i]->point->step_ns < best->point->step_ns) best = before[i];
    }
    return best;
}

/* A plan that fits some limits fits all larger ones. So a point without a plan as fast as its
 * neighbours' is replanned from theirs, from the least limits up. The order does not depend on
 * `jobs`. */
static enum weft_status plan_again(struct planning *planning, struct weft_error *err)
{
    const struct weft_study *study = planning->study;
    for (int32_t i = 1; i < study->n_rows; i++) {
        struct weft_study_row *row = &study->rows[i];
        const struct weft_study_row *before = takes_starts(row) ? find_before(study, i) : NULL;
        if (!before || (row->point->fits && row->point->step_ns <= before->point->step_ns))
            continue;
        WEFT_TRY(plan_from(planning, i, &before->plan, err));
    }
    return WEFT_OK;
}

static enum weft_status plan_all(struct planning *planning, struct weft_error *err)
{
    const int32_t n = planning->study->n_rows;
    int32_t *rows = calloc((size_t)n + 1, sizeof *rows);
    if (rows == NULL) return weft_fail_memory(err, "a sweep");
    for (int32_t i = 0; i < n; i++)
        rows[i] = i;
    const enum weft_status status = weft_crew_plan(&planning->crew, rows, n, err);
    free(rows);
    return status;
}

enum weft_status weft_study_plan(struct weft_study *study, struct weft_error *err)
{
    struct planning planning = {.study = study};
    planning.crew = (struct weft_crew){.cli = study->cli,
                                       .kept = &study->kept,
                                       .jobs = study->jobs,
                                       .n_rows = study->n_rows,
                                       .study = &planning,
                                       .arguments = fill_arguments,
                                       .key = hash_inputs,
                                       .name = name_row,
                                       .take = take_end};
    weft_crew_begin(&planning.crew);
    enum weft_status status = plan_all(&planning, err);
    if (status == WEFT_OK) status = plan_again(&planning, err);
    return weft_crew_end(&planning.crew, status, err);
}
