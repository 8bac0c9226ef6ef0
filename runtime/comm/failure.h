/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of a rank whose call cannot complete: one text for all back ends of which rank is late or
 * gone, and in which call. */
#ifndef WEFT_RUNTIME_COMM_FAILURE_H
#define WEFT_RUNTIME_COMM_FAILURE_H

#include "base/status.h"
#include "base/text.h"
#include "runtime/comm/backend.h"
#include "runtime/comm/job.h"

/* This rank's latest call. Ranks of the functions below are ranks of all, not of the branch. */
struct weft_comm_failing {
    const struct weft_comm *comm;
    const struct weft_comm_call *call; /* NULL: messages do not name it, as over NCCL */
    uint32_t calls;                    /* its number */
    struct weft_error *err;            /* gets the error */
};

/* Appends "all_gather (lane across), call 9". */
void weft_comm_show_call(const struct weft_comm_failing *failing, struct weft_text *out);

/* Appends "rank 3 (host a)", without a host's name "rank 3 (process 17)", or without both
 * "rank 3". `pid` is of the rank; 0: not known. */
void weft_comm_show_rank(const struct weft_comm *comm, int32_t rank, int32_t pid,
                         struct weft_text *out);

/* WEFT_E_LOST: the rank does not come any more; `how` is "has ended". Its latest calls are as in
 * weft_comm_call_show_recent; NULL: not known. */
enum weft_status weft_comm_fail_gone(const struct weft_comm_failing *failing, int32_t rank,
                                     int32_t pid, const char *how, uint32_t calls,
                                     const uint32_t *kinds);

/* WEFT_E_LOST: this rank itself has given up. */
enum weft_status weft_comm_fail_cancelled(const struct weft_comm_failing *failing);

/* WEFT_E_HANG after a wait. `late` names the ranks that did not come. NULL: other text does. */
enum weft_status weft_comm_fail_late(const struct weft_comm_failing *failing, int64_t waited_ns,
                                     const struct weft_text *late);

/* WEFT_E_DISAGREE: the rank has made another call. */
enum weft_status weft_comm_fail_differs(const struct weft_comm_failing *failing, int32_t rank,
                                        const struct weft_comm_call *other);

#endif
