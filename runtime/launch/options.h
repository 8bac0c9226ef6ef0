/* SPDX-License-Identifier: Apache-2.0 */
/* The options of a launch. */
#ifndef WEFT_RUNTIME_LAUNCH_OPTIONS_H
#define WEFT_RUNTIME_LAUNCH_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/launch/stop.h"

enum { WEFT_LAUNCH_MOST_RANKS = 1024 };

struct weft_launch_options {
    int32_t ranks;        /* 1 to WEFT_LAUNCH_MOST_RANKS */
    const char *path;     /* of the program; NULL: this one */
    char *const *argv;    /* of every rank, from argv[0], NULL at the end */
    size_t control_bytes; /* weft_comm_control_bytes(ranks) */
    const int *fds;       /* [n_fds] passed to every rank under the same numbers, besides 0, 1, 2 */
    int32_t n_fds;
    /* [n_environment] "NAME=value", added to this process's environment. */
    const char *const *environment;
    int32_t n_environment;
    int64_t threads;       /* compute threads of a rank; 0: cores / ranks */
    int64_t stop_grace_ns; /* of the request, if `stop` is NULL; 0: WEFT_STOP_GRACE_NS */
    /* The stop request of a caller with handlers that use it before and after. May be NULL. */
    struct weft_stop *stop;
    int64_t hang_ns; /* time that all running ranks may be stopped by signals; 0: no limit */
    void (*look)(void *look_context); /* called about ten times a second meanwhile; or NULL */
    void *look_context;
};

/* Variables that make an OpenMP runtime bind threads to cores. All ranks would bind to the same
 * cores, so they start with binding off. NULL at the end. */
extern const char *const weft_binding_variables[];

#endif
