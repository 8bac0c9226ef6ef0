/* The trap is a rank's handler of SIGSEGV and SIGBUS: a layer or a kernel that touches memory of
 * the arena where it may not ends the rank with an error that names both, instead of a signal. What
 * is met elsewhere goes to the handler before, or to the system. */
#ifndef WEFT_CLI_JOB_TRAP_H
#define WEFT_CLI_JOB_TRAP_H

#include <stdint.h>

#include "runtime/exec/exec.h"

/* From here on. The error is left in `error_fd` at the rank's place, as ranks leave theirs; -1: the
 * exit code says all. */
void weft_trap_set(int32_t rank, int error_fd);
/* Whose arena it is, until the executor is destroyed: then NULL. */
void weft_trap_watch(const struct weft_exec *exec);

#endif
