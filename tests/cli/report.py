#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weft report` draws exactly its data, on a page without scripts and addresses; `weft compare` finds the first step
with other bits. Untrusted names stay text, and incomplete runs are shown as far as they go.
"""
import csv
import gzip
import html.parser
import io
import itertools
import json
import os
import re
import signal
import sys
import time

from browser import Browser, judge
from configs import tiny
from tap import Skip, case, main

HOSTILE = "<script>alert(1)</script>\"'&\u202e" + "n" * 300
VOID = {"meta"}


class Node:
    """An element of a page."""

    def __init__(self, tag, attributes):
        self.tag, self.attributes, self.children, self.text = tag, dict(attributes), [], ""

    def all(self, tag=None, kind=None):
        for child in self.children:
            if (tag is None or child.tag == tag) and (kind is None or kind in child.classes()):
                yield child
            yield from child.all(tag, kind)

    def classes(self):
        return (self.attributes.get("class") or "").split()

    def words(self):
        return self.text + "".join(child.words() for child in self.children)


class Reader(html.parser.HTMLParser):
    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.stack = [Node("page", [])]
        self.feed(page)
        assert len(self.stack) == 1, f"open elements: {[node.tag for node in self.stack]}"

    def handle_starttag(self, tag, attrs):
        node = Node(tag, attrs)
        self.stack[-1].children.append(node)
        if tag not in VOID:
            self.stack.append(node)

    def handle_startendtag(self, tag, attrs):
        self.stack[-1].children.append(Node(tag, attrs))

    def handle_endtag(self, tag):
        assert self.stack[-1].tag == tag, f"</{tag}> closes <{self.stack[-1].tag}>"
        self.stack.pop()

    def handle_data(self, data):
        self.stack[-1].text += data


def read_page(weft, name):
    with open(weft.path(name), encoding="utf-8") as file:
        return file.read()


def parse(page):
    return Reader(page).stack[0]


def train(weft, run, *arguments, **changes):
    changes = {"train__steps": 6, "plan__work_limit": "20M", **changes}
    weft.expect(0, "train", weft.write("run.json", tiny(**changes)), "--clock", "virtual", "--run", run, "-q",
                "--trace", f"{run}.trace", *arguments)
    os.rename(weft.path(f"{run}.trace"), weft.path(f"{run}/trace.json"))


def report(weft, *arguments, code=0, **options):
    return weft.expect(code, "report", *arguments, **options)


def scale(text):
    low, high, start, end = map(float, text.split())
    return lambda value: start + (end - start) * (value - low) / (high - low)


def walk(path):
    """Corners of an SVG path with M, L, H, V, h, v, z in order, one list for each M."""
    parts, at = [], [0.0, 0.0]
    for command, numbers in re.findall(r"([MLHVvhz])([-0-9. ]*)", path):
        values = [float(number) for number in numbers.split()]
        if command in "ML":
            at = values
        elif command in "Hh":
            at = [values[0] + (at[0] if command == "h" else 0), at[1]]
        elif command in "Vv":
            at = [at[0], values[0] + (at[1] if command == "v" else 0)]
        else:
            continue
        parts.append([]) if command == "M" else None
        parts[-1].append(tuple(at))
    return parts


def near(a, b, most=0.07):
    return abs(a - b) <= most


def check_chart(figure, rows):
    """Each point of each series is drawn at its place, and no other one."""
    plot = next(figure.all("g", "plot"))
    x, y = scale(plot.attributes["data-x"]), scale(plot.attributes["data-y"])
    points = {}
    for row in rows:
        if row.get("y") is not None:
            points.setdefault(row["series"], []).append((x(row["x"]), y(row["y"])))
    drawn = 0
    for path in plot.all("path", "line"):
        corners = [corner for part in walk(path.attributes["d"]) for corner in part]
        wanted = points[path.attributes["data-series"]]
        for px, py in wanted:
            assert any(near(px, cx) and near(py, cy) for cx, cy in corners), (path.attributes["data-series"], px, py)
        for cx, cy in corners:
            assert any(near(py, cy) for _, py in wanted) and cx <= x_end(plot) + 0.07
        drawn += len(wanted)
    for mark in plot.all("circle"):
        place = float(mark.attributes["cx"]), float(mark.attributes["cy"])
        assert any(near(px, place[0]) and near(py, place[1]) for px, py in points[mark.attributes["data-series"]])
        drawn += 1
    assert drawn >= sum(map(len, points.values())) > 0
    return drawn


def x_end(plot):
    return float(plot.attributes["data-x"].split()[3])


def check_timeline(figure, rows):
    """The spans of a row are drawn from start to end, with one colour a kind. Narrow neighbours are one box."""
    plot = next(figure.all("g", "plot"))
    x, colours = scale(plot.attributes["data-x"]), {}
    for row in plot.all("g", "row"):
        lane, source = row.attributes["data-lane"], row.attributes["data-source"]
        spans = [(x(one["from_ns"]), x(one["to_ns"]), one["kind"]) for one in rows
                 if (one["lane"], one["source"]) == (lane, source)]
        boxes = [(part, path.classes()[0]) for path in row.all("path") for part in walk(path.attributes["d"])]
        assert spans and boxes, (lane, source)
        for part, colour in boxes:
            (start, _), (end, _), *_, (last, _) = part
            inside = [span for span in spans if start - 0.07 <= span[0] and span[1] <= end + 0.07]
            assert last == start and near(min(span[0] for span in inside), start), (lane, source, part)
            assert near(max(span[1] for span in inside), end), (lane, source, part)
            wide = {span[2] for span in inside if span[1] - span[0] > 0.3}
            assert all(colours.setdefault(kind, colour) == colour for kind in wide), (wide, colour)
        for start, end, _ in spans:
            assert any(part[0][0] - 0.07 <= start and end <= part[1][0] + 0.07 for part, _ in boxes), (lane, start, end)
    return len(rows)


def check_stack(figure, rows):
    """The top of each part is the sum of it and all below, over each column."""
    plot = next(figure.all("g", "plot"))
    x, y = scale(plot.attributes["data-x"]), scale(plot.attributes["data-y"])
    parts = [path.attributes["data-part"] for path in plot.all("path", "area")][::-1]
    columns = {}
    for row in rows:
        if row["series"] in parts:
            columns.setdefault((row["from_ns"], row["to_ns"]), {})[row["series"]] = row["value"]
    for path in plot.all("path", "area"):
        corners = walk(path.attributes["d"])[0]
        below = parts[:parts.index(path.attributes["data-part"]) + 1]
        edges = {x(edge) for column in columns for edge in column}
        assert all(any(near(corner[0], edge) for edge in edges) for corner in corners), below[-1]
        for (start, end), values in columns.items():
            middle, top = (x(start) + x(end)) / 2, y(sum(values[part] for part in below))
            heights = [a[1] for a, b in zip(corners, corners[1:]) if a[1] == b[1] and a[0] <= middle <= b[0]]
            assert any(near(top, height) for height in heights), (below[-1], start, top, heights)
    for line in plot.all("path", "line"):
        wanted = [(x(row["from_ns"]), y(row["value"])) for row in rows if row["series"] == line.attributes["data-series"]]
        corners = walk(line.attributes["d"])[0]
        assert all(near(a[0], b[0]) and near(a[1], b[1]) for a, b in zip(wanted, corners[::2], strict=True))
        assert all(a[0] == b[0] for a, b in zip(corners[1::2], corners[2::2])), "stairs"
    for level in plot.all("path", "level"):
        value = [row["value"] for row in rows if row["series"] == level.attributes["data-level"]]
        assert near(y(value[0]), walk(level.attributes["d"])[0][0][1])
    return len(rows)


def check_drawings(page, data):
    """Reads all drawings of a page back. Returns the number of values that were found."""
    found = 0
    for section in parse(page).all("section"):
        for figure in section.all("figure"):
            rows = data[section.attributes["id"]][figure.attributes["data-key"]]
            if list(figure.all("path", "area")):
                found += check_stack(figure, rows)
            elif list(figure.all("g", "row")):
                found += check_timeline(figure, rows)
            elif list(figure.all("g", "plot")):
                found += check_chart(figure, rows)
            else:
                titles = [title.text for title in figure.all("title")]
                assert len(titles) <= len(rows) and {row["choice"] for row in rows} == {
                    title.rsplit(": ", 1)[1] for title in titles}
                found += len(rows)
    return found


def check_labels(page):
    """Boxes of the labels of a drawing do not overlap, and are inside of it."""
    fonts = {"lane": 12, "in": 10}
    for svg in parse(page).all("svg"):
        if "defs" in svg.classes():
            continue
        width, height = map(float, svg.attributes["viewbox"].split()[2:])
        boxes = []
        for label in svg.all("text"):
            font = fonts.get(label.classes()[0], 11)
            across = len(label.words()) * font * 0.55
            x, y = float(label.attributes["x"]), float(label.attributes["y"])
            x -= across * {"middle": 0.5, "end": 1}.get(label.attributes.get("text-anchor"), 0)
            boxes.append((x, y - 0.75 * font, x + across, y + 0.2 * font, label.words()))
            assert x >= -12 and x + across <= width + 12 and 0 <= y <= height, boxes[-1]
        for a, b in itertools.combinations(boxes, 2):
            assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1], f"overlap: {a} {b}"


def check_closed(page):
    """Nothing runs and nothing is fetched."""
    assert not re.search(r"<(script|link|img|iframe|object|embed|base|form)\b|\son\w+=|javascript:|@import", page)
    assert not re.search(r"https?:|//\w", page)
    assert set(re.findall(r"url\(([^)]*)\)", page)) <= {"#hatch"}
    assert all(address.startswith("#") for address in re.findall(r'href="([^"]*)"', page))


def luminance(colour):
    parts = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    r, g, b = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(a, b):
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def check_ranks(weft, rows, page):
    """Times of each rank are sums of the trace, and the page names the rank that computes longest."""
    events = [event for event in json.loads(read_page(weft, "done/trace.json"))["traceEvents"]
              if event["ph"] == "X" and event["args"]["step"] == 6 and event["name"] != "wait for data"]
    for row in rows:
        own = [event for event in events if event["pid"] == row["rank"]]
        waits = sum(event["dur"] for event in own if event["name"] == "exposed")
        lanes = [sum(event["dur"] for event in own if event["tid"] == lane and event["name"] != "exposed") for lane in (0, 1)]
        for told, summed in ((row["compute_ns"], lanes[0]), (row["exposed_ns"], waits), (row["lane_1_ns"], lanes[1])):
            assert abs(told - 1000 * summed) <= len(own), row
    assert [row["rank"] for row in rows] == [0, 1]
    slowest = max(rows, key=lambda row: row["compute_ns"])
    if len({row["compute_ns"] for row in rows}) == 1:
        assert "In step 6 all ranks compute for" in page
    else:
        assert f"In step 6 rank {slowest['rank']} computes longest" in page


@case
def the_rank_that_computes_longest_is_named(weft):
    train(weft, "done")
    trace = json.loads(read_page(weft, "done/trace.json"))
    for event in trace["traceEvents"]:
        if event["pid"] == 1 and event["name"].startswith("backward"):
            event["dur"] *= 2
    weft.write("done/trace.json", trace)
    data = json.loads(report(weft, "done", "-o", "page.html", "--json"))
    check_ranks(weft, data["ranks"]["ranks"], read_page(weft, "page.html"))
    assert "rank 1 computes longest" in read_page(weft, "page.html")


def rewrite(weft, name, **changes):
    weft.write(name, {**json.loads(read_page(weft, name)), **changes})


def forge_hosts(weft, run, names):
    """Gives a run of two ranks a host for each name, a measured network between them, and a load."""
    n = len(names)
    rewrite(weft, f"{run}/result.json",
            hosts=[{"name": name, "ranks": 1, "cores": 8, "others_cores": h / 4, "stolen_cores": None}
                   for h, name in enumerate(names)],
            ranks=[{"host": h, "compute_ns": 10**6 + h, "exposed_ns": 7, "data_wait_ns": 0} for h in range(n)])
    # Pairs of the last host take ten times as long as others.
    pairs = [{"a": a, "b": b, "ns": 10**6 * (10 if b == n - 1 else 1)} for a in range(n) for b in range(a + 1, n)]
    rewrite(weft, f"{run}/profile.json",
            measured_on={"machine": names[0], "threads": 1, "busy_millicores": 300, "link": names[0]},
            network={"hosts": [{"name": name, "compute_ns": 10**6} for name in names], "pair_bytes": 1 << 20, "pairs": pairs})


@case
def hosts_links_and_load_are_on_the_page(weft):
    train(weft, "one")
    train(weft, "two")
    result = json.loads(read_page(weft, "one/result.json"))
    assert [(host["name"], host["ranks"]) for host in result["hosts"]] == [(os.uname().nodename, 2)], result["hosts"]
    ranks = json.loads(report(weft, "one", "-o", "page.html", "--json"))["ranks"]
    page = read_page(weft, "page.html")
    assert [row["host"] for row in ranks["hosts"]] == [os.uname().nodename] and "links" not in ranks, ranks
    assert [row["compute_ns"] for row in ranks["run_ranks"]] == sorted(
        (rank["compute_ns"] for rank in result["ranks"]), reverse=True)
    assert "Over all steps all ranks compute for" in page and "No link was measured" in page, "a virtual clock"
    names = ["a", "b", HOSTILE, "d"]
    forge_hosts(weft, "two", names)
    data = json.loads(report(weft, "one", "two", "-o", "page.html", "--csv", "page.csv", "--json"))["ranks"]
    page = read_page(weft, "page.html")
    check_closed(page)
    check_labels(page)
    assert "\u202e" not in page and "&lt;script&gt;" in page
    assert [(row["host"], row.get("others_cores")) for row in data["hosts_2"]] == list(zip(names, (0, 0.25, 0.5, 0.75)))
    assert [row["rank"] for row in data["run_ranks_2"]] == [3, 2, 1, 0] and "rank 3 on host d computes longest" in page
    slow = [(row["a"], row["b"]) for row in data["links_2"] if row["slow"]]
    assert slow == [("a", "d"), ("b", "d"), (HOSTILE, "d")] and len(data["links_2"]) == 6, data["links_2"]
    assert data["links_2"][0]["bytes_per_s"] == (1 << 20) / 10e-3
    assert [row["collective"] for row in data["collectives_2"]] == ["all_gather", "reduce_scatter", "all_reduce"]
    assert [(row["run"], row["hosts"], row["slowest_rank"]) for row in data["runs"]][1] == ("two", 4, 3)
    assert "Meanwhile other programs used 0.3 cores" in page and "0.75 cores of the busiest host" in page


@case
def hosts_of_another_form_are_left_out(weft):
    train(weft, "run")
    whole = json.loads(read_page(weft, "run/result.json"))
    bad = ({"hosts": 7}, {"hosts": []}, {"ranks": [{**whole["ranks"][0], "host": 1}]}, {"hosts": [{"name": "a"}]},
           {"ranks": [{**whole["ranks"][0], "compute_ns": -1}]}, {"ranks": {}}, {"ranks": [{"host": 0, "compute_ns": 1e300}]})
    for changes in bad:
        weft.write("run/result.json", {**whole, **changes})
        weft.write("run/profile.json", [changes])
        report(weft, "run", "-o", "page.html")
        assert "No hosts and no load are known" in read_page(weft, "page.html"), changes


@case
def a_page_may_be_in_the_folder_of_its_new_run(weft):
    config = weft.write("run.json", tiny(train__steps=2, plan__work_limit="20M"))
    train_it = ("train", config, "--clock", "virtual", "-q", "--run", "new")
    weft.expect(64, *train_it, "--report", "new/plan.json", says="such as new/report.html")
    weft.expect(64, *train_it, "--report", config, says="this is the input")
    for name in ("lock", "checkpoints", "hub"):
        weft.expect(64, *train_it, "--report", f"new/{name}", says=f"the run writes its {name} there")
    weft.expect(64, *train_it, "--report", "", says="this is no name; give a file")
    for name in ("new", "new/", "./new/.", "absent/"):
        weft.expect(64, *train_it, "--report", name, says="this is a folder; give a file")
    weft.expect(64, *train_it[:-1], "some/new", "--report", "some", says="this is a folder")
    weft.expect(64, *train_it[:-2], "--report", "runs", says="this is a folder")
    weft.expect(64, *train_it[:-1], ".", "--report", "plan.json", says="the run writes its plan.json there")
    weft.expect(64, *train_it[:-1], str(weft.path("new")), "--report", "new/plan.json", says="the run writes")
    weft.expect(73, *train_it, "--report", "old/page.html", says="in the run's own (--run)")
    assert not os.path.exists(weft.path("new"))
    train_it = (*train_it[:-1], str(weft.path("new")))
    assert "report    ./new//page.html" in weft.expect(0, *train_it, "--report", "./new//page.html")
    assert "page.html" in os.listdir(weft.path("new"))


@case
def every_drawn_point_of_a_run_is_its_data(weft):
    train(weft, "done", train__validation={"share": 0.2, "every": 2})
    data = json.loads(report(weft, "done", "-o", "page.html", "--csv", "page.csv", "--json"))
    page = read_page(weft, "page.html")
    assert check_drawings(page, data) > 100
    check_labels(page)
    check_closed(page)
    losses = [json.loads(line) for line in open(weft.path("done/metrics.jsonl"), encoding="utf-8")]
    assert [(row["x"], row["y"]) for row in data["training"]["loss"] if row["series"] == "measured"] == [
        (line["step"], line["loss"]) for line in losses if line["kind"] == "step"]
    kinds = {row["kind"]: row for row in data["errors"]["kinds"]}
    assert kinds["forward"]["predicted_ns"] == kinds["forward"]["measured_ns"], "a virtual clock has no error"
    tables = dict(re.findall(r"# training (\w+)\n(.*?)(?=\n# |\Z)", read_page(weft, "page.csv"), re.S))
    check_ranks(weft, data["ranks"]["ranks"], page)
    rows = list(csv.DictReader(io.StringIO(tables["loss"])))
    assert [float(row["y"]) for row in rows] == [row["y"] for row in data["training"]["loss"]]
    weft.expect(0, "report", "done", "-o", "again.html")
    assert read_page(weft, "again.html") == page, "the same input gives the same bytes"


@case
def sweeps_and_runs_are_side_by_side(weft):
    train(weft, "first")
    config = weft.write("run.json", tiny(plan__work_limit="20M"))
    weft.expect(0, "sweep", config, "--points", "3", "--planners", "ilp,all-fsdp", "--json", "-q", "-o", "sweep.json")
    data = json.loads(report(weft, "first", "sweep.json", "first/plan.json", "-o", "page.html", "--json"))
    page = read_page(weft, "page.html")
    assert check_drawings(page, data) > 100
    check_labels(page)
    series = {row["series"] for row in data["limits"]["limits"]}
    assert {"ilp", "all-fsdp", "proven bound", "first predicted", "first measured"} <= series, series
    best = json.loads(weft.expect(0, "best", config, "--json", "-q"))
    weft.write("best.json", best)
    assert best["answer"] in report(weft, "best.json", "-o", "best.html").replace("\n  ", " ")
    check_closed(read_page(weft, "best.html"))


def read_json(weft, name):
    return json.loads(read_page(weft, name))


def strategies(data):
    return {row["strategy"]: row["members"] for row in data}


@case
def levels_offloaded_inputs_and_tiers_are_on_the_page(weft):
    link = {"alpha": "10us", "bandwidth": "1GB/s"}
    host = {"memory_limit": "1GiB", "down": link, "up": link, "update": "1GB/s"}
    train(weft, "kept")
    train(weft, "moved", cluster__host=host, plan__recompute="whole",
          plan__offload={"state": ["device"], "activations": ["device"], "inputs": ["host"]})
    result = read_json(weft, "moved/result.json")
    data = json.loads(report(weft, "moved", "-o", "page.html", "--json"))
    check_drawings(read_page(weft, "page.html"), data)
    check_labels(read_page(weft, "page.html"))
    found = strategies(data["choices"]["layer_strategies"])
    assert found and all(name.endswith("+host-input") for name in found) and "whole+host-input" in found, found
    assert {row["choice"] for row in data["choices"]["layers"]} == set(found)
    device, there = data["memory"]["tiers"]
    assert (device["tier"], there["tier"]) == ("device", "host") and there["limit_bytes"] == 1 << 30
    assert there["planned_bytes"] == result["host_planned_bytes"] > 0, (there, result)
    assert there["measured_bytes"] == result["host_measured_bytes"] and device["measured_bytes"] == result["measured_bytes"]
    for source in ("predicted", "measured"):
        kinds = {row["kind"] for row in data["step"]["timeline"] if row["source"] == source}
        assert {"copy down", "copy up"} <= kinds, (source, kinds)
    said = json.loads(weft.expect(0, "compare", "kept", "moved", "--json"))
    rows = {row["name"]: (row["first"], row["second"]) for row in said["decisions"]}
    layers = [pair for pair in rows.values() if pair[1].endswith("+host-input")]
    assert len(layers) == sum(found.values()) and ("device", "whole+host-input") in layers, rows
    assert {row["kind"] for row in said["kinds"]} >= {"copy down", "copy up"}
    assert "equal strategies" in weft.expect(0, "compare", "kept", "kept")
    assert json.loads(report(weft, "kept", "--json"))["memory"].get("tiers") is None, "a single tier"


@case
def nodes_are_on_the_page(weft):
    config = weft.write("run.json", tiny(
        cluster__ranks=4, cluster__ranks_per_node=2, cluster__link__inter={"alpha": "100us", "bandwidth": "100MB/s"},
        plan__policies="nodes", plan__work_limit="20M"))
    weft.expect(0, "plan", config, "-o", "plan.json")
    data = json.loads(report(weft, "plan.json", "-o", "page.html", "--json"))
    check_drawings(read_page(weft, "page.html"), data)
    assert list(strategies(data["choices"]["unit_strategies"])) == ["nodes"], data["choices"]["unit_strategies"]
    lanes = {}
    for row in data["step"]["timeline"]:
        lanes.setdefault(row["lane"], set()).add(row["kind"])
    others = [kinds for lane, kinds in lanes.items() if lane != "compute"]
    assert len(others) >= 2 and all(kinds <= {"gather", "reduce", "agree"} for kinds in others), lanes
    assert "2 on each node" in read_page(weft, "page.html")


@case
def colours_are_told_from_both_papers(weft):
    train(weft, "done")
    report(weft, "done", "-o", "page.html")
    roots = [dict(re.findall(r"--(\w+): (#\w{6})", root))
             for root in re.findall(r":root \{([^}]*)\}", read_page(weft, "page.html"))]
    assert len(roots) == 3 and roots[0] != roots[1] and roots[2] == roots[0], "light, dark, print"
    for root in roots:
        for name in ["ink", "soft", "good", "bad", *(f"c{i}" for i in range(10))]:
            for paper in ("card", "ground"):
                assert contrast(root[name], root[paper]) >= 4.5, (name, paper)


@case
def five_hundred_units_fit_400_kb(weft):
    config = tiny(plan__planner="fsdp2", plan__fuse=False, train__steps=2)
    block = next(layer for layer in config["model"]["layers"] if layer["type"] == "transformer_block")
    config["model"]["layers"] = [
        {**layer, "name": "h.{i}", "repeat": 500} if layer is block else layer for layer in config["model"]["layers"]
        if layer is block or layer["type"] != "transformer_block"]
    weft.expect(0, "train", weft.write("run.json", config), "--clock", "virtual", "--run", "long", "-q", "--report",
                "page.html")
    page = read_page(weft, "page.html")
    assert len(page.encode()) < 400_000, len(page.encode())
    assert len(json.loads(report(weft, "long", "--json"))["choices"]["units"]) >= 500
    assert "trace.json" in os.listdir(weft.path("long"))
    check_labels(page)


@case
def names_stay_text(weft):
    train(weft, "done")
    os.rename(weft.path("done"), weft.path("<b>\u202e'\""))
    trace = json.loads(read_page(weft, "<b>\u202e'\"/trace.json"))
    for event in trace["traceEvents"]:
        if event["ph"] == "X" and event["name"] != "exposed":
            event["name"] = event["name"].split(" ")[0] + " " + HOSTILE
    trace["source"] = HOSTILE
    weft.write("<b>\u202e'\"/trace.json", trace)
    weft.write("sweep.json", {"config": HOSTILE, "ranks": 2, "times": HOSTILE, "curves": [
        {"planner": HOSTILE, "points": [{"memory_limit_bytes": b << 20, "fits": True, "step_ns": 10**7 // b}
                                        for b in (1, 2)]}]})
    report(weft, "<b>\u202e'\"", "sweep.json", "-o", "page.html")
    page = read_page(weft, "page.html")
    check_closed(page)
    check_labels(page)
    assert "\u202e" not in page and "&lt;script&gt;" in page and "\\u202e" in page


@case
def a_run_that_goes_on_is_shown_so_far(weft):
    train(weft, "run")
    lines = read_page(weft, "run/metrics.jsonl").splitlines()
    weft.write("run/metrics.jsonl", "\n".join(lines[:3]) + "\n" + lines[3][:40])
    for name in ("result.json", "trace.json"):
        os.remove(weft.path(f"run/{name}"))
    said = report(weft, "run", "-o", "page.html")
    page = read_page(weft, "page.html")
    assert "it goes on, or it was killed" in said and "no errors:" in said
    assert "1 torn line of metrics is passed over" in page and "it has no trace.json" in page
    check_closed(page)
    plan = read_page(weft, "run/plan.json")
    weft.write("run/plan.json", re.sub(r'"version": \d+', '"version": 99', plan, count=1))
    said = report(weft, "run", "-o", "other.html")
    assert "version" in said and "no memory:" in said
    weft.write("run/metrics.jsonl", "")
    assert "No step of this run is recorded" in report(weft, "run", "-o", "none.html")


@case
def bad_input_is_one_error_and_no_file(weft):
    train(weft, "run")
    weft.write("other.json", {"format": "weft-profile"})
    weft.write("list.json", [1])
    os.mkdir(weft.path("empty"))
    report(weft, "absent", "-o", "page.html", code=66)
    report(weft, "list.json", "-o", "page.html", code=65, says="neither a plan nor a sweep")
    report(weft, "other.json", "-o", "page.html", code=65)
    report(weft, "empty", "-o", "page.html", code=65, says="neither plan.json nor metrics.jsonl")
    report(weft, *["run"] * 1000, "-o", "page.html", code=64, says="at most 16")
    report(weft, "run", "run", "--trace", "run/trace.json", code=64)
    report(weft, "run", "--trace", "run/plan.json", "-o", "page.html", code=65)
    report(weft, "run/plan.json", "-o", "run/plan.json", code=64, says="this is the input")
    report(weft, "run", "-o", "absent/page.html", code=73)
    report(weft, "run", "-o", "/dev/full", code=74)
    weft.expect(73, "train", "run.json", "--report", "absent/page.html", says="--report absent/page.html")
    assert not os.path.exists(weft.path("page.html"))
    assert "-o FILE" in report(weft, "run")


@case
def outputs_are_no_inputs(weft):
    train(weft, "run")
    train(weft, "other")
    os.rename(weft.path("run/trace.json"), weft.path("tt.json"))
    before = {name: read_page(weft, name) for name in ("tt.json", "other/metrics.jsonl", "other/plan.json")}
    report(weft, "run", "--trace", "tt.json", "-o", "tt.json", code=64, says="-o tt.json: this is the input tt.json")
    report(weft, "run", "--trace", "tt.json", "--csv", "./tt.json", code=64, says="--csv ./tt.json: this is the input")
    report(weft, "run", "-o", "./k.csv", "--csv", "k.csv", code=64, says="--csv k.csv is this file too")
    report(weft, "run", "-o", "run/trace.json", code=64, says="this is the input run/trace.json")
    for flag in ("--csv", "-o"):
        for name in ("other/metrics.jsonl", "other/plan.json"):
            weft.expect(64, "compare", "run", "other/", flag, name, says="this is the input other/")
    assert {name: read_page(weft, name) for name in before} == before
    assert not os.path.exists(weft.path("k.csv")) and not os.path.exists(weft.path("run/trace.json"))
    report(weft, "run", "-o", "run/page.html", "--csv", "run/page.csv")
    report(weft, "run", "-o", "/dev/null", "--csv", "/dev/null")


@case
def a_trace_has_the_same_step_on_any_clock(weft):
    train(weft, "run")
    data = json.loads(report(weft, "run", "--json"))
    trace = json.loads(read_page(weft, "run/trace.json"))
    for event in trace["traceEvents"]:
        if "ts" in event:
            event["ts"] += 3e12
        if "begins_us" in event.get("args", {}):
            event["args"]["begins_us"] += 3e12
    weft.write("run/trace.json", trace)
    assert json.loads(report(weft, "run", "--json"))["step"] == data["step"]


@case
def a_trace_of_another_form_names_it(weft):
    train(weft, "run", train__checkpoint={"at_end": True})
    weft.write("t.json.gz", gzip.compress(read_page(weft, "run/trace.json").encode()))
    report(weft, "run", "--trace", "t.json.gz", code=65, says="a compressed trace cannot be read: trace to FILE.json")
    report(weft, "run", "--trace", "run", code=65, says="of the form --trace DIR/, cannot be read")
    before = read_page(weft, "run/trace.json")
    weft.expect(0, "train", "run.json", "--clock", "virtual", "--run", "run", "--resume", "-q", "--set", "train.steps=7",
                "--trace", "folder/", "--report", "page.html")
    assert read_page(weft, "run/trace.json") == before


@case
def compare_names_the_first_step_with_other_bits(weft):
    train(weft, "left")
    train(weft, "right")
    same = json.loads(weft.expect(0, "compare", "left", "right", "--json"))
    assert same["equal"] and same["compared_steps"] == 6 and same["settings"] == []
    lines = [json.loads(line) for line in read_page(weft, "right/metrics.jsonl").splitlines()]
    step = next(line for line in lines if line["kind"] == "step" and line["step"] == 4)
    step["loss"] += 1e-9
    weft.write("right/metrics.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    trace = json.loads(read_page(weft, "right/trace.json"))
    for event in trace["traceEvents"]:
        if event["name"].startswith("backward"):
            event["dur"] *= 2
    weft.write("right/trace.json", trace)
    said = json.loads(weft.expect(0, "compare", "left", "right", "--json", "--csv", "rows.csv"))
    assert not said["equal"] and said["differs_at"] == 4 and said["differs_in"].startswith("loss ")
    kinds = {row["kind"]: row for row in said["kinds"]}
    assert abs(kinds["backward"]["growth"] - 1) < 0.01 and kinds["forward"]["growth"] == 0
    assert said["instructions"][0]["kind"] == "backward"
    assert "backward" in read_page(weft, "rows.csv")
    os.remove(weft.path("right/trace.json"))
    told = " ".join(weft.expect(0, "compare", "left", "right").split())
    assert "right: it has no trace.json: weft train --report keeps one" in told, told
    weft.expect(65, "compare", "left", "left/plan.json", says="no run's directory")
    weft.expect(66, "compare", "left", "absent")


@case
def a_live_report_follows_its_run(weft):
    config = weft.write("run.json", tiny(train__steps=10**6, plan__work_limit="20M"))
    process = weft.start("train", config, "--run", "run", "-q", "--report", "live")
    try:
        while not os.path.exists(weft.path("run/report.html")):
            assert process.poll() is None, process.communicate()[1]
            time.sleep(0.05)
        page = read_page(weft, "run/report.html")
        assert 'http-equiv="refresh" content="60"' in page and "has no result yet" in page
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 75
    finally:
        process.kill()
        process.communicate()
    page = read_page(weft, "run/report.html")
    assert "http-equiv" not in page and "stopped by a signal" in page
    check_closed(page)


@case
def a_damaged_result_is_called_damaged(weft):
    train(weft, "done")
    weft.write("done/result.json", '{"kind": "result", ')
    weft.expect(0, "report", "done", "-o", "damaged.html")
    page = read_page(weft, "damaged.html")
    assert "result is damaged: " in page and "done/result.json" in page and "no result yet" not in page
    os.remove(weft.path("done/result.json"))
    weft.expect(0, "report", "done", "-o", "missing.html")
    assert "has no result yet" in read_page(weft, "missing.html")


@case
def a_browser_sees_no_fault_either(weft):
    """No script error, no request, no overlap of labels, contrast, and no page wider than its window."""
    if "WEFT_CHROMIUM" not in os.environ:
        raise Skip("WEFT_CHROMIUM names no browser")
    train(weft, "done")
    train(weft, "other", train__seed=8)
    config = weft.write("run.json", tiny(plan__work_limit="20M"))
    weft.expect(0, "sweep", config, "--points", "3", "--planners", "ilp,all-fsdp", "--json", "-q", "-o", "sweep.json")
    report(weft, "done", "-o", "one.html")
    report(weft, "done", "other", "sweep.json", "-o", "three.html")
    with Browser(os.environ["WEFT_CHROMIUM"]) as browser:
        for page in ("one.html", "three.html"):
            judge(browser, weft.path(page))


if __name__ == "__main__":
    main(sys.argv[1])
