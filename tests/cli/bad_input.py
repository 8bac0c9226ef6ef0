#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bad input gives one clear error and the right exit code, and leaves no partial files."""
import copy
import json
import os
import random
import re
import subprocess
import sys

from configs import TINY, tiny
from plan_checker import Problem, hash_of_decisions
from tap import Skip, case, main


def config_text(weft, config=None):
    return weft.write("run.json", config or TINY)


@case
def unknown_key_names_the_nearest(weft):
    path = weft.write("run.json", tiny(train__stesp=3))
    weft.expect(65, "check", path, says=["run.json", "$.train.stesp", "steps"])


@case
def duplicate_key(weft):
    path = weft.write("run.json", '{"version": 1, "version": 1}')
    weft.expect(65, "check", path, says=["run.json", "version", "duplicate"])


@case
def missing_key(weft):
    path = weft.write("run.json", tiny(model__layers__0__vocab=None))
    weft.expect(65, "check", path, says=["$.model.layers[0]", "vocab"])


@case
def mistyped_key(weft):
    path = weft.write("run.json", tiny(train__steps="three"))
    weft.expect(65, "check", path, says=["$.train.steps"])


@case
def numbers_that_are_not_finite_are_refused_in_every_file(weft):
    """Configs, profiles and plans, at random places, and flags."""
    config, draw = config_text(weft, tiny(train__clip_norm=0.5)), random.Random(1128)
    weft.expect(0, "profile", config, "-o", weft.path("profile.json"), "-q")
    weft.expect(0, "plan", config, "--planner", "greedy", "-o", weft.path("plan.json"))
    verbs = {"run.json": ["check", "bad"], "plan.json": ["verify", "bad"],
             "profile.json": ["plan", config, "--planner", "greedy", "--profile", "bad"]}
    for name, verb in verbs.items():
        with open(weft.path(name), encoding="utf-8") as file:
            text = file.read()
        numbers = [found.span() for found in re.finditer(r"(?<=[\[:, ])-?\d+(?:\.\d+)?(?=[,\]}\n])", text)]
        for number, says in (("NaN", "no infinity"), ("-Infinity", "no infinity"), ("Infinity", "no infinity"),
                             ("1e999", "out of range"), ("-1e400", "out of range")):
            for begin, end in draw.sample(numbers, 4):
                weft.write("bad", text[:begin] + number + text[end:])
                line = text.count("\n", 0, begin) + 1
                weft.expect(65, *verb, says=[f"bad:{line}:", "no infinity" if "I" in number else says])
    for flags in (["--gap", "nan"], ["--gap", "1e999"], ["--memory-limit", "inf"], ["--time-limit", "nan"],
                  ["--set", "train.optimizer.lr=Infinity"], ["--set", "train.clip_norm=1e300"]):
        weft.expect(65, "plan", config, *flags, says=flags[-1].split("=")[-1].replace("1e300", "1e+300"))
    weft.expect(64, "simulate", weft.path("plan.json"), "--jitter", "nan", says="--jitter nan")


@case
def all_problems_at_once(weft):
    path = weft.write("run.json", tiny(train__steps=-1, cluster__ranks=0))
    weft.expect(65, "check", path, says=["$.train.steps", "$.cluster.ranks"])


@case
def bare_24G_shows_both_readings(weft):
    path = weft.write("run.json", tiny(cluster__memory_limit="24G"))
    weft.expect(65, "check", path, says=["24GiB", "24GB", "$.cluster.memory_limit"])


HOST = {"memory_limit": "1GiB"}


@case
def tiers_that_no_plan_may_use_leave_it_as_it_is(weft):
    kept = {"state": ["device"], "activations": ["device"]}
    weft.expect(0, "plan", weft.write("run.json", tiny(cluster__host=HOST, plan__offload=kept)),
                "-o", "kept.json")
    weft.expect(0, "plan", weft.write("run.json", TINY), "-o", "plain.json")
    with open(weft.path("kept.json"), "rb") as one, open(weft.path("plain.json"), "rb") as other:
        assert one.read() == other.read()


@case
def a_disk_that_is_none_is_refused(weft):
    """A bad disk is an error only if state is kept there."""
    kept = {"state": ["device"], "activations": ["device"]}
    link = {"bandwidth": "1GB/s"}
    weft.write("file", "text")
    for name, says in (("nowhere", "there is no such directory"), ("file", "is not a directory"),
                       ("/dev/shm", "which keeps everything in memory")):
        if name == "/dev/shm" and subprocess.run(
                ["stat", "-f", "-c", "%T", name], capture_output=True, text=True,
                check=False).stdout.strip() != "tmpfs":
            continue
        there = {"path": name, "limit": "1GB", "read": link, "write": link}
        path = weft.write("run.json", tiny(cluster__disk=there,
                                           plan__offload={**kept, "state": ["disk"]}))
        for verb in ("check",), ("train", "--run", "run"):
            weft.expect(65, *verb, path, says=["cluster.disk.path: ", name, says])
        assert not os.path.exists(weft.path("run")), "a run was begun"
    path = weft.write("run.json", tiny(cluster__disk={"path": "nowhere"}, plan__offload=kept))
    weft.expect(0, "check", path)
    weft.expect(0, "train", path, "--run", "run", timeout=300)
    assert not os.path.exists(weft.path("nowhere"))


@case
def a_gpu_plans_with_a_disk_and_does_not_train_with_it_alone(weft):
    disk = {"path": "nowhere", "limit": "1GB", "read": {"bandwidth": "2GB/s"},
            "write": {"bandwidth": "1GB/s"}}
    path = weft.write("run.json", tiny(cluster__disk=disk, cluster__device__type="cuda"))
    weft.expect(0, "plan", path)
    weft.expect(65, "train", path, "--run", "run", says=["passes through the host's memory", "give cluster.host"])
    assert not os.path.exists(weft.path("run"))


@case
def keys_of_tiers_that_do_not_go_together(weft):
    def says(text, **changes):
        weft.expect(65, "check", weft.write("run.json", tiny(**changes)), says=text)
    says("names \"host\", and the cluster has none", plan__offload={"state": ["host"]})
    says(["$.plan.offload.inputs", "names \"host\", and the cluster has none"], plan__offload={"inputs": ["host"]})
    says(["$.plan.for", "offload nothing"], cluster__host=HOST, plan__for="fsdp2",
         plan__offload={"state": ["device"], "activations": ["device"], "inputs": ["host"]})
    says("is empty; leave the key out", plan__offload={"state": []})
    says("it has no limit: give \"limit\"", cluster__disk={"path": "scratch"})
    says("0B/s is out of range", cluster__host={**HOST, "update": "0GB/s"})
    says("did you mean \"host\"?", cluster__host=HOST, plan__offload={"state": ["hots"]})
    says("lamb scales a tensor's step", cluster__host=HOST, train__optimizer={"type": "lamb"})


@case
def an_epsilon_of_0(weft):
    for value in (0, 0.0):
        weft.expect(65, "check", weft.write("run.json", tiny(model__layers__2__eps=value)),
                    says=["$.model.layers[2].eps", "above 0, or leave it out"])
    weft.expect(0, "check", weft.write("run.json", tiny(model__layers__2__eps=1e-12)))


@case
def sizes_that_overflow(weft):
    huge = tiny(model__layers__0__vocab=2**40, model__layers__3__vocab=2**40,
                model__layers__0__hidden=2**40)
    weft.expect(65, "check", weft.write("run.json", huge), says=["$.model.layers[0]"])


@case
def heads_that_do_not_divide(weft):
    path = weft.write("run.json", tiny(model__layers__1__heads=5))
    weft.expect(65, "check", path, says=["heads", "32"])


@case
def tensors_of_one_name(weft):
    """Such a run would train and then save an unreadable file."""
    fc = {"name": "h.0.mlp.fc", "type": "linear", "hidden": 32, "outputs": 32}
    layers = tiny()["model"]["layers"]
    path = weft.write("run.json", tiny(model__layers=[*layers[:2], fc, *layers[2:]]))
    for verb in ("check", "train"):
        weft.expect(65, verb, path, says=['layer "h.0.mlp.fc" (linear)', "h.0.mlp.fc.bias",
                                          'layer "h.0" (transformer_block)'])


@case
def names_that_cannot_be_saved(weft):
    """`check` refuses a config that cannot be trained."""
    for name in ("../../x", "..", "a/b", "a..b", "a."):
        path = weft.write("run.json", tiny(model__layers__2__name=name))
        weft.expect(65, "check", path, says=["$.model.layers[2].name", "cannot be a name"])


@case
def no_ranks(weft):
    path = weft.write("run.json", tiny(cluster__ranks=0))
    weft.expect(65, "check", path, says=["$.cluster.ranks"])
    weft.expect(64, "check", "-n", "0", path, says="65536")


@case
def truncated_json(weft):
    text = json.dumps(TINY)
    for length in range(1, len(text) - 1, 37):
        path = weft.write("run.json", text[:length])
        weft.expect(65, "check", path, says=["run.json:1:"])


@case
def corrupt_json(weft):
    for text in ("", "\ufeff{}", "{]", '{"a": 01}', '{"a": 1e999}', "nul", '{"a": "\x01"}'):
        weft.expect(65, "check", weft.write("run.json", text), says="run.json")


@case
def no_config_file(weft):
    weft.expect(66, "plan", weft.path("none.json"), says="none.json")


@case
def a_config_that_may_not_be_read(weft):
    path = config_text(weft)
    os.chmod(path, 0)
    if os.geteuid() != 0:
        weft.expect(77, "plan", path, says=["run.json", "Permission denied"])
        return
    os.chmod(weft.directory, 0o755)
    nobody = {"preexec_fn": lambda: os.setuid(65534)}
    try:
        weft.run("--version", **nobody)
    except OSError as error:
        raise Skip(f"the program is in a folder of root's: {error}")
    weft.expect(77, "plan", path, says=["run.json", "Permission denied"], **nobody)


@case
def unknown_verb_and_flag(weft):
    weft.expect(64, "pln", says='plan')
    weft.expect(64, "plan", "--plannr=ilp", "x.json", says="--planner")
    weft.expect(64, "plan", says="usage")


@case
def unknown_planner(weft):
    weft.expect(64, "plan", config_text(weft), "--planner", "magic", says=["magic", "greedy"])


@case
def unknown_override(weft):
    path = config_text(weft)
    weft.expect(64, "plan", path, "--set", "train.stesp=1", says="steps")
    weft.expect(64, "plan", path, "--set", "train", says="path.key=value")


@case
def limit_too_small(weft):
    out = weft.path("plan.json")
    weft.expect(78, "plan", config_text(weft), "--memory-limit", "64KiB", "-o", out,
                says=["least", "activations"])
    assert not os.path.exists(out), "a plan was written"


@case
def no_data_file(weft):
    path = weft.write("run.json", tiny(train__data="/no/such/file.txt"))
    weft.expect(66, "train", path, says="/no/such/file.txt")


@case
def data_shorter_than_a_sequence(weft):
    weft.write("short.txt", "too short")
    path = weft.write("run.json", tiny(train__data="short.txt"))
    weft.expect(65, "train", path, says=["short.txt", "9", "17"])


@case
def model_that_cannot_train(weft):
    config = tiny()
    config["model"]["layers"][1] = {"name": "c", "type": "custom", "hidden": 32,
                                    "parameters": 1000, "forward_flops": "1M",
                                    "backward_flops": "2M", "output": "2KiB"}
    path = weft.write("run.json", config)
    weft.expect(0, "plan", path)
    weft.expect(65, "train", path, says=["custom"])


@case
def channels_that_ranks_here_do_not_have(weft):
    config = tiny()
    config["cluster"]["channels"] = 2
    config["cluster"]["device"]["type"] = "cuda"
    path = weft.write("run.json", config)
    weft.expect(0, "plan", path)
    weft.expect(65, "train", path, says=["$.cluster.channels", "set it to 1"])


def plan_of(weft, config, name):
    out = weft.path(name)
    weft.expect(0, "plan", weft.write(name + ".run.json", config), "-o", out)
    return out


@case
def plan_of_another_model_or_cluster(weft):
    plan = plan_of(weft, tiny(), "a.json")
    path = weft.write("run.json", tiny(model__layers__1__repeat=4))
    weft.expect(65, "train", path, "--plan", plan, says="differ")
    path = weft.write("run.json", tiny(cluster__ranks=4))
    weft.expect(65, "verify", plan, "--config", path, says="differ")
    path = weft.write("run.json", tiny(cluster__link__intra__bandwidth="2GB/s"))
    weft.expect(65, "verify", plan, "--config", path, says="differ")


@case
def plan_at_another_limit(weft):
    """The plan's limit applies, unless a flag contradicts it."""
    plan = weft.path("a.json")
    config, wide = weft.write("run.json", tiny()), weft.write("none.json",
                                                              tiny(cluster__memory_limit=None))
    weft.expect(0, "plan", config, "--memory-limit", "512MiB", "-o", plan, "-q")
    for path in (config, wide):
        weft.expect(0, "verify", plan, "--config", path, says="memory limit of 512MiB, which counts")
        weft.expect(0, "simulate", plan, "--config", path)
    weft.expect(0, "train", config, "--plan", plan, "--run", "run", says="of 512MiB, which counts")
    assert json.load(open(weft.path("run/config.json"), encoding="utf-8"))["cluster"][
        "memory_limit"] == "512MiB"
    for verb in (("train", config, "--plan", plan), ("verify", plan, "--config", config)):
        for flag in (("--memory-limit", "2GiB"), ("--set", "cluster.memory_limit=2GiB")):
            weft.expect(65, *verb, *flag, says=["limit of 512MiB, and 2GiB was given",
                                                "give --memory-limit 512MiB",
                                                f"plan {config} --memory-limit 2GiB -o {plan}"])
        code, _, err = weft.run(*verb, "--memory-limit", "0.5GiB", "--set", "train.micro_batch=3")
        assert code == 65 and "F:wte takes: " in err and "hash" not in err, err


@case
def plan_of_another_version(weft):
    plan = plan_of(weft, tiny(), "a.json")
    document = json.load(open(plan, encoding="utf-8"))
    for version, reason in ((5, "older plans have other keys"), (11, "older plans have other keys"), (99, "")):
        document["version"] = version
        weft.expect(65, "verify", weft.write("b.json", document),
                    says=["b.json", f"version {version} of weft-plan", reason, "plan again"])


@case
def plan_that_was_tampered_with(weft):
    plan = plan_of(weft, tiny(), "a.json")
    text = open(plan, encoding="utf-8").read()
    weft.expect(65, "verify", weft.write("b.json", text[:len(text) // 2]), says="b.json")
    document = json.loads(text)
    assert document["problem"]["tiers"][0]["limit_bytes"] > 0
    document["problem"]["tiers"][0]["limit_bytes"] = 1000
    weft.expect(65, "verify", weft.write("c.json", document), says="limit")


@case
def plan_to_start_from_of_another_model(weft):
    plan = plan_of(weft, tiny(), "a.json")
    path = weft.write("run.json", tiny(model__layers__1__repeat=4))
    weft.expect(65, "plan", path, "--start", plan, says="decisions to start from")
    weft.expect(66, "plan", path, "--start", weft.path("none.json"), says="none.json")
    weft.expect(0, "plan", weft.write("same.json", tiny()), "--start", plan)


def raise_bound(plan):
    step, bound = plan["prediction"]["step_ns"], plan["bound"]["bound_ns"]
    assert step > bound + 1
    plan["bound"]["bound_ns"] = bound + (step - bound) // 2


def change_a_time(plan):
    slots = [s for s in plan["problem"]["slots"] if s["time_ns"] > 0]
    slots[0]["time_ns"] += 1


def change_bytes(plan):
    strategies = plan["problem"]["decisions"][1]["strategies"]
    sdp = [strategy for strategy in strategies if strategy["name"] == "sdp"]
    sdp[0]["holds"][0]["bytes"] += 256


def change_a_placement(plan):
    last = [p for p in plan["placements"] if p["launch"] > 0][-1]
    last["launch"] -= 1


def remove_a_leaf(plan):
    tree = plan["certificate"]["tree"]
    tree[:] = [{"decision": 0, "strategies": ["dp"]}] + tree


def remove_the_certificate(plan):
    plan["certificate"] = None


def repeat_a_leaf(plan):
    tree = plan["certificate"]["tree"]
    tree.append(tree[-1])


def ask_too_much_for_time(plan):
    prices = plan["certificate"]["prices"][0]["lambda"]
    prices[0] = (1 << 40) + 1


def ask_too_much_for_bytes(plan):
    prices = plan["certificate"]["prices"][0]["mu"]
    prices[:] = [(1 << 53) - 1] * len(prices)


def name_another_problem(plan):
    digits = plan["certificate"]["problem"]
    plan["certificate"]["problem"] = digits[1:] + ("0" if digits[-1] != "0" else "1")


def end_the_arena_above_the_limit(plan):
    plan["prediction"]["total_bytes"] = plan["problem"]["tiers"][0]["limit_bytes"] + 1


def end_the_arena_below_the_rows(plan):
    plan["prediction"]["total_bytes"] = plan["prediction"]["peak_bytes"] - 256


def make_the_arena_more_than_all(plan):
    plan["prediction"]["arena_bytes"] = plan["prediction"]["total_bytes"] + 1


@case
def model_that_can_be_planned_but_not_trained(weft):
    """check says of each model what train would say, with a code of its own."""
    blocks = {"relu": {}, "custom": {"parameters": 64, "forward_flops": "1G", "backward_flops": "2G"}}
    trained = 0
    for kind, keys in blocks.items():
        layers = [{"name": "embed", "type": "embedding", "vocab": 256, "hidden": 64},
                  {"name": "middle", "type": kind, "hidden": 64, **keys},
                  {"name": "head", "type": "lm_head", "vocab": 256, "hidden": 64}]
        path = weft.write("run.json", {**tiny(), "model": {"layers": layers}})
        told = json.loads(weft.expect(0, "check", path, "--json"))
        code, _, error = weft.run("train", path, "--run", weft.path(kind), "--set", "train.steps=1")
        error = " ".join(error.split())
        if "not trained" in error:
            assert code == 65 and told["ok"] and told["code"] == "planned_only", told
            assert told["untrained"].split(": ", 1)[1] in error, (error, told)
            assert "can be planned, not trained: layer" in " ".join(weft.expect(0, "check", path).split())
        else:
            assert told["code"] == "ok" and told["untrained"] == "", told
            trained += 1
    assert 0 < trained < len(blocks), trained
    bad = json.loads(weft.run("check", weft.write("bad.json", {"version": 1}), "--json")[1])
    assert bad["code"] == "refused" and not bad["ok"], bad


@case
def certificate_that_does_not_hold(weft):
    plan = weft.path("a.json")
    weft.expect(0, "plan", weft.write("run.json", tiny()), "--planner", "all-fsdp", "-o", plan)
    weft.expect(0, "verify", plan)
    text = open(plan, encoding="utf-8").read()
    for change in (raise_bound, change_a_time, change_bytes, change_a_placement, remove_a_leaf,
                   remove_the_certificate, repeat_a_leaf, ask_too_much_for_time,
                   ask_too_much_for_bytes, name_another_problem, end_the_arena_above_the_limit,
                   end_the_arena_below_the_rows, make_the_arena_more_than_all):
        document = json.loads(text)
        change(document)
        assert document != json.loads(text)
        weft.expect(65, "verify", weft.write("b.json", document))


@case
def decision_changed_by_hand(weft):
    """An edited decision is refused, even if the plan is as fast and within the limit."""
    text = open(plan_of(weft, tiny(), "a.json"), encoding="utf-8").read()
    n_placements = len(json.loads(text)["placements"])
    told = 0
    for index in range(n_placements):
        for step in (-1, 1):
            document = json.loads(text)
            document["placements"][index]["launch"] += step
            code, _, said = weft.run("verify", weft.write("b.json", document))
            assert code == 65, f"placement {index} moved by {step}: exit {code}\n{said}"
            told += "decision_hash" in said
    assert told > 0, "each was refused for something else"
    document = json.loads(text)
    document["pages"]["stretches"][-1][0] += 1
    weft.expect(65, "verify", weft.write("b.json", document), says=["b.json: the plan says", "decision_hash"])
    other = weft.write("other.json", tiny(train__micro_batch=4))
    weft.expect(65, "train", other, "--plan", "a.json", "--run", "other", says="a.json: the plan was made for another problem")


def with_hash(plan):
    """The plan with the hash of its edited decision."""
    return {**plan, "decision_hash": hash_of_decisions(plan, Problem(copy.deepcopy(plan["problem"])))}


@case
def what_verify_proves_of_other_periods(weft):
    run = tiny(train__clip_norm=0)
    out, config = plan_of(weft, run, "a.json"), weft.write("run.json", run)
    text = open(out, encoding="utf-8").read()
    n = len(json.loads(text)["other_periods"])
    assert n >= 2, n
    said = " ".join(weft.expect(0, "verify", out, "--config", config).split())
    assert f"for its period, and none of {n + 1} of {n + 1} periods than" in said, said
    document = json.loads(text)
    other = document["other_periods"][0]
    other["bound_ns"] += max(10, other["bound_ns"] // 10)
    weft.expect(65, "verify", weft.write("b.json", document), says="decision_hash")
    path = weft.write("b.json", with_hash(document))
    weft.expect(65, "verify", path, "--config", config,
                says=["other_periods[0]: ", "no step is below"])
    said = " ".join(weft.expect(0, "verify", path).split())
    assert f"--config also proves the bounds of the {n} other periods" in said, said
    for key, value, says in (("problem", "0" * 32, "is not of the problem that the config makes"),
                             ("tree", [], "tree"), ("prices", [{}], "prices[0]")):
        document = json.loads(text)
        document["other_periods"][0]["certificate"][key] = value
        weft.expect(65, "verify", weft.write("b.json", document), "--config", config,
                    says=["other_periods[0]: ", says])
    document = json.loads(text)
    document["other_periods"][0]["problem"]["period"]["update_ahead"] = 3
    weft.expect(65, "verify", weft.write("b.json", with_hash(document)), "--config", config)
    document = json.loads(text)
    document["periods_open"] += 1
    weft.expect(65, "verify", weft.write("b.json", with_hash(document)), "--config", config,
                says=f"periods_open is {n + 2}, and this config allows {n + 1}")
    document = json.loads(text)
    document["other_periods"][1] = document["other_periods"][0]
    weft.expect(65, "verify", weft.write("b.json", document),
                says=["other_periods[1]", "has this period already"])
    document = json.loads(text)
    document["other_periods"] = []
    said = weft.expect(0, "verify", weft.write("b.json", with_hash(document)), "--config", config)
    said = " ".join(said.split())
    assert f"leaf for its period; the config leaves {n + 1} periods open" in said, said
    weft.expect(0, "verify", out, "--config", config)
    weft.expect(65, "verify", out, "--config", weft.write("c.json", tiny()))


@case
def a_plan_without_a_bound_claims_none(weft):
    out = plan_of(weft, tiny(train__clip_norm=0), "a.json")
    document = json.load(open(out, encoding="utf-8"))
    document["certificate"] = None
    document["bound"]["bound_ns"] = 0
    said = " ".join(weft.expect(0, "verify", weft.write("b.json", document)).split())
    assert "it claims no bound" in said and "faster" not in said, said


@case
def plan_that_promises_too_much(weft):
    run = weft.write("run.json", tiny())
    plan = plan_of(weft, tiny(), "a.json")
    text = open(plan, encoding="utf-8").read()
    for figure in json.loads(text)["prediction"]:
        document = json.loads(text)
        document["prediction"][figure] += 1 if document["prediction"][figure] == 0 else -1
        weft.expect(65, "verify", weft.write("b.json", document), "--config", run,
                    says=["the plan says", "plan again"])
    document = json.loads(text)
    document["bound"]["bound_ns"] = document["prediction"]["step_ns"] + 1
    weft.expect(65, "verify", weft.write("b.json", document), says="no step is below")


@case
def a_claim_that_is_not_proven_is_not_repeated(weft):
    """Verbs that print a plan's bound, or its step, check them first. A rule's plan has a gap, with any solver."""
    weft.expect(0, "plan", weft.write("run.json", tiny()), "--planner", "all-fsdp", "-o", weft.path("a.json"))
    text = open(weft.path("a.json"), encoding="utf-8").read()
    verbs = (("explain",), ("report",)), (("export", "--to", "fsdp2"), ("simulate",))
    for number, change in enumerate((raise_bound, lambda plan: plan["prediction"].update(compute_ns=1))):
        document = json.loads(text)
        change(document)
        weft.write("b.json", document)
        for verb, *flags in (*verbs[0], *verbs[1][2 * number:]):  # the first two print stated times
            weft.expect(65, verb, "b.json", *flags, says=["b.json: ", ("the plan claims that no step is below", "compute_ns is 1")[number]])


@case
def a_task_of_another_launcher_starts_no_job_of_its_own(weft):
    launchers = {"torchrun": {"RANK": "1", "WORLD_SIZE": "4"},
                 "Open MPI": {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"},
                 "MPI launcher": {"PMI_RANK": "3", "PMI_SIZE": "4"},
                 "MVAPICH2": {"MV2_COMM_WORLD_RANK": "1", "MV2_COMM_WORLD_SIZE": "2"},
                 "Flux": {"FLUX_TASK_RANK": "1", "FLUX_JOB_SIZE": "4", "PMI_RANK": "1", "PMI_SIZE": "4"},
                 "jsrun": {"JSM_NAMESPACE_RANK": "0", "JSM_NAMESPACE_SIZE": "2"},
                 "srun": {"SLURM_PROCID": "0", "SLURM_NTASKS": "8", "SLURM_STEP_ID": "0"}}
    path = weft.write("run.json", tiny())
    for name, env in launchers.items():
        # Ranks that these two start serve the verbs of all ranks: hosts.py.
        of_hosts = [["train", path, "--run", "run"], ["profile", path], ["sweep", path, "--measure"]]
        for verb in (*([] if "MPI" in name else of_hosts), ["demo"], ["launch", "true"]):
            for flags in [[]] if verb[0] == "demo" else [[], ["-n", "2"]]:  # each task would start ranks of its own
                if name == "MPI launcher":  # task 3 is silent, since task 0 says it
                    assert weft.run(verb[0], *flags, *verb[1:], env=env) == (0, "", ""), verb
                else:
                    weft.expect(1, verb[0], *flags, *verb[1:], env=env, says=[name, "-n "])
        weft.expect(0, "check", path, env=env)
    assert not os.path.exists(weft.path("run")), "a run was begun"
    torchrun = launchers["torchrun"]
    _, _, err = weft.run("train", path, "--run", "run", "-n", "2", env=torchrun)
    cure = re.search(r"`env ((?:-u \w+ )+)weft \.\.\. -n 4`", " ".join(err.split()))
    assert cure, err
    without = {name: None for name in cure[1].replace("-u ", "").split()}
    assert set(without) == set(torchrun), without
    weft.expect(0, "train", path, "--run", "one", "-q", env={**torchrun, "WORLD_SIZE": "1"})
    without_mpi = {"SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_ID": "0"}
    for verb in (["train", path, "--run", "srun", "-n", "2"], ["demo"]):
        weft.expect(1, *verb, env=without_mpi, says=["srun started 2 tasks without MPI", "--mpi=pmix", "--mpi=pmi2"])
    shell = {**launchers["srun"], "SLURM_STEP_ID": "4294967290", "SLURM_STEP_NUM_TASKS": "1"}
    weft.expect(0, "train", path, "--run", "shell", "-q", env=shell)
    batch = {"SLURM_PROCID": "0", "SLURM_NTASKS": "8"}
    weft.expect(0, "train", path, "--run", "batch", "-q", env=batch)


@case
def parameters_that_cannot_be_on_the_host(weft):
    link = {"alpha": "10us", "bandwidth": "1GB/s"}
    host = {"memory_limit": "1GiB", "down": link, "up": link}
    flops = {"f32": "50G", "bf16": "50G"}
    half = {"cluster__device__flops": flops, "train__precision": {"compute": "bf16"}}
    lamb = {"train__optimizer": {"type": "lamb", "lr": 0.001}}
    faults = [({"cluster__host": host}, ["device", "host"], "with f32 the parameters are the master"),
              ({"cluster__host": host, **half}, ["host"], "leaves out \"device\""),
              ({"cluster__host": host, **half, **lamb}, ["device", "host"], "lamb"),
              (half, ["device", "host"], "cluster.host")]
    for changes, homes, says in faults:
        config = weft.write("run.json", tiny(plan__offload={"parameters": homes}, **changes))
        weft.expect(65, "check", config, says=["plan.offload.parameters", says])


def places_of(value, path=()):
    """Yields the paths of numbers, and of texts that begin with a digit, such as limits and rates."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places_of(inner, (*path, key))
    if isinstance(value, (int, float)) and not isinstance(value, bool) or isinstance(value, str) and value[:1].isdigit():
        yield path


def text_with(document, path, number):
    """The document as text, with other characters in one place."""
    changed = copy.deepcopy(document)
    target = changed
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = "HERE"
    return json.dumps(changed).replace('"HERE"', number)


@case
def numbers_that_are_not_finite_are_refused_at_every_door(weft):
    """Each number of a config, and drawn ones of a profile and of a plan, in a way that is drawn for each."""
    link = {"alpha": "10us", "bandwidth": "1GB/s"}
    config = tiny(cluster__base="1MiB", cluster__host={"memory_limit": "1GiB", "down": link, "up": link, "update": "1GB/s"})
    path, dice = weft.write("run.json", config), random.Random(os.environ.get("WEFT_TEST_SEED", "1"))
    weft.expect(0, "plan", path, "-q", "-o", "plan.json")
    weft.expect(0, "profile", path, "-q", "-o", "profile.json")
    literals, texts = ["1e999", "-1e999", "1e400", "NaN", "Infinity"], ['"inf"', '"nan"', '"1e999GB"', '"infGB/s"']
    doors = [(config, literals + texts, None, ("check", "bad.json")),
             (json.loads((weft.directory / "profile.json").read_text()), literals, 20, ("plan", path, "--profile", "bad.json")),
             (json.loads((weft.directory / "plan.json").read_text()), literals + ['"inf"'], 20, ("verify", "bad.json", "--config", path))]
    for document, ways, most, verb in doors:
        places = [place for place in places_of(document) if place != ("weft",)]  # a version is no number
        assert len(places) > 20, (verb, places)
        for place in places if most is None else dice.sample(places, most):
            way = dice.choice(ways)
            weft.write("bad.json", text_with(document, place, way))
            code, _, err = weft.run(*verb)
            key = [word for word in place if isinstance(word, str)][-1]
            assert code == 65 and "bad.json" in err, (verb, place, way, code, err)
            assert err.count("weft: ") == 1 and (way in literals or key in err), (verb, place, way, err)


@case
def output_that_cannot_be_written(weft):
    weft.expect(73, "plan", config_text(weft), "-o", weft.path("no/such/plan.json"),
                says="no/such/plan.json")
    weft.expect(73, "train", config_text(weft), "--run", "untraced", "--trace", "no/such/trace.json",
                says="--trace no/such/trace.json")
    assert not os.path.exists(weft.path("untraced")), "a run was begun"


@case
def a_full_standard_output_is_an_error(weft):
    if not os.path.exists("/dev/full"):
        raise Skip("no /dev/full")
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run([weft.program, "help"], stdout=full, stderr=subprocess.PIPE,
                              check=False)
    assert done.returncode == 74, done


main(sys.argv[1])
