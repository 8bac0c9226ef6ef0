#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weft best` plans every combination by hand, and the joint plan, under one limit."""
import json
import os
import re
import shutil
import signal
import sys
import time

from configs import deep, host, tiny
from tap import case, drawn_case, main

POLICIES = ["dp", "zero1", "sdp", "fsdp"]
WORK = ("--work-limit", "200M", "--jobs", "2")
LINK = {"alpha": "10us", "bandwidth": "1GB/s"}


def chosen(weft, config, *flags, code=0):
    path = weft.write("run.json", config)
    return json.loads(weft.expect(code, "best", path, "--json", *WORK, *flags))


@case
def lists_every_combination(weft):
    """The joint plan is at least as fast, and each row is the plan of its own settings."""
    answer = chosen(weft, tiny(plan__gap=0))
    rows = {(row["policy"], row["recompute"]): row for row in answer["combinations"]}
    assert list(rows) == [(p, r) for p in POLICIES for r in ("none", "selective", "whole")]
    assert all(row["offload"] == "none" and row["fits"] for row in rows.values())
    assert answer["samples"] == 4 and answer["best"]["step_ns"] <= answer["joint"]["step_ns"]
    assert answer["joint"]["step_ns"] <= min(row["step_ns"] for row in rows.values())
    assert answer["best"] == min([*rows.values(), answer["joint"], answer["by_layer"]],
                                 key=lambda row: (row["step_ns"], row["total_bytes"])), answer
    for row in rows.values():
        assert row["micro_batch"] * row["micro_steps"] == 2, row
        assert row["bound_ns"] <= row["step_ns"] and row["gap"] >= 0
        tokens = 4 * 16 * 1e9 / row["step_ns"]
        assert abs(row["tokens_per_s"] - tokens) < 1e-6 * tokens
    report = json.loads(weft.expect(
        0, "plan", "run.json", "--json", "--work-limit", "21M", "--set", "plan.policies=sdp", "--set",
        "plan.recompute=whole", "--set", "train.batch=4", "--set", "train.micro_batch=auto"))
    row = rows["sdp", "whole"]
    assert (report["step_ns"], report["micro_batch"]) == (row["step_ns"], row["micro_batch"])


@drawn_case
def a_limit_leaves_some_without_a_plan(weft):
    free = chosen(weft, tiny())
    most = max(row["total_bytes"] for row in free["combinations"])
    tight = chosen(weft, tiny(), "--memory-limit", f"{int(most * 0.72)}B")
    assert not all(row["fits"] for row in tight["combinations"])
    assert all(row["total_bytes"] <= most * 0.72 for row in tight["combinations"] if row["fits"])
    assert all("least limit" in row["reason"] or "at least" in row["reason"]
               for row in tight["combinations"] if not row["fits"]), tight
    table = weft.expect(0, "best", "run.json", "--memory-limit", f"{int(most * 0.72)}B", *WORK)
    assert "joint" in table and "tokens/s" in table and "by hand" in table, table
    weft.expect(78, "best", "run.json", "--memory-limit", "1KiB", *WORK, says="no combination has a plan")


@case
def tells_the_changes_that_fit_where_nothing_does(weft):
    none = chosen(weft, tiny(), "--memory-limit", "200KiB", code=78)
    assert all(row["reason"].strip() == row["reason"] for row in none["combinations"]), none
    changes = [row["change"] for row in none["would_fit"]]
    limit = next(change for change in changes if change.startswith("--memory-limit "))
    assert chosen(weft, tiny(), *limit.split())["best"]["state"] == "fits", changes
    told = weft.expect(78, "best", "run.json", "--memory-limit", "200KiB", *WORK)
    assert "would fit with" in told and limit in " ".join(told.split()), told


SLOW_HOST = {"cluster__host": host("0.3GB/s"), "cluster__memory_limit": "420KiB", "plan__policies": "fsdp",
             "plan__offload": {"state": ["host"]}}
LITTLE = ("--work-limit", "20M", "--jobs", "2")


@case
def names_updates_in_backward_with_their_price(weft):
    """They are faster, and what a user gives up is no choice of the program."""
    answer = json.loads(weft.expect(0, "best", weft.write("run.json", deep(**SLOW_HOST)), "--json", *LITTLE))
    row = answer["in_backward"]
    assert row["step_ns"] < answer["joint"]["step_ns"] and answer["best"] != row, answer
    assert row["update_in"] == "backward" and "no state of that step is saved" in row["price"], row
    assert answer["answer"].endswith(" with plan.update_in=backward, at a price"), answer["answer"]
    told = " ".join(weft.expect(0, "best", "run.json", *LITTLE).split())
    assert "more tokens/s than the row joint; --set plan.update_in=backward has a price: " + row["price"] in told, told
    assert " in backward auto " in told and "plan.update_in" not in told[told.index("next: "):], told
    report = json.loads(weft.expect(0, "plan", "run.json", "--json", "-o", "none", "--work-limit", "20M", "--set",
                                    "plan.recompute=auto", "--set", "plan.update_in=backward"))
    assert report["step_ns"] == row["step_ns"], (report["step_ns"], row)


@case
def takes_updates_in_backward_if_nothing_else_fits(weft):
    config = weft.write("run.json", deep(cluster__ranks=1, cluster__memory_limit="1260KiB"))
    answer = json.loads(weft.expect(0, "best", config, "--json", *LITTLE))
    assert answer["best"] == answer["in_backward"] and not answer["joint"]["fits"], answer
    assert "update_in backward: " in answer["answer"] and answer["answer"].endswith("no state of that step is saved"), answer
    shown = json.loads(weft.expect(0, "report", weft.write("best.json", answer), "--json"))["limits"]["combinations"]
    assert [(row["policy"], row["step_ns"]) for row in shown if row["state"] in ("fits", "joint plan")] == \
        [("in backward", answer["best"]["step_ns"])], shown
    told = " ".join(weft.expect(0, "best", config, *LITTLE).split())
    assert "only plans with plan.update_in=backward fit the limit" in told, told
    command = told[told.index("next: weft "):].split(" -o plan.json")[0].split()[2:]
    assert "plan.update_in=backward" in command, told
    weft.expect(0, *command, "-q", "-o", "plan.json")
    low = json.loads(weft.expect(78, "best", config, "--json", "--memory-limit", "1000KiB", *LITTLE))
    assert low["answer"].endswith("offload none, update_in backward"), low["answer"]


@case
def shows_the_places_of_updates_that_the_config_lacks(weft):
    for update_in, rows in (("backward", {"in_forward"}), (1, {"in_forward"}), ("auto", {"in_forward", "in_backward"})):
        path = weft.write("run.json", deep(plan__update_in=update_in, plan__policies="fsdp"))
        answer = json.loads(weft.expect(0, "best", path, "--json", "--work-limit", "1M", "--jobs", "2"))
        assert {"in_forward", "in_backward"} & set(answer) == rows, (update_in, answer)
        assert all(answer[row]["fits"] and "price" not in answer[row] for row in rows), answer
    two_nodes = {"cluster__ranks": 4, "cluster__ranks_per_node": 2,
                 "cluster__link__inter": {"alpha": "20us", "bandwidth": "1GB/s"}}
    for changes, reason in (({"train__clip_norm": 1}, "clipping needs the norm"),
                            ({"train__optimizer": {"type": "lamb"}}, "lamb agrees on norms"),
                            ({"train__optimizer": {"type": "adam_mini"}}, "adam_mini divides"),
                            ({"train__precision": {"compute": "f16"}, "cluster__device__flops": {"f16": "50G"}},
                             "f16 repeats a step"),
                            ({"train__delay": 1}, "delayed updates have their own place"),
                            ({"train__across": {"every": 2}, **two_nodes}, "waits for an average"),
                            ({"plan__for": "fsdp2"}, "the runtime of plan.for updates after backward")):
        path = weft.write("run.json", deep(plan__policies="fsdp", **changes))
        said = weft.expect(0, "best", path, "--json", "--work-limit", "1M", "--jobs", "2")
        answer = json.loads(said)
        assert not {"in_forward", "in_backward"} & set(answer) and reason in answer["update_in_refused"], (reason, answer)
    told = weft.expect(0, "best", path, "--work-limit", "1M", "--jobs", "2")
    assert told.count("update_in") == 1 and "update_in backward: not allowed: the runtime of plan.for" in told, told


@case
def keeps_a_split_that_a_flag_names(weft):
    answer = chosen(weft, tiny(), "--set", "train.micro_batch=2")
    assert {row["micro_batch"] for row in answer["combinations"]} == {2}
    answer = chosen(weft, tiny(train__batch=8, train__micro_batch="auto"), "--set", "plan.policies=fsdp")
    assert answer["samples"] == 8 and {row["policy"] for row in answer["combinations"]} == {"fsdp"}


@case
def offloads_if_there_is_a_host(weft):
    host = {"memory_limit": "1GiB", "update": "1GB/s", "down": LINK, "up": LINK}
    answer = chosen(weft, tiny(cluster__host=host, plan__policies="fsdp"))
    rows = {(row["recompute"], row["offload"]): row for row in answer["combinations"]}
    assert {offload for _, offload in rows} == {"none", "state", "activations", "both"}
    assert answer["joint"]["offload"] == "auto"
    assert rows["none", "state"]["total_bytes"] < rows["none", "none"]["total_bytes"]
    assert rows["none", "none"]["step_ns"] <= rows["none", "both"]["step_ns"]


@case
def rows_by_hand_keep_to_the_config(weft):
    """Otherwise they are no plans of the joint one, and its bound is none of theirs."""
    for offload, ways in (({"state": ["host"]}, {"state", "both"}),
                          ({"state": ["host"], "activations": ["host"], "inputs": ["host"]}, {"both"}),
                          ({"state": ["device"]}, {"none", "activations"})):
        path = weft.write("run.json", deep(cluster__host=host("0.3GB/s"), plan__policies="fsdp", plan__offload=offload))
        answer = json.loads(weft.expect(0, "best", path, "--json", "--work-limit", "1M", "--jobs", "2"))
        assert {row["offload"] for row in answer["combinations"]} == ways, (offload, answer)
        assert answer["joint"]["offload"] == "auto", answer
        steps = [row["step_ns"] for row in answer["combinations"] if row["fits"]]
        assert steps and min(steps) >= answer["joint"]["bound_ns"], answer


LLAMA = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 64, "num_hidden_layers": 3,
         "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 256,
         "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "hidden_act": "silu", "tie_word_embeddings": True}


@case
def needs_no_config(weft):
    """The model comes from a file or folder of Hugging Face, or by name, and so does the cluster."""
    os.makedirs(weft.path("folder"))
    weft.write("folder/config.json", LLAMA)
    answers = [json.loads(weft.expect(0, "best", *model, "--cluster", "h100-8", "--memory-limit", "1GiB", "--json", *WORK))
               for model in (("--hf", "folder"), ("--hf", "folder/config.json"), ("--model", "folder"))]
    assert answers[0]["joint"] == answers[1]["joint"] == answers[2]["joint"] and answers[0]["ranks"] == 8, answers
    named = json.loads(weft.expect(0, "best", "--model", "gpt-tiny", "--cluster", "h100-8", "--json", *WORK))
    assert named["ranks"] == 8 and named["times"] == "analytic", named
    for flags, says in ((("--hf", "folder", "--cluster", "h100-9"), ["no shipped cluster", "did you mean h100-8?"]),
                        (("--model", "gpt-tinny"), ["no shipped model", "did you mean gpt-tiny?"]),
                        (("--hf", "none/config.json"), ["none/config.json"]),
                        (("--hf", "folder/confg.json"), ["there is no such file; did you mean folder/config.json?"])):
        weft.expect(66, "best", *flags, says=says)
    os.makedirs(weft.path("empty"))
    os.makedirs(weft.path("pairs"))
    weft.write("pairs/mine.json", {"ranks": 2})
    for verb in ("best", "plan", "estimate", "init"):
        for model in ("--hf", "--model"):
            weft.expect(66, verb, model, "empty", says=["empty/config.json: there is no such file", "Hugging Face"])
        for flags, says in ((("pairs",), "pairs: it is a folder, and a cluster is a file; did you mean pairs/mine.json?"),
                            (("pairs/mien.json",), "there is no such file; did you mean pairs/mine.json?"),
                            (("empty",), "empty: it is a folder, and a cluster is a file"),
                            (("none.json",), "none.json: there is no such file")):
            weft.expect(66, verb, "--model", "gpt-tiny", "--cluster", *flags, says=says)
    weft.expect(64, "best", says="usage: weft best CONFIG")
    weft.expect(64, "best", "run.json", "--hf", "folder", says="takes the place of CONFIG")


@case
def begins_with_the_answer_and_ends_with_a_command(weft):
    """The command makes the winning plan again."""
    path = weft.write("run.json", tiny(plan__gap=0))
    told = weft.expect(0, "best", path, *WORK).splitlines()
    figures = r": [\d.]+ .?s, [\d.]+k? tokens/s, [\d.]+ [KM]iB(; [\d.]+ % faster than the best by hand)?; no plan is "
    assert re.search(figures, " ".join(" ".join(told[:3]).split())), told
    answer = chosen(weft, tiny(plan__gap=0))
    assert answer["best"]["choices"] in answer["answer"] and answer["best"]["state"] == "fits", answer
    at = next(i for i, line in enumerate(told) if line.startswith("next: weft plan"))
    words = " ".join(line.strip() for line in told[at:]).split("weft plan ", 1)[1].split("-o plan.json")[0].split()
    plan = json.loads(weft.expect(0, "plan", *words, "--json"))
    assert plan["step_ns"] == answer["best"]["step_ns"], (plan["step_ns"], answer["best"])


@drawn_case
def marks_rows_by_reason(weft):
    free = chosen(weft, tiny())
    limit = int(max(row["total_bytes"] for row in free["combinations"]) * 0.72)
    tight = chosen(weft, tiny(), "--memory-limit", f"{limit}B")
    for row in tight["combinations"]:
        assert row["state"] == ("fits" if row["fits"] else "above the limit"), row
        assert row["fits"] or row["least_bytes"] > limit, row
        assert row["fits"] or f"({row['least_bytes']} bytes)" in row["reason"], row
    told = weft.expect(0, "best", "run.json", "--memory-limit", f"{limit}B", *WORK)
    assert re.search(r"^  dp +none .* \+[\d.]+ [KM]iB +-$", told, re.M), told
    none = chosen(weft, tiny(), "--memory-limit", "200KiB", code=78)
    assert none["answer"].startswith("nothing fits 200 KiB: the least limit is "), none["answer"]
    least = min(row["least_bytes"] for row in [*none["combinations"], none["joint"]])
    assert chosen(weft, tiny(), "--memory-limit", f"{least}B")["best"]["state"] == "fits"
    old = {"format": "weft-profile", "version": 1, "source": "measured", "machine": "old", "ranks": 2, "collectives": {},
           "layers": [{"name": f"h.{i}", "forward_ns": 10000, "backward_ns": 20000} for i in range(3)]}
    untimed = chosen(weft, tiny(), "--profile", weft.write("old.json", old), "--set", "train.micro_batch=2")
    states = {row["recompute"]: row["state"] for row in untimed["combinations"]}
    assert states == {"none": "fits", "selective": "no times", "whole": "no times"}, states
    table = weft.expect(78, "best", "run.json", "--profile", "old.json", "--memory-limit", "200KiB", *WORK,
                        says="no table of changes: ")
    assert table.startswith("nothing fits 200 KiB: the least limit is ") and "no times: dp, recompute " in table, table
    assert "run `weft profile" in " ".join(table.split()), table


@drawn_case
def writes_the_winner_to_a_folder(weft):
    path = weft.write("run.json", tiny())
    told = weft.expect(0, "best", path, *WORK, "-o", "won")
    assert "next: weft explain won/plan.json" in told, told
    weft.expect(0, "verify", "won/plan.json", "--config", "won/config.json")
    assert not os.path.exists(weft.path("won.sweep"))
    weft.expect(73, "best", path, *WORK, "-o", "won", says="won/config.json: is there already")
    weft.expect(73, "best", path, *WORK, "-o", "run.json", says="run.json")
    weft.expect(78, "best", path, *WORK, "-o", "none", "--memory-limit", "1KiB")
    assert not os.path.exists(weft.path("none"))
    told = weft.expect(0, "best", path, *WORK, "-o", "torch", "--for", "fsdp2")
    assert json.loads((weft.directory / "torch/fsdp2.json").read_text())["format"] and "torch/fsdp2.py" in told, told
    compile((weft.directory / "torch/fsdp2.py").read_text(), "fsdp2.py", "exec")


@case
def goes_on_after_a_stop(weft):
    """Rows of the stopped run are not planned again; those of another config are."""
    def rows_kept():
        folder = weft.directory / "won.sweep"
        return len(list(folder.glob("*.row"))) if folder.exists() else 0

    path = weft.write("run.json", tiny())
    command = ("best", path, "--work-limit", "2G", "--jobs", "1", "-o", "won")
    process = weft.start(*command)
    end = time.monotonic() + 60
    while rows_kept() < 2 and process.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    if process.returncode == 0:
        return  # it was faster than the signal
    assert process.returncode == 75 and "the same command goes on" in err, (process.returncode, out, err)
    shutil.copytree(weft.path("won.sweep"), weft.path("kept"))
    for flags, reused in ((("--set", "train.seq_len=8"), False), ((), True)):
        code, _, err = weft.run(*command, *flags)
        assert code == 0 and ("were made before it was stopped" in err) == reused, (flags, err)
        shutil.rmtree(weft.path("won"))
        shutil.rmtree(weft.path("won.sweep"), ignore_errors=True)
        shutil.copytree(weft.path("kept"), weft.path("won.sweep"))


@drawn_case
def a_measured_machine_has_times_of_every_row(weft):
    bare = tiny(cluster__device=None, cluster__link=None, cluster__threads=1)
    answer = chosen(weft, bare)
    assert answer["times"] == "measured", answer["times"]
    assert all(row["fits"] for row in [*answer["combinations"], answer["joint"]]), answer
    profile = weft.path("profile.json")
    weft.expect(0, "profile", weft.write("bare.json", bare), "-o", profile)
    answer = chosen(weft, bare, "--profile", profile)
    assert all(row["fits"] for row in answer["combinations"]), answer


@case
def refuses_bad_flags(weft):
    path = weft.write("run.json", tiny())
    weft.expect(64, "best", path, "--jobs", "0", says="--jobs 0: a number from 1 to")
    weft.expect(66, "best", "absent.json", says="absent.json")


main(sys.argv[1])
