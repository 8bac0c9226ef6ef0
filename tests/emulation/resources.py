#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares registers and shared memory of each kernel with the table in the repository.

    resources.py check TABLE VERSION LOG...            a test, TAP
    resources.py write TABLE VERSION LAUNCHES LOG...   makes the table

LOG is ptxas's output for a .cu file, VERSION the toolkit's. LAUNCHES is the output of watched tests with --table:
threads and shared memory of blocks. With a toolkit other than the table's, registers may differ, and only the rules
for every toolkit apply.
"""
import re
import subprocess
import sys
from pathlib import Path

ENTRY = re.compile(r"Compiling entry function '(\w+)' for '(sm_\d+)'")
FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers")
# Threads, blocks and bytes of shared memory of a multiprocessor. All have the same number of registers, allocated to
# warps in units.
SM = {"sm_80": (2048, 32, 167936), "sm_86": (1536, 16, 102400), "sm_89": (1536, 24, 102400),
      "sm_90": (2048, 32, 233472), "sm_100": (2048, 32, 233472), "sm_120": (1536, 24, 102400)}
REGISTERS, UNIT, WARP, OWN_SHARED = 65536, 256, 32, 1024


def demangled(names):
    told = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True,
                          check=True).stdout.splitlines()
    return dict(zip(names, told))


def short(name):
    """Drops the result and the parameters: 'void each<fill_op>(fill_op, bool)' becomes each<fill_op>."""
    name = re.sub(r"^void ", "", name)
    depth = 0
    for i, letter in enumerate(name):
        depth += (letter == "<") - (letter == ">")
        if letter == "(" and depth == 0 and not name.startswith("(", i - 1):
            return name[:i]
    return name


def read_logs(paths):
    """Returns {kernel: {target: (registers, frame, spills)}}."""
    found = {}
    for path in paths:
        where = frame = None
        for line in Path(path).read_text(encoding="utf-8").splitlines():
            entry, of_frame, used = ENTRY.search(line), FRAME.search(line), USED.search(line)
            if entry:
                where = entry.groups()
            elif of_frame:
                frame = [int(n) for n in of_frame.groups()]
            elif used and where:
                found.setdefault(where[0], {})[where[1]] = (int(used.group(1)), frame[0],
                                                            frame[1] + frame[2])
                where = None
    names = demangled(list(found))
    return {short(names[mangled]): of for mangled, of in found.items()}


def occupancy(target, registers, threads, shared):
    """Returns the share of a multiprocessor's threads that can run at once."""
    most_threads, most_blocks, most_shared = SM[target]
    warps = -(-threads // WARP)
    of_warp = -(-registers * WARP // UNIT) * UNIT
    blocks = min(most_blocks, most_threads // threads, REGISTERS // of_warp // warps,
                 most_shared // (shared + OWN_SHARED))
    return blocks * threads / most_threads


def read_table(path):
    """Returns (version, targets, {kernel: (threads, shared, {target: registers})})."""
    version, targets, kernels = None, [], {}
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        words = re.split(r"  +", line.strip(), maxsplit=1)
        if line.startswith("# toolkit "):
            version = line.split()[2]
        elif line.startswith("kernel"):
            targets = re.findall(r"sm_\d+", line.split("occupancy")[0])
        elif line and not line.startswith("#"):
            numbers = words[1].split()
            kernels[words[0]] = (int(numbers[0]), int(numbers[1]),
                                 dict(zip(targets, map(int, numbers[2:2 + len(targets)]))))
    return version, targets, kernels


def write(table, version, launches, logs):
    built, seen = read_logs(logs), {}
    for line in Path(launches).read_text(encoding="utf-8").splitlines():
        name, threads, shared = line.split("\t")[:3]
        was = seen.get(short(name), (0, 0))
        seen[short(name)] = (max(was[0], int(threads)), max(was[1], int(shared)))
    targets = list(SM)
    lines = ["# Registers a thread, threads and shared memory a block of each kernel, as nvcc built and",
             "# tests launched it (the most); and what part of a multiprocessor's threads that leaves.",
             "# Written by: tests/emulation/all BUILD --write", f"# toolkit {version}", ""]
    wide = max(map(len, built)) + 2
    lines.append(f"{'kernel':{wide}}threads  shared  " + "  ".join(targets) +
                 "  occupancy " + "  ".join(targets))
    for kernel in sorted(built):
        threads, shared = seen.get(kernel, (0, 0))
        if threads == 0:
            sys.exit(f"{kernel} was not launched by any test with --table")
        registers = [built[kernel].get(t, (0,))[0] for t in targets]
        parts = [f"{occupancy(t, r, threads, shared):.2f}" for t, r in zip(targets, registers)]
        lines.append(f"{kernel:{wide}}{threads:7} {shared:7} " +
                     " ".join(f"{r:{len(t) + 1}}" for r, t in zip(registers, targets)) +
                     " " * 11 + " ".join(f"{p:>{len(t) + 1}}" for p, t in zip(parts, targets)))
    Path(table).write_text("\n".join(lines) + "\n", encoding="utf-8")


def check(table, version, logs):
    of, targets, kernels = read_table(table)
    built, tests = read_logs(logs), []

    def test(name, bad):
        tests.append(not bad)
        print(f"{'not ' if bad else ''}ok {len(tests)} - {name}")
        for line in bad:
            print("#", line)

    every = [(k, t, *r) for k, of_target in built.items() for t, r in of_target.items()]
    test(f"no spill and no memory of a thread's own ({len(every)} kernels)",
         [f"{k}, {t}: a frame of {f} bytes, {s} bytes spilled" for k, t, _, f, s in every if f or s])
    test("the table has every kernel, and no other",
         [f"not in the table: {k}" for k in sorted(built.keys() - kernels.keys())] +
         [f"not built: {k}" for k in sorted(kernels.keys() - built.keys())])
    both = [(k, t, r) for k, t, r, *_ in every if k in kernels]
    test("a block of every kernel fits on every target",
         [f"{k}, {t}: {r} registers, {kernels[k][0]} threads, {kernels[k][1]} bytes"
          for k, t, r in both if not occupancy(t, r, *kernels[k][:2])])
    if of == version:
        test("no kernel has more registers than in the table",
             [f"{k}, {t}: {r}, not {kernels[k][2][t]}" for k, t, r in both
              if t in targets and r > kernels[k][2][t]])
    else:
        print(f"# toolkit {version}, and the table is of {of}: registers were not compared")
    print(f"1..{len(tests)}")
    return 0 if all(tests) and built else 1


if sys.argv[1] == "write":
    write(sys.argv[2], sys.argv[3], sys.argv[4], sys.argv[5:])
else:
    sys.exit(check(sys.argv[2], sys.argv[3], sys.argv[4:]))
