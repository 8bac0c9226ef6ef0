#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whole runs on the device "cuda" over the doubles of CUDA's libraries and NCCL: the shipped program and module.

    runs.py WEFT MODULE DOUBLES WATCHED [--all]

With plain products a run in f32 has the CPU's bits, losses, norms and fingerprint. Ranks, policy, blocks, cadence
and the seed of delays do not matter. DOUBLES and WATCHED are folders of libraries; WATCHED orders every kernel's use
of memory. Prints the number of compared runs.
"""
import itertools
import json
import os
import signal
import sys
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[at] / folder) for at, folder in ((2, "cli"), (3, "bench/gpu"))]
import models  # noqa: E402
from processes import gone, ranks_of  # noqa: E402
from tap import case, drawn_case, left_out, main  # noqa: E402

ALL = "--all" in sys.argv
MODULE, DOUBLES, WATCHED = (os.path.abspath(path) for path in sys.argv[2:5])
COMPARED = []

PLANNERS = ["all-dp", "all-sdp", "all-zero1", "all-fsdp", "greedy", "ilp", "fsdp2", "random"]


def config_of(weft, device, per_node=0, policies=None, across=None, **what):
    """Ranks that pose as nodes of `per_node` ranks, which may step on their own."""
    config = models.config_of(weft.write("tokens", models.tokens_of(9000, 61)), device, **what)
    if per_node:
        config["cluster"]["ranks_per_node"] = per_node
        config["cluster"]["link"]["inter"] = {"alpha": "100us", "bandwidth": "100MB/s"}
    if policies:
        config["plan"]["policies"] = policies
    if across:
        config["train"]["across"] = across
    return config


def environment_of(device, ranks=1, doubles=DOUBLES, seed=1):
    of_gpu = {"WEFT_CUDA_MODULE": MODULE, "LD_LIBRARY_PATH": doubles, "WEFT_DOUBLE_STOP": "1",
              "WEFT_DOUBLE_SEED": str(seed), "WEFT_DOUBLE_GPUS": str(ranks)}
    return {"WEFT_GEMM": "plain", **(of_gpu if device == "cuda" else {})}


def run(weft, config, *arguments, env=None):
    """Trains in a new folder and returns the output lines."""
    device = config["cluster"]["device"]["type"]
    out = weft.expect(0, "train", weft.write("config.json", config), "--run",
                      f"run{len(os.listdir(weft.directory))}", *arguments, "--json",
                      env={**environment_of(device), **(env or {})}, timeout=500)
    return [json.loads(line) for line in out.splitlines()]


def trained(weft, device, env=None, **what):
    """Trains; returns the fingerprint, and losses and norms of all steps."""
    config = config_of(weft, device, **what)
    lines = run(weft, config, env=env)
    steps = [(line["loss"], line.get("norm")) for line in lines if line["kind"] == "step"]
    assert len(steps) == config["train"]["steps"], f"{len(steps)} steps"
    return lines[-1]["fingerprint"], steps


def same_as_the_cpu(weft, doubles=DOUBLES, seed=1, **what):
    wanted = trained(weft, "cpu", **what)
    got = trained(weft, "cuda", environment_of("cuda", what.get("ranks", 1), doubles, seed), **what)
    COMPARED.append(what)
    assert got == wanted, f"{what}: {got[0]} {got[1][-1]}, not {wanted[0]} {wanted[1][-1]}"


@case
def a_run_of_one_rank_has_the_cpus_bits(weft):
    for planner in ("all-dp", "all-fsdp"):
        same_as_the_cpu(weft, planner=planner)


@drawn_case
def so_with_other_optimizers_and_cadences(weft):
    for optimizer in ("sgd", "lamb"):
        same_as_the_cpu(weft, optimizer={"type": optimizer, "lr": 1e-2})
    same_as_the_cpu(weft, planner="all-sdp", grad_accum=2, reduce="micro_step")


@drawn_case
def encoders_and_gemma_have_the_cpus_bits(weft):
    same_as_the_cpu(weft, layers=models.BERT, planner="all-fsdp", ranks=2, masked=models.MASKED)
    same_as_the_cpu(weft, layers=models.GEMMA, planner="all-fsdp", recompute="selective")
    same_as_the_cpu(weft, doubles=WATCHED, layers=models.VIT, planner="all-dp", steps=2)


@drawn_case
def levels_of_recomputation_have_the_cpus_bits(weft):
    for level in ("selective", "whole", "auto"):
        same_as_the_cpu(weft, planner="all-fsdp", recompute=level)
    same_as_the_cpu(weft, doubles=WATCHED, planner="all-fsdp", recompute="selective", steps=2)


@drawn_case
def attention_without_probabilities_has_the_bits_of_every_level(weft):
    """bf16 by own products, which save statistics: the plan has no room for probabilities."""
    first = None
    for level in ("none", "selective", "whole"):
        got = trained(weft, "cuda", {"WEFT_GEMM": "own"}, planner="all-fsdp", recompute=level,
                      dtype="bf16")
        COMPARED.append(level)
        first = first or got
        assert got == first, f"{level}: {got[0]} {got[1][-1]}, not {first[0]} {first[1][-1]}"


@drawn_case
def a_plan_without_probabilities_is_refused_with_plain_products(weft):
    config = weft.write("config.json", config_of(weft, "cuda", planner="all-dp", dtype="bf16"))
    own, plain = ({**environment_of("cuda"), "WEFT_GEMM": way} for way in ("own", "plain"))
    for way, env in (("own", own), ("plain", plain)):
        weft.expect(0, "plan", config, "-o", weft.path(f"{way}.json"), env=env)
        weft.expect(0, "train", config, "--run", f"run-{way}", "-q", env=env)
    weft.expect(65, "train", config, "--plan", weft.path("own.json"), "--run", "refused", env=plain,
                says="WEFT_GEMM=plain weft plan")
    weft.expect(0, "train", config, "--plan", weft.path("plain.json"), "--run", "taken", "-q", env=own)


@drawn_case
def a_profile_of_another_gpu_is_told(weft):
    """The free memory of the GPU differs at each look, and is no part of its name."""
    config = weft.write("config.json", config_of(weft, "cuda", planner="all-dp"))
    there, here = environment_of("cuda"), {**environment_of("cuda"), "WEFT_DOUBLE_GPU": "sm_86"}
    weft.expect(0, "profile", config, "-o", weft.path("profile.json"), env=there)
    with open(weft.path("profile.json"), encoding="utf-8") as file:
        assert json.load(file)["measured_on"]["machine"] == "a double of sm_80"
    for name, env, is_told in (("same", there, False), ("other", here, True)):
        code, _, err = weft.run("train", config, "--profile", "profile.json", "--run", name, "-q", env=env)
        assert code == 0, err
        assert ("profile.json: times measured on a double of sm_80, and this GPU is a double of sm_86" in err) \
            == is_told, err


@drawn_case
def delays_of_streams_change_no_bit(weft):
    for seed in (2, 3, 4) if ALL else (2,):
        same_as_the_cpu(weft, seed=seed, planner="all-sdp")


@case
def every_use_of_memory_is_ordered(weft):
    same_as_the_cpu(weft, doubles=WATCHED, planner="all-fsdp", steps=2)
    same_as_the_cpu(weft, doubles=WATCHED, planner="all-sdp", steps=2, ranks=2, grad_accum=3, reduce="micro_step")
    same_as_the_cpu(weft, doubles=WATCHED, planner="all-fsdp", steps=2, ranks=2, clip_norm=0)
    for planner, clip in itertools.product(PLANNERS, (0, 0.5)) if ALL else ():
        same_as_the_cpu(weft, doubles=WATCHED, planner=planner, steps=2, ranks=3, clip_norm=clip)


@drawn_case
def several_ranks_have_the_cpus_bits(weft):
    """20 steps over NCCL's double."""
    same_as_the_cpu(weft, ranks=2, planner="all-fsdp", steps=20, blocks=3)
    same_as_the_cpu(weft, ranks=3, planner="all-sdp", steps=20, grad_accum=3, reduce="micro_step", seed=2)
    same_as_the_cpu(weft, ranks=4, planner="all-dp", steps=20, clip_norm=0)
    for ranks, planner, clip in itertools.product((2, 3, 4), PLANNERS, (0, 0.5)) if ALL else ():
        same_as_the_cpu(weft, ranks=ranks, planner=planner, steps=20, clip_norm=clip)
    for planner, blocks, clip in itertools.product(("all-fsdp", "all-sdp", "all-dp", "all-zero1"), (1, 2, 5, 7),
                                                   (0, 0.5)) if ALL else ():
        same_as_the_cpu(weft, ranks=3, planner=planner, steps=20, blocks=blocks, clip_norm=clip)
    for micro, reduce, clip, planner in itertools.product((1, 3), ("micro_step", "step"), (0, 0.5),
                                                          ("all-fsdp", "all-sdp")) if ALL else ():
        same_as_the_cpu(weft, ranks=3, planner=planner, steps=20, grad_accum=micro, reduce=reduce, clip_norm=clip)
    for optimizer in ("sgd", "lamb") if ALL else ():
        same_as_the_cpu(weft, ranks=3, planner="all-fsdp", steps=20, optimizer={"type": optimizer, "lr": 1e-2})
    for seed in range(2, 24 if ALL else 2):
        same_as_the_cpu(weft, ranks=2 + seed % 3, planner=PLANNERS[seed % len(PLANNERS)], steps=20, seed=seed)


@case
def policies_of_nodes_have_the_cpus_bits(weft):
    """4 ranks of nodes of 2, with a link of NCCL for each lane and group: within nodes, across them, and of all."""
    of_nodes = {"ranks": 4, "per_node": 2, "steps": 6}
    every = "dp,zero1,sdp,fsdp,hsdp,nodes"
    same_as_the_cpu(weft, **of_nodes, planner="all-nodes", policies="nodes")
    same_as_the_cpu(weft, **of_nodes, planner="all-hsdp", policies="hsdp", grad_accum=2, reduce="micro_step", seed=2)
    same_as_the_cpu(weft, doubles=WATCHED, **of_nodes, planner="random", policies=every, clip_norm=0, blocks=2)
    for seed, planner, clip, blocks in ((seed, *row) for seed, row in enumerate(itertools.product(
            ("all-nodes", "all-hsdp", "random", "ilp"), (0, 0.5), (1, 3)), 3) if ALL):
        same_as_the_cpu(weft, **of_nodes, planner=planner, policies=every, clip_norm=clip, blocks=blocks, seed=seed)


@case
def averages_over_nodes_have_the_cpus_bits(weft):
    """Nodes step on their own: a link of NCCL within each node, one across nodes, and for gossip one for each turn."""
    of_nodes, outer = {"ranks": 4, "per_node": 2, "steps": 6}, {"momentum": 0.9, "lr": 0.7}
    same_as_the_cpu(weft, **of_nodes, planner="all-fsdp", across={"every": 2, **outer})
    same_as_the_cpu(weft, doubles=WATCHED, **of_nodes, planner="all-dp", clip_norm=0, across={"every": 3, "fragments": 3})
    same_as_the_cpu(weft, ranks=3, per_node=1, steps=6, planner="all-sdp", across={"every": 2, "rule": "gossip"}, seed=2)
    for seed, planner, clip, across in ((seed, *row) for seed, row in enumerate(itertools.product(
            ("all-zero1", "all-dp", "random", "ilp"), (0, 0.5),
            ({"every": 1}, {"every": 2, **outer}, {"every": 3, "fragments": 2}, {"every": 1, "rule": "gossip"})), 3) if ALL):
        same_as_the_cpu(weft, **of_nodes, planner=planner, clip_norm=clip, across=across, seed=seed)


@drawn_case
def averages_have_one_result_in_16_bits(weft):
    first = None
    for planner in ("all-fsdp", "all-dp", "all-zero1"):
        got = trained(weft, "cuda", environment_of("cuda", 4), ranks=4, per_node=2, dtype="bf16", planner=planner,
                      across={"every": 2, "momentum": 0.9, "lr": 0.7})
        COMPARED.append(planner)
        first = first or got
        assert got == first, f"{planner}: {got[0]} {got[1][-1]}, not {first[0]} {first[1][-1]}"


@drawn_case
def units_of_nodes_have_one_result_in_16_bits(weft):
    """Partial sums are rounded once. Parameters may be cached on the host, and state updated there."""
    first = None
    for planner, policies, away in (("all-fsdp", "fsdp", ()), ("all-hsdp", "hsdp", ()), ("all-nodes", "nodes", ()),
                                    ("fcdp", "nodes", ("parameters",)), ("all-nodes", "nodes", ("update",))):
        got = trained(weft, "cuda", environment_of("cuda", 4), ranks=4, per_node=2, dtype="bf16", planner=planner,
                      policies=policies, away=away)
        COMPARED.append(planner)
        first = first or got
        assert got == first, f"{planner} {away}: {got[0]} {got[1][-1]}, not {first[0]} {first[1][-1]}"


@drawn_case
def a_plan_of_nodes_takes_its_limit_to_the_byte(weft):
    """The least plan counts all that a rank takes, with what its links take next to the arena. A byte less has no plan."""
    for planner, more in (("all-nodes", {"policies": "nodes"}), ("all-fsdp", {"across": {"every": 2}})):
        take_the_limit(weft, config_of(weft, "cuda", ranks=4, per_node=2, planner=planner, blocks=1, **more))


def take_the_limit(weft, config):
    env, path = environment_of("cuda", 4), weft.write("config.json", config)
    weft.expect(0, "profile", path, "-o", weft.path("profile.json"), env=env)
    total, code = 1 << 31, 0
    while code == 0:  # a rule moves blocks apart as far as memory allows
        config["cluster"]["memory_limit"] = f"{total}B"
        code, out, err = weft.run("plan", weft.write("config.json", config), "--profile", "profile.json", "-o",
                                  weft.path("plan.json"), "--json", env=env)
        least, total = total + 1, json.loads(out)["total_bytes"] - 1 if code == 0 else 0
    assert code == 78, (code, err)
    config["cluster"]["memory_limit"] = f"{least}B"
    weft.expect(0, "train", weft.write("config.json", config), "--profile", "profile.json", "--run", weft.fresh("least"), "-q",
                env=env)


@drawn_case
def a_run_goes_on_from_fsdp_to_nodes(weft):
    """With nodes a checkpoint of the CPU's fsdp goes on on GPUs in f32, and one of GPUs in bf16, and the way back."""
    what = {"ranks": 4, "per_node": 2, "steps": 6}
    saves = {"every": 3, "keep": 2}
    fsdp, nodes = {"planner": "all-fsdp", "policies": "fsdp"}, {"planner": "all-nodes", "policies": "nodes"}
    gpus = environment_of("cuda", 4)
    wanted = trained(weft, "cpu", **what, **fsdp)
    configs = {"fsdp": config_of(weft, "cpu", checkpoint=saves, **what, **fsdp), "nodes": config_of(weft, "cuda", **what, **nodes)}
    check_resume(weft, configs, {"fsdp": {}, "nodes": gpus}, "fsdp", "nodes", wanted[0])
    what["dtype"] = "bf16"
    wanted = trained(weft, "cuda", gpus, **what, **fsdp)
    configs = {way: config_of(weft, "cuda", checkpoint=saves, **what, **more) for way, more in (("fsdp", fsdp), ("nodes", nodes))}
    for first, then in (("fsdp", "nodes"), ("nodes", "fsdp")):
        check_resume(weft, configs, {"fsdp": gpus, "nodes": gpus}, first, then, wanted[0])


@drawn_case
def nodes_of_gpus_fail_together(weft):
    """A number that is not finite on the second node ends both. A lost rank of one node ends all within seconds."""
    what = {"ranks": 4, "per_node": 2, "planner": "all-fsdp", "across": {"every": 3}}
    config = weft.write("config.json", config_of(weft, "cuda", steps=6, **what))
    weft.expect(79, "train", config, "--run", "failed", "-q", says="rank 3",
                env={**environment_of("cuda", 4), "WEFT_FAILPOINT": "backward:rank=3:step=2:do=nan"})
    process, pids = started(weft, 4, per_node=2, across={"every": 3})
    os.kill(pids[2], signal.SIGKILL)
    code, err = ended(process, pids)
    assert code == 69 and "rank 2" in err and "signal 9" in err, (code, err)


@drawn_case
def averages_go_on_from_one_device_to_the_other(weft):
    """Step 3 is between two averages, so the checkpoint has the parameters of both nodes and the outer optimizer's numbers."""
    what = {"planner": "all-fsdp", "ranks": 4, "per_node": 2, "steps": 6, "across": {"every": 2, "momentum": 0.9, "lr": 0.7}}
    configs = {device: config_of(weft, device, checkpoint={"every": 3, "keep": 2}, **what) for device in ("cpu", "cuda")}
    wanted = trained(weft, "cpu", **what)
    env = {"cpu": {}, "cuda": environment_of("cuda", 4)}
    for first, then in (("cpu", "cuda"), ("cuda", "cpu")):
        check_resume(weft, configs, env, first, then, wanted[0])


def check_resume(weft, configs, env, first, then, wanted):
    """Trains on the first device, and goes on from step 3 on the other one."""
    before = set(os.listdir(weft.directory))
    run(weft, configs[first], env=env[first])
    folder = next(name for name in set(os.listdir(weft.directory)) - before if name.startswith("run"))
    saved = weft.path(f"{folder}/checkpoints")
    third = next(entry for entry in sorted(os.listdir(saved)) if entry.endswith("3"))
    last = run(weft, configs[then], f"--resume={saved}/{third}", env=env[then])[-1]
    COMPARED.append(f"{first} to {then}")
    assert last["fingerprint"] == wanted, f"{first} to {then}: {last['fingerprint']}, not {wanted}"


@drawn_case
def a_run_goes_on_from_one_device_to_the_other(weft):
    """With the same ranks a checkpoint of either device resumes on the other, to the same bits. In f32 with zero1 a save
    reads this rank's piece while the next step gathers in place.
    """
    for planner, ways in (("all-fsdp", ("cpu", "cuda")), ("all-fsdp", ("cuda", "cpu")), ("all-zero1", ("cuda", "cpu"))):
        what = {"planner": planner, "ranks": 2, "steps": 6, "checkpoint": {"every": 3, "keep": 2}}
        configs = {device: config_of(weft, device, **what) for device in ("cpu", "cuda")}
        wanted = trained(weft, "cpu", **what)
        check_resume(weft, configs, {"cpu": {}, "cuda": environment_of("cuda", 2)}, *ways, wanted[0])


@drawn_case
def two_ranks_on_one_gpu_are_refused(weft):
    config = weft.write("config.json", config_of(weft, "cuda", ranks=2))
    weft.expect(1, "train", config, "--run", "two", env=environment_of("cuda", 1), says=["ranks 0 and 1 have one GPU"])
    weft.expect(1, "train", weft.write("config.json", config_of(weft, "cuda", ranks=3)), "--run", "three",
                env=environment_of("cuda", 2), says=["local rank 2 has no GPU"])


def started(weft, ranks, per_node=0, across=None, policies=None, **cluster):
    """Starts a run on GPUs; returns it and its ranks' pids after the first step."""
    config = config_of(weft, "cuda", per_node, policies, across, planner=f"all-{policies or 'fsdp'}", steps=1000000, ranks=ranks)
    config["cluster"].update(cluster)
    process = weft.start("train", weft.write("config.json", config), "--run", f"run{len(os.listdir(weft.directory))}",
                         "--json", env=environment_of("cuda", ranks))
    for line in process.stdout:
        if json.loads(line)["kind"] == "step":
            break
    pids = ranks_of(process.pid)
    assert len(pids) == ranks, (pids, process.stderr.read() if process.poll() is not None else "")
    return process, pids


def ended(process, pids):
    _, err = process.communicate(timeout=60)
    assert gone(pids), "a rank is left"
    return process.returncode, err


@case
def a_killed_rank_ends_all(weft):
    process, pids = started(weft, 3)
    os.kill(pids[1], signal.SIGKILL)
    since = time.monotonic()
    code, err = ended(process, pids)
    assert code == 69 and "rank 1" in err and "signal 9" in err, (code, err)
    assert time.monotonic() - since < 20, "took too long"


@drawn_case
def a_stopped_rank_is_named_after_the_time(weft):
    """Also in the middle of an operation that all ranks have started. With nodes another rank may be the first that waits
    too long, for a rank that waits for the stopped one.
    """
    for ranks, per_node, policies in ((3, 0, None), *((4, 2, "hsdp") for _ in range(3))):
        process, pids = started(weft, ranks, per_node, policies=policies, timeout="2s")
        os.kill(pids[1], signal.SIGSTOP)
        since = time.monotonic()
        code, err = ended(process, pids)
        assert code == 80 and "cluster.timeout" in err and "rank 1 is stopped by a signal" in err, (code, err)
    print(f"# ended {time.monotonic() - since:.1f} s after a rank was stopped, with a timeout of 2 s")


@drawn_case
def memory_of_the_gpu_is_held_to_the_limit(weft):
    """Only this process's memory counts. If it cannot be told apart, there is a warning."""
    path = weft.write("config.json", config_of(weft, "cuda"))
    more = {**environment_of("cuda"), "WEFT_DOUBLE_NVML_BYTES": str(3 << 30)}
    weft.expect(78, "train", path, "--run", "exact", env=more, says=["over the limit of 2147483648"])
    hidden = {**more, "WEFT_DOUBLE_NVML": "hidden", "WEFT_DOUBLE_TAKEN_BYTES": str(3 << 30)}
    code, _, err = weft.run("train", path, "--run", "hidden", env=hidden)
    assert code == 0 and "the system does not tell them apart" in err, f"{code}: {err}"


@case
def what_was_compared_is_counted(weft):
    del weft
    print(f"# {len(COMPARED)} runs were compared")
    assert len(COMPARED) >= (100 if ALL else 1 if left_out() else 14), len(COMPARED)


main(sys.argv[1])
