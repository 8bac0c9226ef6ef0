/* SPDX-License-Identifier: Apache-2.0 */
#include "report/record/record.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "program/predict.h"

static const int64_t most_bytes = INT64_C(1) << 30;

double weft_record_number(const struct weft_json_value *object, const char *name)
{
    double number = NAN;
    weft_json_number(weft_json_member(object, name), &number);
    return number;
}

int64_t weft_record_integer(const struct weft_json_value *object, const char *name)
{
    int64_t integer = 0;
    weft_json_integer(weft_json_member(object, name), &integer);
    return integer;
}

const char *weft_record_word(struct weft_source *record, const struct weft_json_value *object,
                             const char *name)
{
    const char *word = "";
    weft_json_string(weft_json_member(object, name), &word);
    const char *copy = weft_pool_string(&record->pool, word);
    return copy != NULL ? copy : "";
}

/* The last part of a path, without slashes at its end. */
static const char *name_path(struct weft_source *record, const char *path)
{
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/')
        end--;
    size_t begin = end;
    while (begin > 0 && path[begin - 1] != '/')
        begin--;
    const char *name = weft_pool_format(&record->pool, "%.*s", (int)(end - begin), path + begin);
    return name != NULL ? name : path;
}

static const char *join_path(struct weft_source *record, const char *name)
{
    const char *path = weft_pool_format(&record->pool, "%s/%s", record->path, name);
    return path != NULL ? path : "";
}

static bool has_file(struct weft_source *record, const char *name)
{
    return access(join_path(record, name), F_OK) == 0;
}

static const char *keep_reason(struct weft_source *record, const char *reason)
{
    const char *copy = weft_pool_string(&record->pool, reason);
    return copy != NULL ? copy : "";
}

static enum weft_status parse_plan(struct weft_source *record, const char *path, const char *bytes,
                                   size_t length, struct weft_error *err)
{
    struct weft_plan *plan = NULL;
    WEFT_TRY(weft_plan_parse(bytes, length, path, &plan, err));
    const enum weft_status status = weft_plan_check_claims(plan, path, err);
    if (status == WEFT_OK)
        record->plan = plan;
    else
        weft_plan_destroy(plan);
    return status;
}

static enum weft_status read_plan(struct weft_source *record, const char *path,
                                  struct weft_error *err)
{
    char *bytes = NULL;
    size_t length = 0;
    WEFT_TRY(weft_file_read(path, most_bytes, &bytes, &length, err));
    const enum weft_status status = parse_plan(record, path, bytes, length, err);
    free(bytes);
    return status;
}

/* A document that may be missing or damaged: then *out stays NULL. */
static void read_document(struct weft_source *record, const char *name, struct weft_json **out)
{
    struct weft_error ignored = {0};
    if (weft_json_read(join_path(record, name), out, &ignored) != WEFT_OK) *out = NULL;
}

/* The result, which a run that goes on has not. */
static void read_result(struct weft_source *record)
{
    struct weft_error why = {0};
    if (!has_file(record, "result.json")) return;
    if (weft_json_read(join_path(record, "result.json"), &record->result, &why) == WEFT_OK) return;
    record->result = NULL;
    record->damaged_result = keep_reason(record, why.text);
}

/* Nothing without one, or with one of another version. */
static enum weft_status read_profile(struct weft_source *record, struct weft_error *err)
{
    struct weft_error why = {0};
    char *bytes = NULL;
    size_t length = 0;
    const char *path = join_path(record, "profile.json");
    enum weft_status status = weft_file_read(path, most_bytes, &bytes, &length, &why);
    if (status == WEFT_OK) status = weft_profile_parse(bytes, length, path, &record->profile, &why);
    free(bytes);
    if (status != WEFT_E_SYSTEM) return WEFT_OK;
    return weft_fail_again(err, &why, "%s", why.text);
}

static void read_config_text(struct weft_source *record)
{
    struct weft_error ignored = {0};
    size_t length = 0;
    if (weft_file_read(join_path(record, "config.json"), INT64_C(1) << 24, &record->config_text,
                       &length, &ignored) != WEFT_OK)
        record->config_text = NULL;
}

/* A part of a run may be missing or of another version. The report then says so in its place. */
static enum weft_status forgive_part(struct weft_source *record, enum weft_status status,
                                     const struct weft_error *why, const char **lacks,
                                     struct weft_error *err)
{
    if (status == WEFT_OK) return WEFT_OK;
    if (status == WEFT_E_SYSTEM) return weft_fail_again(err, why, "%s", why->text);
    *lacks = keep_reason(record, why->text);
    return WEFT_OK;
}

static enum weft_status read_trace(struct weft_source *record, const char *trace,
                                   struct weft_error *err)
{
    struct weft_error why = {0};
    if (trace != NULL) return weft_record_read_trace(trace, record, err);
    if (record->kind != WEFT_SOURCE_RUN || !has_file(record, "trace.json")) {
        record->lacks_trace = "it has no trace.json: weft train --report keeps one, and weft "
                              "report takes --trace FILE.json, not compressed and no folder";
        return WEFT_OK;
    }
    const enum weft_status status =
        weft_record_read_trace(join_path(record, "trace.json"), record, &why);
    return forgive_part(record, status, &why, &record->lacks_trace, err);
}

static enum weft_status read_run(struct weft_source *record, const char *trace,
                                 struct weft_error *err)
{
    struct weft_error why = {0};
    enum weft_status status = read_plan(record, join_path(record, "plan.json"), &why);
    WEFT_TRY(forgive_part(record, status, &why, &record->lacks_plan, err));
    why = (struct weft_error){0};
    status = weft_record_read_metrics(join_path(record, "metrics.jsonl"), record, &why);
    WEFT_TRY(forgive_part(record, status, &why, &record->lacks_steps, err));
    read_document(record, "config.json", &record->config);
    read_result(record);
    read_config_text(record);
    if (record->result != NULL)
        WEFT_TRY(weft_record_read_hosts(weft_json_root(record->result), record, err));
    WEFT_TRY(read_profile(record, err));
    return read_trace(record, trace, err);
}

static enum weft_status read_directory(struct weft_source *record, const char *trace,
                                       struct weft_error *err)
{
    const bool has_plan = has_file(record, "plan.json");
    const bool has_metrics = has_file(record, "metrics.jsonl");
    if (!has_plan && !has_metrics)
        return weft_fail(err, WEFT_E_DATA,
                         "%s: this folder has neither plan.json nor metrics.jsonl: give the "
                         "directory of a run (weft train --run DIR) or of weft best -o DIR",
                         record->path);
    if (has_metrics || has_file(record, "weft-run")) return read_run(record, trace, err);
    record->kind = WEFT_SOURCE_PLAN;
    WEFT_TRY(read_plan(record, join_path(record, "plan.json"), err));
    return read_trace(record, trace, err);
}

static enum weft_status read_file(struct weft_source *record, const char *trace,
                                  struct weft_error *err)
{
    char *bytes = NULL;
    size_t length = 0;
    struct weft_json *document = NULL;
    WEFT_TRY(weft_file_read(record->path, most_bytes, &bytes, &length, err));
    enum weft_status status = weft_json_parse(bytes, length, record->path, &document, err);
    const struct weft_json_value *root = status == WEFT_OK ? weft_json_root(document) : NULL;
    if (status == WEFT_OK && weft_json_member(root, "curves") != NULL) {
        record->kind = WEFT_SOURCE_SWEEP;
        status = weft_record_read_sweep(root, record->path, record, err);
    } else if (status == WEFT_OK && weft_json_member(root, "combinations") != NULL) {
        record->kind = WEFT_SOURCE_BEST;
        status = weft_record_read_best(root, record->path, record, err);
    } else if (status == WEFT_OK && weft_json_member(root, "format") != NULL) {
        record->kind = WEFT_SOURCE_PLAN;
        status = parse_plan(record, record->path, bytes, length, err);
        if (status == WEFT_OK) status = read_trace(record, trace, err);
    } else if (status == WEFT_OK) {
        status = weft_fail(err, WEFT_E_DATA,
                           "%s: neither a plan nor a sweep: a report takes the directory of a run, "
                           "a plan (weft plan -o), or what weft sweep --json or weft best --json "
                           "print",
                           record->path);
    }
    weft_json_destroy(document);
    free(bytes);
    return status;
}

enum weft_status weft_source_read(const char *path, const char *trace, struct weft_source *out,
                                  struct weft_error *err)
{
    struct stat about;
    *out = (struct weft_source){.kind = WEFT_SOURCE_RUN, .path = path};
    out->name = name_path(out, path);
    if (stat(path, &about) != 0) {
        const int reason = errno;
        return weft_fail(err, reason == EACCES ? WEFT_E_PERMISSION : WEFT_E_NO_INPUT, "%s: %s",
                         path, strerror(reason));
    }
    return S_ISDIR(about.st_mode) ? read_directory(out, trace, err) : read_file(out, trace, err);
}

void weft_source_finish(struct weft_source *record)
{
    weft_plan_destroy(record->plan);
    weft_json_destroy(record->config);
    weft_json_destroy(record->result);
    weft_profile_destroy(record->profile);
    free(record->config_text);
    weft_pool_finish(&record->pool);
    *record = (struct weft_source){0};
}
