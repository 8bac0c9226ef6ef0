/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/memory.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/log.h"
#include "runtime/exec/exec.h"
#include "runtime/measure/measure.h"

#define LOOK_NS INT64_C(1000000000) /* between two looks */

enum weft_status weft_run_memory_plan(struct weft_run_memory *memory,
                                      const struct weft_run_memory_of *of, struct weft_error *err)
{
    const struct weft_problem *problem = of->plan->problem;
    memory->held_bytes = memory->outside.measured_bytes = WEFT_UNMEASURED;
    for (int32_t t = 0; t < problem->n_tiers; t++)
        memory->tiers[problem->tiers[t].kind].measured_bytes = WEFT_UNMEASURED;
    for (int32_t t = 1; t < problem->n_tiers; t++) {
        const int64_t bytes = weft_plan_peak(of->plan, t, NULL);
        if (bytes < 0) return weft_fail_memory(err, "memory rows");
        memory->tiers[problem->tiers[t].kind].planned_bytes = bytes;
    }
    memory->outside.planned_bytes = weft_program_outside_bytes(of->program);
    memory->tiers[WEFT_LOCATION_DEVICE].planned_bytes =
        memory->outside.planned_bytes + of->program->arena_bytes;
    return WEFT_OK;
}

static void note_most(struct weft_tier_use *use, int64_t bytes)
{
    if (bytes > use->measured_bytes) use->measured_bytes = bytes;
}

/* Warns once of a GPU's memory outside the arena: it grows, or may belong to other processes. */
static void warn_of_growth(struct weft_run_memory *memory, const struct weft_device *device,
                           int64_t step, int64_t outside_bytes, bool over_limit)
{
    bool exact;
    int64_t bytes;
    if (memory->warned || !weft_device_memory(device, &bytes, &exact)) return;
    if (memory->first_outside_bytes == 0) memory->first_outside_bytes = outside_bytes;
    memory->warned = over_limit || outside_bytes > memory->first_outside_bytes;
    if (!memory->warned) return;
    weft_log(WEFT_LOG_WARNING,
             "step %" PRId64 ": outside the arena %" PRId64 " bytes of the GPU are taken, %" PRId64
             " when it was first looked at%s%s",
             step, outside_bytes, memory->first_outside_bytes,
             over_limit ? ", which is over the limit" : "",
             exact ? ""
                   : "; other processes' may be among them, for the system does not tell them "
                     "apart");
}

static enum weft_status look_at_device(struct weft_run_memory *memory,
                                       const struct weft_run_memory_of *of, int64_t step,
                                       struct weft_error *err)
{
    bool exact;
    const int64_t outside_bytes =
        weft_measure_outside_bytes(of->device, of->arena, of->exec, &exact);
    const int64_t bytes = outside_bytes + weft_arena_resident_bytes(of->arena);
    const int64_t limit_bytes = of->plan->problem->tiers[0].limit_bytes;
    memory->held_bytes = bytes;
    note_most(&memory->tiers[WEFT_LOCATION_DEVICE], bytes);
    note_most(&memory->outside, outside_bytes);
    if (bytes <= limit_bytes || !exact) {
        warn_of_growth(memory, of->device, step, outside_bytes, bytes > limit_bytes);
        return WEFT_OK;
    }
    return weft_fail(err, WEFT_E_INFEASIBLE,
                     "step %" PRId64 ": this rank holds %" PRId64
                     " bytes, over the limit of %" PRId64 ": outside the arena %" PRId64
                     ", where the plan counts %" PRId64
                     " as base and staging. Measure it with `weft profile`, or set cluster.base",
                     step, bytes, limit_bytes, outside_bytes, memory->outside.planned_bytes);
}

static enum weft_status look_at_tier(struct weft_run_memory *memory,
                                     const struct weft_run_memory_of *of,
                                     const struct weft_problem_tier *tier, int64_t step,
                                     struct weft_error *err)
{
    const int64_t kept_bytes = tier->kind == WEFT_LOCATION_HOST ? of->kept_bytes : 0;
    const int64_t bytes = weft_exec_tier_bytes(of->exec, tier->kind) + kept_bytes;
    note_most(&memory->tiers[tier->kind], bytes);
    if (bytes <= tier->limit_bytes) return WEFT_OK;
    return weft_fail(err, WEFT_E_INFEASIBLE,
                     "step %" PRId64 ": this rank holds %" PRId64
                     " bytes of the tier \"%s\", over its limit of %" PRId64
                     ", where the plan counts %" PRId64 ": plan again, or raise that limit",
                     step, bytes, tier->name, tier->limit_bytes,
                     memory->tiers[tier->kind].planned_bytes);
}

enum weft_status weft_run_memory_look(struct weft_run_memory *memory,
                                      const struct weft_run_memory_of *of, int64_t step,
                                      bool is_last, struct weft_error *err)
{
    const struct weft_problem *problem = of->plan->problem;
    const bool is_power = (step & (step - 1)) == 0;
    const int64_t now_ns = weft_clock_now_ns();
    if (!is_power && !is_last && now_ns - memory->looked_ns < LOOK_NS) return WEFT_OK;
    memory->looked_ns = now_ns;
    WEFT_TRY(look_at_device(memory, of, step, err));
    for (int32_t t = 1; t < problem->n_tiers; t++)
        WEFT_TRY(look_at_tier(memory, of, &problem->tiers[t], step, err));
    return WEFT_OK;
}
