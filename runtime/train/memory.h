/* A run's memory as the system counts it. The plan holds arena, base and tiers to their limits;
 * base was measured elsewhere, or only given, so a run looks at the memory that it holds. */
#ifndef WEFT_RUNTIME_TRAIN_MEMORY_H
#define WEFT_RUNTIME_TRAIN_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "plan/plan.h"
#include "program/program.h"
#include "runtime/arena/arena.h"
#include "runtime/device/device.h"

struct weft_exec; /* runtime/exec/exec.h */

/* A time or a number of bytes that was not measured is WEFT_UNMEASURED, a loss or a speed NaN: as
 * JSON they are null. */
#define WEFT_UNMEASURED INT64_C(-1)

/* The device's is base, ring of a disk where it is there, and arena. */
struct weft_tier_use {
    int64_t planned_bytes;
    int64_t
        measured_bytes; /* the most that this rank held; unmeasured before a look, 0 in no plan */
};

/* Zero before weft_run_memory_plan. */
struct weft_run_memory {
    struct weft_tier_use tiers[WEFT_HOME_COUNT]; /* by home */
    struct weft_tier_use outside; /* the part of the device's that is outside the arena */
    int64_t held_bytes;           /* of the device, at the latest look; unmeasured before */
    int64_t looked_ns, first_outside_bytes;
    bool warned;
};

/* The objects that hold memory; all outlive the call. */
struct weft_run_memory_of {
    const struct weft_device *device;
    const struct weft_arena *arena;
    const struct weft_exec *exec;
    const struct weft_plan *plan;
    const struct weft_program *program;
};

/* Takes the planned bytes from the plan, once. WEFT_E_SYSTEM without memory. */
WEFT_MUST_USE enum weft_status weft_run_memory_plan(struct weft_run_memory *memory,
                                                    const struct weft_run_memory_of *of,
                                                    struct weft_error *err);

/* Looks after `step`, on the first steps, every second and on the last step. WEFT_E_INFEASIBLE when
 * this rank holds more of a tier than its limit. Where the system does not tell this process's
 * memory from that of others, a warning says so instead. */
WEFT_MUST_USE enum weft_status weft_run_memory_look(struct weft_run_memory *memory,
                                                    const struct weft_run_memory_of *of,
                                                    int64_t step, bool is_last,
                                                    struct weft_error *err);

#endif
