/* SPDX-License-Identifier: Apache-2.0 */
/* The monotonic clock in nanoseconds, and a thread's CPU time. Weft never uses the calendar to
 * measure or wait. */
#ifndef WEFT_BASE_CLOCK_H
#define WEFT_BASE_CLOCK_H

#include <stdint.h>

int64_t weft_clock_now_ns(void);

/* The calendar, for people: milliseconds since 1970. */
int64_t weft_clock_unix_ms(void);

/* CPU time of the calling thread, without other programs. Use the difference of two readings by one
 * thread. */
int64_t weft_clock_thread_ns(void);

/* Sleeps until the monotonic clock reads `ns`; returns at once if it does already. Signals do not
 * shorten the sleep. */
void weft_clock_sleep_until_ns(int64_t ns);

#endif
