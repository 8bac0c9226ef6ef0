/* SPDX-License-Identifier: Apache-2.0 */
/* DeepSpeed's rule for parameters and gradients. Other rules build on it. */
#ifndef WEFT_SCHEDULER_PLANNERS_DEEPSPEED_H
#define WEFT_SCHEDULER_PLANNERS_DEEPSPEED_H

#include "scheduler/planners/rule.h"

/* In elements: smaller parameters are never released, and a reduction's bucket. */
enum { WEFT_DEEPSPEED_PERSISTENT = 100000, WEFT_DEEPSPEED_BUCKET = 500000000 };

/* In elements: values[0] is a prefetch, values[1] the most live ones, values[2] the distance of
 * reuse. */
extern const struct weft_setting weft_deepspeed_settings[];
/* Settings of zero-offload, and of twin-flow, which is published for stage 3. values[0]: the stage
 * of ZeRO, 2 or 3, that places parameters and gradients. */
extern const struct weft_setting weft_zero_offload_settings[], weft_twin_flow_settings[];

struct weft_deepspeed_use;

/* A rule at work. The draft owns its memory. */
struct weft_deepspeed {
    struct weft_draft *draft;
    const int64_t *values;
    struct weft_deepspeed_use *uses;
    int32_t n_uses;
    int32_t *left; /* by position in the list of gathers: blocks not yet launched */
    int32_t ahead; /* item of a gather with a block that is launched in the fill; -1: none */
};

/* weft_deepspeed_choose chooses policies. Afterwards weft_deepspeed_place places gathers and
 * reductions. */
WEFT_MUST_USE enum weft_status weft_deepspeed_choose(struct weft_draft *draft,
                                                     const int64_t *values,
                                                     struct weft_deepspeed *out,
                                                     struct weft_error *err);
void weft_deepspeed_place(struct weft_deepspeed *deepspeed);

#endif
