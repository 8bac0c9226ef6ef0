/* Parts of `weft sweep`: its flags, its limits, and the plans of all points, made by parallel
 * processes of `weft plan`. */
#ifndef WEFT_CLI_VERBS_SWEEP_H
#define WEFT_CLI_VERBS_SWEEP_H

#include "cli/command.h"
#include "cli/process/kept.h"
#include "library/session.h"
#include "report/study/sweep.h"

enum { WEFT_SWEEP_CURVES = 64, WEFT_SWEEP_POINTS = 1000, WEFT_SWEEP_NAME_BYTES = 96 };

/* Planners in the order of the curves. */
struct weft_sweep_planners {
    int32_t n;
    char names[WEFT_SWEEP_CURVES][WEFT_SWEEP_NAME_BYTES];
};

/* Limits of the host's memory, increasing; n = 0: no grid. */
struct weft_sweep_hosts {
    int32_t n;
    bool given; /* false: they are chosen */
    int64_t limits[WEFT_SWEEP_CURVES];
};

struct weft_sweep_options {
    int32_t points, jobs;
    bool to_all;
    struct weft_sweep_planners planners; /* one planner for a grid */
    struct weft_sweep_hosts hosts;
};

/* Reads the flags with defaults, before any work. WEFT_E_USAGE; WEFT_E_CREATE if an output cannot
 * be written. */
WEFT_MUST_USE enum weft_status weft_sweep_read_options(const struct weft_cli *cli,
                                                       struct weft_sweep_options *options,
                                                       struct weft_error *err);

/* WEFT_E_USAGE if the options ask for a grid and the config has no host memory that the planner
 * uses. */
WEFT_MUST_USE enum weft_status weft_sweep_check_hosts(const struct weft_config *config,
                                                      const struct weft_sweep_options *options,
                                                      struct weft_error *err);

/* Chooses `n` increasing limits for the staged session.
 *
 * The first is the least at which the leanest period has a plan in pages. The last is a little
 * above the least at which greedy, in the fastest period, needs no more time than without a limit.
 * With `all` (NULL: none) it rises until each of those planners has a plan, except rules that never
 * apply.
 *
 * A grid starts at the least limit with the most host memory. It ends where more device memory
 * stops helping with the least host memory. The call changes the session's period and the limits of
 * its config and problem. */
WEFT_MUST_USE enum weft_status weft_sweep_choose_limits(struct weft_session *session,
                                                        const struct weft_sweep_planners *all,
                                                        const struct weft_sweep_hosts *hosts,
                                                        int32_t n, int64_t *limits,
                                                        struct weft_error *err);

/* Chooses increasing limits of the host's memory. The first is the least with which any plan fits
 * the largest of the device's `n` limits, mostly 0. The last is a little above the most that
 * unlimited plans of `planner` (greedy if that searches) hold there. Only device limits at which
 * host memory makes them faster count. If there is none, one limit is left. The session is staged
 * and does not change. */
WEFT_MUST_USE enum weft_status weft_sweep_choose_hosts(const struct weft_session *session,
                                                       const char *planner, const int64_t *limits,
                                                       int32_t n, struct weft_sweep_hosts *hosts,
                                                       struct weft_error *err);

/* Finds the least memory of a rank that a plan of any of the config's periods takes, without pages.
 * `host_bytes` (NULL: the config's) limits the host's memory. The session is staged; its stages and
 * its limit of the host's memory change. */
WEFT_MUST_USE enum weft_status weft_sweep_find_least(struct weft_session *session,
                                                     const int64_t *host_bytes,
                                                     int64_t *least_bytes, struct weft_error *err);

/* Reads the sizes of a list "24GiB,32GiB" for `flag`: sorted, without duplicates, at most `most`,
 * each at least `least_bytes`. WEFT_E_USAGE. */
WEFT_MUST_USE enum weft_status weft_sweep_read_limits(const char *flag, const char *list,
                                                      int64_t least_bytes, int32_t most,
                                                      int64_t *limits, int32_t *n,
                                                      struct weft_error *err);

/* Plans every point, `jobs` at a time. `profile` is the path of the profile for all plans, or NULL
 * for the config's. With `plans`, plans[curve][point] gets each plan's document, empty if none
 * fits; the caller inits and finishes the texts.
 *
 * Points are first planned independently. Then, by increasing limits, ilp replans a point that has
 * no plan or a slower one than a smaller limit, and starts from that plan. So more memory is never
 * slower, and the result does not depend on `jobs`.
 *
 * Plans in `kept` are not made again; new ones are added. WEFT_E_STOPPED after a signal. No process
 * is left in any case. */
WEFT_MUST_USE enum weft_status weft_sweep_plan(const struct weft_cli *cli, const char *profile,
                                               int32_t jobs, struct weft_kept *kept,
                                               struct weft_sweep *sweep, struct weft_text **plans,
                                               struct weft_error *err);

#endif
