#define _GNU_SOURCE /* cpu_set_t, syscall */
#include "cli/process/affinity.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/compiler.h"

/* The kernel fills whole words of the set; none if it could not be read. */
static struct {
    cpu_set_t set;
    long bytes;
} started_with;

/* No library is initialised yet, a sanitizer's neither: a system call and nothing else. */
WEFT_UNSANITIZED static void note_affinity(void)
{
    started_with.bytes =
        syscall(SYS_sched_getaffinity, 0, sizeof started_with.set, &started_with.set);
}

WEFT_BEFORE_LIBRARIES static void (*const note_first)(void) = note_affinity;

void weft_affinity_restore(void)
{
    /* It fails only where a cpuset has changed meanwhile, and then the cores are the cpuset's. */
    if (started_with.bytes > 0)
        (void)sched_setaffinity(0, sizeof started_with.set, &started_with.set);
}
