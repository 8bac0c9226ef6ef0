#include "library/run_directory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/directory.h"
#include "runtime/checkpoint/origin.h"

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

/* A run does not go back behind what it has saved: its later checkpoints would be of another past.
 * A checkpoint of another run is what this one began with. */
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

/* The directory's own latest checkpoint comes first, so that the same command goes on after every
 * interruption. */
static enum weft_status choose(const struct weft_run_request *request, const char *checkpoints,
                               char **resume, struct weft_error *err)
{
    char *latest = NULL;
    WEFT_TRY(weft_checkpoint_latest(checkpoints, &latest, err));
    if (latest != NULL && request->resume == NULL) {
        enum weft_status status =
            weft_fail(err, WEFT_E_CREATE,
                      "%s: this run has checkpoints already: go on with --resume, or give another "
                      "directory with --run",
                      latest);
        free(latest);
        return status;
    }
    if (latest != NULL && names_checkpoint(request->resume)) {
        enum weft_status status = check_named(request->resume, latest, checkpoints, err);
        if (status != WEFT_OK) {
            free(latest);
            return status;
        }
    }
    if (latest == NULL && request->resume != NULL && *request->resume == '\0')
        return weft_fail(err, WEFT_E_NO_INPUT,
                         "%s: there is no checkpoint to go on from: see that --run is right, or "
                         "begin anew without --resume (--resume=if-any does either)",
                         checkpoints);
    if (latest == NULL && names_checkpoint(request->resume)) {
        latest = strdup(request->resume);
        if (latest == NULL) return weft_fail_memory(err, "a path");
    }
    *resume = latest;
    return WEFT_OK;
}

/* A run that goes on has its parameters: its origin is not looked at, and may be gone. */
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

static enum weft_status check_resume(const char *path, const struct weft_config *config,
                                     struct weft_error *err)
{
    struct weft_layout *layout = NULL;
    struct weft_checkpoint *checkpoint = NULL;
    enum weft_status status = weft_layout_create(config->model, weft_config_moments(config),
                                                 WEFT_CHECKPOINT_CHUNK_BYTES, &layout, err);
    if (status == WEFT_OK && path != NULL) status = weft_checkpoint_open(path, &checkpoint, err);
    if (status == WEFT_OK && path != NULL)
        status = weft_checkpoint_matches(checkpoint, layout, err);
    if (status == WEFT_OK && path != NULL &&
        checkpoint->manifest->progress.step > config->train.steps)
        status = weft_fail(err, WEFT_E_DATA,
                           "%s: is behind train.steps, which is %lld: set it to the last step of "
                           "all, those that are done included",
                           path, (long long)config->train.steps);
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

enum weft_status weft_run_directory_check(const struct weft_run_request *request,
                                          const struct weft_config *config, struct weft_error *err)
{
    struct weft_run_directory directory = {.lock_fd = -1};
    WEFT_TRY(check_request(request, err));
    if (request->directory != NULL) {
        snprintf(directory.path, sizeof directory.path, "%s", request->directory);
        name_checkpoints(&directory);
        WEFT_TRY(choose(request, directory.checkpoints, &directory.resume, err));
    } else if (request->resume != NULL) {
        directory.resume = strdup(request->resume);
        if (directory.resume == NULL) return weft_fail_memory(err, "a path");
    }
    enum weft_status status = check_resume(directory.resume, config, err);
    if (status == WEFT_OK) status = find_origin(request, &directory, err);
    if (status == WEFT_OK) status = check_origin(directory.from, config, err);
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

enum weft_status weft_run_directory_open(const struct weft_run_request *request,
                                         struct weft_run_directory *out, struct weft_error *err)
{
    *out = (struct weft_run_directory){.lock_fd = -1};
    WEFT_TRY(check_request(request, err));
    if (request->directory != NULL) {
        snprintf(out->path, sizeof out->path, "%s", request->directory);
        WEFT_TRY(weft_file_make_directory(out->path, err));
    } else {
        WEFT_TRY(make_new(request->config, out, err));
    }
    name_checkpoints(out);
    WEFT_TRY(weft_checkpoint_lock(out->path, &out->lock_fd, err));
    weft_file_clear(out->path);
    WEFT_TRY(choose(request, out->checkpoints, &out->resume, err));
    return find_origin(request, out, err);
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
    return status;
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
