/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <errno.h>
#include <time.h>

enum { NS_PER_S = 1000000000 };

static int64_t read_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

int64_t weft_clock_now_ns(void)
{
    return read_ns(CLOCK_MONOTONIC);
}

int64_t weft_clock_unix_ms(void)
{
    return read_ns(CLOCK_REALTIME) / 1000000;
}

int64_t weft_clock_thread_ns(void)
{
    return read_ns(CLOCK_THREAD_CPUTIME_ID);
}

void weft_clock_sleep_until_ns(int64_t ns)
{
    if (ns <= weft_clock_now_ns()) return;
    struct timespec until = {.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};
    /* The time is absolute, so an interrupted sleep simply continues. */
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {
    }
}
