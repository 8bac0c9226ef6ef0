/* SPDX-License-Identifier: Apache-2.0 */
/* A caller's solver that uses weft-solve's protocol (scheduler/solver/lp.h) as text. */
#ifndef WEFT_LIBRARY_SOLVER_SOLVE_TEXT_H
#define WEFT_LIBRARY_SOLVER_SOLVE_TEXT_H

#include "include/weft.h"
#include "scheduler/solver/lp.h"

struct weft_text_solver {
    weft_solve_text_fn *solve; /* NULL: no solver */
    void *context;
};

/* The result refers to `solver`, which must outlive it. */
struct weft_solver weft_solver_of_text(struct weft_text_solver *solver);

#endif
