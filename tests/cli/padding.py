#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Samples of different lengths: an encoder's attention leaves out padding, in every plan with the same bits. Files of
samples may have tokens."""
import importlib.util
import json
import os
import random
import struct
import subprocess
import sys

from configs import tiny
from tap import Skip, case, main

SEQ, VOCAB, CLASSES, PADDING, MASK = 16, 64, 5, 9, 63
EXAMPLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "tokens.py")
LINK = {"alpha": "10us", "bandwidth": "1GB/s"}
HOST = {"memory_limit": "1GiB", "down": LINK, "up": LINK, "update": "1GB/s"}


def model(masked, positions=SEQ):
    head = {"type": "lm_head", "vocab": VOCAB, "tie": "wte"} if masked else {
        "type": "classifier", "classes": CLASSES, "first": True, "pooler": True}
    return {"layers": [
        {"name": "wte", "type": "embedding", "vocab": VOCAB, "positions": positions, "hidden": 16},
        {"name": "ln_e", "type": "layer_norm", "hidden": 16},
        {"name": "h.{i}", "type": "encoder_block", "repeat": 3, "hidden": 16, "heads": 2, "ffn": 32, "post_norm": True},
        {"name": "head", "hidden": 16, **head}]}


def pack(samples, version=2, width=1):
    """The bytes of a file: tokens and a label of each sample."""
    out = struct.pack("<6i", 20261130, version, len(samples), len(samples[0][0]) // width, width, 4) + bytes(1000)
    return out + b"".join(struct.pack(f"<{len(tokens) + 1}i", *tokens, label) for tokens, label in samples)


def seeded():
    seed = int(os.environ.get("WEFT_TEST_SEED") or int.from_bytes(os.urandom(4), "little"))
    print(f"# seed {seed}")
    return random.Random(seed)


def samples_of(rng, n, least=1, most=SEQ):
    """Samples of `most` tokens, which end with padding after `least` tokens or more."""
    out = []
    for _ in range(n):
        length = rng.randint(least, most)
        tokens = [rng.choice([t for t in range(VOCAB - 1) if t != PADDING]) for _ in range(length)]
        out.append((tokens + [PADDING] * (most - length), rng.randrange(CLASSES)))
    return out


def run_of(masked, padding=True, **changes):
    settings = {"train__masked": {"token": MASK, "share": 0.4}} if masked else {}
    if padding:
        settings["train__padding"] = {"token": PADDING}
    return tiny(**{"model": model(masked), "cluster__ranks": 1, "plan__planner": "all-sdp", "train__steps": 4,
                   "train__data": "train.samples", "train__checkpoint": {"at_end": True}, **settings, **changes})


def train(weft, name, config):
    """Losses by step, and the fingerprint of all parameters."""
    weft.expect(0, "train", weft.write(f"{name}.json", config), "--run", name, "-q")
    with open(weft.path(f"{name}/metrics.jsonl"), encoding="utf-8") as file:
        losses = [line["loss"] for line in map(json.loads, file) if "loss" in line]
    with open(weft.path(f"{name}/result.json"), encoding="utf-8") as file:
        return losses, json.load(file)["fingerprint"]


@case
def every_plan_has_the_same_bits(weft):
    weft.write("train.samples", pack(samples_of(seeded(), 24)))
    plans = {
        "one": {},
        "two": {"cluster__ranks": 2, "plan__planner": "all-fsdp"},
        "four": {"cluster__ranks": 4, "plan__planner": "all-sdp"},
        "whole": {"plan__recompute": "whole"},
        "selective": {"plan__recompute": "selective", "cluster__ranks": 2, "plan__planner": "all-fsdp"},
        "host": {"plan__planner": "ilp", "cluster__host": HOST, "cluster__ranks": 2,
                 "plan__offload": {"state": ["device"], "activations": ["host"], "inputs": ["host"]}},
    }
    for masked in True, False:
        outcomes = {name: train(weft, f"{name}-{masked}", run_of(masked, train__batch=8, train__group=1, **changes))
                    for name, changes in plans.items()}
        assert all(outcome == outcomes["one"] for outcome in outcomes.values()), outcomes
    turns = [train(weft, order, run_of(False, train__batch=8, train__reduce="step", plan__planner="ilp",
                                       plan__micro_step_order=order)) for order in ("step", "layer")]
    assert turns[0] == turns[1], turns


@case
def padding_has_no_part_in_a_loss(weft):
    """Samples of ten tokens have the same losses with and without padding; visible padding changes them."""
    samples = samples_of(seeded(), 16, least=10, most=10)
    longer = [(tokens + [PADDING] * (SEQ - 10), label) for tokens, label in samples]
    weft.write("train.samples", pack(samples))
    weft.write("longer.samples", pack(longer))
    fast = {"train__optimizer__lr": 1e-2, "train__steps": 12}
    short, _ = train(weft, "short", run_of(False, train__seq_len=10, **fast))
    fast["train__data"] = "longer.samples"
    hidden, _ = train(weft, "hidden", run_of(False, **fast))
    seen, _ = train(weft, "seen", run_of(False, padding=False, **fast))
    print("#", max(abs(a - b) for a, b in zip(short, hidden)), max(abs(a - b) for a, b in zip(short, seen)))
    assert all(abs(a - b) < 1e-5 for a, b in zip(short, hidden)), (short, hidden)
    assert any(abs(a - b) > 1e-4 for a, b in zip(short, seen)), (short, seen)
    # Masked tokens draw by their place in the batch, so only the tokens that are seen differ.
    token = {"token": PADDING, "hidden": False}
    one, _ = train(weft, "one", run_of(True, train__data="longer.samples"))
    other, _ = train(weft, "other", run_of(True, train__data="longer.samples", train__padding=token))
    assert one != other, (one, other)


def fused():
    """A classifier with one layer before the head: its kind embeds, normalises, attends and multiplies."""
    size = {"heads": "heads", "kv_heads": "heads", "head_dim": "hidden/heads"}
    kind = {"kind": "first_block", "input": "tokens", "keys": [{"name": name} for name in ("vocab", "hidden", "heads")],
            "steps": [
                {"op": "embed", "in": "x", "out": "rows", "vocab": "vocab", "positions": str(SEQ), "columns": "hidden",
                 "name": "table"},
                {"op": "norm", "kind": "rms", "in": "rows", "out": "normal", "epsilon": 1e-5, "name": "norm"},
                {"op": "product", "in": "normal", "out": "qkv", "columns": "3*hidden", "name": "qkv"},
                {"op": "attend", "in": ["qkv[0:hidden]", "qkv[hidden:2*hidden]", "qkv[2*hidden:3*hidden]"],
                 "out": "attended", "save": "log_sums", **size},
                {"op": "product", "in": "attended", "out": "y", "columns": "hidden", "add": "rows", "name": "proj"}]}
    head = {"name": "head", "type": "classifier", "hidden": 16, "classes": CLASSES, "first": True, "pooler": True}
    return {"kinds": [kind], "layers": [
        {"name": "first", "type": "first_block", "vocab": VOCAB, "hidden": 16, "heads": 2}, head]}


@case
def a_first_layer_with_attention_leaves_out_padding(weft):
    samples = samples_of(seeded(), 16, least=10, most=10)
    weft.write("train.samples", pack(samples))
    weft.write("longer.samples", pack([(tokens + [PADDING] * (SEQ - 10), label) for tokens, label in samples]))
    fast = {"model": fused(), "train__optimizer__lr": 1e-2, "train__steps": 12}
    short, _ = train(weft, "short", run_of(False, train__seq_len=10, **fast))
    fast["train__data"] = "longer.samples"
    hidden, _ = train(weft, "hidden", run_of(False, **fast))
    assert all(abs(a - b) < 1e-5 for a, b in zip(short, hidden)), (short, hidden)
    fast.update(train__batch=8, train__group=1)
    outcomes = [train(weft, f"{planner}-{ranks}", run_of(False, **{**fast, "cluster__ranks": ranks, "plan__planner": planner}))
                for planner, ranks in (("all-sdp", 1), ("all-fsdp", 2), ("all-sdp", 4))]
    assert outcomes[0] == outcomes[1] == outcomes[2], outcomes


@case
def a_sample_of_padding_alone_trains(weft):
    samples = samples_of(seeded(), 6) + [([PADDING] * SEQ, 1)] * 6
    weft.write("train.samples", pack(samples))
    for masked in True, False:
        losses, _ = train(weft, f"run-{masked}", run_of(masked))
        assert all(loss == loss for loss in losses), losses


@case
def files_of_token_samples_are_told_and_refused(weft):
    samples = samples_of(seeded(), 9)
    weft.write("train.samples", pack(samples))
    told = json.loads(weft.expect(0, "data", "info", "train.samples", "--json"))
    assert told["form"] == "token_samples" and told["samples"] == 9 and told["tokens"] == SEQ, told
    assert told["least_vocab"] == max(max(tokens) for tokens, _ in samples) + 1, told
    assert told["least_classes"] == max(label for _, label in samples) + 1, told
    weft.write("label.samples", pack(samples + [(samples[0][0], CLASSES)]))
    weft.write("token.samples", pack(samples + [([VOCAB] * SEQ, 0)]))
    weft.write("floats.samples", pack(samples, version=1))
    numbers = {"layers": [{"name": "in", "type": "linear", "hidden": 1, "outputs": 8},
                          {"name": "head", "type": "classifier", "hidden": 8, "classes": CLASSES}]}
    causal = {**model(True), "layers": model(True)["layers"]}
    for changes, says in (
            ({"train__data": "label.samples"}, "sample 9 (from 0) has label 5"),
            ({"train__data": "token.samples"}, "token 0 of sample 9 (from 0) is 64"),
            ({"train__data": "floats.samples"}, "is a file of samples of numbers"),
            ({"train__seq_len": 8}, "has samples of 16 tokens, and train.seq_len is 8"),
            ({"model": numbers, "padding": False}, "is a file of samples of tokens, and layer in reads numbers"),
            ({"model": causal}, "give train.masked")):
        weft.expect(65, "train", weft.write("bad.json", run_of(False, **changes)), "--run", "bad", "-q", says=says)


@case
def a_negative_token_is_told(weft):
    samples = samples_of(seeded(), 3) + [([1, -7] + [2] * (SEQ - 2), 0)]
    weft.write("train.samples", pack(samples))
    weft.expect(65, "data", "info", "train.samples", says="token 1 of sample 3 (from 0) is -7: tokens are from 0 on")


@case
def the_smaller_vocabulary_bounds_tokens(weft):
    """A masked token is a target of the last layer too, whose vocabulary may be smaller than the embedding's."""
    samples = samples_of(seeded(), 9)
    weft.write("train.samples", pack(samples))
    weft.write("token.samples", pack(samples + [([VOCAB - 1] * SEQ, 0)]))
    smaller = model(True)
    smaller["layers"][-1] = {"name": "head", "type": "lm_head", "hidden": 16, "vocab": VOCAB - 1}
    train(weft, "run", run_of(True, model=smaller))
    config = run_of(True, model=smaller, train__data="token.samples")
    weft.expect(65, "train", weft.write("bad.json", config), "--run", "bad", "-q",
                says="token 0 of sample 9 (from 0) is 63, and the model has a vocabulary of 63")


@case
def held_out_tokens_have_the_form_of_the_training_data(weft):
    weft.write("train.samples", pack(samples_of(seeded(), 9)))
    weft.write("held.bin", struct.pack("<3i", 20240520, 1, 64) + bytes(1012) + bytes(128))
    config = run_of(True, train__validation={"data": "held.bin", "every": 1})
    weft.expect(65, "train", weft.write("bad.json", config), "--run", "bad", "-q", says="is a token file, and")


@case
def settings_that_hide_nothing_are_refused(weft):
    weft.write("train.samples", pack(samples_of(seeded(), 4)))
    causal = model(False)
    causal["layers"][2] = {"name": "h", "type": "transformer_block", "hidden": 16, "heads": 2, "ffn": 32}
    for masked, changes, says in (
            (True, {"train__masked": {"token": PADDING}}, "its token is train.padding's"),
            (True, {"train__padding": {"token": VOCAB}}, "outside the vocabulary"),
            (False, {"train__padding": {"token": PADDING, "hidden": False}}, "must read tokens and predict tokens"),
            (False, {"model": causal}, "no attention of the model leaves out padding"),
            (False, {"train__masked": {"token": MASK}}, "must read tokens and predict tokens")):
        code, _, err = weft.run("train", weft.write("bad.json", run_of(masked, **changes)), "--run", "bad", "-q")
        assert code == 65 and says in " ".join(err.split()), (code, err)


@case
def the_example_writes_files_that_train(weft):
    if importlib.util.find_spec("numpy") is None:
        raise Skip("no numpy")
    samples = samples_of(seeded(), 8)
    with open(weft.path("make.py"), "w", encoding="utf-8") as file:
        file.write(f"import numpy\nnumpy.save('tokens.npy', {[tokens for tokens, _ in samples]})\n"
                   f"numpy.save('labels.npy', {[label for _, label in samples]})\n")
    subprocess.run([sys.executable, "make.py"], check=True, cwd=weft.directory)
    subprocess.run([sys.executable, EXAMPLE, "tokens.npy", "--labels", "labels.npy", "-o", "train.samples"], check=True,
                   cwd=weft.directory)
    with open(weft.path("train.samples"), "rb") as file:
        assert file.read() == pack(samples)
    train(weft, "run", run_of(False))


if __name__ == "__main__":
    main(sys.argv[1])
