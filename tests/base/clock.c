/* SPDX-License-Identifier: Apache-2.0 */
/* setitimer is XSI. */
#define _XOPEN_SOURCE 700

#include "base/clock.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>

Test(clock, never_goes_back)
{
    int64_t last = weft_clock_now_ns();
    cr_assert_gt(last, 0);
    for (int i = 0; i < 1000; i++) {
        int64_t now = weft_clock_now_ns();
        cr_assert_geq(now, last);
        last = now;
    }
}

/* Sleeping for 50 ms takes a core less time than that. */
Test(clock, a_thread_has_time_of_its_own)
{
    volatile uint64_t sum = 0;
    int64_t start = weft_clock_thread_ns(), before;
    weft_clock_sleep_until_ns(weft_clock_now_ns() + 50000000);
    before = weft_clock_thread_ns();
    cr_assert_lt(before - start, 50000000);
    for (int i = 0; i < 100000; i++)
        sum += (uint64_t)i;
    cr_assert_gt(sum, 0);
    cr_assert_gt(weft_clock_thread_ns(), before);
}

Test(clock, sleeps_until_the_time_and_not_for_the_past)
{
    int64_t start = weft_clock_now_ns();
    weft_clock_sleep_until_ns(start - 1000000000);
    weft_clock_sleep_until_ns(-5);
    int64_t until = start + 20000000;
    weft_clock_sleep_until_ns(until);
    cr_assert_geq(weft_clock_now_ns(), until);
}

static volatile sig_atomic_t alarms;

static void count_alarm(int number)
{
    (void)number;
    alarms++;
}

Test(clock, signals_do_not_shorten_it)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = count_alarm;
    cr_assert_eq(sigaction(SIGALRM, &action, NULL), 0);
    struct itimerval every = {.it_interval = {0, 5000}, .it_value = {0, 5000}};
    int64_t until = weft_clock_now_ns() + 60000000;
    cr_assert_eq(setitimer(ITIMER_REAL, &every, NULL), 0);
    weft_clock_sleep_until_ns(until);
    int64_t woke = weft_clock_now_ns();
    every = (struct itimerval){0};
    cr_assert_eq(setitimer(ITIMER_REAL, &every, NULL), 0);
    cr_assert_geq(woke, until);
    cr_assert_gt(alarms, 0, "the test means nothing without a signal");
}
