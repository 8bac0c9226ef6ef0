/* Starts one rank: its environment and its process. Private to runtime/launch. */
#ifndef WEFT_RUNTIME_LAUNCH_SPAWN_H
#define WEFT_RUNTIME_LAUNCH_SPAWN_H

#include <signal.h>
#include <sys/types.h>

#include "runtime/launch/launch.h"

/* Variables that the launcher sets and the rendezvous reads. */
#define WEFT_RANK_NAME       "RANK"
#define WEFT_WORLD_SIZE_NAME "WORLD_SIZE"
#define WEFT_LOCAL_RANK_NAME "LOCAL_RANK"
#define WEFT_CONTROL_FD_NAME "WEFT_CONTROL_FD"
#define WEFT_ARENA_FDS_NAME  "WEFT_ARENA_FDS"

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
