/* Settings of DeepCompile's rule for the optimizer's state. */
#ifndef WEFT_SCHEDULER_PLANNERS_OFFLOAD_DEEPCOMPILE_OFFLOAD_H
#define WEFT_SCHEDULER_PLANNERS_OFFLOAD_DEEPCOMPILE_OFFLOAD_H

#include "scheduler/digest/planner.h"

/* values[0]: percent of the limit within which state stays; values[1]: percent within which gathers
 * are then moved ahead, 0: on demand; values[2]: whether backward asks for room too. */
extern const struct weft_setting weft_deepcompile_offload_settings[];

#endif
