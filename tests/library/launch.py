#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the library's example like a user: launch.py WEFT GATE EXAMPLES LIBRARY SANITIZERS.
TAP."""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "cli"))
from configs import tiny  # noqa: E402
from tap import case, main  # noqa: E402

GATE = str(Path(sys.argv[2]).resolve())
CONFIG = str(Path(sys.argv[3]).resolve() / "gate.json")
LIBRARY = Path(sys.argv[4]).resolve()
# Sanitizers hold memory of their own, and more with every step.
ROOM = () if sys.argv[5] == "none" else ("cluster.memory_limit=1GiB",)


def gate(weft, run, *settings, ranks=None, code=0, says=(), config=CONFIG):
    """Runs the example, by itself or launched, and returns its last line's fingerprint."""
    if ranks is None:
        done = subprocess.run([GATE, config, run, *ROOM, *settings], cwd=weft.directory,
                              capture_output=True, text=True, timeout=120, check=False)
        got, out, err = done.returncode, done.stdout, done.stderr
    else:
        got, out, err = weft.run("launch", "-n", str(ranks), GATE, config, run, *ROOM, *settings)
    assert got == code, f"exit {got}, not {code}: {err}{out[-500:]}"
    for text in [says] if isinstance(says, str) else says:
        assert text in err, f"{text!r} is not in {err!r}"
    return out.split()[-1] if code == 0 else None


def last_step(weft):
    lines = Path(weft.path("run/metrics.jsonl")).read_text(encoding="utf-8").splitlines(True)
    return max((json.loads(line)["step"] for line in lines if '"loss"' in line and line.endswith("\n")),
               default=0)


def children_of(pid):
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def losses(out):
    return [line.split()[-1] for line in out.splitlines() if line.startswith("step ")]


@case
def the_example_learns(weft):
    done = subprocess.run([GATE, CONFIG, "run", *ROOM], cwd=weft.directory, capture_output=True,
                          text=True, timeout=120, check=True)
    steps = [float(loss) for loss in losses(done.stdout)]
    assert len(steps) == 20 and steps[0] > 5.4 and steps[-1] < steps[0] - 1.5, steps
    assert done.stderr == "", done.stderr


@case
def weft_trains_the_same_layer_from_a_shared_object(weft):
    source = Path(CONFIG).parent / "gate.c"
    include = Path(__file__).resolve().parent.parent.parent / "include"
    subprocess.run([os.environ.get("CC", "cc").split()[-1], "-std=c11", "-Wall", "-Wextra", "-Werror", "-O2",
                    "-shared", "-fPIC", "-DLAYERS_ONLY", source, "-I", include, "-lm", "-o",
                    weft.path("gate.so")], check=True)
    settings = [word for setting in (*ROOM, "train.steps=4") for word in ("--set", setting)]
    weft.expect(0, "train", CONFIG, "--layers", "gate.so", "-n", "2", "--run", "run", "-q", *settings)
    result = json.loads(Path(weft.path("run/result.json")).read_text(encoding="utf-8"))
    assert gate(weft, "library", "train.steps=4", ranks=2) == result["fingerprint"], result
    # The library goes on with the run, and the program with the library's.
    more = [*settings, "--set", "train.steps=12", "--layers", "gate.so", "--resume", "-q"]
    weft.expect(0, "train", "--run", "run", *more)
    weft.expect(0, "train", "--run", "library", *more)
    ends = [json.loads(Path(weft.path(f"{run}/result.json")).read_text(encoding="utf-8"))
            for run in ("run", "library")]
    assert ends[0]["fingerprint"] == ends[1]["fingerprint"] != result["fingerprint"], ends


@case
def a_run_of_the_library_has_its_hosts_and_ranks(weft):
    gate(weft, "run", "train.steps=4", ranks=2)
    result = json.loads(Path(weft.path("run/result.json")).read_text(encoding="utf-8"))
    assert [(host["name"], host["ranks"]) for host in result["hosts"]] == [(os.uname().nodename, 2)], result
    assert [rank["host"] for rank in result["ranks"]] == [0, 0], result
    assert all(rank["compute_ns"] > 0 for rank in result["ranks"]), result
    ranks = json.loads(weft.expect(0, "report", "run", "--json"))["ranks"]
    assert len(ranks["run_ranks"]) == 2 and len(ranks["hosts"]) == 1, ranks


@case
def every_policy_gives_the_same_bits(weft):
    """The supplied layer's parameters are sharded as any other's."""
    prints = {gate(weft, f"run-{planner}", f"plan.planner={planner}", ranks=2): planner
              for planner in ("all-dp", "all-fsdp", "all-sdp", "all-zero1", "ilp")}
    assert len(prints) == 1, prints
    plan = json.loads(Path(weft.path("run-all-fsdp/plan.json")).read_text())
    assert "gate" in json.dumps(plan), "no unit of the layer's own"


def files_of(directory):
    """All but the lock, which names the process that holds it."""
    return [path for path in Path(directory).rglob("*") if path.name != "lock"]


@case
def a_run_that_is_done_says_so(weft):
    fingerprint = gate(weft, "run", ranks=2)
    before = {path: path.stat().st_mtime_ns for path in files_of(weft.path("run"))}
    again = weft.expect(0, "launch", "-n", "2", GATE, CONFIG, "run", *ROOM)
    assert again == f"all 20 steps were done before, parameters {fingerprint}\n", again
    after = {path: path.stat().st_mtime_ns for path in files_of(weft.path("run"))}
    assert after == before, "a file was touched"


@case
def a_run_that_is_done_and_saved_nothing_is_refused(weft):
    """Its parameters are gone, so no result can be given, and it is not trained over for more steps or checkpoints. All
    ranks end with the same error.
    """
    settings = ("train.steps=2", "train.checkpoint.at_end=false")
    for ranks in (None, 2):
        run = f"run-{ranks}"
        gate(weft, run, *settings, ranks=ranks)
        before = {path: path.read_bytes() for path in files_of(weft.path(run)) if path.is_file()}
        for again in (settings, ("train.steps=3", settings[1]), ("train.steps=2",)):
            gate(weft, run, *again, ranks=ranks, code=73,
                 says=[f"{run}: all 2 steps of a run were done before", "give another directory"])
        after = {path: path.read_bytes() for path in files_of(weft.path(run)) if path.is_file()}
        assert after == before, "a file was touched"


@case
def a_directory_of_others_is_left_alone(weft):
    """All ranks end with the same error."""
    Path(weft.path("mine")).mkdir()
    Path(weft.path("mine/config.json")).write_text("{}")
    for ranks in (None, 2):
        gate(weft, "mine", ranks=ranks, code=73, says="mine/config.json: is not of a run")
    assert [path.name for path in Path(weft.path("mine")).iterdir()] == ["config.json"]


@case
def resumed_runs_have_the_same_bits(weft):
    whole = gate(weft, "whole")
    gate(weft, "parts", "train.steps=10")
    assert gate(weft, "parts") == whole
    # Another number of ranks and another plan resume from this checkpoint.
    gate(weft, "more", "train.steps=10", ranks=2)
    assert gate(weft, "more", "plan.planner=all-fsdp", ranks=2) == gate(weft, "two", ranks=2)


def same(weft, one, other):
    """A library's run of a model without own layers is `weft train`'s, and its checkpoints too."""
    left, right = Path(weft.path(one)), Path(weft.path(other))
    for name in ("model.safetensors", "optimizer.safetensors"):
        assert (left / name).read_bytes() == (right / name).read_bytes(), name


@case
def resumed_ranks_keep_the_order_of_a_tied_tensor(weft):
    """Rank 0 alone reads the checkpoint."""
    layers = [{"name": "wte", "type": "embedding", "vocab": 256, "positions": 16, "hidden": 32},
              {"name": "h.{i}", "type": "transformer_block", "repeat": 2, "hidden": 32, "heads": 2, "ffn": 64},
              {"name": "head", "type": "lm_head", "vocab": 256, "hidden": 32, "bias": False, "tie": "wte"}]
    config = weft.write("run.json", tiny(model__layers=layers, train__grad_accum=4, train__reduce="step",
                                         train__checkpoint={"every": 2}))
    order = "plan.micro_step_order="

    def ends(run, steps, chosen):
        return gate(weft, run, f"train.steps={steps}", order + chosen, ranks=2, config=config)

    whole = ends("whole", 4, "2")
    assert ends("open", 4, "step") != whole, "bits cannot tell the orders"
    for chosen, keeps in (("auto", True), ("step", False)):
        ends(f"parts-{chosen}", 2, "2")
        assert (ends(f"parts-{chosen}", 4, chosen) == whole) == keeps, chosen
        made = json.loads(Path(weft.path(f"parts-{chosen}/plan.json")).read_text())["problem"]["period"]
        assert made.get("layers", 0) == (2 if keeps else 0), made


@case
def bits_are_those_of_weft_train(weft):
    config = weft.write("run.json", tiny(train__steps=6, train__checkpoint={"every": 3}))
    gate(weft, "library", ranks=2, config=config)
    weft.expect(0, "train", config, "--run", "program", "-q")
    same(weft, "library/checkpoints/step-6", "program/checkpoints/step-6")
    # Each goes on where the other was.
    longer = weft.write("longer.json", tiny(train__steps=9, train__checkpoint={"every": 3}))
    gate(weft, "program", ranks=2, config=longer)
    weft.expect(0, "train", longer, "--run", "library", "--resume", "-q")
    same(weft, "library/checkpoints/step-9", "program/checkpoints/step-9")
    # And the program takes the library's plan.
    weft.expect(0, "verify", "library/plan.json", "--config", longer)


DIFFERS = ("_ns", "_ms", "_per_s", "mfu", "held_bytes")  # from one run to the next


def metrics(weft, run):
    """Lines of a run but for times and memory held."""
    with open(weft.path(f"{run}/metrics.jsonl"), encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    return [{key: value for key, value in line.items() if not key.endswith(DIFFERS)}
            for line in lines]


@case
def metrics_are_those_of_weft_train(weft):
    changes = {"train__checkpoint": {"every": 3},
               "train__validation": {"share": 0.1, "every": 3, "samples": 8}}
    config = weft.write("run.json", tiny(train__steps=6, **changes))
    gate(weft, "library", ranks=2, config=config)
    weft.expect(0, "train", config, "--run", "program", "-q")
    assert metrics(weft, "library") == metrics(weft, "program")
    assert len(metrics(weft, "library")) == 6 + 2 + 2, metrics(weft, "library")
    # A resumed run cuts the lines that were written after the checkpoint.
    longer = weft.write("longer.json", tiny(train__steps=9, **changes))
    for run in ("library", "program"):
        with open(weft.path(f"{run}/metrics.jsonl"), "a", encoding="utf-8") as file:
            file.write('{"step":7,"loss":1}\n{"step":8,"lo')
    gate(weft, "library", ranks=2, config=longer)
    weft.expect(0, "train", longer, "--run", "program", "--resume", "-q")
    assert metrics(weft, "library") == metrics(weft, "program")
    results = []
    for run in ("library", "program"):
        with open(weft.path(f"{run}/result.json"), encoding="utf-8") as file:
            results.append({key: value for key, value in json.load(file).items()
                            if not key.endswith((*DIFFERS, "_bytes", "hosts", "ranks"))})  # these two have times
    assert results[0] == results[1] and results[0]["steps_done"] == 9, results


@case
def errors_are_said_once_with_their_exit_code(weft):
    gate(weft, "run", "model.layers.2.group=7", code=65, says="group 7 does not divide hidden 64")
    gate(weft, "run", "train.precision.compute=bf16", code=65, says="it computes in f32")
    gate(weft, "run", "cluster.ranks=2", code=76, says="weft launch -n 2")
    gate(weft, "run", "train.data=/no/such/text", code=66, says="no such file")
    gate(weft, "run", "cluster.memory_limit=3MiB", code=78, says="the least limit that fits")
    gate(weft, "run", "cluster.memory_limit=3MiB", code=78, ranks=2,
         says=["gate: rank 0: no plan fits", " failed first, with exit code 78 (no plan fits)"])
    assert not Path(weft.path("run")).exists(), "a directory of a run that never was"


@case
def ranks_with_different_libraries_do_not_train(weft):
    """One program file with two builds of libweft; one build is a byte longer."""
    for name, more in (("0", b""), ("1", b""), ("2", b"x")):
        directory = Path(weft.path(f"lib{name}"))
        directory.mkdir()
        (directory / "libweft.so.0").write_bytes(LIBRARY.read_bytes() + more)
    for number, (offset, code) in enumerate(((0, 0), (1, 76))):
        command = f'LD_LIBRARY_PATH="$PWD/lib$((RANK + {offset}))" exec "$@"'
        got, _, err = weft.run("launch", "-n", "2", "sh", "-c", command, "sh", GATE, CONFIG,
                               f"run{number}", "train.steps=2")
        assert got == code, (got, err)
        assert ("another build of the program or of libweft" in err) == (code == 76), err


@case
def launch_is_a_door_to_any_program(weft):
    out = weft.expect(0, "launch", "-n", "3", "sh", "-c", "echo $RANK of $WORLD_SIZE: $0 $1", "-n",
                      "--json")
    assert sorted(out.splitlines()) == [f"{rank} of 3: -n --json" for rank in range(3)], out
    weft.expect(9, "launch", "-n", "2", "sh", "-c", "sleep $RANK; exit $((9 + RANK))",
                says="rank 0 failed first, with exit code 9; the other")
    weft.expect(69, "launch", "-n", "2", "sh", "-c", "kill -9 $$", says="was killed by signal 9")
    weft.expect(66, "launch", "-n", "2", "no-such-program", says="no program no-such-program")
    weft.expect(66, "launch", "-n", "2", "./no-such-program", says="cannot start rank 0")
    weft.expect(64, "launch", "true", says="-n N")
    weft.expect(64, "launch", "-n", "2000", "true", says="1 to 1024")
    weft.expect(64, "launch", "-n", "2", says="usage: weft launch")


@case
def a_signal_ends_all_ranks(weft):
    process = weft.start("launch", "-n", "2", "sh", "-c", "echo up; exec sleep 60")
    assert process.stdout.readline() == "up\n"
    process.terminate()
    _, err = process.communicate(timeout=20)
    assert process.returncode == 75 and "stopped by Terminated" in err, (process.returncode, err)


@case
def a_stop_of_a_launched_program_is_saved(weft):
    """Several signals to the launcher are one request, and so is one to a rank."""
    for to_rank in (False, True):
        process = weft.start("launch", "-n", "2", GATE, CONFIG, "run", *ROOM, "train.steps=1000000")
        end = time.monotonic() + 60
        while not Path(weft.path("run/metrics.jsonl")).exists() or not last_step(weft):
            assert process.poll() is None and time.monotonic() < end, "no step was done"
            time.sleep(0.02)
        ranks = children_of(process.pid)
        assert len(ranks) == 2, ranks
        for number in (signal.SIGUSR1, signal.SIGTERM, signal.SIGTERM):
            with contextlib.suppress(ProcessLookupError):  # the first request may have ended it
                os.kill(ranks[1] if to_rank else process.pid, number)
            time.sleep(0.01)
        _, err = process.communicate(timeout=60)
        step = last_step(weft)
        assert process.returncode == 75 and f"stopped after step {step}, which is saved" in err, err
        assert f"step-{step}" in os.listdir(weft.path("run/checkpoints"))
        shutil.rmtree(weft.path("run"))


main(sys.argv[1])
