/* Settings of ByteScheduler's rule. */
#ifndef WEFT_SCHEDULER_PLANNERS_BYTESCHEDULER_H
#define WEFT_SCHEDULER_PLANNERS_BYTESCHEDULER_H

#include "scheduler/digest/planner.h"

/* values[0]: credit in elements; what is published for AllReduce first. */
extern const struct weft_setting weft_bytescheduler_settings[];

#endif
