/* SPDX-License-Identifier: Apache-2.0 */
/* A run's memory as the system counts it. The plan keeps arena, base and tiers within their limits.
 * Base was measured in another process or only given, so a run checks its real memory. */
#ifndef WEFT_RUNTIME_TRAIN_MEMORY_H
#define WEFT_RUNTIME_TRAIN_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "plan/plan.h"
#include "program/program.h"
#include "runtime/arena/arena.h"
#include "runtime/device/device.h"

struct weft_exec; /* in runtime/exec/exec.h */

/* A time or number of bytes that was not measured; such a loss or speed is NaN. In JSON both are
 * null. */
#define WEFT_UNMEASURED INT64_C(-1)

/* Bytes of one tier. The device has base, arena, and the disk's ring if it is there. */
struct weft_tier_use {
    int64_t planned_bytes;
    /* The most that this rank held. Unmeasured before the first look; 0 if the plan does not use
     * the tier. */
    int64_t measured_bytes;
};

/* Zero it before weft_run_memory_plan. */
struct weft_run_memory {
    struct weft_tier_use tiers[WEFT_LOCATION_COUNT]; /* by location */
    struct weft_tier_use outside;                    /* the device's part outside the arena */
    int64_t held_bytes; /* of the device at the last look; unmeasured before */
    int64_t looked_ns, first_outside_bytes;
    bool warned;
};

/* The objects that hold memory. All must outlive the call. */
struct weft_run_memory_of {
    const struct weft_device *device;
    const struct weft_arena *arena;
    const struct weft_exec *exec;
    const struct weft_plan *plan;
    const struct weft_program *program;
    int64_t kept_bytes; /* of checkpoints in host memory, this rank's part; 0: none */
};

/* Takes the planned bytes from the plan; call it once. WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_run_memory_plan(struct weft_run_memory *memory,
                                                    const struct weft_run_memory_of *of,
                                                    struct weft_error *err);

/* Looks at memory after `step`: on the first steps, every second, and on the last step.
 * WEFT_E_INFEASIBLE if this rank holds more of a tier than its limit. If the system cannot separate
 * this process's memory from others', it warns instead. */
WEFT_MUST_USE enum weft_status weft_run_memory_look(struct weft_run_memory *memory,
                                                    const struct weft_run_memory_of *of,
                                                    int64_t step, bool is_last,
                                                    struct weft_error *err);

#endif
