#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/units.h"
#include "cli/process/children.h"
#include "cli/study/sweep.h"

/* The rows while they are planned. */
struct planning {
    struct weft_study *study;
    const char *start;           /* plan file that the next child starts from, or NULL */
    struct weft_hash start_hash; /* of that plan; "": none */
    int32_t n_done;
    struct weft_child children[WEFT_CHILDREN_MOST];
    struct weft_study_row *rows[WEFT_CHILDREN_MOST]; /* row of each child */
};

/* Hashes the row's inputs, except the inputs of all rows. */
static struct weft_hash hash_inputs(const struct planning *planning,
                                    const struct weft_study_row *row)
{
    const struct weft_sweep_point *point = row->point;
    char hash[WEFT_HASH_TEXT_BYTES];
    return weft_kept_key(&planning->study->kept, "plan %s within %lld, %lld, %lld from %s",
                         row->planner, (long long)point->limit_bytes,
                         (long long)point->host_limit_bytes, (long long)point->policy_limit_bytes,
                         planning->start ? weft_hash_show(planning->start_hash, hash) : "none");
}

static enum weft_status start_child(struct planning *planning, int32_t child,
                                    struct weft_study_row *row, struct weft_error *err)
{
    const struct weft_study *study = planning->study;
    const char *argv[WEFT_PLACE_ARGUMENTS] = {NULL};
    struct weft_place place = weft_study_place(study, row->point);
    int n = weft_place_plan(study->cli, &place, study->profile[0] != '\0', argv);
    weft_place_flag(argv, &n, "--planner", row->planner);
    if (planning->start) weft_place_flag(argv, &n, "--start", planning->start);
    WEFT_TRY(weft_child_start(&planning->children[child], argv, err));
    planning->rows[child] = row;
    row->begun = true;
    return WEFT_OK;
}

static bool takes_starts(const struct weft_study_row *row)
{
    return strcmp(row->planner, "ilp") == 0;
}

static enum weft_status read_plan(const struct weft_study *study, struct weft_study_row *row,
                                  struct weft_text *text, struct weft_error *err)
{
    struct weft_sweep_point *point = row->point;
    struct weft_plan *plan = NULL;
    if (!weft_text_ok(text)) return weft_fail_memory(err, "a plan");
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
        if (study->cli->measure || takes_starts(row)) {
            row->plan = *text;
            *text = (struct weft_text){0};
        }
    }
    weft_plan_destroy(plan);
    return WEFT_OK;
}

/* Fills the row's point from the child's output, and finishes the child. */
static enum weft_status judge_child(const struct weft_study *study, struct weft_study_row *row,
                                    struct weft_child *child, struct weft_error *err)
{
    char bytes[WEFT_UNITS_TEXT_BYTES];
    enum weft_status status = weft_status_of_exit_code(child->exit_code);
    weft_units_show_bytes(row->point->limit_bytes, bytes);
    if (child->exit_code == 0) {
        status = read_plan(study, row, &child->said, err);
    } else if (status == WEFT_E_DATA) { /* the config is valid, so the rule does not apply */
        if (row->first) weft_log(WEFT_LOG_INFO, "sweep: %s", weft_child_error(child));
        status = WEFT_OK;
    } else if (status == WEFT_E_INFEASIBLE) {
        status = WEFT_OK;
    } else if (child->exit_code > 128) {
        status =
            weft_fail(err, WEFT_E_INTERNAL, "planner %s within %s: its process ended by signal %d",
                      row->planner, bytes, child->exit_code - 128);
    } else {
        status = weft_fail(err, status, "planner %s within %s: %s", row->planner, bytes,
                           weft_child_error(child));
    }
    weft_child_finish(child);
    return status;
}

/* Waits for a child, keeps its plan, or the fact that there is none, and judges it. Other exit
 * codes may differ the next time. */
static enum weft_status take_child(struct planning *planning, int32_t jobs, struct weft_error *err)
{
    struct weft_study *study = planning->study;
    int32_t ended;
    WEFT_TRY(weft_children_wait(planning->children, jobs, &ended, study->cli->watch, err));
    struct weft_child *child = &planning->children[ended];
    struct weft_study_row *row = planning->rows[ended];
    const enum weft_status status = weft_status_of_exit_code(child->exit_code);
    if (child->exit_code == 0 || status == WEFT_E_DATA || status == WEFT_E_INFEASIBLE)
        weft_kept_add(&study->kept, hash_inputs(planning, row), child->exit_code,
                      child->exit_code == 0 ? &child->said : &child->noted);
    return judge_child(study, row, child, err);
}

/* *found: an earlier, stopped sweep planned the row. */
static enum weft_status take_kept(const struct planning *planning, struct weft_study_row *row,
                                  bool *found, struct weft_error *err)
{
    struct weft_child child = {0};
    struct weft_text text;
    weft_text_init(&text);
    *found =
        weft_kept_find(&planning->study->kept, hash_inputs(planning, row), &child.exit_code, &text);
    if (!*found) return WEFT_OK;
    *(child.exit_code == 0 ? &child.said : &child.noted) = text;
    row->begun = true;
    return judge_child(planning->study, row, &child, err);
}

static enum weft_status plan_all(struct planning *planning, struct weft_error *err)
{
    const struct weft_study *study = planning->study;
    int32_t next = 0;
    for (int32_t i = 0; i < study->n_rows; i++) {
        bool found;
        WEFT_TRY(take_kept(planning, &study->rows[i], &found, err));
        planning->n_done += found;
    }
    if (planning->n_done > 0)
        weft_log(WEFT_LOG_INFO, "sweep: %d of %d plans were made before it was stopped",
                 planning->n_done, study->n_rows);
    weft_watch_begin(study->cli->watch, "sweep");
    weft_watch_count(study->cli->watch, "plan", planning->n_done, study->n_rows);
    while (planning->n_done < study->n_rows) {
        for (int32_t c = 0; c < study->jobs; c++) {
            while (next < study->n_rows && study->rows[next].begun)
                next++;
            if (planning->children[c].pid == 0 && next < study->n_rows)
                WEFT_TRY(start_child(planning, c, &study->rows[next], err));
        }
        WEFT_TRY(take_child(planning, study->jobs, err));
        weft_watch_count(study->cli->watch, "plan", ++planning->n_done, study->n_rows);
    }
    return WEFT_OK;
}

static enum weft_status plan_from(struct planning *planning, struct weft_study_row *row,
                                  const struct weft_text *plan, struct weft_error *err)
{
    char path[WEFT_SHARED_PATH_BYTES] = "";
    int fd = -1;
    bool found;
    planning->start = path;
    planning->start_hash = weft_hash_bytes(weft_text_chars(plan), plan->length);
    enum weft_status status = take_kept(planning, row, &found, err);
    if (status == WEFT_OK && !found) {
        status = weft_study_share(plan, "plan", path, &fd, err);
        if (status == WEFT_OK) status = start_child(planning, 0, row, err);
        if (status == WEFT_OK) status = take_child(planning, 1, err);
        if (fd >= 0) close(fd);
    }
    planning->start = NULL;
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
        WEFT_TRY(plan_from(planning, row, &before->plan, err));
    }
    return WEFT_OK;
}

enum weft_status weft_study_plan(struct weft_study *study, struct weft_error *err)
{
    struct planning planning = {.study = study};
    weft_children_begin();
    enum weft_status status = plan_all(&planning, err);
    if (status == WEFT_OK) status = plan_again(&planning, err);
    for (int32_t c = 0; c < study->jobs; c++)
        weft_child_finish(&planning.children[c]);
    status = weft_children_end(status, err);
    weft_watch_end(study->cli->watch);
    return status;
}
