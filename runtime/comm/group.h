/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of ranks that have a communicator. */
#ifndef WEFT_RUNTIME_COMM_GROUP_H
#define WEFT_RUNTIME_COMM_GROUP_H

#include "base/rank_group.h"

/* "all", "node", "across" */
const char *weft_comm_group_name(enum weft_rank_group group);

enum { WEFT_COMM_MOST_BRANCHES = 5 /* of a communicator */, WEFT_COMM_LANE_BYTES = 16 };

#endif
