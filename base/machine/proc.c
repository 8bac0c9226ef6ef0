/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* realpath */
#include "base/machine/proc.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <unistd.h>

bool weft_proc_look(const char *proc, char *lacking, size_t capacity)
{
    /* A program that may be executed but not read is enough. */
    static const struct {
        const char *name;
        int mode;
    } needs[] = {{"self/exe", F_OK}, {"self/status", R_OK}, {"self/fd", R_OK | X_OK}};
    for (size_t i = 0; i < sizeof needs / sizeof *needs; i++) {
        snprintf(lacking, capacity, "%s/%s", proc, needs[i].name);
        if (access(lacking, needs[i].mode) != 0) return false;
    }
    return true;
}

bool weft_proc_program_at(const char *link, char *out, size_t capacity)
{
    char path[PATH_MAX];
    const ssize_t n = readlink(link, path, sizeof path - 1);
    if (n > 0) {
        path[n] = '\0';
    } else {
        const char *started = (const char *)(uintptr_t)getauxval(AT_EXECFN);
        if (started == NULL || realpath(started, path) == NULL) return false;
    }
    const int length = snprintf(out, capacity, "%s", path);
    return length > 0 && (size_t)length < capacity;
}

bool weft_proc_program(char *out, size_t capacity)
{
    return weft_proc_program_at("/proc/self/exe", out, capacity);
}
