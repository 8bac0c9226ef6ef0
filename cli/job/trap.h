/* SPDX-License-Identifier: Apache-2.0 */
/* The trap is a rank's handler of SIGSEGV and SIGBUS. If a layer or a kernel touches memory of the
 * arena where it may not, the rank ends with an error that names both. Other faults go to the
 * previous handler or to the system. */
#ifndef WEFT_CLI_JOB_TRAP_H
#define WEFT_CLI_JOB_TRAP_H

#include <stdint.h>

#include "runtime/exec/exec.h"

/* Installs the handlers. The error goes to `error_fd` at the rank's offset; -1: only the exit code
 * reports it. */
void weft_trap_set(int32_t rank, int error_fd);
/* Sets the executor that owns the arena; NULL once it is destroyed. */
void weft_trap_watch(const struct weft_exec *exec);

#endif
