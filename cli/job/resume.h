/* Resuming: `weft train --resume --run DIR` goes on with the config, the profile and the plan that
 * DIR has. Flags override its config, and what they change is told; the profile and the plan are
 * DIR's as long as they are still for that. */
#ifndef WEFT_CLI_JOB_RESUME_H
#define WEFT_CLI_JOB_RESUME_H

#include <stdbool.h>

#include "base/status.h"
#include "cli/command.h"
#include "library/run_directory.h"
#include "library/session.h"

enum { WEFT_RESUME_PATH_BYTES = WEFT_RUN_PATH_BYTES + 32 };

struct weft_resumption {
    const char *config;                      /* path of the config to read */
    bool own;                                /* it is a run's own, none was named */
    char directory[WEFT_RESUME_PATH_BYTES];  /* run that has a config; "": none */
    char own_config[WEFT_RESUME_PATH_BYTES]; /* "directory/config.json" */
    bool same_times, same_plan; /* set by tell: its profile, and its plan, may be taken */
};

/* Which config counts: the one that is named, or that of the run that is resumed. WEFT_E_USAGE,
 * WEFT_E_NO_INPUT when there is neither. */
WEFT_MUST_USE enum weft_status weft_resume_find(const struct weft_cli *cli,
                                                struct weft_resumption *out,
                                                struct weft_error *err);

/* Says in what `config` differs from what the run was told; settings that its checkpoint knows are
 * compared with that, by who reads it. */
WEFT_MUST_USE enum weft_status weft_resume_tell(struct weft_resumption *from,
                                                const struct weft_config *config,
                                                struct weft_error *err);

/* The run's own profile, for weft_session_stage; *out stays NULL where there is none to take. */
WEFT_MUST_USE enum weft_status weft_resume_profile(const struct weft_resumption *from,
                                                   struct weft_profile **out,
                                                   struct weft_error *err);

/* After staging: the run's own plan where it is still for this, else a new one, and why. */
WEFT_MUST_USE enum weft_status weft_resume_plan(const struct weft_resumption *from,
                                                struct weft_session *session,
                                                struct weft_error *err);

/* "weft train --resume --run DIR --layers FILE", for a shell; `kinds` are those of the run's
 * config, or NULL. */
void weft_resume_command(const char *directory, const struct weft_kinds *kinds,
                         struct weft_text *out);

#endif
