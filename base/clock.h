/* The monotonic clock, in nanoseconds, and a thread's own. Nothing in Weft reads the calendar to
 * measure or to wait. */
#ifndef WEFT_BASE_CLOCK_H
#define WEFT_BASE_CLOCK_H

#include <stdint.h>

int64_t weft_clock_now_ns(void);

/* The calendar, for who reads afterwards: milliseconds since 1970. */
int64_t weft_clock_unix_ms(void);

/* Time that a core has spent on the calling thread: what else runs on the machine is no part of it.
 * For the difference of two readings by one thread. */
int64_t weft_clock_thread_ns(void);

/* Sleeps until the monotonic clock reads `ns`; returns at once when it already does. Signals do
 * not shorten it. */
void weft_clock_sleep_until_ns(int64_t ns);

#endif
