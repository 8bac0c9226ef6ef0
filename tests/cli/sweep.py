#!/usr/bin/env python3
"""`weft sweep`: a plan for every planner and limit, what fits and what does not, and no trace of it
after a signal."""
import csv
import io
import json
import os
import signal
import sys
import time
import xml.dom.minidom

from configs import tiny
from tap import Skip, case, main


def config_of(weft, **changes):
    return weft.write("run.json", tiny(**changes))


def sweep(weft, *arguments, code=0, **changes):
    return json.loads(weft.expect(code, "sweep", config_of(weft, **changes), "--json", "-q",
                                  *arguments))


def curves_of(said):
    return {curve["planner"]: curve["points"] for curve in said["curves"]}


@case
def from_the_least_that_fits_to_all_that_helps(weft):
    said = sweep(weft, "--points", "5", "--planners", "ilp,greedy,all-fsdp")
    curves = curves_of(said)
    assert list(curves) == ["ilp", "greedy", "all-fsdp"]
    limits = [point["memory_limit_bytes"] for point in curves["ilp"]]
    assert len(limits) == 5 and limits == sorted(set(limits))
    best = [point["step_ns"] for point in curves["ilp"]]
    assert all(point["fits"] for point in curves["ilp"]), curves["ilp"]
    for point in curves["ilp"]:
        assert point["total_bytes"] <= point["memory_limit_bytes"]
        assert 0 < point["bound_ns"] <= point["step_ns"]
    bounds = [point["bound_ns"] for point in curves["ilp"]]
    assert bounds == sorted(bounds, reverse=True), "more memory cannot raise what is possible"
    free = json.loads(weft.expect(0, "plan", config_of(weft, cluster__memory_limit=None), "--json"))
    assert best[-1] <= free["step_ns"] * 1.002, "the last limit is all that helps"
    for planner in ("greedy", "all-fsdp"):
        for point, ilp in zip(curves[planner], curves["ilp"]):
            assert not point["fits"] or point["step_ns"] >= ilp["bound_ns"]


@case
def to_all_ends_where_every_planner_has_a_plan(weft):
    """Of all but random, which is asked for by name; and of those named alone."""
    short, long = (sweep(weft, "--points", "3", "--set", "plan.time_limit=500ms", *flags)
                   for flags in ((), ("--to", "all")))
    assert "random" not in curves_of(long) and len(long["curves"]) > 15
    lasts = [{planner: points[-1] for planner, points in curves_of(said).items()}
             for said in (short, long)]
    lost = [planner for planner, point in lasts[1].items() if not point["fits"]]
    assert not lost, lost
    assert any(not point["fits"] for point in lasts[0].values()), "the other end was far enough"
    firsts = [curves_of(said)["ilp"][0] for said in (short, long)]
    assert all(first["fits"] for first in firsts), firsts
    assert firsts[0]["memory_limit_bytes"] == firsts[1]["memory_limit_bytes"], "where one fits"
    named = curves_of(sweep(weft, "--points", "2", "--to", "all", "--planners", "greedy,random"))
    assert named["random"][-1]["fits"], named
    assert named["random"][-1]["memory_limit_bytes"] < lasts[1]["all-dp"]["memory_limit_bytes"]


@case
def a_point_is_what_plan_says(weft):
    said = sweep(weft, "--points", "2", "--planners", "greedy", "--set", "train.micro_batch=3",
                 "-n", "3")
    assert said["ranks"] == 3
    for point in curves_of(said)["greedy"]:
        alone = json.loads(weft.expect(0, "plan", weft.path("run.json"), "--json", "--planner",
                                       "greedy", "--set", "train.micro_batch=3", "-n", "3",
                                       "--memory-limit", f"{point['memory_limit_bytes']}B"))
        assert alone["step_ns"] == point["step_ns"]
        assert alone["total_bytes"] == point["total_bytes"]


@case
def more_memory_is_never_slower(weft):
    """With such a gap a point alone stops at the first plan, here over a slow link of some larger
    limits a slower one than that of the limit before."""
    slow = {"cluster__link": {"intra": {"alpha": "20us", "bandwidth": "200MB/s"}}}
    said = [sweep(weft, "--points", "9", "--planners", "ilp,greedy", "--gap", "0.5", "--jobs", jobs,
                  **slow)
            for jobs in ("1", "3")]
    assert said[0] == said[1], "the same whatever runs beside each other"
    points = curves_of(said[0])["ilp"]
    steps = [point["step_ns"] for point in points]
    assert steps == sorted(steps, reverse=True), steps
    alone = [json.loads(weft.expect(0, "plan", weft.path("run.json"), "--json", "--gap", "0.5",
                                    "--memory-limit", f"{point['memory_limit_bytes']}B"))["step_ns"]
             for point in points]
    assert alone != sorted(alone, reverse=True), "nothing to plan again: choose another gap"
    assert all(step <= cold for step, cold in zip(steps, alone))


@case
def a_start_serves_every_period_left_open(weft):
    config = config_of(weft, train__grad_accum=2, train__reduce="auto", train__clip_norm=0,
                       cluster__memory_limit=None)
    plan = weft.path("start.json")
    weft.expect(0, "plan", config, "-o", plan)
    first = json.loads(weft.expect(0, "plan", config, "--json"))
    again = json.loads(weft.expect(0, "plan", config, "--json", "--start", plan))
    assert again["step_ns"] <= first["step_ns"]


@case
def points_without_a_plan_are_shown(weft):
    said = sweep(weft, "--limits", "1GiB,100KiB,1GiB", "--planners", "all-dp")
    points = curves_of(said)["all-dp"]
    assert [point["fits"] for point in points] == [False, True]
    out = weft.expect(0, "sweep", weft.path("run.json"), "--limits", "100KiB,1GiB", "--planners",
                      "all-dp", "-q")
    assert "all-dp" in out and "no plan that fits" in out and " - " in out, out
    assert "no plan within" not in out, out
    out = weft.expect(0, "sweep", weft.path("run.json"), "--limits", "600KiB", "--planners",
                      "greedy,all-dp,ddp", "-q")
    assert "  no plan within any of these limits: all-dp, ddp\n" in out, out
    assert out.count("all-dp") == 1, "it has a row, or a mark in the picture"
    weft.expect(78, "sweep", weft.path("run.json"), "--limits", "100KiB", "--planners", "all-dp",
                "-q", says="no planner has a plan")


@case
def files_and_picture(weft):
    table, picture = weft.path("sweep.csv"), weft.path("sweep.svg")
    out = weft.expect(0, "sweep", config_of(weft), "--points", "3", "--planners", "greedy,all-dp",
                      "--csv", table, "--svg", picture, "-q")
    assert out.isascii(), "marks beyond ASCII where nobody looks at a terminal"
    assert "proven bound" in out and "gap of greedy" in out
    with open(table, encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 6 and {row["planner"] for row in rows} == {"greedy", "all-dp"}
    xml.dom.minidom.parse(picture)
    text = weft.expect(0, "sweep", weft.path("run.json"), "--points", "2", "--planners", "greedy",
                       "--csv", "-", "--json", "-q")
    rows = list(csv.reader(io.StringIO(text)))
    assert rows[0][0] == "planner" and len(rows) == 3, "the table takes the place of the report"


def drawn_points(path):
    """Every point of the picture: (planner, limit, policy limit, what, value or None) as its data
    say, after a look at where it stands between the ticks."""
    document = xml.dom.minidom.parse(path)
    ticks = {kind: sorted((int(text.getAttribute(f"data-{kind}")), float(text.getAttribute(axis)))
                          for text in document.getElementsByTagName("text")
                          if text.hasAttribute(f"data-{kind}"))
             for kind, axis in (("ns", "y"), ("bytes", "x"))}

    def place(kind, value):
        (low, at_low), (high, at_high) = ticks[kind][0], ticks[kind][-1]
        return at_low + (at_high - at_low) * (value - low) / (high - low)

    points = []
    for element in document.getElementsByTagName("circle") + document.getElementsByTagName("path"):
        if not element.hasAttribute("data-planner"):
            continue
        limit, part = (element.getAttribute(f"data-{name}-limit-bytes")
                       for name in ("memory", "policy"))
        what = [name for name in ("step-ns", "measured-step-ns")
                if element.hasAttribute(f"data-{name}")]
        value = element.getAttribute(f"data-{what[0]}") if what else ""
        points.append((element.getAttribute("data-planner"), limit, part,
                       what[0] if what else None, value))
        if element.tagName == "circle":
            # The label of a tick stands 4 below its line.
            above = float(element.getAttribute("cy")) - (place("ns", int(value)) - 4)
            beside = float(element.getAttribute("cx")) - place("bytes", int(part or limit))
            assert abs(above) < 0.1 and abs(beside) < 0.1, (points[-1], above, beside)
        elif what:
            assert what[0] == "step-ns" and int(value) > ticks["ns"][-1][0], points[-1]
    return sorted(points, key=str)


def points_of_csv(path):
    points = []
    with open(path, encoding="utf-8") as file:
        for row in csv.DictReader(file):
            point = (row["planner"], row["memory_limit_bytes"], row["policy_limit_bytes"])
            fits = row["fits"] == "1"
            assert fits == (row["step_ns"] != "") == (row["total_bytes"] != ""), row
            points.append((*point, "step-ns", row["step_ns"]) if fits else (*point, None, ""))
            if row["measured_step_ns"]:
                points.append((*point, "measured-step-ns", row["measured_step_ns"]))
    return sorted(points, key=str)


@case
def every_point_of_the_picture_is_where_its_figures_are(weft):
    """Predictions of a machine that is many times as fast, so that measured steps lie far above
    them; planners that do not fit; and a split."""
    table, picture = weft.path("sweep.csv"), weft.path("sweep.svg")
    said = weft.expect(0, "sweep", config_of(weft, cluster__base="256MiB"), "--points", "3",
                       "--planners", "greedy,all-fsdp,all-dp", "--measure", "--csv", table, "--svg",
                       picture, "-q", "--json")
    points = [point for curve in json.loads(said)["curves"] for point in curve["points"]]
    assert max(point.get("measured_step_ns", 0) for point in points) > \
        max(point.get("step_ns", 0) for point in points), "nothing was measured above predictions"
    drawn = drawn_points(picture)
    assert drawn == points_of_csv(table), (drawn, points_of_csv(table))
    assert any(point[3] is None for point in drawn), "all fit: nothing is crossed out"
    weft.expect(0, "sweep", config_of(weft, cluster__memory_limit="700KiB"), "--split", "--points",
                "4", "--csv", table, "--svg", picture, "-q")
    assert drawn_points(picture) == points_of_csv(table)


@case
def results_are_printed_whatever_becomes_of_the_files(weft):
    """The disk is full when the picture is written; the table is there, and so is the other file."""
    if not os.path.exists("/dev/full"):
        raise Skip("no /dev/full")
    full = weft.path("full.svg")
    os.symlink("/dev/full", full)
    out = weft.expect(74, "sweep", config_of(weft), "--limits", "1GiB", "--planners", "greedy",
                      "--svg", full, "-q", says="full.svg")
    assert "greedy" in out and "proven bound" in out, out
    for kind, other in (("csv", "svg"), ("svg", "csv")):
        written = weft.path(f"written.{other}")
        out = weft.expect(74, "sweep", config_of(weft), "--limits", "1GiB", "--planners", "greedy",
                          f"--{kind}", full, f"--{other}", written, "-q")
        assert "greedy" in out and "greedy" in open(written, encoding="utf-8").read(), out


@case
def split_stands_beside_the_joint_plan(weft):
    kept = json.loads(weft.expect(0, "plan", config_of(weft), "--planner", "all-sdp", "--json"))
    limit = kept["total_bytes"] * 5 // 4
    said = sweep(weft, "--split", "--points", "4", "--memory-limit", f"{limit}B")
    curves = curves_of(said)
    assert [len(points) for points in curves.values()] == [4, 1]
    assert said["split"] and any(point["fits"] for point in curves["two-stage"])
    joint = curves["ilp"][0]
    parts = [point["policy_limit_bytes"] for point in curves["two-stage"]]
    assert parts == sorted(parts) and parts[-1] == joint["memory_limit_bytes"]
    for point in curves["two-stage"]:
        assert not point["fits"] or point["step_ns"] >= joint["bound_ns"]
    weft.expect(64, "sweep", weft.write("free.json", tiny(cluster__memory_limit=None)), "--split",
                says="memory_limit")


@case
def measure_trains_every_plan(weft):
    bare = weft.write("bare.json", tiny(cluster__device=None, cluster__memory_limit=None))
    code, out, err = weft.run("sweep", bare, "--measure", "--points", "2", "--planners",
                              "greedy,all-fsdp", "--json", "-q")
    assert code == 0, err
    points = [point for curve in json.loads(out)["curves"] for point in curve["points"]]
    assert json.loads(out)["times"] != "analytic"
    fitting = [point for point in points if point["fits"]]
    # A build with sanitizers holds more than was measured before, and is then told so.
    told = err.count("not measured")
    assert sum(point.get("measured_step_ns", 0) > 0 for point in fitting) == len(fitting) - told
    assert any(point["fits"] for point in points)
    llama = tiny(model__layers=[{"name": "b", "type": "llama_block", "hidden": 8, "heads": 2,
                                 "ffn": 8}])
    weft.expect(65, "sweep", weft.write("llama.json", llama), "--measure", says="kernels")


def processes(word):
    found = []
    for entry in os.listdir("/proc"):
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                if word.encode() in file.read():
                    found.append(entry)
        except OSError:
            pass
    return found


def slow_config(weft, name):
    return weft.write(name, tiny(model__layers=[
        {"name": "wte", "type": "embedding", "vocab": 256, "positions": 16, "hidden": 32},
        {"name": "h.{i}", "type": "transformer_block", "repeat": 300, "hidden": 32, "heads": 2,
         "ffn": 64},
        {"name": "head", "type": "lm_head", "vocab": 256, "hidden": 32, "bias": False}]))


@case
def a_signal_leaves_no_process_and_no_file(weft):
    config = slow_config(weft, "interrupted-sweep.json")
    before = sorted(os.listdir(weft.directory))
    for number in (signal.SIGINT, signal.SIGTERM):
        process = weft.start("sweep", config, "--limits", "50MiB,100MiB,1GiB", "--csv",
                             weft.path("out.csv"), "--svg", weft.path("out.svg"), "--jobs", "2")
        deadline = time.monotonic() + 30
        while len(processes("interrupted-sweep.json")) < 3 and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(number)
        out, err = process.communicate(timeout=20)
        assert process.returncode == 75, (process.returncode, err)
        assert out == "" and "stopped by signal" in err, (out, err)
        time.sleep(0.2)
        assert not processes("interrupted-sweep.json")
        assert sorted(os.listdir(weft.directory)) == before


@case
def a_planner_that_fails_ends_the_sweep_with_its_reason(weft):
    weft.expect(65, "sweep", config_of(weft), "--planners", "greedy", "--limits", "1GiB", "--set",
                "train.steps=none", says="train.steps")


@case
def a_planner_whose_process_is_killed_ends_the_sweep(weft):
    config = slow_config(weft, "killed-sweep.json")
    process = weft.start("sweep", config, "--planners", "ilp", "--limits", "50MiB,1GiB", "--jobs",
                         "1")
    deadline, killed = time.monotonic() + 30, []
    while not killed and time.monotonic() < deadline:
        killed = [int(entry) for entry in processes("killed-sweep.json")
                  if int(entry) != process.pid]
        time.sleep(0.01)
    os.kill(killed[0], signal.SIGKILL)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 70 and out == "", (process.returncode, out, err)
    assert "planner ilp within 50" in err and "its process ended by signal 9" in err, err


@case
def a_rule_that_cannot_be_applied_has_no_point_and_is_told_with_its_reason(weft):
    config = config_of(weft)
    code, out, err = weft.run("sweep", config, "--planners", "greedy,bytescheduler", "--limits",
                              "1GiB", "--json", "--set", "plan.policies=fsdp,sdp")
    assert code == 0, err
    curves = curves_of(json.loads(out))
    assert curves["greedy"][0]["fits"] and not curves["bytescheduler"][0]["fits"]
    assert err.count("planner bytescheduler: its rule gives unit") == 1, err


@case
def wrong_flags_are_refused_at_once(weft):
    config = config_of(weft)
    for flags, says in ((("--planners", "nonsense"), "there are ilp"),
                        (("--planners", "ipl"), "did you mean ilp"),
                        (("--planners", "ilp,ilp"), "twice"),
                        (("--planners", ""), "no planner"),
                        (("--points", "0"), "from 1 to"), (("--points", "x"), "from 1 to"),
                        (("--points", "3", "--limits", "1GiB"), "one of them"),
                        (("--limits", "24"), "--limits"), (("--limits", "1GiB,"), "--limits"),
                        (("--memory-limit", "1GiB"), "--limits"),
                        (("--to", "half"), "all (where every planner has a plan)"),
                        (("--to", "all", "--limits", "1GiB"), "by --limits already"),
                        (("--to", "all", "--split"), "by --split already"),
                        (("--split", "--planners", "ilp"), "--planners"),
                        (("--csv", "-", "--svg", "-"), "both are"),
                        (("--jobs", "0"), "from 1 to")):
        weft.expect(64, "sweep", config, *flags, says=says)
    weft.expect(64, "sweep", "-", says="not -")
    weft.expect(73, "sweep", config, "--svg", weft.path("no/such/folder/x.svg"), says="--svg")
    weft.expect(66, "sweep", weft.path("none.json"), says="none.json")


main(sys.argv[1])
