#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks nvcc's code of kernels without running it.

    code.py check PTX... OBJECT...      a test, TAP: no rule is broken
    code.py planted PTX... OBJECT...    the same for planted mistakes: planted_RULE breaks RULE alone

Rules of PTX apply to every GPU. Rules of machine code need cuobjdump (on the path, next to nvcc, or named by
WEFT_CUOBJDUMP). They are skipped if it is missing or does not know a GPU.
"""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

# Other kernels have the CPU's bits: no approximations, and fma only in kernels that write it.
INEXACT = re.compile(r"attend|cross_entropy")
FUSED = re.compile(r"gelu|tanh|soft_cap|gate|softmax|product|attend|cross_entropy")
# Kernels that move whole arrays need wide accesses.
WIDE = re.compile(r"each<|column_stripe<.*4>|squares<|layer_norm|rms_norm|rope_pairs<.*, [24]>|softmax|"
                  r"embed(?!_tokens<.*, 1>)|cross_entropy|product_tile|attend_|planted_wide")
# A flag, and initial values: nvcc splits their stores, and arithmetic bounds their time.
NARROW = re.compile(r"look_op|set_op|normal_op|uniform_op")
TENSOR = re.compile(r"attend_(?:forward|queries|keys)|planted_tensor")

FLOAT = r"(?:f16|bf16|f32|f64)\w*"


def body(text, opening):
    """Returns the text from the brace at `opening` to its end."""
    depth = 0
    for i in range(opening, len(text)):
        depth += (text[i] == "{") - (text[i] == "}")
        if depth == 0:
            return text[opening:i + 1]
    return text[opening:]


def read_ptx(path):
    """Returns {kernel: instructions}."""
    text, kernels = Path(path).read_text(encoding="utf-8"), {}
    for entry in re.finditer(r"\.entry (\w+)\(", text):
        kernels[entry.group(1)] = body(text, text.index("{", entry.end()))
    return kernels


def tool():
    named = os.environ.get("WEFT_CUOBJDUMP")
    for path in (named, shutil.which("cuobjdump"), "/usr/local/cuda/bin/cuobjdump"):
        if path and Path(path).exists():
            return path
    return None


def read_sass(cuobjdump, path):
    """Returns {(kernel, target): instructions}. cuobjdump finds nvdisasm on the path."""
    env = dict(os.environ, PATH=f"{Path(cuobjdump).parent}:{os.environ['PATH']}")
    done = subprocess.run([cuobjdump, "-sass", path], capture_output=True, text=True, env=env)
    found, target, kernel = {}, None, None
    for line in done.stdout.splitlines():
        arch = re.search(r"arch = (sm_\w+)", line)
        function = re.search(r"Function : (\w+)", line)
        code = re.match(r"\s+/\*[0-9a-f]{4,}\*/\s+(.*?);?\s*(?:&|/\*|$)", line)
        if arch:
            target = arch.group(1)
        elif function:
            kernel = (function.group(1), target)
            found[kernel] = []
        elif code and kernel:
            found[kernel].append(code.group(1))
    return {at: "\n".join(lines) for at, lines in found.items() if lines}


def count(pattern, text):
    return len(re.findall(pattern, text))


def ptx_rules(kernel, code):
    """Returns {rule: instructions that break it}."""
    bad = {}
    if not INEXACT.search(kernel):
        bad["approximation"] = re.findall(r"\b\w+\.approx[\w.]*", code)
        bad["contraction"] = re.findall(r"(?<=\s)(?:mul|add|sub|mad)(?:\.ftz)?\.f32\b", code)
        bad["flush"] = re.findall(r"\b\w+[\w.]*\.ftz[\w.]*", code)
        if not FUSED.search(kernel):
            bad["contraction"] += re.findall(r"\bfma\.rn\.f32\b", code)
    bad["float-atomic"] = re.findall(rf"\b(?:atom|red)\.[\w.]*\.{FLOAT}", code)
    bad["local-memory"] = re.findall(r"\.local\b", code)
    if WIDE.search(kernel) and not NARROW.search(kernel):
        wide = count(r"\b(?:ld|st)\.global[\w.]*\.v[24]\.", code)
        bad["wide-access"] = [] if wide else ["no access of 8 or 16 bytes"]
    if TENSOR.search(kernel):
        bad["tensor-core"] = [] if count(r"\bmma\.sync", code) else ["no mma"]
    return bad


def sass_rules(kernel, code, ptx):
    bad = {"local-memory": re.findall(r"\b(?:LDL|STL)\b", code),
           "float-atomic": re.findall(r"\b(?:RED|ATOM|ATOMG|ATOMS)\.[\w.]*F(?:16|32|64)[\w.]*", code)}
    if not INEXACT.search(kernel):
        bad["approximation"] = re.findall(r"\bMUFU\.(?:EX2|TANH|LG2|SIN|COS)\b", code)
        roots, divisions = count(r"\bsqrt\.rn", ptx), count(r"\b(?:div|rcp)\.rn|\b(?:div|rem)\.[us]", ptx)
        if not roots:  # a division's NaN is made like that of a root
            bad["approximation"] += re.findall(r"\bMUFU\.RSQ(?!\S* \w+, -QNAN)[^\n]*", code)
        if not roots and not divisions:
            bad["approximation"] += re.findall(r"\bMUFU\.RCP\w*", code)
            if not count(r"\bfma\.rn", ptx):
                bad["contraction"] = re.findall(r"\bFFMA\w*", code)
    if WIDE.search(kernel) and not NARROW.search(kernel):
        wide = count(r"\b(?:LDG|STG)\.E\.(?:[A-Z]+\.)*(?:64|128)\b", code)
        bad["wide-access"] = [] if wide else ["no access of 8 or 16 bytes"]
    if TENSOR.search(kernel):
        bad["tensor-core"] = [] if count(r"\bHMMA\.", code) else ["no HMMA"]
    return bad


def demangled(names):
    told = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True,
                          check=True).stdout.splitlines()
    return dict(zip(names, told))


def examine(paths):
    """Returns ([(rule, place, kernel, instruction)], kernels, machine codes, the reason if there are none)."""
    ptx, sass, why, broken = {}, {}, "", []
    for path in (p for p in paths if p.endswith(".ptx")):
        ptx.update(read_ptx(path))
    names = demangled(list(ptx))
    for mangled, code in ptx.items():
        broken += [(rule, "PTX", names[mangled], what)
                   for rule, found in ptx_rules(names[mangled], code).items() for what in found]
    objects, cuobjdump = [p for p in paths if p.endswith(".o")], tool()
    if not cuobjdump:
        return broken, len(ptx), 0, "there is no cuobjdump"
    for path in objects:
        sass.update(read_sass(cuobjdump, path))
    if not sass:
        why = f"{cuobjdump} shows no machine code"
    for (mangled, target), code in sass.items():
        rules = sass_rules(names[mangled], code, ptx[mangled])
        broken += [(rule, target, names[mangled], what)
                   for rule, found in rules.items() for what in found]
    return broken, len(ptx), len(sass), why


RULES = ("approximation", "contraction", "flush", "float-atomic", "local-memory", "wide-access",
         "tensor-core")


def check(paths):
    broken, kernels, codes, why = examine(paths)
    skipped = f" # SKIP {why}" if why else ""
    for number, rule in enumerate(RULES, 1):
        found = [b for b in broken if b[0] == rule]
        print(f"{'not ' if found else ''}ok {number} - {rule}: {kernels} kernels in PTX")
        for _, where, kernel, what in found[:20]:
            print(f"# {kernel}, {where}: {what}")
    print(f"ok {len(RULES) + 1} - the same of {codes} kernels in machine code{skipped}")
    print(f"1..{len(RULES) + 1}")
    return 0 if not broken and kernels else 1


def planted(paths):
    """Checks planted mistakes. Kernels are named planted_RULE, with _ for -, and may have a suffix."""
    broken, _, codes, why = examine(paths)
    tests = []

    def test(name, bad):
        tests.append(not bad)
        print(f"{'not ' if bad else ''}ok {len(tests)} - {name}")
        for line in bad:
            print("#", line)

    for place in ("PTX", "machine code"):
        if place != "PTX" and why:
            print(f"# machine code was not looked at: {why}")
            continue
        here = [b for b in broken if (b[1] == "PTX") == (place == "PTX")]
        for rule in RULES:
            word = "planted_" + rule.replace("-", "_")
            if place != "PTX" and rule == "flush":
                continue
            hits = [b for b in here if b[0] == rule]
            test(f"{rule}, in {place}, is found where it was planted",
                 [] if any(word in b[2] for b in hits) else ["nothing was found"])
            test(f"{rule}, in {place}, is found nowhere else",
                 [f"{b[2]}: {b[3]}" for b in hits if word not in b[2]])
    print(f"1..{len(tests)}")
    return 0 if all(tests) else 1


sys.exit((check if sys.argv[1] == "check" else planted)(sys.argv[2:]))
