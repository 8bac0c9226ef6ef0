/* SPDX-License-Identifier: Apache-2.0 */
/* A trace records an execution or a simulation: one record for each instruction of the program, and
 * the live bytes at the start of each slot by category. */
#ifndef WEFT_PROGRAM_TRACE_H
#define WEFT_PROGRAM_TRACE_H

#include <stdint.h>

#include "base/pool.h"
#include "base/status.h"
#include "program/program.h"

struct weft_record {
    int64_t start_ns; /* since the start of the step's first instruction */
    int64_t end_ns;
};

struct weft_trace {
    struct weft_pool pool;
    const char *source; /* "simulated", "virtual clock", "wall clock", + ", emulated link" */
    int32_t n_instructions;
    struct weft_record *records;
    int32_t n_slots;
    int64_t *live_bytes; /* [n_slots * WEFT_CATEGORY_COUNT] */
    /* The records' zero on the clock that a machine's ranks share; 0 when simulated. */
    int64_t zero_ns;
    int64_t data_wait_ns; /* wait for data before the step; 0 when simulated */
    int64_t updated;      /* step of the period's updates, or WEFT_STEP_OF_NO_UPDATE (works.h) */
};

WEFT_MUST_USE enum weft_status weft_trace_create(const struct weft_program *program,
                                                 const char *source, struct weft_trace **out,
                                                 struct weft_error *err);
void weft_trace_destroy(struct weft_trace *trace);

struct weft_trace_summary {
    int64_t step_ns;                /* from the first start to the last end */
    int64_t exposed_ns;             /* waits of the compute stream for the channel */
    int64_t compute_ns, channel_ns; /* as run, slowed by each other or not */
    int64_t overlapped_ns;          /* time of the network's lanes while compute ran */
    int64_t peak_bytes;
    int32_t peak_slot;
};
void weft_trace_summarise(const struct weft_program *program, const struct weft_trace *trace,
                          struct weft_trace_summary *out);

/* Simulates the program event by event with its predicted times. An instruction starts when it is
 * at the head of its lane and its dependencies are complete. All ranks are alike, and lanes slow
 * each other by base/lanes.h. This is the only place that computes time. */
WEFT_MUST_USE enum weft_status weft_simulate(const struct weft_program *program,
                                             struct weft_trace **out, struct weft_error *err);

/* Simulates a period with the updates of a step, from 0 on, or WEFT_STEP_OF_NO_UPDATE (works.h).
 * Periods differ in the averages over nodes that work in them. weft_simulate takes step 0, in which
 * the first average works. */
WEFT_MUST_USE enum weft_status weft_simulate_step(const struct weft_program *program, int64_t step,
                                                  struct weft_trace **out, struct weft_error *err);

/* The same times from problem and placements alone, for plans without a config or for thousands of
 * candidates. A test compares them with the program's simulation. Uses only `scratch` of
 * weft_simulate_words int64. An average takes its share of each step here. Step times are
 * convex in block times, so the step is no longer than the mean of weft_simulate_mean. */
size_t weft_simulate_words(const struct weft_problem *problem);
void weft_simulate_plan(const struct weft_plan *plan, int64_t *scratch,
                        struct weft_prediction *out);

/* The mean over the periods of period.every steps, rounded up. Periods with equal averages are
 * simulated once. */
void weft_simulate_mean(const struct weft_plan *plan, int64_t *scratch,
                        struct weft_prediction *out);
/* One period of the mean, with the updates of a step. */
void weft_simulate_plan_step(const struct weft_plan *plan, int64_t step, int64_t *scratch,
                             struct weft_prediction *out);

/* The shortest and the longest period of the mean. */
void weft_simulate_extremes(const struct weft_plan *plan, int64_t *scratch, int64_t *least_ns,
                            int64_t *most_ns);

/* Start of each slot, from which its launches may begin, and start and end of each placement, in
 * the same simulation. The caller's arrays have [n_slots] and [n_placements]. */
struct weft_plan_times {
    int64_t *slot_start_ns;
    int64_t *start_ns, *end_ns;
};
void weft_simulate_plan_times(const struct weft_plan *plan, int64_t *scratch,
                              struct weft_plan_times *out);

/* The same, with start and end of each slot's work on the compute lane, in arrays of [n_slots]. A
 * slot's start comes before its work if blocks make the work wait. */
struct weft_plan_spans {
    struct weft_plan_times times;
    int64_t *work_start_ns, *work_end_ns;
};
void weft_simulate_plan_spans(const struct weft_plan *plan, int64_t *scratch,
                              struct weft_plan_spans *out);

#endif
