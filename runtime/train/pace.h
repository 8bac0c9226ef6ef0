/* Pace: how long each rank computes. All ranks wait for the slowest one in every collective, so a
 * slow rank shows in no waiting time that names it; here ranks compare what they need by
 * themselves, and one that needs several times as long as the others is named. A rank that is kept
 * from its cores now and then (by a quota) computes most steps as fast as the others, so sums over
 * a second or more are compared. */
#ifndef WEFT_RUNTIME_TRAIN_PACE_H
#define WEFT_RUNTIME_TRAIN_PACE_H

#include <stdint.h>

#include "base/status.h"
#include "runtime/comm/comm.h"

enum { WEFT_PACE_STEPS = 16, WEFT_PACE_FACTOR = 4 };
#define WEFT_PACE_NS INT64_C(1000000000)

struct weft_pace {
    int64_t least_ns;   /* of a window */
    int64_t steps;      /* noted in all */
    int64_t start_ns;   /* of the window */
    int64_t compute_ns; /* in it */
    int32_t suspect;    /* of the last window, -1: none */
    int64_t warn_after; /* steps: a warning is repeated ever more rarely */
};

/* Windows have a multiple of WEFT_PACE_STEPS steps, and last `least_ns` or more. */
void weft_pace_init(struct weft_pace *pace, int64_t least_ns);

/* Notes this rank's compute time of a step; every WEFT_PACE_STEPS steps ranks exchange their sums
 * (collective). A rank whose sum is WEFT_PACE_FACTOR times the median of the others, in two windows
 * in succession, is the *slow one, with *times its factor; else *slow is -1. The same on all
 * ranks. */
WEFT_MUST_USE enum weft_status weft_pace_note(struct weft_pace *pace, struct weft_comm *comm,
                                              int64_t compute_ns, int32_t *slow, double *times,
                                              struct weft_error *err);

#endif
