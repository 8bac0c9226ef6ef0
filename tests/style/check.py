#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The house rules of ARCHITECTURE.md as a test: style/check.py RULE SOURCE_ROOT [BUILD_ROOT].

Rules: layers (which folder may include which; no circles of files, of modules or of folders; no clock in
planning, one includer of each foreign header, C++ only where CUDA is), sizes (files, functions,
headers, sources in a folder), words (nothing unfinished,
nothing of one machine), names (a static function names its object: verb_object; a header's guard
names its path), mirror (a test file has the path of its source, and its folder's meson.build
lists it; a kernel has an emulated test), format (clang-format), symbols (what libraries export begins
with weft_, and libweft asks the system for nothing that starts a process or takes a signal).
Exit 0 when the rule holds, 1 with every violation on a line, 77 when it cannot be checked here.
"""
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

from tree import list_files

PLANNING = ["base", "spec", "shard", "memory_model", "problem", "proof", "plan", "program",
            "scheduler"]
RUNTIME = ["device", "arena", "comm", "nn", "exec", "measure", "launch", "checkpoint", "train"]
MAY = {
    "include": [],
    "base": [],
    "spec": ["base"],
    "layers": ["base", "spec"],
    "shard": ["base", "spec"],
    "memory_model": ["base", "spec", "shard"],
    "problem": PLANNING[:4],
    "proof": PLANNING[:5],
    "plan": PLANNING[:6],
    "program": PLANNING[:7],
    "scheduler": PLANNING[:8],
    "report": PLANNING[:8],
    "offload": ["base"],
    "text": ["base"],
    "runtime/device": ["base"],
    "runtime/arena": ["base", "offload", "runtime/device"],
    "runtime/comm": ["base", "runtime/device", "runtime/arena", "runtime/nn"],
    "runtime/nn": ["base", "spec", "layers", "runtime/device"],
    "runtime/exec": PLANNING[:8] + ["runtime/device", "runtime/arena", "runtime/comm",
                                      "runtime/nn", "offload"],
    "runtime/measure": PLANNING[:8]
    + ["runtime/device", "runtime/arena", "runtime/comm", "runtime/nn", "runtime/exec",
       "offload"],
    "runtime/launch": ["base", "spec"],
    "runtime/checkpoint": ["base", "spec", "runtime/device", "runtime/arena", "runtime/comm"],
    "runtime/train": PLANNING[:8] + ["layers"] + ["runtime/" + r for r in RUNTIME if r != "train"],
    "library": PLANNING + ["layers"] + ["runtime/" + r for r in RUNTIME],
    "examples": [],
}
TIMELESS = PLANNING[1:] + ["layers", "report"]
CLOCKS = {"base/clock.h", "time.h", "sys/time.h"}
FOREIGN = {"glpk.h", "nccl.h", "mpi.h", "dnnl.h", "cblas.h", "cublasLt.h", "cuda_runtime.h",
           "cuda_runtime_api.h", "cuda.h", "pcre2.h", "zlib.h"}
NOT_A_LIBRARY_S = re.compile(r"v?fork|_Fork|clone3?|f?exec[vl][a-z]*|posix_spawnp?|system|popen|"
                             r"sigaction|signal|sigset|signalfd|sigwait[a-z]*")
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b|not implemented")
SUBJECT_LAST = re.compile(r"^\s*(?:/\*|//|#|\*)\s+Of \w+")
LOCAL = re.compile(r"/(?:home|root)/\w|/tmp/(?:b-|brief)")
LIMITS = {"header": 200, "public": 300, "file": 800, "function": 100, "folder": 20}
# Static functions of one word that are left, by the first folder. The figures may only fall.
ONE_WORD = {"bench": 38, "runtime": 1, "tests": 360}
STATIC = re.compile(r"^static\b[^;{}=()]*?(?:__attribute__\s*\(\(.*?\)\)[^;{}=()]*?)?\b([a-z]+\d*)\(",
                    re.M | re.S)
# Exceptions: folders that go in circles together, full folders. The lists may only get shorter.
TOGETHER = []
FULL = {"cli/verbs"}  # one file a verb


CODE = (".c", ".h", ".cu", ".cc")
CPP = {".cc", ".cpp", ".cxx", ".hh", ".hpp", ".cu", ".cuh"}
CPP_FOLDERS = {".cu": re.compile(r"(?:runtime/\w+/cuda(?:/kernels)?|tests/emulation/planted)/\w+\.cu"),
               ".cc": re.compile(r"(?:runtime/nn/cuda/products/cudnn|tests/emulation/(?:\w+/)?\w+)\.cc")}


def sources(root, *suffixes):
    return [path for path in list_files(root) if path.suffix in suffixes]


def folder_of(relative):
    parts = relative.parts
    if parts[0] == "runtime":
        return "/".join(parts[:2])
    return parts[0]


def includes(path):
    return re.findall(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', path.read_text(), re.M)


def check_layers(root):
    bad, graph, foreign = misplaced(root), {}, {}
    for path in sources(root, *CODE):
        relative = path.relative_to(root)
        folder = folder_of(relative)
        for name in includes(path):
            base = name.rsplit("/", 1)[-1]
            if base in FOREIGN and folder not in ("bench", "tests") and not (root / name).exists():
                foreign.setdefault(base, []).append(str(relative))
            if folder in TIMELESS and name in CLOCKS:
                bad.append(f"{relative}: may not include {name}: planning asks no clock but the "
                           "alarm of base/work.h")
            target = root / name
            if "/" not in name or not target.exists():
                continue
            graph.setdefault(str(relative), []).append(name)
            other = folder_of(Path(name))
            if other == "include":
                continue  # what users see is for everybody
            if folder in MAY and other != folder and other not in MAY[folder]:
                bad.append(f"{relative}: may not include {name} ({folder} may use "
                           f"{', '.join(MAY[folder]) or 'nothing'})")
    for name, users in foreign.items():
        if len(users) > 1:
            bad.append(f"{name}: included by {', '.join(users)}; the house wants one file")
    graph = {a: set(b) for a, b in graph.items() if is_product(a)}
    folders = joined(graph, lambda name: str(Path(name).parent))
    modules = joined(graph, lambda name: str(Path(name).with_suffix("")))
    bad += ["circle of files: " + " ".join(sorted(c)) for c in circles(graph)]
    bad += ["circle of folders: " + " ".join(sorted(c)) for c in circles(folders)
            if set(c) not in TOGETHER]
    bad += ["circle of modules: " + " ".join(sorted(c)) for c in circles(modules)]
    return bad


def is_product(name):
    return not name.startswith(("tests/", "bench/", "examples/"))


def joined(graph, part_of):
    """The graph of parts: a source and its header are one module, files of one folder are a folder."""
    parts = {}
    for name, targets in graph.items():
        to = {part_of(target) for target in targets} - {part_of(name)}
        parts.setdefault(part_of(name), set()).update(to)
    return parts


def misplaced(root):
    """Weft is C; C++ is for kernels, their tests, and cuDNN's frontend."""
    bad = []
    for path in sources(root, *CPP):
        relative = str(path.relative_to(root))
        if not CPP_FOLDERS.get(path.suffix, re.compile("(?!)")).fullmatch(relative):
            bad.append(f"{relative}: C++ belongs into runtime/*/cuda/kernels/*.cu, runtime/nn/cuda/products/cudnn.cc and tests/emulation/*.cc")
    return bad


def circles(graph):
    """Sets of nodes that reach each other (Tarjan's strongly connected components)."""
    number, low, stack, found = {}, {}, [], []

    def visit(node):
        number[node] = low[node] = len(number)
        stack.append(node)
        for target in sorted(graph.get(node, ())):
            if target not in number:
                visit(target)
            if target in stack:
                low[node] = min(low[node], low[target])
        if low[node] == number[node]:
            circle = stack[stack.index(node):]
            del stack[stack.index(node):]
            if len(circle) > 1:
                found.append(circle)

    for node in sorted(graph):
        if node not in number:
            visit(node)
    return found


def check_sizes(root):
    bad = full_folders(root)
    for path in sources(root, *CODE):
        relative = path.relative_to(root)
        lines = [line for line in path.read_text().splitlines() if "SPDX-License-Identifier" not in line]
        most = LIMITS["header"] if path.suffix == ".h" else LIMITS["file"]
        if str(relative) == "include/weft.h":
            most = LIMITS["public"]
        if len(lines) > most:
            bad.append(f"{relative}: {len(lines)} lines, at most {most}")
        for name, length in functions(lines):
            if length > LIMITS["function"]:
                bad.append(f"{relative}: {name} has {length} lines, at most {LIMITS['function']}")
        for number, line in enumerate(lines, 1):
            if len(line) > 100:
                bad.append(f"{relative}:{number}: {len(line)} columns, at most 100")
    return bad


def full_folders(root):
    counts = Counter(str(path.relative_to(root).parent) for path in sources(root, ".c")
                     if is_product(str(path.relative_to(root))))
    full = {folder for folder, n in counts.items() if n > LIMITS["folder"]}
    return ([f"{folder}: {counts[folder]} sources, at most {LIMITS['folder']}"
             for folder in sorted(full - FULL)]
            + [f"{folder}: not full any more, take it off the list" for folder in FULL - full])


def functions(lines):
    """(signature, lines) of each function: a brace on its own at column 0, to the closing one."""
    start = None
    for number, line in enumerate(lines):
        if line == "{" and number and not lines[number - 1].rstrip().endswith("="):
            start = number
        elif line == "}" and start is not None:
            yield lines[start - 1].strip(), number - start + 1
            start = None


def check_words(root):
    bad = []
    for path in sources(root, *CODE, ".py", ".sh", ".build", ".json", ".md"):
        relative = path.relative_to(root)
        if str(relative) == "tests/style/check.py":
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for pattern in (UNFINISHED, LOCAL, SUBJECT_LAST):
                found = pattern.search(line)
                if found:
                    bad.append(f"{relative}:{number}: {found.group(0)}")
    return bad


def check_names(root):
    """A search for `fill_events` finds it; one for `fill` finds a function in each folder."""
    found = {}
    for path in sources(root, *CODE):
        relative = path.relative_to(root)
        for name in sorted(set(STATIC.findall(path.read_text()))):
            found.setdefault(relative.parts[0], []).append(f"{relative}: {name}")
    bad = []
    for folder, names in sorted(found.items()):
        most = ONE_WORD.get(folder, 0)
        if len(names) > most:
            bad += names + [f"{folder}: {len(names)} static functions of one word, at most {most}: "
                            "name the object of each new one (fill_events, not fill)"]
    return bad + wrong_guards(root)


def wrong_guards(root):
    """A moved or renamed header keeps no guard of its old path."""
    bad = []
    for path in sources(root, ".h"):
        relative = path.relative_to(root)
        guard = re.search(r"^#ifndef (WEFT_\w+_H)$", path.read_text(), re.M)
        wanted = "WEFT_" + re.sub(r"[/.]", "_", str(relative)).upper()
        if guard and guard[1] != wanted and relative.parts[0] != "include":
            bad.append(f"{relative}: its guard is {guard[1]}, not {wanted}")
    return bad


def check_mirror(root):
    """Every folder of sources has tests under the same path."""
    bad = []
    for folder in MAY:
        tests = root / "tests" / folder
        if folder == "examples":
            continue  # run by tests/library
        if any((root / folder).glob("*.c")) and not any(tests.glob("*.c")):
            bad.append(f"{folder}: has sources and no test in tests/{folder}")
    return bad + unlisted(root) + untested_kernels(root) + unheld_invariants(root)


def unheld_invariants(root):
    """ARCHITECTURE.md is short; each of its invariants names a test that there is, as a file or SUITE/CASE."""
    text = (root / "ARCHITECTURE.md").read_text()
    bad = [] if len(text.splitlines()) <= 150 else ["ARCHITECTURE.md: more than 150 lines"]
    cases = {f"{suite}/{case}" for path in sources(root / "tests", ".c")
             for suite, case in re.findall(r"^Test\((\w+), (\w+)", path.read_text(), re.M)}
    invariants = re.findall(r"^(\d+)\. (.*?)(?=^\d+\. |^## |\Z)", text, re.M | re.S)
    for number, invariant in invariants:
        tests = re.findall(r"`(tests/[\w/.]+|\w+/[a-z_0-9]+)`", invariant)
        missing = [t for t in tests if t not in cases and not (t.startswith("tests/") and (root / t).exists())]
        if not tests or missing:
            bad.append(f"ARCHITECTURE.md: invariant {number}: no test {' '.join(missing)}")
    return bad if invariants else bad + ["ARCHITECTURE.md: no invariants"]


def untested_kernels(root):
    """X.cu has an emulated test X.cc; every kernel is one that a test expects to have been launched,
    every function one that a test calls."""
    bad = []
    for path in sources(root, ".cu", ".h"):
        relative = path.relative_to(root)
        if "cuda" not in relative.parts:
            continue
        tests = root / "tests/emulation" / relative.parts[1]
        own = tests / f"{path.stem}.cc"
        if path.suffix == ".cu" and not own.exists():
            bad.append(f"{relative}: has no test {own.relative_to(root)}")
            continue
        text, expected = path.read_text(), "".join(t.read_text() for t in tests.glob("*.[ch]*"))
        for name in re.findall(r"__global__ void\s+(?:__launch_bounds__\([^)]*\)\s+)?(\w+)\(", text):
            if not re.search(rf'"{name}[<"]', expected):
                bad.append(f"{relative}: no test expects kernel {name}")
        for name in re.findall(r"^int (weft_cuda_\w+)\(.*?\)\n\{", text, re.M | re.S):
            if not re.search(rf"\b{name}\(", expected):
                bad.append(f"{relative}: no test calls {name}")
    return bad


def unlisted(root):
    """Test files that are in no program: their cases would never run. The meson.build of a folder
    lists them, or one above."""
    bad = []
    for path in sources(root, ".c", ".cc"):
        relative = path.relative_to(root)
        if relative.parts[0] != "tests":
            continue
        if not any(lists(above, path) for above in path.parents if root in above.parents):
            bad.append(f"{relative}: {path.parent.relative_to(root)}/meson.build does not list it")
    return bad


def lists(folder, path):
    build = folder / "meson.build"
    if not build.exists():
        return False
    listed = re.findall(r"'([\w./]+\.cc?)'|'(\w+)'", build.read_text())
    return str(path.relative_to(folder)) in {c or f"{word}{path.suffix}" for c, word in listed}


def check_format(root):
    tool = shutil.which("clang-format")
    if not tool:
        print("skipped: clang-format is not installed")
        sys.exit(77)
    done = subprocess.run([tool, "--dry-run", "--Werror", *map(str, sources(root, *CODE))],
                          capture_output=True, text=True)
    told = re.findall(r"^(.+?):(\d+):\d+: error", done.stderr, re.M)
    bad = [f"{Path(name).relative_to(root)}:{line}: run clang-format -i" for name, line in told]
    return bad or ([] if done.returncode == 0 else [done.stderr])


def check_symbols(root, build):
    tool = shutil.which("nm")
    libraries = sorted(build.glob("**/libweft-*.a"))
    if not tool or not libraries:
        print("skipped: no nm (Debian: binutils)" if not tool
              else f"skipped: no libraries in {build}: run `ninja -C {build}` first")
        sys.exit(77)
    bad = []
    for library in libraries:
        listed = subprocess.run([tool, "-g", "--defined-only", str(library)], capture_output=True,
                                text=True).stdout
        for line in listed.splitlines():
            words = line.split()
            if len(words) == 3 and words[1] in "TDBRC" and not words[2].startswith("weft_"):
                bad.append(f"{library.name}: exports {words[2]}")
    return bad + check_imports(tool, build)


def check_imports(tool, build):
    bad = []
    shared = {path.resolve() for path in build.glob("library/libweft.so*") if path.is_file()}
    if not shared:
        bad.append(f"{build}/library has no libweft.so: run `ninja -C {build}` first")
    for library in shared:
        listed = subprocess.run([tool, "-D", "--undefined-only", str(library)],
                                capture_output=True, text=True).stdout
        names = [line.split()[-1].split("@")[0] for line in listed.splitlines()]
        if "malloc" not in names:
            bad.append(f"{library.name}: nm lists no imports")
        bad += [f"{library.name}: imports {name}, which is not for a library to call"
                for name in names if NOT_A_LIBRARY_S.fullmatch(name)]
    return bad


def main():
    rule, root = sys.argv[1], Path(sys.argv[2]).resolve()
    if rule == "symbols":
        bad = check_symbols(root, Path(sys.argv[3]).resolve())
    else:
        bad = {"layers": check_layers, "sizes": check_sizes, "words": check_words, "names": check_names,
               "mirror": check_mirror, "format": check_format}[rule](root)
    for line in bad:
        print(line)
    sys.exit(1 if bad else 0)


main()
