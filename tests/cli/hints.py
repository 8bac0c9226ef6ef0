#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Advice can be followed, and another program's config is recognised."""
import json
import os
import re
import shutil
import sys

from configs import tiny
from tap import case, main

HUGGING_FACE = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_layer": 12}
DEEPSPEED = {"train_batch_size": 8, "zero_optimization": {"stage": 3}, "fp16": {"enabled": True}}


def step_of(weft):
    plan = json.loads((weft.directory / "plan.json").read_text(encoding="utf-8"))
    return plan["prediction"]["step_ns"]


@case
def configs_of_other_programs_are_called_what_they_are(weft):
    hugging = weft.write("config.json", HUGGING_FACE)
    for verb in ("check", "plan", "estimate", "train", "profile", "sweep"):
        for path, name in ((hugging, "a Hugging Face model's config"),
                           (weft.write("ds.json", DEEPSPEED), "DeepSpeed's config")):
            _, _, err = weft.run(verb, path)
            assert f"{path}: looks like {name}" in err and "unknown key" not in err, err
    _, _, err = weft.run("check", weft.write("run.json", dict(tiny(), model=hugging)))
    assert f"{hugging}: left out, so the defaults of transformers count: n_embd 768, n_head 12" in err, err
    full = dict(HUGGING_FACE, n_embd=48, n_head=4, n_positions=64, vocab_size=256)
    weft.write("hub.json", full)
    said = json.loads(weft.expect(0, "check", "gpt2", "--model", "hub.json", "--print", "--set",
                                  "model.layers.1.repeat=3", "--set", "train.seq_len=64"))
    assert [layer["name"] for layer in said["model"]["layers"]] == ["wte", "h.0", "h.1", "h.2", "ln_f", "head"], said
    weft.expect(66, "check", "gpt2", "--model", "none.json", says="none.json")
    model = weft.write("model.json", tiny()["model"])
    weft.expect(65, "check", model, says="is a model alone")
    weft.expect(0, "check", weft.write("run.json", dict(tiny(), model=model)))
    both = dict(tiny(), model_type="gpt2")
    weft.expect(65, "check", weft.write("both.json", both), says="$.model_type: unknown key")


@case
def a_shipped_config_is_found_by_its_name(weft):
    shipped = weft.expect(0, "check", "gpt-tiny", "--print")
    assert '"vocab"' in shipped
    said = weft.expect(0, "estimate", "gpt-tiny", "-n", "2")
    assert "gpt-tiny, 2 ranks" in said, said
    weft.expect(66, "estimate", "gpt-tinny", says="did you mean gpt-tiny?")
    weft.expect(66, "estimate", "nonsense", says="there are: bert-large, ")
    weft.expect(66, "estimate", "gpt-tiny.json", says="cannot read gpt-tiny.json")
    weft.expect(66, "estimate", "./gpt-tiny", says="cannot read ./gpt-tiny")
    weft.write("gpt-tiny", tiny(cluster__ranks=3))
    assert weft.expect(0, "check", "gpt-tiny", "--print") != shipped, "a file of that name is first"


@case
def an_installed_program_finds_them_too(weft):
    prefix = weft.path("prefix")
    os.makedirs(f"{prefix}/bin")
    os.makedirs(f"{prefix}/share/weft/configs/runs")
    shutil.copy(weft.program, f"{prefix}/bin/weft")
    weft.program = f"{prefix}/bin/weft"
    weft.expect(66, "check", "mine", says="no config is shipped")
    weft.write("prefix/share/weft/configs/runs/mine.json", tiny())
    weft.expect(0, "check", "mine")
    weft.expect(66, "check", "gpt-tiny", says="there are: mine")


@case
def memory_that_a_plan_asks_for_allows_its_step(weft):
    """A hint names a limit and a step. The planner has a plan there that is no slower."""
    unit_ns = {"us": 1e3, "ms": 1e6}
    for limit in (4180367, 4242606):
        work = ("plan", "gpt-tiny", "--work-limit", "100M", "-o", weft.path("plan.json"), "--memory-limit")
        code, _, err = weft.run(*work, f"{limit}B")
        found = re.search(r"\(--memory-limit (\d+)B\) would allow a step of ([\d.]+) (us|ms)", err)
        assert code == 0 and found and int(found[1]) > limit, err
        told_ns = float(found[2]) * unit_ns[found[3]]
        assert step_of(weft) > 1.01 * told_ns, err
        weft.expect(0, *work, f"{found[1]}B")
        assert step_of(weft) < 1.01 * told_ns, (limit, found[0], step_of(weft))


@case
def a_tight_limit_is_planned_in_small_pages_as_a_whole(weft):
    """With an open page size the plan is no slower than in pages of 4 KiB, and asks for no more memory."""
    work = ("plan", "llama-3-8b", "--work-limit", "100M", "--memory-limit", "21030318899B", "-o", weft.path("plan.json"))
    steps = {}
    for page in ("256KiB", "4KiB", None):
        _, _, err = weft.run(*work, *(("--set", f"cluster.page={page}") if page else ()))
        steps[page] = step_of(weft)
    assert steps[None] <= min(steps.values()) < steps["256KiB"], steps
    assert "more memory" not in err, err
    plan = json.loads((weft.directory / "plan.json").read_text(encoding="utf-8"))
    assert plan["pages"]["page_bytes"] == 4096, plan["pages"]["page_bytes"]


@case
def a_plan_without_its_profile_is_told_of_one_that_is_there(weft):
    config = weft.write("run.json", tiny(cluster__device=None, cluster__link=None))
    plan, kept = weft.path("plan.json"), weft.path("plan.profile.json")
    weft.expect(0, "plan", config, "-o", plan, "-q")
    verbs = (("train", config, "--plan", plan), ("verify", plan, "--config", config),
             ("simulate", plan, "--config", config))
    for arguments in verbs:
        weft.expect(64, *arguments, says=f"give --profile {kept}, which `weft plan` kept")
    for arguments in verbs[1:]:
        weft.expect(0, *arguments, "--profile", kept)
    os.remove(kept)
    for arguments in verbs:
        _, _, err = weft.run(*arguments)
        assert "--profile FILE with the profile that it was planned with" in err, err
        assert "plan.profile.json" not in err, err


@case
def bare_schema_lists_its_kinds(weft):
    weft.expect(64, "schema", says="config, model, cluster, profile, plan, rival, metrics, result")


main(sys.argv[1])
