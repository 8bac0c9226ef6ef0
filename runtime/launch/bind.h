/* To bind a rank is to keep it on cores of its own, so that no two ranks of a machine ever wait for
 * one core: an equal share of the cores that the process may use, which a cgroup's cpuset narrows
 * too. A "core" is what Linux schedules on; hardware threads of one core stand side by side, so
 * that ranks share a core only where there are more ranks than cores. What does not divide is
 * nobody's. */
#ifndef WEFT_RUNTIME_LAUNCH_BIND_H
#define WEFT_RUNTIME_LAUNCH_BIND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

enum { WEFT_BIND_WORDS = 16 }; /* of 64 cores each: what sched_setaffinity takes without more ado */

/* What a thread could use before it was bound. */
struct weft_binding {
    bool bound;
    uint64_t before[WEFT_BIND_WORDS];
};

/* WEFT_OK when this process may use a core for each of `threads` (0: one) threads of `ranks` ranks;
 * else WEFT_E_ENVIRONMENT. */
WEFT_MUST_USE enum weft_status weft_bind_check(int32_t ranks, int64_t threads,
                                               struct weft_error *err);

/* Binds the calling thread, and so all threads that it starts from here on, to the share of local
 * rank `rank` of `ranks`. All ranks must be allowed the same cores. Errors as weft_bind_check, and
 * WEFT_E_SYSTEM; *out is untouched then. */
WEFT_MUST_USE enum weft_status weft_bind(int32_t rank, int32_t ranks, int64_t threads,
                                         struct weft_binding *out, struct weft_error *err);
/* The calling thread may use again what it could before. Accepts {0}. Threads that were started
 * meanwhile stay where they are. */
void weft_unbind(struct weft_binding *binding);

/* A core and where it is; -1 where the system does not say. */
struct weft_core {
    int32_t package, core, number;
};

/* Sorts the cores by place. Those of local rank `rank` are [*n_own] from the one returned on. */
const struct weft_core *weft_bind_share(struct weft_core *cores, int32_t n, int32_t rank,
                                        int32_t ranks, int32_t *n_own);

#endif
