/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/job/trap.h"

#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

static const int trapped_signals[] = {SIGSEGV, SIGBUS};
enum { TRAPPED = sizeof trapped_signals / sizeof *trapped_signals };

/* Global, because a signal handler gets no context. */
static struct {
    _Atomic(const struct weft_exec *) exec;
    int32_t rank;
    int error_fd;
    struct sigaction before[TRAPPED];
    atomic_flag told; /* by the first thread with a fault */
    struct weft_error error;
} trap = {.error_fd = -1, .told = ATOMIC_FLAG_INIT};

static void tell_trespass(int signal_number, const struct weft_exec *exec, const void *address)
{
    if (atomic_flag_test_and_set(&trap.told)) {
        for (;;)
            pause(); /* the process is about to end */
    }
    if (!weft_exec_tell_trespass(exec, address, signal_number == SIGBUS, &trap.error)) return;
    const off_t place = (off_t)trap.rank * (off_t)sizeof trap.error;
    const ssize_t written = pwrite(trap.error_fd, &trap.error, sizeof trap.error, place);
    (void)written; /* the exit code still reports the failure */
    _exit(trap.error.exit_code);
}

/* Reports a fault in the arena. For any other fault it restores the previous handlers: the
 * instruction faults again and reaches them. A signal that was sent does not repeat, so it is
 * raised again. */
static void meet_fault(int signal_number, siginfo_t *info, void *context)
{
    (void)context;
    const struct weft_exec *exec = atomic_load(&trap.exec);
    const bool met = info->si_code > 0;
    if (met && exec != NULL) tell_trespass(signal_number, exec, info->si_addr);
    for (int i = 0; i < TRAPPED; i++)
        sigaction(trapped_signals[i], &trap.before[i], NULL);
    if (!met) raise(signal_number);
}

void weft_trap_set(int32_t rank, int error_fd)
{
    struct sigaction action = {.sa_sigaction = meet_fault, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    trap.rank = rank;
    trap.error_fd = error_fd;
    for (int i = 0; i < TRAPPED; i++)
        sigaction(trapped_signals[i], &action, &trap.before[i]);
}

void weft_trap_watch(const struct weft_exec *exec)
{
    atomic_store(&trap.exec, exec);
}
