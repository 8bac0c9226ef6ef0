/* SPDX-License-Identifier: Apache-2.0 */
/* Traces of a run: `--trace FILE` joins the prediction and all ranks of a machine into one file,
 * and `--trace DIR/` makes a file for each rank, named as profilers of GPUs name their work.
 * Each rank appends its events to a memory file. The launcher's is shared by the ranks of FILE. */
#ifndef WEFT_CLI_JOB_TRACING_H
#define WEFT_CLI_JOB_TRACING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "plan/plan.h"
#include "program/program.h"
#include "program/trace.h"

/* Steps to trace: "3", "3,10..12". */
enum { WEFT_TRACING_RANGES = 32, WEFT_TRACING_MOST_STEPS = 1000 };
struct weft_tracing_steps {
    int32_t n; /* 0: the last step of the run */
    struct weft_tracing_range {
        int64_t first, last;
    } ranges[WEFT_TRACING_RANGES];
};

/* Reads --trace-steps; NULL: the last step. WEFT_E_USAGE names the part that is not a step of a run
 * of so many; `most` 0: of any run. */
WEFT_MUST_USE enum weft_status weft_tracing_read_steps(const char *text, int64_t most,
                                                       struct weft_tracing_steps *out,
                                                       struct weft_error *err);

/* Whether the path names a folder, with a file for each rank. */
bool weft_tracing_is_folder(const char *path);
/* Checks, before a run, that the file or folder can be written; makes a missing folder of the form
 * DIR/. WEFT_E_CREATE, and WEFT_E_SYSTEM for ".gz" without zlib. */
WEFT_MUST_USE enum weft_status weft_tracing_check(const char *path, struct weft_error *err);

/* A rank's trace of a run. */
struct weft_tracing {
    const char *path; /* NULL: traces nothing */
    struct weft_tracing_steps steps;
    int32_t rank, ranks;
    int fd;                      /* memory file of events; owned in a folder's form */
    bool predicts;               /* rank 0 of a file also writes the prediction */
    bool has_names;              /* these are written */
    char source[64];             /* of the latest step; "" before */
    struct weft_trace *forecast; /* owned */
};

/* `fd` is the launcher's memory file, or -1. */
WEFT_MUST_USE enum weft_status weft_tracing_open(const char *path, const char *steps, int32_t rank,
                                                 int32_t ranks, int fd, struct weft_tracing *out,
                                                 struct weft_error *err);
/* Adds a step if it is to be traced; the run has `steps` steps. */
WEFT_MUST_USE enum weft_status weft_tracing_add(struct weft_tracing *tracing,
                                                const struct weft_program *program,
                                                const struct weft_plan *plan,
                                                const struct weft_trace *trace, int64_t step,
                                                int64_t steps, struct weft_error *err);
/* Writes the rank's own file, in a folder's form. */
WEFT_MUST_USE enum weft_status weft_tracing_end(struct weft_tracing *tracing,
                                                struct weft_error *err);
void weft_tracing_close(struct weft_tracing *tracing); /* accepts zeroes */

/* Launcher: writes the file of all ranks from their memory file. Warns if no step was traced. */
WEFT_MUST_USE enum weft_status weft_tracing_join(const char *path, int fd, int32_t ranks,
                                                 struct weft_error *err);

/* Writes a simulation alone: as FILE, or as DIR/rank-0.json. */
WEFT_MUST_USE enum weft_status weft_tracing_simulate(const char *path,
                                                     const struct weft_program *program,
                                                     const struct weft_plan *plan,
                                                     struct weft_error *err);

#endif
