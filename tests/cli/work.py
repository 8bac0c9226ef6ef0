#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plans depend on the config and the work limit, not on the machine's speed or load. Their bytes are equal under slow
and fast clocks. If the time limit ends a search, a warning says so.
"""
import json
import os
import re
import sys

from configs import tiny
from interpose import interpose
from tap import case, main

# Every clock of the program and of its solver runs SPEED times as fast.
CLOCK = """
#include <stdlib.h>
static double speed(void) { return atof(getenv("SPEED")); }
int clock_gettime(clockid_t clock, struct timespec *now)
{
    static _Atomic long begin;
    struct timespec real;
    long none = 0, result = syscall(SYS_clock_gettime, clock, &real);
    long ns = real.tv_sec * 1000000000L + real.tv_nsec;
    atomic_compare_exchange_strong(&begin, &none, ns);
    ns = begin + (long)((double)(ns - begin) * speed());
    *now = (struct timespec){ns / 1000000000L, ns % 1000000000L};
    return (int)result;
}
int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec at;
    (void)zone;
    int result = clock_gettime(CLOCK_MONOTONIC, &at);
    *now = (struct timeval){at.tv_sec, at.tv_nsec / 1000};
    return result;
}
"""
SPEEDS = ("0.01", "1", "100")


def clocks(weft):
    """Returns {speed: environment}."""
    env = interpose(weft, "clock", CLOCK)
    return {speed: {**env, "SPEED": speed} for speed in SPEEDS}


def many_layers(n, **options):
    """Returns layers that exceed every limit below; small blocks make a gap need many steps."""
    layers = tiny()["model"]["layers"]
    layers[1]["repeat"] = n
    return tiny(model__layers=layers, plan__gap=0, train__data=None,
                cluster__link={"intra": {"alpha": "20us", "bandwidth": "200MB/s"}}, **options)


def plan(weft, config, *flags, env=None, name="plan.json", **expects):
    out = weft.path(name)
    weft.expect(0, "plan", config, "-o", out, *flags, env=env, **expects)
    with open(out, "rb") as file:
        return file.read()


def same_under_all_clocks(weft, config, *flags):
    """Plans under every clock and returns the plan. No clock reaches a day."""
    plans = {speed: plan(weft, config, "--time-limit", "24h", *flags, env=env)
             for speed, env in clocks(weft).items()}
    assert len(set(plans.values())) == 1, {speed: len(text) for speed, text in plans.items()}
    return json.loads(plans["1"])


@case
def a_plan_is_the_same_at_any_speed(weft):
    """Pages take too much at first, so the second plan has lower rows."""
    config = weft.write("run.json", many_layers(12, cluster__memory_limit="1645kB", plan__blocks=4))
    made = same_under_all_clocks(weft, config, "--work-limit", "600M")
    assert "before pages" in made["solver"]["stop"], made["solver"]


@case
def a_plan_that_the_work_limit_cuts_short_is_the_same_at_any_speed(weft):
    config = weft.write("run.json", many_layers(24, cluster__memory_limit="2950kB"))
    made = same_under_all_clocks(weft, config, "--work-limit", "40M")
    assert "work limit" in made["solver"]["stop"], made["solver"]


@case
def periods_share_the_work_alike_at_any_speed(weft):
    config = weft.write("run.json", many_layers(8, cluster__memory_limit="1300kB",
                                                train__clip_norm=0))
    made = same_under_all_clocks(weft, config, "--work-limit", "300M")
    assert len(made["other_periods"]) > 1, len(made["other_periods"])


@case
def no_speed_shows_without_a_solver(weft):
    config = weft.write("run.json", many_layers(8, cluster__memory_limit="1300kB"))
    plans = {plan(weft, config, "--time-limit", "24h", "--work-limit", "60M",
                  env={**env, "WEFT_SOLVE": "/no/such/solver"}) for env in clocks(weft).values()}
    assert len(plans) == 1


@case
def a_plan_ends_within_a_small_factor_of_its_work(weft):
    """Rules, uniform plans and pages of a large problem take far more than its limit, in each of several periods."""
    layers = [{"name": "wte", "type": "embedding", "vocab": 50257, "positions": 2048, "hidden": 8192},
              {"name": "h.{i}", "type": "transformer_block", "repeat": 24, "hidden": 8192, "heads": 64, "ffn": 32768},
              {"name": "head", "type": "lm_head", "vocab": 50257, "hidden": 8192, "bias": False, "tie": "wte"}]
    link = {"alpha": "10us", "bandwidth": "12GB/s"}
    config = weft.write("run.json", {
        "version": 1, "model": {"layers": layers},
        "cluster": {"ranks": 4, "memory_limit": "32GB",
                    "device": {"flops": {"bf16": "312T"}, "memory_bandwidth": "2TB/s", "efficiency": 0.5},
                    "link": {"intra": {"alpha": "12us", "bandwidth": "250GB/s"}},
                    "host": {"memory_limit": "20GB", "down": link, "up": link},
                    "disk": {"path": "/tmp", "limit": "4TB", "read": {"alpha": "100us", "bandwidth": "3GB/s"},
                             "write": {"alpha": "100us", "bandwidth": "2GB/s"}}},
        "train": {"steps": 1, "micro_batch": 1, "grad_accum": 4, "seq_len": 2048, "clip_norm": 1,
                  "precision": {"compute": "bf16", "reduce": "f32", "accumulate": "f32"},
                  "optimizer": {"type": "adamw", "lr": 1e-4}},
        "plan": {"recompute": "whole", "micro_step_order": "step", "work_limit": "20M",
                 "offload": {"parameters": ["device", "host"], "state": ["device", "host", "disk"],
                             "activations": ["device"], "inputs": ["device", "host"], "update": ["device"]}}})
    said = weft.run("plan", config, "-v", "-o", weft.path("plan.json"))[2]
    spent = re.search(r"planning took ([0-9.]+) G units of work, and ([0-9.]+) G", said)
    assert float(spent[1]) + float(spent[2]) < 0.3, said


def llama(order, reduce, planner="ilp", work="20M"):
    """Returns a model of many blocks on a slow network: one plan takes more units than the limit."""
    link = {"alpha": "10us", "bandwidth": "20GB/s"}
    layers = [{"name": "wte", "type": "embedding", "vocab": 128256, "hidden": 4096},
              {"name": "h.{i}", "type": "llama_block", "repeat": 4, "hidden": 4096, "heads": 32, "kv_heads": 8,
               "ffn": 14336},
              {"name": "norm", "type": "rms_norm", "hidden": 4096},
              {"name": "head", "type": "lm_head", "vocab": 128256, "hidden": 4096, "bias": False}]
    return {
        "version": 1, "model": {"layers": layers},
        "cluster": {"ranks": 64, "ranks_per_node": 1, "memory_limit": "24GB",
                    "device": {"flops": {"bf16": "165T"}, "memory_bandwidth": "1TB/s", "efficiency": 0.5},
                    "host": {"memory_limit": "128GB", "down": link, "up": link},
                    "link": {"inter": {"alpha": "50us", "bandwidth": "1.25GB/s"}}},
        "train": {"steps": 1, "micro_batch": 1, "grad_accum": 8, "seq_len": 8192, "clip_norm": 1, "reduce": reduce,
                  "precision": {"compute": "bf16", "reduce": "f32", "accumulate": "f32"},
                  "optimizer": {"type": "adamw", "lr": 1e-4}},
        "plan": {"planner": planner, "recompute": "whole", "micro_step_order": order, "work_limit": work,
                 "offload": {"state": ["device", "host"], "activations": ["device"], "inputs": ["device", "host"],
                             "update": ["device"]}}}


@case
def a_small_limit_is_kept_and_no_rule_is_faster(weft):
    """The floor next to twice the limit is 100M units and a rule's plan in each of four periods."""
    for order, reduce, rules in (("step", "micro_step", ("fsdp2",)),
                                 ("layer", "step", ("greedysnake", "breadth-first"))):
        best = min(json.loads(plan(weft, weft.write("rule.json", llama(order, reduce, rule))))["prediction"]["step_ns"]
                   for rule in rules)
        for limit in (1, 20, 100):
            config = weft.write("run.json", llama(order, reduce, work=f"{limit}M"))
            said = weft.run("plan", config, "-v", "-o", weft.path("plan.json"))[2]
            with open(weft.path("plan.json"), encoding="utf-8") as file:
                step = json.load(file)["prediction"]["step_ns"]
            spent = re.search(r"planning took ([0-9.]+) G units of work, and ([0-9.]+) G", said)
            done = float(spent[1]) + float(spent[2])
            assert step <= best, (order, limit, step, best)
            assert done <= max(2 * limit, limit + 100) / 1000 + 0.08, (order, limit, said)
            weft.expect(0, "verify", weft.path("plan.json"), "--config", config)


@case
def more_work_is_not_slower(weft):
    config = weft.write("run.json", many_layers(24, cluster__memory_limit="2950kB"))
    steps = [json.loads(plan(weft, config, "--work-limit", limit))["prediction"]["step_ns"]
             for limit in ("1M", "30M", "1G")]
    assert steps == sorted(steps, reverse=True), steps


@case
def a_sweep_is_the_same_however_many_plan_at_once(weft):
    config = weft.write("run.json", many_layers(8))
    flags = ("--points", "4", "--planners", "ilp,greedy,fsdp2", "--work-limit", "60M",
             "--time-limit", "24h", "--csv", "-")
    tables = {weft.expect(0, "sweep", config, *flags, "--jobs", jobs, env=env)
              for jobs in ("1", "2") for env in clocks(weft).values()}
    assert len(tables) == 1, tables


@case
def explain_says_the_same_at_any_speed(weft):
    config = weft.write("run.json", many_layers(8, cluster__memory_limit="1300kB"))
    plan(weft, config, "--planner", "all-fsdp")
    said = {weft.expect(0, "explain", weft.path("plan.json"), "--time-limit", "24h",
                        "--work-limit", "30M", env=env) for env in clocks(weft).values()}
    assert len(said) == 1


@case
def an_alarm_that_rings_is_said(weft):
    """The plan found by then is complete."""
    config = weft.write("run.json", many_layers(24, cluster__memory_limit="2950kB"))
    env = {**clocks(weft)["1"], "SPEED": "1000000"}
    made = json.loads(plan(weft, config, "--time-limit", "60s", env=env,
                           says="warning: the time limit of 60.0 s ended the search; with the same "
                                "work limit another run may differ"))
    assert "time limit" in made["solver"]["stop"], made["solver"]
    weft.expect(0, "verify", weft.path("plan.json"), "--config", config)
    out, err = weft.run("plan", config, "-o", weft.path("other.json"), "--work-limit", "10M")[1:]
    assert "time limit" not in err, (out, err)


@case
def no_clock_ends_planning_by_default(weft):
    """Clocks run a million times as fast, so planning takes days. Only a given alarm decides."""
    config = many_layers(24, cluster__memory_limit="2950kB")
    path = weft.write("run.json", config)
    assert "time_limit" not in json.loads(weft.expect(0, "check", path, "--print"))["plan"]
    fast = {**clocks(weft)["1"], "SPEED": "1000000"}
    limit = ("--work-limit", "40M")
    assert plan(weft, path, *limit, env=fast) == plan(weft, path, *limit)
    said = {weft.expect(0, "explain", weft.path("plan.json"), "--work-limit", "5M", env=env)
            for env in (fast, None)}
    assert len(said) == 1 and "time limit" not in said.pop(), said
    # An alarm that is given is told in the plan file and the report, also of a config with several periods.
    open_period = {**config, "train": {**config["train"], "clip_norm": 0}}
    for number, one in enumerate((config, open_period)):
        path = weft.write(f"run{number}.json", one)
        out = weft.expect(0, "plan", path, "-o", weft.path("alarm.json"), "--time-limit", "60s", env=fast,
                          says="warning: the time limit of 60.0 s ended the search")
        with open(weft.path("alarm.json"), encoding="utf-8") as file:
            assert "time limit" in json.load(file)["solver"]["stop"]
        assert "\nsolver    time limit" in out, out


@case
def a_solver_that_is_lost_is_said(weft):
    config = weft.write("run.json", many_layers(8, cluster__memory_limit="1300kB"))
    solver = weft.write("solve", "#!/bin/sh\nsed '/^end$/q' >/dev/null\nkill -SEGV $$\n")
    os.chmod(solver, 0o755)
    plan(weft, config, "--work-limit", "60M", env={"WEFT_SOLVE": solver},
         says="warning: the solver was lost while planning")


@case
def a_limit_is_an_amount_of_work(weft):
    config = weft.write("run.json", tiny())
    weft.expect(65, "plan", config, "--work-limit", "30s", says="work_limit")
    weft.expect(65, "plan", config, "--work-limit", "1", says="work_limit")
    plan(weft, config)
    weft.expect(64, "explain", weft.path("plan.json"), "--work-limit", "30s", says="--work-limit")
    weft.expect(64, "explain", weft.path("plan.json"), "--work-limit", "1k", says="--work-limit")


if __name__ == "__main__":
    main(sys.argv[1])
