/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/launch/stop.h"

#include <stddef.h>

const int weft_stop_signals[WEFT_STOP_SIGNALS] = {SIGTERM, SIGUSR1, SIGUSR2,
                                                  SIGXCPU, SIGINT,  SIGHUP};

bool weft_stop_asks(int signal_number)
{
    for (int i = 0; i < WEFT_STOP_SIGNALS; i++)
        if (weft_stop_signals[i] == signal_number) return true;
    return false;
}

/* Codes above 0 come from the kernel. kill, tgkill and sigqueue give 0 and below. */
static bool is_sent(const siginfo_t *info)
{
    return info->si_code <= 0;
}

bool weft_stop_is_interrupt(const siginfo_t *info)
{
    return info->si_signo == SIGINT && !is_sent(info);
}

enum weft_stop_answer weft_stop_note(struct weft_stop *stop, const siginfo_t *info, int64_t now_ns)
{
    const int64_t grace_ns = stop->grace_ns > 0 ? stop->grace_ns : WEFT_STOP_GRACE_NS;
    const bool interrupt = weft_stop_is_interrupt(info);
    const int interrupts = interrupt ? atomic_fetch_add(&stop->interrupts, 1) + 1 : 0;
    int first = 0;
    if (atomic_compare_exchange_strong(&stop->signal_number, &first, info->si_signo)) {
        atomic_store(&stop->since_ns, now_ns);
        return WEFT_STOP_BEGINS;
    }
    if (interrupts > 1) return WEFT_STOP_AT_ONCE;
    const bool again = is_sent(info) && info->si_signo == first;
    return again && now_ns - atomic_load(&stop->since_ns) > grace_ns ? WEFT_STOP_AT_ONCE
                                                                     : WEFT_STOP_GOES_ON;
}

void weft_stop_handle(void (*handler)(int, siginfo_t *, void *), bool all)
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < WEFT_STOP_SIGNALS; i++)
        sigaddset(&action.sa_mask, weft_stop_signals[i]);
    for (int i = 0; i < WEFT_STOP_SIGNALS; i++) {
        const int number = weft_stop_signals[i];
        struct sigaction before;
        bool ignored = (number == SIGINT || number == SIGHUP) &&
                       sigaction(number, NULL, &before) == 0 && before.sa_handler == SIG_IGN;
        if (all || !ignored) sigaction(number, &action, NULL);
    }
}
