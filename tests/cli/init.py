#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weft init` writes a config that runs, and nothing over another file."""
import json
import os
import sys

from tap import case, main

PROSE = "It was the best of times, it was the worst of times. " * 40
LLAMA = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 256, "max_position_embeddings": 64,
         "rms_norm_eps": 1e-5, "hidden_act": "silu", "tie_word_embeddings": True}


def commands_of(told):
    """The commands that init ends with."""
    return [line.strip().removeprefix("next: ").split() for line in told.splitlines() if "weft " in line]


@case
def a_text_of_ones_own_trains_at_once(weft):
    weft.write("prose.txt", PROSE)
    told = weft.expect(0, "init", "--data", "prose.txt", "--model", "gpt-tiny", "-n", "2", "--memory-limit", "1GiB")
    commands = commands_of(told)
    assert [words[:2] for words in commands] == [["weft", verb] for verb in ("check", "best", "train")], told
    weft.expect(0, *commands[0][1:])
    weft.expect(0, *commands[2][1:], "--set", "train.steps=2", "--run", "run")
    config = json.loads((weft.directory / "run.json").read_text())
    assert config["cluster"]["ranks"] == 2 and config["cluster"]["memory_limit"] == "1GiB"
    assert all("$comment" in part for part in (config, config["cluster"], config["train"], config["plan"]))


@case
def writes_nothing_over(weft):
    weft.write("prose.txt", PROSE)
    mine = weft.write("run.json", "mine")
    weft.expect(73, "init", "--data", "prose.txt", says="run.json: is there already")
    weft.expect(73, "init", "--data", "prose.txt", "-o", "run.json", says="run.json: is there already")
    assert open(mine, encoding="utf-8").read() == "mine"
    weft.expect(0, "init", "other.json", "--data", "prose.txt", "--model", "gpt-tiny")
    weft.expect(64, "init", "a.json", "-o", "b.json", says="give one of them")


@case
def refuses_before_it_writes(weft):
    weft.write("prose.txt", PROSE)
    for code, says, *flags in (
            (65, "empty.txt: is empty", "--data", weft.write("empty.txt", "")),
            (66, "none.txt", "--data", "none.txt"),
            (65, "use a longer file", "--data", weft.write("short.txt", "ab")),
            (66, "did you mean gpt-tiny?", "--data", "prose.txt", "--model", "gpt-tinny"),
            (66, "did you mean h100-8?", "--data", "prose.txt", "--cluster", "h100-9"),
            (66, "none/config.json", "--data", "prose.txt", "--hf", "none/config.json"),
            (64, "give one of them", "--data", "prose.txt", "--hf", "hf", "--model", "gpt-tiny"),
            (65, "memory_limit", "--data", "prose.txt", "--memory-limit", "24G")):
        weft.expect(code, "init", "new.json", *flags, says=says)
        assert not os.path.exists(weft.path("new.json")), flags
    os.makedirs(weft.path("closed"))
    os.chmod(weft.path("closed"), 0o555)
    if os.getuid() != 0:  # root may write anywhere
        weft.expect(73, "init", "closed/run.json", "--data", "prose.txt", says="closed/run.json: cannot write there")
    weft.expect(73, "init", "none/run.json", "--data", "prose.txt", says="none/run.json: cannot write there")


@case
def other_machines_and_models(weft):
    """Without this machine the commands plan, and a model of Hugging Face is named by its path."""
    os.makedirs(weft.path("hf"))
    weft.write("hf/config.json", LLAMA)
    weft.write("prose.txt", PROSE)
    told = weft.expect(0, "init", "far.json", "--data", "prose.txt", "--hf", "hf", "--cluster", "h100-8",
                       "--memory-limit", "1GiB")
    plan = commands_of(told)[-1]
    assert plan[:3] == ["weft", "plan", "far.json"], told
    weft.expect(0, *plan[1:], "--planner", "greedy")
    config = json.loads((weft.directory / "far.json").read_text())
    assert config["cluster"]["ranks"] == 8 and config["cluster"]["memory_limit"] == "1GiB", config
    weft.expect(0, "init", "near.json", "--data", "prose.txt", "--hf", "hf/config.json", "-n", "1")
    weft.expect(0, "check", "near.json")


@case
def lists_what_is_shipped(weft):
    told = weft.expect(0, "init", "--list")
    for name in ("llama-3-8b", "gpt-10m", "h100-8"):
        assert name in told, told
    assert not os.path.exists(weft.path("run.json"))


main(sys.argv[1])
