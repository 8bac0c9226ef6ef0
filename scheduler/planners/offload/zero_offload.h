/* SPDX-License-Identifier: Apache-2.0 */
/* ZeRO-Offload's rule. Twin-Flow builds on it, and keeps a share of the state on the device. */
#ifndef WEFT_SCHEDULER_PLANNERS_OFFLOAD_ZERO_OFFLOAD_H
#define WEFT_SCHEDULER_PLANNERS_OFFLOAD_ZERO_OFFLOAD_H

#include "scheduler/planners/deepspeed.h"

/* A rule at work. The draft owns its memory. */
struct weft_zero_offload {
    struct weft_draft *draft;
    int64_t stage;
    struct weft_deepspeed deepspeed; /* of stage 3 */
};

/* Chooses the stage's policies, with all state on the device. */
WEFT_MUST_USE enum weft_status weft_zero_offload_choose(struct weft_draft *draft, int64_t stage,
                                                        struct weft_zero_offload *out,
                                                        struct weft_error *err);
/* Places the items of these policies, and the updates of all units that the host updates. */
void weft_zero_offload_place(struct weft_zero_offload *run);

#endif
