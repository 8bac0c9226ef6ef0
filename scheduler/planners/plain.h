/* Settings of plain planners that no other has. */
#ifndef WEFT_SCHEDULER_PLANNERS_PLAIN_H
#define WEFT_SCHEDULER_PLANNERS_PLAIN_H

#include "scheduler/digest/planner.h"

/* values[0]: units ahead; values[1]: whether all are kept behind forward. */
extern const struct weft_setting weft_fsdp2_settings[];

#endif
