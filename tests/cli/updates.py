#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Units that are updated in the backward of their own gradients: plans, their proofs, runs with the bits of updates before
the next use, bad numbers, and what is refused."""
import copy
import json
import os
import shutil
import sys

from configs import deep, host, tiny
from plan_checker import check
from tap import case, main

HOST = {"memory_limit": "1GiB", "down": {"alpha": "1us", "bandwidth": "1GB/s"},
        "up": {"alpha": "1us", "bandwidth": "1GB/s"}, "update": "1GB/s"}


def of(update_in="backward", **changes):
    settings = {"train__clip_norm": 0, "plan__update_in": update_in, "plan__fuse": False, "plan__work_limit": "20M", **changes}
    return tiny(**{path: value for path, value in settings.items() if value is not None})


def plan(weft, config, *flags):
    weft.expect(0, "plan", weft.write("run.json", config), "-q", "-o", "plan.json", *flags)
    return json.loads((weft.directory / "plan.json").read_text())


def fingerprint(weft, config, run, *flags):
    weft.expect(0, "train", weft.write("run.json", config), "--quiet", "--run", run, *flags)
    return json.loads((weft.directory / run / "result.json").read_text())["fingerprint"]


def updates_of(made):
    """Returns the numbers of updates before the drain and after it."""
    kinds = [slot["kind"] for slot in made["problem"]["slots"]]
    early = kinds[:kinds.index("drain")].count("update")
    return early, kinds.count("update") - early


@case
def a_plan_with_updates_in_backward_is_proven(weft):
    for changes in ({}, {"update_in": 1}, {"train__grad_accum": 2, "train__reduce": "micro_step"}, {"cluster__host": HOST},
                    {"train__grad_accum": 3, "train__micro_batch": 1, "plan__micro_step_order": "layer"}):
        made = plan(weft, of(**changes))
        period = made["problem"]["period"]
        assert period["rotated"] and period["update_after"] == changes.get("update_in", period["update_after"]), period
        early, late = updates_of(made)
        assert early > 0 and late > 0, (early, late)
        check(made)
        for verb in ("verify", "simulate", "explain"):
            weft.expect(0, verb, "plan.json", "--config", "run.json")


@case
def the_planner_chooses_where_units_are_updated(weft):
    made = plan(weft, of("auto"))
    periods = [one["problem"]["period"] for one in [made, *made["other_periods"]]]
    assert {period.get("update_after", 0) > 0 for period in periods} == {True, False}, periods
    told = " ".join(weft.expect(0, "plan", "run.json", "-o", "none").split())
    assert "update_ahead, update_in" in told, told
    told = " ".join(weft.expect(0, "plan", weft.write("run.json", of(1)), "-o", "none").split())
    assert "units updated 1 layer after their backward, the first ones before the first forward" in told, told
    said = json.loads(weft.expect(0, "plan", "run.json", "-o", "none", "--json"))
    assert said["update_after"] == 1, said
    # A unit of all layers has no backward left after its own.
    fused = plan(weft, of("backward", plan__fuse=True))
    assert updates_of(fused) == (0, 1) and fused["problem"]["period"]["update_after"] > 0, fused["problem"]["period"]
    told = " ".join(weft.expect(0, "explain", "plan.json").split())
    assert "without clipping, units updated before the first forward" in told and "layers after" not in told, told
    # By default no unit is updated in backward.
    period = plan(weft, of(None))["problem"]["period"]
    assert "update_after" not in period, period


@case
def runs_have_the_bits_of_updates_before_the_next_use(weft):
    first = fingerprint(weft, of("forward"), "forward")
    for number, (update_in, changes, flags) in enumerate((
            ("backward", {}, ()), (1, {}, ("--planner", "all-fsdp")), (2, {}, ("--planner", "all-zero1")),
            (1, {}, ("--planner", "all-dp")),
            ("auto", {"cluster__host": HOST, "plan__offload": {"state": ["host"]}}, ("--poison",)))):
        assert fingerprint(weft, of(update_in, **changes), f"run{number}", *flags) == first, (update_in, changes, flags)


@case
def a_stopped_run_goes_on_with_the_same_bits(weft):
    """Also where the updates have changed their place."""
    saves = {"train__steps": 6, "train__checkpoint": {"every": 3}}
    whole = fingerprint(weft, of(1, **saves), "whole")
    for number, update_in in enumerate((1, "forward")):
        run = f"again{number}"
        os.makedirs(weft.path(f"{run}/checkpoints"))
        shutil.copytree(weft.path("whole/checkpoints/step-3"), weft.path(f"{run}/checkpoints/step-3"))
        assert fingerprint(weft, of(update_in, **saves), run, "--resume") == whole, update_in
    _, _, err = weft.run("replay", "whole", "-n", "1")
    assert "since fsdp2 has no plan" in err and "plan.update_in" in err, err  # not for memory
    weft.expect(69, "train", weft.write("run.json", of(1, **saves)), "-q", "--run", "killed",
                env={"WEFT_FAILPOINT": "backward:rank=1:step=6:at=1:do=kill"})
    assert fingerprint(weft, of(1, **saves), "killed", "--resume") == whole


@case
def bad_numbers_after_an_update_end_the_run(weft):
    """No state of the step is saved, and the checkpoint before it goes on."""
    saves = {"train__steps": 6, "train__checkpoint": {"every": 3}}
    config = weft.write("run.json", of(1, **saves))
    weft.expect(79, "train", config, "-q", "--run", "run", env={"WEFT_FAILPOINT": "backward:rank=1:step=7:at=0:do=nan"},
                says=["Other units may be updated with the step already (plan.update_in)", "--resume"])
    assert sorted(os.listdir(weft.path("run/checkpoints"))) == ["step-3"]
    weft.expect(0, "train", config, "-q", "--run", "run", "--resume")
    found = json.loads((weft.directory / "run/result.json").read_text())["fingerprint"]
    assert found == fingerprint(weft, of("forward", **saves), "forward")


@case
def explain_tells_the_other_place(weft):
    """Its step is that of a plan with these updates, and its bound that of no plan is faster."""
    slow = {"cluster__host": host("0.3GB/s"), "plan__offload": {"state": ["host"]}, "plan__policies": "fsdp"}
    for update_in, other in (("forward", "backward"), ("backward", "forward"), (3, "forward"), ("auto", None)):
        there = plan(weft, deep(plan__update_in=other or "forward", **slow))
        made = plan(weft, deep(plan__update_in=update_in, **slow))
        flags = ("explain", "plan.json", "--config", "run.json", "--work-limit", "100M")
        said = json.loads(weft.expect(0, *flags, "--json"))
        assert said["other_order"] is None, said
        said = said["other_updates"]
        backward = made["problem"]["period"].get("update_after", 0) == 0
        assert said["update_in"] == ("backward" if backward else "forward"), said
        assert said["fits"] and said["refused"] is None and ("price" in said) == backward, said
        assert (said.get("layers", 0) > 0) == backward and said["bound_ns"] <= said["step_ns"], said
        assert other is None or said["bound_ns"] <= there["prediction"]["step_ns"], (said, there["prediction"])
        assert said["lane"]["name"] and said["row"]["slot"] and said["own_least_bytes"] > 0, said
        told = " ".join(weft.expect(0, *flags).split())
        assert "the other place of updates: in " + said["update_in"] in told, told
        assert ("price: if a later gradient" in told) == backward, told
    plan(weft, of("forward", train__clip_norm=1))
    told = " ".join(weft.expect(0, "explain", "plan.json", "--config", "run.json").split())
    assert "the other place of updates: in backward not possible here: clipping needs the norm" in told, told
    fingerprint(weft, of("forward", train__steps=1), "explained")
    assert json.loads(weft.expect(0, "explain", "explained", "--json"))["other_updates"]["update_in"] == "backward"
    assert json.loads(weft.expect(0, "explain", "explained/plan.json", "--json"))["other_updates"] is None


@case
def a_refusal_names_updates_in_backward(weft):
    """With their price, after all changes without one. Its table's changes can be followed."""
    config = weft.write("run.json", deep(cluster__ranks=1))
    flags = ("plan", config, "--memory-limit", "1260KiB", "--set", "plan.recompute=whole", "-o", "none")
    weft.expect(78, *flags, says=["It would fit without pages with plan.update_in=backward, least limit", "no state of that step is saved"])
    answer = json.loads(weft.expect(78, *flags, "--json"))
    assert "plan.update_in=backward" not in answer["answer"] and "is saved" in answer["price"], answer
    changes = [row["change"] for row in answer["would_fit"]]
    backward = [change for change in changes if "plan.update_in=backward" in change]
    assert "--set plan.update_in=backward" in backward and changes[-len(backward):] == backward, changes
    weft.expect(0, *flags, "--set", "plan.update_in=backward", "-q")
    told = " ".join(weft.expect(78, *flags).split())
    assert "with plan.update_in=backward, if a later gradient" in told, told
    for setting in ("train.clip_norm=1", "plan.update_in=backward"):
        _, out, err = weft.run(*flags, "--set", setting, "--memory-limit", "900KiB")
        assert "update_in=backward" not in out + err, (setting, out, err)


@case
def a_forged_place_is_refused(weft):
    made = plan(weft, of(1))
    slots = made["problem"]["slots"]
    at = next(s for s, slot in enumerate(slots) if slot["kind"] == "update")
    for edit, words in ((lambda said: said["slots"].insert(0, said["slots"].pop(at)), "slots["),
                        (lambda said: said["period"].pop("update_after"), "slots["),
                        (lambda said: said["period"].update(update_after=1, rotated=False), "no period has"),
                        (lambda said: said["period"].update(delayed=True), "no period has")):
        edited = copy.deepcopy(made)
        edit(edited["problem"])
        weft.expect(65, "verify", weft.write("edited.json", edited), says=words)


@case
def what_has_no_updates_in_backward_is_refused(weft):
    for changes, words in (({"train__clip_norm": 1}, "train.clip_norm to 0"),
                           ({"train__optimizer": {"type": "lamb"}}, "lamb agrees on norms"),
                           ({"train__optimizer": {"type": "adam_mini"}}, "adam_mini divides"),
                           ({"train__precision": {"compute": "f16"}, "cluster__device__flops": {"f16": "50G"}},
                            "f16 repeats a step"),
                           ({"train__delay": 1}, "train.delay to 0"),
                           ({"plan__for": "fsdp2"}, "plan.for"),
                           ({"update_in": 99}, "leave no layer in a model of"),
                           ({"update_in": "late"}, '"late" is not possible; must be "forward", "backward"')):
        weft.expect(65, "plan", weft.write("run.json", of(**changes)), "-o", "none", says=["plan.update_in", words])
    # A config with another fault has no model to ask.
    broken = [of(2, model__layers=[]), of(2, train__optimizer__type="none"), of("backward", plan__for="none")]
    broken += [of(2)]
    del broken[-1]["model"]
    for config in broken:
        weft.expect(65, "plan", weft.write("run.json", config), "-o", "none")
    weft.expect(65, "plan", weft.write("run.json", of()), "-o", "none", "--planner", "fsdp2",
                says=["planner fsdp2", "plan.update_in"])
    made = plan(weft, of("auto", train__clip_norm=1))  # auto leaves them out
    assert "update_after" not in made["problem"]["period"], made["problem"]["period"]


main(sys.argv[1])
