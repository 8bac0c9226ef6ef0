/* A stop request: the signals that ask a run to end with its step and a checkpoint, and the rule
 * that tells one request from a second one. Batch systems, service managers and timeout(1) signal
 * several times, with several numbers, and to every process: all that is one request. */
#ifndef WEFT_RUNTIME_LAUNCH_STOP_H
#define WEFT_RUNTIME_LAUNCH_STOP_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { WEFT_STOP_SIGNALS = 6 };

/* SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU, SIGINT, SIGHUP. */
extern const int weft_stop_signals[WEFT_STOP_SIGNALS];

/* Time after the first signal in which every other one is the same request. */
#define WEFT_STOP_GRACE_NS (INT64_C(10) * 1000000000)

/* One run's request. {0} holds none. Signal handlers may write and read it. */
struct weft_stop {
    atomic_int signal_number; /* of the first signal; 0: nobody asked */
    atomic_int interrupts;    /* SIGINT from the terminal so far */
    _Atomic int64_t since_ns; /* of the first signal */
    int64_t grace_ns;         /* 0 = WEFT_STOP_GRACE_NS */
};

enum weft_stop_answer {
    WEFT_STOP_BEGINS,  /* the first signal */
    WEFT_STOP_GOES_ON, /* the same request again */
    WEFT_STOP_AT_ONCE, /* a deliberate second request: do not wait for the save */
};

/* Notes a signal of the list that arrived at `now_ns`. It is a second request if it is a second
 * SIGINT from the terminal, or if a process sent the number of the first signal again after the
 * grace. The kernel repeats SIGXCPU every second, which is no second request. Async-signal-safe. */
enum weft_stop_answer weft_stop_note(struct weft_stop *stop, const siginfo_t *info, int64_t now_ns);

/* Whether the signal is one of the list. */
bool weft_stop_asks(int signal_number);

/* Whether the terminal's user pressed Ctrl-C: no process sent this SIGINT. */
bool weft_stop_is_interrupt(const siginfo_t *info);

/* Gives every signal of the list this handler. `all` is false: SIGINT and SIGHUP stay ignored where
 * the process was started so, as by a shell in the background and by nohup. */
void weft_stop_handle(void (*handler)(int, siginfo_t *, void *), bool all);

#endif
