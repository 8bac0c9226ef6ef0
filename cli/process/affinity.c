#define _GNU_SOURCE /* for cpu_set_t and syscall */
#include "cli/process/affinity.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/compiler.h"

/* The kernel fills `bytes` bytes of the set; 0 or less: it could not be read. */
static struct {
    cpu_set_t set;
    long bytes;
} started_with;

/* Runs before libraries and sanitizers are initialised, so it may only make a system call. */
WEFT_UNSANITIZED static void note_affinity(void)
{
    started_with.bytes =
        syscall(SYS_sched_getaffinity, 0, sizeof started_with.set, &started_with.set);
}

WEFT_BEFORE_LIBRARIES static void (*const note_first)(void) = note_affinity;

void weft_affinity_restore(void)
{
    /* This fails only if a cpuset changed meanwhile; then the cpuset's cores are right. */
    if (started_with.bytes > 0)
        (void)sched_setaffinity(0, sizeof started_with.set, &started_with.set);
}
