/* SPDX-License-Identifier: Apache-2.0 */
/* Plans as another runtime runs them (report/export/fsdp2_run.h). */
#ifndef WEFT_CLI_STUDY_RUN_AS_H
#define WEFT_CLI_STUDY_RUN_AS_H

#include "cli/command.h"
#include "library/session.h"
#include "report/export/fsdp2.h"

struct weft_run_as {
    struct weft_session session; /* has the problem of the run, if it is not the plan's own */
    struct weft_problem own;     /* a foreign plan's problem with the target of --as; borrows all */
    struct weft_plan *plan;      /* the run; borrows its problem */
};

/* Reads --config with the limit of a plan. */
WEFT_MUST_USE enum weft_status weft_run_as_open(const struct weft_cli *cli,
                                                const struct weft_problem *planned,
                                                struct weft_session *session,
                                                struct weft_error *err);

/* Checks that a plan's problem is that of --config, with the flags as given and the plan's limit.
 * WEFT_E_USAGE without times; WEFT_E_DATA: the problems differ. */
WEFT_MUST_USE enum weft_status weft_run_as_check_config(const struct weft_cli *cli,
                                                        const struct weft_problem *planned,
                                                        struct weft_error *err);

/* After open: stages the first variant with the plan's micro-steps and rounds, and with
 * `more_inputs` more inputs of reductions. WEFT_E_DATA if there is none. */
WEFT_MUST_USE enum weft_status weft_run_as_stage(struct weft_session *session,
                                                 const struct weft_problem *planned,
                                                 int32_t more_inputs, struct weft_error *err);

/* Runs an exported plan as FSDP2 does. A plan for another target needs --config, which makes
 * FSDP2's problem of the same units under the plan's limit. WEFT_E_USAGE without it; WEFT_E_DATA:
 * FSDP2 cannot run the plan, or it is not the config's. The caller finishes `out` before `fsdp2`,
 * also after a failure. */
WEFT_MUST_USE enum weft_status weft_run_as_fsdp2(const struct weft_cli *cli,
                                                 const struct weft_fsdp2 *fsdp2,
                                                 struct weft_run_as *out, struct weft_error *err);
void weft_run_as_finish(struct weft_run_as *run);

/* WEFT_E_INFEASIBLE with both figures and the slot if the run holds more than its limit. */
WEFT_MUST_USE enum weft_status weft_run_as_check(const struct weft_run_as *run, const char *source,
                                                 struct weft_error *err);

#endif
