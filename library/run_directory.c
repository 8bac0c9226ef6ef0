/* SPDX-License-Identifier: Apache-2.0 */
#include "library/run_directory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json/json.h"
#include "base/log.h"
#include "library/hub/source.h"
#include "library/run_mark.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/directory.h"
#include "runtime/checkpoint/origin.h"
#include "spec/config_batch.h"

static const char if_any[] = "if-any";

static bool names_checkpoint(const char *resume)
{
    return resume != NULL && strchr(resume, '/') != NULL;
}

static enum weft_status check_request(const struct weft_run_request *request,
                                      struct weft_error *err)
{
    const char *resume = request->resume;
    if (resume != NULL && *resume != '\0' && strcmp(resume, if_any) != 0 &&
        !names_checkpoint(resume))
        return weft_fail(err, WEFT_E_USAGE,
                         "--resume=%s: give --resume to go on with the latest checkpoint of --run "
                         "DIR, --resume=if-any to begin anew when it has none, or "
                         "--resume=RUN/checkpoints/step-N to begin with that one",
                         resume);
    if (resume != NULL && request->from != NULL && strcmp(resume, if_any) != 0)
        return weft_fail(err, WEFT_E_USAGE,
                         "--from %s: begins a run, and --resume%s%s goes on with one: give one of "
                         "them, or --resume=if-any to begin with --from until --run DIR has a "
                         "checkpoint",
                         request->from, *resume == '\0' ? "" : "=", resume);
    if (resume != NULL && !names_checkpoint(resume) && request->directory == NULL)
        return weft_fail(err, WEFT_E_USAGE, "--resume: say of which run with --run DIR");
    if (request->directory != NULL && strlen(request->directory) >= WEFT_RUN_PATH_BYTES - 32)
        return weft_fail(err, WEFT_E_USAGE, "%.60s...: the path of the run's directory is too long",
                         request->directory);
    return WEFT_OK;
}

static bool same_file(const char *a, const char *b)
{
    struct stat of_a, of_b;
    return stat(a, &of_a) == 0 && stat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
           of_a.st_ino == of_b.st_ino;
}

/* A run must resume its latest checkpoint: later ones would have another past. A checkpoint of
 * another run may be named: this run began with it. */
static enum weft_status check_named(const char *named, const char *latest, const char *checkpoints,
                                    struct weft_error *err)
{
    char parent[WEFT_RUN_PATH_BYTES + 32];
    int length = snprintf(parent, sizeof parent, "%s/..", named);
    if (length < 0 || (size_t)length >= sizeof parent || !same_file(parent, checkpoints) ||
        same_file(named, latest))
        return WEFT_OK;
    return weft_fail(err, WEFT_E_CREATE,
                     "--resume=%s: this run has saved %s since: go on with --resume, give another "
                     "directory with --run, or move the later checkpoints away",
                     named, latest);
}

static enum weft_status name_file(const struct weft_run_directory *directory, const char *name,
                                  struct weft_text *out, struct weft_error *err)
{
    weft_text_init(out);
    weft_text_addf(out, "%s/%s", directory->path, name);
    return weft_text_ok(out) ? WEFT_OK : weft_fail_memory(err, "a path");
}

static bool has_bytes(const struct weft_run_directory *directory, const char *name)
{
    struct weft_text path;
    struct stat about;
    bool has = name_file(directory, name, &path, NULL) == WEFT_OK &&
               stat(weft_text_chars(&path), &about) == 0 && about.st_size > 0;
    weft_text_finish(&path);
    return has;
}

/* Unsaved steps belong to a run too: only their metrics are left. */
static bool has_trained(const struct weft_run_directory *directory)
{
    return has_bytes(directory, "metrics.jsonl") || has_bytes(directory, "result.json");
}

/* Reads `stopped` and `steps_done` of a result. */
static enum weft_status read_result(const char *path, bool *stopped, int64_t *steps,
                                    struct weft_error *err)
{
    struct weft_json *document = NULL;
    WEFT_TRY(weft_json_read(path, &document, err));
    const struct weft_json_value *root = weft_json_root(document);
    const bool whole = weft_json_bool(weft_json_member(root, "stopped"), stopped) &&
                       weft_json_integer(weft_json_member(root, "steps_done"), steps);
    weft_json_destroy(document);
    return whole ? WEFT_OK
                 : weft_fail(err, WEFT_E_DATA, "%s: lacks \"stopped\" or \"steps_done\"", path);
}

/* Steps of a run that ended without a stop; -1: no result. A damaged result is an error. */
static enum weft_status find_steps(const struct weft_run_directory *directory, int64_t *out,
                                   struct weft_error *err)
{
    struct weft_text path;
    struct weft_error why = {0};
    int64_t steps = -1;
    bool stopped = true;
    *out = -1;
    if (!has_bytes(directory, "result.json"))
        return WEFT_OK; /* opening a pipe would wait for a writer */
    enum weft_status status = name_file(directory, "result.json", &path, &why);
    if (status == WEFT_OK) status = read_result(weft_text_chars(&path), &stopped, &steps, &why);
    weft_text_finish(&path);
    if (status != WEFT_OK)
        return weft_fail_again(err, &why,
                               "%s. The file tells whether all steps are done: move it away, and "
                               "steps without a checkpoint are trained again",
                               why.text);
    *out = stopped ? -1 : steps;
    return WEFT_OK;
}

/* Fails if a run that has begun holds the lock. */
static enum weft_status check_lock(const char *path, struct weft_error *err)
{
    struct weft_text holder;
    enum weft_status status = WEFT_OK;
    weft_text_init(&holder);
    if (weft_checkpoint_is_locked(path, &holder))
        status = weft_fail(err, WEFT_E_CREATE,
                           "%s: another run is writing to this directory%s: give another with "
                           "--run",
                           path, weft_text_chars(&holder));
    weft_text_finish(&holder);
    return status;
}

/* Checks a request that does not resume. */
static enum weft_status check_begin(const struct weft_run_directory *directory, const char *latest,
                                    struct weft_error *err)
{
    if (latest != NULL)
        return weft_fail(err, WEFT_E_CREATE,
                         "%s: this run has checkpoints already: go on with --resume, or give "
                         "another directory with --run",
                         latest);
    if (!has_trained(directory)) return WEFT_OK;
    WEFT_TRY(check_lock(directory->path, err));
    int64_t steps;
    WEFT_TRY(find_steps(directory, &steps, err));
    return weft_fail(err, WEFT_E_CREATE,
                     "%s: a run has trained here and saved nothing: give another directory "
                     "with --run%s",
                     directory->path,
                     steps >= 0 ? ""
                                : ", or begin anew with --resume=if-any, which keeps its metrics "
                                  "under another name");
}

/* The parameters of a run that has ended without a checkpoint are gone. */
static enum weft_status check_ended(const struct weft_run_directory *directory,
                                    struct weft_error *err)
{
    int64_t steps;
    WEFT_TRY(find_steps(directory, &steps, err));
    if (steps < 0) return WEFT_OK;
    return weft_fail(err, WEFT_E_CREATE,
                     "%s: all %lld steps of a run were done before, and no checkpoint has their "
                     "parameters: give another directory",
                     directory->path, (long long)steps);
}

/* Takes the checkpoint in memory if it is newer than *latest. */
static enum weft_status take_kept(const struct weft_vault *kept, char **latest,
                                  struct weft_error *err)
{
    char *path = NULL;
    int64_t step = -1, of_disk = -1;
    WEFT_TRY(weft_vault_latest(kept, &step, &path, err));
    if (*latest != NULL) weft_checkpoint_step_of(*latest, &of_disk);
    if (step <= of_disk) {
        free(path);
        return WEFT_OK;
    }
    free(*latest);
    *latest = path;
    return WEFT_OK;
}

/* The directory's own latest checkpoint comes first, so that the same command resumes after every
 * interruption. */
static enum weft_status choose_checkpoint(const struct weft_run_request *request,
                                          struct weft_run_directory *directory,
                                          struct weft_error *err)
{
    const char *resume = request->resume;
    char *latest = NULL;
    enum weft_status status = weft_checkpoint_latest(directory->checkpoints, &latest, err);
    if (status == WEFT_OK && request->kept != NULL && resume != NULL)
        status = take_kept(request->kept, &latest, err);
    directory->own = latest != NULL;
    if (status == WEFT_OK && resume == NULL) status = check_begin(directory, latest, err);
    if (status == WEFT_OK && latest == NULL && request->needs_parameters)
        status = check_ended(directory, err);
    if (status == WEFT_OK && latest != NULL && names_checkpoint(resume))
        status = check_named(resume, latest, directory->checkpoints, err);
    if (status == WEFT_OK && latest == NULL && resume != NULL && *resume == '\0')
        status = weft_fail(err, WEFT_E_NO_INPUT,
                           "%s: there is no checkpoint to go on from: see that --run is right, or "
                           "begin anew without --resume (--resume=if-any does either)",
                           directory->checkpoints);
    if (status == WEFT_OK && latest == NULL && names_checkpoint(resume)) {
        latest = strdup(resume);
        if (latest == NULL) status = weft_fail_memory(err, "a path");
    }
    if (status == WEFT_OK)
        directory->resume = latest;
    else
        free(latest);
    return status;
}

/* A resumed run has its parameters already. Its origin is not examined, and may be gone. */
static enum weft_status find_origin(const struct weft_run_request *request,
                                    struct weft_run_directory *out, struct weft_error *err)
{
    if (request->from == NULL || out->resume != NULL) return WEFT_OK;
    return weft_origin_find(request->from, out->from, err);
}

static void name_checkpoints(struct weft_run_directory *directory)
{
    snprintf(directory->checkpoints, sizeof directory->checkpoints, "%s/checkpoints",
             directory->path);
}

/* *split may be NULL. */
static enum weft_status check_resume(const char *path, const struct weft_config *config,
                                     int64_t *step, struct weft_manifest_split *split,
                                     struct weft_error *err)
{
    struct weft_layout *layout = NULL;
    struct weft_checkpoint *checkpoint = NULL;
    if (path == NULL) return WEFT_OK;
    enum weft_status status =
        weft_layout_create(config->model, weft_config_states(config), weft_config_nodes(config),
                           WEFT_CHECKPOINT_CHUNK_BYTES, &layout, err);
    if (status == WEFT_OK) status = weft_checkpoint_open(path, &checkpoint, err);
    if (status == WEFT_OK) status = weft_checkpoint_matches(checkpoint, layout, err);
    if (status == WEFT_OK) *step = checkpoint->manifest->progress.step;
    if (status == WEFT_OK && *step > config->train.steps)
        status = weft_fail(err, WEFT_E_DATA,
                           "%s: is after train.steps, which is %lld: set it to the last step of "
                           "all, those that are done included",
                           path, (long long)config->train.steps);
    if (status == WEFT_OK && split != NULL) *split = checkpoint->manifest->split;
    weft_checkpoint_close(checkpoint);
    weft_layout_destroy(layout);
    return status;
}

static enum weft_status check_origin(const char *path, const struct weft_config *config,
                                     struct weft_error *err)
{
    struct weft_origin_file *file = NULL;
    if (path[0] == '\0') return WEFT_OK;
    WEFT_TRY(weft_origin_open(path, config->model, &file, err));
    weft_origin_close(file);
    return WEFT_OK;
}

/* No step is left if the last one is done, and saved if train.checkpoint.at_end. */
static enum weft_status check_finished(const struct weft_run_directory *directory,
                                       const struct weft_train *train, int64_t saved_step,
                                       bool *finished, struct weft_error *err)
{
    const bool other = directory->resume != NULL && !directory->own;
    const bool saved = directory->own && saved_step == train->steps;
    int64_t steps;
    *finished = false;
    if (other || (!saved && train->checkpoint.at_end)) return WEFT_OK;
    WEFT_TRY(find_steps(directory, &steps, err));
    *finished = steps == train->steps;
    return WEFT_OK;
}

/* Touches no file. *marked: a run has begun there. */
static enum weft_status look_at_directory(const struct weft_run_request *request,
                                          struct weft_run_directory *directory, bool *marked,
                                          struct weft_error *err)
{
    WEFT_TRY(weft_run_mark_look(directory->path, marked, err));
    free(directory->resume);
    directory->resume = NULL;
    return choose_checkpoint(request, directory, err);
}

static enum weft_status look_and_check(const struct weft_run_request *request,
                                       const struct weft_config *config,
                                       struct weft_run_directory *directory, bool *finished,
                                       struct weft_manifest_split *split, struct weft_error *err)
{
    bool marked = false;
    int64_t step = 0;
    if (request->directory != NULL) {
        snprintf(directory->path, sizeof directory->path, "%s", request->directory);
        name_checkpoints(directory);
        WEFT_TRY(look_at_directory(request, directory, &marked, err));
    } else if (request->resume != NULL) {
        directory->resume = strdup(request->resume);
        if (directory->resume == NULL) return weft_fail_memory(err, "a path");
    }
    WEFT_TRY(check_resume(directory->resume, config, &step, split, err));
    *finished = false;
    if (marked && request->resume != NULL)
        WEFT_TRY(check_finished(directory, &config->train, step, finished, err));
    if (*finished) return WEFT_OK;
    WEFT_TRY(find_origin(request, directory, err));
    WEFT_TRY(check_origin(directory->from, config, err));
    return WEFT_OK;
}

enum weft_status weft_run_directory_check(const struct weft_run_request *request,
                                          const struct weft_config *config, bool *finished,
                                          struct weft_manifest_split *split, struct weft_error *err)
{
    struct weft_run_directory directory = {.lock_fd = -1};
    if (split != NULL) *split = (struct weft_manifest_split){0};
    WEFT_TRY(check_request(request, err));
    enum weft_status status = look_and_check(request, config, &directory, finished, split, err);
    weft_run_directory_close(&directory);
    return status;
}

static enum weft_status make_new(const char *config_path, struct weft_run_directory *out,
                                 struct weft_error *err)
{
    const char *slash = strrchr(config_path, '/');
    const char *name = slash ? slash + 1 : config_path;
    size_t length = strcspn(name, ".");
    if (length == 0 || length > 200) name = "run", length = 3;
    WEFT_TRY(weft_file_make_directory("runs", err));
    for (int i = 1; i < 100000; i++) {
        snprintf(out->path, sizeof out->path, "runs/%.*s-%03d", (int)length, name, i);
        if (mkdir(out->path, 0777) == 0) return WEFT_OK;
        if (errno != EEXIST)
            return weft_fail(err, WEFT_E_CREATE, "%s: cannot be created: %s", out->path,
                             strerror(errno));
    }
    return weft_fail(err, WEFT_E_CREATE, "runs/ has no free name for this run; give --run DIR");
}

/* "metrics.jsonl" becomes "metrics.N.jsonl" with the first free N. */
static enum weft_status set_aside(const struct weft_run_directory *directory, const char *stem,
                                  const char *ending, struct weft_error *err)
{
    char from[WEFT_RUN_PATH_BYTES + 32], to[WEFT_RUN_PATH_BYTES + 48];
    struct stat about;
    int number = 0;
    snprintf(from, sizeof from, "%s/%s%s", directory->path, stem, ending);
    if (stat(from, &about) != 0 || about.st_size == 0) return WEFT_OK;
    do {
        snprintf(to, sizeof to, "%s/%s.%d%s", directory->path, stem, ++number, ending);
    } while (lstat(to, &about) == 0);
    if (rename(from, to) != 0)
        return weft_fail(err, WEFT_E_CREATE, "%s: cannot be kept as %s: %s", from, to,
                         strerror(errno));
    weft_log(WEFT_LOG_INFO, "%s: of an earlier run that saved nothing, is kept as %s", from, to);
    return WEFT_OK;
}

static enum weft_status keep_earlier(const struct weft_run_directory *directory,
                                     struct weft_error *err)
{
    WEFT_TRY(set_aside(directory, "metrics", ".jsonl", err));
    return set_aside(directory, "result", ".json", err);
}

enum weft_status weft_run_directory_open(const struct weft_run_request *request,
                                         const struct weft_config *config,
                                         struct weft_run_directory *out, struct weft_error *err)
{
    bool marked = false;
    int64_t step = 0;
    *out = (struct weft_run_directory){.lock_fd = -1};
    WEFT_TRY(check_request(request, err));
    if (request->directory != NULL) {
        snprintf(out->path, sizeof out->path, "%s", request->directory);
        name_checkpoints(out);
        WEFT_TRY(look_at_directory(request, out, &marked, err)); /* before it leaves a lock there */
        WEFT_TRY(weft_file_make_directory(out->path, err));
    } else {
        WEFT_TRY(make_new(request->config, out, err));
        name_checkpoints(out);
    }
    WEFT_TRY(weft_checkpoint_lock(out->path, &out->lock_fd, err));
    /* Another run may have ended while this one planned or waited for the lock. */
    WEFT_TRY(look_at_directory(request, out, &marked, err));
    WEFT_TRY(check_resume(out->resume, config, &step, NULL, err));
    if (marked && request->resume != NULL)
        WEFT_TRY(check_finished(out, &config->train, step, &out->finished, err));
    if (out->finished) return WEFT_OK;
    if (marked) weft_file_clear(out->path);
    WEFT_TRY(weft_run_mark_write(out->path, err));
    WEFT_TRY(find_origin(request, out, err));
    return out->own ? WEFT_OK : keep_earlier(out, err);
}

enum weft_status weft_run_directory_write(const struct weft_run_directory *directory,
                                          const char *name, const struct weft_text *text,
                                          struct weft_error *err)
{
    char path[WEFT_RUN_PATH_BYTES + 32];
    snprintf(path, sizeof path, "%s/%s", directory->path, name);
    if (!weft_text_ok(text)) return weft_fail_memory(err, path);
    return weft_file_write(path, weft_text_chars(text), text->length, err);
}

enum weft_status weft_run_directory_record(const struct weft_run_directory *directory,
                                           const struct weft_session *session,
                                           struct weft_error *err)
{
    struct weft_text text;
    weft_text_init(&text);
    weft_config_write(session->config, &text);
    enum weft_status status = weft_run_directory_write(directory, "config.json", &text, err);
    weft_text_finish(&text);
    weft_text_init(&text);
    weft_plan_write(session->plan, &text);
    if (status == WEFT_OK) status = weft_run_directory_write(directory, "plan.json", &text, err);
    weft_text_finish(&text);
    weft_text_init(&text);
    weft_profile_write(session->profile, &text);
    if (status == WEFT_OK) status = weft_run_directory_write(directory, "profile.json", &text, err);
    weft_text_finish(&text);
    if (status != WEFT_OK || directory->own) return status;
    const char *origin = directory->from[0] != '\0' ? directory->from : directory->resume;
    return weft_hub_source_take(origin, session->config->model, directory->path, err);
}

bool weft_run_saves(const struct weft_train *train)
{
    return train->checkpoint.at_end || train->checkpoint.every > 0;
}

void weft_run_directory_close(struct weft_run_directory *directory)
{
    free(directory->resume);
    directory->resume = NULL;
    if (directory->lock_fd >= 0) close(directory->lock_fd);
    directory->lock_fd = -1;
}

enum weft_status weft_run_find(const char *run, const char *given, char config[WEFT_RUN_FILE_BYTES],
                               char **checkpoint, struct weft_error *err)
{
    char operand[WEFT_RUN_PATH_BYTES], directory[WEFT_RUN_FILE_BYTES];
    const size_t length = weft_checkpoint_path_length(run);
    int64_t step;
    if (length >= sizeof operand)
        return weft_fail(err, WEFT_E_USAGE, "%s: the path is too long", run);
    snprintf(operand, sizeof operand, "%.*s", (int)length, run);
    const bool is_checkpoint = weft_checkpoint_step_of(operand, &step);
    if (is_checkpoint && access(operand, F_OK) != 0)
        return weft_fail(err, WEFT_E_NO_INPUT, "%s: no such checkpoint: %s", operand,
                         strerror(errno));
    snprintf(config, WEFT_RUN_FILE_BYTES, "%s%s/config.json", operand,
             is_checkpoint ? "/../.." : "");
    if (given != NULL) snprintf(config, WEFT_RUN_FILE_BYTES, "%s", given);
    if (is_checkpoint) {
        *checkpoint = strdup(operand);
        return *checkpoint != NULL ? WEFT_OK : weft_fail_memory(err, "a path");
    }
    snprintf(directory, sizeof directory, "%s/checkpoints", operand);
    char *latest = NULL;
    WEFT_TRY(weft_checkpoint_latest(directory, &latest, err));
    if (latest == NULL)
        return weft_fail(err, WEFT_E_NO_INPUT,
                         "%s: no checkpoint there. Give the directory of a run that saved one, or "
                         "a checkpoint (RUN/checkpoints/step-N)",
                         directory);
    *checkpoint = latest;
    return WEFT_OK;
}
