# SPDX-License-Identifier: Apache-2.0
"""A test program that speaks TAP. Cases are functions; an exception is a failure, and a Skip has a reason."""
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

CASES = []


class Skip(Exception):
    """Raised by a case that cannot run here."""


def case(function):
    CASES.append(function)
    return function


def some(cases, usual):
    """All cases in `make check-all`; otherwise `usual` of them, drawn by the seed of the tree, in their order."""
    cases = list(cases)
    if "WEFT_TEST_ALL" in os.environ or usual >= len(cases):
        return cases
    drawn = random.Random(os.environ.get("WEFT_TEST_SEED", "0")).sample(range(len(cases)), usual)
    return [cases[i] for i in sorted(drawn)]


def seed_of_draws():
    """The seed of the tree, or a fresh one in a run without it. Prints the seed."""
    seed = int(os.environ.get("WEFT_TEST_SEED") or int.from_bytes(os.urandom(4), "little"))
    print(f"# WEFT_TEST_SEED={seed}")
    return seed


def seeded():
    return random.Random(seed_of_draws())


DRAWN = []


def drawn_case(function):
    """A case of a long test, of which `make check` runs a third, drawn by the seed of the tree. `make check-all`, and a
    run without a seed, have all cases.
    """
    DRAWN.append(function.__name__)
    return case(function)


def left_out():
    """Names of drawn cases that do not run. Under sanitizers, for which scripts/check.sh sets ASAN_OPTIONS, all are drawn."""
    if "WEFT_TEST_ALL" in os.environ or "WEFT_TEST_SEED" not in os.environ:
        return []
    drawn = [function.__name__ for function in CASES] if "ASAN_OPTIONS" in os.environ else DRAWN
    taken = some(drawn, (len(drawn) + 2) // 3)
    return [name for name in drawn if name not in taken]


class Weft:
    """Runs the program in its own scratch directory."""

    def __init__(self, program, directory):
        self.program = str(Path(program).resolve())
        self.directory = Path(directory)

    def path(self, name):
        return str(self.directory / name)

    def is_sanitized(self):
        compiler = json.loads(self.run("doctor", "--json")[1])["compiler"]["text"]
        return not compiler.endswith("sanitizers none")

    def fresh(self, name):
        """Removes a run's directory, since no run may start over another. Returns the name."""
        shutil.rmtree(self.path(name), ignore_errors=True)
        return name

    def write(self, name, content):
        data = content if isinstance(content, (str, bytes)) else json.dumps(content)
        path = self.directory / name
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return str(path)

    def start(self, *arguments, env=None, prefix=(), **options):
        return subprocess.Popen([*prefix, self.program, *arguments], cwd=self.directory,
                                env={**os.environ, **(env or {})}, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, **options)

    def run(self, *arguments, env=None, timeout=120, **options):
        process = self.start(*arguments, env=env, **options)
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            out, err = process.communicate()
            raise AssertionError(f"weft {' '.join(arguments)} hung; stderr: {err[-500:]}")
        return process.returncode, out, err

    def expect(self, code, *arguments, says=(), **options):
        """Runs weft, checks the exit code and that stderr has each text of `says`. Returns stdout."""
        got, out, err = self.run(*arguments, **options)
        assert got == code, f"exit {got}, not {code}: {' '.join(arguments)}\n{err}{out[-500:]}"
        for text in [says] if isinstance(says, str) else says:
            assert text in err, f"stderr lacks {text!r}:\n{err}"
        if code != 0:
            lines = [line for line in err.splitlines() if line.startswith("weft: ")
                     and not line.startswith("weft: warning")]
            assert lines, f"no message on stderr: {err!r}"
        return out


def set_default_signals():
    """Children inherit ignored and blocked signals: of a shell's background job, of nohup, of a supervisor."""
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGPIPE}:
        if signal.getsignal(number) is not None:  # the C library keeps a few for itself
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def main(program):
    failures, not_now = 0, left_out()
    set_default_signals()
    cases = [function for function in CASES if function.__name__ not in not_now]
    print(f"1..{len(cases)}")
    if not_now:
        print(f"# left to other trees and to make check-all: {', '.join(not_now)}")
    for number, function in enumerate(cases, 1):
        name = function.__name__.replace("_", " ")
        begun = time.monotonic()
        with tempfile.TemporaryDirectory() as directory:
            try:
                function(Weft(program, directory))
                print(f"ok {number} - {name} ({time.monotonic() - begun:.2f}s)")
            except Skip as skip:
                print(f"ok {number} - {name} # SKIP {skip}")
            except Exception:  # pylint: disable=broad-except
                failures += 1
                for line in traceback.format_exc().splitlines():
                    print(f"# {line}")
                print(f"not ok {number} - {name}")
        sys.stdout.flush()
    sys.exit(1 if failures else 0)
