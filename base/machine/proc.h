/* /proc, where the kernel tells a process about itself: its program's file, its memory, its limits.
 * A chroot or a container may lack it. Runs need it; planning does not. */
#ifndef WEFT_BASE_MACHINE_PROC_H
#define WEFT_BASE_MACHINE_PROC_H

#include <stdbool.h>
#include <stddef.h>

/* Whether `proc`, which is "/proc" but in tests, tells of this process. Otherwise `lacking` gets
 * the path that cannot be read, and errno the reason. */
bool weft_proc_look(const char *proc, char *lacking, size_t capacity);

/* Fills `out` with the path of this program's file, also without /proc: then it is the path that
 * the program was started by. False if neither is known or fits. */
bool weft_proc_program(char *out, size_t capacity);

/* The same, where `link` stands for /proc/self/exe. */
bool weft_proc_program_at(const char *link, char *out, size_t capacity);

#endif
