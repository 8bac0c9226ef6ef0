/* A job is what local ranks do together: profile the machine, or train. The launching process reads
 * and decides, describes the job in an inherited memory file, starts the ranks and waits; rank 0
 * leaves the result in another one. */
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

/* How far a training came, also if it was ended at once. */
struct weft_job_reach {
    int64_t first_step, steps_done; /* 0, 0: no step was done */
    int64_t saved_step;             /* of the last checkpoint of this run; 0: none */
};

struct weft_job {
    enum weft_job_kind kind;
    const struct weft_config *config;
    const struct weft_profile *profile; /* TRAIN: that the plan was made with */
    const struct weft_plan *plan;       /* TRAIN */
    bool contention;                    /* PROFILE: of its own */
    int32_t rounds;                     /* PROFILE: steps that are timed; 0 = as many as needed */
    bool virtual_clock, poison;
    enum weft_step_output steps; /* what rank 0 writes to stdout after each step */
    const char *metrics;         /* JSON Lines of every step, which are appended; or NULL */
    const char *checkpoints;     /* directory to save to, or NULL */
    const char *resume;          /* checkpoint to go on from, or NULL */
    const char *from;            /* without one, the origin to begin with, or NULL */
    int lock_fd;                 /* that ranks keep open too; 0 or less: none */
    const char *trace;           /* Chrome trace of the last step on rank 0, or NULL */
    struct weft_watch *watch;    /* that shows what rank 0 tells; or NULL */
    /* The request to stop that the caller's handlers continue before and after; NULL = none. */
    struct weft_stop *stop;
    struct weft_job_reach *reach; /* TRAIN: filled also when the job fails; or NULL */
};

/* Whether this machine can be asked for the ranks of a config: WEFT_E_USAGE when they are too many,
 * WEFT_E_ENVIRONMENT when they are to be bound to more cores than there are. Starts nothing: known
 * before a plan is made. weft_job_run asks too. */
WEFT_MUST_USE enum weft_status weft_job_check(const struct weft_config *config,
                                              struct weft_error *err);

/* Whether a file can be made in the directory of cluster.disk, and lies on a disk there. WEFT_OK
 * without a look where nothing would use it: `plan` keeps no state there, or, with plan NULL, no
 * plan of the config may. The errors of weft_disk_open. weft_job_run asks too: with the job's plan,
 * and with NULL to measure. */
WEFT_MUST_USE enum weft_status weft_job_check_disk(const struct weft_config *config,
                                                   const struct weft_plan *plan,
                                                   struct weft_error *err);

/* Launching side. WEFT_E_LOST names the rank that died; a rank's own error comes back with its
 * status. `result` gets what rank 0 left: a profile (PROFILE) or the text of
 * weft_train_result (TRAIN; read it with weft_job_read_result). */
WEFT_MUST_USE enum weft_status weft_job_run(const struct weft_job *job, struct weft_text *result,
                                            struct weft_error *err);

WEFT_MUST_USE enum weft_status weft_job_read_result(const struct weft_text *text,
                                                    struct weft_train_result *out,
                                                    struct weft_error *err);

/* `weft profile` of a config, with --contention or without, as a value. Without, WEFT_E_DATA when
 * the config has cluster.contention. */
WEFT_MUST_USE enum weft_status weft_job_profile(const struct weft_config *config, bool contention,
                                                struct weft_watch *watch, struct weft_profile **out,
                                                struct weft_error *err);

/* Bytes that a rank of the config holds outside the arena on this machine: a profile of one step.
 */
WEFT_MUST_USE enum weft_status weft_job_measure_base(const struct weft_config *config,
                                                     struct weft_watch *watch, int64_t *base_bytes,
                                                     struct weft_error *err);

/* Shared by both sides: the description as JSON. */
void weft_job_write(const struct weft_job *job, struct weft_text *out);

/* For people: one step (fixed columns), a checkpoint, an evaluation. */
void weft_job_step_line(const struct weft_step_line *line, struct weft_text *out);
void weft_job_save_line(const struct weft_save_line *line, struct weft_text *out);
void weft_job_evaluation_line(const struct weft_evaluation_line *line, struct weft_text *out);

#endif
