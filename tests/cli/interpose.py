# SPDX-License-Identifier: Apache-2.0
"""Replaces functions of the C library in a test: a shared object for LD_PRELOAD."""
import os
import shutil
import subprocess

from tap import Skip

HEAD = """
#define _GNU_SOURCE
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
"""


def shared_object(weft, name, source):
    """Compiles `source` to a shared object of this name, and returns its path."""
    compiler = shutil.which("cc")
    if not compiler:
        raise Skip("no compiler to make a shared object with")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", weft.path(name),
                    weft.write(f"{name}.c", source)], check=True, timeout=60)
    return weft.path(name)


def interpose(weft, name, source):
    """Compiles `source` and returns the environment that puts it before the C library."""
    path = shared_object(weft, f"{name}.so", HEAD + source)
    options = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
    return {"LD_PRELOAD": path, "ASAN_OPTIONS": options}


# The limit of mappings that the variable MAPPINGS gives.
FEW_MAPPINGS = """
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
static int open_maybe(const char *path, int flags, mode_t mode)
{
    const char *most = getenv("MAPPINGS");
    if (most == NULL || strcmp(path, "/proc/sys/vm/max_map_count") != 0)
        return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    int fd = memfd_create("mappings", 0);
    if (write(fd, most, strlen(most)) < 0) return -1;
    lseek(fd, 0, SEEK_SET);
    return fd;
}
int open(const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
    va_end(more);
    return open_maybe(path, flags, mode);
}
int open64(const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
    va_end(more);
    return open_maybe(path, flags, mode);
}
"""
