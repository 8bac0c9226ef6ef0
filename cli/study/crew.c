/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/study/crew.h"

#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/log.h"
#include "base/machine/cores.h"

enum weft_status weft_crew_read_jobs(const char *text, int32_t *jobs, struct weft_error *err)
{
    const int32_t cores = weft_cores();
    *jobs = cores < WEFT_CHILDREN_MOST ? cores : WEFT_CHILDREN_MOST;
    return weft_flag_number("--jobs", text, WEFT_CHILDREN_MOST, jobs, err);
}

/* Reads the error of a child, a document of weft_answer_error. Text of another kind stays the
 * reason. */
static void read_error(const struct weft_json *document, struct weft_row_end *end)
{
    const struct weft_json_value *error = weft_json_member(weft_json_root(document), "error");
    const struct weft_json_value *lacks = weft_json_member(error, "lacks");
    const char *name;
    (void)weft_json_string(weft_json_member(error, "text"), &end->reason);
    (void)weft_json_integer(weft_json_member(error, "needs_bytes"), &end->needs_bytes);
    for (int i = 1; weft_json_string(lacks, &name) && i < WEFT_LACK_COUNT; i++)
        if (strcmp(name, weft_lack_name((enum weft_lack)i)) == 0) end->lacks = (enum weft_lack)i;
}

static enum weft_status tell_end(struct weft_crew *crew, int32_t row, int exit_code,
                                 const struct weft_row_end *end, struct weft_error *err)
{
    char name[WEFT_ROW_NAME_BYTES];
    if (exit_code == 0 || end->status == WEFT_E_DATA || end->status == WEFT_E_INFEASIBLE)
        return crew->take(crew->study, row, end, err);
    crew->name(crew->study, row, name);
    if (exit_code > 128)
        return weft_fail(err, WEFT_E_INTERNAL, "%s: its process ended by signal %d", name,
                         exit_code - 128);
    return weft_fail(err, end->status, "%s: %s", name, end->reason);
}

/* Tells the study the end of a row. `said` is the plan, or the error as JSON; `reason` is the
 * error if it is neither. */
static enum weft_status end_row(struct weft_crew *crew, int32_t row, int exit_code,
                                struct weft_text *said, const char *reason, struct weft_error *err)
{
    struct weft_row_end end = {.status = weft_status_of_exit_code(exit_code), .reason = reason};
    struct weft_error ignored = {0};
    struct weft_json *document = NULL;
    if (!weft_text_ok(said)) return weft_fail_memory(err, "a plan");
    if (exit_code == 0)
        end.plan = said;
    else if (weft_json_parse(weft_text_chars(said), said->length, "error", &document, &ignored) ==
             WEFT_OK)
        read_error(document, &end);
    const enum weft_status status = tell_end(crew, row, exit_code, &end, err);
    weft_json_destroy(document);
    return status;
}

/* Takes a row from the kept results. */
static enum weft_status take_kept(struct weft_crew *crew, int32_t row, bool *found,
                                  struct weft_error *err)
{
    struct weft_text text;
    int code = 0;
    weft_text_init(&text);
    *found = weft_kept_find(crew->kept, crew->key(crew->study, row), &code, &text);
    enum weft_status status = WEFT_OK;
    if (*found) status = end_row(crew, row, code, &text, "", err);
    weft_text_finish(&text);
    return status;
}

/* Keeps the plan, or the fact that there is none. Other ends may differ the next time. */
static void keep_row(struct weft_crew *crew, int32_t row, const struct weft_child *child)
{
    const enum weft_status status = weft_status_of_exit_code(child->exit_code);
    if (child->exit_code == 0 || status == WEFT_E_DATA || status == WEFT_E_INFEASIBLE)
        weft_kept_add(crew->kept, crew->key(crew->study, row), child->exit_code, &child->said);
}

static enum weft_status start_row(struct weft_crew *crew, int32_t child, int32_t row,
                                  struct weft_error *err)
{
    const char *argv[WEFT_PLACE_ARGUMENTS] = {NULL};
    struct weft_place place = {0};
    (void)crew->arguments(crew->study, row, &place, argv);
    crew->rows[child] = row;
    return weft_child_start(&crew->children[child], argv, err);
}

static enum weft_status take_row(struct weft_crew *crew, struct weft_error *err)
{
    int32_t ended;
    WEFT_TRY(weft_children_wait(crew->children, crew->jobs, &ended, crew->cli->watch, err));
    struct weft_child *child = &crew->children[ended];
    const int32_t row = crew->rows[ended];
    crew->n_done++;
    const enum weft_status status =
        end_row(crew, row, child->exit_code, &child->said, weft_child_error(child), err);
    /* A plan that the study cannot read is not kept. */
    if (status == WEFT_OK) keep_row(crew, row, child);
    weft_child_finish(child);
    return status;
}

/* Takes kept rows, and lists the others in `open`. */
static enum weft_status find_open(struct weft_crew *crew, const int32_t *rows, int32_t n,
                                  int32_t *open, int32_t *n_open, struct weft_error *err)
{
    for (int32_t i = 0; i < n; i++) {
        bool found;
        WEFT_TRY(take_kept(crew, rows[i], &found, err));
        crew->n_done += found;
        if (!found) open[(*n_open)++] = rows[i];
    }
    if (*n_open < n && n > 1)
        weft_log(WEFT_LOG_INFO, "%s: %d of %d plans were made before it was stopped",
                 crew->cli->verb, n - *n_open, n);
    return WEFT_OK;
}

static enum weft_status plan_open(struct weft_crew *crew, const int32_t *open, int32_t n,
                                  struct weft_error *err)
{
    for (int32_t begun = 0, ended = 0; ended < n; ended++) {
        weft_watch_count(crew->cli->watch, "plan", crew->n_done, crew->n_rows);
        for (int32_t c = 0; c < crew->jobs && begun < n; c++)
            if (crew->children[c].pid == 0) WEFT_TRY(start_row(crew, c, open[begun++], err));
        WEFT_TRY(take_row(crew, err));
    }
    return WEFT_OK;
}

void weft_crew_begin(struct weft_crew *crew)
{
    weft_children_begin();
    weft_watch_begin(crew->cli->watch, crew->cli->verb);
}

enum weft_status weft_crew_end(struct weft_crew *crew, enum weft_status status,
                               struct weft_error *err)
{
    for (int32_t c = 0; c < crew->jobs; c++)
        weft_child_finish(&crew->children[c]);
    status = weft_children_end(status, err);
    weft_watch_end(crew->cli->watch);
    return status;
}

enum weft_status weft_crew_plan(struct weft_crew *crew, const int32_t *rows, int32_t n,
                                struct weft_error *err)
{
    int32_t *open = calloc((size_t)n + 1, sizeof *open), n_open = 0;
    if (open == NULL) return weft_fail_memory(err, "a study");
    enum weft_status status = find_open(crew, rows, n, open, &n_open, err);
    if (status == WEFT_OK) status = plan_open(crew, open, n_open, err);
    free(open);
    return status;
}
