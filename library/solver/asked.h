/* SPDX-License-Identifier: Apache-2.0 */
/* A solver that remembers the name in its answers, over all variants of a plan. */
#ifndef WEFT_LIBRARY_SOLVER_ASKED_H
#define WEFT_LIBRARY_SOLVER_ASKED_H

#include "plan/plan.h"
#include "scheduler/solver/lp.h"

struct weft_asked {
    const struct weft_solver *solver; /* borrowed */
    char name[WEFT_LP_NAME_BYTES];    /* empty: no answer had one */
};

/* A solver that asks asked->solver. `asked` must outlive it. */
struct weft_solver weft_asked_solver(struct weft_asked *asked);

/* Names the solver in the plan: another solver may find another of several optimal points. */
WEFT_MUST_USE enum weft_status weft_asked_note(const struct weft_asked *asked,
                                               struct weft_plan *plan, struct weft_error *err);

#endif
