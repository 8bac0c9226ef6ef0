#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Paths that comments, messages and pages name: paths.py SOURCE_ROOT. TAP.

A path starts with a folder of the tree, as in `docs/hosts.md`, and has an ending or a final slash. It is read from the
root, or from a folder above the file; in docs/faults.md also from tests/. Names to fill in (NAME, X, a star) are skipped,
and so are files that a test only makes up.
"""
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cli"))

from tap import Skip, case, main  # pylint: disable=wrong-import-position
from tree import list_files

ROOT = Path(sys.argv[1]).resolve()
READ = {".c", ".h", ".cu", ".cc", ".py", ".sh", ".md", ".build", ".json", ".txt"}
ENDINGS = "md|c|h|cu|cc|py|sh|json|txt|build|list|slurm"


FILES = list_files(ROOT)
FOLDERS = sorted({path.relative_to(ROOT).parts[0] for path in FILES if len(path.relative_to(ROOT).parts) > 1})
NAMED = re.compile(rf"(?<![\w./$}}<-])((?:{'|'.join(map(re.escape, FOLDERS))})/(?:[\w.-]+/)*(?:[\w-]+\.(?:{ENDINGS})\b|(?<=/)))(?![\w*<{{%-])")


# A bench that does not exist, files of a run, and the example of a new planner.
MADE_UP = {"tests/style/results.py": {"bench/figure.py", "bench/no.sh", "runtime/exec/fast.h"},
           "tests/library/launch.py": {"library/plan.json"},
           "docs/extending.md": {"scheduler/planners/early.c", "tests/scheduler/planners/early.c"}}
OWN = Path(__file__).resolve()
FILL_IN = re.compile(r"(?:^|/)(?:NAME|X)\.")


def exists(path, name):
    bases = [ROOT, *(folder for folder in path.parents if ROOT in folder.parents)]
    if path.relative_to(ROOT).as_posix() == "docs/faults.md":
        bases.append(ROOT / "tests")
    return any((base / name).exists() or (base / f"{name}.in").exists() for base in bases) or FILL_IN.search(name) \
        or name in MADE_UP.get(path.relative_to(ROOT).as_posix(), ())


def lost(path, text):
    return [f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, found.start()) + 1}: there is no {found[1]}"
            for found in NAMED.finditer(text) if not exists(path, found[1])]


@case
def each_path_is_in_the_tree(_):
    bad = [line for path in FILES if path.suffix in READ and path != OWN
           for line in lost(path, path.read_text(encoding="utf-8", errors="replace"))]
    assert not bad, "\n".join(bad)


@case
def a_path_that_is_nowhere_is_found(_):
    page = ROOT / "docs/usage.md"
    assert lost(page, "see `docs/usage.md`, docs/keys.md, configs/runs/ and\n(spec/kind.h).") == []
    for text, name in (("as docs/nowhere.md says", "docs/nowhere.md"), ("`base/json/no.c`", "base/json/no.c"),
                       ("/* spec/kinds.h */", "spec/kinds.h"), ("in configs/ran/.", "configs/ran/")):
        assert lost(page, "\n" + text) == [f"docs/usage.md:2: there is no {name}"], text


@case
def each_case_that_docs_of_faults_name_is_there(_):
    text = (ROOT / "docs/faults.md").read_text()
    named = [pair for pair in re.findall(r"`(\w+): (\w+)`", text) if pair != ("file", "name")]
    assert len(named) > 50, named
    bad = [f"{file}: {name}" for file, name in named
           if not re.search(rf"^def {name}\(", (ROOT / f"tests/cli/{file}.py").read_text(), re.M)]
    assert not bad, bad


@case
def commands_of_fuzzing_name_all_files(weft):
    """They link: every function that the sources call is in a source that they name."""
    clang = shutil.which("clang")
    found = 0
    for path in FILES:
        for command in re.findall(r"^ \* +(clang [^*]*-fsanitize=fuzzer(?:[^*]|\*(?!/))*?-o [\w-]+)",
                                  path.read_text(encoding="utf-8", errors="replace") if path.suffix == ".c" else "", re.M):
            found += 1
            words = re.sub(r"\\\n \*", " ", command)
            # Without sanitizers it takes a fifth of the time.
            words = words.replace("fuzzer,address,undefined", "fuzzer").replace(" -o ", f" -o {weft.directory}/")
            if not clang:
                raise Skip("clang is not installed")
            done = subprocess.run(words, shell=True, cwd=ROOT, capture_output=True, text=True, check=False)
            if "libclang_rt.fuzzer" in done.stderr:
                raise Skip("clang's libFuzzer is not installed")
            assert done.returncode == 0, done.stderr[-1500:]
            program = weft.path(words.split(" -o ")[1].split("/")[-1])
            subprocess.run([program, "-runs=100"], check=True, capture_output=True)
    assert found == 2, found


main(sys.executable)
