#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exports of a model of Hugging Face have the names of its modules."""
import json
import os
import subprocess
import sys

from configs import tiny
from tap import Skip, case, main

LLAMA = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 64, "num_hidden_layers": 3,
         "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 256,
         "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "hidden_act": "silu", "tie_word_embeddings": False}
GPT2 = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_embd": 64, "n_layer": 2, "n_head": 4,
        "n_positions": 64, "vocab_size": 256}
VIT = {"model_type": "vit", "architectures": ["ViTForImageClassification"], "hidden_size": 64, "num_hidden_layers": 2,
       "num_attention_heads": 4, "intermediate_size": 96, "image_size": 32, "patch_size": 8, "num_labels": 5}
MODELS = {"vit": VIT, "llama": LLAMA, "tied": {**LLAMA, "tie_word_embeddings": True},
          "qwen3": {**LLAMA, "model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "head_dim": 16}, "gpt2": GPT2}
PLAN = ("--cluster", "h100-8", "--work-limit", "100M", "-q")
# Looks all modules up in a model without memory, and applies the prefix lists of the snippet by name.
LOOK_UP = """
import json, sys, torch, transformers
config = transformers.AutoConfig.from_pretrained(sys.argv[1])
with torch.device("meta"):
    of = transformers.AutoModelForImageClassification if config.model_type == "vit" else transformers.AutoModelForCausalLM
    model = of.from_config(config)
modules = dict(model.named_modules())
for unit in json.load(open(sys.argv[2]))["units"]:
    for name in unit["modules"]:
        modules[name]
parameters = {name for name, _ in model.named_parameters()}
held = {name for name in parameters for unit in json.load(open(sys.argv[2]))["units"] for module in unit["modules"]
        if name.startswith(module + ".")}
assert held == parameters, parameters - held
"""


def export(weft, name, *flags):
    """Returns the export of a plan for FSDP2, in name.export.json."""
    os.makedirs(weft.path(name), exist_ok=True)
    weft.write(f"{name}/config.json", MODELS[name])
    weft.expect(0, "plan", "--hf", name, *PLAN, "--for", "fsdp2", "-o", f"{name}.json", *flags)
    weft.expect(0, "export", f"{name}.json", "--to", "fsdp2", "-o", f"{name}.export.json")
    return json.loads((weft.directory / f"{name}.export.json").read_text())


def modules_of(said):
    return [module for unit in said["units"] for module in unit["modules"]]


@case
def modules_are_those_of_the_model(weft):
    layers = [f"model.layers.{i}" for i in range(3)]
    assert modules_of(export(weft, "llama")) == ["model.embed_tokens", *layers, "model.norm", "lm_head"]
    tied = export(weft, "tied")
    assert sorted(modules_of(tied)) == sorted(["model.embed_tokens", "lm_head", *layers, "model.norm"]), tied["units"]
    assert any(unit["modules"] == ["model.embed_tokens", "lm_head"] for unit in tied["units"]), tied["units"]
    names = modules_of(export(weft, "gpt2"))
    assert {"transformer.wte", "transformer.wpe", "transformer.h.0", "transformer.ln_f", "lm_head"} <= set(names), names
    names = modules_of(export(weft, "vit"))
    assert names == ["vit.embeddings.patch_embeddings.projection", "vit.embeddings", "vit.layers.0", "vit.layers.1",
                     "vit.layernorm", "classifier"], names
    snippet = weft.expect(0, "export", "llama.json", "--to", "fsdp2", "--snippet")
    assert '["model.layers.0"]' in snippet, snippet


@case
def a_plan_file_names_the_layers_of_its_units(weft):
    """A fused unit has its first and last layer, a shared tensor all that read it."""
    export(weft, "tied")
    problem = json.loads((weft.directory / "tied.json").read_text())["problem"]
    units = {d["name"]: d.get("layers") or d.get("tied_layers") for d in problem["decisions"] if "layer" not in d}
    assert [0, 5] in units.values() or [0, 4] in units.values(), units
    assert problem["modules"][1] == "model.layers.0", problem["modules"]
    weft.expect(0, "plan", "--model", "gpt-tiny", *PLAN, "-o", "own.json")
    problem = json.loads((weft.directory / "own.json").read_text())["problem"]
    assert "modules" not in problem and all("layers" in d or "tied_layers" in d for d in problem["decisions"]
                                            if "layer" not in d), problem["decisions"]


@case
def an_older_plan_is_planned_again(weft):
    export(weft, "llama")
    content = json.loads((weft.directory / "llama.json").read_text())
    for decision in content["problem"]["decisions"]:
        decision.pop("layers", None)
    weft.write("older.json", content)
    weft.expect(0, "explain", "older.json")
    weft.expect(65, "export", "older.json", "--to", "fsdp2", says="plan again with this version")


@case
def every_target_takes_any_plan(weft):
    """Megatron's and DeepSpeed's exports come from plans of Weft's own and of PyTorch's, or tell the true reason."""
    config = weft.write("run.json", tiny())
    for name, flags in (("own", ()), ("torch", ("--for", "fsdp2"))):
        weft.expect(0, "plan", config, "-q", "-o", f"{name}.json", *flags)
        for target in ("megatron-fsdp", "deepspeed"):
            said = json.loads(weft.expect(0, "export", f"{name}.json", "--to", target, "--config", config))
            assert said["target"] == target, said
    weft.expect(78, "export", "torch.json", "--to", "deepspeed",
                says=["the policy zero1, which it may not have", "A --config gives the policies"])
    export(weft, "llama")
    assert "model.layers.2" in modules_of(json.loads(weft.expect(0, "export", "llama.json", "--to", "megatron-fsdp")))


@case
def transformers_has_the_modules(weft):
    python = os.environ.get("WEFT_TORCH")
    if not python:
        raise Skip("WEFT_TORCH names no Python with torch and transformers")
    for name in MODELS:
        export(weft, name)
        done = subprocess.run([python, "-c", LOOK_UP, weft.path(name), weft.path(f"{name}.export.json")],
                              capture_output=True, text=True, check=False, timeout=200)
        assert done.returncode == 0, (name, done.stderr[-2000:])


main(sys.argv[1])
