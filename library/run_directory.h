/* SPDX-License-Identifier: Apache-2.0 */
/* A run's directory holds its config, plan, profile, metrics, result and checkpoints. One run at a
 * time writes to it. No run writes to a directory with files of others (run_mark.h). */
#ifndef WEFT_LIBRARY_RUN_DIRECTORY_H
#define WEFT_LIBRARY_RUN_DIRECTORY_H

#include <stdbool.h>

#include "base/status.h"
#include "library/metrics/metrics.h"
#include "library/session.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/vault/vault.h"
#include "spec/config.h"

struct weft_run_request {
    const char *directory; /* NULL: a new one, runs/NAME-NNN */
    /* NULL: begin. "": resume the directory's latest checkpoint. "if-any": the same, or begin if
     * there is none. RUN/checkpoints/step-N: the same, or begin with that one. */
    const char *resume;
    const char *from;   /* checkpoint or file with the first parameters; or NULL */
    const char *config; /* path that gives NAME */
    /* With `directory`: checkpoints in memory of the same run; the newer one of these and of the
     * directory is resumed. NULL: none. */
    const struct weft_vault *kept;
    /* With "if-any": refuses a directory in which a run has ended and left no checkpoint. */
    bool needs_parameters;
};

struct weft_run_directory {
    char path[WEFT_RUN_PATH_BYTES];
    char checkpoints[WEFT_RUN_PATH_BYTES + 16]; /* "path/checkpoints" */
    char *resume;                               /* checkpoint to resume, or NULL */
    char from[WEFT_ORIGIN_PATH_BYTES];          /* origin of a run that does not resume, or "" */
    bool own;                                   /* `resume` is in this directory */
    bool finished;                              /* all steps are done, by result.json */
    int lock_fd;                                /* -1: not locked */
};

/* Finds a run's config and checkpoint. `run` is its directory, for the latest checkpoint, or
 * RUN/checkpoints/step-N. `given` replaces the config; NULL: RUN/config.json. The caller frees
 * *checkpoint. WEFT_E_NO_INPUT if there is no checkpoint. */
WEFT_MUST_USE enum weft_status weft_run_find(const char *run, const char *given,
                                             char config[WEFT_RUN_FILE_BYTES], char **checkpoint,
                                             struct weft_error *err);

/* Checks a request without touching any file. WEFT_E_USAGE for contradictions, WEFT_E_NO_INPUT
 * without anything to resume. WEFT_E_CREATE for a directory with files of others, or with a run
 * that the request does not resume. WEFT_E_DATA for a checkpoint that is damaged or of another
 * model. *finished: all steps are done, and result.json confirms it. *split
 * is that of the checkpoint to resume, zero without one; it may be NULL. */
WEFT_MUST_USE enum weft_status weft_run_directory_check(const struct weft_run_request *request,
                                                        const struct weft_config *config,
                                                        bool *finished,
                                                        struct weft_manifest_split *split,
                                                        struct weft_error *err);

/* Makes the directory, or a new one runs/NAME-NNN if the request names none. Takes its lock
 * (WEFT_E_CREATE if another run has it), marks it, and finds the checkpoint to resume. A new run
 * keeps an earlier run's metrics and result as metrics.N.jsonl and result.N.json. If another run
 * has finished since the check, `finished` is set and no file is touched. */
WEFT_MUST_USE enum weft_status weft_run_directory_open(const struct weft_run_request *request,
                                                       const struct weft_config *config,
                                                       struct weft_run_directory *out,
                                                       struct weft_error *err);
/* Writes config.json, plan.json and profile.json, so that the run can be repeated. A run that
 * begins with other parameters keeps their source of Hugging Face (hub/source.h). */
WEFT_MUST_USE enum weft_status weft_run_directory_record(const struct weft_run_directory *directory,
                                                         const struct weft_session *session,
                                                         struct weft_error *err);

/* Writes a file of the directory whole or not at all. */
WEFT_MUST_USE enum weft_status weft_run_directory_write(const struct weft_run_directory *directory,
                                                        const char *name,
                                                        const struct weft_text *text,
                                                        struct weft_error *err);

/* Whether the settings ask for checkpoints. */
bool weft_run_saves(const struct weft_train *train);

/* Accepts the result of a failed open. */
void weft_run_directory_close(struct weft_run_directory *directory);

#endif
