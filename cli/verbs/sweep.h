/* The parts of `weft sweep`: what its flags ask for, which limits are swept, and the plans of all
 * points, made by processes of `weft plan` side by side. */
#ifndef WEFT_CLI_VERBS_SWEEP_H
#define WEFT_CLI_VERBS_SWEEP_H

#include "cli/command.h"
#include "library/session.h"
#include "report/sweep.h"

enum { WEFT_SWEEP_CURVES = 64, WEFT_SWEEP_POINTS = 1000, WEFT_SWEEP_NAME_BYTES = 96 };

/* Names, in the order of the curves. */
struct weft_sweep_planners {
    int32_t n;
    char names[WEFT_SWEEP_CURVES][WEFT_SWEEP_NAME_BYTES];
};

struct weft_sweep_options {
    int32_t points, jobs;
    bool to_all;
    struct weft_sweep_planners planners;
};

/* What the flags say, with defaults, checked before any work. WEFT_E_USAGE; WEFT_E_CREATE where a
 * file could not be written. */
WEFT_MUST_USE enum weft_status weft_sweep_read_options(const struct weft_cli *cli,
                                                       struct weft_sweep_options *options,
                                                       struct weft_error *err);

/* Fills `n` limits, increasing: from the least at which the leanest plan of any of the config's
 * periods fits in pages, to a little more than the least at which the greedy planner finds one no
 * slower than without a limit, in the period that is fastest then; with `all` (NULL: none) further,
 * to where each of those planners has a plan, but for rules that cannot be applied at any limit.
 * The session is staged; its period, its config's and its problem's limit are changed on the way.
 */
WEFT_MUST_USE enum weft_status weft_sweep_choose_limits(struct weft_session *session,
                                                        const struct weft_sweep_planners *all,
                                                        int32_t n, int64_t *limits,
                                                        struct weft_error *err);

/* The sizes of a list "24GiB,32GiB", increasing and each once; *n of at most WEFT_SWEEP_POINTS.
 * WEFT_E_USAGE. */
WEFT_MUST_USE enum weft_status weft_sweep_read_limits(const char *list, int64_t *limits, int32_t *n,
                                                      struct weft_error *err);

/* Plans every point of the sweep, `jobs` at a time. `profile` is the path of the profile that all
 * plans are made with, or NULL for the config's. With `plans`, plans[curve][point] gets each plan's
 * document, empty where none fits; the caller inits and finishes the texts. First every point is
 * planned by itself. Then, by increasing limit, a point of ilp that is slower than the one before
 * it, or without a plan, is planned again with that one's plan to start from: more memory is never
 * slower, and what is shown does not depend on `jobs`. WEFT_E_STOPPED after a signal; no process is
 * left either way. */
WEFT_MUST_USE enum weft_status weft_sweep_plan(const struct weft_cli *cli, const char *profile,
                                               int32_t jobs, struct weft_sweep *sweep,
                                               struct weft_text **plans, struct weft_error *err);

#endif
