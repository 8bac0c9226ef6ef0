/* SPDX-License-Identifier: Apache-2.0 */
/* The early form of a problem is a relaxation for a target that runs ahead (plan/events.h). Gathers
 * may move from the first event that any plan lets them begin at: the event of their own launch, or
 * of the first hook of their window. They hold no bytes before their use, because memory follows
 * their launch and not their move. With several lanes a reduction may move from the backward slot
 * of its gradient: compute may wait for a gather after it, and the reduction does not. Launches
 * have no order.
 *
 * Each plan of the problem is one of the early form: every block moves as the events let it, within
 * its window, and is complete in time, and no row is higher. So a certificate of the early form
 * proves its bound for the problem, without a word of events in the proof. */
#ifndef WEFT_PROBLEM_EARLY_H
#define WEFT_PROBLEM_EARLY_H

#include "problem/problem.h"

/* Slots by events. */
struct weft_event_slots {
    int64_t *own; /* [n_slots]: the slot at which an own gather begins that is launched there */
    int64_t
        *list; /* [n_slots]: where a gather begins that a hook launches there for a later slot */
};

/* The events of a slot: it begins with the copy-out of a gather, and the host waits for its end. */
enum { WEFT_EVENT_COPIES = 1, WEFT_EVENT_SYNCS = 2 };

/* Fills both arrays. find(context, slot) returns the events of a slot; both arrays' places of the
 * slot are still as before. */
void weft_event_slots_find(const struct weft_problem *problem,
                           int (*find)(const void *context, int32_t slot), const void *context,
                           struct weft_event_slots *out);

/* True if the bounds of a problem are proven in its early form. */
bool weft_problem_is_early(const struct weft_problem *problem);

/* Makes the early form. It borrows from `problem` everything but items. The caller destroys it
 * first. WEFT_E_SYSTEM without memory. */
WEFT_MUST_USE enum weft_status weft_problem_early(const struct weft_problem *problem,
                                                  struct weft_problem **out,
                                                  struct weft_error *err);

#endif
