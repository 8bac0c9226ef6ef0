/* A watchdog is a thread that looks at what its rank has under way: whether it is overdue, whether
 * a peer is gone, whether ranks have issued something else. It finds that out and sets a word;
 * whoever issues sees the word, and ends the work, for it alone may call NCCL. The watchdog calls
 * neither NCCL nor CUDA: how far a stream has come it reads from two words that the stream writes.
 */
#ifndef WEFT_RUNTIME_COMM_NCCL_WATCHDOG_H
#define WEFT_RUNTIME_COMM_NCCL_WATCHDOG_H

#include "runtime/comm/nccl/rings.h"

struct weft_nccl_watchdog;

/* The latest operation that the stream has come to, and that it has done; modulo 2^32. */
struct weft_nccl_progress {
    _Atomic uint32_t started, done;
};

struct weft_nccl_watchdog_options {
    const struct weft_comm *control; /* "local" */
    const struct weft_nccl_rings *rings;
    const struct weft_nccl_progress *progress;
    int64_t timeout_ns;
    _Atomic uint32_t *given; /* becomes 1 when it has found something */
};

WEFT_MUST_USE enum weft_status weft_nccl_watchdog_start(
    const struct weft_nccl_watchdog_options *options, struct weft_nccl_watchdog **out,
    struct weft_error *err);
void weft_nccl_watchdog_stop(struct weft_nccl_watchdog *watchdog); /* accepts NULL */

/* What it has found; WEFT_OK: nothing. */
enum weft_status weft_nccl_watchdog_found(struct weft_nccl_watchdog *watchdog,
                                          struct weft_error *err);

/* What is to be said of work that failed with *why: which rank and operation is not like the
 * others, as far as the rings tell. WEFT_E_DISAGREE where ranks issued different operations, else
 * why's status. */
enum weft_status weft_nccl_explain(const struct weft_nccl_rings *rings,
                                   const struct weft_error *why, struct weft_error *err);
/* Lets the other ranks end with the same where it is no more of this rank than of any other: that
 * it waited too long, or that ranks differ. Before they can see that it has given up. */
void weft_nccl_tell_why(const struct weft_nccl_rings *rings, const struct weft_error *why);

#endif
