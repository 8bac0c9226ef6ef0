/* SPDX-License-Identifier: Apache-2.0 */
/* The learning rate over the steps: a warm-up, then the schedule's way to its last rate, which
 * later steps keep. A schedule has train.lr_schedule.steps, otherwise train.steps. */
#ifndef WEFT_RUNTIME_TRAIN_SCHEDULE_H
#define WEFT_RUNTIME_TRAIN_SCHEDULE_H

#include <stdint.h>

#include "spec/config.h"

/* Learning rate of step 1, 2, ... */
double weft_train_lr(const struct weft_train *train, int64_t step);

/* Warns if the rate after `done` steps is not the rate that `before`, the settings of the
 * checkpoint `from`, give that step: tells both, and the key that keeps the old schedule if only
 * its length has changed. */
void weft_train_tell_rate(const struct weft_train *train, const struct weft_train *before,
                          int64_t done, const char *from);

/* Warns if the schedule does not fit in train.steps: the rate never reaches lr, or never falls as
 * it should. This is no error, because a few steps of a long run's config are a common trial. */
void weft_train_warn_of_lr(const struct weft_train *train);

#endif
