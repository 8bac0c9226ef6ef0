# SPDX-License-Identifier: Apache-2.0
"""Sections profile and offload of bench/gpu/run: a step predicted from a measured profile next to the measured one, and
planned next to measured memory, with all on the GPU and with a part on the host.
"""
import json
import re
import statistics
import sys
import time

from machine import Failure
from training import LARGE, SMALL, STEPS, TINY, WARM_STEPS, Model, config_of

TIME_ERROR, MEMORY_ERROR = 0.03, 0.01
LIMITS = {True: "2GiB", False: "78GiB"}  # emulated, a GPU
# With less than this of a model's bytes on the GPU, the others go to the host.
OFFLOADED = 0.75
MEDIUM = Model("774M, 8 samples, 50304", 50304, 1280, 20, 36, 8)
TIMEOUT_S = 90  # of one command


def measured_config(machine, model, steps, limit, **more):
    """Returns a config without figures: Weft has to measure the machine."""
    config = config_of(machine, model, steps, limit)
    config["cluster"]["device"] = {"type": "cuda"}
    config["cluster"].update(more)
    return config


def written(machine, config):
    machine.runs += 1
    path = machine.scratch / f"profiled{machine.runs}.json"
    path.write_text(json.dumps(config))
    return path


def told(machine, what, *words):
    """Runs a command of Weft; returns its lines and seconds, and tells both on stderr, since a machine may end early."""
    began = time.monotonic()
    lines = list(machine.lines(machine.weft, *words, timeout=TIMEOUT_S))
    seconds = round(time.monotonic() - began, 2)
    print(f"    {what}: {seconds} s", file=sys.stderr, flush=True)
    return lines, seconds


def run_of(machine, path, *flags):
    """Trains; returns the result with the median step, in ms, and the seconds that it took."""
    lines, seconds = told(machine, f"train {path.stem}", "train", path, "--run", path.with_suffix(".run"), "--json", *flags)
    lines = [json.loads(line) for line in lines]
    times = [1e-6 * line["step_ns"] for line in lines if line["kind"] == "step"]
    return {**lines[-1], "ms": statistics.median(times[WARM_STEPS:] or times), "seconds": seconds}


def profiled(machine, path):
    """Measures a profile; returns its path and the seconds that it took."""
    profile = path.with_suffix(".profile")
    return profile, told(machine, f"profile {path.stem}", "profile", path, "-o", profile)[1]


def compared(notes, name, limit_bytes, result):
    """Returns predicted and measured step and memory. Notes a prediction that is off, and memory above plan or limit."""
    predicted = 1e-6 * result["predicted_step_ns"]
    planned, measured = result["planned_bytes"], result["measured_bytes"]
    time_error, memory_error = predicted / result["ms"] - 1, measured / planned - 1
    if not notes.emulated and abs(time_error) > TIME_ERROR:
        notes.fail(f"{name}: {predicted:.2f} ms are predicted and {result['ms']:.2f} measured", "")
    if not notes.emulated and (abs(memory_error) > MEMORY_ERROR or measured > limit_bytes):
        notes.fail(f"{name}: {planned} bytes are planned and {measured} measured, of {limit_bytes}", "")
    return {"predicted ms": round(predicted, 3), "ms": round(result["ms"], 3), "time error": round(time_error, 4),
            "planned": planned, "measured": measured, "memory error": round(memory_error, 5),
            "outside planned": result["outside_planned_bytes"], "outside": result["outside_measured_bytes"]}


def bytes_of(text):
    return int(float(text.removesuffix("GiB")) * 2 ** 30)


def profile(machine, notes):
    """Compares runs with a profile of their own, and one that measures first by itself."""
    models = TINY if notes.emulated else SMALL[1:2] if notes.quick else SMALL[1:] + LARGE
    steps, limit, figures = 2 if notes.emulated else WARM_STEPS + STEPS, LIMITS[notes.emulated], {}
    for model in models:
        path = written(machine, measured_config(machine, model, steps, limit))
        try:
            measured, seconds = profiled(machine, path)
            figures[model.name] = {**compared(notes, model.name, bytes_of(limit),
                                              run_of(machine, path, "--profile", measured)), "seconds of profile": seconds}
        except Failure as failure:
            notes.fail(f"{model.name}: {failure}", failure.log)
    if notes.emulated:  # tests of the doubles do it
        return figures
    name = f"{models[0].name}, measured first"
    path = written(machine, measured_config(machine, models[0], steps, limit))
    figures[name] = compared(notes, name, bytes_of(limit), run_of(machine, path))
    return figures


def lanes_of(text):
    """Returns the milliseconds of work of each lane that a plan's report names."""
    lanes = re.search(r"^lanes +([^:]*?) of work", text, re.M | re.S)
    scale = {"s": 1e3, "ms": 1, "us": 1e-3, "ns": 1e-6}
    found = re.findall(r"(\w[\w ]*) ([\d.]+) (s|ms|us|ns)\b", lanes[1] if lanes else "")
    return {name: float(number) * scale[unit] for name, number, unit in found}


def copies_of(profile_file):
    """Returns the rates of the largest copies each way, and the share of each while both run."""
    host, figures = json.loads(profile_file.read_text())["host"], {}
    for way in ("down", "up"):
        figures[f"GB/s {way}"] = round(host[way]["bytes"][-1] / host[way]["ns"][-1], 2)
        figures[f"share of {way} in both"] = round(host[f"{way}_beside"] / 1024, 3)
    return figures


def compare_offloaded(machine, notes, model, figures):
    """Adds figures as they come: copies, a run with all on the GPU, and one with a part on the host."""
    steps, limit = 2 if notes.emulated else WARM_STEPS + STEPS // 4, LIMITS[notes.emulated]
    homes = {"state": ["host"], "activations": ["host"]} if notes.emulated else {}
    config = measured_config(machine, model, steps, limit, host={"memory_limit": "64MiB" if notes.emulated else "64GiB"})
    measured, figures["seconds of profile"] = profiled(machine, written(machine, config))
    figures["copies"] = copies_of(measured)
    whole = run_of(machine, written(machine, measured_config(machine, model, steps, limit)), "--profile", measured)
    figures[model.name] = {"ms": round(whole["ms"], 3), "planned": whole["planned_bytes"], "seconds": whole["seconds"]}
    if not notes.emulated:  # the base of a double is larger than a tiny model
        config["cluster"]["memory_limit"] = limit = f"{OFFLOADED * whole['planned_bytes'] / 2 ** 30:.3f}GiB"
    config["plan"] = {"planner": "ilp", "time_limit": "8s", "offload": {"update": ["device"], **homes}}
    path, name = written(machine, config), f"{model.name}, offloaded"
    plan = path.with_suffix(".plan")
    text, seconds = told(machine, f"plan {path.stem}", "plan", path, "--profile", measured, "-o", plan)
    figures[name] = {"lanes ms": lanes_of("".join(text)), "seconds of plan": seconds}
    result = run_of(machine, path, "--profile", measured, "--plan", plan)
    busiest = max(figures[name]["lanes ms"].values(), default=0)
    figures[name] |= {**compared(notes, name, bytes_of(limit), result), "seconds": result["seconds"],
                      "step / busiest lane": round(result["ms"] / busiest, 3) if busiest else "-",
                      "the same bits": result["fingerprint"] == whole["fingerprint"]}
    if result["fingerprint"] != whole["fingerprint"]:
        notes.fail(f"{name}: other bits", f"{result['fingerprint']}, not {whole['fingerprint']}")


def offload(machine, notes):
    """Compares a run that keeps a part on the host with one that does not: bits, predicted and measured step, and the
    work of its busiest lane.
    """
    model, figures = TINY[0] if notes.emulated else SMALL[1] if notes.quick else MEDIUM, {}
    try:
        compare_offloaded(machine, notes, model, figures)
    except Failure as failure:
        notes.fail(f"{model.name}: {failure}", failure.log)
    return figures
