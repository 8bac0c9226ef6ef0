# SPDX-License-Identifier: Apache-2.0
"""Llama's kinds: training under every policy and in every way, generation, and requests that are refused."""
import array
import ast
import json
import sys

from configs import tiny
from saved import parameters
from tap import case, main

BLOCK = {"name": "b.{i}", "type": "llama_block", "repeat": 3, "hidden": 32, "heads": 4, "kv_heads": 2, "ffn": 48}


def llama(block=None, head=None, **changes):
    layers = [{"name": "wte", "type": "embedding", "vocab": 256, "hidden": 32}, {**BLOCK, **(block or {})},
              {"name": "norm", "type": "rms_norm", "hidden": 32, "eps": 1e-6},
              {"name": "head", "type": "lm_head", "vocab": 256, "hidden": 32, "bias": False, **(head or {})}]
    return tiny(**{"model": {"layers": layers}, "train__steps": 4, "train__seq_len": 24, "train__micro_batch": 4,
                   **changes})


def trained(weft, config, *flags):
    """Returns the fingerprint and the losses of a run."""
    weft.expect(0, "train", weft.write("run.json", config), "--run", weft.fresh("run"), "-q", *flags)
    with open(weft.path("run/metrics.jsonl"), encoding="utf-8") as file:
        losses = [line["loss"] for line in map(json.loads, file) if "loss" in line]
    return parameters(weft, "run"), losses


LINK = {"alpha": "1us", "bandwidth": "5GB/s"}
HOST = {"memory_limit": "1GiB", "down": LINK, "up": LINK, "update": "1GB/s"}
WAYS = [[f"plan.planner={planner}", f"plan.recompute={level}"]
        for planner, level in (("all-zero1", "none"), ("all-sdp", "selective"), ("all-fsdp", "whole"))]
OFFLOADED = ["plan.planner=greedy", "plan.offload={\"activations\": [\"host\"], \"state\": [\"host\"]}"]


@case
def every_way_to_train_ends_in_one_fingerprint(weft):
    """All policies, saved activations restored or offloaded; in each dtype, and with both cadences."""
    for compute, cadence in (("f32", "step"), ("f32", "micro_step"), ("bf16", "step"), ("f16", "micro_step")):
        config = llama(train__precision={"compute": compute}, train__grad_accum=2, train__reduce=cadence,
                       cluster__device__flops={"f32": "50G", "bf16": "50G", "f16": "50G"},
                       cluster__host=HOST)
        planner = "all-dp" if cadence == "step" else "all-fsdp"
        first, losses = trained(weft, config, "--set", f"plan.planner={planner}", "--set", "plan.recompute=none")
        assert losses[-1] < losses[0] < 6, losses
        for way in (*WAYS, OFFLOADED):
            found, _ = trained(weft, config, *(word for change in way for word in ("--set", change)))
            assert found == first, (compute, cadence, way)


@case
def every_variant_learns(weft):
    """Biases, heads of another size, scaled positions, tied heads, no sharing and one head of keys; Qwen 3's norms."""
    seen = set()
    for block, head in (({}, {}), ({"qkv_bias": True}, {}), ({"head_dim": 12}, {}), ({"kv_heads": 1}, {"tie": "wte"}),
                        ({"kv_heads": 4}, {}), ({"rope_base": 100}, {}), ({"eps": 0.01}, {}),
                        ({"rope_factor": 8, "rope_original": 16}, {}), ({"type": "qwen3_block"}, {}), ({"window": 5}, {}),
                        ({"type": "gemma_block"}, {}),
                        ({"type": "gemma2_block", "window": 5, "attention_cap": 3, "query_scalar": 4}, {"logit_cap": 5}),
                        ({"type": "gemma3_block", "window": 5}, {"tie": "wte"})):
        found, losses = trained(weft, llama(block, head, train__steps=10, train__optimizer={"type": "adamw", "lr": 0.01}))
        assert losses[-1] < losses[0] - 0.5, (block, losses)
        seen.add(found)
    assert len(seen) == 13, "two variants are one computation"


@case
def generation_with_kept_keys_and_values_is_that_of_the_whole(weft):
    for block in ({}, {"type": "qwen3_block", "head_dim": 16}, {"type": "gemma2_block", "window": 7, "attention_cap": 3}):
        trained(weft, llama(block, train__steps=30, train__seq_len=48, train__checkpoint={"at_end": True},
                            train__optimizer={"type": "adamw", "lr": 0.01}))
        said = [weft.expect(0, "generate", "run", "--prompt", "The program", "--tokens", "60", "--json", "--temperature",
                            "0.8", *more) for more in ([], ["--no-cache"])]
        tokens = [json.loads(text)["tokens"] for text in said]
        assert len(tokens[0]) == 60 and tokens[0] == tokens[1], tokens


def array_of(path):
    """Rows of a file of NumPy, and the length of its header."""
    with open(path, "rb") as file:
        bytes_ = file.read()
    assert bytes_[:8] == b"\x93NUMPY\x01\0", bytes_[:8]
    header = 10 + int.from_bytes(bytes_[8:10], "little")
    keys = ast.literal_eval(bytes_[10:header].decode())
    assert keys["descr"] == "<f4" and not keys["fortran_order"], keys
    rows, columns = keys["shape"]
    assert len(bytes_) == header + 4 * rows * columns, (len(bytes_), keys)
    numbers = array.array("f", bytes_[header:])
    return [numbers[i * columns:(i + 1) * columns] for i in range(rows)], header


@case
def logits_are_of_the_token_after_each(weft):
    """Rows are padded in memory if the vocabulary is odd. A text longer than train.seq_len has its last rows."""
    model = llama(train__steps=30, train__seq_len=48, train__checkpoint={"at_end": True},
                  train__optimizer={"type": "adamw", "lr": 0.01})
    model["model"]["layers"][0]["vocab"] = model["model"]["layers"][3]["vocab"] = 261
    trained(weft, model)
    for prompt, wanted in (("The", 20), ("The program", 60)):
        said = weft.expect(0, "generate", "run", "--prompt", prompt, "--tokens", str(wanted), "--json",
                           "--temperature", "0", "--logits", "logits.npy")
        tokens = [*prompt.encode(), *json.loads(said)["tokens"]]
        rows, header = array_of(weft.path("logits.npy"))
        assert header % 64 == 0 and len(rows) == min(len(tokens), 48) and len(rows[0]) == 261, header
        if len(tokens) <= 48:
            likeliest = [max(range(256), key=row.__getitem__) for row in rows]
            assert likeliest[len(prompt) - 1:-1] == tokens[len(prompt):], (likeliest, tokens)
        assert max(max(row) for row in rows) > 1, "probabilities are no logits"
    weft.expect(73, "generate", "run", "--tokens", "1", "--logits", "no/folder/logits.npy", says="no/folder")


@case
def a_checkpoint_of_one_recipe_is_not_resumed_under_another(weft):
    """Each change is another function, with the same tensors or with others; the same recipe goes on."""
    trained(weft, llama(train__checkpoint={"at_end": True}))
    for block, says in (({"rope_base": 100}, "rope_base is 100, and was 10000"), ({"eps": 0.01}, "eps is 0.01"),
                        ({"rope_factor": 8, "rope_original": 16}, "rope_factor is 8"), ({"window": 24}, "window is 24"),
                        ({"kv_heads": 4}, "attn.qkv.weight is [64, 32]"), ({"qkv_bias": True}, "qkv.bias is missing"),
                        ({"type": "qwen3_block"}, "q_norm.weight is missing"),
                        ({"type": "transformer_block", "kv_heads": None}, "ln1.weight is missing")):
        model = llama(block, train__steps=6)
        entry = model["model"]["layers"][1]
        model["model"]["layers"][1] = {key: value for key, value in entry.items() if value is not None}
        weft.expect(65, "train", weft.write("other.json", model), "--resume=run/checkpoints/step-4", "--run",
                    weft.fresh("other"), "-q", says=says)
    weft.expect(0, "train", weft.write("more.json", llama(train__steps=6)), "--resume=run/checkpoints/step-4", "--run",
                weft.fresh("more"), "-q")


@case
def sizes_that_cannot_be_are_refused(weft):
    refused = (
        ({"head_dim": 7}, ["head_dim", "even number"]),
        ({"rope_factor": 4, "rope_low": 4}, ["rope_low", "rope_high"]),
        ({"kv_heads": 3}, ["heads 4 is not a multiple of kv_heads 3"]))
    for block, says in refused:
        weft.expect(65, "train", weft.write("run.json", llama(block)), "--run", weft.fresh("run"), "-q", says=says)


main(sys.argv[1])
