/* Ranks as threads of one process, for ThreadSanitizer: it sees addresses, and processes that map
 * the same memory at different ones hide every race from it. So mmap and munmap are wrapped (the
 * linker's --wrap): while ranks run, every descriptor has addresses of its own, and all ranks get
 * those. Buffers that share pages still have an address each, so what hands a page on too early is
 * not seen here: program/verify_pages and poison look for that. */
#ifndef WEFT_TESTS_RUNTIME_COMM_THREADS_H
#define WEFT_TESTS_RUNTIME_COMM_THREADS_H

#include "tests/runtime/comm/ranks.h"

/* As ranks_run: returns the number of ranks whose function did not return 0. */
int threads_run(int32_t n, rank_fn *function, void *argument);

#endif
