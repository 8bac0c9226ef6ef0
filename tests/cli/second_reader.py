#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cJSON reads the same values as Weft from each kind of file that the program writes, and from each shipped one."""
import os
import subprocess
import sys
from pathlib import Path

from configs import tiny
from tap import Skip, case, main

READER = os.environ.get("WEFT_SECOND_READER")
SHIPPED = Path(__file__).resolve().parents[2] / "configs"


def compare(files):
    if not READER:
        raise Skip("built without libcjson-dev")
    files = [str(file) for file in files]
    done = subprocess.run([READER, *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{len(files)} files, "), done.stdout


@case
def shipped_files_have_the_same_values(_weft):
    compare(SHIPPED.rglob("*.json"))


@case
def files_of_a_run_have_the_same_values(weft):
    config = weft.write("run.json", tiny(
        train__steps=4, train__checkpoint={"every": 2}, cluster__emulate=True, plan__work_limit="100M",
        train__validation={"share": 0.1, "every": 2}))
    weft.expect(0, "profile", config, "-o", "profile.json", "-q")
    weft.expect(0, "train", config, "--profile", "profile.json", "--run", "run", "--trace", "trace.json", "-q")
    weft.expect(0, "simulate", "run/plan.json", "--config", config, "--profile", "profile.json", "--trace",
                "predicted.json", "-q")
    weft.expect(0, "plan", config, "--set", "plan.for=fsdp2", "-n", "2", "-o", "fsdp2.json", "-q")
    files = [path for path in Path(weft.directory).rglob("*") if path.suffix in (".json", ".jsonl")]
    names = {path.name for path in files}
    assert names >= {"run.json", "profile.json", "plan.json", "metrics.jsonl", "result.json", "manifest.json",
                     "trace.json", "predicted.json", "fsdp2.json"}, names
    compare(files)


@case
def documents_on_standard_output_have_the_same_values(weft):
    config = weft.write("run.json", tiny(plan__work_limit="100M"))
    weft.expect(0, "plan", config, "-o", "plan.json", "-q")
    files = []
    for words in (["check", config], ["estimate", config], ["explain", "plan.json"], ["verify", "plan.json"],
                  ["simulate", "plan.json"], ["sweep", config, "--points", "3"], ["best", config], ["doctor"], ["version"],
                  ["schema", "plan"], ["schema", "config"], ["export", "plan.json", "--to", "deepspeed"]):
        _, out, _ = weft.run(*words, *([] if words[0] in ("schema", "export") else ["--json"]))
        files.append(weft.write(f"{len(files)}-{words[0]}.json", out))
    compare(weft.path(file) for file in files)


main(sys.argv[1])
