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
