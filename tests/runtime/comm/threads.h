/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks as threads of one process, for ThreadSanitizer. It compares addresses, so processes that
 * map the same memory at different addresses hide every race. The linker's --wrap replaces mmap
 * and munmap: while ranks run, each descriptor has its own addresses, the same for all ranks.
 * Buffers that share pages still have distinct addresses, so pages that are reused too early are
 * not seen here. program/verify_pages and poison look for them. */
#ifndef WEFT_TESTS_RUNTIME_COMM_THREADS_H
#define WEFT_TESTS_RUNTIME_COMM_THREADS_H

#include "tests/runtime/comm/ranks.h"

/* Returns the number of ranks with a nonzero result, like ranks_run. */
int threads_run(int32_t n, rank_fn *function, void *argument);

#endif
