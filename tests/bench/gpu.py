# SPDX-License-Identifier: Apache-2.0
"""How bench/gpu runs programs and packs them: gpu.py BENCH_GPU, without a GPU. TAP."""
import importlib.machinery
import importlib.util
import os
import sys
import time
from pathlib import Path

FOLDER = Path(sys.argv[1]).resolve().parent
sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "cli"), str(FOLDER)]
from machine import Failure, Machine  # noqa: E402
from tap import case, main  # noqa: E402

PYTHON = sys.executable


def machine_in(weft):
    scratch = Path(weft.path("scratch"))
    scratch.mkdir()
    return Machine(scratch, scratch, False)


def failure_of(lines):
    try:
        list(lines)
    except Failure as failure:
        return failure
    raise AssertionError("no failure")


@case
def lines_come_while_stderr_is_full(weft):
    code = "import sys; sys.stderr.write('x' * 300000); print('one'); print('two')"
    assert list(machine_in(weft).lines(PYTHON, "-c", code)) == ["one\n", "two\n"]


@case
def a_program_that_fails_is_told_with_its_stderr(weft):
    failure = failure_of(machine_in(weft).lines(PYTHON, "-c", "import sys; sys.exit('no memory')"))
    assert "ended with exit code 1" in str(failure) and "no memory" in failure.log, (failure, failure.log)


@case
def a_program_that_hangs_is_killed_with_its_children(weft):
    child = weft.path("child")
    code = (f"import os, subprocess, sys, time; p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
            f"open({child!r}, 'w').write(str(p.pid)); print('begun', flush=True); time.sleep(600)")
    failure = failure_of(machine_in(weft).lines(PYTHON, "-c", code, timeout=3))
    assert "did not end within 3 s" in str(failure), failure
    state = Path("/proc", Path(child).read_text(), "stat")
    for _ in range(100):
        if not state.exists() or state.read_text().split(")")[1].split()[0] == "Z":
            return
        time.sleep(0.1)
    raise AssertionError("its child still runs")


@case
def a_foreign_program_does_not_see_wefts_libraries(weft):
    machine, code = machine_in(weft), "import os; print(os.environ.get('LD_LIBRARY_PATH'))"
    machine.env["LD_LIBRARY_PATH"] = "/own"
    assert machine.run(PYTHON, "-c", code)[1] == "/own\n"
    assert machine.run(PYTHON, "-c", code, foreign=True)[1] == f"{os.environ.get('LD_LIBRARY_PATH')}\n"


@case
def a_library_that_is_not_found_is_one_error(weft):
    loader = importlib.machinery.SourceFileLoader("pack", str(FOLDER / "pack"))
    pack = importlib.util.module_from_spec(importlib.util.spec_from_loader("pack", loader))
    loader.exec_module(pack)
    folder = Path(weft.path("bin"))
    folder.mkdir()
    ldd = folder / "ldd"
    ldd.write_text("#!/bin/sh\nprintf '\\tlibm.so.6 => /lib/libm.so.6 (0x1)\\n\\tlibdnnl.so.2 => not found\\n'\n"
                   "printf '\\tlibcudart.so.13 => not found\\n'\n")
    ldd.chmod(0o755)
    before = os.environ["PATH"]
    os.environ["PATH"] = f"{folder}:{before}"
    try:
        found = pack.libraries_of("cli/weft")
    except pack.Missing as missing:
        assert "cli/weft needs libdnnl.so.2, which the loader does not find" in str(missing), missing
        assert "libcudart" not in str(missing), missing
    else:
        raise AssertionError(f"it goes on with {found}")
    finally:
        os.environ["PATH"] = before


if __name__ == "__main__":
    main(PYTHON)
