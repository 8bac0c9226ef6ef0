/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of ranks. Nodes have equal numbers of consecutive ranks. */
#ifndef WEFT_BASE_RANK_GROUP_H
#define WEFT_BASE_RANK_GROUP_H

/* The ranks of a collective, or the ranks that share a unit's elements: all; the ranks of this
 * rank's node; or the ranks that have this rank's place in their nodes. */
enum weft_rank_group {
    WEFT_GROUP_ALL,
    WEFT_GROUP_NODE,
    WEFT_GROUP_ACROSS,
    WEFT_GROUP_COUNT, /* of groups with a communicator */
    /* OWNER: all ranks, and one has all elements. NONE: each rank has all elements. */
    WEFT_GROUP_OWNER = WEFT_GROUP_COUNT,
    WEFT_GROUP_NONE
};

#endif
