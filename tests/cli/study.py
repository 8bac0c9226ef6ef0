#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weft study`: the same study writes the same bytes, goes on after a stop, and its files agree with `weft plan`."""
import csv
import json
import re
import signal
import sys
import time
import xml.dom.minidom

from configs import tiny
from hosts_run import each_library, run_hosts
from tap import case, drawn_case, main

FILES = ["study.csv", "study.gains.svg", "study.gp", "study.schema.json", "study.svg", "study.txt"]
FLAGS = ["--planners", "ilp,greedy,fsdp2", "--work-limit", "20M", "--points", "3", "--jobs", "2"]


def configs_of(weft):
    slow = tiny(cluster__link__intra__bandwidth="200MB/s")
    return [weft.write("quick.json", tiny()), weft.write("slow.json", slow)]


def study(weft, folder, *flags, code=0, **options):
    return weft.expect(code, "study", *configs_of(weft), "--networks", "0.5,1", *FLAGS, "-o", folder, *flags, **options)


def bytes_of(weft, folder):
    names = sorted(path.name for path in (weft.directory / folder).iterdir())
    assert names == FILES, names
    return {name: (weft.directory / folder / name).read_bytes() for name in names}


def points_of(weft, folder):
    with open(weft.path(f"{folder}/study.csv"), encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@case
def the_same_study_writes_the_same_bytes(weft):
    said = study(weft, "a", "-q")
    files = bytes_of(weft, "a")
    assert "planners next to ilp" in said and said.split()[:9] == files["study.txt"].decode().split()[:9], said
    study(weft, "b", "-q", "--jobs", "1")
    assert bytes_of(weft, "b") == files
    said = json.loads(study(weft, "a", "--json", "-q"))
    assert len(said["hypotheses"]) == 3 * 4 and [row["planner"] for row in said["planners"]][0] == "ilp", said
    for number in (1, 2, 3):
        assert f"hypothesis {number}:" in files["study.txt"].decode()


@case
def points_are_those_of_plan(weft):
    study(weft, "a", "-q")
    schema = json.loads((weft.directory / "a/study.schema.json").read_text())
    points = points_of(weft, "a")
    assert list(points[0]) == [field["name"] for field in schema["fields"]]
    kinds = {"integer": int, "number": float, "string": str}
    for point in points:
        for field in schema["fields"]:
            assert point[field["name"]] == "" or kinds[field["type"]](point[field["name"]]) is not None
    assert len(points) == 2 * 2 * (3 * 3 + 3 * 4 // 2), "planners at each limit, and divisions"
    for point in points[7:9] + points[-2:]:
        bandwidth = {"quick": 1000, "slow": 200}[point["model"]] * float(point["network"])
        flags = ["--planner", point["planner"], "--work-limit", "20M", "--memory-limit", f"{point['memory_limit_bytes']}B",
                 "--set", f"cluster.link.intra.bandwidth={bandwidth:g}MB/s", "--set", "plan.recompute=none"]
        if point["policy_limit_bytes"]:
            flags += ["--set", f"plan.policy_limit={point['policy_limit_bytes']}B"]
        code, out, _ = weft.run("plan", weft.path(point["model"] + ".json"), "--json", "-q", *flags)
        assert (code == 0) == (point["fits"] == "1"), point
        if code == 0:
            assert json.loads(out)["step_ns"] == int(point["step_ns"]), point


@case
def the_figure_has_the_points(weft):
    """Ticks and circles of both panels are read back: their places follow from their figures."""
    study(weft, "a", "-q")
    page = xml.dom.minidom.parse(weft.path("a/study.svg"))
    known = {(p["model"], p["network"], p["policy_limit_bytes"], p["step_ns"]) for p in points_of(weft, "a")}
    ticks = [(float(text.getAttribute("data-tick")), float(text.getAttribute("y")) - 9)
             for text in page.getElementsByTagName("text") if text.hasAttribute("data-tick")]
    circles = page.getElementsByTagName("circle")
    assert len(ticks) == 12 and circles and len(circles) % 2 == 0, (len(ticks), len(circles))
    (low, bottom), (high, top) = ticks[6], ticks[11]
    for circle in circles:
        data = [circle.getAttribute(f"data-{name}") for name in ("model", "network", "policy-limit-bytes", "step-ns")]
        assert tuple(data) in known, data
    for circle in circles[len(circles) // 2:]:
        y = bottom + (top - bottom) * (float(circle.getAttribute("data-overlap")) - low) / (high - low)
        assert abs(y - float(circle.getAttribute("cy"))) < 1, (y, circle.toxml())


@case
def gains_and_bands_are_those_of_the_points(weft):
    """Places of circles give the gain by the ticks, and heights of bands the shares of policies."""
    weft.expect(0, "study", *configs_of(weft), "--planners", "ilp,deepcompile", "--points", "3", "-o", "a", "-q")
    page = xml.dom.minidom.parse(weft.path("a/study.gains.svg"))
    points = {}
    for point in points_of(weft, "a"):
        if not point["policy_limit_bytes"]:
            points[point["model"], point["network"], point["memory_limit_bytes"], point["planner"]] = point
    ticks = [(float(text.getAttribute("data-tick")), float(text.getAttribute("y")) - 9)
             for text in page.getElementsByTagName("text") if text.hasAttribute("data-tick")]
    (low, bottom), (high, top) = ticks[0], ticks[-1]
    seen = 0
    for circle in page.getElementsByTagName("circle"):
        place = tuple(circle.getAttribute(f"data-{name}") for name in ("model", "network", "memory-limit-bytes"))
        gain = int(points[*place, "deepcompile"]["step_ns"]) / int(points[*place, "ilp"]["step_ns"]) - 1
        drawn = low + (high - low) * (float(circle.getAttribute("cy")) - bottom) / (top - bottom)
        assert abs(drawn - gain) < 1e-3 * (high - low), (place, drawn, gain)
        seen += 1
    assert seen == sum(point["planner"] == "deepcompile" and point["fits"] == "1" for point in points.values()) > 0
    groups = page.getElementsByTagName("g")
    assert len(groups) == 2
    for group in groups:
        *bands, frame = group.getElementsByTagName("path")
        height = float(re.search(r"v(\d+)", frame.getAttribute("d"))[1])
        own = [point for (model, network, _, planner), point in points.items() if planner == "ilp" and
               (model, network) == (group.getAttribute("data-model"), group.getAttribute("data-network"))]
        edges = [[float(number) for number in re.findall(r"[\d.]+", band.getAttribute("d"))] for band in bands]
        left = min(edge[0] for edge in edges)
        heights = sorted((edge[1] - edge[6]) / height for edge in edges if edge[0] == left and edge[1] > edge[6])
        shares = sorted(float(own[0][name]) for name in own[0] if name.startswith("share_") and float(own[0][name]) > 0)
        assert len(heights) == len(shares) and all(abs(a - b) < 1e-3 for a, b in zip(heights, shares)), (heights, shares)


def stop_study(weft, folder):
    """Interrupts a study of one job after five plans; returns its exit code and messages."""
    process = weft.start("study", *configs_of(weft), "--networks", "0.5,1", *FLAGS, "--jobs", "1", "-o", folder)
    kept = weft.directory / folder / "study.sweep"
    while process.poll() is None and (not kept.exists() or len(list(kept.iterdir())) < 5):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    return process.returncode, said


@case
def a_stopped_study_goes_on(weft):
    study(weft, "whole", "-q")
    for cut in ("cut", "again", "last"):  # under load a study may end before the signal
        code, said = stop_study(weft, cut)
        if code != 0:
            break
    assert code != 0 and "the same command goes on" in said, said
    assert [path.name for path in (weft.directory / cut).iterdir()] == ["study.sweep"], "no file is there by half"
    said = weft.run("study", *configs_of(weft), "--networks", "0.5,1", *FLAGS, "-o", cut)[2]
    assert "plans were made before it was stopped" in said and "at most" in said, said
    assert bytes_of(weft, cut) == bytes_of(weft, "whole")


MEASURED = ["--measure", "--repeat", "2", "--points", "1", "--planners", "greedy,all-dp", "-o", "m"]


def runs_of(messages):
    return re.findall(r"training under (\S+) within", messages)


def stop_runs(weft, config):
    """Interrupts a measured study in its third run; returns its messages."""
    process = weft.start("study", config, *MEASURED)
    said = ""
    while len(runs_of(said)) < 3:
        line = process.stderr.readline()
        assert line, said
        said += line
    process.send_signal(signal.SIGINT)
    _, rest = process.communicate()
    assert process.returncode == 75, (process.returncode, said, rest)
    return said + rest


@drawn_case
def plans_run_in_turns_and_go_on_after_a_stop(weft):
    """A B C, B C A, then the points that drift. A stopped study repeats no run that has ended."""
    config = weft.write("bare.json", tiny(cluster__device=None, cluster__memory_limit=None))
    first = runs_of(stop_runs(weft, config))[:2]  # the third one may end before the signal
    said = weft.run("study", config, *MEASURED)[2]
    assert first == ["greedy", "all-dp"] and "at least" in said, said
    assert "this machine was measured before it was stopped" in said, said
    turns = ["greedy", "all-dp", "two-stage", "all-dp", "two-stage", "greedy"]
    assert (first + runs_of(said))[:6] == turns or (first + ["two-stage"] + runs_of(said))[:6] == turns, said
    assert said.count("measuring this machine") == 1, "after the runs alone"
    text, points = (weft.directory / "m/study.txt").read_text(), points_of(weft, "m")
    assert re.search(r"bare x1: \d+ points ran again, and \d+ differ by more\s+than 2 %;\s+after the\s+runs\s+layers took",
                     text), text
    assert "hypothesis 1" not in text and "of 0 lines" not in text, "one limit has no lines"
    assert len(points) == 3 and sorted(path.name for path in (weft.directory / "m").iterdir()) == \
        sorted([*FILES, "study.measured.svg"])
    for point in points:
        assert 0 <= int(point["measured_exposed_ns"]) <= int(point["measured_step_ns"]), point
        assert int(point["measured_exposed_ns"]) <= int(point["measured_communication_ns"]), point
        assert 0 < int(point["measured_bytes"]) <= int(point["memory_limit_bytes"]), point
        assert int(point["measured_spread_ns"]) >= 0


@drawn_case
def ranks_of_a_launcher_run_the_plans(weft):
    config = weft.write("run.json", tiny(cluster__threads=1, cluster__base="256MiB", cluster__memory_limit=None))
    for library, command in each_library(weft, 2):
        flags = ["--measure", "--points", "1", "--planners", "greedy", "-o", library]
        code, out, told, err = run_hosts(weft, command, library, "study", config, *flags, "-q")
        assert code == 0 and "measured steps next to greedy's" in out, (library, told, err)
        assert all(point["measured_step_ns"] for point in points_of(weft, library))
        # A profile counts the base of a rank alone, and rank 0 also keeps the plans of all rows.
        code, _, told, err = run_hosts(weft, command, library, "profile", config, "-o", "times.json", "-q")
        assert code == 0, (library, told, err)
        flags = ["--measure", "--points", "2", "--planners", "greedy,all-fsdp", "-o", f"{library}-timed"]
        code, _, told, err = run_hosts(weft, command, library, "study", config, *flags, "--profile", "times.json", "-q")
        assert code == 0, (library, told, err)
        timed = points_of(weft, f"{library}-timed")
        alone = json.loads(weft.expect(0, "plan", config, "--profile", "times.json", "--planner", "all-fsdp", "--json"))
        most = max(int(point["total_bytes"] or 0) for point in timed if point["planner"] == "all-fsdp")
        assert most >= alone["total_bytes"] + (2 << 20), "the records are no part of the base"
        assert len(timed) >= 7 and all(bool(point["measured_step_ns"]) == bool(point["step_ns"]) for point in timed), timed
        code, _, told, _ = run_hosts(weft, command, library, "study", config, *flags, "--networks", "1,2")
        assert code == 64 and "one config and one network" in told[-1], told
        bare = weft.write("bare.json", tiny(cluster__device=None))
        code, _, told, _ = run_hosts(weft, command, library, "sweep", bare, "--measure", "--points", "1")
        assert code == 64 and "give --profile" in " ".join(told), told


@case
def wrong_flags_are_refused(weft):
    config = weft.write("run.json", tiny())
    untimed = weft.write("bare.json", tiny(cluster__device=None))
    for words, says in [((config,), "-o DIR"), ((config, "-o", "-"), "-o DIR"),
                        ((config, "-o", "d", "--networks", "0"), "factors"),
                        ((config, "-o", "d", "--networks", "1,x"), "factors"),
                        ((config, "-o", "d", "--networks", "1,1.0"), "twice"),
                        ((config, config, "-o", "d"), "both would be named run"),
                        ((config, "-o", "d", "--planners", "best"), "best"),
                        ((config, "-o", "d", "--points", "60"), "at most"),
                        ((untimed, "-o", "d"), "needs times")]:
        weft.expect(64, "study", *words, says=says)
    weft.expect(66, "study", "none.json", "-o", "d", says="none.json")
    weft.expect(65, "study", config, "-o", "d", "--rival", config, says="is no rival")
    assert not (weft.directory / "d").exists()


main(sys.argv[1])
