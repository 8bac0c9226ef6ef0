/* SPDX-License-Identifier: Apache-2.0 */
/* Branches of a communicator. */
#ifndef WEFT_RUNTIME_COMM_BRANCH_H
#define WEFT_RUNTIME_COMM_BRANCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/text.h"
#include "runtime/comm/group.h"

struct weft_comm;

/* A branch is a communicator of its own for a lane and a group. It has its own barriers, counts and
 * last calls, so its collectives may run next to those of other branches, on another stream. It
 * works on the same arena. Cancelling a communicator or its branch cancels all.
 *
 * Opens the branch of a lane (its name) and a group, or returns it if it is open. All ranks must
 * call it in the same order, from the thread that maps the arena. `comm` owns the branch, whose
 * rank and ranks are those of the group. WEFT_E_ENVIRONMENT if the back end has no branches,
 * WEFT_E_INTERNAL if there are too many. */
WEFT_MUST_USE enum weft_status weft_comm_branch(struct weft_comm *comm, const char *lane,
                                                enum weft_rank_group group, struct weft_comm **out,
                                                struct weft_error *err);

/* Opens a branch of the two ranks with this rank's place on its node and on one neighbour. On the
 * ring of nodes, round 0 has the pairs (0, 1), (2, 3) ..., and round 1 (1, 2), (3, 4) ... With an
 * odd number of nodes one node is alone in each round. */
WEFT_MUST_USE enum weft_status weft_comm_pair(struct weft_comm *comm, const char *lane,
                                              int32_t round, struct weft_comm **out,
                                              struct weft_error *err);

/* For comm.c, map.c and back ends. */

/* Number of a rank of the group among all ranks. */
int32_t weft_comm_rank_of_all(const struct weft_comm *comm, int32_t rank);

/* Appends " (lane across, group node)"; nothing for a communicator that is no branch. */
void weft_comm_show_place(const struct weft_comm *comm, struct weft_text *out);

/* Ends the branches' use of the arena. Returns false if a peer may still read its pages. */
bool weft_comm_detach_branches(struct weft_comm *comm);
void weft_comm_close_branches(struct weft_comm *comm);

#endif
