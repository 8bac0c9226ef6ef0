"""Functions of the C library as a test wants them: a shared object for LD_PRELOAD."""
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


def interpose(weft, name, source):
    """Compiles `source` and returns the environment that puts it before the C library."""
    compiler = shutil.which("cc")
    if not compiler:
        raise Skip("no compiler to make a shared object with")
    path = weft.path(f"{name}.so")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", path,
                    weft.write(f"{name}.c", HEAD + source)], check=True, timeout=60)
    options = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
    return {"LD_PRELOAD": path, "ASAN_OPTIONS": options}
