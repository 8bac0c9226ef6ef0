/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/launch/stop.h"

#include <criterion/criterion.h>
#include <unistd.h>

#include "tests/signals.h"

static const int64_t second_ns = 1000000000;

static enum weft_stop_answer note(struct weft_stop *stop, int number, int code, int64_t now_ns)
{
    const siginfo_t info = {.si_signo = number, .si_code = code};
    return weft_stop_note(stop, &info, now_ns);
}

Test(stop, every_signal_of_the_list_begins_one_request)
{
    for (int i = 0; i < WEFT_STOP_SIGNALS; i++) {
        struct weft_stop stop = {0};
        const int64_t then_ns = 7 * second_ns;
        cr_assert(weft_stop_asks(weft_stop_signals[i]));
        cr_assert(note(&stop, weft_stop_signals[i], SI_USER, then_ns) == WEFT_STOP_BEGINS);
        cr_assert_eq(stop.signal_number, weft_stop_signals[i]);
        for (int k = 0; k < WEFT_STOP_SIGNALS; k++)
            for (int64_t after_ns = 0; after_ns <= 10 * second_ns; after_ns += second_ns)
                cr_assert(note(&stop, weft_stop_signals[k], SI_USER, then_ns + after_ns) ==
                          WEFT_STOP_GOES_ON);
        cr_assert_eq(stop.signal_number, weft_stop_signals[i], "the first is told");
    }
    cr_assert(!weft_stop_asks(SIGKILL) && !weft_stop_asks(SIGSEGV) && !weft_stop_asks(0));
}

Test(stop, the_same_number_after_the_grace_is_a_second_request)
{
    struct weft_stop stop = {0}, short_one = {.grace_ns = second_ns};
    note(&stop, SIGUSR1, SI_USER, 0);
    cr_assert(note(&stop, SIGTERM, SI_USER, 11 * second_ns) == WEFT_STOP_GOES_ON, "another number");
    cr_assert(note(&stop, SIGTERM, SI_USER, 12 * second_ns) == WEFT_STOP_GOES_ON);
    cr_assert(note(&stop, SIGUSR1, SI_USER, 12 * second_ns) == WEFT_STOP_AT_ONCE);
    note(&short_one, SIGTERM, SI_QUEUE, 0);
    cr_assert(note(&short_one, SIGTERM, SI_QUEUE, second_ns) == WEFT_STOP_GOES_ON);
    cr_assert(note(&short_one, SIGTERM, SI_QUEUE, second_ns + 1) == WEFT_STOP_AT_ONCE);
}

Test(stop, the_kernel_repeats_a_limit_and_means_it_once)
{
    struct weft_stop stop = {0};
    cr_assert(note(&stop, SIGXCPU, SI_KERNEL, 0) == WEFT_STOP_BEGINS);
    for (int64_t s = 1; s < 100; s++)
        cr_assert(note(&stop, SIGXCPU, SI_KERNEL, s * second_ns) == WEFT_STOP_GOES_ON);
}

Test(stop, only_the_terminal_interrupts_twice)
{
    struct weft_stop stop = {0}, mixed = {0};
    cr_assert(note(&stop, SIGINT, SI_KERNEL, 0) == WEFT_STOP_BEGINS);
    cr_assert(note(&stop, SIGINT, SI_USER, 1) == WEFT_STOP_GOES_ON, "as a wrapper passes it on");
    cr_assert(note(&stop, SIGHUP, SI_KERNEL, 2) == WEFT_STOP_GOES_ON);
    cr_assert(note(&stop, SIGINT, SI_KERNEL, 3) == WEFT_STOP_AT_ONCE);
    cr_assert(note(&mixed, SIGTERM, SI_USER, 0) == WEFT_STOP_BEGINS);
    cr_assert(note(&mixed, SIGINT, SI_KERNEL, 1) == WEFT_STOP_GOES_ON);
    cr_assert(note(&mixed, SIGINT, SI_KERNEL, 2) == WEFT_STOP_AT_ONCE);
}

static volatile sig_atomic_t handled;

static void count_signal(int number, siginfo_t *info, void *context)
{
    (void)context;
    handled += info->si_signo == number && info->si_pid == getpid();
}

Test(stop, handlers_leave_what_a_shell_ignores)
{
    test_default_signals();
    signal(SIGHUP, SIG_IGN);
    signal(SIGUSR2, SIG_IGN);
    weft_stop_handle(count_signal, false);
    for (int i = 0; i < WEFT_STOP_SIGNALS; i++)
        kill(getpid(), weft_stop_signals[i]);
    cr_assert_eq(handled, WEFT_STOP_SIGNALS - 1);
    weft_stop_handle(count_signal, true);
    kill(getpid(), SIGHUP);
    cr_assert_eq(handled, WEFT_STOP_SIGNALS);
}
