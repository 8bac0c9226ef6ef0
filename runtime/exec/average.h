/* SPDX-License-Identifier: Apache-2.0 */
/* Averages of parameters over nodes, which step on their own in between (local SGD; Stich 2019,
 * arXiv:1805.09767). Then the executor's communicator is that of the node: it gathers, reduces and
 * agrees among the node's ranks. An average is made of instructions, in one period of
 * train.across.every. Private to this folder. */
#ifndef WEFT_RUNTIME_EXEC_AVERAGE_H
#define WEFT_RUNTIME_EXEC_AVERAGE_H

#include <stdbool.h>

#include "base/hash.h"
#include "runtime/exec/options.h"
#include "runtime/exec/parts.h"

struct exec_average;

/* A block of an average over nodes: the slices that it sums or gathers, and the unit with the
 * pieces of the block alone. */
struct exec_averaged {
    struct weft_comm_block block;
    const struct weft_nn_unit *unit;
};

/* Binds a block of an average: its slices of this rank, or under dp of all ranks of the node, and
 * the pieces of the unit there. */
WEFT_MUST_USE enum weft_status weft_exec_bind_average(struct weft_exec *exec,
                                                      const struct weft_instruction *at,
                                                      const struct exec_averaged **out,
                                                      struct weft_error *err);

/* Gossip: the communicator of this node and its neighbour of a round, 0 or 1; NULL: averages are of
 * all nodes. */
struct weft_comm *weft_exec_average_pair(const struct weft_exec *exec, int32_t round);

/* AVERAGE: the ranks of one place in all nodes sum a block of their fp32 slices in node order, and
 * divide by the nodes. Moments stay. With an outer optimizer the averages make
 * its step (runtime/nn/units.h). AVERAGE_GATHER: ranks of the node share their averages. */
void weft_exec_push_average(struct weft_exec *exec, const struct exec_bound *bound);

/* Opens the communicators if the plan has averages, and lets exec->comm be the node's. */
WEFT_MUST_USE enum weft_status weft_exec_average_create(struct weft_exec *exec,
                                                        struct weft_error *err);
void weft_exec_average_destroy(struct exec_average *average);

/* All of these do nothing if all ranks step together. */

/* Collective of the node; in a step in which nodes meet, or after which this node cannot go on, of
 * all. Then all ranks get the mean loss over all nodes, and fail or stop together. Nodes that wait
 * for another one's next meeting do so here. The norm and the clip coefficient stay the node's. */
WEFT_MUST_USE enum weft_status weft_exec_share_result(struct weft_exec *exec,
                                                      const struct weft_step_inputs *inputs,
                                                      struct weft_step_result *result,
                                                      struct weft_error *err);
/* Collective. *bad becomes true on all ranks if it is on one. */
WEFT_MUST_USE enum weft_status weft_exec_share_bad(struct weft_exec *exec, bool *bad,
                                                   struct weft_error *err);
/* Collective. *hash, of this node, becomes that of all nodes: the same if all are equal, otherwise
 * a hash of all in node order. */
WEFT_MUST_USE enum weft_status weft_exec_share_hash(struct weft_exec *exec, struct weft_hash *hash,
                                                    struct weft_error *err);
/* Collective. All ranks return the first failed rank's failure, with the text of `own`. */
WEFT_MUST_USE enum weft_status weft_exec_share_status(struct weft_exec *exec,
                                                      enum weft_status status,
                                                      const struct weft_error *own,
                                                      struct weft_error *err);

#endif
