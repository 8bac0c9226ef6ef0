/* A run's directory keeps all of a run: config, plan, profile, metrics, result and checkpoints. One
 * run writes to it at a time, and none to a directory that is not a run's (run_mark.h). */
#ifndef WEFT_LIBRARY_RUN_DIRECTORY_H
#define WEFT_LIBRARY_RUN_DIRECTORY_H

#include <stdbool.h>

#include "base/status.h"
#include "library/session.h"
#include "runtime/checkpoint/manifest.h"
#include "spec/config.h"

enum { WEFT_RUN_PATH_BYTES = 1024 };

struct weft_run_request {
    const char *directory; /* NULL: a new one, runs/NAME-NNN */
    const char *resume;    /* NULL: begin; "": go on with the directory's latest checkpoint;
                              "if-any": or begin when there is none; RUN/checkpoints/step-N: or
                              begin with that one */
    const char *from;      /* begin with the parameters of this checkpoint or file; or NULL */
    const char *config;    /* path that NAME comes from */
};

struct weft_run_directory {
    char path[WEFT_RUN_PATH_BYTES];
    char checkpoints[WEFT_RUN_PATH_BYTES + 16]; /* "path/checkpoints" */
    char *resume;                               /* checkpoint to go on from, or NULL */
    char from[WEFT_ORIGIN_PATH_BYTES];          /* origin of a run that goes on from none, or "" */
    bool own;                                   /* it is one of these checkpoints */
    bool finished;                              /* all steps were done, as result.json says */
    int lock_fd;                                /* -1: not locked */
};

/* Checks a request before anything is made or touched. WEFT_E_USAGE for parts that contradict each
 * other, WEFT_E_NO_INPUT without anything to resume, WEFT_E_CREATE for a directory with files of
 * others or with a run that nobody asked to resume, WEFT_E_DATA for a checkpoint that is damaged or
 * of another model. *finished: all steps were done before, and result.json says so. */
WEFT_MUST_USE enum weft_status weft_run_directory_check(const struct weft_run_request *request,
                                                        const struct weft_config *config,
                                                        bool *finished, struct weft_error *err);

/* Makes the directory, or a new one runs/NAME-NNN if the request names none, takes its lock
 * (WEFT_E_CREATE if another run has it), marks it, and finds the checkpoint to resume. A run that
 * begins anew keeps metrics and result of an earlier one as metrics.N.jsonl and result.N.json. If
 * another run has finished since the check, `finished` is set and no file is touched. */
WEFT_MUST_USE enum weft_status weft_run_directory_open(const struct weft_run_request *request,
                                                       const struct weft_config *config,
                                                       struct weft_run_directory *out,
                                                       struct weft_error *err);
/* Writes what the run was told and what was decided, so that it can be repeated: config.json,
 * plan.json, profile.json. */
WEFT_MUST_USE enum weft_status weft_run_directory_record(const struct weft_run_directory *directory,
                                                         const struct weft_session *session,
                                                         struct weft_error *err);

/* Writes a file of the directory, whole or not at all. */
WEFT_MUST_USE enum weft_status weft_run_directory_write(const struct weft_run_directory *directory,
                                                        const char *name,
                                                        const struct weft_text *text,
                                                        struct weft_error *err);

/* True when the settings ask for checkpoints. */
bool weft_run_saves(const struct weft_train *train);

/* Accepts what open has left after a failure. */
void weft_run_directory_close(struct weft_run_directory *directory);

#endif
