/* SPDX-License-Identifier: Apache-2.0 */
/* Starts a program as a child process that ends with this process, even if a signal ends this
 * process. exec resets signal handlers, but an earlier signal would run them in the child. So
 * signals stay blocked from fork until handlers are gone. */
#ifndef WEFT_BASE_PROCESS_H
#define WEFT_BASE_PROCESS_H

#include <signal.h>
#include <sys/types.h>

#include "base/status.h"

/* The process to start. Descriptors without close-on-exec are inherited. 0, 1 and 2 are open, so no
 * other descriptor has these numbers. */
struct weft_process {
    const char *path;         /* NULL: this program */
    char *const *argv;        /* ends with NULL */
    char *const *environment; /* ends with NULL; NULL: this process's environment */
    const sigset_t *signals;  /* signals that start blocked; NULL: the calling thread's mask */
    int in, out, note; /* its stdin (negative: empty), stdout and stderr (negative: inherited) */
    /* Runs in the child before exec, with system calls only; NULL: none. */
    void (*prepare)(const void *context);
    const void *context;
};

/* Starts a program. *pid is a child of the calling thread, which must outlive it; the caller waits
 * for it. exec has succeeded when this returns; otherwise it fails and leaves no child.
 * WEFT_E_SYSTEM; WEFT_E_NO_INPUT or WEFT_E_PERMISSION for the path. */
WEFT_MUST_USE enum weft_status weft_process_start(const struct weft_process *process, pid_t *pid,
                                                  struct weft_error *err);

/* Finds the first executable of that name in PATH. Fills `out` and returns it; NULL if there is
 * none. */
const char *weft_process_find(const char *name, char *out, size_t capacity);

#endif
