/* SPDX-License-Identifier: Apache-2.0 */
#include "library/solver/asked.h"

#include <stdio.h>

static enum weft_status ask_solver(void *context, const struct weft_lp *lp,
                                   const struct weft_lp_limits *limits, struct weft_pool *pool,
                                   struct weft_lp_result *result, struct weft_error *err)
{
    struct weft_asked *asked = context;
    WEFT_TRY(asked->solver->solve(asked->solver->context, lp, limits, pool, result, err));
    if (result->by) snprintf(asked->name, sizeof asked->name, "%s", result->by);
    return WEFT_OK;
}

static void release_solver(void *context)
{
    const struct weft_asked *asked = context;
    if (asked->solver->release) asked->solver->release(asked->solver->context);
}

struct weft_solver weft_asked_solver(struct weft_asked *asked)
{
    return (struct weft_solver){.solve = asked->solver->solve ? ask_solver : NULL,
                                .release = release_solver,
                                .context = asked};
}

enum weft_status weft_asked_note(const struct weft_asked *asked, struct weft_plan *plan,
                                 struct weft_error *err)
{
    if (asked->name[0] == '\0') return WEFT_OK;
    plan->solver_name = weft_pool_string(&plan->pool, asked->name);
    return plan->solver_name ? WEFT_OK : weft_fail_memory(err, "a plan");
}
