/* SPDX-License-Identifier: Apache-2.0 */
/* Plans for several numbers of ranks at once. */
#ifndef WEFT_CLI_STUDY_RANK_PLANS_H
#define WEFT_CLI_STUDY_RANK_PLANS_H

#include "cli/command.h"
#include "library/session.h"

/* Stages a session with a profile: the given one, or measured first. */
typedef enum weft_status weft_stage_fn(const struct weft_cli *cli, struct weft_session *session,
                                       struct weft_error *err);

/* Plans cli->ranks to cli->last_ranks ranks. All share the batch that the config has on its own
 * ranks. Prints a table, and with -o DIR writes DIR/plans/M.json for M ranks. A number without a
 * plan is a row with the reason. WEFT_E_INFEASIBLE if none has a plan. */
WEFT_MUST_USE enum weft_status weft_rank_plans_run(const struct weft_cli *cli, weft_stage_fn *stage,
                                                   struct weft_error *err);

#endif
