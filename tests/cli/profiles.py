#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sources of times: figures, a profile by --profile, this machine. Missing figures are listed together."""
import json
import os
import re
import subprocess
import sys
from contextlib import contextmanager

from configs import tiny
from tap import case, drawn_case, main

# One node of two ranks without figures.
BARE = {"cluster__device": None, "cluster__link": None, "cluster__threads": 1}


def bare(weft, name="bare.json", **changes):
    return weft.write(name, tiny(**{**BARE, **changes}))


@case
def all_that_is_missing_is_said_at_once(weft):
    """Two nodes are not this machine, so nothing is measured."""
    config = bare(weft, cluster__ranks_per_node=1)
    figures = ("device.flops.f32", "device.memory_bandwidth", "link.inter.bandwidth")
    says = [f"$.cluster.{figure} is missing" for figure in figures] + ["--profile profile.json"]
    for verb in (("plan", config), ("sweep", config, "--points", "1")):
        weft.expect(65, *verb, says=says)
    code, out, err = weft.run("check", config)
    assert code == 0 and "ok for estimate" in out, (code, out, err)
    _, told, _ = weft.run("check", config, "--json")
    for figure in figures:
        assert f"cluster.{figure}" in out and f"cluster.{figure}" in json.loads(told)["missing"], out
    some = [word for figure, value in zip(figures, ("1T", "1GB/s", "1GB/s"))
            for word in ("--set", f"cluster.{figure}={value}")]
    weft.expect(0, "plan", config, *some, "--planner", "greedy")
    assert weft.run("check", config, *some)[1].endswith("bare.json: ok\n")
    assert weft.run("check", bare(weft))[1].endswith("bare.json: ok\n"), "this machine is measured"


def named(layers, **parts):
    return {"format": "weft-profile", "version": 1, "source": "measured", "machine": "by hand", "ranks": 2,
            "layers": layers, "collectives": {}, **parts}


@case
def layers_may_have_times_by_name(weft):
    """Blocks of one key with times of their own. All other times come from figures, or by key."""
    config, plan = weft.write("run.json", tiny()), weft.path("plan.json")

    def compute(*layers):
        """Returns the slots' times by name."""
        profile = weft.write("named.json", named(list(layers)))
        weft.expect(0, "plan", config, "-o", plan, "--profile", profile, "--planner", "greedy", "-q")
        weft.expect(0, "verify", plan, "--config", config, "--profile", profile)
        with open(plan, encoding="utf-8") as file:
            return {slot["name"]: slot["time_ns"] for slot in json.load(file)["problem"]["slots"]}

    times = [{"name": f"h.{i}", "forward_ns": 1000 * (i + 1), "backward_ns": 7000 * (i + 1)} for i in (0, 2)]
    before, after = compute(), compute(*times)
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"F:h.0", "B:h.0", "F:h.2", "B:h.2"}, changed
    assert after["F:h.2"] == 3 * after["F:h.0"] == 3000 and after["B:h.2"] == 3 * after["B:h.0"] == 21000
    for layer, says in (({"forward_ns": 1, "backward_ns": 1}, "either"),
                        ({"name": "h.0", "key": "k", "forward_ns": 1, "backward_ns": 1}, "either"),
                        ({"name": 7, "forward_ns": 1, "backward_ns": 1}, "name")):
        weft.expect(65, "plan", config, "--profile", weft.write("bad.json", named([layer])),
                    says=["bad.json: layers[0]", says])
    weft.expect(65, "plan", config, "--profile", weft.write("bad.json", named([times[0], times[0]])), says="there twice")
    several = weft.write("several.json", tiny(train__micro_batch="auto", train__batch=8))
    weft.expect(65, "plan", several, "--profile", weft.write("bad.json", named(times)), says="of one micro-batch")


@case
def plan_measures_what_nobody_gave_and_keeps_it_beside_the_plan(weft):
    config, plan = bare(weft), weft.path("plan.json")
    code, out, err = weft.run("plan", config, "-o", plan, "--json", "--planner", "greedy")
    assert code == 0 and json.loads(out)["times"] == "measured", err
    assert "measuring this machine first" in err and "--profile" in err, err
    kept = ("--profile", weft.path("plan.profile.json"))
    weft.expect(0, "verify", plan, "--config", config, *kept)
    weft.expect(0, "simulate", plan, "--config", config, *kept)
    weft.expect(64, "train", config, "--plan", plan, says="--profile")
    weft.expect(0, "train", config, "--plan", plan, *kept, "--run", weft.path("run"), "-q")
    weft.expect(0, "train", config, "--plan", weft.path("run/plan.json"), "--profile",
                weft.path("run/profile.json"), "--run", weft.path("again"), "-q")


@case
def a_planner_that_is_not_there_is_told_before_anything_is_measured(weft):
    for verb in ("plan", "train"):
        _, _, err = weft.run(verb, bare(weft), "--planner", "ipl")
        assert "did you mean ilp?" in err and "measuring" not in err, err


@drawn_case
def ways_of_training_are_measured(weft):
    """The step that is rehearsed has all buffers of its optimizer, and no averages over nodes."""
    inter = {"intra": {"alpha": "20us", "bandwidth": "1GB/s"}, "inter": {"alpha": "100us", "bandwidth": "100MB/s"}}
    for way, changes in (("means", {"train__optimizer": {"type": "adam_mini", "lr": 1e-3}}),
                         ("gossip", {"train__across": {"every": 2, "rule": "gossip"}})):
        nodes = {"cluster__ranks_per_node": 1, "cluster__link": inter} if "train__across" in changes else {}
        config = weft.write("run.json", tiny(train__steps=2, **changes, **nodes))
        weft.expect(0, "profile", config, "-o", weft.path(f"{way}.profile.json"), "-q")
        weft.expect(0, "train", config, "--profile", f"{way}.profile.json", "--run", way, "-q")


@case
def passes_may_have_times_of_their_own(weft):
    """Groups of any number of layers take them, and an older profile's plain times otherwise."""
    plan, plain = weft.path("plan.json"), {"forward_ns": 1000, "backward_ns": 2000}
    passes = {"pass_first": {"forward_ns": 900, "backward_ns": 1900}, "pass_later": {"forward_ns": 500, "backward_ns": 1500}}

    def times_of(order, **more):
        """Returns the times of a block's slots, by micro-step."""
        config = weft.write("run.json", tiny(train__grad_accum=3, plan__micro_step_order=order))
        profile = weft.write("named.json", named([{"name": "h.1", **plain, **more}]))
        weft.expect(0, "plan", config, "-o", plan, "--profile", profile, "--planner", "greedy", "-q")
        weft.expect(0, "verify", plan, "--config", config, "--profile", profile)
        with open(plan, encoding="utf-8") as file:
            slots = {slot["name"]: slot["time_ns"] for slot in json.load(file)["problem"]["slots"]}
        return [slots[f"{kind}{micro}:h.1"] for kind in "FB" for micro in (1, 2, 3)]

    for order in ("step", "layer", 2, 5):
        alike = [1000] * 3 + [2000] * 3
        assert times_of(order) == alike, order
        assert times_of(order, **passes) == (alike if order == "step" else [900, 500, 500, 1900, 1500, 1500]), order
    half = named([{"name": "h.1", **plain, "pass_later": plain}])
    weft.expect(65, "plan", weft.path("run.json"), "--profile", weft.write("bad.json", half),
                says='bad.json: layers[0]: must have both "pass_first" and "pass_later"')


@case
def times_by_layer_need_memory(weft):
    """One warning of all ranks tells the reason."""
    config = weft.write("run.json", tiny(train__grad_accum=2, cluster__memory_limit="4MB"))
    said = weft.run("profile", config, "-o", weft.path("profile.json"))[2]
    assert said.count("not timed with all micro-steps in turn") == 1, said
    assert "next to base memory an arena of" in said, said
    layers = json.loads((weft.directory / "profile.json").read_text())["layers"]
    assert not any("pass_first" in layer for layer in layers), layers


@case
def policies_that_the_cluster_lacks_are_told_before_ranks_start(weft):
    config = weft.write("run.json", tiny(plan__policies="hsdp,fsdp"))
    weft.expect(65, "profile", config, "-o", weft.path("no.json"), says=f"weft: {config}: $.plan.policies: hsdp")


@case
def check_reads_the_profile_that_it_is_given(weft):
    config, given = bare(weft), ("--profile", weft.path("profile.json"))
    weft.expect(66, "check", config, *given, says="profile.json")
    weft.expect(0, "profile", config, "-o", weft.path("profile.json"), "-q")
    weft.expect(0, "check", config, *given)
    other = bare(weft, "other.json", model__layers__0__hidden=16, model__layers__1__hidden=16,
                 model__layers__2__hidden=16, model__layers__3__hidden=16)
    weft.expect(65, "check", other, *given, says="wte")


@case
def a_run_s_own_plan_and_profile_belong_together(weft):
    config = bare(weft)
    weft.expect(0, "train", config, "--run", weft.path("run"), "-q", "--planner", "greedy")
    weft.expect(0, "verify", weft.path("run/plan.json"), "--config", config, "--profile",
                weft.path("run/profile.json"))


@case
def a_profile_is_given_by_flag_to_every_verb_that_needs_one(weft):
    """The path is relative to the working directory, not to the config's folder."""
    os.mkdir(weft.path("folder"))
    config = bare(weft, "folder/bare.json")
    weft.expect(0, "profile", config, "-o", "pro file.json", "-q")
    given = ("--profile", "pro file.json")
    said = json.loads(weft.expect(0, "plan", config, *given, "-o", "plan.json", "--json",
                                  "--planner", "greedy"))
    assert said["times"] == "measured", said
    assert not os.path.exists(weft.path("plan.profile.json")), "it is kept already"
    for verb in (("verify", "plan.json", "--config", config),
                 ("simulate", "plan.json", "--config", config), ("estimate", config),
                 ("sweep", config, "--points", "1", "--planners", "greedy"),
                 ("train", config, "--plan", "plan.json", "-q")):
        code, _, err = weft.run(*verb, *given)
        assert code == 0 and "measuring" not in err, f"{verb}: {err}"
    weft.expect(66, "plan", config, "--profile", "none.json", says=weft.path("none.json"))
    weft.expect(64, "verify", "plan.json", *given, says="--config")
    weft.expect(64, "profile", config, *given, says="--profile")


def measured(weft, name="measured.json", **origin):
    """Writes a profile of 2 ranks with 1 thread each, with these changes of its origin (None: left out)."""
    path = weft.path(name)
    weft.expect(0, "profile", bare(weft), "-o", path, "-q")
    with open(path, encoding="utf-8") as file:
        profile = json.load(file)
    assert profile["measured_on"]["threads"] == 1, profile["measured_on"]
    assert f"{os.cpu_count()} core" in profile["measured_on"]["machine"], profile["measured_on"]
    profile["measured_on"].update({"busy_millicores": 0, **origin})
    profile["measured_on"] = {key: value for key, value in profile["measured_on"].items() if value is not None}
    if not profile["measured_on"]:
        del profile["measured_on"]
    weft.write(name, profile)
    return path


@contextmanager
def busy_machine():
    spinning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.wait()


@drawn_case
def runs_say_the_load_of_other_programs(weft):
    """Steps take 20 ms at least. A clock of its own does not depend on the load."""
    config = weft.write("run.json", tiny(train__steps=80, cluster__emulate=True, cluster__base="256MiB",
                                         cluster__link={"intra": {"alpha": "1ms", "bandwidth": "1GB/s"}}))
    said = re.compile(r"^other programs used \d+\.\d of \d+ cores: measured times are longer", re.M)
    with busy_machine():
        for verb in (("train", config, "--run", "run", "-q"),
                     ("sweep", config, "--measure", "--limits", "1GiB", "--planners", "greedy", "-q")):
            out = weft.expect(0, *verb)
            assert said.search(out), (verb, out)
        for silent in (("train", config, "--run", "virtual", "--clock", "virtual", "-q"),
                       ("sweep", config, "--limits", "1GiB", "--planners", "greedy", "-q")):
            out = weft.expect(0, *silent)
            assert not said.search(out), (silent, out)


@case
def a_profile_notes_and_says_the_load_of_other_programs(weft):
    with busy_machine():
        out = weft.expect(0, "profile", bare(weft), "-o", weft.path("busy.json"))
    with open(weft.path("busy.json"), encoding="utf-8") as file:
        busy = json.load(file)["measured_on"]["busy_millicores"]
    assert busy >= 100 and "other programs or the host used" in out, (busy, out)


@drawn_case
def a_profile_of_a_busy_machine_is_warned_of_when_it_is_read(weft):
    config, busy = bare(weft), measured(weft, busy_millicores=1300)
    says = ["warning: ", "measured.json: other programs or the host used 1.3 cores"]
    for verb in (("plan", config, "--planner", "greedy"), ("check", config),
                 ("sweep", config, "--points", "1", "--planners", "greedy"),
                 ("train", config, "--run", "run")):
        weft.expect(0, *verb, "--profile", busy, "-q", says=says)
    for quiet in (99, None):
        idle = measured(weft, busy_millicores=quiet)
        code, _, err = weft.run("plan", config, "--profile", idle, "--planner", "greedy", "-q")
        assert code == 0 and err == "", (quiet, err)


@case
def times_of_other_threads_are_told(weft):
    config, profile = bare(weft), measured(weft)
    code, _, err = weft.run("plan", config, "--profile", profile, "-q")
    assert code == 0 and err == "", err
    weft.expect(0, "plan", config, "--profile", profile, "--set", "cluster.threads=2", "-q",
                says=["warning: ", "with 1 thread a rank", "a rank of this config has 2 threads"])
    weft.expect(0, "check", config, "--profile", profile, "--set", "cluster.threads=2",
                says="a rank of this config has 2 threads")


def with_link(weft, name, emulated, alpha="20us", **changes):
    link = {"intra": {"alpha": alpha, "bandwidth": "1GB/s"}}
    return bare(weft, name, cluster__link=link, cluster__emulate=emulated, **changes)


@drawn_case
def inputs_that_differ_are_told_in_one_line(weft):
    """Link, its figures, precision, library of products and usable cores; in both directions."""
    flags = ("--planner", "greedy", "-q")
    configs = {"real": with_link(weft, "real.json", False), "emulated": with_link(weft, "emulated.json", True)}
    for name, config in configs.items():
        weft.expect(0, "profile", config, "-o", weft.path(f"{name}.profile"), "-q")
        with open(weft.path(f"{name}.profile"), encoding="utf-8") as file:
            idle = json.load(file)
        idle["measured_on"]["busy_millicores"] = 0
        weft.write(f"{name}.profile", idle)
    links = {"real": "the machine's own link", "emulated": "an emulated link of 20.0 us and 1.00 GB/s"}
    for of, run in (("real", "emulated"), ("emulated", "real"), ("real", "real"), ("emulated", "emulated")):
        code, _, err = weft.run("plan", configs[run], "--profile", f"{of}.profile", *flags)
        says = f"collectives were measured over {links[of]}, and this run has {links[run]}"
        assert code == 0 and (says in err if of != run else err == ""), (of, run, err)
        weft.expect(0, "check", configs[run], "--profile", f"{of}.profile", says=says if of != run else ())
    for verb in (("sweep", configs["emulated"], "--measure", "--limits", "1GiB", "--planners", "greedy", "-q"),
                 ("train", configs["emulated"], "--run", "run", "-q")):
        weft.expect(0, *verb, "--profile", "real.profile", says="measured over the machine's own link, and this run")
    other = with_link(weft, "other.json", True, "90us")
    weft.expect(0, "plan", other, "--profile", "emulated.profile", *flags,
                says="over an emulated link of 20.0 us and 1.00 GB/s, and this run has an emulated link of 90.0 us")
    # A profile of an older program only says that its link was emulated.
    with open(weft.path("emulated.profile"), encoding="utf-8") as file:
        older = json.load(file)
    for key in ("link", "precision", "cores"):
        del older["measured_on"][key]
    weft.write("older.profile", older)
    weft.expect(0, "plan", configs["real"], "--profile", "older.profile", *flags,
                says="measured over an emulated link, and this run has the machine's own link")
    older["measured_on"].update(precision="bf16", cores=4096)
    weft.write("older.profile", older)
    _, _, err = weft.run("plan", configs["emulated"], "--profile", "older.profile", *flags, env={"WEFT_GEMM": "plain"})
    for text in ("it could use 4096 cores then and can use ", "layers were measured in bf16, and this run computes in f32",
                 f"products were measured by {older['kernels']}, and WEFT_GEMM is plain"):
        assert text in err and err.count("weft: ") == 1, err


@case
def times_of_another_machine_may_be_planned_with(weft):
    config, profile = bare(weft), measured(weft, machine="Other CPU, 64 cores, avx512", threads=4)
    code, _, err = weft.run("plan", config, "--profile", profile, "--set", "cluster.threads=4")
    assert code == 0 and "warning" not in err, err
    assert "times measured on Other CPU, 64 cores, avx512, with 4 threads a rank" in err, err
    # A config with threads 0 uses this machine's threads.
    code, _, err = weft.run("plan", config, "--profile", profile, "--set", "cluster.threads=0", "-q")
    assert code == 0 and err == "", err


def is_part(layers, measured_layers):
    """A run keeps the layers of its own micro-batch; the profile has others too."""
    return layers and all(layer in measured_layers for layer in layers)


@case
def verify_and_simulate_tell_foreign_times(weft):
    config, profile = bare(weft), measured(weft, machine="Other CPU, 64 cores, avx512", busy_millicores=1300)
    given = ("--profile", profile)
    weft.expect(0, "plan", config, *given, "--planner", "greedy", "-o", "plan.json")
    for verb in ("verify", "simulate"):
        weft.expect(0, verb, "plan.json", "--config", config, *given, says=[
            "times measured on Other CPU, 64 cores, avx512", "warning: ", "used 1.3 cores"])


@case
def a_run_with_foreign_times_measures_its_own_base(weft):
    config, own = bare(weft), measured(weft)
    foreign = weft.path("foreign.json")
    with open(own, encoding="utf-8") as file:
        profile = json.load(file)
    profile["base_bytes"] = 1 << 40  # more than any limit allows
    del profile["bases"]
    profile["measured_on"]["machine"] = "Other CPU, 64 cores, avx512"
    weft.write("foreign.json", profile)
    limit = ("--memory-limit", "2GiB")
    weft.expect(78, "plan", config, "--profile", foreign, *limit)
    weft.expect(0, "train", config, "--profile", foreign, *limit, "--run", weft.path("run"), "-q",
                says=["warning: ", "on Other CPU, 64 cores, avx512", "and this machine is "])
    with open(weft.path("run/profile.json"), encoding="utf-8") as file:
        kept = json.load(file)
    assert 0 < kept["base_bytes"] < 1 << 31, kept["base_bytes"]
    assert kept["measured_on"]["machine"] == "Other CPU, 64 cores, avx512", kept["measured_on"]
    assert is_part(kept["layers"], profile["layers"]), kept["layers"]


@case
def a_profile_of_an_older_program_is_read(weft):
    config, profile = bare(weft), measured(weft, machine=None, threads=None, busy_millicores=None)
    code, _, err = weft.run("plan", config, "--profile", profile, "--set", "cluster.threads=2")
    assert code == 0 and "warning" not in err and "does not say on which machine" in err, err
    weft.expect(0, "train", config, "--profile", profile, "--run", weft.path("run"), "-q")


@drawn_case
def layer_times_serve_any_number_of_ranks(weft):
    """Collectives of other ranks are measured, or computed from the config's link."""
    profile = measured(weft)
    with open(profile, encoding="utf-8") as file:
        layers = json.load(file)["layers"]
    config, three = bare(weft), ("-n", "3", "--profile", profile)
    told = "is of other ranks than the 3 of"
    weft.expect(0, "train", config, "--profile", profile, "--run", "run", "--set",
                "train.checkpoint.every=1", "--set", "train.steps=2")
    weft.expect(0, "train", "-n", "3", "--resume", "--run", "run", "--set", "train.steps=3",
                says=told)
    with open(weft.path("run/profile.json"), encoding="utf-8") as file:
        kept = json.load(file)
    assert kept["ranks"] == 3 and kept["base_bytes"] > 0 and is_part(kept["layers"], layers), kept
    weft.expect(0, "check", config, *three)
    planner = ("--planner", "greedy")
    weft.expect(0, "plan", config, *three, *planner, "-o", "plan.json", says=told)
    weft.expect(64, "verify", "plan.json", "--config", config, *three, says="of its ranks")
    weft.expect(0, "verify", "plan.json", "--config", config, "-n", "3", "--profile",
                "plan.profile.json")
    weft.expect(0, "sweep", config, *three, "--points", "1", "--planners", "greedy", says=told)
    link = ("--set", "cluster.link.intra.bandwidth=1GB/s")
    for verb in (("plan", config, *planner), ("check", config),
                 ("train", config, "--run", "other")):
        code, _, err = weft.run(*verb, *three, *link)
        assert code == 0 and told not in err, (verb, err)
        assert "measured with 2 ranks, and the config has 3" in err, (verb, err)
    with open(weft.path("other/profile.json"), encoding="utf-8") as file:
        kept = json.load(file)
    assert kept["measured_on"]["ranks"] == 2 and is_part(kept["layers"], layers), kept
    wide = bare(weft, "wide.json", **{f"model__layers__{n}__hidden": 16 for n in range(4)})
    weft.expect(0, "check", wide, *three)
    weft.expect(0, "plan", wide, *three, *planner, "-o", "wide.json", says=told)
    with open(weft.path("wide.profile.json"), encoding="utf-8") as file:
        kept = json.load(file)
    assert kept["ranks"] == 3 and len(kept["layers"]) == 4, kept
    weft.expect(65, "plan", config, *three, "--set", "cluster.ranks_per_node=1",
                says=["made for 2 ranks", "cluster.link.inter.bandwidth"])


main(sys.argv[1])
