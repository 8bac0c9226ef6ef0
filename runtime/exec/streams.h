/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes while a program runs. Each lane with work has a stream, in exec->streams. Each lane of the
 * network has a communicator too: the first one the caller's, and others a branch of it. Private to
 * this folder. */
#ifndef WEFT_RUNTIME_EXEC_STREAMS_H
#define WEFT_RUNTIME_EXEC_STREAMS_H

#include <stdint.h>

#include "base/lanes.h"
#include "base/rank_group.h"
#include "base/status.h"

struct weft_comm;
struct weft_exec;

/* A lane, for the call that tells of its stream's failure. */
struct exec_watched {
    struct weft_exec *exec;
    int32_t lane;
};

struct exec_lanes {
    /* By lane and group; NULL: no collective of the group is on the lane. All ranks that step
     * together are one group. */
    struct weft_comm *comms[WEFT_MOST_LANES][WEFT_GROUP_COUNT];
    struct exec_watched watched[WEFT_MOST_LANES];
    _Atomic int32_t failed; /* lane of the network that failed first; 0: none */
};

/* lanes.c: opens the branches and creates the streams of the program's lanes. A stream that fails
 * stops the others. After a failure weft_exec_lanes_close is still called. */
WEFT_MUST_USE enum weft_status weft_exec_lanes_open(struct weft_exec *exec, struct weft_error *err);
void weft_exec_lanes_close(struct weft_exec *exec);
/* Waits for all streams. Returns the error that caused the others. */
WEFT_MUST_USE enum weft_status weft_exec_synchronise(struct weft_exec *exec,
                                                     struct weft_error *err);

#endif
