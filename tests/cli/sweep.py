#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weft sweep` makes a plan for every planner and limit, and shows which fit. After a signal it leaves results to
continue from, and no partial file.
"""
import csv
import io
import json
import os
import re
import shutil
import signal
import sys
import time
import xml.dom.minidom

from configs import tiny
from tap import Skip, case, drawn_case, main

RUNS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "configs", "runs")


LINK = {"alpha": "10us", "bandwidth": "1GB/s"}
HOST = {"memory_limit": "1GiB", "down": LINK, "up": LINK, "update": "1GB/s"}
# Work ends the search and not the time limit, so plans are the same on a busy machine.
WORK = {"plan__work_limit": "100M"}


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


@drawn_case
def to_all_ends_where_every_planner_has_a_plan(weft):
    """The default is all planners but random; named planners are the only ones."""
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


@drawn_case
def more_memory_is_never_slower(weft):
    """With this gap a point alone stops at its first plan. Over a slow link some larger limits then get a slower plan
    than the limit before.
    """
    slow = {"cluster__link": {"intra": {"alpha": "20us", "bandwidth": "200MB/s"}}}
    said = [sweep(weft, "--points", "17", "--planners", "ilp,greedy", "--gap", "0.5", "--jobs", jobs,
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


@drawn_case
def a_start_serves_every_period_left_open(weft):
    config = config_of(weft, train__grad_accum=2, train__reduce="auto", train__clip_norm=0,
                       cluster__memory_limit=None)
    plan = weft.path("start.json")
    weft.expect(0, "plan", config, "-o", plan)
    first = json.loads(weft.expect(0, "plan", config, "--json"))
    again = json.loads(weft.expect(0, "plan", config, "--json", "--start", plan))
    assert again["step_ns"] <= first["step_ns"], (again, first)


@drawn_case
def shares_of_strategies_change_along_the_curve(weft):
    flags = (os.path.join(RUNS, "gpt3-1.3b.json"), "--limits", "5GiB,29GiB", "--planners", "greedy", "--set",
             "plan.recompute=auto")
    least, most = (point["shares"] for point in
                   json.loads(weft.expect(0, "sweep", *flags, "--json", "-q"))["curves"][0]["points"])
    assert least["units"] == {"fsdp": 1} and least["state"] == {"device": 1}, least
    assert least["saved"]["whole"] > 0.9 and abs(sum(least["saved"].values()) - 1) < 1e-9, least
    assert most["saved"] == {"device": 1} and abs(sum(most["units"].values()) - 1) < 1e-9, most
    out = weft.expect(0, "sweep", *flags, "-q")
    assert re.search(r"^  saved whole +9[0-9] % +0 %$", out, re.M), out


@drawn_case
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
                       "--csv", "-", "-q")
    rows = list(csv.reader(io.StringIO(text)))
    assert rows[0][0] == "planner" and len(rows) == 3, "the table takes the place of the report"


class Picture:
    """The drawn figure of a sweep. Ticks, and not the data attributes, give the values of places."""

    def __init__(self, path):
        self.document = xml.dom.minidom.parse(path)
        self.page = self.document.documentElement
        self.paths = self.document.getElementsByTagName("path")
        self.texts = [text.firstChild.data for text in self.document.getElementsByTagName("text")]
        self.ticks = {kind: sorted((int(path.getAttribute(f"data-{kind}")), numbers(path)[axis])
                                   for path in self.paths if path.hasAttribute(f"data-{kind}"))
                      for kind, axis in (("ns", 1), ("bytes", 0))}

    def value(self, kind, place):
        (low, at_low), (high, at_high) = self.ticks[kind][0], self.ticks[kind][-1]
        return low + (high - low) * (place - at_low) / (at_high - at_low)

    def near(self, kind, place, value):
        """True if the place is that of the value, as exactly as places are written."""
        (low, at_low), (high, at_high) = self.ticks[kind][0], self.ticks[kind][-1]
        return abs(self.value(kind, place) - value) <= 0.02 * abs((high - low) / (at_high - at_low))

    def points(self):
        """Returns every point, (planner, limit, policy limit, host limit, mark, value) from its data attributes, and
        checks its place.
        """
        points = []
        for path in self.paths:
            if not path.hasAttribute("data-planner"):
                continue
            limit, part, host = (path.getAttribute(f"data-{name}-limit-bytes")
                                 for name in ("memory", "policy", "host"))
            what, = (name for name in ("step-ns", "measured-step-ns")
                     if path.hasAttribute(f"data-{name}"))
            value = path.getAttribute(f"data-{what}")
            points.append((path.getAttribute("data-planner"), limit, part, host, what, value))
            x, y = map(float, re.match(r"translate\((\S+) (\S+)\)",
                                       path.getAttribute("transform")).groups())
            assert self.near("bytes", x, int(part or limit)), (points[-1], x)
            if path.hasAttribute("data-above"):
                assert int(value) > self.ticks["ns"][-1][0], points[-1]
                assert self.near("ns", y, self.ticks["ns"][-1][0]), (points[-1], y)
            else:
                assert self.near("ns", y, int(value)), (points[-1], y)
        return sorted(points, key=str)

    def corners(self, planner):
        """Returns the corners of a planner's only line, (bytes, ns), between horizontal and vertical parts."""
        line, = (path for path in self.paths if path.getAttribute("data-curve") == planner)
        corners, x, y = [], None, None
        for letter, rest in re.findall(r"([A-Za-z])([^A-Za-z]*)", line.getAttribute("d")):
            assert letter in "MHV", line.getAttribute("d")
            if letter == "M":
                x, y = map(float, rest.split())
            elif letter == "H":
                corners.append((x, y))
                x = float(rest)
            else:
                y = float(rest)
        return corners


def numbers(path):
    """Returns the place at which a path begins."""
    return [float(number) for number in re.findall(r"[\d.]+", path.getAttribute("d"))[:2]]


def points_of_csv(path):
    points = []
    with open(path, encoding="utf-8") as file:
        for row in csv.DictReader(file):
            point = (row["planner"], row["memory_limit_bytes"], row["policy_limit_bytes"],
                     row["host_limit_bytes"])
            fits = row["fits"] == "1"
            assert fits == (row["step_ns"] != "") == (row["total_bytes"] != ""), row
            if fits:
                points.append((*point, "step-ns", row["step_ns"]))
            if row["measured_step_ns"]:
                points.append((*point, "measured-step-ns", row["measured_step_ns"]))
    return sorted(points, key=str)


@drawn_case
def every_point_of_the_picture_is_where_its_figures_are(weft):
    """The cases: predictions of a much faster machine, so that measured steps lie far above them; planners that do not
    fit; a split; a grid.
    """
    table, picture = weft.path("sweep.csv"), weft.path("sweep.svg")
    said = weft.expect(0, "sweep", config_of(weft, cluster__base="256MiB"), "--points", "3",
                       "--planners", "greedy,all-fsdp,all-dp", "--measure", "--csv", table, "--svg",
                       picture, "-q", "--json")
    points = [point for curve in json.loads(said)["curves"] for point in curve["points"]]
    assert max(point.get("measured_step_ns", 0) for point in points) > \
        max(point.get("step_ns", 0) for point in points), "nothing was measured above predictions"
    drawn = Picture(picture).points()
    assert drawn == points_of_csv(table), (drawn, points_of_csv(table))
    weft.expect(0, "sweep", config_of(weft, cluster__memory_limit="700KiB"), "--split", "--points",
                "4", "--csv", table, "--svg", picture, "-q")
    assert Picture(picture).points() == points_of_csv(table)
    weft.expect(0, "sweep", config_of(weft, cluster__host=HOST), "--points", "3", "--host-points",
                "3", "--planners", "greedy", "--csv", table, "--svg", picture, "-q")
    drawn = Picture(picture).points()
    assert drawn == points_of_csv(table) and len({point[3] for point in drawn}) == 3, drawn


@drawn_case
def a_planner_is_a_staircase_from_its_least_limit(weft):
    """A plan's line runs from its limit up to that of a faster one, and a bound's line down from its limit."""
    table, path = weft.path("sweep.csv"), weft.path("sweep.svg")
    weft.expect(0, "sweep", config_of(weft), "--points", "5", "--planners", "ilp,greedy,all-fsdp,all-dp",
                "--csv", table, "--svg", path, "-q")
    picture = Picture(path)
    with open(table, encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["fits"] == "1"]
    first = {}
    for planner in {row["planner"] for row in rows}:
        expected = []
        for row in rows:
            if row["planner"] == planner and (not expected or int(row["step_ns"]) < expected[-1][1]):
                expected.append((int(row["memory_limit_bytes"]), int(row["step_ns"])))
        corners = picture.corners(planner)
        assert len(corners) == len(expected), (corners, expected)
        for (x, y), (limit, step) in zip(corners, expected):
            assert picture.near("bytes", x, limit) and picture.near("ns", y, step), (x, limit, step)
        first[planner] = expected[0][0]
    assert len(set(first.values())) > 1, "all begin at the same limit: choose other planners"
    bounds = [(int(row["memory_limit_bytes"]), int(row["bound_ns"])) for row in rows
              if row["planner"] == "ilp"]
    shade, = (one for one in picture.paths if one.hasAttribute("data-infeasible-bytes"))
    steps = re.findall(r"V([\d.]+)H([\d.]+)", shade.getAttribute("d"))[:-1]
    assert len(steps) == len(bounds), (steps, bounds)
    for (y, x), (limit, bound) in zip(steps, bounds):
        assert picture.near("bytes", float(x), limit), (x, limit)
        assert picture.near("ns", float(y), bound), (y, bound)


@drawn_case
def a_picture_is_fit_to_print(weft):
    """A column of 85 mm has text of at least 6 points, whole ticks of 1, 2 or 5, and a shaded part without plans. Names
    do not overlap, and the title has no path.
    """
    path = weft.path("sweep.svg")
    weft.expect(0, "sweep", config_of(weft), "--points", "3", "--svg", path, "-q")
    picture = Picture(path)
    width, height = map(float, picture.page.getAttribute("viewBox").split()[2:])
    sizes = [picture.page.getAttribute("font-size")] + [
        text.getAttribute("font-size") for text in picture.document.getElementsByTagName("text")
        if text.hasAttribute("font-size")]
    assert all(float(size) / width * 85 / 25.4 * 72 >= 6 for size in sizes), sizes
    for kind, steps in picture.ticks.items():
        values = [value for value, _ in steps]
        step = values[1] - values[0]
        assert {b - a for a, b in zip(values, values[1:])} == {step}, values
        units = [1024 ** k for k in range(6)] if kind == "bytes" else [1000 ** k for k in range(4)]
        unit = max(unit for unit in units if step % unit == 0)
        assert str(step // unit).rstrip("0") in "125", (kind, values)
        assert all(str(value // unit) in picture.texts for value in values), (values, picture.texts)
    fill, = (path for path in picture.paths if path.hasAttribute("data-infeasible-bytes"))
    assert fill.getAttribute("fill") == "#e4e4e4" and "Shaded: no plan fits" in " ".join(picture.texts)
    # Words are drawn without a stroke above their ground: some renderers draw the stroke last.
    texts = picture.document.getElementsByTagName("text")
    upright = [text for text in texts if text.firstChild.data == "no plan fits"]
    assert [text.hasAttribute("stroke") for text in upright] in ([], [True, False]), len(upright)
    assert not any(text.hasAttribute("paint-order") for text in texts)
    begins = picture.ticks["ns"][0][0]
    assert (begins == 0) != any("axis begins at" in text for text in picture.texts), picture.texts
    places = {text: [float(element.getAttribute(name)) for name in "xy"]
              for element in picture.document.getElementsByTagName("text")
              for text in [element.firstChild.data]}
    names = sorted(places[name][1] for name in places
                   if re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name))
    assert len(names) > 7 and all(b - a > 23 for a, b in zip(names, names[1:])), names
    assert all(0 < y < height for _, y in places.values()), (height, places)
    title = picture.texts[:4]
    assert title[0].startswith("run, ") and title[0].endswith(" parameters, 2 ranks"), title
    assert title[1].startswith("batch ") and "emulated" in title[2] and "weft " in title[3], title


@drawn_case
def results_are_printed_whatever_becomes_of_the_files(weft):
    """The disk is full when the figure is written; the table and the other file exist."""
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
def a_policy_limit_asks_for_one_division(weft):
    """With all memory for policies none is left to schedule well. Without a limit of its own two-stage decides for a series
    of limits, and finds a better division.
    """
    config = os.path.join(RUNS, "uneven-64.json")
    free, named = (json.loads(weft.expect(0, "plan", config, "--planner", "two-stage", "--memory-limit", "4.3GiB",
                                          "--json", "-q", *more))["step_ns"]
                   for more in ((), ("--set", "plan.policy_limit=4.3GiB")))
    assert free < named, (free, named)


@drawn_case
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


def grid(weft, *flags, **changes):
    """Returns the points of each limit of the host's memory, in the order of the limits, and these limits."""
    said = sweep(weft, *flags, **{"cluster__host": HOST, **WORK, **changes})
    rows = [curve["points"] for curve in said["curves"]]
    assert said["grid"] and len({curve["planner"] for curve in said["curves"]}) == 1, said
    limits = [{point["host_limit_bytes"] for point in row} for row in rows]
    assert all(len(one) == 1 for one in limits), limits
    columns = {tuple(point["memory_limit_bytes"] for point in row) for row in rows}
    assert len(columns) == 1 and list(*columns) == sorted(set(*columns)), columns
    return rows, [one.pop() for one in limits]


def never_slower(rows):
    """True if more of either memory is never slower. A bound for more memory also holds for less."""
    pairs = [(row[i], row[i + 1]) for row in rows for i in range(len(row) - 1)]
    pairs += [pair for a, b in zip(rows, rows[1:]) for pair in zip(a, b)]
    return all((not less["fits"] or more["fits"] and more["step_ns"] <= less["step_ns"]) and
               more["bound_ns"] <= less["bound_ns"] for less, more in pairs)


@drawn_case
def a_grid_goes_over_the_hosts_memory_too(weft):
    rows, hosts = grid(weft, "--points", "3", "--host-points", "3")
    assert [len(row) for row in rows] == [3, 3, 3], rows
    assert hosts == sorted(set(hosts)) and hosts[0] == 0, hosts
    assert all(point["fits"] for point in rows[-1]), "the most of it is enough for the least limit"
    assert [point["fits"] for point in rows[0]][::2] == [False, True], "the least is none of it"
    assert never_slower(rows), rows
    for point in rows[-1]:
        limit = f"{point['memory_limit_bytes']}B"
        ample = json.loads(weft.expect(0, "plan", weft.path("run.json"), "--json", "--planner",
                                       "greedy", "--memory-limit", limit))
        assert point["step_ns"] <= ample["step_ns"] * 1.002, "with more of it a plan is faster"
        assert not ample.get("tiers") or ample["tiers"][0]["peak_bytes"] <= hosts[-1], ample
        assert 0 < point["bound_ns"] <= point["step_ns"] and point["gap"] >= 0, point


@drawn_case
def one_limit_of_the_host_is_left_where_none_is_needed(weft):
    rows, hosts = grid(weft, "--limits", "1GiB", "--host-points", "4", "--planners", "greedy")
    assert hosts == [0] and rows[0][0]["fits"], rows


@drawn_case
def a_grid_begins_with_what_the_host_has_to_have(weft):
    """All state must be on the host here."""
    there = {"plan__offload": {"state": ["host"], "activations": ["device"], "update": ["device"]}}
    rows, hosts = grid(weft, "--points", "2", "--host-points", "2", "--planners", "greedy", **there)
    assert hosts[0] > 0 and rows[0][-1]["fits"] and rows[-1][0]["fits"], rows
    weft.expect(78, "plan", weft.path("run.json"), "--set",
                f"cluster.host.memory_limit={hosts[0] - 4096}B", "--planner", "greedy")


@drawn_case
def a_point_of_a_grid_is_what_plan_says(weft):
    rows, hosts = grid(weft, "--limits", "450KiB,1GiB", "--host-limits", "64MiB,0B,200KiB,0B",
                       "--planners", "greedy")
    assert hosts == [0, 200 << 10, 64 << 20], hosts
    assert [[point["fits"] for point in row] for row in rows] == [[False, True]] + 2 * [[True] * 2]
    for row in rows:
        for point in row:
            code, out, _ = weft.run(
                "plan", weft.path("run.json"), "--json", "--planner", "greedy", "--memory-limit",
                f"{point['memory_limit_bytes']}B", "--set",
                f"cluster.host.memory_limit={point['host_limit_bytes']}B")
            assert code == (0 if point["fits"] else 78), (code, point)
            assert not point["fits"] or json.loads(out)["step_ns"] == point["step_ns"], point


@drawn_case
def more_of_either_memory_is_never_slower(weft):
    """With this gap a point alone stops at its first plan, which is slower here with more of the host's memory."""
    flags = ("--limits", "420KiB,480KiB,540KiB", "--host-limits", "160KiB,200KiB,280KiB,400KiB",
             "--gap", "0.5")
    rows, _ = grid(weft, *flags, "--jobs", "1")
    assert rows == grid(weft, *flags, "--jobs", "3")[0], "the same whatever runs beside each other"
    assert never_slower(rows), rows

    def alone(point):
        code, out, _ = weft.run("plan", weft.path("run.json"), "--json", "--gap", "0.5",
                                "--memory-limit", f"{point['memory_limit_bytes']}B", "--set",
                                f"cluster.host.memory_limit={point['host_limit_bytes']}B")
        return json.loads(out)["step_ns"] if code == 0 else 1 << 60

    columns = [[alone(point) for point in column] for column in zip(*rows)]
    assert any(column != sorted(column, reverse=True) for column in columns), \
        "nothing to plan again: choose another gap"


@drawn_case
def a_grids_plans_are_trained_too(weft):
    base = 256 << 20
    rows, _ = grid(weft, "--limits", f"{base + (450 << 10)}B,1GiB", "--host-limits", "0B,64MiB",
                   "--planners", "greedy", "--measure", cluster__base=f"{base}B")
    assert [[point["fits"] for point in row] for row in rows] == [[False, True], [True, True]]
    for row in rows:
        for point in row:
            assert (point.get("measured_step_ns", 0) > 0) == point["fits"], point


@drawn_case
def measure_trains_every_plan(weft):
    bare = weft.write("bare.json", tiny(cluster__device=None, cluster__memory_limit=None))
    code, out, err = weft.run("sweep", bare, "--measure", "--points", "2", "--planners",
                              "greedy,all-fsdp", "--json", "-q")
    assert code == 0, err
    points = [point for curve in json.loads(out)["curves"] for point in curve["points"]]
    assert json.loads(out)["times"] != "analytic"
    fitting = [point for point in points if point["fits"]]
    # A build with sanitizers needs more than was measured before, and then reports that.
    told = err.count("not measured")
    assert sum(point.get("measured_step_ns", 0) > 0 for point in fitting) == len(fitting) - told
    assert any(point["fits"] for point in points)
    experts = tiny(model__layers=[{"name": "b", "type": "moe_block", "hidden": 8, "heads": 2, "ffn": 8,
                                   "experts": 2, "active_experts": 1}])
    weft.expect(65, "sweep", weft.write("experts.json", experts), "--measure", says="kernels")


@drawn_case
def repeats_run_in_turns(weft):
    """A B, B A, A B: a slow change of the machine's speed meets both planners."""
    bare = weft.write("bare.json", tiny(cluster__device=None, cluster__memory_limit=None))
    code, out, err = weft.run("sweep", bare, "--measure", "--repeat", "3", "--points", "1", "--planners",
                              "all-dp,all-zero1", "--to", "all", "--json")
    assert code == 0, err
    turns = re.findall(r"training under (\S+) within", err)
    assert turns == ["all-dp", "all-zero1", "all-zero1", "all-dp", "all-dp", "all-zero1"], turns
    for curve in json.loads(out)["curves"]:
        point = curve["points"][0]
        if "measured_step_ns" in point:
            assert 0 <= point["measured_spread_ns"], point
    weft.expect(64, "sweep", bare, "--repeat", "3", says="--measure")
    weft.expect(64, "sweep", bare, "--measure", "--repeat", "0", says="1 to 99")


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
def a_signal_leaves_no_process_and_no_half_file(weft):
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
        left = sorted(name for name in os.listdir(weft.directory) if name != "out.csv.sweep")
        assert left == before, left


def rows_in(folder):
    names = os.listdir(folder) if os.path.isdir(folder) else []
    return [name for name in names if name.endswith(".row")]


def stop_after(weft, folder, rows, number, *arguments):
    """Ends a sweep by a signal after it has kept this many results."""
    process = weft.start(*arguments)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        if len(rows_in(folder)) >= rows:
            break
        time.sleep(0.005)
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    assert process.returncode == (75 if number == signal.SIGTERM else -number), (out, err)
    assert len(rows_in(folder)) >= rows, os.listdir(folder)
    return err


@drawn_case
def a_stopped_sweep_goes_on_where_it_was(weft):
    """Stops by SIGTERM and by SIGKILL; the final files equal those of an uninterrupted sweep."""
    config, whole = config_of(weft), weft.path("whole.csv")
    flags = ("--planners", "ilp,greedy,all-fsdp,ddp", "--points", "4", "--jobs", "1")
    weft.expect(0, "sweep", config, *flags, "--csv", whole, "-q")
    assert sorted(os.listdir(weft.directory)) == ["run.json", "whole.csv"], "nothing else is left"
    part = weft.path("part.csv")
    folder = part + ".sweep"
    arguments = ("sweep", config, *flags, "--csv", part)
    err = stop_after(weft, folder, 4, signal.SIGTERM, *arguments)
    assert f"{folder}: the same command goes on" in err and not os.path.exists(part), err
    stop_after(weft, folder, 8, signal.SIGKILL, *arguments)
    code, _, err = weft.run(*arguments)
    kept = re.search(r"sweep: (\d+) of 16 plans were made before", err)
    assert code == 0 and kept and int(kept.group(1)) >= 5, err
    assert open(part, encoding="utf-8").read() == open(whole, encoding="utf-8").read()
    assert not os.path.exists(folder), "what was kept goes when all is written"


@drawn_case
def what_decides_a_row_decides_what_is_kept(weft):
    config, part = config_of(weft), weft.path("part.csv")
    folder = part + ".sweep"
    flags = ("--planners", "greedy,all-fsdp,ilp", "--limits", "1GiB,2GiB,3GiB", "--jobs", "1",
             "--csv", part)
    stop_after(weft, folder, 3, signal.SIGKILL, "sweep", config, *flags)
    kept = shutil.copytree(folder, weft.path("kept"))
    for other in (("--set", "train.micro_batch=1"), ("--gap", "0.5"), ("-n", "3"), ("--set",
                  "cluster.link.intra.bandwidth=3GB/s")):
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(kept, folder)
        _, _, err = weft.run("sweep", config, *flags, *other)
        assert "made before" not in err, (other, err)
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(kept, folder)
    for name in rows_in(folder):
        with open(os.path.join(folder, name), "r+b") as file:
            file.seek(-1, os.SEEK_END)
            file.write(b"?")
    code, _, err = weft.run("sweep", config, *flags)
    assert code == 0 and "is damaged" in err and "made before" not in err, err
    code, _, err = weft.run("sweep", config, *flags[:-2])
    assert code == 0 and "made before" not in err, "without a file nothing is looked for"


@drawn_case
def other_points_are_not_those_of_a_stopped_sweep(weft):
    """The limits of points that no --limits names are kept too, for this number of points and these planners."""
    config, part = config_of(weft), weft.path("part.csv")
    flags = ("--planners", "ilp,greedy", "--jobs", "1")
    stop_after(weft, part + ".sweep", 3, signal.SIGKILL, "sweep", config, *flags, "--points", "5", "--csv", part)
    kept = shutil.copytree(part + ".sweep", weft.path("kept"))
    for other in (("--points", "3"), ("--points", "5", "--to", "all")):
        shutil.rmtree(part + ".sweep", ignore_errors=True)
        shutil.copytree(kept, part + ".sweep")
        whole = weft.path("whole.csv")
        weft.expect(0, "sweep", config, *flags, *other, "--csv", whole, "-q")
        weft.expect(0, "sweep", config, *flags, *other, "--csv", part, "-q")
        assert open(part, encoding="utf-8").read() == open(whole, encoding="utf-8").read(), other


@drawn_case
def runs_of_a_stopped_sweep_are_kept_too(weft):
    config, part = config_of(weft, cluster__base="256MiB"), weft.path("part.csv")
    flags = ("--planners", "greedy,all-fsdp", "--limits", "1GiB,2GiB,3GiB", "--jobs", "1",
             "--measure", "--csv", part)
    stop_after(weft, part + ".sweep", 8, signal.SIGKILL, "sweep", config, *flags)
    code, _, err = weft.run("sweep", config, *flags)
    assert code == 0 and "6 of 6 plans were made before" in err, err
    assert 0 < err.count("sweep: training under") < 5, err
    with open(part, encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert all(int(row["measured_step_ns"]) > 0 for row in rows), rows


@case
def a_planner_that_fails_ends_the_sweep_with_its_reason(weft):
    weft.expect(65, "sweep", config_of(weft), "--planners", "greedy", "--limits", "1GiB", "--set",
                "train.steps=none", says="train.steps")


@drawn_case
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
    weft.expect(64, "sweep", config, "--host-points", "3", says="give cluster.host")
    config = config_of(weft, cluster__host=HOST)
    for flags, says in ((("--host-points", "0"), "from 1 to"),
                        (("--host-points", "3", "--host-limits", "1GiB"), "one of them"),
                        (("--host-limits", "1GiB,2"), "--host-limits"),
                        (("--host-points", "3", "--split"), "--split"),
                        (("--host-points", "3", "--planners", "ilp,greedy"), "one planner"),
                        (("--host-limits", "1GiB", "--planners", "fsdp2"), "planner fsdp2 keeps"),
                        (("--host-points", "3", "--set", 'plan.offload={"state":["device"],'
                          '"activations":["device"]}'), "plan.offload")):
        weft.expect(64, "sweep", config, *flags, says=says)
    weft.expect(73, "sweep", config, "--svg", weft.path("no/such/folder/x.svg"), says="--svg")
    weft.expect(66, "sweep", weft.path("none.json"), says="none.json")


main(sys.argv[1])
