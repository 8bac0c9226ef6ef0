/* SPDX-License-Identifier: Apache-2.0 */
/* /proc, in which the kernel describes a process: its program's file, memory and limits. A chroot
 * or a container may lack it. Runs need it; planning does not. */
#ifndef WEFT_BASE_MACHINE_PROC_H
#define WEFT_BASE_MACHINE_PROC_H

#include <stdbool.h>
#include <stddef.h>

/* True if `proc`, "/proc" except in tests, describes this process. Otherwise `lacking` gets the
 * missing path, and errno the reason. */
bool weft_proc_look(const char *proc, char *lacking, size_t capacity);

/* Fills `out` with the path of this program's file; without /proc, with the path that started it.
 * False if neither is known or fits. */
bool weft_proc_program(char *out, size_t capacity);

/* The same, with `link` in place of /proc/self/exe. */
bool weft_proc_program_at(const char *link, char *out, size_t capacity);

#endif
