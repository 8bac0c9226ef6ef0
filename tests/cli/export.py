#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weft export --to fsdp2`: what FSDP2 is told, by hand for small models."""
import json
import re
import sys

from configs import tiny
from tap import case, main


def config(layers=3, **changes):
    return tiny(**{"model__layers__1__repeat": layers, "plan__block_scale": "whole", **changes})


def plan(weft, content, *flags):
    weft.expect(0, "plan", weft.write("run.json", content), "-o", "plan.json", "-q", *flags)
    return "plan.json"


def export(weft, *flags):
    """With the config, which gives the memory of a plan that was not made for FSDP2."""
    return json.loads(weft.expect(0, "export", "plan.json", "--to", "fsdp2", "--config", "run.json", *flags))


def figures(weft, *flags):
    said = json.loads(weft.expect(0, "simulate", "plan.json", "--json", *flags))
    return {key: said[key] for key in ("step_ns", "exposed_ns", "peak_bytes", "peak_slot")}


def lists(said):
    return {unit["name"]: (unit["forward"], unit["backward"]) for unit in said["units"]}


def edit(weft, change):
    """Changes placements by hand: change(placements by (unit, kind, gather), slots by name)."""
    with open(weft.path("plan.json"), encoding="utf-8") as file:
        content = json.load(file)
    problem = content["problem"]
    names = [decision["name"] for decision in problem["decisions"]]
    slots = {slot["name"]: number for number, slot in enumerate(problem["slots"])}
    items = [(names[item["decision"]], item["kind"], item["gather"]) for item in problem["items"]]
    placements = content["placements"]
    change({items[at["item"]]: at for at in placements}, slots, placements)
    weft.write("plan.json", content)


@case
def micro_steps_say_when_gradients_are_reduced(weft):
    for reduce, every in (("step", 2), ("micro_step", 1)):
        plan(weft, config(train__grad_accum=2, train__reduce=reduce), "--for", "fsdp2", "--planner", "fsdp2")
        said = export(weft)
        assert (said["micro_steps"], said["reduce_every"]) == (2, every), said


@case
def layers_that_recompute_have_a_checkpoint(weft):
    """Layers of GPT by themselves. The last one never recomputes."""
    plan(weft, config(plan__recompute="whole"), "--for", "fsdp2")
    said = export(weft)
    assert {unit["name"]: unit["checkpoint"] for unit in said["units"]} == {
        "wte": [], "h.0": ["h.0"], "h.1": ["h.1"], "h.2": ["h.2"], "ln_f": [], "head": []}, said["units"]
    assert said["not_expressed"] == [] and figures(weft) == figures(weft, "--as", "fsdp2")
    snippet = weft.expect(0, "export", "plan.json", "--to", "fsdp2", "--snippet")
    compile(snippet, "wrap.py", "exec")
    assert 'CHECKPOINTS = ["h.0", "h.1", "h.2"]' in snippet and snippet.count("\n") < 80, snippet
    weft.expect(65, "plan", weft.write("other.json", config(plan__recompute="selective")), "--for", "fsdp2",
                says="plans for PyTorch's FSDP2 recompute whole layers")


@case
def fsdp2_s_rule_is_written_as_lists(weft):
    """Root units (wte, head) stay gathered. Head is gathered first, in the root's list."""
    plan(weft, config(), "--planner", "fsdp2")
    said = export(weft)
    assert said["not_expressed"] == [] and said["ranks"] == 2 and said["micro_steps"] == said["reduce_every"] == 1
    assert said["root"] == {"reshard_after_forward": False, "forward": ["head"], "backward": [""]}
    assert lists(said) == {
        "wte": (["h.0"], ["wte"]),
        "h.0": (["h.1"], ["h.0"]),  # wte's backward reads nothing
        "h.1": (["h.2"], ["h.0"]),
        "h.2": (["ln_f"], ["h.1"]),
        "ln_f": ([], ["h.2"]),
        "head": ([], ["ln_f"])}, lists(said)
    assert said["order"] == [
        "gather head", "gather wte", "gather h.0", "gather h.1", "gather h.2", "gather ln_f",
        "gather ln_f", "gather h.2", "reduce ln_f", "gather h.1", "reduce h.2", "gather h.0",
        "reduce h.1", "reduce h.0", "reduce head", "reduce wte"], said["order"]
    assert [unit["finalize"] for unit in said["units"]] == ["own"] * 5 + ["end"]
    assert [unit["reshard_after_forward"] for unit in said["units"]] == [
        True, True, True, True, True, False]  # wte's backward reads nothing
    assert {"call": "finalize_backward", "torch": "2.15"} in said["requires"]
    with open(weft.path("plan.json"), encoding="utf-8") as file:
        predicted = json.load(file)["prediction"]
    assert said["predicted"]["step_ns"] == predicted["step_ns"]
    assert said["predicted"]["peak_bytes"] == predicted["peak_bytes"]


@case
def fsdp2_s_default_runs_as_its_rule(weft):
    """Embedding and last unit are gathered again in backward. Each h.i takes the same time, so the
    order is that of the hooks, run by hand in docs/pytorch.md."""
    for content in (config(), config(train__clip_norm=0), config(train__grad_accum=2)):
        for target in ("fsdp2", "fsdp2-default"):
            plan(weft, content, "--for", target, "--planner", "fsdp2")
            assert figures(weft) == figures(weft, "--as", "fsdp2"), target
            said = export(weft)
            units = {unit["name"]: unit for unit in said["units"]}
            default = target == "fsdp2-default"
            assert units["wte"]["unshard_in_backward"] == default
            assert units["head"]["reshard_after_forward"] == default
            assert said["as_run"]["step_ns"] == figures(weft)["step_ns"] and said["as_run"]["fits"]
    plan(weft, config(), "--for", "fsdp2-default", "--planner", "fsdp2")
    assert export(weft)["order"] == [
        "gather wte", "gather h.0", "gather h.1", "gather h.2", "gather ln_f", "gather head",
        "gather head", "gather ln_f", "reduce head", "gather h.2", "reduce ln_f", "gather h.1",
        "reduce h.2", "gather h.0", "reduce h.1", "gather wte", "reduce h.0", "reduce wte"]


@case
def a_free_plan_is_run_as_fsdp2_runs_it(weft):
    """It fits its limit as Weft holds it. FSDP2 holds two copies of a unit in forward, and needs more."""
    layers = [{"name": name, "type": "custom", "hidden": 0, "forward_flops": "1M", "backward_flops": "2M",
               "parameters": count, "output": "4KiB"}
              for name, count in zip("abcd", (100000, 200000, 100000, 50000))]
    content = config(model__layers=layers, plan__policies="sdp,fsdp", cluster__memory_limit="5600KiB")
    plan(weft, content, "--planner", "all-sdp")
    run = figures(weft, "--as", "fsdp2", "--config", "run.json", "--force")
    assert run["peak_bytes"] > 5600 << 10 >= figures(weft)["peak_bytes"], run
    for words in (("simulate", "--as", "fsdp2"), ("export", "--to", "fsdp2")):
        weft.expect(64, words[0], "plan.json", *words[1:], says=["--config", "--for fsdp2"])
        weft.expect(78, words[0], "plan.json", *words[1:], "--config", "run.json",
                    says=[f"{run['peak_bytes']} bytes", f"in slot {run['peak_slot']}", "5734400 bytes"])
    said = export(weft, "--force")
    assert said["as_run"] == {**{key: run[key] for key in ("step_ns", "peak_bytes", "peak_slot")},
                              "limit_bytes": 5600 << 10, "fits": False}, said["as_run"]
    snippet = weft.expect(0, "export", "plan.json", "--to", "fsdp2", "--config", "run.json", "--force", "--snippet")
    assert "The plan's limit is 5734400." in snippet, snippet[:300]
    other = weft.write("other.json", config(4))
    weft.expect(65, "simulate", "plan.json", "--as", "fsdp2", "--config", other)
    weft.expect(64, "simulate", "plan.json", "--as", "ddp", says="fsdp2")
    weft.expect(64, "simulate", "plan.json", "--force", says="--as")


@case
def an_embedding_is_not_gathered_in_backward(weft):
    plan(weft, config(plan__policies="fsdp"), "--planner", "greedy")
    said = export(weft, "--force")
    units = {unit["name"]: unit for unit in said["units"]}
    assert units["wte"]["reshard_after_forward"] and not units["head"]["reshard_after_forward"]
    assert [name for name, unit in units.items() if not unit["unshard_in_backward"]] == ["wte"]
    assert not any("wte" in unit["backward"] for name, unit in units.items() if name != "wte")
    assert said["order"].count("gather wte") == 1 and said["order"].count("gather h.0") == 2
    assert {"call": "set_unshard_in_backward", "torch": "2.6"} in said["requires"]


@case
def a_custom_table_is_not_gathered_in_backward(weft):
    layers = [{"name": name, "type": "custom", "hidden": 0, "forward_flops": "1M", "backward_flops": "2M",
               "parameters": 10000, "output": "4KiB"} for name in "abc"]
    layers[0]["table"] = True
    plan(weft, tiny(model__layers=layers, plan__planner="fsdp2", plan__block_scale="whole"))
    units = export(weft)["units"]
    assert [unit["unshard_in_backward"] for unit in units] == [False, True, True], units
    assert [unit["reshard_after_forward"] for unit in units] == [True, True, False], units


@case
def lists_have_the_order_of_the_plan(weft):
    """Gathers two ahead, one from forward for backward, and two reductions at once."""
    plan(weft, config(), "--planner", "fsdp2")

    def two_ahead(at, slots, _):
        at["h.1", "all_gather", 0]["launch"] = slots["F:wte"]
        at["h.1", "reduce_scatter", 0]["deadline"] = at["h.0", "reduce_scatter", 0]["deadline"]

    edit(weft, two_ahead)
    said = export(weft)
    assert lists(said)["wte"] == (["h.0", "h.1"], ["wte"]) and lists(said)["h.0"] == ([], ["h.0"])
    assert said["max_reduce_scatter_inputs"] == 2
    assert {"call": "set_reduce_scatter_max_input_buffers", "torch": "2.13"} in said["requires"]

    def from_forward(at, slots, _):
        at["ln_f", "all_gather", 1]["launch"] = slots["F:head"]

    edit(weft, from_forward)
    said = export(weft)
    assert lists(said)["head"] == (["ln_f"], ["head"]), lists(said)["head"]
    assert said["order"][6:8] == ["gather ln_f", "gather h.2"], said["order"]


@case
def other_orders_are_refused_and_forced_with_a_sentence(weft):
    plan(weft, config(), "--planner", "fsdp2")

    def swap(at, slots, placements):
        """h.0's gather before h.2's reduction, in one slot."""
        gather, reduction = at["h.0", "all_gather", 1], at["h.2", "reduce_scatter", 0]
        i, j = placements.index(reduction), placements.index(gather)
        placements[i], placements[j] = placements[j], placements[i]

    edit(weft, swap)
    weft.expect(65, "export", "plan.json", "--to", "fsdp2", says=["order of collectives", "--force"])
    said = export(weft, "--force")
    assert said["not_expressed"] == [
        "The order of collectives differs: the plan has the gather of h.0 where FSDP2 has the "
        "reduction of h.2."], said["not_expressed"]


@case
def what_fsdp2_lacks_is_named(weft):
    for words, flags, changes in (
            (["no zero1: wte"], (), {"plan__policies": "zero1"}),
            (["blocks of"], ("--planner", "fsdp2"), {"plan__blocks": 2, "plan__block_scale": "usual"}),
            (["micro-steps"], ("--planner", "fsdp2"), {"train__grad_accum": 2}),
            (["updates all after backward"], ("--planner", "fsdp2"), {"train__clip_norm": 0})):
        plan(weft, config(**changes), *flags)
        weft.expect(65, "export", "plan.json", "--to", "fsdp2", says="--force")
        said = " ".join(export(weft, "--force")["not_expressed"])
        for word in words:
            assert word in said, (word, said)


@case
def a_tensor_of_two_layers_is_refused(weft):
    plan(weft, config(model__layers__3__tie="wte"), "--planner", "fsdp2")
    for flags in ((), ("--force",)):
        weft.expect(65, "export", "plan.json", "--to", "fsdp2", *flags, says="whole modules")


@case
def layers_that_share_a_tensor_are_one_unit(weft):
    """Two hooks: wte's forward and head's backward. No gradient goes back through wte: reduced at the end."""
    changes = {"plan__for": "fsdp2-blocking", "plan__fuse": None, "plan__planner": "fsdp2"}
    layers = [{"name": name, "type": "custom", "hidden": 0, "forward_flops": "1M", "backward_flops": "2M",
               "parameters": count, "output": "4KiB", "table": name == "a"}
              for name, count in (("a", 10000), ("b", 10000), ("c", 500))]
    layers[2]["tie"] = "a"
    for content, first, last, blocks in (
            (config(model__layers__3__tie="wte", **changes), "wte", "head", ["h.0", "h.1", "h.2", "ln_f"]),
            (tiny(model__layers=layers, plan__block_scale="whole", **changes), "a", "c", ["b"])):
        plan(weft, content)
        said = export(weft)
        unit = said["units"][0]
        assert unit["name"] == f"{first}&{last}" and unit["modules"] == [first, last], unit
        assert not unit["reshard_after_forward"] and unit["unshard_in_backward"], unit
        assert unit["forward"][-1] == blocks[0] and unit["backward"] == [unit["name"]], lists(said)
        assert said["not_expressed"] == [] and len(said["units"]) == 1 + len(blocks)
        assert said["order"].count(f"gather {unit['name']}") == 1
        assert said["order"][-1] == f"reduce {unit['name']}", said["order"]
    with open(weft.path("plan.json"), encoding="utf-8") as file:
        assert json.load(file)["problem"]["decisions"][0]["elements"] == 42 * 256  # 10,500 of them, in slices of 128
    layers[2]["tie"] = "d"
    weft.expect(65, "check", weft.write("run.json", tiny(model__layers=layers)), says="no earlier layer has this name")
    layers[0]["parameters"], layers[2]["tie"] = 0, "a"
    weft.expect(65, "check", weft.write("run.json", tiny(model__layers=layers)), says="\"a\", which has no parameters")


@case
def names_of_an_edited_plan_reach_no_python(weft):
    plan(weft, config(), "--planner", "fsdp2")
    with open(weft.path("plan.json"), encoding="utf-8") as file:
        text = file.read()
    for old, new in (('"F:h.1"', '"F:h\\"]; exit() #"'), ('"name": "h.1"', '"name": "h.1+\\"+h.1"')):
        assert old in text
        weft.write("plan.json", text.replace(old, new))
        weft.expect(65, "export", "plan.json", "--to", "fsdp2", "--snippet", "--force")
    weft.write("plan.json", re.sub(r'"elements": \d+', '"elements": 0', text))
    assert weft.run("export", "plan.json", "--to", "fsdp2", "--config", "run.json")[0] in (0, 65)


@case
def units_of_several_modules_and_replicated_ones(weft):
    content = config(plan__fuse=True, plan__block_size="40KiB", plan__block_scale="usual",
                     plan__policies="dp")
    plan(weft, content)
    said = export(weft, "--force")
    modules = [name for unit in said["units"] for name in unit["modules"]]
    assert modules == ["wte", "h.0", "h.1", "h.2", "ln_f", "head"], said["units"]
    assert max(len(unit["modules"]) for unit in said["units"]) > 1
    assert all(unit["replicate"] for unit in said["units"])
    assert not any(event.startswith("gather") for event in said["order"])


@case
def a_snippet_compiles_and_stays_short(weft):
    for layers in (2, 200):
        plan(weft, config(layers), "--planner", "fsdp2")
        snippet = weft.expect(0, "export", "plan.json", "--to", "fsdp2", "--snippet", "--config", "run.json")
        assert len(snippet.splitlines()) < 80, len(snippet.splitlines())
        # Imports of PyTorch are the only ones.
        text = "\n".join(line for line in snippet.splitlines() if "import" not in line)
        assert snippet.count("import") == text.count("import") + 2
        space = {}
        exec(compile(text, "snippet", "exec"), space)  # pylint: disable=exec-used
        said = export(weft)
        assert [(row[0], row[1], row[6], row[7]) for row in space["UNITS"]] == [
            (unit["name"], unit["modules"], unit["forward"], unit["backward"])
            for unit in said["units"]]
        assert space["ROOT"][6:] == (said["root"]["forward"], said["root"]["backward"])


@case
def megatron_gets_placements_and_budgets(weft):
    plan(weft, config(), "--planner", "fsdp2")
    fsdp2 = export(weft)
    said = json.loads(weft.expect(0, "export", "plan.json", "--to", "megatron-fsdp"))
    assert said["tested"] == "from documentation, not run here"
    units = {unit["name"]: unit for unit in said["units"]}
    assert [unit["placement"] for unit in units.values()] == ["zero2"] + 4 * ["zero3"] + ["zero2"]
    with open(weft.path("plan.json"), encoding="utf-8") as file:
        elements = {each["name"]: each["elements"] for each in json.load(file)["problem"]["decisions"]}
    for unit in fsdp2["units"]:
        for key in ("forward", "backward"):
            ahead = [name for name in unit[key] if name != unit["name"]]
            assert units[unit["name"]][f"{key}_prefetch_elements"] == sum(elements[name] for name in ahead)
    assert said["order"] == fsdp2["order"]
    weft.expect(64, "export", "plan.json", "--to", "megatron-fsdp", "--snippet", says="--snippet")


@case
def deepspeed_gets_its_best_setting(weft):
    """No setting is faster in weft plan, and the distance is from the plan's own bound."""
    plan(weft, config())
    said = json.loads(weft.expect(0, "export", "plan.json", "--to", "deepspeed"))
    zero = said["zero_optimization"]
    assert zero["stage"] == 3 and zero["stage3_param_persistence_threshold"] == 100000
    with open(weft.path("plan.json"), encoding="utf-8") as file:
        bound = json.load(file)["bound"]["bound_ns"]
    assert said["predicted"]["bound_ns"] == bound > 0
    assert said["predicted"]["gap"] == (said["predicted"]["step_ns"] - bound) / bound
    for setting in ("published", "no-reuse", "prefetch-5e8"):
        plan(weft, config(), "--planner", f"deepspeed:{setting}")
        with open(weft.path("plan.json"), encoding="utf-8") as file:
            assert json.load(file)["prediction"]["step_ns"] >= said["predicted"]["step_ns"], setting


@case
def deepspeed_takes_the_policies_of_the_plan_s_config(weft):
    """A plan for FSDP2 lacks zero1. The config's problem has its micro-steps and rounds, and another bound."""
    policies = ("--set", "plan.policies=dp,zero1,sdp,fsdp", "--set", "train.reduce=step")
    plan(weft, config(train__grad_accum=2), "--for", "fsdp2", "--planner", "fsdp2")
    with open(weft.path("plan.json"), encoding="utf-8") as file:
        assert json.load(file)["problem"]["period"]["reduce"] == "step"
    words = ("export", "plan.json", "--to", "deepspeed", "--config")
    said = json.loads(weft.expect(0, *words, "run.json"))
    assert said["predicted"]["bound_ns"] == 0 and said["predicted"]["gap"] == 0, said
    weft.expect(65, *words, weft.write("other.json", config(4, train__grad_accum=2)), says="another problem")
    plan(weft, config(train__grad_accum=2), "--planner", f"deepspeed:{said['setting']}", *policies)
    with open(weft.path("plan.json"), encoding="utf-8") as file:
        assert json.load(file)["prediction"]["step_ns"] == said["predicted"]["step_ns"], said


@case
def a_target_is_needed(weft):
    plan(weft, config(), "--planner", "fsdp2")
    weft.expect(64, "export", "plan.json", says="--to fsdp2")
    weft.expect(64, "export", "plan.json", "--to", "fsdp", says="fsdp2")
    weft.expect(66, "export", "none.json", "--to", "fsdp2")


@case
def a_plan_of_adam_mini_is_no_other_runtimes(weft):
    """The plan's problem tells it, so also without a config. Plans of other optimizers are written."""
    for optimizer, code in (("adam_mini", 65), ("adamw", 0), ("lamb", 0)):
        plan(weft, config(train__optimizer={"type": optimizer, "lr": 1e-3}), "--planner", "all-fsdp")
        with open(weft.path("plan.json"), encoding="utf-8") as file:
            assert json.load(file)["problem"]["period"].get("means", False) == (code != 0), optimizer
        for target in ("megatron-fsdp", "deepspeed", "fsdp2"):
            flags = ("--config", "run.json", "--force") if target == "fsdp2" else ()
            weft.expect(code, "export", "plan.json", "--to", target, *flags,
                        **({"says": ["plan.json: ", "one second moment a tensor (adam_mini)"]} if code else {}))


if __name__ == "__main__":
    main(sys.argv[1])
