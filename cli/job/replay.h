/* SPDX-License-Identifier: Apache-2.0 */
/* A replay runs steps of a run again, from a kept checkpoint, and compares their bits with the
 * run's records. It writes no file. */
#ifndef WEFT_CLI_JOB_REPLAY_H
#define WEFT_CLI_JOB_REPLAY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/job/resume.h"
#include "library/recorded.h"
#include "library/session.h"
#include "runtime/checkpoint/checkpoint.h"

struct weft_replay {
    const struct weft_cli *cli;
    const char *run;               /* its directory */
    struct weft_resumption from;   /* the run's own config */
    struct weft_recorded recorded; /* the run's steps */
    char checkpoints[WEFT_RESUME_PATH_BYTES];
    int64_t *kept; /* [n_kept], steps of the kept checkpoints, ascending; owned */
    int32_t n_kept;
    char origin[WEFT_ORIGIN_PATH_BYTES]; /* of the first parameters; "": initial values */
    struct weft_session session;         /* with the plan that replays */
};

/* Steps to run: all after `from`, a kept checkpoint's step or 0, up to `last`. Those from `first`
 * on are compared. */
struct weft_replay_segment {
    int64_t from, first, last;
};

/* A group of a replayed step (--groups). */
struct weft_replay_group {
    int64_t step, group;
    int64_t first_sample, samples; /* of the step, from 0 */
    int64_t place;                 /* first token of the first sample, over all files of the data */
    double loss, norm;             /* as if the group were a step of its own */
};

struct weft_replay_outcome {
    int64_t compared, missing;   /* steps; missing: the run has no line of them */
    int64_t differs;             /* the first step with other bits; 0: none */
    int32_t rank;                /* of the run, that computed another gradient; -1: not known */
    bool ends;                   /* the run recorded the parameters after the last step */
    bool other_settings;         /* a kept checkpoint of the steps has other settings of train */
    bool unknown_data;           /* no kept checkpoint tells the data of some of the steps */
    struct weft_hash parameters; /* after the last step of the replay */
    struct weft_text how;        /* the numbers that differ */
    struct weft_replay_group *groups; /* [n_groups], by step and group; owned */
    int64_t n_groups;
};
void weft_replay_outcome_finish(struct weft_replay_outcome *outcome);

/* Whether the command line asks for a replay on one rank, which computes all groups. */
static inline bool weft_replay_is_of_one(const struct weft_cli *cli)
{
    return cli->groups || cli->dump != NULL;
}

/* Reads the run that the command line names. WEFT_E_NO_INPUT without a run there, or without its
 * metrics. The caller closes *out, also after a failure. */
WEFT_MUST_USE enum weft_status weft_replay_open(const struct weft_cli *cli, struct weft_replay *out,
                                                struct weft_error *err);
void weft_replay_close(struct weft_replay *replay);

/* The step of the last kept checkpoint before `first`; 0: the run's first parameters.
 * WEFT_E_NO_INPUT if neither reaches the step. */
WEFT_MUST_USE enum weft_status weft_replay_reach(const struct weft_replay *replay, int64_t first,
                                                 int64_t *from, struct weft_error *err);

/* Opens the kept checkpoint of a step; the caller closes it. */
WEFT_MUST_USE enum weft_status weft_replay_kept(const struct weft_replay *replay, int64_t step,
                                                struct weft_checkpoint **out,
                                                struct weft_error *err);

/* Makes the session for the command line's ranks, limit and planner, in the run's order of sums.
 * Errors of planning; WEFT_E_USAGE for ranks or settings that cannot have the run's bits. */
WEFT_MUST_USE enum weft_status weft_replay_plan(struct weft_replay *replay, struct weft_error *err);

/* Runs a segment and compares it. Different bits are no error. A signal ends it after a step:
 * WEFT_E_STOPPED. */
WEFT_MUST_USE enum weft_status weft_replay_run(struct weft_replay *replay,
                                               const struct weft_replay_segment *segment,
                                               struct weft_replay_outcome *out,
                                               struct weft_error *err);

/* ", in a gradient that rank 1 computed", or "" if no rank is known. Returns `out`. */
enum { WEFT_REPLAY_RANK_BYTES = 64 };
const char *weft_replay_show_rank(const struct weft_replay_outcome *outcome,
                                  char out[WEFT_REPLAY_RANK_BYTES]);
/* Other causes of different bits than a wrong computation, then "Otherwise"; or "Either" without
 * any. */
const char *weft_replay_show_doubt(const struct weft_replay_outcome *outcome);

#endif
