/* SPDX-License-Identifier: Apache-2.0 */
#include "library/solver/solve_text.h"

#include <stdlib.h>
#include <string.h>

static enum weft_status solve_as_text(void *context, const struct weft_lp *lp,
                                      const struct weft_lp_limits *limits, struct weft_pool *pool,
                                      struct weft_lp_result *result, struct weft_error *err)
{
    const struct weft_text_solver *solver = context;
    struct weft_text question;
    char *answer = NULL;
    weft_text_init(&question);
    weft_lp_write(lp, limits, &question);
    enum weft_status status =
        weft_text_ok(&question) ? WEFT_OK : weft_fail_memory(err, "the solver's question");
    if (status == WEFT_OK)
        status = solver->solve(solver->context, weft_text_chars(&question), question.length,
                               &answer, err);
    weft_text_finish(&question);
    if (status == WEFT_OK && answer == NULL)
        status = weft_fail(err, WEFT_E_INTERNAL, "gave no answer");
    if (status == WEFT_OK)
        status = weft_lp_result_parse(answer, strlen(answer), lp, pool, result, err);
    free(answer);
    return status;
}

struct weft_solver weft_solver_of_text(struct weft_text_solver *solver)
{
    return (struct weft_solver){.solve = solver->solve == NULL ? NULL : solve_as_text,
                                .context = solver};
}
