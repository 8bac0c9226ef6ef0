/* A trace is what an executor did, or what the simulator predicts: a record for each instruction
 * (same indices as the program), and the bytes live at the start of each slot by category. */
#ifndef WEFT_PROGRAM_TRACE_H
#define WEFT_PROGRAM_TRACE_H

#include <stdint.h>

#include "base/pool.h"
#include "base/status.h"
#include "base/text.h"
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
    int64_t zero_ns;     /* what the records count from, on the clock that ranks of a machine share;
                            0 when simulated */
    int64_t data_wait_ns; /* that the step waited for its data before it began; 0 when simulated */
};

WEFT_MUST_USE enum weft_status weft_trace_create(const struct weft_program *program,
                                                 const char *source, struct weft_trace **out,
                                                 struct weft_error *err);
void weft_trace_destroy(struct weft_trace *trace);

struct weft_trace_summary {
    int64_t step_ns;                /* from the first start to the last end */
    int64_t exposed_ns;             /* waits of the compute stream for the channel */
    int64_t compute_ns, channel_ns; /* as they ran, slowed by each other or not */
    int64_t overlapped_ns;          /* channel time during which compute ran */
    int64_t peak_bytes;
    int32_t peak_slot;
};
void weft_trace_summarise(const struct weft_program *program, const struct weft_trace *trace,
                          struct weft_trace_summary *out);

/* Runs the program event by event in its predicted times: an instruction starts when it is at the
 * head of its lane and all that it depends on is over (every rank is alike), and lanes slow each
 * other as base/lanes.h says. The one place where time is computed. */
WEFT_MUST_USE enum weft_status weft_simulate(const struct weft_program *program,
                                             struct weft_trace **out, struct weft_error *err);

/* The same times for a plan whose config is not at hand or that is one of thousands of candidates:
 * step time and exposed time from problem and placements alone. Equal to simulating the program
 * (a test holds it to that). Allocates only from `scratch`: weft_simulate_words int64. */
size_t weft_simulate_words(const struct weft_problem *problem);
void weft_simulate_plan(const struct weft_plan *plan, int64_t *scratch,
                        struct weft_prediction *out);

/* When every slot starts (what is launched with it then may begin), and every placement starts and
 * ends, in the same simulation: arrays [n_slots] and [n_placements], the caller's. */
struct weft_plan_times {
    int64_t *slot_start_ns;
    int64_t *start_ns, *end_ns;
};
void weft_simulate_plan_times(const struct weft_plan *plan, int64_t *scratch,
                              struct weft_plan_times *out);

void weft_trace_write(const struct weft_program *program, const struct weft_trace *trace,
                      struct weft_text *out);
/* Chrome trace event format, opened by chrome://tracing and Perfetto. */
void weft_trace_write_chrome(const struct weft_program *program, const struct weft_plan *plan,
                             const struct weft_trace *trace, struct weft_text *out);

#endif
