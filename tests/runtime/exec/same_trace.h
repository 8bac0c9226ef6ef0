/* SPDX-License-Identifier: Apache-2.0 */
/* One program in two executors. Under the virtual clock its trace equals the simulator's, record
 * by record. The bytes live in each slot are equal in three ways: the plan's rows, the lifetimes,
 * and the executor's count. */
#ifndef WEFT_TESTS_RUNTIME_EXEC_SAME_TRACE_H
#define WEFT_TESTS_RUNTIME_EXEC_SAME_TRACE_H

#include "tests/runtime/exec/job.h"

/* A rank's side (a rank_fn) of a job: steps, each compared. */
int same_trace(int32_t rank, const struct ranks *ranks, void *job);

#endif
