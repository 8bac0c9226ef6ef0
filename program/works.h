/* SPDX-License-Identifier: Apache-2.0 */
/* Steps in which an instruction works. Averages over nodes work in one period of several. */
#ifndef WEFT_PROGRAM_WORKS_H
#define WEFT_PROGRAM_WORKS_H

#include "program/program.h"

/* In place of a step: no update is pending, as in a run's first step, and after a save. Nothing is
 * carried into the period then, and nodes average nothing. */
enum { WEFT_STEP_OF_NO_UPDATE = -1 };

/* Whether an instruction works in a period with the updates of a step. In other periods it keeps
 * its place and takes no time. */
static inline bool weft_instruction_works(const struct weft_instruction *at, int64_t step)
{
    if (step == WEFT_STEP_OF_NO_UPDATE) return !at->carried && at->every == 0;
    return at->every == 0 || step % at->every == at->phase;
}

#endif
