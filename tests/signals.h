/* SPDX-License-Identifier: Apache-2.0 */
/* Signals as a terminal leaves them. A test may be started where some are ignored or blocked: by
 * `make check &` in a script, by nohup, by a supervisor. Processes inherit that, so a test that
 * sends signals begins with a call. */
#ifndef WEFT_TESTS_SIGNALS_H
#define WEFT_TESTS_SIGNALS_H

#include <signal.h>
#include <stddef.h>

/* Gives every signal its default action and blocks none. */
static inline void test_default_signals(void)
{
    for (int number = 1; number < NSIG; number++)
        if (number != SIGKILL && number != SIGSTOP) signal(number, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

#endif
