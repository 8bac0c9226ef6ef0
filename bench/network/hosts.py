#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training over MPI between hosts that are network namespaces with shaped links: bench/network/hosts.py BUILD

For each model and rate: profiles all hosts, plans with that profile, and trains, under zero1, with delayed updates, and
with hsdp on hosts of two ranks. Shows the measured step against the predicted one, the lane whose time the prediction
misses most, the bytes that leave a host against the formula, and whether the parameters are those of local ranks. Needs
root and iproute2; without them, or without an MPI library, it says so and exits with 77. --record stores the figures.
"""
import argparse
import collections
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/cli"))
sys.path.insert(0, str(ROOT / "bench"))
from namespaces import Namespaces, Unavailable, environment_of  # noqa: E402

import results  # noqa: E402

STEPS = 8
HIDDEN = 512


def linear(name, inputs, outputs):
    return [{"name": name, "type": "linear", "hidden": inputs, "outputs": outputs},
            {"name": f"{name}.act", "type": "gelu", "hidden": outputs}]


MODELS = {
    "gpt-10m": (ROOT / "configs/models/gpt-10m.json", 64, 4),
    "gpt-5m": ({"layers": [
        {"name": "wte", "type": "embedding", "vocab": 256, "positions": 128, "hidden": 256},
        {"name": "h.{i}", "type": "transformer_block", "repeat": 6, "hidden": 256, "heads": 4, "ffn": 1024},
        {"name": "ln_f", "type": "layer_norm", "hidden": 256},
        {"name": "head", "type": "lm_head", "vocab": 256, "hidden": 256, "bias": False, "tie": "wte"}]}, 128, 4),
    "mlp-4m": ({"layers": [
        *linear("fc1", HIDDEN, 4 * HIDDEN), *linear("fc2", 4 * HIDDEN, 2 * HIDDEN), *linear("fc3", 2 * HIDDEN, HIDDEN),
        {"name": "head", "type": "classifier", "hidden": HIDDEN, "classes": 10}]}, 1, 256),
}


class Failed(Exception):
    """A run of weft failed."""


def run(command, library=None, cwd=None):
    """Returns standard output. MPICH's launcher fails at times after its ranks have ended, so a failure has a second try."""
    env = {**os.environ, "WEFT_GEMM": "onednn", **(environment_of(library) if library else {})}
    for _ in range(2):
        done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=cwd, timeout=600, check=False)
        if done.returncode == 0:
            return done.stdout
    raise Failed(f"{' '.join(command[-12:])}: exit {done.returncode}\n{done.stderr[-2000:]}")


class Case:
    """A model on hosts, with its files in a directory."""

    def __init__(self, weft, directory, model, library, hosts, per_host):
        self.weft, self.directory, self.library = weft, directory, library
        self.model, self.hosts, self.per_host, self.ranks = model, hosts, per_host, hosts * per_host
        layers, self.seq_len, self.samples = MODELS[model]
        if isinstance(layers, dict):
            layers = self.file("model.json", layers)
        self.flags = ["--model", str(layers), "-n", str(self.ranks)]
        self.change(**{"cluster.ranks_per_node": per_host, "cluster.emulate": "false", "cluster.threads": 1,
                       "cluster.memory_limit": "4GiB", "train.steps": STEPS, "train.seq_len": self.seq_len,
                       "train.micro_batch": self.samples, "train.checkpoint.at_end": "false",
                       "cluster.link.inter.alpha": "100us", "cluster.link.inter.bandwidth": "100MB/s"})
        self.base = str(ROOT / "configs/runs/gpt-10m.json")

    def file(self, name, content):
        path = Path(self.directory) / f"{self.model}-{name}"
        path.write_text(json.dumps(content))
        return path

    def path(self, *words):
        return Path(self.directory) / "-".join(str(word) for word in (self.model, self.library, self.ranks, *words))

    def change(self, **settings):
        self.flags += [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]

    def local_fingerprint(self, settings):
        place = self.path("local", *settings)
        run([self.weft, "train", self.base, *self.flags, *settings, "--quiet", "--run", str(place)])
        return json.loads((place / "result.json").read_text())["fingerprint"]

    def formula(self):
        """Bytes that leave a host of one rank in the run: every padded parameter reduced and gathered once a step."""
        told = json.loads(run([self.weft, "estimate", self.base, *self.flags, "--json"]))
        whole = next(row for row in told["rows"] if row["policy"] == "dp")
        return STEPS * 2 * whole["peak_memory_bytes"]["gathered_parameters"] * (self.hosts - 1) / self.hosts


def lanes_of(path):
    """Busy milliseconds of each lane in a Chrome trace of a step."""
    events = json.loads(Path(path).read_text())["traceEvents"]
    names = {one["tid"]: one["args"]["name"] for one in events if one["ph"] == "M" and one["name"] == "thread_name"}
    busy = collections.Counter()
    for one in events:
        if one["ph"] == "X" and not one["name"].startswith(("mark", "exposed")):
            busy[names.get(one["tid"], "memory")] += one["dur"] / 1e3
    return busy


def wrong_term(measured, predicted):
    """The lane whose time differs most: 'network 812 ms, predicted 790'."""
    lanes = [lane for lane in measured if lane in predicted]
    worst = max(lanes, key=lambda lane: abs(measured[lane] - predicted[lane]))
    return f"{worst} {measured[worst]:.0f}, not {predicted[worst]:.0f} ms"


def profile_hosts(case, launch, rate):
    profile = case.path(rate, "profile.json")
    run([*launch, case.weft, "profile", case.base, *case.flags, "-o", str(profile)], case.library, case.directory)
    return profile


def train_hosts(case, hosts, launch, profile, settings):
    """Returns the result, the mean bytes that left a host, and the worst lane."""
    flags = [*case.flags, *settings]
    plan, traces = case.path("plan.json"), [case.path(name) for name in ("trace.json", "simulated.json")]
    place = Path(tempfile.mkdtemp(dir=case.directory))
    run([case.weft, "plan", case.base, *flags, "--profile", str(profile), "-o", str(plan)])
    config = place / "run"
    before = hosts.sent_bytes()
    run([*launch, case.weft, "train", case.base, *flags, "--profile", str(profile), "--plan", str(plan), "--quiet",
         "--run", str(config), "--trace", str(traces[0])], case.library, case.directory)
    sent = statistics.mean(after - was for was, after in zip(before, hosts.sent_bytes()))
    run([case.weft, "simulate", str(plan), "--config", case.base, *flags, "--profile", str(profile), "--trace",
         str(traces[1])])
    told = json.loads((config / "result.json").read_text())
    return told, sent, wrong_term(lanes_of(traces[0]), lanes_of(traces[1]))


VARIANTS = {
    "zero1": (1, ["--set", "plan.policies=zero1"]),
    "zero1, delay 1": (1, ["--set", "plan.policies=zero1", "--set", "train.delay=1"]),
    "hsdp": (2, ["--set", "plan.policies=hsdp"]),
}


def bench_case(case, rate, variants, seen):
    """Yields variant, result, bytes over the formula, worst lane, and whether the bits are those of local ranks."""
    with Namespaces(case.hosts, rate=f"{rate}mbit", directory=case.directory) as hosts:
        launch = hosts.command(case.weft, case.library, case.per_host)
        profile = profile_hosts(case, launch, rate)
        for name in variants:
            settings = VARIANTS[name][1]
            told, sent, lane = train_hosts(case, hosts, launch, profile, settings)
            key = (case.model, case.ranks, name)
            if key not in seen:
                seen[key] = case.local_fingerprint(settings)
            more = sent / case.formula() - 1 if case.per_host == 1 else None
            yield name, told, more, lane, told["fingerprint"] == seen[key]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", nargs="?", default="build")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--rates", default="200,1000,5000", help="of a host's link, in Mbit/s")
    parser.add_argument("--hybrid-rates", default="1000", help="of hosts of two ranks")
    parser.add_argument("--libraries", default="openmpi")
    parser.add_argument("--variants", default="zero1;zero1, delay 1;hsdp")
    parser.add_argument("--hosts", type=int, default=2)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    weft = str((Path(options.build) / "cli/weft").resolve())
    variants = options.variants.split(";")
    rows, errors, excess, alike, seen = [], [], [], True, {}
    with tempfile.TemporaryDirectory() as directory:
        points = [(model, library, rate, per_host) for model in options.models.split(",")
                  for library in options.libraries.split(",")
                  for per_host, rates in ((1, options.rates), (2, options.hybrid_rates))
                  for rate in map(int, rates.split(","))]
        for model, library, rate, per_host in points:
            named = [name for name in variants if VARIANTS[name][0] == per_host]
            if not named:
                continue
            case = Case(weft, directory, model, library, options.hosts, per_host)
            try:
                for name, told, more, lane, same in bench_case(case, rate, named, seen):
                    error = told["predicted_step_ns"] / told["step_ns"] - 1
                    alike, errors = alike and same, errors + [error]
                    excess += [more] if more is not None else []
                    rows.append([model, library, f"{options.hosts} x {per_host}", f"{rate} Mbit/s", name,
                                 f"{100 * more:+.1f} %" if more is not None else "-", f"{told['step_ns'] / 1e6:.0f} ms",
                                 f"{told['predicted_step_ns'] / 1e6:.0f} ms", f"{100 * error:+.1f} %", lane,
                                 "same" if same else "OTHER"])
                    print("  ".join(str(cell) for cell in rows[-1]), flush=True)
            except Unavailable as why:
                print(f"skipped: {why}")
                return 77
    inside = sum(abs(error) <= 0.05 for error in errors)
    worst = max(abs(error) for error in errors)
    reached = {
        "bytes that leave a host over the formula": (
            f"at most {100 * max(excess, default=0):.1f} %", bool(excess) and max(excess) <= 0.02),
        "predicted step within 5 % of the measured one": (
            f"{inside} of {len(errors)}, worst {100 * worst:.1f} %", inside >= 0.9 * len(errors) and worst <= 0.1),
        "parameters of local ranks": ("all runs" if alike else "not all", alike),
    }
    results.close("network", "hosts", rows, reached, options.record)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as failure:
        sys.exit(f"hosts.py: {failure}")
