/* Pace compares the compute time of ranks. Every collective waits for the slowest rank, so no
 * waiting time shows which one is slow. A rank that needs several times as long as the others is
 * named. A quota may stop a rank now and then while most of its steps are fast, so sums over a
 * second or more are compared. */
#ifndef WEFT_RUNTIME_TRAIN_PACE_H
#define WEFT_RUNTIME_TRAIN_PACE_H

#include <stdint.h>

#include "base/status.h"
#include "runtime/comm/comm.h"

enum { WEFT_PACE_STEPS = 16, WEFT_PACE_FACTOR = 4 };
#define WEFT_PACE_NS INT64_C(1000000000)

struct weft_pace {
    int64_t least_ns;   /* least length of a window */
    int64_t steps;      /* noted in all */
    int64_t start_ns;   /* of the window */
    int64_t compute_ns; /* in the window */
    int32_t suspect;    /* of the last window; -1: none */
    int64_t warn_after; /* step of the next warning; the distance grows */
};

/* A window has a multiple of WEFT_PACE_STEPS steps, and lasts `least_ns` or more. */
void weft_pace_init(struct weft_pace *pace, int64_t least_ns);

/* Adds this rank's compute time of a step. Every WEFT_PACE_STEPS steps the ranks exchange their
 * sums (collective). A rank is slow if its sum is WEFT_PACE_FACTOR times the others' median in two
 * successive windows. *slow is then its number and *times its factor, otherwise *slow is -1. The
 * same on all ranks. */
WEFT_MUST_USE enum weft_status weft_pace_note(struct weft_pace *pace, struct weft_comm *comm,
                                              int64_t compute_ns, int32_t *slow, double *times,
                                              struct weft_error *err);

#endif
