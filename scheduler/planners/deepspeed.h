/* DeepSpeed's rule for parameters and gradients, which others go on from. */
#ifndef WEFT_SCHEDULER_PLANNERS_DEEPSPEED_H
#define WEFT_SCHEDULER_PLANNERS_DEEPSPEED_H

#include "scheduler/planners/rule.h"

/* In elements: values[0] a prefetch, values[1] live at most, values[2] distance of reuse. */
extern const struct weft_setting weft_deepspeed_settings[];
/* zero-offload's, and twin-flow's, which is published for stage 3. values[0]: the stage of ZeRO, 2
 * or 3, of which they have parameters and gradients. */
extern const struct weft_setting weft_zero_offload_settings[], weft_twin_flow_settings[];

struct weft_deepspeed_use;

/* A rule at work, of which the draft owns the memory. */
struct weft_deepspeed {
    struct weft_draft *draft;
    const int64_t *values;
    struct weft_deepspeed_use *uses;
    int32_t n_uses;
    int32_t *left; /* by position in the list of gathers: blocks not yet launched */
    int32_t ahead; /* item of a gather, of which a block is launched in fill; -1: none */
};

/* Policies; then, once they are chosen, gathers and reductions. */
WEFT_MUST_USE enum weft_status weft_deepspeed_choose(struct weft_draft *draft,
                                                     const int64_t *values,
                                                     struct weft_deepspeed *out,
                                                     struct weft_error *err);
void weft_deepspeed_place(struct weft_deepspeed *deepspeed);

#endif
