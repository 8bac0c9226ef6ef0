/* SPDX-License-Identifier: Apache-2.0 */
/* `weft train --resume --run DIR` resumes with DIR's config, profile and plan. Flags override
 * the config, and each change is logged. The profile and the plan are used as long as they still
 * fit. */
#ifndef WEFT_CLI_JOB_RESUME_H
#define WEFT_CLI_JOB_RESUME_H

#include <stdbool.h>

#include "base/status.h"
#include "cli/command.h"
#include "library/run_directory.h"
#include "library/session.h"
#include "runtime/checkpoint/manifest.h"

enum { WEFT_RESUME_PATH_BYTES = WEFT_RUN_PATH_BYTES + 32 };

struct weft_resumption {
    const char *config;                      /* path of the config to read */
    bool own;                                /* true: the run's own config, none was named */
    char directory[WEFT_RESUME_PATH_BYTES];  /* a run that has a config; "": none */
    char own_config[WEFT_RESUME_PATH_BYTES]; /* "directory/config.json" */
    bool same_times, same_plan; /* set by weft_resume_tell: its profile, or its plan, still fits */
};

/* Finds the config to use: the named one, or that of the resumed run. WEFT_E_USAGE or
 * WEFT_E_NO_INPUT if there is neither. */
WEFT_MUST_USE enum weft_status weft_resume_find(const struct weft_cli *cli,
                                                struct weft_resumption *out,
                                                struct weft_error *err);

/* Logs how `config` differs from the run's earlier config. Settings in the checkpoint's manifest
 * are left to its reader. */
WEFT_MUST_USE enum weft_status weft_resume_tell(struct weft_resumption *from,
                                                const struct weft_config *config,
                                                struct weft_error *err);

/* Reads the run's own profile, for weft_session_stage, or that of plans/M.json for this number of
 * ranks. *out stays NULL if there is none or it does not fit. */
WEFT_MUST_USE enum weft_status weft_resume_profile(const struct weft_resumption *from,
                                                   int64_t ranks, struct weft_profile **out,
                                                   struct weft_error *err);

/* After staging: loads the run's own plan if it still fits, or plans/M.json of the directory for M
 * ranks. Otherwise plans anew and logs the reason. */
WEFT_MUST_USE enum weft_status weft_resume_plan(const struct weft_resumption *from,
                                                struct weft_session *session,
                                                struct weft_error *err);

/* Appends "weft train --resume --run DIR --layers FILE", quoted for a shell. `kinds` are those of
 * the run's config, or NULL. */
void weft_resume_command(const char *directory, const struct weft_kinds *kinds,
                         struct weft_text *out);

#endif
