/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime that runs the plans of a problem, and what it launches. */
#ifndef WEFT_PROBLEM_TARGET_H
#define WEFT_PROBLEM_TARGET_H

#include <stdbool.h>

#include "problem/problem.h"
#include "spec/target.h"

const struct weft_target *weft_problem_target(const struct weft_problem *problem);

/* Marks the slots in which a target that launches in order launches gathers: `fill`, the first
 * ones of later micro-steps, and those in which a unit begins; all slots for another target.
 * `hooks` has a place for each slot. */
void weft_problem_hooks(const struct weft_problem *problem, bool *hooks);

/* True if a gather cannot be launched in its window, and its use launches it. The window is in an
 * earlier micro-step than the use: a target that launches in order gathers for a forward in that
 * forward. Or the use is the first backward slot, of a unit that the slot before still reads. */
bool weft_problem_must_block(const struct weft_problem *problem, const struct weft_item *item);

#endif
