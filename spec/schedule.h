/* SPDX-License-Identifier: Apache-2.0 */
/* The learning rate's schedule, and its length. */
#ifndef WEFT_SPEC_SCHEDULE_H
#define WEFT_SPEC_SCHEDULE_H

#include "spec/config.h"

enum weft_lr_schedule {
    WEFT_LR_CONSTANT,
    WEFT_LR_COSINE,
    WEFT_LR_LINEAR,
    WEFT_LR_WSD, /* warm-up, stable, decay (Hu et al. 2024) */
    WEFT_LR_SCHEDULE_COUNT
};

/* Steps of the whole schedule of the learning rate. */
static inline int64_t weft_train_schedule_steps(const struct weft_train *train)
{
    return train->lr_schedule.steps > 0 ? train->lr_schedule.steps : train->steps;
}

#endif
