/* Starting a program as a process of its own. However this process ends, also by a signal, the
 * program ends with it. exec takes signal handlers away, but what arrives before it would run them
 * in the child, which says and does what only its parent should: so signals are blocked from fork
 * until handlers are gone. */
#ifndef WEFT_BASE_PROCESS_H
#define WEFT_BASE_PROCESS_H

#include <signal.h>
#include <sys/types.h>

#include "base/status.h"

/* What to start. Descriptors that are not closed by exec are passed on; 0, 1 and 2 are open, so
 * that no other is one of them. */
struct weft_process {
    const char *path;         /* NULL: this very program */
    char *const *argv;        /* ends with NULL */
    char *const *environment; /* likewise; NULL: this process's own */
    const sigset_t *signals;  /* those it starts with blocked; NULL: as the calling thread has it */
    int in, out, note;        /* its stdin (negative: nothing to read), stdout and stderr (negative:
                                 this process's own) */
    /* NULL, or what else is done in the child before exec: nothing but system calls. */
    void (*prepare)(const void *context);
    const void *context;
};

/* *pid is a child of the calling thread, which must outlive it; the caller waits for it. It is the
 * program already: when there is none to run, that is an error here, and no child is left.
 * WEFT_E_SYSTEM; WEFT_E_NO_INPUT or WEFT_E_PERMISSION of the path. */
WEFT_MUST_USE enum weft_status weft_process_start(const struct weft_process *process, pid_t *pid,
                                                  struct weft_error *err);

/* The first executable of that name in PATH. Fills `out` and returns it; NULL when there is none.
 */
const char *weft_process_find(const char *name, char *out, size_t capacity);

#endif
