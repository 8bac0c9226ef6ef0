/* Settings of DeepSpeed's rule. */
#ifndef WEFT_SCHEDULER_PLANNERS_DEEPSPEED_H
#define WEFT_SCHEDULER_PLANNERS_DEEPSPEED_H

#include "scheduler/digest/planner.h"

/* In elements: values[0] a prefetch, values[1] live at most, values[2] distance of reuse. */
extern const struct weft_setting weft_deepspeed_settings[];

#endif
