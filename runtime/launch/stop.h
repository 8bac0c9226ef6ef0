/* SPDX-License-Identifier: Apache-2.0 */
/* A stop request: the signals that ask a run to end after its step with a checkpoint, and the rule
 * that separates a second request from the first. Batch systems, service managers and timeout(1)
 * signal several times, with several numbers, and to every process. All of that is one request. */
#ifndef WEFT_RUNTIME_LAUNCH_STOP_H
#define WEFT_RUNTIME_LAUNCH_STOP_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { WEFT_STOP_SIGNALS = 6 };

/* SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU, SIGINT, SIGHUP. */
extern const int weft_stop_signals[WEFT_STOP_SIGNALS];

/* Grace after the first signal. Other signals in it belong to the same request. */
#define WEFT_STOP_GRACE_NS (INT64_C(10) * 1000000000)

/* One run's request. {0} holds none. Signal handlers may write and read it. */
struct weft_stop {
    atomic_int signal_number; /* of the first signal; 0: none yet */
    atomic_int interrupts;    /* SIGINT from the terminal so far */
    _Atomic int64_t since_ns; /* of the first signal */
    int64_t grace_ns;         /* 0: WEFT_STOP_GRACE_NS */
};

enum weft_stop_answer {
    WEFT_STOP_BEGINS,  /* the first signal */
    WEFT_STOP_GOES_ON, /* the same request again */
    WEFT_STOP_AT_ONCE, /* a deliberate second request: do not wait for the save */
};

/* Notes a signal of the list that arrived at `now_ns`. A second SIGINT from the terminal is a
 * second request. So is the first signal's number if a process sends it again after the grace.
 * SIGXCPU is not: the kernel repeats it every second. Async-signal-safe. */
enum weft_stop_answer weft_stop_note(struct weft_stop *stop, const siginfo_t *info, int64_t now_ns);

/* True if the signal is in the list. */
bool weft_stop_asks(int signal_number);

/* True if the terminal's user pressed Ctrl-C: no process sent this SIGINT. */
bool weft_stop_is_interrupt(const siginfo_t *info);

/* Sets this handler for every signal of the list. With `all` false, SIGINT and SIGHUP stay ignored
 * if they were at the start, as under nohup or in a shell's background. */
void weft_stop_handle(void (*handler)(int, siginfo_t *, void *), bool all);

#endif
