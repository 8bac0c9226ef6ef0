/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/runtime/exec/same_trace.h"

#include <stdio.h>
#include <stdlib.h>

#include "program/works.h"

enum { STEPS = 2 };

static const char *step_name(const struct job *job, int32_t i, char *out, size_t bytes)
{
    const struct weft_instruction *at = &job->program->instructions[i];
    snprintf(out, bytes, "instruction %d (%s in slot %s)", i, weft_op_name(at->op),
             job->stages.problem->slot_names[at->slot]);
    return out;
}

int same_trace(int32_t rank, const struct ranks *ranks, void *argument)
{
    const struct job *job = argument;
    const struct weft_program *program = job->program;
    struct weft_trace *simulated;
    struct job_rank r;
    char name[128];
    job_rank_open(&r, job, rank, ranks, WEFT_CLOCK_VIRTUAL, true);
    size_t n_rows = (size_t)program->n_slots * WEFT_CATEGORY_COUNT;
    int64_t *rows = calloc(n_rows, sizeof *rows);
    CHECK(rows != NULL, "out of memory");
    weft_plan_rows(job->plan, 0, rows);
    const int64_t every = program->period.every, last = every > 0 ? 2 * every + 1 : STEPS;
    for (int64_t step = 1; step <= last; step++) {
        const int64_t updated = step > 1 ? step - 1 : WEFT_STEP_OF_NO_UPDATE;
        OK(weft_simulate_step(program, updated, &simulated, &err));
        job_rank_step(&r, step);
        CHECK(r.trace->updated == updated, "step %lld tells the updates of step %lld",
              (long long)step, (long long)r.trace->updated);
        for (int32_t i = 0; i < program->n_instructions; i++) {
            struct weft_record a = simulated->records[i], b = r.trace->records[i];
            CHECK(a.start_ns == b.start_ns && a.end_ns == b.end_ns,
                  "step %lld, %s: %lld to %lld ns, simulated %lld to %lld", (long long)step,
                  step_name(job, i, name, sizeof name), (long long)b.start_ns, (long long)b.end_ns,
                  (long long)a.start_ns, (long long)a.end_ns);
        }
        for (size_t i = 0; i < n_rows; i++) {
            size_t slot = i / WEFT_CATEGORY_COUNT;
            CHECK(rows[i] == simulated->live_bytes[i] && rows[i] == r.trace->live_bytes[i],
                  "step %lld, slot %s, %s: %lld bytes by the plan, %lld by lifetimes, %lld live",
                  (long long)step, job->stages.problem->slot_names[slot],
                  weft_category_key((enum weft_category)(i % WEFT_CATEGORY_COUNT)),
                  (long long)rows[i], (long long)simulated->live_bytes[i],
                  (long long)r.trace->live_bytes[i]);
        }
        weft_trace_destroy(simulated);
    }
    OK(weft_exec_settle(r.exec, &err));
    free(rows);
    job_rank_close(&r);
    return 0;
}
