/* SPDX-License-Identifier: Apache-2.0 */
/* The real solver for tests: runs the weft-solve of this build, named by $WEFT_SOLVE. */
#ifndef WEFT_TESTS_SCHEDULER_SOLVER_H
#define WEFT_TESTS_SCHEDULER_SOLVER_H

#include "scheduler/solver/lp.h"

/* True when there is one; a test that needs it calls cr_skip when not. */
bool test_solver_exists(void);
struct weft_solver test_solver(void);

#endif
