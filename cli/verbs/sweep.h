/* The parts of `weft sweep`: what its flags ask for, which limits are swept, and the plans of all
 * points, made by processes of `weft plan` side by side. */
#ifndef WEFT_CLI_VERBS_SWEEP_H
#define WEFT_CLI_VERBS_SWEEP_H

#include "cli/command.h"
#include "cli/process/kept.h"
#include "library/session.h"
#include "report/sweep.h"

enum { WEFT_SWEEP_CURVES = 64, WEFT_SWEEP_POINTS = 1000, WEFT_SWEEP_NAME_BYTES = 96 };

/* Names, in the order of the curves. */
struct weft_sweep_planners {
    int32_t n;
    char names[WEFT_SWEEP_CURVES][WEFT_SWEEP_NAME_BYTES];
};

/* Limits of the host's memory, increasing; n = 0: the sweep is no grid. */
struct weft_sweep_hosts {
    int32_t n;
    bool given; /* else they are to be chosen */
    int64_t limits[WEFT_SWEEP_CURVES];
};

struct weft_sweep_options {
    int32_t points, jobs;
    bool to_all;
    struct weft_sweep_planners planners; /* one of a grid */
    struct weft_sweep_hosts hosts;
};

/* What the flags say, with defaults, checked before any work. WEFT_E_USAGE; WEFT_E_CREATE where a
 * file could not be written. */
WEFT_MUST_USE enum weft_status weft_sweep_read_options(const struct weft_cli *cli,
                                                       struct weft_sweep_options *options,
                                                       struct weft_error *err);

/* WEFT_OK where the options ask for no grid, or the config has a host's memory that the planner may
 * use; else WEFT_E_USAGE. */
WEFT_MUST_USE enum weft_status weft_sweep_check_hosts(const struct weft_config *config,
                                                      const struct weft_sweep_options *options,
                                                      struct weft_error *err);

/* Fills `n` limits, increasing: from the least at which the leanest plan of any of the config's
 * periods fits in pages, to a little more than the least at which the greedy planner finds one no
 * slower than without a limit, in the period that is fastest then; with `all` (NULL: none) further,
 * to where each of those planners has a plan, but for rules that cannot be applied at any limit.
 * A grid begins with the least that fits beside the most of the host's memory, and ends where more
 * helps no longer beside the least of it. The session is staged; its period, its config's and its
 * problem's limits are changed on the way. */
WEFT_MUST_USE enum weft_status weft_sweep_choose_limits(struct weft_session *session,
                                                        const struct weft_sweep_planners *all,
                                                        const struct weft_sweep_hosts *hosts,
                                                        int32_t n, int64_t *limits,
                                                        struct weft_error *err);

/* Fills the limits of the host's memory, increasing. The first is the least with which any plan
 * fits the largest of the device's `n` limits, mostly 0. The last is a little more than what plans
 * by `planner` (if that searches, by greedy) have there without a limit, at those of the device's
 * limits at which they are faster so. If they are faster at none, one limit is left. The session is
 * staged, and stays as it is. */
WEFT_MUST_USE enum weft_status weft_sweep_choose_hosts(const struct weft_session *session,
                                                       const char *planner, const int64_t *limits,
                                                       int32_t n, struct weft_sweep_hosts *hosts,
                                                       struct weft_error *err);

/* The least memory of a rank that any plan of any of the config's periods takes, pages not counted;
 * with `host_bytes` (NULL: the config's) of the host's memory. The session is staged; its stages
 * and its limit of the host's memory change. */
WEFT_MUST_USE enum weft_status weft_sweep_find_least(struct weft_session *session,
                                                     const int64_t *host_bytes,
                                                     int64_t *least_bytes, struct weft_error *err);

/* The sizes of a list "24GiB,32GiB" that `flag` gives, increasing and each once: *n, of at most
 * `most`, none below `least_bytes`. WEFT_E_USAGE. */
WEFT_MUST_USE enum weft_status weft_sweep_read_limits(const char *flag, const char *list,
                                                      int64_t least_bytes, int32_t most,
                                                      int64_t *limits, int32_t *n,
                                                      struct weft_error *err);

/* Plans every point of the sweep, `jobs` at a time. `profile` is the path of the profile that all
 * plans are made with, or NULL for the config's. With `plans`, plans[curve][point] gets each plan's
 * document, empty where none fits; the caller inits and finishes the texts. First every point is
 * planned by itself. Then, by increasing limits, a point of ilp that is slower than one before it,
 * or without a plan, is planned again with that one's plan to start from: more memory is never
 * slower, and what is shown does not depend on `jobs`. A plan that `kept` has is not made again,
 * and each that is made is kept. WEFT_E_STOPPED after a signal; no process is left either way. */
WEFT_MUST_USE enum weft_status weft_sweep_plan(const struct weft_cli *cli, const char *profile,
                                               int32_t jobs, struct weft_kept *kept,
                                               struct weft_sweep *sweep, struct weft_text **plans,
                                               struct weft_error *err);

#endif
