/* SPDX-License-Identifier: Apache-2.0 */
/* A watchdog is a thread that checks its rank's pending work. It looks for overdue work, missing
 * peers, and ranks that issued other operations. If it finds one, it sets a word. The issuing
 * thread reads the word and ends the work, because it alone may call NCCL. The watchdog calls
 * neither NCCL nor CUDA: the stream writes its progress to two words.
 */
#ifndef WEFT_RUNTIME_COMM_NCCL_WATCHDOG_H
#define WEFT_RUNTIME_COMM_NCCL_WATCHDOG_H

#include "runtime/comm/nccl/rings.h"

struct weft_nccl_watchdog;

/* The latest operation that the stream has started, and that it has done, modulo 2^32. */
struct weft_nccl_progress {
    _Atomic uint32_t started, done;
};

struct weft_nccl_watchdog_options {
    const struct weft_comm *control; /* "local" */
    const struct weft_nccl_rings *rings;
    const struct weft_nccl_progress *progress;
    int64_t timeout_ns;
    _Atomic uint32_t *given; /* set to 1 by a finding */
};

WEFT_MUST_USE enum weft_status weft_nccl_watchdog_start(
    const struct weft_nccl_watchdog_options *options, struct weft_nccl_watchdog **out,
    struct weft_error *err);
void weft_nccl_watchdog_stop(struct weft_nccl_watchdog *watchdog); /* accepts NULL */

/* The finding as an error; WEFT_OK if there is none. */
enum weft_status weft_nccl_watchdog_found(struct weft_nccl_watchdog *watchdog,
                                          struct weft_error *err);

/* Explains work that failed with *why. The rings may show a rank and an operation that differ.
 * Returns WEFT_E_DISAGREE if ranks issued different operations, otherwise the status of `why`. */
enum weft_status weft_nccl_explain(const struct weft_nccl_rings *rings,
                                   const struct weft_error *why, struct weft_error *err);
/* Lets the other ranks end with the same error if it concerns all ranks: a hang, or a difference.
 * Call it before they can see that this rank has given up. */
void weft_nccl_tell_why(const struct weft_nccl_rings *rings, const struct weft_error *why);

#endif
