/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* for syscall */
#include "cli/process/affinity.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "base/compiler.h"

enum { MOST_CORES = 8192 }; /* of any Linux kernel; cpu_set_t has 1,024 */

/* The kernel fills `bytes` bytes of the set; 0 or less: it could not be read. */
static struct {
    unsigned long set[MOST_CORES / 8 / sizeof(unsigned long)];
    long bytes;
} started_with;

/* Runs before libraries and sanitizers are initialised, so it may only make a system call. */
WEFT_UNSANITIZED static void note_affinity(void)
{
    started_with.bytes =
        syscall(SYS_sched_getaffinity, 0, sizeof started_with.set, started_with.set);
}

WEFT_BEFORE_LIBRARIES static void (*const note_first)(void) = note_affinity;

void weft_affinity_restore(void)
{
    /* This fails only if a cpuset changed meanwhile; then the cpuset's cores are right. */
    if (started_with.bytes > 0)
        (void)syscall(SYS_sched_setaffinity, 0, started_with.bytes, started_with.set);
}
