#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every command of bench/results runs: commands.py BUILD SOURCE [all]. TAP.

RUNS has each command at a size that takes seconds. Without `all` only the cheap ones run. The others need minutes, a
GPU, several hosts, PyTorch (WEFT_TORCH: its interpreter), llm.c (WEFT_LLM_C: its folder) or texts of Debian.
"""
import contextlib
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

BUILD, SOURCE = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
sys.path.insert(0, str(SOURCE / "tests/cli"))
from tap import CASES, Skip, case, main  # noqa: E402

ALL = sys.argv[3:] == ["all"]
TINY, PLANNED = "configs/runs/gpt-tiny.json", "{weft} plan " + "configs/runs/gpt-tiny.json -o {scratch}/plan.json -q"
TORCH, LLM_C = os.environ.get("WEFT_TORCH"), os.environ.get("WEFT_LLM_C")
PEERS = "python3 bench/peers/compare.py --weft {weft} --rounds 2 --steps 1"
# Begin of a command in bench/results: (its smallest form, and whether CI runs it). A form may have several commands.
RUNS = {
    "weft verify plan.json": (PLANNED + " && {weft} verify {scratch}/plan.json", True),
    "weft explain plan.json": (PLANNED + " && {weft} explain {scratch}/plan.json", True),
    "weft plan run.json": (f"{{weft}} plan {TINY} --time-limit 10s -o {{scratch}}/plan.json -q", True),
    "weft plan configs/runs/resnet-50.json":
        ("{weft} plan configs/runs/resnet-50.json --set plan.block_efficiency=0.5 --set plan.work_limit=1M -q", True),
    "weft generate RUN": (f"{{weft}} train {TINY} --set train.steps=1 --run {{scratch}}/run -q && "
                          "{weft} generate {scratch}/run --prompt a --tokens 2 --set cluster.threads=1", True),
    "build/bench/checkpoint": (f"{{build}}/bench/checkpoint {TINY} {{scratch}}/saves 1", True),
    "python3 bench/checkpoint.py": ("python3 bench/checkpoint.py --weft {weft} --directory {scratch} --every 6 --saves 2 "
                                    f"--config {TINY}", True),
    "build/bench/comm 2": ("{build}/bench/comm 2", False),
    "python3 bench/planner/estimate.py": ("python3 bench/planner/estimate.py --build {build} gpt-tiny", True),
    "build/bench/exec && build/bench/device": ("{build}/bench/exec && {build}/bench/device", False),
    "bench/gpu/run": ("bench/gpu/run --quick", None),
    "python3 bench/figures.py": ("python3 bench/figures.py --weft {weft} memory", False),
    "python3 bench/figures.py overlap": ("python3 bench/figures.py --weft {weft} overlap", False),
    "python3 bench/both_orders.py": ("python3 bench/both_orders.py --build {build} --rates 2GB/s --steps 3 --repeats 1 --tries 1",
                                     False),
    "build/bench/nn": ("{build}/bench/nn plain f32", False),
    "meson test -C build": ("meson test -C {build} --no-rebuild --list", True),
    "build/bench/map": (f"{{build}}/bench/map {TINY} cluster.ranks=2 cluster.emulate=false", True),
    "build/bench/planner/pages": (f"{{build}}/bench/planner/pages {TINY} --set plan.work_limit=1M", True),
    "python3 bench/network/hosts.py":
        ("python3 bench/network/hosts.py {build} --models gpt-10m --rates 1000 --hybrid-rates 1000 --variants hsdp", False),
    "python3 bench/network/collectives.py":
        ("python3 bench/network/collectives.py {build} --sections levels --libraries openmpi --hosts 2", False),
    "python3 bench/network/nodes.py":
        ("python3 bench/network/nodes.py {build} --hosts 2 --ways nodes", False),
    "python3 bench/network/bits.py":
        ("python3 bench/network/bits.py {build} --libraries openmpi --policies fsdp --layouts 2x1", False),
    "python3 bench/network/kills.py": ("python3 bench/network/kills.py {build} --kills 1", False),
    "python3 bench/pages.py": ("python3 bench/pages.py --build {build} --small", True),
    "python3 bench/planner/groups.py": ("python3 bench/planner/groups.py --build {build}", False),
    "python3 bench/planner/offload.py": ("python3 bench/planner/offload.py --build {build} limits --models gpt2-xl --points 1",
                                         False),
    "python3 bench/planner/offload.py --build build inputs":
        ("python3 bench/planner/offload.py --build {build} inputs --micro-steps 2", True),
    "python3 bench/offload/store.py":
        ("python3 bench/offload/store.py --build {build} --directory {scratch} --mib 64 --rounds 1 --seconds 1", False),
    "python3 bench/planner/figures.py": ("python3 bench/planner/figures.py --build {build} --out {scratch}/plans --configs 2 "
                                         "--work 10M random", True),
    "python3 bench/planner/figures.py --build build gap":
        ("python3 bench/planner/figures.py --build {build} --out {scratch}/plans --quick", False),
    "python3 bench/planner/together.py": ("python3 bench/planner/together.py --build {build} --work 1M --models gpt2-xl --out "
                                          "{scratch}/plans", False),
    "python3 bench/planner/target.py": ("python3 bench/planner/target.py --build {build} --work 1M --configs 1", True),
    "python3 bench/planner/builds.py": ("python3 bench/planner/builds.py --before {weft} --after {weft} --out {scratch}/plans "
                                        "--set plan.work_limit=1M gpt-tiny", True),
    "python3 bench/planner/unseen.py":
        ("python3 bench/planner/unseen.py --build {build} --configs 1 --draw 5 --kinds fsdp2 --work 1M", True),
    "python3 bench/planner/levels.py": ("python3 bench/planner/levels.py --build {build} --work 1M --models gpt2-xl", False),
    "python3 bench/planner/nodes.py": ("python3 bench/planner/nodes.py --build {build} --work 1M --most-work 1M --models gpt2-xl "
                                       "--limits 80GB --networks 25", False),
    "python3 bench/planner/averages.py": ("python3 bench/planner/averages.py --build {build} --work 1M --models gpt2-xl "
                                          "--networks 25 --steps 16 --no-jitter", False),
    "python3 bench/planner/orders.py": ("python3 bench/planner/orders.py --build {build} --work 1M --models gpt2-xl "
                                        "--networks 25 --micro-steps 2 --seq-len 1024 "
                                        "--part {scratch}/orders", True),
    "python3 bench/planner/updates.py": ("python3 bench/planner/updates.py --build {build} --models gpt2-xl --hosts 50GB "
                                         "--layers 8 --work 1M", True),
    "python3 bench/planner/on_gpu.py": ("python3 bench/planner/on_gpu.py --build {build} --work 1M", True),
    "python3 bench/planner/plain.py": ("python3 bench/planner/plain.py --build {build} --seconds 5 4", False),
    "python3 bench/planner/recompute.py": ("python3 bench/planner/recompute.py --build {build} --work 1M --models gpt2-xl "
                                           "--out {scratch}/plans", False),
    "python3 bench/planner/scale.py": ("python3 bench/planner/scale.py --build {build} --steps 2", False),
    "python3 tests/judge_traces.py": ("python3 tests/judge_traces.py {weft} gpt2-xl", False),
    "python3 bench/newcomer.py": ("python3 bench/newcomer.py --build {build} --first 2", True),
    "python3 bench/installs.py debs": ("python3 bench/installs.py {scratch} --root {scratch}", False),
    "python3 bench/installs.py wheels": ("python3 bench/installs.py {scratch} --wheels", False),
    "python3 bench/study/parts.py": ("python3 bench/study/parts.py --build {build} --work 1M --models resnet-50 --networks 1 "
                                     "--out {scratch}/plans", False),
    "python3 bench/study/study.py planners": ("python3 bench/study/study.py planners --build {build} --work 1M --models "
                                              "resnet-50 --out {scratch}/plans", False),
    "python3 bench/study/study.py solvers": ("python3 bench/study/study.py solvers --build {build} --work 1M --models "
                                             "resnet-50 --out {scratch}/plans", True),
    "python3 bench/peers/compare.py --python": (f"{PEERS} --python {TORCH} --precision f32 pytorch", False),
    "python3 bench/peers/compare.py --llm.c": (f"{PEERS} --llm.c {LLM_C} llm.c", False),
    "bench/train_text.sh": ("bench/train_text.sh {build} {scratch}/text 2", False),
}
# Messages of a bench that lacks a tool or a machine.
LACKS = re.compile(r"^(?:skipped: |no GPU|.*(?:is not installed|install .* first|needs root|no such program)).*", re.M)


def commands():
    """Returns {command: tables that name it}."""
    found = {}
    for path in sorted((SOURCE / "bench/results").glob("*.json")):
        for table in json.loads(path.read_text())["tables"]:
            for entry in [table, *table["asked"]]:
                if "command" in entry:
                    found.setdefault(entry["command"], []).append(f"{path.stem}/{table['name']}")
    return found


def begin_of(command):
    """Returns the longest key of RUNS that begins the command."""
    return max((begin for begin in RUNS if command.startswith(begin)), key=len, default=None)


@case
def each_command_has_a_small_form(_):
    told = commands()
    assert len(told) > 30, told
    lacking = [command for command in told if begin_of(command) is None]
    unused = set(RUNS) - {begin_of(command) for command in told}
    assert not lacking and not unused, (lacking, unused)


@case
def tests_of_commands_exist(_):
    listed = subprocess.run(["meson", "test", "-C", BUILD, "--no-rebuild", "--list"], check=True, capture_output=True,
                            text=True).stdout
    names = {line.rsplit(" / ", 1)[-1] for line in listed.splitlines()}
    begin = "meson test -C build "
    told = {name for command in commands() if command.startswith(begin) for name in command.removeprefix(begin).split()}
    assert told and told <= names, told - names


@case
def a_run_of_a_comparison_may_follow_another(weft):
    """Rounds of compare.py and of figures.py train one config again."""
    def load(name):
        spec = importlib.util.spec_from_file_location(Path(name).stem, SOURCE / "bench" / name)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    compare, figures = load("peers/compare.py"), load("figures.py")
    config = compare.weft_config(weft.directory, "gpt-tiny.json", "f32", 2, 16, 3, 1.0)
    for _ in range(2):
        assert len(compare.weft_steps(weft.program, config, weft.directory)) == 2
    ranks = figures.Weft(weft.program, weft.directory)
    path = ranks.write(figures.run_config(figures.gpt(1, 32, 2, 16), 2, 2, 16, 1))
    profile = ranks.profile(path)
    plan, _ = ranks.plan(path, profile, "all-fsdp")
    for _ in range(2):
        assert ranks.train(path, profile, plan, "all-fsdp")["step_ns"] > 0


def reason_to_skip(begin):
    if begin == "bench/gpu/run":
        return "bench/gpu/run needs a GPU and hands its own report back"
    if "--python" in begin and not TORCH:
        return "WEFT_TORCH names no interpreter with PyTorch"
    if "--llm.c" in begin and not LLM_C:
        return "WEFT_LLM_C names no folder of llm.c"
    return None


def runs(begin, form):
    def run(weft):
        reason = reason_to_skip(begin)
        if reason:
            raise Skip(reason)
        words = form.format(build=BUILD, weft=weft.program, scratch=weft.directory)
        done = subprocess.run(words, shell=True, cwd=SOURCE, capture_output=True, text=True, timeout=1200, check=False,
                              env={**os.environ, "WEFT_GEMM": "onednn"})
        said = done.stdout + done.stderr
        lacks = LACKS.search(said)
        if done.returncode != 0 and lacks:
            raise Skip(lacks[0].removeprefix("skipped: "))
        assert done.returncode == 0, f"{words}: exit {done.returncode}\n{said[-1500:]}"
        with contextlib.suppress(ValueError):
            assert json.loads(done.stdout), words
        assert said.strip(), f"{words} prints nothing"
    run.__name__ = re.sub(r"\W+", "_", begin)
    return run


for start, (small, cheap) in RUNS.items():
    if cheap or ALL:
        CASES.append(runs(start, small))
main(BUILD / "cli/weft")
