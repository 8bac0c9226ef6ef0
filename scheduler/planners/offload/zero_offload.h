/* ZeRO-Offload's rule, of which others keep a share on the device. */
#ifndef WEFT_SCHEDULER_PLANNERS_OFFLOAD_ZERO_OFFLOAD_H
#define WEFT_SCHEDULER_PLANNERS_OFFLOAD_ZERO_OFFLOAD_H

#include "scheduler/planners/deepspeed.h"

/* A rule at work, of which the draft owns the memory. */
struct weft_zero_offload {
    struct weft_draft *draft;
    int64_t stage;
    struct weft_deepspeed deepspeed; /* of stage 3 */
};

/* The stage's policies, with all state on the device. */
WEFT_MUST_USE enum weft_status weft_zero_offload_choose(struct weft_draft *draft, int64_t stage,
                                                        struct weft_zero_offload *out,
                                                        struct weft_error *err);
/* Places what these policies need, and the updates of those units that are updated on the host. */
void weft_zero_offload_place(struct weft_zero_offload *run);

#endif
