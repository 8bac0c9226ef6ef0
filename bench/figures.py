#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the figures of RESULTS.md that need ranks: figures.py [--weft PROGRAM] FIGURE...

    memory    measured against planned memory of ranks that hold at least 200 MB of state
    time      predicted against measured step time over an emulated link
    overlap   exposed communication of every planner at one limit, predicted and measured
    rivals    published rules executed at one limit: the error of each, and whether their order holds
    rivals-short  the same with steps and blocks of a quarter of the time. There, threads that wait and
              wake cost compute a sixth of its speed during communication
    pages     base and pages over the largest row, for all shipped configs, and the slowdown by pages
              near the least limit
    compute   share of the GEMM rate that a training step of a 10 M GPT reaches on one thread

Each figure measures both sides in one run and prints the measurements. Run nothing else on the machine meanwhile.
"""
import argparse
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA = "/usr/share/common-licenses/GPL-3"


def gpt(layers, hidden, heads, seq, vocab=256):
    return {"layers": [
        {"name": "wte", "type": "embedding", "vocab": vocab, "positions": seq, "hidden": hidden},
        {"name": "h.{i}", "type": "transformer_block", "repeat": layers, "hidden": hidden,
         "heads": heads, "ffn": 4 * hidden},
        {"name": "ln_f", "type": "layer_norm", "hidden": hidden},
        {"name": "head", "type": "lm_head", "vocab": vocab, "hidden": hidden, "bias": False}]}


def run_config(model, ranks, batch, seq, steps, bandwidth=None, alpha="30us"):
    config = {
        "version": 1, "model": model, "cluster": {"ranks": ranks, "threads": 1},
        "train": {"steps": steps, "micro_batch": batch, "seq_len": seq, "seed": 1, "data": DATA,
                  "optimizer": {"type": "adamw", "lr": 3e-4}, "clip_norm": 1.0,
                  "checkpoint": {"at_end": False}},
        "plan": {"planner": "ilp", "work_limit": "10G"}}
    if bandwidth:
        config["cluster"]["emulate"] = True
        config["cluster"]["link"] = {"intra": {"alpha": alpha, "bandwidth": bandwidth}}
    return config


class Weft:
    def __init__(self, program, directory):
        self.program, self.directory = program, Path(directory)

    def call(self, *arguments):
        done = subprocess.run([self.program, *map(str, arguments)], cwd=self.directory,
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"weft {' '.join(map(str, arguments))}: exit {done.returncode}\n{done.stderr}")
        return done.stdout

    def write(self, config, name="run.json"):
        path = self.directory / name
        path.write_text(json.dumps(config))
        return path

    def profile(self, config, name="profile.json"):
        path = self.directory / name
        self.call("profile", config, "-o", path)
        return path

    def plan(self, config, profile, planner, *flags):
        path = self.directory / f"{planner}.plan.json"
        said = self.call("plan", config, "--set", f"cluster.profile={profile}", "--planner",
                         planner, "-o", path, "--json", *flags)
        return path, json.loads(said)

    def train(self, config, profile, plan, planner, *flags):
        run = Path(tempfile.mkdtemp(prefix=planner, dir=self.directory)) / "run"  # no run may start over another
        self.call("train", config, "--set", f"cluster.profile={profile}", "--planner", planner,
                  "--plan", plan, "--run", run, "-q", *flags)
        return json.loads((run / "result.json").read_text())


def compute_ns(profile):
    """Returns the sum of a profile's layer times, to compare two profiles."""
    layers = json.loads(profile.read_text())["layers"]
    return sum(layer["forward_ns"] + layer["backward_ns"] for layer in layers)


def bandwidth_for(weft, model, batch, seq, ratio, parameters, **cluster):
    """Returns the link rate, in bytes per second, at which fsdp's communication takes `ratio` times the compute time.

        The second probe measures compute during communication at about that rate. Without a link to wait for, copies
    slow compute down much more.
    """
    rate = None
    for _ in range(2):
        config = run_config(model, 2, batch, seq, 1, rate and f"{rate}B/s")
        config["cluster"].update(cluster)
        config = weft.write(config, "probe.json")
        profile = weft.profile(config, "probe.profile.json")
        _, said = weft.plan(config, profile, "all-fsdp")
        sent = 3 * 4 * parameters * 0.5  # two gathers and one reduction in fp32, (N-1)/N of each
        rate = int(sent / (ratio * said["compute_ns"] * 1e-9))
    return rate


def figure_memory(weft):
    print("memory: measured less base against planned less base, 2 ranks, GPT of 30 M parameters")
    config = weft.write(run_config(gpt(10, 512, 8, 64), 2, 2, 64, 5))
    profile = weft.profile(config)
    base = json.loads(profile.read_text())["base_bytes"]
    for planner in ("all-fsdp", "all-sdp", "all-dp", "ilp"):
        plan, said = weft.plan(config, profile, planner)
        result = weft.train(config, profile, plan, planner)
        planned = result["planned_bytes"] - base
        measured = result["measured_bytes"] - base
        print(f"  {planner:9} planned {planned / 1e6:8.1f} MB  measured {measured / 1e6:8.1f} MB  "
              f"{100 * (measured / planned - 1):+.2f} %  touched "
              f"{result['touched_bytes'] / said['arena_bytes']:.3f} of the arena")


def figure_time(weft):
    print("time: median of 20 steps against predicted, 2 ranks, 1 thread each, emulated link")
    model, batch, seq, parameters = gpt(6, 256, 4, 128), 4, 128, 4.9e6
    for ratio in (0.3, 1.0, 3.0):
        rate = bandwidth_for(weft, model, batch, seq, ratio, parameters)
        config = weft.write(run_config(model, 2, batch, seq, 22, f"{rate}B/s"))
        for attempt in range(3):
            before = weft.profile(config)
            rows = []
            for planner in ("ilp", "all-fsdp", "all-sdp"):
                plan, said = weft.plan(config, before, planner)
                result = weft.train(config, before, plan, planner)
                rows.append((planner, said["step_ns"], result["step_ns"]))
            after = weft.profile(config, "after.json")
            drift = compute_ns(after) / compute_ns(before) - 1
            print(f"  communication {ratio:3} x compute ({rate / 1e6:.0f} MB/s), profiles differ "
                  f"by {100 * drift:+.1f} %" + (", repeated" if abs(drift) > 0.02 and attempt < 2
                                                else ""))
            for planner, predicted, measured in rows:
                print(f"    {planner:9} predicted {predicted / 1e6:8.2f} ms  measured "
                      f"{measured / 1e6:8.2f} ms  {100 * (measured / predicted - 1):+.1f} %")
            if abs(drift) <= 0.02:
                break


def figure_overlap(weft):
    print("overlap: exposed communication at one limit, communication about equal to compute")
    model, batch, seq, parameters = gpt(8, 256, 4, 128), 4, 128, 6.5e6
    rate = bandwidth_for(weft, model, batch, seq, 1.0, parameters)
    config = weft.write(run_config(model, 2, batch, seq, 22, f"{rate}B/s"))
    profile = weft.profile(config)
    needs = [weft.plan(config, profile, planner)[1]["total_bytes"]
             for planner in ("all-fsdp", "all-sdp")]
    limit = sum(needs) // 2
    print(f"  limit {limit / 1e6:.1f} MB, all-fsdp needs {needs[0] / 1e6:.1f}, all-sdp "
          f"{needs[1] / 1e6:.1f}")
    for planner in ("ilp", "greedy", "all-fsdp", "random"):
        flags = ("--memory-limit", f"{limit}B")
        plan, said = weft.plan(config, profile, planner, *flags)
        result = weft.train(config, profile, plan, planner, *flags)
        print(f"  {planner:9} exposed predicted {said['exposed_ns'] / 1e6:7.2f} ms measured "
              f"{result['exposed_ns'] / 1e6:7.2f} ms; step predicted {said['step_ns'] / 1e6:8.2f} "
              f"measured {result['step_ns'] / 1e6:8.2f} ms; bound {said['bound_ns'] / 1e6:8.2f} ms")


RIVALS = ("ilp", "fsdp2-mix", "fsdp2", "deepspeed", "fairscale", "osdp", "random")


ROUNDS = 40


def plans_that_fit(weft, config, profile, flags):
    plans = []
    for planner in RIVALS:
        path = weft.directory / f"{planner}.plan.json"
        done = subprocess.run([weft.program, "plan", config, "--set", f"cluster.profile={profile}",
                               "--planner", planner, "-o", path, *flags],
                              cwd=weft.directory, capture_output=True, text=True, check=False)
        if done.returncode == 78:
            print(f"    {planner:10} does not fit")
        elif done.returncode != 0:
            sys.exit(f"weft plan --planner {planner}: exit {done.returncode}\n{done.stderr}")
        else:
            plans.append(path)
    return plans


def busy_seconds():
    """Returns the seconds since boot that all cores were busy, and that the hypervisor took."""
    ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n")[0].split()[1:]]
    return (sum(ticks[:3]) + ticks[5] + ticks[6]) / 100, ticks[7] / 100


def in_turns(weft, config, profile, plans, limit, *flags):
    """Runs `executed`. Returns its lines, the seconds, and the cores that other processes and the hypervisor took."""
    bench = Path(weft.program).resolve().parent.parent / "bench" / "executed"
    (busy, stolen), clock = busy_seconds(), time.monotonic()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([bench, "--rounds", str(ROUNDS), "--set", f"cluster.profile={profile}",
                           "--set", f"cluster.memory_limit={limit}B", *flags, config, *plans,
                           plans[0]],
                          cwd=weft.directory, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr)
    took = time.monotonic() - clock
    now = resource.getrusage(resource.RUSAGE_CHILDREN)
    own = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
    others = max(0, busy_seconds()[0] - busy - own) / took
    return [json.loads(line) for line in done.stdout.splitlines()], took, others, \
        (busy_seconds()[1] - stolen) / took


def show_executed(lines):
    *rows, again, rounds = lines
    steps = {row["planner"]: (row["predicted_ns"], row["measured_ns"]) for row in rows}
    for row in rows:
        said, found = steps[row["planner"]]
        print(f"    {row['planner']:10} predicted {said / 1e6:8.2f} ms  measured {found / 1e6:8.2f}"
              f" ms  {100 * (found / said - 1):+.1f} %  (half of the steps within "
              f"{row['quarter_ns'] / 1e6:.2f} and {row['three_quarters_ns'] / 1e6:.2f} ms), exposed "
              f"{row['predicted_exposed_ns'] / 1e6:.2f} and {row['measured_exposed_ns'] / 1e6:.2f}")
    once_more = again["measured_ns"] / steps[again["planner"]][1] - 1
    print(f"    {again['planner']}, opened twice: the second takes {100 * once_more:+.1f} %")
    pairs = [(a, b) for a in steps for b in steps if steps[b][0] > 1.03 * steps[a][0]]
    wrong = [f"{a} before {b}" for a, b in pairs if steps[a][1] >= steps[b][1]]
    rates = "" if not rounds["compute_rate"] else (
        f"; beside each other compute goes on at {rounds['compute_rate'] / 1024:.3f} and "
        f"communication at {rounds['channel_rate'] / 1024:.3f} of its speed")
    print(f"    {len(pairs)} pairs differ by more than 3 %; measured the other way round: "
          + (", ".join(wrong) if wrong else "none") + rates)


def figure_rivals(weft):
    execute_rivals(weft, batch=16, alpha=120e-6)


def figure_rivals_short(weft):
    execute_rivals(weft, batch=4, alpha=30e-6)


def execute_rivals(weft, batch, alpha):
    print(f"rivals: published rules executed at one limit, communication about equal to compute, "
          f"blocks of {10 * alpha * 1e3:.1f} ms, in {ROUNDS} rounds of a step of the rehearsal and "
          f"one of every plan, ranks on cores of their own")
    model, seq, parameters = gpt(8, 256, 4, 128), 128, 6.5e6
    rate = bandwidth_for(weft, model, batch, seq, 1.0, parameters, bind=True)
    config = run_config(model, 2, batch, seq, 10, f"{rate}B/s", f"{alpha * 1e6:.0f}us")
    config["cluster"]["bind"] = True
    # This size reaches 0.9 of the link's rate. It is fixed, so all profiles give the same blocks.
    config["plan"]["block_size"] = f"{int(9 * alpha * rate)}B"
    config = weft.write(config)
    profile = weft.profile(config)
    needs = [weft.plan(config, profile, planner)[1]["total_bytes"]
             for planner in ("all-fsdp", "all-sdp")]
    limit = (needs[0] + 3 * needs[1]) // 4
    print(f"  limit {limit} B, {rate / 1e6:.0f} MB/s")
    plans = plans_that_fit(weft, config, profile, ("--memory-limit", f"{limit}B"))
    for flags in ((), ("--contention",)):
        lines, took, others, host = in_turns(weft, config, profile, plans, limit, *flags)
        print(f"  {'with contention' if flags else 'without contention'}: {took:.0f} s, in which "
              f"others took {others:.2f} cores and the host {host:.2f}")
        show_executed(lines)


def plan_at(weft, path, limit, *flags):
    """Returns planner ilp's row of the bench `planners` at a limit: held to rows, or to pages with --pages."""
    bench = Path(weft.program).resolve().parent.parent / "bench" / "planner" / "planners"
    done = subprocess.run([bench, path, "--planners", "ilp", "--at", str(limit), "--set",
                           "plan.work_limit=20G", *flags], capture_output=True, text=True,
                          check=True)
    return json.loads(done.stdout)


def figure_pages(weft):
    print("pages: (base + pages) / largest row, at the limit each config ships with; near the least "
          "limit, step in pages / step of rows alone, both by ilp")
    for path in sorted((ROOT / "configs" / "runs").glob("*.json")):
        cells = []
        for planner in ("all-fsdp", "all-sdp", "greedy", "ilp"):
            done = subprocess.run([weft.program, "plan", path, "--planner", planner, "--json",
                                   "--work-limit", "20G"], capture_output=True, text=True,
                                  check=False)
            if done.returncode == 78:
                cells.append(f"{planner} does not fit")
                continue
            said = json.loads(done.stdout)
            cells.append(f"{planner} {said['total_bytes'] / said['peak_bytes']:.4f}")
        said = subprocess.run([weft.program, "plan", path, "--memory-limit", "1B"],
                              capture_output=True, text=True, check=False).stderr
        least = int(re.search(r"the least limit that fits is [^(]*\((\d+) bytes", said)[1])
        for share in (1.0, 1.05):
            limit = int(least * share)
            rows, paged = plan_at(weft, path, limit), plan_at(weft, path, limit, "--pages")
            cells.append(f"{share} x least " + (f"{paged['step_ns'] / rows['step_ns']:.4f}"
                                                if paged["fits"] else "does not fit"))
        print(f"  {path.stem:16} " + "  ".join(cells), flush=True)


def figure_compute(weft):
    layers, hidden, seq, batch, vocab = 6, 384, 256, 8, 256
    tokens = batch * seq
    print("compute: step of a 10 M GPT, 1 rank, 1 thread, as a share of the GEMM rate")
    products = layers * 12 * hidden * hidden + vocab * hidden
    # Causal attention has two products forward and four backward, each over half of the square.
    flops = 6 * products * tokens + layers * 6 * tokens * seq * hidden
    bench = Path(weft.program).resolve().parent.parent / "bench" / "gemm"
    config = weft.write(run_config(gpt(layers, hidden, 6, seq, vocab), 1, batch, seq, 12))
    profile = weft.profile(config)
    plan, _ = weft.plan(config, profile, "all-dp")
    rows = []
    for _ in range(3):
        rate = json.loads(subprocess.run([bench], capture_output=True, text=True,
                                         check=True).stdout)["best_flops_per_s"]
        step = weft.train(config, profile, plan, "all-dp")["step_ns"]
        rows.append((rate, step, flops / (step * 1e-9) / rate))
        print(f"  GEMM {rate / 1e9:6.1f} GFLOP/s  step {step / 1e6:7.1f} ms = "
              f"{flops / step:6.1f} GFLOP/s  share {100 * rows[-1][2]:.1f} %")
    print(f"  median share {100 * statistics.median(row[2] for row in rows):.1f} %")


def main():
    figures = {"memory": figure_memory, "time": figure_time, "overlap": figure_overlap,
               "rivals": figure_rivals, "rivals-short": figure_rivals_short,
               "pages": figure_pages, "compute": figure_compute}
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weft", default=str(ROOT / "build" / "cli" / "weft"))
    parser.add_argument("figure", nargs="*", choices=[*figures, []], default=[])
    arguments = parser.parse_args()
    program = os.path.abspath(arguments.weft)
    for name in arguments.figure or figures:
        with tempfile.TemporaryDirectory() as directory:
            figures[name](Weft(program, directory))


if __name__ == "__main__":
    main()
