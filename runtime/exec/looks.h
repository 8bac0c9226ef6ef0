/* SPDX-License-Identifier: Apache-2.0 */
/* culprit.c: finds the rank that went wrong, by looks for numbers that are not finite and by hashes
 * of each group's gradient. Private to this folder. */
#ifndef WEFT_RUNTIME_EXEC_LOOKS_H
#define WEFT_RUNTIME_EXEC_LOOKS_H

#include "runtime/exec/parts.h"

struct weft_culprit; /* exec.h */

/* Whether a rank has found a bad gradient of the applied step, alone or in the sum;
 * false unless the period is rotated. `stop` comes from the mailbox. The same on all ranks. */
static inline bool weft_exec_is_bad(const struct weft_exec *exec, uint32_t stop)
{
    return exec->options.program->period.rotated && stop != 0;
}
/* Binds a look at the call's results; NULL if memory is short. */
const struct weft_nn_look *weft_exec_bind_look(struct weft_exec *exec,
                                               const struct weft_nn_call *call, bool backward);
/* Queues a look at the results of instruction i, if exec->looks. */
void weft_exec_push_look(struct weft_exec *exec, int32_t i);
/* Collective: compares the findings of all ranks, without another step. */
WEFT_MUST_USE enum weft_status weft_exec_compare_looks(struct weft_exec *exec,
                                                       struct weft_culprit *out,
                                                       struct weft_error *err);

/* Before a period's instructions, of a step or of the settle before it. */
void weft_exec_begin_groups(struct weft_exec *exec, int64_t step);
/* After all instructions of a table are bound: finds those that complete gradients of a group. */
WEFT_MUST_USE enum weft_status weft_exec_bind_groups(struct weft_exec *exec, int parity,
                                                     struct weft_error *err);
/* Tells options.on_layer of instruction i. */
void weft_exec_tell_layer(struct weft_exec *exec, int32_t i);
/* Queues the hashes and the sums of the gradients that instruction i has completed. */
void weft_exec_push_groups(struct weft_exec *exec, int32_t i);
/* The hashes of a whole step, from the mailbox of a period that was synchronised. */
void weft_exec_take_groups(struct weft_exec *exec, struct weft_step_result *result);

#endif
