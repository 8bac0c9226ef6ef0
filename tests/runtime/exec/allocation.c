/* SPDX-License-Identifier: Apache-2.0 */
/* A step allocates no memory. Counting functions replace malloc and its kin for this program's own
 * calls, on any thread. Calls within libraries are not counted: their memory is measured and
 * belongs to the base. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/effort.h"
#include "tests/runtime/exec/job.h"

#if TEST_SANITIZED
int main(void)
{
    puts("skipped: a sanitizer has its own malloc");
    return 77;
}
#else

enum { STEPS = 5 };

/* The linker's: where this program's own code begins and ends. */
extern const char __executable_start[], etext[];

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t n, size_t bytes);
extern void *__libc_realloc(void *old, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);

static atomic_int counted;

static void count(const void *caller)
{
    uintptr_t at = (uintptr_t)caller;
    if (at >= (uintptr_t)__executable_start && at < (uintptr_t)etext) atomic_fetch_add(&counted, 1);
}

void *malloc(size_t bytes)
{
    count(__builtin_return_address(0));
    return __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes)
{
    count(__builtin_return_address(0));
    return __libc_calloc(n, bytes);
}

void *realloc(void *old, size_t bytes)
{
    count(__builtin_return_address(0));
    return __libc_realloc(old, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    count(__builtin_return_address(0));
    return __libc_memalign(alignment, bytes);
}

static int train(int32_t rank, const struct ranks *ranks, void *argument)
{
    struct job_rank r;
    job_rank_open(&r, argument, rank, ranks, WEFT_CLOCK_WALL, false);
    CHECK(atomic_load(&counted) > 0, "the count does not count");
    for (int64_t step = 1; step <= STEPS; step++) {
        int before = atomic_load(&counted);
        (void)job_rank_step(&r, step);
        int calls = atomic_load(&counted) - before;
        CHECK(calls == 0, "step %lld allocates %d times", (long long)step, calls);
    }
    job_rank_close(&r);
    return 0;
}

int main(void)
{
    const char *overrides[] = {"cluster.ranks=2", "cluster.emulate=false", NULL};
    struct job job;
    job_open(&job, "configs/runs/gpt-odd.json", overrides);
    job_plan_random(&job, 3);
    CHECK(ranks_run(2, train, &job) == 0, "a rank failed");
    job_close(&job);
    return 0;
}
#endif
