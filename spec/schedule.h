/* SPDX-License-Identifier: Apache-2.0 */
/* The length of the learning rate's schedule. */
#ifndef WEFT_SPEC_SCHEDULE_H
#define WEFT_SPEC_SCHEDULE_H

#include "spec/config.h"

/* Steps of the whole schedule of the learning rate. */
static inline int64_t weft_train_schedule_steps(const struct weft_train *train)
{
    return train->lr_schedule.steps > 0 ? train->lr_schedule.steps : train->steps;
}

#endif
