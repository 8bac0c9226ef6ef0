/* One program, two executors: under the virtual clock a trace equals the simulator's, record by
 * record, and the bytes live in every slot are the same three ways (the plan's rows, the lifetimes,
 * what the executor counts). */
#ifndef WEFT_TESTS_RUNTIME_EXEC_SAME_TRACE_H
#define WEFT_TESTS_RUNTIME_EXEC_SAME_TRACE_H

#include "tests/runtime/exec/job.h"

/* A rank's side (a rank_fn) of a job: steps, each compared. */
int same_trace(int32_t rank, const struct ranks *ranks, void *job);

#endif
