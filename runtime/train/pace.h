/* Pace: how long each rank computes in a step. All ranks wait for the slowest one in every
 * collective, so a slow rank shows in no waiting time that names it; here ranks compare what they
 * need by themselves, and one that needs several times as long as the others is named. */
#ifndef WEFT_RUNTIME_TRAIN_PACE_H
#define WEFT_RUNTIME_TRAIN_PACE_H

#include <stdint.h>

#include "base/status.h"
#include "runtime/comm/comm.h"

enum { WEFT_PACE_STEPS = 16, WEFT_PACE_FACTOR = 4 };

struct weft_pace {
    int64_t compute_ns[WEFT_PACE_STEPS]; /* of the latest steps */
    int64_t noted;
    int32_t suspect;    /* of the last comparison, -1: none */
    int64_t warn_after; /* steps: a warning is repeated ever more rarely */
};

void weft_pace_init(struct weft_pace *pace);

/* Notes this rank's compute time of a step; every WEFT_PACE_STEPS steps ranks exchange the medians
 * (collective). A rank whose median is WEFT_PACE_FACTOR times the median of the others, twice in
 * succession, is the *slow one, with *times its factor; else *slow is -1. The same on all ranks. */
WEFT_MUST_USE enum weft_status weft_pace_note(struct weft_pace *pace, struct weft_comm *comm,
                                              int64_t compute_ns, int32_t *slow, double *times,
                                              struct weft_error *err);

#endif
