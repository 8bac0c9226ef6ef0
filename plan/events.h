/* SPDX-License-Identifier: Apache-2.0 */
/* A host that runs ahead of its device, as FSDP2's on a GPU, queues a gather long before compute
 * reaches the hook that launches it. The gather begins when its stream has passed the events that
 * were recorded before the launch. FSDP2's streams of gathers wait (PyTorch 2.15):
 *
 *     at the start of each forward      for compute
 *     in forward, at a copy-out         for the copy-out before it
 *     at the end of forward             for its last copy-out
 *     in backward, at a copy-out        for it
 *
 * A copy-out comes directly before the compute that uses the gather. So a gather may
 * begin with the compute of a slot up to its launch: in forward a unit's own gather waits for the
 * copy-out of the unit before the last one. A layer may stop the host until its forward is
 * computed; later launches begin after that. Memory follows the host's order, so it follows
 * launches. Reductions wait for the gradient, as their launch does. */
#ifndef WEFT_PLAN_EVENTS_H
#define WEFT_PLAN_EVENTS_H

#include "plan/plan.h"

/* Words of scratch that weft_events_find needs. */
static inline size_t weft_events_words(const struct weft_problem *problem)
{
    return 2 * (size_t)problem->n_slots;
}

/* Fills begins [n_placements]: each block may begin at the start of that slot, if the blocks ahead
 * of it on its lane are complete: a gather at its events, a reduction at its launch.
 * The problem's target runs ahead. */
void weft_events_find(const struct weft_plan *plan, int64_t *scratch, int64_t *begins);

#endif
