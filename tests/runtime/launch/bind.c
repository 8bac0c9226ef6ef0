/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/launch/bind.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

static struct weft_error error;

static cpu_set_t allowed(void)
{
    cpu_set_t set;
    cr_assert(sched_getaffinity(0, sizeof set, &set) == 0);
    return set;
}

static void *look(void *argument)
{
    *(cpu_set_t *)argument = allowed();
    return NULL;
}

Test(bind, hardware_threads_of_a_core_stay_together)
{
    /* Two packages of two cores of two threads, numbered as Linux does: first threads first. */
    const struct weft_core machine[] = {{0, 0, 0}, {0, 1, 1}, {1, 0, 2}, {1, 1, 3},
                                        {0, 0, 4}, {0, 1, 5}, {1, 0, 6}, {1, 1, 7}};
    const int32_t expected[] = {0, 4, 1, 5, 2, 6, 3, 7};
    const int32_t ranks[] = {1, 2, 4, 8};
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++) {
        for (int32_t rank = 0; rank < ranks[i]; rank++) {
            struct weft_core cores[8];
            int32_t n;
            memcpy(cores, machine, sizeof cores);
            const struct weft_core *own = weft_bind_share(cores, 8, rank, ranks[i], &n);
            cr_assert(n == 8 / ranks[i], "%d of 8 cores for one of %d ranks", n, ranks[i]);
            for (int32_t c = 0; c < n; c++)
                cr_assert(own[c].number == expected[rank * n + c], "rank %d of %d has core %d",
                          rank, ranks[i], own[c].number);
        }
    }
}

Test(bind, what_does_not_divide_is_nobodys)
{
    int32_t n;
    struct weft_core cores[] = {{-1, -1, 5}, {-1, -1, 3}, {-1, -1, 9}};
    const struct weft_core *own = weft_bind_share(cores, 3, 1, 2, &n);
    cr_assert(n == 1 && own->number == 5);
}

Test(bind, ranks_have_different_cores_and_their_threads_too)
{
    cpu_set_t before = allowed(), together, seen;
    int32_t ranks = CPU_COUNT(&before);
    CPU_ZERO(&together);
    for (int32_t rank = 0; rank < ranks; rank++) {
        struct weft_binding binding = {0};
        pthread_t thread;
        cr_assert(weft_bind(rank, ranks, 0, &binding, &error) == WEFT_OK, "%s", error.text);
        cpu_set_t own = allowed(), both;
        cr_assert(CPU_COUNT(&own) == 1);
        CPU_AND(&both, &own, &together);
        cr_assert(CPU_COUNT(&both) == 0, "rank %d has another's core", rank);
        CPU_OR(&together, &together, &own);
        cr_assert(pthread_create(&thread, NULL, look, &seen) == 0);
        cr_assert(pthread_join(thread, NULL) == 0);
        cr_assert(CPU_EQUAL(&seen, &own), "a thread started later is elsewhere");
        weft_unbind(&binding);
        cpu_set_t after = allowed();
        cr_assert(CPU_EQUAL(&after, &before), "rank %d is still bound", rank);
    }
    cr_assert(CPU_EQUAL(&together, &before));
}

/* A machine of more cores than cpu_set_t has, of which this process may use the last ones. */
enum { FIRST_WIDE = 2000, WIDE_CORES = 2064 };
static bool is_wide;
static cpu_set_t *wide_bound;
static size_t wide_bytes;

int __real_sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *set);
int __wrap_sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *set);
int __wrap_sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *set)
{
    if (!is_wide) return __real_sched_getaffinity(pid, bytes, set);
    if (8 * bytes < WIDE_CORES) {
        errno = EINVAL;
        return -1;
    }
    CPU_ZERO_S(bytes, set);
    for (int i = FIRST_WIDE; i < WIDE_CORES; i++)
        CPU_SET_S(i, bytes, set);
    return 0;
}

int __real_sched_setaffinity(pid_t pid, size_t bytes, const cpu_set_t *set);
int __wrap_sched_setaffinity(pid_t pid, size_t bytes, const cpu_set_t *set);
int __wrap_sched_setaffinity(pid_t pid, size_t bytes, const cpu_set_t *set)
{
    if (!is_wide) return __real_sched_setaffinity(pid, bytes, set);
    memcpy(wide_bound, set, bytes < wide_bytes ? bytes : wide_bytes);
    return 0;
}

Test(bind, a_machine_of_2064_cores)
{
    struct weft_binding binding = {0};
    wide_bound = CPU_ALLOC(WIDE_CORES);
    wide_bytes = CPU_ALLOC_SIZE(WIDE_CORES);
    is_wide = true;
    cr_assert(weft_bind_check(4, 16, &error) == WEFT_OK, "%s", error.text);
    cr_assert(weft_bind_check(4, 17, NULL) == WEFT_E_ENVIRONMENT);
    CPU_ZERO_S(wide_bytes, wide_bound);
    cr_assert(weft_bind(3, 4, 16, &binding, &error) == WEFT_OK, "%s", error.text);
    cr_assert(CPU_COUNT_S(wide_bytes, wide_bound) == 16);
    cr_assert(CPU_ISSET_S(WIDE_CORES - 1, wide_bytes, wide_bound));
    weft_unbind(&binding);
    cr_assert(CPU_COUNT_S(wide_bytes, wide_bound) == WIDE_CORES - FIRST_WIDE);
    CPU_FREE(wide_bound);
}

Test(bind, too_few_cores_are_refused_and_nothing_changes)
{
    cpu_set_t before = allowed();
    int32_t cores = CPU_COUNT(&before);
    struct weft_binding binding = {0};
    cr_assert(weft_bind_check(cores, 1, &error) == WEFT_OK);
    cr_assert(weft_bind_check(1, cores, &error) == WEFT_OK);
    cr_assert(weft_bind_check(cores + 1, 0, &error) == WEFT_E_ENVIRONMENT);
    struct weft_error second = {0};
    cr_assert(weft_bind(0, cores, 2, &binding, &second) == WEFT_E_ENVIRONMENT);
    cr_assert(strstr(second.text, "threads need") != NULL, "%s", second.text);
    cpu_set_t after = allowed();
    cr_assert(!binding.bound && CPU_EQUAL(&after, &before));
    weft_unbind(&binding);
}
