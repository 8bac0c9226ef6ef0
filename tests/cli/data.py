#!/usr/bin/env python3
"""Data that a run must not take, and data that it takes at any size."""
import json
import sys

from configs import tiny
from tap import case, main

PROSE = "It was the best of times, it was the worst of times.\n"


@case
def json_is_refused_by_name_wherever_it_begins(weft):
    long = [json.dumps({"text": letter * 70000}) + "\n" for letter in "xy"]
    short = [json.dumps({"text": PROSE * n}) for n in range(1, 40)]
    rows = [json.loads(line) for line in short]
    files = {
        "long.jsonl": ("".join(long), "lines of JSON", "jq -r '.text'"),
        "mark.jsonl": ("\ufeff" + "\n".join(short), "lines of JSON", "jq -r '.text'"),
        "empty.jsonl": ("\n\n" + "\n".join(short), "lines of JSON", "jq -r '.text'"),
        "spaces.jsonl": (" " * 70000 + "\n".join(short), "lines of JSON", "jq -r '.text'"),
        "cut.jsonl": ("\n".join(short)[9:], "lines of JSON", "jq -r '.text'"),
        "array.json": (json.dumps(rows), "a JSON array of objects", "jq -r '.[].text'"),
        "indented.json": (json.dumps(rows, indent=4), "a JSON array of objects", "jq -r"),
        "strings.json": (json.dumps([row["text"] for row in rows]), "JSON arrays", "jq -r"),
        "arrays.jsonl": ("".join(f'["{letter}"]\n' for letter in "abc" * 40), "JSON arrays", "jq"),
        "one.json": (json.dumps({"data": rows}, indent=1), "a JSON document", "jq -r"),
        "one_line.json": (json.dumps({"data": rows}), "lines of JSON", "jq -r"),
    }
    for name, (content, says, cure) in files.items():
        path = weft.write(name, content.encode())
        config = weft.write("run.json", tiny(train__data=path))
        weft.expect(65, "train", config, "--run", "no", says=[name, says, cure, '"format": "bytes"'])
    held = weft.write("run.json", tiny(train__validation={"data": weft.path("array.json")}))
    weft.expect(65, "train", held, "--run", "no", says=["array.json", "set train.validation.data to"])


@case
def texts_that_begin_with_brackets_are_trained_on(weft):
    for number, beginning in enumerate(("[1] A footnote.\n", "[Enter Hamlet]\n", "{\n  int x;\n}\n",
                                        "[link](https://example.org)\n", '{"a": 1}\n\n',
                                        "[ ] to do\n", "\ufeff[section]\nkey = 1\n")):
        path = weft.write("text", (beginning + PROSE * 100).encode())
        config = weft.write("run.json", tiny(train__data=path, train__steps=1, plan__planner="greedy"))
        weft.expect(0, "train", config, "--run", f"run{number}", "-q")


main(sys.argv[1])
