/* SPDX-License-Identifier: Apache-2.0 */
/* A job is the common work of local ranks: to profile the machine or to train. The launching
 * process reads the inputs and decides. It writes the job to an inherited memory file, starts the
 * ranks and waits. Rank 0 leaves the result in another memory file. */
#ifndef WEFT_CLI_JOB_JOB_H
#define WEFT_CLI_JOB_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/text.h"
#include "base/watch.h"
#include "cli/command.h"
#include "plan/plan.h"
#include "runtime/launch/stop.h"
#include "runtime/train/train.h"
#include "spec/config.h"
#include "spec/profile/profile.h"

enum weft_job_kind { WEFT_JOB_PROFILE, WEFT_JOB_TRAIN, WEFT_JOB_KIND_COUNT };

enum weft_step_output { WEFT_STEPS_SILENT, WEFT_STEPS_TEXT, WEFT_STEPS_JSON, WEFT_STEPS_COUNT };

/* Progress of a training; valid even if the ranks were killed. */
struct weft_job_reach {
    int64_t first_step, steps_done; /* first and last step done; 0, 0: none */
    int64_t saved_step;             /* step of this run's last checkpoint; 0: none */
};

struct weft_job {
    enum weft_job_kind kind;
    const struct weft_config *config;
    const struct weft_profile *profile; /* TRAIN: the plan's. PROFILE: of another micro-batch, or
                                         * NULL */
    const struct weft_plan *plan;       /* TRAIN */
    bool contention;                    /* PROFILE: measure contention */
    int32_t rounds;                     /* PROFILE: timed steps; 0: as many as needed */
    bool virtual_clock, poison;
    enum weft_step_output steps; /* output of rank 0 after each step */
    const char *metrics;         /* file that gets a line of JSON per step, appended; or NULL */
    const char *checkpoints;     /* directory to save to, or NULL */
    const char *resume;          /* checkpoint to resume from, or NULL */
    const char *from;            /* if `resume` is NULL, the checkpoint of the first parameters, or
                                  * NULL */
    int kept_fd;                 /* that ranks inherit: the run's lock, or the file of `metrics`; 0
                                  * or less: none */
    const struct weft_vault *kept; /* TRAIN: memory for train.checkpoint.host, which ranks inherit;
                                    * or NULL */
    int64_t replay_to;             /* TRAIN: the last step of a replay; 0: no replay */
    bool groups;                   /* TRAIN: lines of all groups of a step, of one rank */
    const char *dump, *dump_to;    /* TRAIN: tensors to write, of a replay; or NULL */
    int64_t replay_from;           /* TRAIN: the first step of `dump` */
    const char *replay_bits;       /* what its bits depend on; or NULL */
    const char *replay_data;       /* hash of the data that the run read; or NULL */
    const char *trace;             /* file or folder of traces (tracing.h), or NULL */
    const char *trace_steps;       /* of these steps; NULL: the last */
    const char *tensorboard;       /* folder of event files, or NULL */
    struct weft_watch *watch;      /* shows rank 0's progress; or NULL */
    void (*look)(void *context);   /* called several times a second while ranks run; or NULL */
    void *look_context;
    /* The request to stop, shared with the caller's handlers; or NULL. */
    struct weft_stop *stop;
    struct weft_job_reach *reach; /* TRAIN: filled even if the job fails; or NULL */
};

/* Checks that this machine can run the config's ranks. WEFT_E_USAGE for too many ranks,
 * WEFT_E_ENVIRONMENT for more bound cores than exist. It starts nothing, so callers can ask before
 * planning. weft_job_run asks too. */
WEFT_MUST_USE enum weft_status weft_job_check(const struct weft_config *config,
                                              struct weft_error *err);

/* Checks that a file can be made in the directory of cluster.disk, on a disk. It returns WEFT_OK at
 * once if nothing uses the disk: `plan` keeps no state there, or, with plan NULL, no plan of the
 * config may. Errors of weft_disk_open. weft_job_run calls it with the job's plan, and with NULL to
 * measure. */
WEFT_MUST_USE enum weft_status weft_job_check_disk(const struct weft_config *config,
                                                   const struct weft_plan *plan,
                                                   struct weft_error *err);

/* Runs the job's ranks and waits for them. WEFT_E_LOST names the rank that died; a rank's own error
 * keeps its status. `result` gets rank 0's text: a profile (PROFILE) or a weft_train_result
 * (TRAIN), which weft_job_read_result reads. If training ended and then its trace failed, `result`
 * has rank 0's text too; after other failures it is empty or torn. */
WEFT_MUST_USE enum weft_status weft_job_run(const struct weft_job *job, struct weft_text *result,
                                            struct weft_error *err);

WEFT_MUST_USE enum weft_status weft_job_read_result(const struct weft_text *text,
                                                    struct weft_train_result *out,
                                                    struct weft_error *err);

/* Profiles a config as `weft profile` does; the caller destroys *out. If the config leaves several
 * micro-batches open, each is measured by ranks of its own, since base memory is that of a run with
 * one. Without `contention`, WEFT_E_DATA if the config has cluster.contention. */
WEFT_MUST_USE enum weft_status weft_job_profile(const struct weft_config *config, bool contention,
                                                struct weft_watch *watch, struct weft_profile **out,
                                                struct weft_error *err);

/* The same, and then other splits of the same batch than the config's one, the smallest first,
 * while less than limit_ns are spent. *n_left: splits that are left out. */
WEFT_MUST_USE enum weft_status weft_job_profile_splits(const struct weft_config *config,
                                                       bool contention, int64_t limit_ns,
                                                       struct weft_watch *watch,
                                                       struct weft_profile **out, int32_t *n_left,
                                                       struct weft_error *err);

/* Measures, with a profile of one step, the bytes that a rank holds outside the arena on this
 * machine. */
WEFT_MUST_USE enum weft_status weft_job_measure_base(const struct weft_config *config,
                                                     struct weft_watch *watch, int64_t *base_bytes,
                                                     struct weft_error *err);

/* Writes the job's description as JSON, for the ranks. */
void weft_job_write(const struct weft_job *job, struct weft_text *out);

/* Append lines for users: a step (fixed columns), a checkpoint, an evaluation. */
void weft_job_step_line(const struct weft_step_line *line, struct weft_text *out);
void weft_job_save_line(const struct weft_save_line *line, struct weft_text *out);
void weft_job_evaluation_line(const struct weft_evaluation_line *line, struct weft_text *out);

#endif
