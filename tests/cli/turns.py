#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Micro-steps that take turns by layers: plans, their proofs, runs with the bits of the other order, and what is refused."""
import copy
import json
import sys

from configs import tiny
from plan_checker import Wrong, check
from plan_forms import layer_slots
from tap import case, main

TIED = [{"name": "wte", "type": "embedding", "vocab": 256, "positions": 16, "hidden": 32},
        {"name": "h.{i}", "type": "transformer_block", "repeat": 2, "hidden": 32, "heads": 2, "ffn": 64},
        {"name": "head", "type": "lm_head", "vocab": 256, "hidden": 32, "bias": False, "tie": "wte"}]
HOST = {"memory_limit": "1GiB", "down": {"alpha": "1us", "bandwidth": "1GB/s"},
        "up": {"alpha": "1us", "bandwidth": "1GB/s"}, "update": "1GB/s"}


def of(order="layer", **changes):
    """A slow link, so that one gather and one reduction a step win."""
    settings = {"train__grad_accum": 4, "train__micro_batch": 1, "plan__micro_step_order": order,
                "cluster__link__intra__bandwidth": "0.1GB/s", "plan__work_limit": "50M", **changes}
    return tiny(**{path: value for path, value in settings.items() if value is not None})


def plan(weft, config, *flags):
    path = flags[1] if flags[:1] == ("-o",) else "plan.json"
    weft.expect(0, "plan", weft.write("run.json", config), "-q", *flags, *(() if flags[:1] == ("-o",) else ("-o", path)))
    return json.loads((weft.directory / path).read_text())


def fingerprint(weft, config, run, *flags):
    weft.expect(0, "train", weft.write("run.json", config), "--quiet", "--run", run, *flags)
    return json.loads((weft.directory / run / "result.json").read_text())["fingerprint"]


@case
def a_plan_by_turns_is_proven(weft):
    for changes in ({}, {"train__clip_norm": 0}, {"plan__micro_step_order": 2}, {"cluster__host": HOST}):
        made = plan(weft, of(**changes))
        assert made["problem"]["period"]["layers"] == changes.get("plan__micro_step_order", 1), made["problem"]["period"]
        check(made)
        weft.expect(0, "verify", "plan.json", "--config", "run.json")
        weft.expect(0, "simulate", "plan.json", "--config", "run.json")
        gathers = {(item["decision"], item["gather"]) for item in made["problem"]["items"] if item["kind"] == "all_gather"}
        assert all(gather < 2 for _, gather in gathers), gathers


@case
def rules_take_their_order(weft):
    """Published rules of turns take their order where it is open, and their runs have the bits of the other order."""
    step = fingerprint(weft, of(order="step"), "by-step")
    for planner, layers in (("breadth-first", 1), ("breadth-first:2", 2), ("greedysnake", 1)):
        config = of(order="auto", cluster__host=HOST, plan__offload={"state": ["device", "host"], "update": ["device"]})
        made = plan(weft, config, "--planner", planner)
        assert made["problem"]["period"]["layers"] == layers, made["problem"]["period"]
        check(made)
        weft.expect(0, "verify", "plan.json", "--config", "run.json")
        assert fingerprint(weft, config, planner.replace(":", "-"), "--planner", planner) == step, planner
        weft.expect(65, "plan", weft.write("run.json", of(order=3)), "--planner", "greedysnake",
                    says=["planner greedysnake", "set plan.micro_step_order to layer or auto"])
    weft.expect(65, "plan", weft.write("run.json", of(order="auto")), "--planner", "breadth-first:32",
                says=["$.plan.planner", "groups of 32 layers leave no second one", "take groups of at most 5, or another planner"])
    alone = of(order="auto")
    alone["model"]["layers"] = alone["model"]["layers"][-1:]
    weft.expect(65, "plan", weft.write("run.json", alone), "--planner", "breadth-first",
                says=["$.plan.planner", "a model of one layer has one order: take another planner"])
    weft.expect(65, "plan", weft.write("run.json", of(order="auto", train__grad_accum=1)), "--planner", "breadth-first",
                says=["$.plan.planner", "a step has one micro-step"])


@case
def a_fixed_order_is_of_all_splits(weft):
    """One micro-step has no turns. All other splits have the config's, or the rule's."""
    splits = {"train__batch": 16, "train__micro_batch": "auto", "train__grad_accum": None, "plan__work_limit": "5M"}
    for order, planner, layers in ((2, "greedy", 2), ("layer", "greedy", 1), ("auto", "breadth-first:2", 2),
                                   ("auto", "breadth-first", 1)):
        made = plan(weft, of(order, plan__planner=planner, **splits))
        periods = [one["problem"]["period"] for one in [made, *made["other_periods"]]]
        found = {(period["micro_steps"] > 1, period.get("layers", 0)) for period in periods}
        assert found == {(False, 0), (True, layers)}, (order, planner, found)
        check(made)
        weft.expect(0, "verify", "plan.json", "--config", "run.json")


@case
def a_forged_order_is_refused(weft):
    made = plan(weft, of())
    slots = made["problem"]["slots"]
    at = next(s for s, slot in enumerate(slots) if slot["kind"] == "forward")
    for edit, words in ((lambda said: said["slots"].insert(at, said["slots"].pop(at + 1)), "slots["),  # they fall
                        (lambda said: said["period"].pop("layers"), "slots["),
                        (lambda said: said["period"].update(layers=2), "slots["),
                        (lambda said: said["period"].update(layers=99), "take turns by 99 layers"),
                        (lambda said: said["period"].update(reduce="micro_step"), "with turns by layers")):
        edited = copy.deepcopy(made)
        edit(edited["problem"])
        weft.expect(65, "verify", weft.write("edited.json", edited), says=words)
        try:
            check(edited)
        except Wrong:
            continue
        raise AssertionError("the checker takes it")
    assert len(layer_slots(made["problem"])) == 2 * 4 * 6


@case
def the_planner_chooses_the_order(weft):
    """A slow link is worth the inputs of all micro-steps, a fast one under a low limit is not."""
    slow = plan(weft, of("auto"))
    assert slow["problem"]["period"].get("layers") == 1, slow["problem"]["period"]
    assert any("layers" not in other["problem"]["period"] for other in slow["other_periods"])
    told = " ".join(weft.expect(0, "plan", "run.json", "-o", "none").split())
    for words in ("all run through each layer in turn", "micro_step_order",
                  "order micro-steps by layer; one after the other, no plan of the 2 periods planned is faster than"):
        assert words in told, (words, told)
    step = plan(weft, of("step"))
    assert "layers" not in step["problem"]["period"]
    assert slow["prediction"]["step_ns"] <= step["prediction"]["step_ns"]


@case
def a_start_in_the_other_order_is_kept(weft):
    """Also if the alarm rings before the other order's turn comes."""
    for order in ("step", "layer"):
        made = plan(weft, of(order), "-o", f"{order}.json")
        found = plan(weft, of("auto"), "-o", "found.json", "--start", weft.path(f"{order}.json"), "--time-limit", "1ms")
        assert found["prediction"]["step_ns"] <= made["prediction"]["step_ns"], (order, found["prediction"])


@case
def a_limit_that_is_too_small_exits_with_78(weft):
    """Whichever tier or order refuses. A planner that applies to no order exits with 65."""
    for order in ("step", "auto"):
        for planner in ("ilp", "greedy", "fsdp2", "all-fsdp", "two-stage"):
            config = weft.write("run.json", of(order))
            code, _, told = weft.run("plan", config, "--planner", planner, "--memory-limit", "100KiB")
            assert code == 78 and "its published rule runs" not in told, (order, planner, code, told)
    offload = {"state": ["device", "host"], "activations": ["device", "host"], "update": ["device", "host"]}
    little = {"cluster__host": {**HOST, "memory_limit": "10KiB"}, "plan__offload": offload}
    for planner in ("zero-offload", "fsdp2-cpu-offload"):
        weft.expect(78, "plan", weft.write("run.json", of("step", **little)), "--planner", planner,
                    says=f"planner {planner}: its plan holds")
    weft.expect(78, "plan", weft.write("run.json", of("step", plan__policy_limit="10KiB")), "--planner", "two-stage",
                says="for the choice of policies")


@case
def a_rule_for_one_order_is_refused_by_its_own_reason(weft):
    splits = {"train__batch": 8, "train__micro_batch": "auto", "train__grad_accum": None}
    for changes in ({}, splits):
        config = weft.write("run.json", of("auto", plan__recompute="none", **changes))
        _, _, told = weft.run("plan", config, "--planner", "recompute-all")
        weft.expect(65, "plan", config, "--planner", "recompute-all", says="gives every layer the level whole")
        assert "its published rule runs" not in told, told


@case
def a_rule_of_turns_is_refused_by_its_own_reason(weft):
    """Also if a split of one micro-step, which it does not apply to, is open. Its reason is no limit of memory."""
    config = weft.write("run.json", of("auto", train__batch=16, train__micro_batch="auto", train__grad_accum=None,
                                       plan__policies="fsdp"))
    _, _, told = weft.run("plan", config, "--planner", "breadth-first", "-o", "none")
    weft.expect(65, "plan", config, "--planner", "breadth-first", "-o", "none", says="the policy sdp, which it may not have")
    assert "its published rule runs" not in told and "No split" not in told, told


@case
def explain_tells_the_other_order(weft):
    """Its step is that of a plan in that order, and its bound that of no plan is faster."""
    for order, other in (("step", "layer"), ("layer", "step")):
        made = plan(weft, of(order, train__reduce="step"))
        there = plan(weft, of(other, train__reduce="step"), "-o", "there.json")
        plan(weft, of(order, train__reduce="step"))
        flags = ("explain", "plan.json", "--config", "run.json", "--work-limit", "100M")
        said = json.loads(weft.expect(0, *flags, "--json"))["other_order"]
        assert said["order"] == other and said["fits"] and said["refused"] is None, said
        steps = [one["prediction"]["step_ns"] for one in (made, there)]
        assert said["bound_ns"] <= said["step_ns"] <= 1.02 * steps[1], (said, steps)
        assert said["bound_ns"] <= steps[1] and (said["step_ns"] > steps[0]) == (order == "layer"), (said, steps)
        assert (said["least_bytes"] > said["own_least_bytes"]) == (other == "layer"), said
        assert said["lane"]["name"] == "network" and 0 < said["lane"]["share"] <= 1, said
        assert said["row"]["slot"] and said["row"]["micro_steps"] >= 1, said
        told = " ".join(weft.expect(0, *flags).split())
        for words in ("the other order of micro-steps: " + {"layer": "by layer", "step": "one after"}[other],
                      "lane network is busy", "its fullest slot " + said["row"]["slot"]):
            assert words in told, (words, told)
    fingerprint(weft, of("layer", train__steps=1), "explained", "--work-limit", "20M")
    known = json.loads(weft.expect(0, "explain", "explained", "--json"))["other_order"]
    assert known["order"] == "step" and known["step_ns"] > 0, known
    assert json.loads(weft.expect(0, "explain", "explained/plan.json", "--json"))["other_order"] is None
    weft.expect(0, "plan", weft.write("run.json", of("step", train__reduce="micro_step")), "-o", "plan.json", "-q")
    assert "not possible here: all micro-steps of a layer add up one gradient" in " ".join(
        weft.expect(0, "explain", "plan.json", "--config", "run.json").split())


@case
def explain_names_what_the_other_order_lacks(weft):
    """By layer all micro-steps' activations live at once, so a low limit holds one order alone."""
    config = of("step", train__grad_accum=8, train__reduce="step", plan__recompute="none", cluster__memory_limit="1MiB")
    config["model"]["layers"][1].update(repeat=4)
    weft.expect(0, "plan", weft.write("run.json", config), "-q", "-o", "plan.json")
    said = json.loads(weft.expect(0, "explain", "plan.json", "--config", "run.json", "--json"))["other_order"]
    assert not said["fits"] and said["least_bytes"] > 1 << 20 and "bound_ns" not in said, said
    assert said["row"]["category"] == "activations" and said["row"]["micro_steps"] == 8, said
    told = " ".join(weft.expect(0, "explain", "plan.json", "--config", "run.json").split())
    assert "fits 1.00 MiB: it needs" in told and "of activations of 8 micro-steps" in told, told
    weft.expect(78, "plan", "run.json", "-o", "none", "-q", "--set", "plan.micro_step_order=layer")


@case
def runs_end_in_the_bits_of_the_other_order(weft):
    for clip in (0.5, 0):
        expected = fingerprint(weft, of("step", train__reduce="step", train__clip_norm=clip), weft.fresh("step"))
        for changes in ({}, {"plan__micro_step_order": 3, "cluster__host": HOST}):
            found = fingerprint(weft, of(train__clip_norm=clip, **changes), weft.fresh("turns"))
            assert found == expected, (clip, changes)


@case
def a_checkpoint_keeps_the_order_of_a_tied_tensor(weft):
    saved = {"model__layers": TIED, "train__checkpoint": {"every": 2, "at_end": True}, "train__steps": 4,
             "train__reduce": "step"}
    whole = fingerprint(weft, of(**saved), "whole")
    manifest = json.loads((weft.directory / "whole/checkpoints/step-2/manifest.json").read_text())
    assert manifest["turn_layers"] == 1, manifest
    again = ("--resume=whole/checkpoints/step-2",)
    assert fingerprint(weft, of(**saved), "same", *again) == whole
    assert fingerprint(weft, of("auto", **saved), "kept", *again) == whole
    _, _, told = weft.run("train", weft.write("run.json", of("step", **saved)), "--run", "other", *again)
    assert "--set plan.micro_step_order=\"layer\"" in told, told
    assert fingerprint(weft, of("step", **saved), "straight") != whole
    assert "equal" in weft.expect(0, "replay", "whole")
    weft.expect(64, "replay", "whole", "-n", "1", says=["ties a tensor", "replay with 2 ranks (-n 2)"])


@case
def a_replay_with_another_plan_has_the_runs_order(weft):
    """The quick planner has one order alone, and an open order is not the config's."""
    for checkpoint in ({"every": 2, "at_end": True}, {"at_end": False}):
        fingerprint(weft, of("auto", model__layers=TIED, train__checkpoint=checkpoint, train__reduce="step"),
                    weft.fresh("open"))
        made = json.loads((weft.directory / "open/plan.json").read_text())
        assert made["problem"]["period"]["layers"] == 1, made["problem"]["period"]
        assert "equal" in weft.expect(0, "replay", "open", "--memory-limit", "2GiB")
        weft.expect(64, "replay", "open", "--set", "plan.micro_step_order=step",
                    says=["plan.micro_step_order", "another order: leave it out"])
        if checkpoint["at_end"]:
            code, _, told = weft.run("replay", "open", "--groups")
            assert code == 64 and "one rank cannot replay: leave them out" in told and "-n" not in told, told


@case
def a_replay_needs_the_runs_plan_for_an_open_order(weft):
    """Without checkpoints the plan alone has the order. Other models need no order for their bits."""
    alone = {"train__checkpoint": {"at_end": False}, "train__reduce": "step"}
    fingerprint(weft, of("auto", model__layers=TIED, **alone), "alone")
    path, limit = weft.directory / "alone/plan.json", ("--memory-limit", "2GiB")
    made = path.read_text()
    wrong = '{"problem":{"period":{"layers":%s}}}', "has a period with a wrong number of layers"
    for damage, code, words in (("{", 65, "alone/plan.json"), ("{}", 65, "has no period of a plan"),
                                ('{"problem":{"period":5}}', 65, "has no period of a plan"),
                                *((wrong[0] % layers, 65, wrong[1]) for layers in ('"one"', "0.5", "-1", "null")),
                                (None, 66, "is missing")):
        path.write_text(damage) if damage else path.unlink()
        weft.expect(code, "replay", "alone", *limit, says=["alone/plan.json", words, "in which order micro-steps ran"])
    path.write_text(made)
    assert "equal" in weft.expect(0, "replay", "alone", *limit)
    for damage in ("{", '{"origin":{}}', '{"origin":{"path":5}}', '{"origin":{"path":""}}', '{"origin":null}'):
        (weft.directory / "alone/result.json").write_text(damage)
        weft.expect(65, "replay", "alone", *limit, says=["alone/result.json", "with which parameters the run began"])
    fingerprint(weft, of("auto", **alone), "untied")
    (weft.directory / "untied/plan.json").write_text("{")
    assert "equal" in weft.expect(0, "replay", "untied", *limit)


@case
def a_resumed_run_tells_its_ranks_the_order(weft):
    saved = {"model__layers": TIED, "train__checkpoint": {"every": 2, "at_end": True}, "train__steps": 4}
    whole = fingerprint(weft, of(2, **saved), "two")
    again = ("--resume=two/checkpoints/step-2",)
    assert fingerprint(weft, of("auto", **saved), "kept_two", *again) == whole
    manifest = json.loads((weft.directory / "kept_two/checkpoints/step-4/manifest.json").read_text())
    assert manifest["turn_layers"] == 2, manifest
    _, _, told = weft.run("train", weft.write("run.json", of("layer", **saved)), "--run", "alike", *again)
    assert "round otherwise" not in told, told
    assert json.loads((weft.directory / "alike/result.json").read_text())["fingerprint"] == whole


@case
def a_kept_order_leaves_other_settings_alone(weft):
    saved = {"model__layers": TIED, "train__checkpoint": {"every": 2, "at_end": True}, "train__steps": 4}
    fingerprint(weft, of("auto", train__reduce="step", **saved), "kept_once")
    config = weft.write("run.json", of("auto", train__reduce="step", **saved))
    again = ("--resume=kept_once/checkpoints/step-2",)
    for change, reduce in (("train.reduce=micro_step", "micro_step"), ("train.group=2", "micro_step")):
        if change == "train.group=2":
            config = weft.write("run.json", of("auto", **saved))
        _, _, told = weft.run("train", config, "--run", weft.fresh("other"), "--set", change, *again)
        manifest = json.loads((weft.directory / "other/checkpoints/step-4/manifest.json").read_text())
        assert manifest["reduce"] == reduce and "turn_layers" not in manifest, (change, manifest)
        assert "micro-steps one after the other, so its sums round otherwise" in told, told


@case
def other_ranks_of_a_tied_model_keep_the_samples(weft):
    saved = {"model__layers": TIED, "train__checkpoint": {"every": 2, "at_end": True}, "train__steps": 4}
    fingerprint(weft, of(cluster__ranks=4, **saved), "four")
    config = weft.write("run.json", of(cluster__ranks=2, **saved))
    _, _, told = weft.run("train", config, "--run", "fewer", "--resume=four/checkpoints/step-2")
    assert "add up its terms in the order of 4 ranks alone" in told, told
    manifest = json.loads((weft.directory / "fewer/checkpoints/step-4/manifest.json").read_text())
    assert manifest["ranks"] * manifest["micro_steps"] * manifest["micro_batch"] == 16, manifest


@case
def one_micro_step_has_no_order(weft):
    saved = {"model__layers": TIED, "train__checkpoint": {"every": 2, "at_end": True}, "train__steps": 4,
             "train__batch": 8, "train__grad_accum": None}
    whole = fingerprint(weft, of("step", **{**saved, "train__micro_batch": 4}), "one")
    config = weft.write("run.json", of("layer", **{**saved, "train__micro_batch": "auto"}))
    _, _, told = weft.run("train", config, "--run", "one_again", "--resume=one/checkpoints/step-2")
    assert "round otherwise" not in told, told
    assert json.loads((weft.directory / "one_again/result.json").read_text())["fingerprint"] == whole


@case
def a_plan_of_all_open_choices_keeps_all_bounds(weft):
    """A list of splits, sizes of blocks, and all of one split: more periods than one list has."""
    made = plan(weft, of("auto", train__batch=48, train__micro_batch="auto", train__grad_accum=None,
                         train__clip_norm=0, cluster__host=HOST, plan__planner="greedy", plan__work_limit="5M",
                         plan__block_scale="auto", plan__offload={"state": ["device", "host"]}))
    assert len(made["other_periods"]) > 33, len(made["other_periods"])
    check(made)
    weft.expect(0, "verify", "plan.json", "--config", "run.json")


@case
def the_other_order_may_not_fit(weft):
    config = of("auto", train__grad_accum=8, train__reduce="step", cluster__link__intra__bandwidth="1GB/s",
                plan__planner="greedy", plan__work_limit="20M", plan__policies="dp", cluster__memory_limit="14MiB")
    for layer in config["model"]["layers"]:
        layer["hidden"] = 128
    config["model"]["layers"][1].update(repeat=4, heads=4, ffn=512)
    told = " ".join(weft.expect(0, "plan", weft.write("run.json", config), "-o", "none").split())
    assert "order micro-steps one after the other; by layer, no plan of the 1 period planned fits" in told, told


@case
def a_refusal_by_layer_names_a_smaller_micro_batch(weft):
    config = of(train__micro_batch=16, train__grad_accum=None, train__batch=64, cluster__memory_limit="3200KiB",
                plan__recompute="none", plan__planner="greedy", plan__work_limit="5M")
    weft.expect(78, "plan", weft.write("run.json", config), "-o", "none", "-q",
                says="train.micro_batch=auto, least limit")
    weft.expect(0, "plan", "run.json", "-o", "none", "-q", "--set", "train.micro_batch=auto")


@case
def what_has_no_turns_is_refused(weft):
    for changes, words in (({"train__grad_accum": 1}, "a step has one micro-step"),
                           ({"train__reduce": "micro_step"}, "add up one gradient"),
                           ({"train__group": 2}, "add up one gradient"),
                           ({"plan__for": "fsdp2"}, "plan.for runs one micro-step after the other"),
                           ({"plan__micro_step_order": 6}, "groups of 6 layers leave no second one"),
                           ({"plan__micro_step_order": "layers"}, '"layers" is not possible; must be "step", "layer"'),
                           ({"plan__micro_step_order": 0}, "0 is out of range")):
        weft.expect(65, "plan", weft.write("run.json", of(**changes)), "-o", "none",
                    says=["plan.micro_step_order", words])
    weft.expect(65, "plan", weft.write("run.json", of()), "-o", "none", "--planner", "fsdp2",
                says=["planner fsdp2", "plan.micro_step_order"])
    plan(weft, of())
    weft.expect(65, "export", "plan.json", "--to", "fsdp2", says=["take turns by layers", "plan.micro_step_order"])

@case
def a_sweep_to_all_rises_until_a_rule_of_groups_has_a_plan(weft):
    """The order is that of the rule, as with `weft plan --planner`."""
    config = weft.write("run.json", of("auto", plan__work_limit="1M"))
    table = weft.expect(0, "sweep", config, "--planners", "breadth-first:2", "--to", "all", "--points", "2", "--csv", "-", "-q")
    fits = [line.split(",")[4] for line in table.splitlines()[1:]]
    assert fits == ["0", "1"], table


@case
def the_command_of_the_best_names_each_key_once(weft):
    config = weft.write("run.json", of("step", plan__work_limit="1M"))
    told = weft.expect(0, "best", config, "--set", "plan.micro_step_order=step", "-q")
    command = told[told.index("next: "):].split("\nor the same")[0].split()
    keys = [word.split("=")[0] for word in command if "=" in word]
    assert "plan.micro_step_order=layer" in command and len(keys) == len(set(keys)), command


@case
def a_refused_rule_says_that_the_least_limit_is_another_planners(weft):
    config = weft.write("run.json", of("step", plan__recompute="none"))
    for planner, own in (("all-dp", True), ("ilp", False)):
        said = weft.run("plan", config, "--planner", planner, "--memory-limit", "64KiB")
        assert said[0] == 78 and ("Planner ilp needs that limit; planner all-dp: its plan holds" in said[2]) == own, said



main(sys.argv[1])
