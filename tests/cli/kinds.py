# SPDX-License-Identifier: Apache-2.0
"""Kinds of a config's own: training in every way, generation, resuming, and the recipes of Weft's own kinds."""
import json
import sys
from pathlib import Path

from configs import tiny
from saved import parameters
from tap import case, main

MODELS = Path(__file__).resolve().parents[2] / "configs" / "models"
PARALLEL = json.loads((MODELS / "parallel-tiny.json").read_text(encoding="utf-8"))
SETTINGS = {"train__steps": 4, "train__seq_len": 24, "train__micro_batch": 4}
LINK = {"alpha": "1us", "bandwidth": "5GB/s"}
HOST = {"memory_limit": "1GiB", "down": LINK, "up": LINK, "update": "1GB/s"}
OFFLOADED = ["plan.planner=greedy", "plan.offload={\"activations\": [\"host\"], \"state\": [\"host\"]}"]
WAYS = [[f"plan.planner={planner}", f"plan.recompute={level}"]
        for planner, level in (("all-zero1", "none"), ("all-sdp", "selective"), ("all-fsdp", "whole"))]


def parallel(**changes):
    return tiny(**{"model": json.loads(json.dumps(PARALLEL)), **SETTINGS, **changes})


def trained(weft, config, *flags):
    weft.expect(0, "train", weft.write("run.json", config), "--run", weft.fresh("run"), "-q", *flags)
    with open(weft.path("run/metrics.jsonl"), encoding="utf-8") as file:
        losses = [line["loss"] for line in map(json.loads, file) if "loss" in line]
    return parameters(weft, "run"), losses


def sets(way):
    return [word for change in way for word in ("--set", change)]


@case
def every_way_to_train_ends_in_one_fingerprint(weft):
    """All policies, saved activations restored or offloaded, in two dtypes."""
    for compute in ("f32", "bf16"):
        config = parallel(train__precision={"compute": compute}, train__grad_accum=2, train__reduce="step",
                          cluster__host=HOST, cluster__device__flops={"f32": "50G", "bf16": "50G"})
        first, losses = trained(weft, config, "--set", "plan.planner=all-dp", "--set", "plan.recompute=none")
        assert losses[-1] < losses[0] < 6, losses
        for way in (*WAYS, OFFLOADED):
            assert trained(weft, config, *sets(way))[0] == first, (compute, way)


@case
def a_run_is_resumed_and_generates(weft):
    """A resumed run ends as one without a stop. Another recipe, or a part of a key's value, is another model."""
    whole, losses = trained(weft, parallel(train__steps=30, train__optimizer={"type": "adamw", "lr": 0.01}))
    assert losses[-1] < losses[0] - 1, losses
    config = parallel(train__steps=20, train__optimizer={"type": "adamw", "lr": 0.01},
                      train__checkpoint={"at_end": True})
    trained(weft, config)
    for change, says in ((lambda kind: kind["steps"][6].update(kind="relu"), "layers.0: recipe is "),
                         (lambda kind: kind["keys"][4].update(default=100), "rope_base is 100, and was 10000")):
        other = json.loads(json.dumps(config))
        change(other["model"]["kinds"][0])
        weft.expect(65, "train", weft.write("other.json", other), "--resume=run/checkpoints/step-20", "--run",
                    weft.fresh("other"), "-q", says=says)
    asked = ["generate", "run", "--prompt", "The", "--tokens", "40", "--json"]
    said = [json.loads(weft.expect(0, *asked, *more))["tokens"] for more in ([], ["--no-cache"])]
    assert len(said[0]) == 40 and said[0] == said[1], said
    weft.expect(65, "export", "run", "--to", "hf", "-o", weft.fresh("hf"), says="parallel_block")
    weft.expect(0, "train", "--resume", "--run", "run", "-q", "--set", "train.steps=30")
    assert parameters(weft, "run") == whole


@case
def a_printed_recipe_of_weft_computes_the_same_bits(weft):
    """Weft's kinds under other names, with tied weights left out: a kind of the config cannot be tied to."""
    layers = [{"name": "wte", "type": "embedding", "vocab": 256, "hidden": 32, "positions": 64},
              {"name": "a", "type": "llama_block", "hidden": 32, "heads": 4, "kv_heads": 2, "ffn": 48},
              {"name": "b", "type": "qwen3_block", "hidden": 32, "heads": 4, "head_dim": 16, "ffn": 48},
              {"name": "c", "type": "transformer_block", "hidden": 32, "heads": 4, "ffn": 48},
              {"name": "l", "type": "linear", "hidden": 32, "outputs": 32},
              {"name": "g", "type": "gelu", "hidden": 32}, {"name": "n", "type": "layer_norm", "hidden": 32},
              {"name": "r", "type": "rms_norm", "hidden": 32},
              {"name": "head", "type": "lm_head", "vocab": 256, "hidden": 32}]
    config = tiny(model={"layers": layers}, **SETTINGS)
    first = trained(weft, config)
    kinds = []
    for layer in layers:
        kind = json.loads(weft.expect(0, "explain", "--kind", layer["type"], "--json"))
        kind["kind"] = layer["type"] = "my_" + layer["type"]
        kinds.append(kind)
    config["model"] = {"kinds": kinds, "layers": layers}
    assert trained(weft, config) == first


@case
def every_level_that_a_recipe_has_is_planned(weft):
    """A norm into the output keeps its statistic at whole. A recipe that saves no product has no selective level."""
    block = PARALLEL["kinds"][0]["steps"]
    last = {"op": "norm", "kind": "rms", "in": "z", "out": "y", "epsilon": 1e-5, "name": "last"}
    recipes = {"a norm at the end": [*block[:-1], {**block[-1], "out": "z"}, last],
               "no product is saved": [block[0], {"op": "product", "in": "norm", "out": "y", "columns": "hidden",
                                                  "add": "x", "name": "p"}]}
    for name, steps in recipes.items():
        config = parallel()
        kind = config["model"]["kinds"][0]
        kind["steps"] = steps
        if name == "no product is saved":
            kind.pop("define"), kind.pop("demands")
        file, had = weft.write("run.json", config), set()
        for level in ("light", "selective", "medium", "deep", "whole"):
            code, _, told = weft.run("plan", file, "--set", f"plan.recompute={level}", "-o", "plan.json")
            assert code == 0 or code == 65 and "no layer of the model has such a level; layers have: " in told, told
            had |= {level} if code == 0 else set()
        assert "whole" in had and ("selective" in had) == (name == "a norm at the end"), (name, had)
        weft.expect(0, "plan", file, "--set", "plan.recompute=auto", "-o", "plan.json")
        ends = [trained(weft, config, "--set", f"plan.recompute={level}") for level in ("none", "whole")]
        assert ends[0] == ends[1], name


@case
def a_default_below_zero_is_read_back(weft):
    config = parallel()
    config["model"]["kinds"][0]["keys"].append({"name": "shift", "type": "number", "default": -1.5})
    printed = weft.expect(0, "check", weft.write("run.json", config), "--print")
    assert weft.expect(0, "check", weft.write("printed.json", printed), "--print") == printed
    trained(weft, config)


@case
def requests_that_make_no_sense_are_refused(weft):
    for arguments, says in ((["--kind", "lama_block"], "did you mean \"llama_block\"?"),
                            (["--kind", "moe_block"], "planning alone"), ([], "give a PLAN"),
                            (["--kind", "linear", "plan.json"], "give one of them")):
        weft.expect(64, "explain", *arguments, says=says)
    file = weft.write("run.json", parallel())
    weft.expect(0, "plan", file, "--set", "model.kinds.0.keys.3.default=64", "-o", "plan.json")
    weft.expect(0, "plan", file, "--set", "model.layers.1.rope_base=100", "-o", "plan.json")
    renamed = parallel()
    renamed["model"]["kinds"][0]["keys"][4]["name"] = "turns"
    renamed["model"]["kinds"][0]["steps"][2]["base"] = "turns"
    file = weft.write("run.json", renamed)
    weft.expect(0, "plan", file, "--set", "model.layers.1.turns=100", "-o", "plan.json")
    weft.expect(64, "plan", file, "--set", "model.layers.1.truns=100", says="no key \"model.layers.1.truns\"")
    weft.expect(65, "plan", file, "--set", "model.layers.0.turns=100", says="unknown key")


main(sys.argv[1])
