/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of ranks. Nodes have equal numbers of consecutive ranks. */
#ifndef WEFT_RUNTIME_COMM_GROUP_H
#define WEFT_RUNTIME_COMM_GROUP_H

/* The ranks of a collective: all; the ranks of this rank's node; or the ranks that have this rank's
 * place in their nodes. */
enum weft_comm_group { WEFT_GROUP_ALL, WEFT_GROUP_NODE, WEFT_GROUP_ACROSS, WEFT_GROUP_COUNT };
/* "all", "node", "across" */
const char *weft_comm_group_name(enum weft_comm_group group);

enum { WEFT_COMM_MOST_BRANCHES = 5 /* of a communicator */, WEFT_COMM_LANE_BYTES = 16 };

#endif
