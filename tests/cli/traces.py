#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Traces that other programs read: all ranks and the prediction in one file, a file for each rank, event files."""
import gzip
import json
import math
import os
import struct
import sys
from pathlib import Path

from configs import tiny
from tap import Skip, case, main

KERNELS = ("ncclKernel_AllGather ", "ncclKernel_ReduceScatter ", "ncclKernel_AllReduce ")


def read_trace(path):
    opened = gzip.open if str(path).endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8") as file:
        return json.load(file)


def slices(trace, **of):
    return [event for event in trace["traceEvents"]
            if event["ph"] == "X" and all(event.get(key) == value for key, value in of.items())]


def seconds(event):
    return event["ts"], event["ts"] + event["dur"]


def overlap(some, others):
    """Time of both, each without overlap in itself."""
    return sum(max(0, min(b, d) - max(a, c)) for a, b in map(seconds, some) for c, d in map(seconds, others))


@case
def a_file_has_all_ranks_and_the_prediction(weft):
    config = weft.write("run.json", tiny(train__steps=4))
    weft.expect(0, "train", config, "--run", "run", "--trace", "all.json", "--trace-steps", "2..3")
    trace = read_trace(weft.path("all.json"))
    names = {event["pid"]: event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "process_name"}
    assert len(names) == 3 and names[0].startswith("rank 0, ") and names[2].startswith("prediction"), names
    assert all("cat" in event for event in slices(trace))
    for process in names:
        assert {event["args"]["step"] for event in slices(trace, pid=process)} == {2, 3}
    steps = {event["step"]: event for event in map(json.loads, open(weft.path("run/metrics.jsonl"), encoding="utf-8"))
             if event["kind"] == "step"}
    for step in (2, 3):
        own = [event for event in slices(trace, pid=0) if event["args"]["step"] == step]
        network = [event for event in own if event["cat"] == "communication"]
        compute = [event for event in own if event["cat"] == "compute"]
        exposed = sum(event["dur"] for event in own if event["name"] == "exposed")
        assert math.isclose(overlap(network, compute), steps[step]["overlapped_ns"] / 1000, abs_tol=0.1)
        assert math.isclose(exposed, steps[step]["exposed_ns"] / 1000, abs_tol=0.1)
    flows = [event for event in trace["traceEvents"] if event.get("cat") == "flow"]
    begun = {event["id"] for event in flows if event["ph"] == "s"}
    ended = [event["id"] for event in flows if event["ph"] == "f"]
    assert len(ended) == len(set(ended)) > 0 and set(ended) <= begun


@case
def a_folder_has_a_file_for_each_rank(weft):
    config = weft.write("run.json", tiny(train__steps=2))
    weft.expect(0, "train", config, "--run", "run", "--trace", "traces/")
    files = sorted(Path(weft.path("traces")).iterdir())
    assert [file.name.split(".")[0] for file in files] == ["rank-0", "rank-1"], files
    for rank, file in enumerate(files):
        trace = read_trace(file)
        assert trace["distributedInfo"] == {"rank": rank, "world_size": 2}
        kernels = slices(trace, cat="kernel")
        assert any(event["name"].startswith(KERNELS) for event in kernels)
        assert all("stream" in event["args"] for event in kernels)
        launched = {event["args"]["correlation"] for event in slices(trace, cat="launch")}
        assert launched == {event["args"]["correlation"] for event in kernels}


@case
def a_name_with_gz_is_compressed(weft):
    config = weft.write("run.json", tiny(train__steps=2))
    code, _, said = weft.run("train", config, "--run", "run", "--trace", "all.json.gz")
    if code != 0:
        assert "built without zlib" in said and not os.path.exists(weft.path("all.json.gz")), said
        raise Skip("this program was built without zlib")
    assert slices(read_trace(weft.path("all.json.gz")))


@case
def a_trace_that_fails_loses_no_result(weft):
    config = weft.write("run.json", tiny(train__steps=2))
    for end in (".json", ".json.gz"):
        os.makedirs(weft.path(f"traces/rank-1{end}"))
    for run, trace in (("file", "n" * 300 + ".json"), ("folder", "traces/")):
        said = weft.expect(73, "train", config, "--run", run, "--trace", trace, "--report", f"{run}.html")
        assert "loss " in said and f"report    {run}.html" in said, said
        with open(weft.path(f"{run}/result.json"), encoding="utf-8") as file:
            assert json.load(file)["steps_done"] == 2
        assert os.path.exists(weft.path(f"{run}.html"))


@case
def steps_that_are_none_are_refused(weft):
    config = weft.write("run.json", tiny(train__steps=4))
    for steps, says in (("0", "at \"0\""), ("2..1", "at \"2..1\""), ("x", "at \"x\""), ("1,,2", "at \",2\""),
                        ("5", "no step 5"), ("1..2000", "more than 1000"), ("", "at \"\"")):
        weft.expect(64, "train", config, "--run", "no", "--trace", "t.json", "--trace-steps", steps, says=says)
    weft.expect(64, "train", config, "--run", "no", "--trace-steps", "1", says="goes with --trace")
    assert not os.path.exists(weft.path("no")) and not os.path.exists(weft.path("t.json"))


def records(path):
    """The events of a file, as (step, {tag: value}); fields of other kinds are left out."""
    data = Path(path).read_bytes()
    at = 0
    while at < len(data):
        length, = struct.unpack_from("<Q", data, at)
        yield dict(fields(data[at + 12:at + 12 + length]))
        at += length + 16


def fields(data):
    """Field numbers and values of a message in protocol buffers."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        size = {0: None, 1: 8, 5: 4}.get(key & 7, 0)
        if size is None:
            yield key >> 3, varint()
            continue
        size = size or varint()
        yield key >> 3, data[at:at + size]
        at += size


@case
def event_files_have_the_metrics(weft):
    config = weft.write("run.json", tiny(train__steps=3))
    weft.expect(0, "train", config, "--run", "run", "--tensorboard", "events")
    file, = Path(weft.path("events")).iterdir()
    first, *events = records(file)
    assert first[3] == b"brain.Event:2", first
    lines = [line for line in map(json.loads, open(weft.path("run/metrics.jsonl"), encoding="utf-8"))
             if line["kind"] == "step"]
    assert [event[2] for event in events] == [1, 2, 3]
    for event, line in zip(events, lines):
        scalars = [dict(fields(value)) for _, value in fields(event[5])]
        values = {scalar[1].decode(): struct.unpack("<f", scalar[2])[0] for scalar in scalars}
        assert math.isclose(values["loss_metrics/global_avg_loss"], line["loss"], rel_tol=1e-6)
        assert math.isclose(values["throughput(tps)"], line["tokens_per_s"] / 2, rel_tol=1e-6)
        assert ("mfu(%)" in values) == (line["mfu"] is not None)


@case
def utilisation_is_known_where_the_peak_is(weft):
    for flops, known in ((None, False), ({"f32": "1T"}, True)):
        device = flops and {"flops": flops, "memory_bandwidth": "10GB/s"}
        config = weft.write("run.json", tiny(train__steps=3, cluster__device=device))
        said = weft.expect(0, "train", config, "--run", f"run-{known}")
        said = " ".join(said.split())
        assert ("of the 1 T/s of cluster.device.flops.f32" in said) == known, said
        assert ("cluster.device.flops.f32 is not given" in said) != known, said
        for line in map(json.loads, open(weft.path(f"run-{known}/metrics.jsonl"), encoding="utf-8")):
            if line["kind"] == "step":
                assert (line["mfu"] is not None) == known and line["model_flops_per_s"] > 0
                assert not known or math.isclose(line["mfu"], line["model_flops_per_s"] / 2e12)


main(sys.argv[1])
