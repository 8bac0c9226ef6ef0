#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every verb does its work and reports it as text and as JSON."""
import json
import os
import re
import sys
from pathlib import Path

from configs import tiny
from interpose import interpose
from tap import case, main

ROOT = Path(__file__).resolve().parents[2]


def config_of(weft, **changes):
    return weft.write("run.json", tiny(**changes))


@case
def check_prints_a_config_that_reads_back(weft):
    out = weft.expect(0, "check", config_of(weft), "--print")
    again = weft.expect(0, "check", weft.write("again.json", out), "--print")
    assert out == again


@case
def a_planner_that_is_not_there_is_told_with_what_was_meant(weft):
    config = config_of(weft)
    for name, says in (("ipl", "did you mean ilp?"), ("deepsped", "did you mean deepspeed?"),
                       ("fsdp", "Planner all-fsdp gives it to every unit"),
                       ("zero3", "plan.policies=fsdp"), ("dp", "Planner all-dp"),
                       ("nonsense", "there are ilp, greedy"), ("fsdp2:9", "there are 1 2 3 kept"),
                       ("zero2:1", "has no settings")):
        weft.expect(64, "plan", config, "--planner", name, says=says)
        weft.expect(64, "check", config, "--planner", name, says=says)
    weft.expect(0, "check", config, "--planner", "fsdp2:2")


@case
def a_rule_that_cannot_be_applied_is_no_question_of_the_limit(weft):
    """Exit code 65 with the reason at any limit; 78 means that a higher limit would fit."""
    config = config_of(weft)
    sharded = ("--set", "plan.policies=fsdp,sdp")
    for planner in ("bytescheduler", "ddp", "all-dp", "mg-wfbp"):
        for limit in ("1GiB", "100KiB"):
            code, _, err = weft.run("plan", config, "--planner", planner, *sharded,
                                    "--memory-limit", limit)
            assert code == 65 and "limit" not in err, err
            assert f"planner {planner}: its rule gives unit wte the policy dp, which it may not " \
                   "have: plan.policies" in err, err
    weft.expect(78, "plan", config, "--planner", "ddp", "--memory-limit", "100KiB",
                says="What would help")
    every = ("--set", "train.grad_accum=2", "--set", "train.reduce=micro_step")
    weft.expect(65, "plan", config, "--planner", "ddp", *every, says="set train.reduce")
    either = json.loads(weft.expect(0, "plan", config, "--planner", "ddp", "--json", "--set",
                                    "train.grad_accum=2"))
    assert either["reduce"] == "step", "a period that the rule cannot be applied to is passed over"


@case
def a_limit_that_needs_recomputation_is_met_with_it(weft):
    """The refusal names the settings that fit. A run with recomputation ends with the same parameters."""
    config = str(ROOT / "configs/runs/gpt-tiny.json")
    limit, auto = ("--memory-limit", "6MiB"), ("--set", "plan.recompute=auto")
    none = ("--set", "plan.recompute=none")
    _, _, err = weft.run("plan", config, *limit, *none)
    named = re.findall(r"(?:with|or) (\S+=\w+), least limit .*? \((\d+) bytes\)", err)
    assert named and all(int(least) <= 6 << 20 for _, least in named), err
    for setting, least in named:
        batch = ("--set", "train.batch=16") if "micro_batch" in setting else ()
        weft.expect(0, "plan", config, "--memory-limit", f"{int(int(least) * 1.02)}B", "--set", setting, *batch)
    weft.expect(78, "plan", config, "--memory-limit", "1KiB", *none,
                says="With plan.recompute=auto and train.micro_batch=auto the least limit is")
    plan = json.loads(weft.expect(0, "plan", config, *limit, *auto, "--json", "-o", weft.path("recomputed.json")))
    assert re.search("light|selective|medium|deep|whole", json.dumps(plan["saved"])), plan
    weft.expect(0, "verify", weft.path("recomputed.json"), "--config", config, *auto, *limit)
    weft.expect(65, "plan", config, "--set", "plan.recompute=h.0,ln_f", says='layer "ln_f" (layer_norm) cannot')
    run = ("train", config, "--clock", "virtual", "--set", "train.steps=3", "--json", "-q")
    kept = weft.expect(0, *run, "--run", weft.path("kept"))
    recomputed = weft.expect(0, *run, "--set", "plan.recompute=whole", "--run", weft.path("recomputed"))
    ends = [json.loads(text.splitlines()[-1])["fingerprint"] for text in (kept, recomputed)]
    assert ends[0] == ends[1], ends


@case
def plan_verify_simulate_explain(weft):
    plan = weft.path("plan.json")
    config = config_of(weft)
    said = json.loads(weft.expect(0, "plan", config, "-o", plan, "--json"))
    assert 0 < said["bound_ns"] <= said["step_ns"]
    assert said["total_bytes"] <= said["memory_limit_bytes"]
    weft.expect(0, "verify", plan)
    weft.expect(0, "verify", plan, "--config", config)
    replayed = json.loads(weft.expect(0, "simulate", plan, "--json"))
    assert replayed["step_ns"] == said["step_ns"]
    trace = weft.path("trace.json")
    weft.expect(0, "simulate", plan, "--config", config, "--trace", trace)
    events = json.load(open(trace, encoding="utf-8"))["traceEvents"]
    assert any(event.get("ph") == "X" for event in events)
    explained = weft.expect(0, "explain", plan)
    assert "channel" in explained
    stairs = [line.split("  ") for line in explained.splitlines()
              if line.startswith(("  a block less", "  a block more"))]
    assert len(stairs) == 2 and stairs[1][-1].strip().startswith(("-", "+0.000")), \
        "a block more is never slower"
    said = json.loads(weft.expect(0, "explain", plan, "--json"))
    blocks = said["channel"]
    assert blocks and all(block["held_by"] for block in blocks)
    by_another = [block for block in blocks if "holder" in block]
    assert all(block["held_by"].startswith("channel") for block in by_another)
    assert all(any(block["holder"].items() <= other.items() for other in blocks)
               for block in by_another), "a holder is a block of the channel"
    steps = [stair["step_ns"] for stair in said["stairs"]]
    rows = [stair["rows_within_bytes"] for stair in said["stairs"]]
    assert len(steps) == 3 and rows == sorted(set(rows)) and steps[2] <= steps[1], said["stairs"]
    assert said["price"]["ns_per_gib"] >= 0
    chosen = {of["decision"]: of["strategy"] for of in said["strategies"] if of["chosen"]}
    assert len(chosen) == sum(of["chosen"] for of in said["strategies"]) > 1, chosen
    assert all(of["freed_bytes"] == of["added_ns"] == 0 for of in said["strategies"] if of["chosen"])


@case
def explain_cuts_long_tables_unless_all_is_asked_for(weft):
    config = weft.write("run.json", tiny(model__layers__1__repeat=25))
    plan = weft.path("plan.json")
    weft.expect(0, "plan", config, "--planner", "greedy", "-o", plan)
    cut, whole = weft.expect(0, "explain", plan), weft.expect(0, "explain", plan, "--all")
    more = [int(n) for n in re.findall(r"^  (\d+) more, --all$", cut, re.M)]
    tables = [text[text.index("what each unit costs"):] for text in (cut, whole)]
    rows = [len(re.findall(r"^  (?:wte|h\.\d+|ln_f|head) ", text, re.M)) for text in tables]
    assert len(more) == 3 and more[1] == 28 - 20, more
    assert rows == [40, 40 + sum(more[1:])], (rows, more)


@case
def explain_takes_the_directory_of_a_run(weft):
    config, plan = config_of(weft), weft.path("plan.json")
    weft.expect(0, "plan", config, "-o", plan, "--planner", "greedy")
    out = weft.expect(0, "train", config, "--plan", plan, "--run", "run")
    assert "proven " not in out and len(out.split("step   1/")[0].splitlines()) < 8, out
    assert re.search(r"^plan .*\nstep .* predicted.*\nmemory .* a rank", out, re.M) and "weft explain" in out, out
    told = weft.expect(0, "explain", "run")
    other = re.search(r"the other place of updates: in backward\n.*?\n\n", told, re.S)[0]  # needs the run's config
    assert "not possible here: clipping needs" in other, other
    assert told.replace(other, "") == weft.expect(0, "explain", "run/plan.json")
    os.mkdir(weft.path("hollow"))
    weft.expect(66, "explain", "hollow", says="hollow: is a folder without a plan.json")


@case
def no_message_ends_with_a_blank_line(weft):
    """Lists end with a new line of their own."""
    config = config_of(weft)
    weft.expect(0, "train", config, "--run", "run", "-q")
    for flags in (("--set", "train.steps=5", "--set", "train.seed=9"), ("--set", "train.steps=5", "--no-such")):
        _, _, err = weft.run("train", config, "--run", "run", "--resume", *flags)
        assert err and "\n\n" not in err and err.endswith("\n"), err


@case
def explain_says_of_a_proven_plan_what_the_plan_is(weft):
    """The bound answers without planning again, so a tiny time limit is enough."""
    plan = weft.path("plan.json")
    said = json.loads(weft.expect(0, "plan", config_of(weft), "-o", plan, "--json", "--planner",
                                  "all-dp", "--set", "cluster.ranks=1"))
    assert said["gap"] == 0, said["gap"]
    stairs = json.loads(weft.expect(0, "explain", plan, "--json", "--time-limit", "1ms"))["stairs"]
    assert [stair["step_ns"] for stair in stairs[1:]] == [said["step_ns"]] * len(stairs[1:])
    for value in ("1us", "soon", "5", "2000h"):
        weft.expect(64, "explain", plan, "--time-limit", value, says="--time-limit " + value)


@case
def a_file_of_another_kind_is_named_as_what_it_is(weft):
    config, plan = config_of(weft), weft.path("plan.json")
    weft.expect(0, "plan", config, "-o", plan)
    for verb in ("check", "plan", "train", "estimate"):
        err = weft.run(verb, plan)[2]
        assert err == f'weft: {plan}: is a file of format "weft-plan", and no config\n', err
    for verb in ("explain", "verify", "simulate"):
        weft.expect(65, verb, config, says=f"{config}: is not a plan")


@case
def same_inputs_same_plan(weft):
    config = config_of(weft)
    for name in ("a.json", "b.json"):
        weft.expect(0, "plan", config, "-o", weft.path(name))
    a, b = (open(weft.path(name), "rb").read() for name in ("a.json", "b.json"))
    assert a == b


@case
def a_limit_between_mixes_policies(weft):
    need = {name: json.loads(weft.expect(0, "plan", config_of(weft), "--planner", name, "--json"))
            for name in ("all-fsdp", "all-sdp")}
    limit = sum(said["total_bytes"] for said in need.values()) // 2
    said = json.loads(weft.expect(0, "plan", config_of(weft), "--json", "--memory-limit",
                                  f"{limit}B"))
    assert said["total_bytes"] <= limit
    assert len(set(said["policies"].values())) >= 2, said["policies"]


@case
def pages_a_little_too_many_do_not_end_in_the_leanest_plan(weft):
    """If pages take slightly more than rows, the plan may not become 10 % slower."""
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "configs", "runs")
    said = json.loads(weft.expect(0, "plan", os.path.join(root, "gpt2.json"), "--json",
                                  "--memory-limit", "3288216576B"))
    assert said["total_bytes"] <= 3288216576
    assert "leanest" not in said["solver_stop"], said["solver_stop"]


@case
def train_under_every_planner_gives_the_same_bits(weft):
    found = set()
    planners = re.findall(r"^  ([a-z0-9-]+)  ", weft.expect(0, "help", "planners"), re.M)
    assert {"ilp", "all-fsdp", "ddp", "fsdp2"} <= set(planners), planners
    away = {"zero-infinity": "disk", "offload-stream": "host", "zero-offload": "host",
            "twin-flow": "host", "fsdp2-cpu-offload": "host"}
    for planner, tier in away.items():
        weft.expect(65, "plan", config_of(weft), "--planner", planner, says=f"give cluster.{tier}")
        planners.remove(planner)  # tests/cli/offloaded.py trains with them
    for planner in ("all-hsdp", "all-nodes"):  # they need nodes of several ranks
        weft.expect(65, "plan", config_of(weft), "--planner", planner, says="plan.policies leaves it out")
        planners.remove(planner)
    weft.expect(65, "plan", config_of(weft), "--planner", "fcdp", says="plan.offload.parameters")
    planners.remove("fcdp")  # tests/cli/nodes.py trains with it
    for planner in ("breadth-first", "greedysnake"):  # tests/cli/turns.py trains with them
        weft.expect(65, "plan", config_of(weft), "--planner", planner, says="plan.micro_step_order")
        planners.remove(planner)
    recomputing = ["recompute-all", "recompute-selective", "checkmate-budget", "auto-perf-maxing", "sac-ilp"]
    for planner in planners + ["ddp:1MiB", "fsdp2:2"]:
        run = weft.path(planner.replace(":", "-"))
        flags = ("--set", "plan.recompute=auto") if planner in [*recomputing, "galvatron"] else ()
        if planner in recomputing:
            weft.expect(65, "plan", config_of(weft), "--planner", planner, says="plan.recompute=auto")
        weft.expect(0, "train", config_of(weft), "--planner", planner, "--run", run, "-q", *flags)
        found.add(json.load(open(run + "/result.json", encoding="utf-8"))["fingerprint"])
        lines = open(run + "/metrics.jsonl", encoding="utf-8").read().splitlines()
        assert len(lines) == 3 and all("loss" in json.loads(line) for line in lines)
        weft.expect(0, "check", run + "/config.json")
        weft.expect(0, "verify", run + "/plan.json", "--config", run + "/config.json")
    assert len(found) == 1, found


@case
def train_says_json_lines(weft):
    out = weft.expect(0, "train", config_of(weft), "--json", "--run", weft.fresh("run"))
    lines = [json.loads(line) for line in out.splitlines()]
    assert [line.get("step") for line in lines[:-1]] == [1, 2, 3]
    assert lines[-1]["steps_done"] == 3


@case
def train_with_a_measured_profile(weft):
    config = config_of(weft)
    profile = weft.path("profile.json")
    weft.expect(0, "profile", config, "-o", profile)
    said = json.loads(weft.expect(0, "plan", config, "--set", f"cluster.profile={profile}",
                                  "--json"))
    assert said["times"] == "measured"
    weft.expect(0, "train", config, "--set", f"cluster.profile={profile}", "--run", weft.fresh("run"), "-q")


@case
def virtual_clock_takes_the_predicted_time(weft):
    config = config_of(weft)
    said = json.loads(weft.expect(0, "plan", config, "--json"))
    weft.expect(0, "train", config, "--clock", "virtual", "--run", weft.fresh("run"), "-q")
    result = json.load(open(weft.path("run/result.json"), encoding="utf-8"))
    assert result["step_ns"] == said["step_ns"], (result, said["step_ns"])
    assert result["exposed_ns"] == said["exposed_ns"]


@case
def poison_changes_nothing(weft):
    results = []
    for flags in ([], ["--poison"]):
        weft.expect(0, "train", config_of(weft), "--run", weft.fresh("run"), "-q", *flags)
        results.append(json.load(open(weft.path("run/result.json"), encoding="utf-8")))
    assert results[0]["fingerprint"] == results[1]["fingerprint"]


def one_document(out):
    """Parses exactly one document."""
    return json.loads(out)


@case
def json_is_one_document_also_of_an_error(weft):
    config, plan = config_of(weft), weft.path("plan.json")
    weft.expect(0, "plan", config, "-o", plan)
    missing = weft.path("missing.json")
    for code, arguments in (
            (64, ("nonsense",)), (64, ("plan",)), (64, ("plan", config, "--bogus")),
            (66, ("plan", missing)), (78, ("plan", config, "--memory-limit", "1KiB")),
            (65, ("plan", config, "--set", "train.steps=none")),
            (66, ("estimate", missing)), (66, ("profile", missing)), (66, ("train", missing)),
            (66, ("explain", missing)), (66, ("verify", missing)), (65, ("verify", config)),
            (66, ("simulate", missing)), (64, ("schema", "nonsense")), (64, ("help", "nonsense")),
            (73, ("plan", config, "-o", weft.path("no/such/directory")))):
        error = one_document(weft.expect(code, *arguments, "--json"))["error"]
        assert error["exit_code"] == code and error["text"], error
    for code, arguments in (
            (66, ("check", missing, config)), (66, ("check", missing, "--print")),
            (0, ("check", config, "--print")), (0, ("plan", config, "--program")),
            (0, ("plan", config, "-o", "-")), (0, ("explain", plan)), (0, ("simulate", plan)),
            (0, ("estimate", config, "--sweep", "train.micro_batch=1,2")), (0, ("version",)),
            (0, ("verify", plan)), (0, ("verify", plan, "--config", config)),
            (0, ("completion", "bash")), (0, ("man",)), (0, ("man", "plan")), (0, ("help",)),
            (0, ("plan", "--help")), (0, ("--help",)), (0, ("schema", "plan"))):
        one_document(weft.expect(code, *arguments, "--json"))
    for flag in ("--csv", "--svg"):
        weft.expect(64, "sweep", config, flag, "-", "--json", says="give --csv or --svg a file")
    weft.expect(64, "check", config, config, "--print", "--json", says="one FILE")


@case
def verify_says_in_json_what_it_says_in_text(weft):
    config, plan = config_of(weft, train__grad_accum=2), weft.path("plan.json")
    weft.expect(0, "plan", config, "-o", plan)
    made = json.load(open(plan, encoding="utf-8"))
    for flags in ((), ("--config", config)):
        text = weft.expect(0, "verify", plan, *flags)
        said = one_document(weft.expect(0, "verify", plan, *flags, "--json"))
        assert said["ok"] and said["plan"] == plan and not said["emulated"], said
        assert said["config_checked"] == bool(flags) == ("periods_open" in said), said
        bounds = [period["bound_ns"] for period in said["proven"]]
        assert len(bounds) == 1 + (len(made["other_periods"]) if flags else 0), said
        assert said["bound_ns"] == min(bounds) <= said["step_ns"], said
        leaves = said["proven"][0]["leaves"]
        assert re.search(rf"\b{leaves}(\s+lea[fv]|[;.])", text), (leaves, text)
    said = one_document(weft.expect(0, "simulate", plan, "--json"))
    assert said["step_ns"] == one_document(weft.expect(0, "verify", plan, "--json"))["step_ns"]


@case
def a_file_on_stdout_takes_the_place_of_the_report(weft):
    config, plan = config_of(weft), weft.path("plan.json")
    weft.expect(0, "plan", config, "-o", plan)
    with open(plan, encoding="utf-8") as file:
        assert weft.expect(0, "plan", config, "-o", "-") == file.read()


@case
def flags_that_would_do_nothing_are_refused(weft):
    config, plan = config_of(weft), weft.path("plan.json")
    weft.expect(0, "plan", config, "-o", plan)
    for verb in ("version", "help", "doctor", "demo"):
        weft.expect(64, verb, "-n", "2", says="-n: no such flag")
    weft.expect(64, "explain", plan, "--set", "train.steps=1", says="--config")
    for verb in ("verify", "simulate"):
        weft.expect(64, verb, plan, "-n", "2", says="--config")
        weft.expect(64, verb, plan, "--memory-limit", "1GiB", says="--config")
        weft.expect(65, verb, plan, "--config", config, "-n", "3", says="ranks")
    weft.expect(64, "simulate", plan, "--trace", weft.path("trace.json"), says="--config")


@case
def simulate_lets_ranks_differ(weft):
    """Without jitter it is the plan's step; with jitter steps are longer, and a seed repeats them."""
    config, plan = config_of(weft), weft.path("plan.json")
    weft.expect(0, "plan", config, "-o", plan)
    plain = one_document(weft.expect(0, "simulate", plan, "--json"))
    assert "jitter" not in plain, plain
    none = one_document(weft.expect(0, "simulate", plan, "--jitter", "0", "--json"))
    assert none["jitter"]["mean_ns"] == none["jitter"]["longest_ns"] == none["step_ns"] == plain["step_ns"], none
    first, second, again = (one_document(weft.expect(
        0, "simulate", plan, "--jitter", "0.2", "--jitter-steps", "9", "--jitter-seed", seed, "--json"))["jitter"]
        for seed in ("1", "2", "1"))
    assert first == again != second and first["steps"] == 9, (first, second, again)
    assert plain["step_ns"] < first["median_ns"] <= first["p99_ns"] <= first["longest_ns"], first
    text = weft.expect(0, "simulate", plan, "--jitter", "0.2", "--jitter-steps", "9")
    assert re.search(r"jitter +compute of \d+ ranks varies by 0.2 of its mean, 9 steps", text), text
    assert "compute waits" in text, text
    for value in ("x", "-1", "11", ""):
        weft.expect(64, "simulate", plan, "--jitter", value, says="standard deviation over the mean, from 0")
    for value in ("0", "1.5", "9999999"):
        weft.expect(64, "simulate", plan, "--jitter", "1", "--jitter-steps", value, says="whole number from 1")
    weft.expect(64, "simulate", plan, "--jitter-seed", "1", says="goes with --jitter")
    slows = weft.path("slows.json")
    weft.expect(0, "plan", config, "--set", "cluster.contention.compute=0.3", "-o", slows)
    weft.expect(65, "simulate", slows, "--jitter", "0.1", says="slow each other")


@case
def seed_seeds_the_random_planner(weft):
    plans = {weft.expect(0, "plan", config_of(weft), "--planner", "random", "--seed", seed, "-o", "-")
             for seed in ("1", "2", "3", "3")}
    assert len(plans) == 3


@case
def color_and_progress(weft):
    config = config_of(weft)
    _, _, err = weft.run("plan", "--color=always", config, "--memory-limit", "1KiB")
    assert err.startswith("\033[1;31mweft:\033[0m "), err
    _, _, err = weft.run("plan", config, "--memory-limit", "1KiB")
    assert err.startswith("weft: "), err
    bare = weft.write("bare.json", tiny(cluster__device=None, cluster__memory_limit=None))
    for flags, told in (((), True), (("--progress=plain",), True), (("--progress=none",), False),
                        (("-q",), False)):
        _, _, err = weft.run("train", bare, "--run", weft.fresh("run"), *flags)
        assert ("measuring" in err) == told, (flags, err)


@case
def help_by_flag(weft):
    for flag in ("--help", "-h"):
        assert weft.expect(0, "plan", flag) == weft.expect(0, "help", "plan")
        assert weft.expect(0, flag) == weft.expect(0, "help")


@case
def schema_version_help_doctor(weft):
    schema = json.loads(weft.expect(0, "schema", "config"))
    assert "draft-07" in schema["$schema"]
    assert weft.expect(0, "version").startswith("weft ")
    overview = weft.expect(0, "help")
    for verb in ("demo", "check", "estimate", "profile", "plan", "explain", "verify", "simulate",
                 "train", "sweep", "doctor", "schema", "version", "help"):
        assert f"  {verb}" in overview, verb
        assert "usage: weft " + verb in weft.expect(0, "help", verb)
    states = json.loads(weft.expect(0, "doctor", "--json"))
    assert states["kernels"]["state"] == "ok"


WRONG_SGEMM = """
int dnnl_sgemm(char ta, char tb, long m, long n, long k, float alpha, const float *a, long lda,
               const float *b, long ldb, float beta, float *c, long ldc)
{
    (void)ta, (void)tb, (void)k, (void)alpha, (void)a, (void)lda, (void)b, (void)ldb;
    for (long i = 0; i < m; i++)
        for (long j = 0; j < n; j++) c[i * ldc + j] = beta;
    return 0;
}
"""


@case
def wrong_products_are_not_trained_with(weft):
    """A function that computes no products takes the place of the library's."""
    config = config_of(weft)
    here = interpose(weft, "wrong", WRONG_SGEMM)
    weft.expect(1, "train", config, "--run", "asked", "-q", env={**here, "WEFT_GEMM": "onednn"},
                says=["products of oneDNN are wrong here", "WEFT_GEMM"])
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        others = re.search(r"\b(amx_tile|avx512f)\b", file.read())
    for command in (["train", config, "--run", weft.fresh("run"), "-q"], ["doctor"]):
        code, out, err = weft.run(*command, env={**here, "WEFT_GEMM": ""})
        assert "oneDNN is not used: products of oneDNN are wrong here" in " ".join(err.split()), err
        assert code == 1 or (code == 0 and others), (code, out, err)
    weft.expect(0, "train", config, "--run", weft.fresh("run"), "-q",
                env={**here, "WEFT_GEMM": "plain"})


@case
def shipped_configs_are_valid(weft):
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "configs", "runs")
    files = sorted(os.path.join(root, name) for name in os.listdir(root))
    assert len(files) >= 10
    weft.expect(0, "check", *files)


main(sys.argv[1])
