/* SPDX-License-Identifier: Apache-2.0 */
/* Starts one rank: its environment and its process. Private to runtime/launch. */
#ifndef WEFT_RUNTIME_LAUNCH_SPAWN_H
#define WEFT_RUNTIME_LAUNCH_SPAWN_H

#include <signal.h>
#include <sys/types.h>

#include "base/status.h"
#include "runtime/launch/options.h"

struct weft_spawn {
    const struct weft_launch_options *options;
    int control_fd;
    const int *arena_fds;    /* [ranks] */
    const sigset_t *signals; /* the mask of ranks at their start */
    int32_t threads;
};

/* Starts rank `rank` with fork and exec. *pid is a child of the calling thread, which must outlive
 * it. */
WEFT_MUST_USE enum weft_status weft_spawn_rank(const struct weft_spawn *spawn, int32_t rank,
                                               pid_t *pid, struct weft_error *err);

#endif
