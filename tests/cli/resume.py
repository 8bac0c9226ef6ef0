#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Resuming gives the same bits under other plans, ranks and libraries. Changes are reported or refused."""
import json
import os
import re
import shlex
import shutil
import signal
import sys

from saved import (copy_step, crc32c, manifest, metrics, parameters, refuses, rewrite, same_files, saved_run,
                   saving, steps, tensors)
from tap import Skip, case, drawn_case, main, some

FLOPS = {"f32": "50G", "bf16": "50G", "f16": "50G"}


@case
def resumes_with_the_same_bits_under_another_plan(weft):
    config = saved_run(weft)
    for number, planner in enumerate(["all-fsdp", "all-dp", "all-zero1", "all-sdp", "all-central"]):
        run = f"again{number}"
        copy_step(weft, "run", run, 6)
        weft.expect(0, "train", config, "--run", run, "-q", "--resume", "--planner", planner,
                    "--set", f"plan.blocks={number + 1}")
        assert parameters(weft, run) == parameters(weft, "run"), planner
        same_files(weft, f"{run}/checkpoints/step-8", "run/checkpoints/step-8")
        lines = open(weft.path(f"{run}/metrics.jsonl"), encoding="utf-8").readlines()
        assert [json.loads(line)["step"] for line in lines if "loss" in line] == [7, 8]


@drawn_case
def resumes_with_the_gradient_that_waits_for_its_update(weft):
    """With a delay a checkpoint holds the reduced gradient of its last step, for any plan and ranks."""
    delayed = {"train__delay": 1, "cluster__device__flops": FLOPS,
               "train__precision": {"compute": "bf16", "reduce": "bf16"}}
    config = saved_run(weft, **delayed)
    names = tensors(weft, "run/checkpoints/step-6/optimizer.safetensors")
    assert any(name.endswith(".pending") for name in names), list(names)
    assert any(any(value) for name, value in names.items() if name.endswith(".pending"))
    for number, planner in enumerate(["all-fsdp", "all-zero1", "random"]):
        run = f"again{number}"
        copy_step(weft, "run", run, 6)
        weft.expect(0, "train", config, "--run", run, "-q", "--resume", "--planner", planner)
        assert parameters(weft, run) == parameters(weft, "run"), planner
        same_files(weft, f"{run}/checkpoints/step-8", "run/checkpoints/step-8")
    weft.expect(0, "train", config, "--run", "moved", "-q", "-n", "3",
                "--resume=run/checkpoints/step-8")
    same_files(weft, "moved/checkpoints/step-8", "run/checkpoints/step-8")
    # Saves in between, each after a settle, change nothing.
    often = weft.write("often.json", saving(train__checkpoint={"every": 1}, **delayed))
    weft.expect(0, "train", often, "--run", "often", "-q")
    assert parameters(weft, "often") == parameters(weft, "run")
    # Without its delay a run has no use for the gradient, and says so; with it, it begins at 0.
    copy_step(weft, "run", "plain", 6)
    _, _, err = weft.run("train", config, "--run", "plain", "-q", "--resume", "--set",
                         "train.delay=0")
    assert "its pending gradient of the checkpoint is not needed any more" in err, err
    _, _, err = weft.run("train", config, "--run", "plain", "-q", "--resume", "--set",
                         "train.steps=10")
    assert "its pending gradient starts at 0" in err, err


@case
def refuses_what_a_delay_excludes(weft):
    config = weft.write("run.json", saving(train__delay=1))
    for setting, says in (("train.optimizer.type=lamb", "take adamw or sgd"),
                          ("train.precision.compute=f16", "compute in bf16 or f32"),
                          ("train.delay=2", "must be 0 to 1"),
                          ("plan.policies=dp", "updates are delayed"),
                          ("train.delay=async", "asynchronous parameter server"),
                          ("train.delay=gossip", "ranks have different parameters"),
                          ("train.precision.reduce=1bit", "1-bit compression changes gradients"),
                          ("train.precision.reduce=powersgd", "low-rank compression changes"),
                          ("plan.policies=gossip", "ranks have different parameters")):
        weft.expect(65, "plan", config, "--set", setting, says=[says])
    weft.expect(64, "plan", config, "--planner", "async-ps",
                says=["depends on timing", "train.delay 1"])


@drawn_case
def resumes_with_the_products_that_computed_it(weft):
    """Each start measures which products are fastest, but a resumed run keeps its own and its bits."""
    config = weft.write("run.json", saving())
    weft.expect(0, "train", config, "--run", "run", "-q", env={"WEFT_GEMM": "plain"})
    assert manifest(weft, "run/checkpoints/step-6")["kernels"] == "plain"
    for run, name, warns in (("same", "", False), ("named", "plain", False),
                             ("overridden", "onednn", True)):
        copy_step(weft, "run", run, 6)
        _, _, err = weft.run("train", config, "--run", run, "-q", "--resume",
                             env={"WEFT_GEMM": name})
        assert err.count("not the same bits") == (1 if warns else 0), (run, err)
        # On some CPUs both products have the same bits, so "overridden" may end in the same parameters.
        assert warns or parameters(weft, run) == parameters(weft, "run"), run
        kernels = manifest(weft, f"{run}/checkpoints/step-8")["kernels"]
        assert kernels == ("onednn" if warns else "plain"), (run, kernels)
    copy_step(weft, "run", "lost", 6)
    rewrite(weft.path("lost/checkpoints/step-6/manifest.json"), '"plain"', '"abacus"')
    weft.expect(0, "train", config, "--run", "lost", "-q", "--resume", env={"WEFT_GEMM": ""},
                says=["was computed with abacus", "does not have"])


@case
def a_run_whose_data_has_moved_names_the_flag(weft):
    os.mkdir(weft.path("old"))
    with open(weft.path("old/text.txt"), "w", encoding="utf-8") as file:
        file.write("some text to train on, again and again\n" * 200)
    config = weft.write("old/run.json", saving(train__data="text.txt"))
    weft.expect(0, "train", config, "--run", weft.path("old/run"), "-q")
    os.rename(weft.path("old"), weft.path("new"))
    resume = ("train", "--resume", "--run", weft.path("new/run"), "-q", "--set", "train.steps=9")
    weft.expect(66, *resume, says=["old/text.txt: no such file", "run/config.json",
                                   "--set train.data=PATH"])
    weft.expect(0, *resume, "--set", f"train.data={weft.path('new/text.txt')}")
    assert steps(weft, "new/run")[-1] == "step-9", steps(weft, "new/run")


@drawn_case
def resumes_with_another_number_of_ranks(weft):
    config = saved_run(weft)
    before = "run/checkpoints/step-8"
    for number, ranks in enumerate(["3", "1", "8", "4", "2"]):
        run = f"moved{number}"
        weft.expect(0, "train", config, "--run", run, "-q", "-n", ranks, f"--resume={before}")
        same_files(weft, f"{run}/checkpoints/step-8", "run/checkpoints/step-8")
        before = f"{run}/checkpoints/step-8/"
        assert parameters(weft, run) == parameters(weft, "run")


@case
def any_number_of_ranks_ends_in_the_same_bits(weft):
    """A step's groups of micro-batches decide its bits. Ranks that divide the groups only share them otherwise."""
    config = saved_run(weft, cluster__ranks=4, train__micro_batch=1, train__grad_accum=2)
    kept = manifest(weft, "run/checkpoints/step-8")
    assert (kept["ranks"], kept["micro_steps"], kept["reduce"]) == (4, 2, "step"), kept
    copy_step(weft, "run", "moved", 6)
    _, _, err = weft.run("train", config, "--run", "moved", "--resume", "-n", "2", "--set", "train.steps=7")
    assert "2 ranks share the 4 groups of each step, which 4 ranks began: each rank has 2" in err, err
    assert manifest(weft, "moved/checkpoints/step-7")["group"] == 2
    _, _, err = weft.run("train", "--resume", "--run", "moved", "-n", "1", "--set", "train.steps=8")
    assert "1 ranks share the 4 groups of each step, which 2 ranks began: each rank has 4" in err, err
    assert parameters(weft, "moved") == parameters(weft, "run")
    losses = [[json.loads(line)["loss"] for line in open(weft.path(f"{run}/metrics.jsonl"), encoding="utf-8")
               if '"loss"' in line] for run in ("run", "moved")]
    assert losses[0][-2:] == losses[1][-2:], losses
    _, _, err = weft.run("train", config, "--run", "other", "--resume=run/checkpoints/step-6", "-n", "5")
    assert "5 ranks cannot keep the order of sums of the checkpoint's 4 groups" in err, err
    assert parameters(weft, "other") != parameters(weft, "run")


@case
def ranks_need_not_divide_the_groups(weft):
    """Three of four groups are in the first round, and then two ranks are idle. Resumed twice by three ranks."""
    config = saved_run(weft, cluster__ranks=4, train__micro_batch=1, train__grad_accum=2)
    copy_step(weft, "run", "moved", 6)
    _, _, err = weft.run("train", config, "--run", "moved", "--resume", "-n", "3", "--set", "train.steps=7")
    assert "each rank has 2, the last 2 of them one less" in err, err
    kept = manifest(weft, "moved/checkpoints/step-7")
    assert (kept["ranks"], kept["micro_steps"], kept["group"], kept["idle_ranks"]) == (3, 4, 2, 2), kept
    _, _, err = weft.run("train", "--resume", "--run", "moved", "-n", "3", "--set", "train.steps=8")
    assert parameters(weft, "moved") == parameters(weft, "run"), err
    weft.expect(65, "train", "--resume", "--run", "moved", "-n", "5", "--set", "train.steps=9",
                says="8 samples make 4 groups of 2 (train.group x micro_batch), fewer than 5 ranks; start at most 4")
    batch = weft.write("batch.json", saving(cluster__ranks=2, train__batch=12, train__micro_batch=2))
    weft.expect(0, "train", batch, "--run", "fixed", "-q")
    weft.expect(64, "train", batch, "--run", "more", "--resume=fixed/checkpoints/step-6", "-n", "3",
                says="2 groups of micro-batches, fewer than 3 ranks: start at most 2 ranks")
    tokens = [json.load(open(weft.path(f"{run}/result.json"), encoding="utf-8")).get("tokens") for run in ("run", "moved")]
    assert tokens[0] == tokens[1], tokens

@case
def keeps_frozen_and_momentum_state(weft):
    config = saved_run(weft, model__layers__1__frozen=True,
                       train__optimizer={"type": "sgd", "lr": 0.01, "momentum": 0.9})
    copy_step(weft, "run", "again", 6)
    weft.expect(0, "train", config, "--run", "again", "-q", "--resume")
    same_files(weft, "again/checkpoints/step-8", "run/checkpoints/step-8")


@drawn_case
def resumes_in_every_precision_and_period(weft):
    """The cases have evaluations, saves in the background and in the foreground, and f16 with a changing scale."""
    f16 = {"train__precision": {"compute": "f16"}, "cluster__device__flops": FLOPS,
           "train__loss_scale": {"initial": 2 ** 24, "growth_steps": 2}}
    bf16 = {"train__precision": {"compute": "bf16"}, "cluster__device__flops": FLOPS}
    rotated = {"train__clip_norm": 0, "train__grad_accum": 2}
    sgd = {"train__optimizer": {"type": "sgd", "lr": 0.01, "momentum": 0.9}}
    lamb = {"train__optimizer": {"type": "lamb", "lr": 0.01}}
    for number, changes in enumerate([f16, {**f16, "train__grad_accum": 2}, {**bf16, **rotated},
                                      rotated, {**rotated, **sgd}, lamb,
                                      {**bf16, **rotated, **lamb}]):
        for background in some((True, False), 1):
            config = saved_run(weft, train__validation={"share": 0.1, "every": 3, "samples": 8},
                               train__checkpoint={"every": 3, "asynchronous": background}, **changes)
            run = f"again{number}{background}"
            copy_step(weft, "run", run, 6)
            weft.expect(0, "train", config, "--run", run, "-q", "--resume", "--poison")
            same_files(weft, f"{run}/checkpoints/step-8", "run/checkpoints/step-8")
            said = manifest(weft, "run/checkpoints/step-8")
            assert said == manifest(weft, f"{run}/checkpoints/step-8"), (changes, said)
            if number > 1:
                assert (said["loss_scale"], said["good_steps"]) == (1, 0), said
            else:
                assert 1 < said["loss_scale"] < 2 ** 24, said
            assert said["updates"] == 8 and said["tokens"] == said["samples"] * 16, said
            shutil.rmtree(weft.path("run"))


@case
def says_what_resume_needs(weft):
    config = weft.write("run.json", saving())
    weft.expect(66, "train", config, "--run", "run", "--resume", says="no checkpoint to go on from")
    assert not os.path.exists(weft.path("run")), "something was made"
    weft.expect(64, "train", config, "--resume", says="--run DIR")
    weft.expect(64, "train", config, "--run", "run", "--resume=latest", says="--resume=if-any")
    weft.expect(66, "train", config, "--run", "run", "--resume=./step-3", says="no such checkpoint")
    weft.expect(0, "train", config, "--run", "run", "-q", "--resume=if-any")
    weft.expect(73, "train", config, "--run", "run", says="go on with --resume")
    weft.expect(0, "train", config, "--run", "run", "-q", "--resume=if-any")
    assert steps(weft, "run") == ["step-6", "step-8"]
    weft.expect(65, "train", config, "--run", "run", "--resume", "--set", "train.steps=7",
                says="after train.steps")
    weft.expect(73, "train", config, "--run", "run", "--resume=run/checkpoints/step-6",
                says=["has saved run/checkpoints/step-8 since", "move the later"])
    weft.expect(0, "train", config, "--run", "run", "-q", "--resume=run/checkpoints/step-8/")


def read(weft, name):
    with open(weft.path(name), encoding="utf-8") as file:
        return file.read()


def stop_behind_step_3(weft, *arguments, **options):
    """Trains until a signal; returns the command that the message suggests."""
    process = weft.start("train", *arguments, **options)
    while not process.stdout.readline().startswith("step   3"):
        assert process.poll() is None, process.stderr.read()
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 75 and "which is saved. Go on with: weft " in err, err
    return shlex.split(err.strip().split("Go on with: ")[1])[1:]


@drawn_case
def the_runs_directory_is_enough(weft):
    """Limit, ranks, profile and plan are the run's own, including flags of its command."""
    bare = weft.write("run.json", saving(cluster__device=None, cluster__link=None,
                                         cluster__threads=1, cluster__memory_limit=None,
                                         train__steps=1000000, train__checkpoint={"every": 0}))
    command = stop_behind_step_3(weft, bare, "--memory-limit", "900MiB", "-n", "3", "--planner",
                                 "greedy", "--run", "it's here")
    assert command == ["train", "--resume", "--run", "it's here"], command
    kept = [read(weft, f"it's here/{name}.json") for name in ("plan", "profile")]
    config = json.loads(read(weft, "it's here/config.json"))
    assert (config["cluster"]["memory_limit"], config["cluster"]["ranks"]) == ("900MiB", 3), config
    os.remove(bare)
    done = int(steps(weft, "it's here")[0].removeprefix("step-"))
    more = ["--set", f"train.steps={done + 2}"]
    _, out, err = weft.run(*command, *more)
    assert f"step {done + 2:3}/{done + 2}" in out and "a rank of 900 MiB" in out, (out, err)
    assert "measuring" not in err and "planned again" not in err, err
    assert [read(weft, f"it's here/{name}.json") for name in ("plan", "profile")] == kept


@case
def a_run_that_goes_on_by_its_directory_has_the_same_bits(weft):
    saved_run(weft)
    shutil.copytree(weft.path("run"), weft.path("again"))
    shutil.rmtree(weft.path("again/checkpoints/step-8"))
    os.remove(weft.path("run.json"))
    weft.expect(0, "train", "--resume", "--run", "again", "-q")
    same_files(weft, "again/checkpoints/step-8", "run/checkpoints/step-8")


@drawn_case
def a_schedule_that_jumps_is_told_and_may_be_kept(weft):
    """With the named flag a longer run has the bits of an undisturbed one up to the schedule's end."""
    for number, schedule in enumerate(({"type": "cosine", "warmup_steps": 2}, {"type": "linear"},
                                       {"type": "wsd", "decay_steps": 3, "min_ratio": 0})):
        whole, part = f"whole-{number}", f"part-{number}"
        config = weft.write("run.json", saving(train__lr_schedule=schedule, plan__planner="greedy",
                                               train__checkpoint={"every": 2, "keep": 9}))
        weft.expect(0, "train", config, "--run", whole, "-q")
        for done in (6, 8):
            copy_step(weft, whole, f"{part}-{done}", done)
            more = ["train", config, "--run", f"{part}-{done}", "-q", "--resume", "--set", "train.steps=12"]
            shutil.copytree(weft.path(f"{part}-{done}"), weft.path("jump"))
            _, _, err = weft.run(*more[:3], "jump", *more[4:])
            shutil.rmtree(weft.path("jump"))
            rates = re.search(r"the learning rate of step (\d+) is (\S+), (\S+) at step (\d+) before it, and "
                              r"would be (\S+) by the schedule of 8 steps", err)
            assert rates and (int(rates[1]), int(rates[4])) == (done + 1, done), err
            assert float(rates[2]) > 1.2 * float(rates[5]), err
            flag = re.search(r"after it: (--set) (\S+)\n", err)
            _, _, err = weft.run(*more, *flag.groups())
            assert "the learning rate of step" not in err, err
            assert ("the rate is 0 after step 8" in err) == (number == 2), err
            same_files(weft, f"{part}-{done}/checkpoints/step-8", f"{whole}/checkpoints/step-8")
            lines = [line for line in metrics(weft, f"{part}-{done}") if line["kind"] == "step"]
            last = [line["lr"] for line in metrics(weft, whole) if line["kind"] == "step"][-1]
            assert [line["lr"] for line in lines if line["step"] >= 8] == [last] * (13 - max(done + 1, 8)), lines


@case
def flags_override_what_the_directory_has_and_are_told(weft):
    config = saved_run(weft)
    _, _, err = weft.run("train", "--run", "run", "--resume", "--memory-limit", "1.5GiB", "--set",
                         "train.steps=9", "--set", "train.compare_every=3")
    assert ("run: goes on with other settings:\ncluster.memory_limit: 1536MiB, was 1GiB\n"
            "train.compare_every: 3, was 100\n") in err, err
    assert "run/plan.json: is planned again, for other settings" in err, err
    assert err.count("steps: 9, was 8") == 1, err  # of the checkpoint
    cluster = json.loads(read(weft, "run/config.json"))["cluster"]
    assert cluster["memory_limit"] == "1536MiB", cluster
    # Other device figures change times, so the run's own profile does not apply.
    _, _, err = weft.run("train", "--run", "run", "--resume", "--set", "train.steps=10", "--set",
                         "cluster.device.flops.f32=25G", "-n", "3")
    assert "cluster.ranks: 3, was 2" in err and "device.flops.f32: 25G, was 50G" in err, err
    profile = json.loads(read(weft, "run/profile.json"))
    assert profile["ranks"] == 3, profile
    # A named config replaces the run's, but is still compared with it.
    _, _, err = weft.run("train", config, "--run", "run", "--resume", "--set", "train.steps=11")
    assert "cluster.memory_limit: 1GiB, was 1536MiB" in err and "cluster.ranks: 2, was 3" in err, err
    assert "planned again" not in err, err


@case
def what_the_directory_lacks_is_made_again(weft):
    saved_run(weft)
    weft.write("run/plan.json", read(weft, "run/plan.json").replace('"version": ', '"version": 9'))
    weft.write("run/profile.json", "{")
    weft.expect(0, "train", "--resume", "--run", "run", "-q", "--set", "train.steps=9",
                says=["run/profile.json:1:", "Times are taken anew", "run/plan.json: is planned again"])
    os.remove(weft.path("run/plan.json"))
    weft.expect(0, "train", "--resume", "--run", "run", "-q", "--set", "train.steps=10",
                says=["run/plan.json: is planned again: ", "No such file"])
    os.rename(weft.path("run"), weft.path("a: run"))
    weft.write("a: run/plan.json", "{}")
    _, _, err = weft.run("train", "--resume", "--run", "a: run", "-q", "--set", "train.steps=11")
    assert "a: run/plan.json: is planned again: is not a plan" in " ".join(err.split()), err
    os.rename(weft.path("a: run"), weft.path("run"))
    weft.expect(0, "train", "--resume=run/checkpoints/step-10", "--run", "new", "-q", "--set",
                "train.steps=11")
    assert steps(weft, "new") == ["step-11"]
    weft.expect(66, "train", "--resume", "--run", "nowhere", says=["nowhere: no run has begun there"])
    weft.expect(66, "train", "--resume=if-any", "--run", "nowhere", says="give a CONFIG")
    for arguments in (("--run", "run"), ("--resume",), ()):
        weft.expect(64, "train", *arguments, says="give a CONFIG")
    weft.write("run/config.json", '{"version": 1, "modle": {}}')
    weft.expect(65, "train", "--resume", "--run", "run", says=["run/config.json", "modle"])


@case
def says_that_other_data_are_read(weft):
    """Other data, or another share of the same file: the held-out part was used for training."""
    config = saved_run(weft)
    other = weft.write("other.txt", "another text than the licence, " * 100)
    for number, change in enumerate((f'train.data="{other}"', "train.validation.share=0.25")):
        run = f"again{number}"
        copy_step(weft, "run", run, 6)
        weft.expect(0, "train", config, "--run", run, "-q", "--resume", "--set", change,
                    says="was trained on other data, or another share of them")


@case
def goes_on_beyond_the_first_end(weft):
    config = saved_run(weft)
    weft.expect(0, "train", config, "--run", "run", "-q", "--resume", "--set", "train.steps=10",
                "--set", "train.optimizer.lr=0.002", says=["optimizer.lr: 0.002, was 0.001",
                                                           "steps: 10, was 8"])
    assert steps(weft, "run") == ["step-10", "step-9"], steps(weft, "run")


@case
def another_model_is_refused(weft):
    saved_run(weft)
    wider = weft.write("wider.json", saving(model__layers__1__repeat=4))
    refuses(weft, wider, ["is not a checkpoint of this model", "h.3.", "; and more"])
    os.rename(weft.path("run/checkpoints/step-8"), weft.path("run/checkpoints/step-9"))
    refuses(weft, weft.write("run.json", saving(train__steps=9)), ["is of step 8"])


def with_activation(kind):
    layers = saving()["model"]["layers"]
    return [*layers[:2], {"name": "act", "type": kind, "hidden": 32}, *layers[2:]]


def two_alike(*names):
    """Returns a model with two linear layers of one shape, in this order."""
    layers = saving()["model"]["layers"]
    return [*layers[:2], *({"name": name, "type": "linear", "hidden": 32, "outputs": 32}
                           for name in names), *layers[2:]]


def refused_by_all(weft, changes, says):
    """Checks every reader of checkpoints: resuming in the run, from another run, and generating."""
    config = weft.write("other.json", saving(**changes))
    refuses(weft, config, ["is not a checkpoint of this model: ", *says])
    weft.expect(65, "train", config, "--run", "new", "--resume=run/checkpoints/step-8", says=says)
    weft.expect(65, "generate", "run", "--config", config, "--tokens", "1", says=says)
    assert not os.path.exists(weft.path("new")), "something was made"


@case
def a_model_of_the_same_shapes_is_refused(weft):
    """Equal tensors may belong to different functions."""
    saved_run(weft)
    refused_by_all(weft, {"model__layers__1__heads": 8}, ["h.0: heads is 8, and was 2; h.1"])
    refused_by_all(weft, {"model__layers": with_activation("relu")},
                   ["layer 4, a relu, was not there"])
    shutil.rmtree(weft.path("run"))
    saved_run(weft, model__layers=with_activation("relu"))
    refused_by_all(weft, {}, ["layer 4, a relu, is missing"])
    refused_by_all(weft, {"model__layers": with_activation("gelu")},
                   ["layer 4 is a gelu, and was a relu"])
    shutil.rmtree(weft.path("run"))
    saved_run(weft, model__layers=two_alike("a", "b"))
    refused_by_all(weft, {"model__layers": two_alike("b", "a")},
                   ["layer 4 is b (linear), and was a (linear); layer 5 is a (linear)"])


@case
def names_of_what_has_no_tensors_do_not_matter(weft):
    saved_run(weft, model__layers=with_activation("relu"))
    renamed = with_activation("relu")
    renamed[2]["name"] = "another"
    config = weft.write("run.json", saving(model__layers=renamed))
    weft.expect(0, "train", config, "--run", "run", "-q", "--resume", "--set", "train.steps=9")


def make_old(weft, path):
    """Rewrites a manifest in version 1, which did not check the model's hash."""
    manifest = json.load(open(path, encoding="utf-8"))
    del manifest["layers"], manifest["crc32c"]
    manifest["version"] = 1
    text = json.dumps(manifest, indent=2)[:-2]
    weft.write(path, f'{text},\n  "crc32c": {crc32c(text.encode())}\n}}\n')


@case
def an_older_manifest_is_compared_as_far_as_it_goes(weft):
    config = saved_run(weft, model__layers=two_alike("a", "b"))
    make_old(weft, weft.path("run/checkpoints/step-8/manifest.json"))
    other = weft.write("other.json", saving(model__layers=two_alike("b", "a")))
    refuses(weft, other, ["layers stand in another order: a.weight where the model has b.weight"])
    doubt = "was saved by an older version of weft"
    weft.expect(0, "generate", "run", "--tokens", "1", says=doubt)
    _, _, err = weft.run("train", config, "--run", "run", "-q", "--resume", "--set",
                         "train.steps=9")
    assert err.count(doubt) == 1, err
    _, _, err = weft.run("train", config, "--run", "run", "-q", "--resume", "--set",
                         "train.steps=10")
    assert doubt not in err and manifest(weft, "run/checkpoints/step-10")["version"] == 2, err


@case
def a_newer_format_is_refused(weft):
    config = saved_run(weft)
    path = weft.path("run/checkpoints/step-8/manifest.json")
    rewrite(path, '"version": 2', '"version": 3')
    refuses(weft, config, ["has format version 3", "newer"])


@case
def counters_that_no_run_leaves_are_refused(weft):
    config = saved_run(weft, train__precision={"compute": "f16"},
                       train__loss_scale={"initial": 1024}, cluster__device__flops=FLOPS)
    path = weft.path("run/checkpoints/step-8/manifest.json")
    for name, old, bad, says in (
            ("loss_scale", "1024", ["3", "0.5", "33554432", "1e300"], "is none that a run leaves"),
            ("loss_scale", "1024", ["0", "-1024", "null", '"1024"'], "no positive number"),
            ("good_steps", "8", ["-1", "1.5", "1e30"], "good_steps"),
            ("updates", "8", ["-1", "9"], "updates"), ("samples", "32", ["-1"], "samples")):
        for value in bad:
            rewrite(path, f'"{name}": {old}', f'"{name}": {value}')
            refuses(weft, config, [says], "--set", "train.steps=9")
            rewrite(path, f'"{name}": {value}', f'"{name}": {old}')
    # The count continues from the largest value that a manifest may have.
    rewrite(path, '"samples": 32', f'"samples": {2 ** 53 - 100}')
    weft.expect(0, "train", config, "--run", "run", "-q", "--resume", "--set", "train.steps=9",
                says="has read 9007199254740892 samples in 8 steps")


main(sys.argv[1])
