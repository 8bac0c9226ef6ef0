#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The program's output equals the stored output.

    python3 tests/golden/golden.py BUILD/cli/weft             compares with files/
    python3 tests/golden/golden.py BUILD/cli/weft --update    rewrites files/; read the diff

Only output that integers decide is here: plans by rules, their text, and help. Numbers that
training gives differ from machine to machine, and plans by the solver with the solver; they are
held by properties in the other suites. A plan too large to read stands as its SHA-256."""
import difflib
import hashlib
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cli"))

from tap import Weft, case, main  # pylint: disable=wrong-import-position

FILES = HERE / "files"
CONFIGS = HERE.parent.parent / "configs" / "runs"
DIFF_LINES = 40


def config(name):
    return str(CONFIGS / f"{name}.json")


def says(*arguments):
    return lambda weft: weft.expect(0, *arguments)


def plan_text(name):
    return says("plan", config(name), "--planner", "greedy")


def plan_json(name):
    def make(weft):
        path = Path(weft.path("plan.json"))
        weft.expect(0, "plan", config(name), "--planner", "greedy", "-o", str(path), "-q")
        return path.read_bytes().decode()
    return make


def plan_hash(name):
    return lambda weft: hashlib.sha256(plan_json(name)(weft).encode()).hexdigest() + "\n"


def recomputed(name, limit):
    """The report and the file's hash of a plan that recomputes within a limit."""
    def make(weft):
        path = Path(weft.path("plan.json"))
        text = weft.expect(0, "plan", config(name), "--planner", "greedy", "--set", "plan.recompute=auto",
                           "--memory-limit", limit, "-o", str(path))
        return text + hashlib.sha256(path.read_bytes()).hexdigest() + "\n"
    return make


def estimate(name):
    """By a path that is the same in every tree: it is in the text."""
    def make(weft):
        Path(weft.path("configs")).symlink_to(CONFIGS.parent)
        return weft.expect(0, "estimate", f"configs/runs/{name}.json")
    return make


def explain(name):
    def make(weft):
        path = weft.path("plan.json")
        weft.expect(0, "plan", config(name), "--planner", "all-fsdp", "-o", path, "-q")
        # One of them whole: the longest tables would be all that the files are.
        rows = ["--all"] if name == "gpt2" else []
        return weft.expect(0, "explain", path, "--work-limit", "20G", *rows)
    return make


def explain_order(name):
    """The part about the other order alone."""
    def make(weft):
        path, flags = weft.path("plan.json"), ("--set", "plan.policies=fsdp")
        weft.expect(0, "plan", config(name), "--planner", "greedy", *flags, "-o", path, "-q")
        text = weft.expect(0, "explain", path, "--config", config(name), *flags, "--set", "plan.planner=greedy")
        return text[text.index("the other order"):].split("\n\n")[0] + "\n"
    return make


GOLDEN = {
    "help.txt": says("help"),
    "help-best.txt": says("help", "best"),
    "help-plan.txt": says("help", "plan"),
    "help-sweep.txt": says("help", "sweep"),
    "estimate-gpt-tiny.txt": estimate("gpt-tiny"),
    "plan-llama-3.1-405b-recomputed.txt": recomputed("llama-3.1-405b", "60GB"),
}
GOLDEN["explain-order-gpt-accumulate.txt"] = explain_order("gpt-accumulate")
for run in ("gpt-accumulate", "gpt-no-clip"):
    GOLDEN[f"plan-{run}.txt"] = plan_text(run)
for run in ("mlp-tiny", "gpt-tiny", "gpt2", "gpt3-1.3b"):
    GOLDEN[f"plan-{run}.txt"] = plan_text(run)
    if run.endswith("tiny"):
        GOLDEN[f"plan-{run}.json"] = plan_json(run)
    else:
        GOLDEN[f"plan-{run}.sha256"] = plan_hash(run)
    GOLDEN[f"explain-{run}.txt"] = explain(run)


def compare(file, text):
    path = FILES / file
    assert path.exists(), f"{path} is missing; make it with --update"
    expected = path.read_bytes().decode()
    if text == expected:
        return
    diff = list(difflib.unified_diff(expected.splitlines(), text.splitlines(), f"files/{file}",
                                     "now", lineterm=""))
    more = [f"... and {len(diff) - DIFF_LINES} lines more"] if len(diff) > DIFF_LINES else []
    raise AssertionError("\n".join(["if this is meant: golden.py BUILD/cli/weft --update"]
                                   + (diff[:DIFF_LINES] + more or ["line ends differ"])))


def compares(file, make):
    def run_case(weft):
        compare(file, make(weft))
    run_case.__name__ = file
    return run_case


@case
def no_file_is_left_over(_):
    left_over = {path.name for path in FILES.iterdir()} - set(GOLDEN)
    assert not left_over, f"nothing makes {sorted(left_over)}; --update removes them"


def update(program):
    """All of it is made before any of it is written: a program that fails changes no file."""
    with tempfile.TemporaryDirectory() as directory:
        made = {file: make(Weft(program, directory)) for file, make in GOLDEN.items()}
    FILES.mkdir(exist_ok=True)
    for path in FILES.iterdir():
        path.unlink()
    for file, text in made.items():
        (FILES / file).write_bytes(text.encode())


if __name__ == "__main__":
    if sys.argv[2:] == ["--update"]:
        update(sys.argv[1])
    elif len(sys.argv) == 2:
        for golden_file, maker in GOLDEN.items():
            case(compares(golden_file, maker))
        main(sys.argv[1])
    else:
        sys.exit(f"usage: {sys.argv[0]} BUILD/cli/weft [--update]")
