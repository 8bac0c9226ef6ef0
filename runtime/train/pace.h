/* SPDX-License-Identifier: Apache-2.0 */
/* Pace compares the compute time of ranks, and the links between their hosts. Every collective
 * waits for the slowest rank, so no waiting time shows which one is slow. A rank that needs several
 * times as long as the others is named, and so is a slow link. A quota may stop a rank now and then
 * while most of its steps are fast, so sums over a second or more are compared. */
#ifndef WEFT_RUNTIME_TRAIN_PACE_H
#define WEFT_RUNTIME_TRAIN_PACE_H

#include <stdint.h>

#include "base/status.h"
#include "runtime/comm/comm.h"
#include "runtime/train/links.h"

enum { WEFT_PACE_STEPS = 16, WEFT_PACE_FACTOR = 4 };
#define WEFT_PACE_NS INT64_C(1000000000)

struct weft_pace {
    int64_t least_ns;       /* least length of a window */
    int32_t ranks_per_node; /* ranks of a node share a host */
    int64_t planned_ns;     /* of a step's collectives, by the plan; 0: not measured before */
    int64_t steps;          /* noted in all */
    bool due;               /* ranks exchange their sums when they meet next */
    int64_t start_ns;       /* of the window */
    int64_t window_steps;   /* in the window */
    int64_t compute_ns;     /* in the window */
    int32_t suspect;        /* of the last window; -1: none */
    int64_t warn_after;     /* step of the next warning; the distance grows */
    struct weft_link_finding suspected_link; /* one fine window does not clear it */
    bool was_fine;
    int64_t warn_links_after;
    struct weft_comm_traffic *traffic; /* [ranks], of the window */
    int64_t moving_ns;
};

/* The conclusions of a window; the same on all ranks. */
struct weft_pace_finding {
    int32_t slow; /* a rank; -1: none */
    double times; /* its compute, of the others' */
    struct weft_link_finding link;
};

/* A window has a multiple of WEFT_PACE_STEPS steps, and lasts `least_ns` or more. `ranks_per_node`
 * divides the ranks. weft_pace_finish frees what notes take. */
void weft_pace_init(struct weft_pace *pace, int64_t least_ns, int32_t ranks_per_node,
                    int64_t planned_ns);
void weft_pace_finish(struct weft_pace *pace);

/* Adds this rank's compute time of a step. Every WEFT_PACE_STEPS steps, or at the next step after
 * which all ranks meet, they exchange their sums (collective). A rank is slow if its sum is
 * WEFT_PACE_FACTOR times the others' median in two successive windows. A link is slow if two of
 * three windows agree on it (links.h). */
WEFT_MUST_USE enum weft_status weft_pace_note(struct weft_pace *pace, struct weft_comm *comm,
                                              int64_t compute_ns, bool meets,
                                              struct weft_pace_finding *out,
                                              struct weft_error *err);

/* Around an evaluation or an average, which are not in the plan's step: `pause` takes the traffic
 * before it into the window, and `go_on` leaves out what came since. */
WEFT_MUST_USE enum weft_status weft_pace_pause(struct weft_pace *pace, struct weft_comm *comm,
                                               struct weft_error *err);
WEFT_MUST_USE enum weft_status weft_pace_go_on(struct weft_comm *comm, struct weft_error *err);

#endif
