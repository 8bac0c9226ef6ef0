#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Labels that training leaves out: padding and masked tokens. Their number differs between ranks and micro-steps, and
bits do not depend on the division."""
import json
import os
import sys

from configs import tiny
from tap import case, main

BERT = [
    {"name": "wte", "type": "embedding", "vocab": 256, "positions": 16, "hidden": 16},
    {"name": "types", "type": "token_types", "hidden": 16, "types": 2},
    {"name": "ln_e", "type": "layer_norm", "hidden": 16, "eps": 1e-12},
    {"name": "h.{i}", "type": "encoder_block", "repeat": 2, "hidden": 16, "heads": 2, "ffn": 32, "post_norm": True,
     "eps": 1e-12},
    {"name": "transform", "type": "linear", "hidden": 16, "outputs": 16},
    {"name": "gelu", "type": "gelu", "hidden": 16, "erf": True},
    {"name": "ln_f", "type": "layer_norm", "hidden": 16, "eps": 1e-12},
    {"name": "head", "type": "lm_head", "vocab": 256, "hidden": 16, "tie": "wte"}]
VIT = [
    {"name": "patches", "type": "linear", "hidden": 12, "outputs": 16},
    {"name": "positions", "type": "positions", "hidden": 16, "positions": 16, "class_token": True},
    {"name": "h.{i}", "type": "encoder_block", "repeat": 2, "hidden": 16, "heads": 2, "ffn": 32, "eps": 1e-12},
    {"name": "ln_f", "type": "layer_norm", "hidden": 16, "eps": 1e-12},
    {"name": "head", "type": "classifier", "hidden": 16, "classes": 10, "first": True}]
MASKED = {"token": 255, "share": 0.2}


def train(weft, name, **changes):
    """Losses by step, and the fingerprint of all parameters."""
    path = weft.write(f"{name}.json", tiny(train__group=1, train__checkpoint__at_end=True, **changes))
    code, _, err = weft.run("train", path, "--run", name, "--progress=none")
    assert code == 0, err
    with open(os.path.join(weft.directory, name, "metrics.jsonl"), encoding="utf-8") as file:
        losses = [line["loss"] for line in map(json.loads, file) if "loss" in line]
    with open(os.path.join(weft.directory, name, "result.json"), encoding="utf-8") as file:
        return losses, json.load(file)


@case
def any_ranks_give_the_same_bits(weft):
    outcomes = []
    for ranks, policy in (1, "all-sdp"), (2, "all-fsdp"), (4, "all-sdp"):
        losses, result = train(weft, f"masked{ranks}", cluster__ranks=ranks, train__batch=8, plan__planner=policy,
                               model__layers=BERT, train__masked=MASKED, train__padding={"token": 32})
        outcomes.append((losses, result["fingerprint"]))
    assert outcomes[0] == outcomes[1] == outcomes[2], outcomes
    other, _ = train(weft, "next", cluster__ranks=1, train__batch=8, plan__planner="all-sdp",
                     train__padding={"token": 32})
    assert len(other) == 3 and other != outcomes[0][0], other


@case
def an_encoder_classifies_recomputes_and_generates_nothing(weft):
    same = [train(weft, name, model__layers=VIT, plan__recompute=level)
            for name, level in (("kept", "none"), ("restored", "whole"))]
    assert same[0][0] == same[1][0] and same[0][1]["fingerprint"] == same[1][1]["fingerprint"], same
    train(weft, "bert", model__layers=BERT, train__masked=MASKED)
    code, _, err = weft.run("generate", "bert", "--prompt", "a", "--tokens", "1")
    assert code == 65 and "its attention sees later tokens" in err, (code, err)


@case
def a_step_without_targets_goes_on_and_validation_without_any_is_refused(weft):
    few = {"token": 255, "share": 1e-6}
    losses, _ = train(weft, "nothing", model__layers=BERT, train__masked=few)
    assert losses == [0, 0, 0], losses
    path = weft.write("blind.json", tiny(model__layers=BERT, train__masked=few,
                                         train__validation={"share": 0.1, "samples": 1, "every": 1}))
    weft.expect(65, "train", path, "--run", "blind", "-q", says="no target of the 1 held-out samples has a loss")


@case
def settings_that_cannot_be_are_refused(weft):
    for changes, text in (({"train__masked": {"token": 256}}, "outside the vocabulary"),
                          ({"train__padding": {"token": 3}, "model__layers": VIT}, "must read tokens")):
        path = weft.write("bad.json", tiny(**changes))
        code, _, err = weft.run("train", path, "--run", "bad", "--progress=none")
        assert code == 65 and text in " ".join(err.split()), (code, err)


main(sys.argv[1])
