#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Nodes that step on their own, train.across.every: plans, bits, checkpoints between averages, and refusals."""
import array
import json
import signal
import sys
import time

from configs import tiny
from saved import copy_step, same_files, tensors
from tap import case, main

SPEED = {"f32": "50G", "bf16": "50G", "f16": "50G"}
PLANNERS = ("all-dp", "all-zero1", "all-sdp", "all-fsdp", "random")


def across(every=3, ranks=4, per_node=2, **changes):
    return tiny(**{"cluster__ranks": ranks, "cluster__ranks_per_node": per_node, "cluster__threads": 1,
                   "cluster__link__inter": {"alpha": "100us", "bandwidth": "100MB/s"},
                   "cluster__device__flops": SPEED, "train__steps": 8, "train__across": {"every": every},
                   "train__checkpoint": {"every": 2, "keep": 9, "at_end": True}, "plan__work_limit": "20M", **changes})


def train(weft, run, *flags, **changes):
    config = weft.write(f"{run}.json", across(**changes))
    weft.expect(0, "train", config, "--quiet", "--run", run, *flags)
    return json.loads((weft.directory / run / "result.json").read_text())


@case
def a_checkpoint_between_averages_resumes_under_any_plan(weft):
    """Steps 2, 4 and 8 are between averages, 6 is on one. The files of the end are those of the first run."""
    expected = train(weft, "run", train__precision={"compute": "bf16"})
    assert any(".node1.moment2" in name for name in tensors(weft, "run/checkpoints/step-2/optimizer.safetensors"))
    for step, planner in zip((2, 4, 6, 2, 4), PLANNERS):
        run = f"from-{planner}"
        copy_step(weft, "run", run, step)
        resumed = train(weft, run, "--resume", "--planner", planner, train__precision={"compute": "bf16"})
        assert resumed["fingerprint"] == expected["fingerprint"], (step, planner)
        same_files(weft, f"{run}/checkpoints/step-8", "run/checkpoints/step-8")


@case
def a_checkpoint_holds_the_outer_optimizer(weft):
    """Anchor and momentum are stored once, since all nodes have the same, and resumed between averages."""
    outer = {"every": 3, "momentum": 0.9, "lr": 0.7}
    expected = train(weft, "run", train__across=outer)
    names = tensors(weft, "run/checkpoints/step-4/optimizer.safetensors")
    for suffix in (".anchor", ".outer"):
        mine = [name for name in names if name.endswith(suffix)]
        assert mine and not any(".node" in name for name in mine), mine
    before = tensors(weft, "run/checkpoints/step-2/optimizer.safetensors")  # no average yet
    assert not any(any(before[name]) for name in before if name.endswith(".outer"))
    assert any(any(names[name]) for name in names if name.endswith(".outer"))
    for step, planner in ((2, "all-fsdp"), (4, "all-dp"), (6, "random")):
        run = f"from-{planner}"
        copy_step(weft, "run", run, step)
        assert train(weft, run, "--resume", "--planner", planner, train__across=outer)["fingerprint"] == \
            expected["fingerprint"], (step, planner)
        same_files(weft, f"{run}/checkpoints/step-8", "run/checkpoints/step-8")
    assert train(weft, "plain")["fingerprint"] != expected["fingerprint"]
    config = weft.write("other.json", across(train__across=outer))
    weft.expect(65, "train", config, "-q", "--run", "other", "--resume=plain/checkpoints/step-4",
                says=("has no parameters of the last average", "train.across.momentum", "--from plain/checkpoints/step-4"))


@case
def a_trace_has_the_averages_that_happen(weft):
    """Averages come with the updates of a third step: in step 4. Those of step 3 come with its save, so step 4 has none."""
    for run, saves, averaging in (("plain", {"at_end": False}, {4, 7}), ("saved", {"every": 3, "keep": 2, "at_end": False}, set())):
        train(weft, run, "--trace", f"{run}.trace.json", "--trace-steps", "1..8", train__checkpoint=saves)
        trace = json.loads((weft.directory / f"{run}.trace.json").read_text())["traceEvents"]
        processes = {event["pid"] for event in trace}
        steps = {pid: {event["args"]["step"] for event in trace if event["pid"] == pid and event["ph"] == "X"
                       and event["name"].startswith("average ")} for pid in processes}
        assert len(processes) == 5 and all(found == averaging for found in steps.values()), (run, steps)


@case
def another_optimizer_keeps_the_outer_ones_state(weft):
    """Its moments begin at 0. An anchor of 0 would multiply all parameters."""
    outer = {"every": 3, "momentum": 0.9, "lr": 0.7}
    train(weft, "run", train__across=outer, train__steps=4)
    optimizer = {"type": "sgd", "lr": 1e-9}
    train(weft, "run", "--resume", train__across=outer, train__steps=6, train__optimizer=optimizer)
    anchors = [tensors(weft, f"run/checkpoints/step-{step}/optimizer.safetensors") for step in (4, 6)]
    before, after = (sum(sum(map(abs, array.array("f", one[name]))) for name in one if name.endswith(".anchor"))
                     for one in anchors)
    assert abs(after - before) <= 0.02 * before, (before, after)


@case
def saved_activations_may_be_on_the_host(weft):
    host = {"memory_limit": "1GiB", "down": {"bandwidth": "1GB/s"}, "up": {"bandwidth": "1GB/s"}}
    away = {"cluster__host": host, "plan__offload": {"state": ["device"], "activations": ["host"]}}
    assert train(weft, "away", **away)["fingerprint"] == train(weft, "here")["fingerprint"]


@case
def an_outer_optimizer_is_planned(weft):
    """Two fp32 numbers more for each parameter of a rank's part."""
    rows = []
    for across_ in ({"every": 3}, {"every": 3, "momentum": 0.9}):
        config = weft.write("run.json", across(train__across=across_, plan__blocks=1))
        plan = json.loads(weft.expect(0, "plan", config, "--planner", "all-fsdp", "--json", "-o", "plan.json"))
        rows.append(plan["peak_memory_bytes"]["optimizer_state"])
    assert rows[1] == 2 * rows[0], rows  # adamw has two moments in f32
    weft.expect(65, "plan", weft.write("bad.json", across(train__across={"momentum": 0.9})), says="$.train.across: has momentum")


def nodes_of(weft, step):
    """Parameters of both nodes in a checkpoint."""
    path = f"run/checkpoints/step-{step}/"
    first, rest = tensors(weft, path + "model.safetensors"), tensors(weft, path + "optimizer.safetensors")
    return first, {name: rest[f"{name}.node1"] for name in first}


@case
def nodes_differ_between_averages_alone(weft):
    train(weft, "run")
    for step in (2, 4, 6, 8):
        first, second = nodes_of(weft, step)
        assert (first == second) == (step % 3 == 0), step


@case
def steps_on_their_own_send_less_and_differ(weft):
    """Averages every step are not sums of gradients: AdamW is not linear. No moment is averaged."""
    bits = {every: train(weft, f"every-{every}", every=every, train__steps=6)["fingerprint"] for every in (0, 1, 2, 3)}
    assert len(set(bits.values())) == 4, bits
    again = train(weft, "again", every=2, train__steps=6, train__clip_norm=1e9, plan__policies="fsdp")
    assert again["fingerprint"] != bits[0]


@case
def parts_and_neighbours_are_averaged(weft):
    """Any plan has the bits of the rule, and every rule has bits of its own. A rank of gossip sends less."""
    bits, sent = set(), {}
    for name, more in (("mean", {}), ("parts", {"fragments": 2}), ("gossip", {"rule": "gossip"})):
        changes = {"train__across": {"every": 2, **more}, "ranks": 3, "per_node": 1, "train__steps": 6}
        found = {train(weft, f"{name}-{planner}", "--planner", planner, **changes)["fingerprint"] for planner in PLANNERS}
        assert len(found) == 1, (name, found)
        bits |= found
        plan = weft.expect(0, "plan", weft.write("run.json", across(**changes)), "--json", "-o", "plan.json")
        sent[name] = json.loads(plan)["average"]["sent_bytes"]
    assert len(bits) == 3, bits
    assert sent["mean"] == sent["parts"] > sent["gossip"], sent
    for across_, says in (({"every": 2, "rule": "gossip", "lr": 0.5}, "$.train.across.rule"),
                          ({"every": 2, "fragments": 3}, "$.train.across.fragments"),
                          ({"rule": "gossip"}, "$.train.across: has")):
        weft.expect(65, "plan", weft.write("bad.json", across(train__across=across_)), says=says)


@case
def a_plan_tells_the_time_of_averages(weft):
    """2 nodes of 2 ranks and one unit of 16,384 elements: a rank sends half of its 8,192 fp32 numbers twice."""
    config = weft.write("run.json", across(model__layers=[
        {"name": "wte", "type": "embedding", "vocab": 256, "positions": 0, "hidden": 64, "frozen": True},
        {"name": "head", "type": "lm_head", "vocab": 256, "hidden": 64, "bias": False}], plan__blocks=1))
    for planner, gathers_ns in (("all-fsdp", 0), ("all-dp", 20000 + 65536 // 2)):
        plan = json.loads(weft.expect(0, "plan", config, "--planner", planner, "--json", "-o", "plan.json"))
        average = plan["average"]
        # Both ranks of a node share the link: 2 * (100 us + 65,536 bytes / 2 / 100 MB/s).
        assert 0 <= average["ns"] - 2 * (100000 + 327680) - gathers_ns <= 1, (planner, average)
        assert average["sent_bytes"] == 32768, average
        # One step of three has the average, which nothing hides here.
        assert average["longest_step_ns"] - average["usual_step_ns"] <= average["ns"], average
        assert average["longest_step_ns"] > average["usual_step_ns"], average
        mean = -(-(2 * average["usual_step_ns"] + average["longest_step_ns"]) // 3)
        assert plan["step_ns"] == average["mean_step_ns"] == mean, (plan["step_ns"], average)
        assert "an average every 3 steps has" in weft.expect(0, "plan", config, "--planner", planner, "-o", "plan.json")


@case
def what_has_no_averages_is_refused(weft):
    for words, changes in (("there is one node", {"per_node": 4}), ("different numbers of ranks", {"ranks": 5}),
                           ("f16", {"train__precision": {"compute": "f16"}}),
                           ("plan.for", {"plan__for": "fsdp2"}), ("cluster.link.inter", {"cluster__link__inter": {}}),
                           ("plan.offload", {"cluster__host": {"memory_limit": "1GiB",
                               "down": {"bandwidth": "1GB/s"}, "up": {"bandwidth": "1GB/s"}}})):
        config = weft.write("bad.json", across(**changes))
        weft.expect(65, "plan", config, says=("$.train.across.every", words))
    config = weft.write("bad.json", across(plan__policies="hsdp", cluster__link__intra={"bandwidth": "1GB/s"}))
    weft.expect(65, "plan", config, says=("hsdp", "train.across.every"))
    config = weft.write("bad.json", across(every=-1))
    weft.expect(65, "plan", config, says="$.train.across.every")


@case
def a_state_of_other_nodes_is_refused(weft):
    train(weft, "run", train__steps=2)
    train(weft, "plain", every=0, train__steps=2)
    for run, words, changes in (("run", "has the states of 2 nodes", {"every": 0}),
                                ("run", "this run has 4", {"per_node": 1}),
                                ("plain", "has one state, since all ranks stepped together", {})):
        config = weft.write("other.json", across(**changes))
        path = f"{run}/checkpoints/step-2"
        weft.expect(65, "train", config, "-q", "--run", "other", f"--resume={path}", says=(words, f"--from {path}"))
    # The cure works.
    assert train(weft, "begun", "--from", "run/checkpoints/step-2", every=0)["steps_done"] == 8


@case
def a_rest_of_steps_without_an_average_is_told(weft):
    _, _, err = weft.run("train", weft.write("run.json", across(every=5)), "-q", "--run", "run")
    assert "the last 3 of 8 steps come after the last average" in err, err
    _, _, err = weft.run("train", weft.write("run.json", across(every=4)), "-q", "--run", "even")
    assert "the last average" not in err, err


@case
def all_ranks_fail_with_one_node(weft):
    """A number that is not finite on the second node ends both, and names the rank."""
    for clip in (1.0, 0):
        config = weft.write("run.json", across(train__clip_norm=clip))
        weft.expect(79, "train", config, "-q", "--run", weft.fresh("run"), says="rank 3",
                    env={"WEFT_FAILPOINT": "backward:rank=3:step=2:do=nan"})


@case
def nodes_agree_before_averages(weft):
    """An early step fails on the second node, while the first one goes on to step 3. Then all fail."""
    alone = {"train__checkpoint": {"at_end": False}}
    own = ((1.0, 1, "gradient norm inf"), (0, 2, "gradients of the step before it"))  # period 2 ends step 1
    for clip, step, words in own:
        config = weft.write("run.json", across(train__clip_norm=clip, train__lr_schedule={"type": "cosine", "warmup_steps": 4},
                                               **alone))
        says = ("rank 3", f"step {step}: ", words, f"({0.25e-3 * step:g} at this step)")
        weft.expect(79, "train", config, "-q", "--run", weft.fresh("run"), says=says,
                    env={"WEFT_FAILPOINT": f"backward:rank=3:step={step}:do=nan"})


@case
def a_node_waits_for_the_steps_of_others(weft):
    """The second node cannot go on after step 2. It waits longer than cluster.timeout for the step of an average."""
    config = weft.write("run.json", across(
        every=20, train__steps=40, train__checkpoint={"at_end": False}, cluster__timeout="4s", cluster__emulate=True,
        cluster__link__intra={"alpha": "20ms", "bandwidth": "1GB/s"}, plan__policies="fsdp"))
    begin = time.monotonic()
    weft.expect(79, "train", config, "-q", "--run", "run", says=("rank 3", "step 2: "),
                env={"WEFT_FAILPOINT": "backward:rank=3:step=2:do=nan"})
    assert time.monotonic() - begin > 5, "no wait longer than the timeout"


@case
def a_signal_stops_at_an_average(weft):
    """The help of `train` tells it, and so does the key."""
    for page, words in (("train", "so it takes up to H steps"), ("train.across.every", "up to N steps later")):
        assert words in " ".join(weft.expect(0, "help", page).split()), page
    config = weft.write("run.json", across(every=50, train__steps=1000000, train__checkpoint={"at_end": True}))
    process = weft.start("train", config, "-q", "--run", "run", "--progress", "none")
    metrics = weft.directory / "run/metrics.jsonl"
    while not (metrics.exists() and metrics.read_text().count("\n") > 60):
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 75, err
    steps = [int(path.name[len("step-"):]) for path in (weft.directory / "run/checkpoints").glob("step-*")]
    assert steps and all(step % 50 == 0 and step > 0 for step in steps), steps


@case
def losses_of_other_nodes_come_with_averages(weft):
    """Between averages a line has the loss of the first node. At an average it has the mean of all, and that of the
    steps since the last one."""
    train(weft, "run", train__checkpoint={"at_end": False}, train__steps=6)
    lines = [line for line in map(json.loads, (weft.directory / "run/metrics.jsonl").read_text().splitlines())
             if line["kind"] == "step"]
    assert [line.get("nodes_steps") for line in lines] == [None, None, 3, None, None, 3], lines
    own = [line["loss"] for line in lines]
    every = train(weft, "every", every=3, train__checkpoint={"every": 1, "at_end": True}, train__steps=6)  # meets always
    more = [line for line in map(json.loads, (weft.directory / "every/metrics.jsonl").read_text().splitlines())
            if line["kind"] == "step"]
    assert [line["loss"] for line in more] == own and {line["nodes_steps"] for line in more} == {1}, (own, more)
    means = [line["nodes_loss"] for line in more]
    assert every["fingerprint"] == json.loads((weft.directory / "run/result.json").read_text())["fingerprint"]
    assert own[0] != means[0] and own[2] == means[2] and own[5] == means[5], (own, means)
    assert abs(lines[2]["nodes_loss"] - sum(means[:3]) / 3) < 1e-9, (lines[2], means)


@case
def a_replay_has_the_losses_of_steps_without_an_average(weft):
    """Nodes of the run meet to save, to evaluate and at its end. A replay does none of that, and ends at other steps."""
    train(weft, "run", train__steps=8, train__validation={"share": 0.1, "samples": 4, "every": 4})
    for steps in ("1..8", "3..4", "5..7"):
        found = json.loads(weft.expect(0, "replay", "run", "-q", "--json", "--steps", steps))
        assert found["equal"] and found["compared"] > 1, (steps, found)


@case
def replicas_of_one_node_are_compared(weft):
    """Nodes differ between averages without harm. In a node of two ranks it cannot be told which is wrong."""
    config = weft.write("run.json", across(train__compare_every=1, plan__policies="dp"))
    weft.expect(0, "train", config, "-q", "--run", "run")
    weft.expect(79, "train", config, "-q", "--run", weft.fresh("run"), says="differ: rank 2, 3 (which of them",
                env={"WEFT_FAILPOINT": "replica:rank=3:step=2:do=flip"})


main(sys.argv[1])
