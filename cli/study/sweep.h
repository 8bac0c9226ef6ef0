/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of `weft sweep`: its flags, its limits, the plans of all points, made by parallel processes
 * of `weft plan`, and their runs. */
#ifndef WEFT_CLI_STUDY_SWEEP_H
#define WEFT_CLI_STUDY_SWEEP_H

#include "cli/process/kept.h"
#include "cli/study/place.h"
#include "cli/study/times.h"
#include "library/metrics/load.h"
#include "report/study/sweep.h"

enum { WEFT_SWEEP_CURVES = 64, WEFT_SWEEP_POINTS = 1000 };

/* A file of plans by another program (library/rival.h). */
struct weft_study_rival {
    const char *file, *planner;
    struct weft_hash hash; /* of the file */
};

/* One point with its plan. */
struct weft_study_row {
    const char *planner;
    const struct weft_study_rival *rival; /* NULL: the planner plans */
    struct weft_sweep_point *point;
    struct weft_text plan; /* the document, if a run or another plan needs it */
    bool first;            /* of its curve */
};

struct weft_study {
    const struct weft_cli *cli;
    struct weft_pool pool;
    /* From the flags: */
    int32_t jobs, n_planners, n_repeats;
    const char *planners[WEFT_SWEEP_CURVES]; /* in the order of the curves; one for a grid */
    int32_t n_rivals;                        /* their curves come after those of planners */
    struct weft_study_rival rivals[WEFT_SWEEP_CURVES];
    bool
        settles; /* measures the machine before and after the runs, and repeats points that drift */
    bool to_all;
    bool hosts_given;                 /* false: the limits of the host's memory are chosen */
    int32_t n_hosts;                  /* above 0: a grid */
    int64_t hosts[WEFT_SWEEP_CURVES]; /* limits of the host's memory, increasing */
    int32_t n_limits;
    int64_t limits[WEFT_SWEEP_POINTS]; /* of the device's memory, increasing */
    /* From the config: */
    struct weft_session session; /* staged for its first period */
    int32_t n_periods;           /* all that the config leaves open */
    struct weft_stages stages[WEFT_MOST_VARIANTS];
    struct weft_lower_inputs inputs[WEFT_MOST_VARIANTS];
    struct weft_times times;
    /* The results, curve by curve: */
    struct weft_sweep sweep;
    struct weft_sweep_curve curves[WEFT_SWEEP_CURVES];
    int32_t n_rows;
    struct weft_study_row *rows;
    struct weft_kept kept; /* of an earlier, stopped sweep */
    struct weft_load load; /* of the machine during all runs */
    int32_t n_repeated;    /* points that drifted, and ran again */
    struct weft_drift drift;
};

/* Reads the flags with defaults, before any work. WEFT_E_USAGE; WEFT_E_CREATE if an output cannot
 * be written. */
WEFT_MUST_USE enum weft_status weft_study_read_options(struct weft_study *study,
                                                       struct weft_error *err);

/* Reads the heads of the files of --rival. WEFT_E_DATA: a file is no rival. */
WEFT_MUST_USE enum weft_status weft_study_read_rivals(struct weft_study *study,
                                                      struct weft_error *err);

/* After the config is read: WEFT_E_USAGE if the options ask for a grid and the config has no host
 * memory that the planner uses. Without --planners drops rules for what the config does not allow.
 */
WEFT_MUST_USE enum weft_status weft_study_check_planners(struct weft_study *study,
                                                         struct weft_error *err);

/* True if the flag's file replaces the report on standard output. */
bool weft_study_is_stdout(const char *path);

/* After staging: makes the stages of all periods, which the functions below need. */
WEFT_MUST_USE enum weft_status weft_study_stage(struct weft_study *study, struct weft_error *err);

/* Chooses increasing limits of the device.
 *
 * The first is the least at which the leanest period has a plan in pages. The last is a little
 * above the least at which greedy, in the fastest period, needs no more time than without a limit.
 * With to_all it rises until each planner has a plan, except rules that never apply.
 *
 * A grid starts at the least limit with the most host memory. It ends where more device memory
 * stops helping with the least host memory. */
WEFT_MUST_USE enum weft_status weft_study_choose_limits(struct weft_study *study,
                                                        struct weft_error *err);

/* Chooses increasing limits of the host's memory, for the device's limits. The first is the least
 * with which any plan fits the largest of these, mostly 0. The last is a little above the most that
 * unlimited plans of the planner (greedy if it searches) hold there. Only device limits at which
 * host memory makes them faster count. If there is none, one limit is left. */
WEFT_MUST_USE enum weft_status weft_study_choose_hosts(struct weft_study *study,
                                                       struct weft_error *err);

/* Finds the least memory of a rank that any plan takes, without pages, with the most of the host's
 * memory; INT64_MAX: no plan fits the other tiers. */
WEFT_MUST_USE enum weft_status weft_study_find_least(struct weft_study *study, int64_t *least_bytes,
                                                     struct weft_error *err);

/* Chooses limits, unless the kept results have them from before a stop. */
WEFT_MUST_USE enum weft_status weft_study_find_limits(struct weft_study *study,
                                                      struct weft_error *err);

/* Adds a curve of n points, and their rows. The name lives as long as the study. */
void weft_study_add_curve(struct weft_study *study, const char *planner, int32_t n);
/* After all curves: makes their rows, with the device's limits. */
WEFT_MUST_USE enum weft_status weft_study_make_rows(struct weft_study *study,
                                                    struct weft_error *err);

/* The place of a point (NULL: of all points). */
struct weft_place weft_study_place(const struct weft_study *study,
                                   const struct weft_sweep_point *point);

/* Plans every row, `jobs` at a time.
 *
 * Points are first planned independently. Then, by increasing limits, ilp replans a point that has
 * no plan or a slower one than a smaller limit, and starts from that plan. So more memory is never
 * slower, and the result does not depend on `jobs`.
 *
 * Plans in `kept` are not made again; new ones are added. WEFT_E_STOPPED after a signal. No process
 * is left in any case. */
WEFT_MUST_USE enum weft_status weft_study_plan(struct weft_study *study, struct weft_error *err);

/* Before staging: measures this machine if the times need it. The session is opened again with the
 * profile, and planning processes read it too. */
WEFT_MUST_USE enum weft_status weft_study_measure(struct weft_study *study, struct weft_error *err);

/* Trains every plan on local ranks, n_repeats times. Plans within one limit run in turns. A point
 * gets the run with the median step. A run that holds more than its limit is only not measured.
 * With `settles`, points that drift run n_repeats times more, and the closer runs count. */
WEFT_MUST_USE enum weft_status weft_study_run(struct weft_study *study, struct weft_error *err);

/* With `settles`, after the runs: measures the machine again, and fills the study's drift. */
WEFT_MUST_USE enum weft_status weft_study_measure_drift(struct weft_study *study,
                                                        struct weft_error *err);

/* Opens the results that are kept next to `file`; NULL: none. Their key has all inputs of the
 * config; of the profile that is its content, which the caller adds, and not its path. */
void weft_study_keep(const struct weft_cli *cli, struct weft_config *config, const char *file,
                     struct weft_kept *kept);

/* Fills the error of a stopped study: where its results are, or the flag that keeps them. */
void weft_study_tell_stop(const struct weft_kept *kept, const char *flag,
                          const struct weft_error *why, struct weft_error *err);

#endif
