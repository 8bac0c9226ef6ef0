# SPDX-License-Identifier: Apache-2.0
"""Runs the `weft` program and reads its JSON."""
import json
import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

VERSION = "0.2.0"  # of the package, and of the program that it works with


class WeftError(Exception):
    """One sentence: the fault, its place and a cure."""


def find_program():
    """Returns the path of the program: $WEFT, next to the package, or on PATH."""
    named = os.environ.get("WEFT")
    near = Path(__file__).with_name("bin") / "weft"
    found = named or (str(near) if near.exists() else shutil.which("weft"))
    if not found:
        raise WeftError("no program weft: put it on PATH, or set WEFT to its path")
    if not shutil.which(found):
        raise WeftError(f"WEFT={named}: no such program")
    return found


# The first task of an MPI launcher alone runs most verbs, but any task may ask here.
TASK_NAMES = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK")


def run_program(*words):
    """Returns the program's output. A failure is a WeftError with the program's own message."""
    environment = {name: value for name, value in os.environ.items() if name not in TASK_NAMES}
    done = subprocess.run([find_program(), *words], capture_output=True, text=True, check=False, env=environment)
    if done.returncode == 0:
        return done.stdout
    said = [line[6:] for line in done.stderr.splitlines() if line.startswith("weft: ")]
    said = [line for line in said if not line.startswith("warning")]
    raise WeftError(said[-1] if said else f"weft {words[0]} ended with exit code {done.returncode}")


def check_version():
    """Raises unless the program has the package's version, since files may differ otherwise."""
    version = json.loads(run_program("version", "--json"))["weft"]
    if version != VERSION:
        raise WeftError(f"{find_program()} is weft {version}, and this package needs {VERSION}: "
                        "install the same release of both")


def make_export(config, profile=None, flags=(), force=False):
    """Plans the config and returns the export of the plan, a dictionary. `force` as in weft export."""
    return make_plan(config, profile, flags, force)[1]


@contextmanager
def write_files(**contents):
    """Yields paths of temporary JSON files by name; None: no content yet."""
    with tempfile.TemporaryDirectory() as directory:
        paths = {name: str(Path(directory) / f"{name}.json") for name in contents}
        for name, content in contents.items():
            if content is not None:
                Path(paths[name]).write_text(json.dumps(content), encoding="utf-8")
        yield paths


def name_profile(paths, profile):
    return ("--profile", paths["profile"]) if profile else ()


def make_plan(config, profile=None, flags=(), force=False):
    """Returns the contents of the plan's file and of its export."""
    check_version()
    with write_files(config=config, profile=profile, plan=None) as paths:
        run_program("plan", paths["config"], "-o", paths["plan"], "-q", *name_profile(paths, profile), *flags)
        said = json.loads(run_program("export", paths["plan"], "--to", "fsdp2", *(("--force",) if force else ())))
        return json.loads(Path(paths["plan"]).read_text(encoding="utf-8")), said


def weigh_plan(plan, config, profile=None):
    """Returns peak_bytes and peak_slot of a plan in the memory of another config."""
    with write_files(config=config, profile=profile, plan=plan) as paths:
        said = json.loads(run_program("export", paths["plan"], "--to", "fsdp2", "--force", "--config",
                                      paths["config"], *name_profile(paths, profile)))
    return said["as_run"]
