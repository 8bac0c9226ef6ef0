/* SPDX-License-Identifier: Apache-2.0 */
/* Traces in the Chrome trace event format, for Perfetto, chrome://tracing and Holistic Trace
 * Analysis. A process of the file is a rank or the prediction. Its threads are the lanes, and one
 * for launches. A flow leads from the launch of a block over the block to the wait for it. */
#ifndef WEFT_PROGRAM_TRACE_CHROME_H
#define WEFT_PROGRAM_TRACE_CHROME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "plan/plan.h"
#include "program/program.h"
#include "program/trace.h"

struct weft_chrome_process {
    int32_t number;    /* the rank; of the prediction: the number of ranks */
    int32_t order;     /* of processes in a viewer; the prediction has -1 */
    const char *title; /* "rank 0, wall clock" */
    /* Names as profilers of GPUs give them: a collective is "ncclKernel_AllGather h.3 block 2", and
     * a copy is "Memcpy DtoH ...". Analysers of these profilers find communication by them. */
    bool names_kernels;
};

/* Appends events, each followed by ",\n": the names of a process and of its threads. */
void weft_chrome_add_names(const struct weft_chrome_process *process,
                           const struct weft_program *program, struct weft_text *out);
/* Appends the events of a step. `zero_ns` is added to all times. */
void weft_chrome_add_step(const struct weft_chrome_process *process,
                          const struct weft_program *program, const struct weft_plan *plan,
                          const struct weft_trace *trace, int64_t step, int64_t zero_ns,
                          struct weft_text *out);
/* Appends a whole file with these events. */
void weft_chrome_add_file(int32_t rank, int32_t ranks, const char *source,
                          const struct weft_text *events, struct weft_text *out);

#endif
