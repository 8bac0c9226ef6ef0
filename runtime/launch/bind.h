/* SPDX-License-Identifier: Apache-2.0 */
/* Binding a rank keeps it on cores of its own, so no two ranks of a machine wait for the same core.
 * Each rank gets an equal share of the cores that the process may use; a cgroup's cpuset limits
 * them. A "core" is a unit of Linux's scheduling. Hardware threads of one core are neighbours in
 * the order, so ranks share a core only if there are more ranks than cores. The remainder stays
 * unused. */
#ifndef WEFT_RUNTIME_LAUNCH_BIND_H
#define WEFT_RUNTIME_LAUNCH_BIND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

enum { WEFT_BIND_WORDS = 128 }; /* of 64 cores each: 8,192, the most of any Linux kernel */

/* Cores that a thread could use before it was bound. */
struct weft_binding {
    bool bound;
    uint64_t before[WEFT_BIND_WORDS];
};

/* Returns WEFT_OK if this process may use a core for each thread: `ranks` times `threads` (0 means
 * 1). Otherwise WEFT_E_ENVIRONMENT. */
WEFT_MUST_USE enum weft_status weft_bind_check(int32_t ranks, int64_t threads,
                                               struct weft_error *err);

/* Binds the calling thread, and all threads that it starts later, to the share of local rank `rank`
 * of `ranks`. All ranks must be allowed the same cores. Errors of weft_bind_check, and
 * WEFT_E_SYSTEM; *out is untouched then. */
WEFT_MUST_USE enum weft_status weft_bind(int32_t rank, int32_t ranks, int64_t threads,
                                         struct weft_binding *out, struct weft_error *err);
/* Gives the calling thread its former cores again. Accepts {0}. Threads started meanwhile stay
 * bound. */
void weft_unbind(struct weft_binding *binding);

/* A core and its place; -1 if the system does not report it. */
struct weft_core {
    int32_t package, core, number;
};

/* Sorts the cores by place. Returns the first core of local rank `rank`, which gets *n_own cores
 * from there. */
const struct weft_core *weft_bind_share(struct weft_core *cores, int32_t n, int32_t rank,
                                        int32_t ranks, int32_t *n_own);

#endif
