#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files that the program writes match `weft schema`."""
import copy
import json
import os
import re
import sys

from configs import tiny
from tap import case, main

KINDS = ("profile", "plan", "rival", "metrics", "result", "manifest", "export")
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int,
         "number": (int, float), "null": type(None)}


def faults(schema, value, at="$"):
    """Lists the faults of a value. Covers the parts of draft-07 that the schemas use, and unknown keys."""
    known = {"$schema", "title", "description", "examples", "type", "properties", "required", "items",
             "oneOf", "allOf", "const", "enum", "pattern", "minimum", "maximum"}
    assert set(schema) <= known, set(schema) - known
    found = []
    kind = schema.get("type")
    if isinstance(kind, list):
        assert len(kind) == 2 and kind[1] == "null", kind
        return [] if value is None else faults({**schema, "type": kind[0]}, value, at)
    if kind and (not isinstance(value, TYPES[kind]) or
                 isinstance(value, bool) != (kind == "boolean")):
        return [f"{at} is no {kind}: {value!r}"]
    if "const" in schema and value != schema["const"]:
        found.append(f"{at} is {value!r}")
    if value not in schema.get("enum", [value]):
        found.append(f"{at} is {value!r}")
    if "pattern" in schema and not re.search(schema["pattern"], value):
        found.append(f"{at}: {value!r} does not match")
    if "minimum" in schema and not schema["minimum"] <= value <= schema.get("maximum", value):
        found.append(f"{at}: {value} is out of range")
    for key in schema.get("required", ()):
        if key not in value:
            found.append(f"{at} lacks {key}")
    for key, inner in value.items() if "properties" in schema else ():
        if key in schema["properties"]:
            found += faults(schema["properties"][key], inner, f"{at}.{key}")
        else:
            found.append(f"{at}.{key} is in no schema")
    for number, inner in enumerate(value if "items" in schema else ()):
        found += faults(schema["items"], inner, f"{at}[{number}]")
    for part in schema.get("allOf", ()):
        found += faults(part, value, at)
    if "oneOf" in schema:
        each = [faults(part, value, at) for part in schema["oneOf"]]
        if sum(not part for part in each) != 1:
            found += min(each, key=len)
    return found


def schema_of(weft, kind):
    return json.loads(weft.expect(0, "schema", kind))


@case
def an_unknown_kind_is_refused_with_the_list(weft):
    weft.expect(64, "schema", "trace", says=list(KINDS))


@case
def examples_are_right_and_say_every_key_that_is_needed(weft):
    for kind in KINDS:
        schema = schema_of(weft, kind)
        assert len(schema["examples"]) == len(schema["oneOf"])
        for example in schema["examples"]:
            assert faults(schema, example) == [], (kind, faults(schema, example))
            for key in next(s for s in schema["oneOf"] if not faults(s, example))["required"]:
                less = {k: v for k, v in example.items() if k != key}
                assert faults(schema, less), f"{kind} is right without {key}"


def lines_of(weft, name):
    with open(weft.path(name), encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def read(weft, name):
    with open(weft.path(name), encoding="utf-8") as file:
        return json.load(file)


@case
def files_of_a_run_are_as_they_are_said(weft):
    config = weft.write("run.json", tiny(
        train__steps=4, train__grad_accum=2, train__checkpoint={"every": 2}, cluster__emulate=True,
        train__validation={"share": 0.1, "every": 2}))
    weft.expect(0, "profile", config, "--contention", "-o", "profile.json", "-q")
    out = weft.expect(0, "train", config, "--run", "run", "--json")
    metrics = lines_of(weft, "run/metrics.jsonl")
    assert {line["kind"] for line in metrics} == {"step", "validation", "checkpoint"}
    files = {"profile": [read(weft, "profile.json"), read(weft, "run/profile.json")],
             "plan": [read(weft, "run/plan.json")],
             "metrics": metrics,
             "result": [read(weft, "run/result.json")],
             "manifest": [read(weft, f"run/checkpoints/step-{n}/manifest.json") for n in (2, 4)]}
    for kind, documents in files.items():
        schema = schema_of(weft, kind)
        for document in documents:
            assert faults(schema, document) == [], (kind, faults(schema, document))
        broken = copy.deepcopy(documents[0])
        broken[next(iter(schema["oneOf"][0]["required"]))] = []
        assert faults(schema, broken), kind
    for key in ("pass_first", "pass_later"):
        broken = copy.deepcopy(files["profile"][0])
        broken["layers"][0][key]["forward_ns"] = "1"
        assert faults(schema_of(weft, "profile"), broken), key
    said = [json.loads(line) for line in out.splitlines()]
    assert said == [*metrics, files["result"][0]], "stdout and files differ"


@case
def a_profile_of_tiers_is_as_it_is_said(weft):
    """On a file system in memory the reason is reported, and no file is left."""
    os.mkdir(weft.path("scratch"))
    config = weft.write("run.json", tiny(
        cluster__host={"memory_limit": "1MiB"}, cluster__disk={"path": "scratch", "limit": "1MiB"}))
    code, out, err = weft.run("profile", config, "-o", "profile.json", "-q")
    if code == 65 and "keeps everything in memory" in err:
        return
    assert code == 0, (out, err)
    profile, schema = read(weft, "profile.json"), schema_of(weft, "profile")
    assert faults(schema, profile) == [], faults(schema, profile)
    assert profile["disk"]["path"] == os.path.realpath(weft.path("scratch"))
    assert os.listdir(weft.path("scratch")) == []
    for word in ("down to the host", "up from the host", "disk read", "disk write", "duplex"):
        assert word in out, out
    for key in ("host", "disk"):
        broken = copy.deepcopy(profile)
        del broken[key][next(iter(broken[key]))]
        assert faults(schema, broken), key


@case
def every_line_of_the_metrics_has_what_a_reader_plots(weft):
    config = weft.write("run.json", tiny(train__steps=4, train__checkpoint={"every": 2}))
    weft.expect(0, "train", config, "--run", "run", "-q")
    lines, result = lines_of(weft, "run/metrics.jsonl"), read(weft, "run/result.json")
    predicted = read(weft, "run/plan.json")["prediction"]["step_ns"]
    assert result["predicted_step_ns"] == predicted and result["kind"] == "result"
    for line in lines:
        assert line["predicted_step_ns"] == predicted, line
        assert 0 < line["held_bytes"] <= result["measured_bytes"], line
        assert line["tokens_per_s"] > 0 and line["unix_ms"] > 1.6e12, line
    steps = [line for line in lines if line["kind"] == "step"]
    assert [line["step"] for line in steps] == [1, 2, 3, 4]
    for line in steps:
        assert abs(line["tokens_per_s"] * line["step_ns"] / 1e9 / line["tokens"] - 1) < 1e-6, line
    assert [line["step"] for line in lines if line["kind"] == "checkpoint"] == [2, 4]


main(sys.argv[1])
