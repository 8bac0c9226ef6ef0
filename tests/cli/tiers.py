#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every tier of a run has its own limit, with a measured or a given base."""
import json
import os
import re
import shlex
import sys
from pathlib import Path

from configs import tiny
from tap import Skip, case, main

ROOT = Path(__file__).resolve().parents[2]
LINK = {"alpha": "10us", "bandwidth": "2GB/s"}
HOST = {"memory_limit": "1GiB", "down": LINK, "up": LINK, "update": "2GB/s"}
DISK = {"path": "scratch", "limit": "1GiB", "read": LINK, "write": LINK}


def large(**changes):
    """A rank's moments take 25 MB, many times the error of a measured base. The number of blocks is fixed, so that a
    noisy profile cannot make thousands.
    """
    config = tiny(cluster__ranks=1, cluster__threads=1, train__steps=2, plan__planner="all-fsdp", plan__blocks=2,
                  **changes)
    for layer in config["model"]["layers"]:
        layer["hidden"] = 256
    config["model"]["layers"][1].update(repeat=4, ffn=1024)
    return config


def result_of(weft, run):
    with open(weft.path(f"{run}/result.json"), encoding="utf-8") as file:
        return json.load(file)


def command_of_usage():
    """Returns the flags of docs/usage.md's plan with state on the host."""
    text = (ROOT / "docs/usage.md").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.split("## Offloaded state")[1].splitlines()
             if line.startswith("    $ weft plan ")]
    assert len(lines) == 1, lines
    return shlex.split(lines[0])[3:]


@case
def the_run_of_the_documented_plan_fits(weft):
    config, *flags = command_of_usage()
    out = weft.expect(0, "train", str(ROOT / config), *flags, "--set", "train.steps=1", "--set",
                      "train.checkpoint.at_end=false", "--run", weft.fresh("run"), timeout=200)
    result = result_of(weft, "run")
    assert result["measured_bytes"] <= result["planned_bytes"] <= 170 << 20, result
    assert result["host_measured_bytes"] == result["host_planned_bytes"] > 64 << 20, result
    assert out.count(" measured, ") >= 2 and "\nhost      " in out.split("exposed ")[-1], out


@case
def no_tier_has_more_than_was_planned_with_a_measured_base(weft):
    os.makedirs(weft.path("scratch"))
    # If activations may be on the host, the disk's ring is in the host's tier.
    host, disk, here = {"cluster__host": HOST}, {"cluster__disk": DISK}, ["device"]
    homes = {"device": ({}, {"state": here, "activations": here}),
             "host": (host, {"state": ["host"], "activations": here, "update": ["host"]}),
             "disk": (disk, {"state": ["disk"], "activations": here}),
             "both": ({**host, **disk}, {"state": ["disk"], "activations": ["device", "host"]})}
    weft.expect(0, "profile", weft.write("run.json", large(cluster__host=HOST)), "-o",
                "profile.json", "-q")
    results = {}
    for name, (tiers, offload) in homes.items():
        path = weft.write("run.json", large(
            cluster__profile=weft.path("profile.json"), train__checkpoint={},
            plan__offload=offload, **tiers))
        limit = json.loads(weft.expect(0, "plan", path, "--json"))["total_bytes"]
        code, _, err = weft.run("train", path, "--memory-limit", f"{limit}B", "--run", name, "-q")
        if code == 65 and "keeps everything in memory" in err:
            continue
        assert code == 0, (name, err)
        results[name] = result = result_of(weft, name)
        assert result["measured_bytes"] <= result["planned_bytes"] <= limit, (name, result)
        for tier in "host", "disk":
            held, planned = (result[f"{tier}_{how}_bytes"] or 0 for how in ("measured", "planned"))
            assert held == planned, (name, result)
            assert (held > 0) == (tier == name or name == "both"), (name, result)
        assert result["fingerprint"] == results["device"]["fingerprint"], name
    saved = results["device"]["measured_bytes"] - results["host"]["measured_bytes"]
    assert saved > 16 << 20, results
    if len(results) < len(homes):
        raise Skip("the directory for files of tests is kept in memory")


@case
def a_base_that_is_too_small_is_told_as_soon_as_memory_is_over_the_limit(weft):
    path = weft.write("run.json", tiny(plan__planner="all-fsdp"))
    weft.expect(0, "train", path, "--run", "ample", "-q")
    ample = result_of(weft, "ample")
    outside = ample["outside_measured_bytes"]
    assert ample["outside_planned_bytes"] == 0, ample
    arena = ample["planned_bytes"] // 4096 * 4096
    for share, code in ((15, 78), (18, 0)):
        base = outside * share // 16 // 4096 * 4096
        flags = "--memory-limit", f"{base + arena}B", "--set", f"cluster.base={base}B"
        got, _, err = weft.run("train", path, *flags, "--run", f"of-{share}", "-q")
        assert got == code, (share, got, err)
        assert code == 0 or "over the limit of" in err and "cluster.base" in err, err


@case
def a_plan_above_the_limit_of_a_tier_is_refused_by_every_reader(weft):
    """The file and its config agree on the limit. A run's own plan is made again."""
    os.makedirs(weft.path("scratch"))
    links = {"host": (HOST, "memory_limit"), "disk": (DISK, "limit")}
    for name, (tier, key) in links.items():
        offload = {"state": [name], "activations": ["device"]}
        small = {f"cluster__{name}": {**tier, key: "64KiB"}, "plan__offload": offload}
        path = weft.write("run.json", tiny(plan__planner="all-fsdp", plan__offload=offload,
                                           **{f"cluster__{name}": tier}))
        weft.expect(0, "plan", path, "-o", "plan.json", "-q")
        plan = json.loads(Path(weft.path("plan.json")).read_text(encoding="utf-8"))
        assert plan["problem"]["tiers"][1]["name"] == name, plan["problem"]["tiers"]
        plan["problem"]["tiers"][1]["limit_bytes"] = 64 << 10
        weft.write("plan.json", plan)
        path = weft.write("small.json", tiny(plan__planner="all-fsdp", **small))
        says = ["plan.json: slot ", f" of tier {name}, over the limit of 65536"]
        weft.expect(65, "train", path, "--plan", "plan.json", "--run", "no", says=says)
        assert not os.path.exists(weft.path("no")), "a run was begun"
        for verb in "verify", "simulate":
            weft.expect(65, verb, "plan.json", says=says)
            weft.expect(65, verb, "plan.json", "--config", path, says=says)
        weft.expect(65, "explain", "plan.json", says=says)


@case
def a_runs_own_plan_above_the_limit_of_a_tier_is_made_again(weft):
    weft.expect(0, "train", weft.write("run.json", tiny(
        plan__planner="offload-stream", cluster__host=HOST, train__checkpoint={},
        plan__offload={"activations": ["device"], "update": ["device"]})), "--run", "run", "-q")
    for name, changes in {"plan.json": {"problem.tiers.1.limit_bytes": 64 << 10},
                          "config.json": {"cluster.host.memory_limit": "64KiB",
                                          "plan.planner": "greedy"}}.items():
        content = json.loads(Path(weft.path(f"run/{name}")).read_text(encoding="utf-8"))
        for path, value in changes.items():
            *way, last = path.split(".")
            target = content
            for key in way:
                target = target[int(key) if isinstance(target, list) else key]
            assert last in target, path
            target[last] = value
        weft.write(f"run/{name}", content)
    weft.expect(0, "train", "--resume", "--run", "run", "--set", "train.steps=4", "-q",
                says=["plan.json: is planned again: ", " of tier host, over the limit of 65536"])
    assert not result_of(weft, "run")["host_planned_bytes"]


@case
def a_run_without_a_base_is_compared_by_its_arena(weft):
    path = weft.write("run.json", tiny(plan__planner="all-fsdp"))
    out = " ".join(weft.expect(0, "train", path, "--run", weft.fresh("run")).split("exposed ")[-1].split())
    arena = out.split("memory ")[1].split(" a rank;")[0]
    measured, planned = arena.split(" measured in the arena, ")
    assert f"{measured} planned" == planned, out
    assert "outside it" in out and "cluster.base" in out, out
    out = " ".join(weft.expect(0, "train", path, "--set", "cluster.base=512MiB", "--run",
                               "based").split("exposed ")[-1].split())
    assert "outside it" not in out and " measured, 513 MiB planned a rank" in out, out


@case
def parameters_on_the_host_meet_a_limit_that_nothing_else_does(weft):
    """The limit is in the middle of the two least ones. The base is far above what a small process needs."""
    homes = {"device": ["device"], "host": ["device", "host"]}
    base = 200 << 20

    def config_of(name):
        offload = {"state": ["host"], "update": ["device"], "activations": ["device", "host"]}
        return tiny(cluster__host=HOST, cluster__threads=1, cluster__base=f"{base}B",
                    cluster__device__flops={"f32": "50G", "bf16": "50G"}, train__precision={"compute": "bf16"},
                    plan__work_limit="20M", plan__offload={**offload, "parameters": homes[name]})
    paths = {name: weft.write(f"{name}.json", config_of(name)) for name in homes}
    least = {}
    for name, path in paths.items():
        _, _, err = weft.run("plan", path, "--memory-limit", f"{base + 4096}B")
        least[name] = int(re.search(r"at least [^(]*\((\d+) bytes\)", err)[1])
    assert least["host"] < least["device"], least
    limit = f"{(least['host'] + least['device']) // 2}B"
    weft.expect(78, "train", paths["device"], "--memory-limit", limit, "--run", "none", "-q",
                says="plan.offload.parameters=")
    weft.expect(0, "train", paths["host"], "--memory-limit", limit, "--run", "low", "-q")
    assert "+host-parameters" in Path(weft.path("low/plan.json")).read_text(encoding="utf-8")
    weft.expect(0, "train", paths["device"], "--run", "high", "-q")
    assert result_of(weft, "low")["fingerprint"] == result_of(weft, "high")["fingerprint"]


main(sys.argv[1])
