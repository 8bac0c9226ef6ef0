#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the overlap of communication and compute with Holistic Trace Analysis (HTA), and reads event files back by
TensorBoard:

    tests/judge_traces.py BUILD/cli/weft [CONFIG...] [--record]

A config is simulated and, if this machine can run its ranks, trained. HTA's share of overlapped communication must equal
ours within 0.1 percentage points, and all scalars must be the metrics'. WEFT_HTA is an interpreter with HTA and
tensorboard; without them the judge ends with 77. --record writes bench/results/traces.json."""
import gzip
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(SOURCE / "bench"))
from results import record  # noqa: E402

SIMULATED = ["gpt2-xl", "llama-3-8b", "bert-large", "gpt3-13b", "vit-l-16", "mixtral-8x7b"]
TRAINED = ["gpt-tiny", "gpt-tiny-4", "llama-tiny", "mlp-tiny"]
JUDGE = """
import json, logging, sys, warnings
warnings.filterwarnings("ignore"); logging.disable(logging.CRITICAL)
kind, path = sys.argv[1:]
if kind == "overlap":
    from hta.trace_analysis import TraceAnalysis
    frame = TraceAnalysis(trace_dir=path).get_comm_comp_overlap(visualize=False)
    out = dict(zip(map(int, frame["rank"]), map(float, frame["comp_comm_overlap_pctg"])))
else:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    events = EventAccumulator(path); events.Reload()
    out = {tag: [[e.step, e.value] for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}
print("\\n" + json.dumps(out))
"""


def judge(kind, path):
    # Without this HTA rounds every event inwards to whole microseconds.
    said = subprocess.run([os.environ["WEFT_HTA"], "-c", JUDGE, kind, str(path)], capture_output=True, text=True,
                          check=True, env={**os.environ, "HTA_DISABLE_NS_ROUNDING": "1"})
    return json.loads(said.stdout.splitlines()[-1])


def joined(events):
    """Intervals without overlap: lanes of one kind may run at once."""
    out = []
    for begin, end in sorted((event["ts"], event["ts"] + event["dur"]) for event in events):
        if out and begin <= out[-1][1]:
            out[-1][1] = max(out[-1][1], end)
        else:
            out.append([begin, end])
    return out


def our_share(path):
    with gzip.open(path, "rt", encoding="utf-8") as file:
        kernels = [event for event in json.load(file)["traceEvents"] if event.get("cat") == "kernel"]
    network = joined(event for event in kernels if event["name"].startswith("nccl"))
    compute = joined(event for event in kernels if not event["name"].startswith(("nccl", "Memcpy")))
    total, both, first = sum(b - a for a, b in network), 0, 0
    for begin, end in network:
        while first < len(compute) and compute[first][1] <= begin:
            first += 1
        at = first
        while at < len(compute) and compute[at][0] < end:
            both += min(end, compute[at][1]) - max(begin, compute[at][0])
            at += 1
    return 100 * both / total


def run(weft, *arguments):
    subprocess.run([weft, *map(str, arguments), "--progress=none"], check=True, stdout=subprocess.DEVNULL)


def compare(name, folder):
    worst = 0
    theirs = judge("overlap", folder)
    for rank, share in theirs.items():
        ours = our_share(Path(folder) / f"rank-{rank}.json.gz")
        worst = max(worst, abs(ours - share))
        assert abs(ours - share) <= 0.1, (name, rank, ours, share)
    size = sum(file.stat().st_size for file in Path(folder).iterdir())
    print(f"{name}: {len(theirs)} ranks, HTA {theirs['0']} %, largest difference {worst:.4f} points, {size} bytes", flush=True)
    return [name, str(len(theirs)), f"{theirs['0']:.2f} %", f"{worst:.4f}", f"{size / 1000:.0f} kB"]


def main(weft, *configs):
    if "WEFT_HTA" not in os.environ:
        print("skipped: WEFT_HTA names no interpreter with HolisticTraceAnalysis and tensorboard")
        sys.exit(77)
    weft = Path(weft).resolve()
    records = "--record" in configs
    configs = [name for name in configs if name != "--record"]
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        for name in configs or SIMULATED:
            config, plan, folder = SOURCE / f"configs/runs/{name}.json", f"{scratch}/plan.json", f"{scratch}/{name}/"
            run(weft, "plan", config, "--planner", "greedy", "-o", plan)
            run(weft, "simulate", plan, "--config", config, "--trace", folder)
            rows.append(compare(f"{name}, simulated", folder))
        for name in () if configs else TRAINED:
            folder, events, out = (f"{scratch}/{name}{end}" for end in ("-trained/", "-events", "-run"))
            run(weft, "train", SOURCE / f"configs/runs/{name}.json", "--set", "train.steps=6", "--planner", "greedy",
                "--run", out, "--trace", folder, "--tensorboard", events, "-q")
            rows.append(compare(f"{name}, trained", folder))
            lines = [line for line in map(json.loads, open(f"{out}/metrics.jsonl", encoding="utf-8"))
                     if line["kind"] == "step"]
            scalars = judge("events", events)
            assert [step for step, _ in scalars["loss_metrics/global_avg_loss"]] == list(range(1, 7))
            for line, (_, loss), (_, rate) in zip(lines, scalars["loss_metrics/global_avg_loss"], scalars["lr"]):
                assert abs(loss - line["loss"]) <= 1e-6 * loss and abs(rate - line["lr"]) <= 1e-6 * rate
    if records:
        worst = max(float(row[3]) for row in rows)
        record("traces", "overlap", rows, {"largest difference of overlapped shares": (f"{worst:.4f} points", worst <= 0.1)})


main(*sys.argv[1:])
