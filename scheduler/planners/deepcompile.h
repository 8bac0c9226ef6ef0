/* Settings of DeepCompile's rule. */
#ifndef WEFT_SCHEDULER_PLANNERS_DEEPCOMPILE_H
#define WEFT_SCHEDULER_PLANNERS_DEEPCOMPILE_H

#include "scheduler/digest/planner.h"

/* values[0]: percent of the limit that it uses; values[1], values[2]: whether it prefetches, and
 * whether it keeps units gathered. */
extern const struct weft_setting weft_deepcompile_settings[];

#endif
