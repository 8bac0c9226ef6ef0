#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weft estimate`: the needs of every policy, and the searches for values that fit."""
import json
import os
import re
import resource
import sys

from configs import tiny
from tap import Skip, case, main

RUNS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "configs", "runs")
POLICIES = ("dp", "zero1", "sdp", "fsdp")
NO_TIMES = {"cluster__device": None, "cluster__link": None}


def config_of(weft, **changes):
    return weft.write("run.json", tiny(**changes))


def row_name(row):
    """Returns a row's name: fsdp2, or "fsdp just in time"."""
    return row.get("rule") or f"{row['policy']} {row['way']}"


def needs(weft, config, *flags):
    said = json.loads(weft.expect(0, "estimate", config, "--json", *flags))
    return said, {row_name(row): row for row in said["rows"]}


LLAMA = {"model_type": "llama", "hidden_act": "silu", "hidden_size": 4096, "num_attention_heads": 32,
         "num_key_value_heads": 8, "intermediate_size": 14336, "num_hidden_layers": 32, "vocab_size": 128256,
         "max_position_embeddings": 8192}
HUB = {  # parameters as published
    8030261248: LLAMA,
    7241732096: {**LLAMA, "model_type": "mistral", "vocab_size": 32000, "sliding_window": None},
    7615616512: {**LLAMA, "model_type": "qwen2", "hidden_size": 3584, "num_attention_heads": 28,
                 "num_key_value_heads": 4, "intermediate_size": 18944, "num_hidden_layers": 28, "vocab_size": 152064,
                 "use_sliding_window": False, "sliding_window": 131072},
    494032768: {**LLAMA, "model_type": "qwen2", "hidden_size": 896, "num_attention_heads": 14,
                "num_key_value_heads": 2, "intermediate_size": 4864, "num_hidden_layers": 24, "vocab_size": 151936,
                "tie_word_embeddings": True},
    124439808: {"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024,
                "vocab_size": 50257},
    46702792704: {**LLAMA, "model_type": "mixtral", "vocab_size": 32000, "num_local_experts": 8,
                  "num_experts_per_tok": 2}}


@case
def a_model_of_hugging_face_needs_no_config(weft):
    for parameters, content in HUB.items():
        flags = ("--hf", weft.write("hf.json", content), "-n", "8", "--memory-limit", "80GiB")
        said = json.loads(weft.expect(0, "estimate", *flags, "--for", "fsdp2", "--json"))
        assert said["parameters"] == parameters, (said["parameters"], parameters)
        assert said["ranks"] == 8 and said["missing"]
        # FSDP2 has no other policies. State is sharded: master and two moments in f32.
        assert {row["policy"] for row in said["rows"]} == {"sdp", "fsdp"}
        state = 12 * parameters / 8
        assert all(state < row["needs_bytes"] for row in said["rows"])
        out = weft.expect(0, "estimate", *flags)
        assert f"model     {parameters} parameters" in out and "zero1" in out, out


@case
def other_files_and_types_of_hugging_face_are_refused(weft):
    for content, says in (
            ({**LLAMA, "model_type": "gemma9"}, ["$.model_type", "bert, gemma, gemma2, gemma3_text, gpt2, llama, mistral, mixtral, olmo2, phi3, qwen2, qwen3, vit"]),
            ({**LLAMA, "attention_bias": True}, ["$.attention_bias: is true; must be false"]),
            ({**LLAMA, "head_dim": 255}, ["head_dim", "even number"]),
            ({**LLAMA, "vocab_size": 0}, ["$.vocab_size: must be an integer from 1"]),
            ({**LLAMA, "num_hidden_layers": None}, ["$.num_hidden_layers: must be an integer from 1"]),
            (tiny(), ["no \"model_type\"", "--hf"]), ([], ["no \"model_type\""])):
        weft.expect(65, "estimate", "--hf", weft.write("hf.json", content), says=says)
    weft.expect(66, "estimate", "--hf", "none.json", says="none.json")
    weft.expect(64, "estimate", "--hf", "hf.json", "run.json", says="takes the place of CONFIG")
    weft.expect(64, "estimate", "--hf", "hf.json", "--model", "hf.json", says="takes the place of --model")
    weft.expect(64, "estimate", says="--hf FILE")
    weft.expect(64, "train", "--hf", "hf.json", says="no such flag")
    hub = weft.write("hf.json", LLAMA)
    weft.expect(65, "estimate", "--hf", hub, "--set", "train.seq_len=0", says="train.seq_len")


@case
def every_policy_has_three_ways(weft):
    said, rows = needs(weft, config_of(weft))
    assert said["times"] == "analytic" and said["ranks"] == 2 and len(rows) == 13
    for policy, rules in zip(POLICIES, (("ddp",), ("zero1",), ("fsdp2:kept",),
                                        ("fsdp2", "deepspeed"))):
        least, fastest = rows[f"{policy} just in time"], rows[f"{policy} fastest"]
        for row in [fastest] + [rows[rule] for rule in rules]:
            assert row["policy"] == policy and row["step_ns"] > 0
            assert least["needs_bytes"] <= row["needs_bytes"], row
            assert sum(row["peak_memory_bytes"].values()) == row["needs_bytes"]
        assert fastest["step_ns"] <= least["step_ns"] * 1.0005
    assert rows["fsdp just in time"]["needs_bytes"] < rows["dp just in time"]["needs_bytes"]


@case
def a_rule_s_row_is_what_plan_says_of_the_rule(weft):
    """Rows match to the byte; with addresses the plan has at most 2 % more."""
    for name in ("gpt-tiny", "gpt-accumulate", "gpt-no-clip", "gpt2", "llama-3.1-405b"):
        config = os.path.join(RUNS, name + ".json")
        _, rows = needs(weft, config)
        for rule in ("ddp", "zero1", "fsdp2:kept", "fsdp2", "deepspeed"):
            plan = weft.path("plan.json")
            weft.expect(0, "plan", config, "--planner", rule, "--memory-limit", "100TiB",
                        "-o", plan)
            with open(plan, encoding="utf-8") as file:
                made = json.load(file)["prediction"]
            assert rows[rule]["needs_bytes"] == made["peak_bytes"], (name, rule)
            assert rows[rule]["step_ns"] == made["step_ns"], (name, rule)
            assert made["total_bytes"] <= 1.02 * made["peak_bytes"], (name, rule)


@case
def the_least_of_405_billion_is_110_gib_and_fsdp2_needs_137(weft):
    _, rows = needs(weft, os.path.join(RUNS, "llama-3.1-405b.json"))
    gib = {name: round(row["needs_bytes"] / 2 ** 30) for name, row in rows.items()}
    assert (gib["fsdp just in time"], gib["fsdp2"], gib["fsdp fastest"]) == (110, 137, 132), gib


@case
def it_is_told_whether_each_way_fits_and_by_how_much_not(weft):
    said, rows = needs(weft, config_of(weft))
    assert said["memory_limit_bytes"] == 2 ** 30 and all(row["fits"] for row in rows.values())
    limit = rows["fsdp just in time"]["needs_bytes"]
    flags = ("--memory-limit", f"{limit}B")
    _, rows = needs(weft, config_of(weft), *flags)
    assert rows["fsdp just in time"]["fits"] and not rows["dp fastest"]["fits"]
    out = weft.expect(0, "estimate", config_of(weft), *flags)
    assert " fits " in out and " +" in out, out
    said, rows = needs(weft, config_of(weft, cluster__memory_limit=None))
    assert "memory_limit_bytes" not in said and "fits" not in rows["ddp"]


@case
def equal_blocks_are_placed_at_once(weft):
    """One by one, the blocks of 259 placements take many times this CPU time on any machine."""
    if weft.is_sanitized():
        raise Skip("a sanitizer makes it several times as slow")
    weft.expect(0, "estimate", "gpt-tiny", "--set", "plan.blocks=65535",
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (15, 15)))


@case
def peaks_are_of_a_slot_and_a_unit(weft):
    _, rows = needs(weft, os.path.join(RUNS, "llama-3.1-405b.json"))
    assert rows["fsdp2"]["peak_slot"] == "B:layers.123", rows["fsdp2"]
    assert rows["fsdp2"]["peak_unit"] == "layers.125+..+head", rows["fsdp2"]


@case
def memory_needs_no_times(weft):
    timed, rows = needs(weft, config_of(weft))
    untimed, others = needs(weft, config_of(weft, **NO_TIMES))
    assert "times" in timed and "times" not in untimed
    for missing in ("cluster.device.flops.f32", "cluster.device.memory_bandwidth",
                    "cluster.link.intra"):
        assert missing in untimed["missing"], untimed["missing"]
    for policy in POLICIES:
        name = f"{policy} just in time"
        assert others[name]["needs_bytes"] == rows[name]["needs_bytes"]
        assert others[f"{policy} earliest"]["step_ns"] is None
    out = weft.expect(0, "estimate", config_of(weft, **NO_TIMES))
    assert " - " in out and "they need cluster.device.flops.f32" in out, out


@case
def a_config_s_policies_are_lifted(weft):
    _, rows = needs(weft, config_of(weft), "--set", "plan.policies=sdp")
    assert {row["policy"] for row in rows.values()} == set(POLICIES)


def strategies(weft, config, *flags):
    rows = json.loads(weft.expect(0, "estimate", config, "--json", *flags))["strategies"]
    return {(row["of"], row["names"], row["strategy"]): row for row in rows}


@case
def each_strategy_has_bytes_times_and_tensors(weft):
    """gpt-tiny: 4 samples of 64 tokens in f32, hidden 64, ffn 256, 4 heads."""
    rows = strategies(weft, os.path.join(RUNS, "gpt-tiny-host.json"))
    saved = {name: row for (of, names, name), row in rows.items() if of == "layer" and names == "h.0-3"}
    derived = {name: saved.pop(name) for name in list(saved) if name.split("+")[0] in ("light", "medium", "deep")}
    assert list(saved) == ["device", "host", "selective", "selective+host", "whole"], saved
    every = 4 * (4 * 64) * (2 + 64 + 3 * 64 + 4 * 64 + 64 + 64 + 2 + 64 + 256 + 256)
    some = 4 * (4 * 64) * (3 * 64 + 64 + 256)
    kept = {name: row["rest_bytes"] for name, row in saved.items()}
    assert kept == {"device": every, "host": 0, "selective": some, "selective+host": 0, "whole": 0}, kept
    there = {name: row["host_bytes"] for name, row in saved.items()}
    assert there == {"device": 0, "host": -(-every // 4096) * 4096, "selective": 0, "selective+host": some,
                     "whole": 0}, there
    less = [row["rest_bytes"] for name, row in derived.items() if "+" not in name]
    assert len(less) >= 1 and every > less[0] and less == sorted(set(less), reverse=True) and less[-1] > 0, derived
    assert len({row["keeps"] for row in derived.values()}) == len(less), derived
    assert saved["selective"]["keeps"] == "q, k, v, residual, fc (on a GPU GELU too)", saved
    assert saved["device"]["compute_ns"] == 0 < saved["selective"]["compute_ns"] < saved["whole"]["compute_ns"]
    assert saved["selective+host"]["copies_ns"] < saved["host"]["copies_ns"] and saved["device"]["copies_ns"] == 0
    # The config's own plan.offload lets all state be on the host only. All homes are listed.
    units = {name: row for (of, names, name), row in rows.items() if of == "unit" and names == "h.1-3+ln_f"}
    assert {"dp", "zero1+host", "fsdp", "fsdp+host-update"} <= set(units), units
    parameters = 4 * (12 * 64 * 64 + 13 * 64)
    assert 1 <= units["dp"]["rest_bytes"] / (3 * parameters) < 1.02, units
    assert units["fsdp+host-update"]["compute_ns"] == 0 < units["fsdp"]["compute_ns"]


@case
def strategies_without_times_have_bytes(weft):
    config = config_of(weft, **NO_TIMES)
    rows = strategies(weft, config)
    assert rows and all(row["compute_ns"] is None and row["rest_bytes"] >= 0 for row in rows.values())
    out = weft.expect(0, "estimate", config)
    assert re.search(r"selective +[0-9.]+ KiB .* - +q, k, v, residual, fc", out), out


@case
def strategies_keep_to_what_the_profile_and_the_target_know(weft):
    rows = strategies(weft, config_of(weft), "--set", "plan.for=fsdp2")
    layers = {row["strategy"] for row in rows.values() if row["of"] == "layer"}
    assert layers == {"device", "whole"}, rows  # by a checkpoint


@case
def a_sweep_asks_for_each_value_of_a_key(weft):
    config = config_of(weft)
    out = weft.expect(0, "estimate", config, "--sweep", "train.micro_batch=1,2,4")
    assert [line for line in out.splitlines() if line.startswith("train.micro_batch=")] == \
        [f"train.micro_batch={n}" for n in (1, 2, 4)], out
    assert re.match(r"train\.micro_batch=1 needs the least: [\d.]+ KiB a rank, fsdp\n", out) or \
        out.startswith("within "), out
    said = json.loads(weft.expect(0, "estimate", config, "--json", "--sweep",
                                  "train.micro_batch=1,2,4"))
    for one, n in zip(said, (1, 2, 4)):
        assert one["set"] == [f"train.micro_batch={n}"]
        alone, _ = needs(weft, config, "--set", f"train.micro_batch={n}")
        del alone["strategies"]
        assert {**alone, "set": one["set"]} == one


@case
def a_plan_that_recomputes_counts_where_nothing_else_fits(weft):
    """The first line agrees with `weft plan`, which recomputes layers if needed."""
    config = config_of(weft, train__micro_batch=8, plan__recompute="if-needed")
    said, rows = needs(weft, config, "--memory-limit", "1KiB")
    least, recomputed = min(row["needs_bytes"] for row in rows.values()), said["recomputed_bytes"]
    assert recomputed < least, (recomputed, least)
    limit = ("--memory-limit", f"{(recomputed + least) // 2}B")
    out = " ".join(weft.expect(0, "estimate", config, *limit).split())
    assert re.match(r"nothing fits \S+ KiB without recomputation: fsdp needs .*; a plan that recomputes needs ", out), out
    weft.expect(0, "plan", config, *limit, "--work-limit", "100M")
    never = ("--set", "plan.recompute=none", *limit)
    assert re.match(r"nothing fits \S+ KiB: fsdp needs the least", weft.expect(0, "estimate", config, *never))
    weft.expect(78, "plan", config, *never, "--work-limit", "100M")
    out = weft.expect(0, "estimate", config, *limit, "--sweep", "train.micro_batch=1,8,4096")
    assert "; 8 with recomputation; 4096 not train" in " ".join(out.split()), out


@case
def a_sweep_of_ranks_is_not_undone_by_n(weft):
    said = json.loads(weft.expect(0, "estimate", config_of(weft), "-n", "3", "--json", "--sweep",
                                  "cluster.ranks=2,4"))
    assert [one["ranks"] for one in said] == [2, 4]


@case
def two_sweeps_are_a_grid_of_what_fits(weft):
    config, limit = config_of(weft, plan__recompute="none"), ("--memory-limit", "750KiB")
    grid = ("--sweep", "train.micro_batch=1,2,64", "--sweep", "cluster.ranks=1,8")
    said = json.loads(weft.expect(0, "estimate", config, *grid, *limit, "--json"))
    assert [one["set"] for one in said] == \
        [[f"train.micro_batch={m}", f"cluster.ranks={n}"] for m in (1, 2, 64) for n in (1, 8)]
    assert all({row["policy"] for row in one["rows"]} == set(POLICIES) for one in said)
    out = weft.expect(0, "estimate", config, *grid, *limit)
    lines = [re.split("  +", line.strip()) for line in out.splitlines()]
    assert lines.pop(0)[0] == "within 750 KiB a rank, of 6 pairs: 3 as rules issue; 3 not", out
    assert lines[1] == ["train.micro_batch", "1", "8"], out
    assert [line[0] for line in lines[2:5]] == ["1", "2", "64"]
    assert all(cell.startswith("+") for cell in lines[4][1:]), "64 sequences fit nowhere"
    fitting = next(row for row in said[1]["rows"] if "rule" in row and row["fits"])
    assert lines[2][2].startswith(fitting["policy"] + " "), (fitting, out)
    assert not any(row["fits"] for row in said[2]["rows"]) and lines[3][1].startswith("+"), out
    weft.expect(64, "estimate", config, *grid, "--sweep", "train.seed=1,2", says="at most twice")
    weft.expect(64, "estimate", config, *grid[:2], *grid[:2], says="the same key twice")
    weft.expect(64, "estimate", config_of(weft, cluster__memory_limit=None), *grid,
                says="--memory-limit")


def search(weft, *flags):
    said = json.loads(weft.expect(0, "estimate", weft.path("run.json"), "--json", *flags))
    return said, {row_name(row): row for row in said["rows"]}


def check_edge(weft, key, rows, limit, step):
    """Checks that each row's value fits and the next one does not."""
    config = weft.path("run.json")
    for name, row in rows.items():
        value = row["value"]
        if value is None:
            continue
        _, here = needs(weft, config, "--set", f"{key}={value}", "--memory-limit", limit)
        assert here[name]["fits"] and here[name]["needs_bytes"] == row["needs_bytes"], row
        if row["bounded_by"] == "memory":
            _, there = needs(weft, config, "--set", f"{key}={value + step}", "--memory-limit",
                             limit)
            assert not there[name]["fits"], row


@case
def the_largest_value_that_fits_is_found(weft):
    config_of(weft, model__layers__0__positions=4096)
    for key, limit in (("train.micro_batch", "5MiB"), ("train.seq_len", "4MiB")):
        said, rows = search(weft, "--largest", key, "--memory-limit", limit)
        assert said["largest"] == key and len(rows) == 13
        assert all(row["value"] > 1 for row in rows.values()), rows
        most = max(row["value"] for row in rows.values())
        assert f"the largest {key} with which {limit[0]}.00 MiB a rank are enough is {most}, with" in said["answer"], said
        check_edge(weft, key, rows, limit, 1)
        out = weft.expect(0, "estimate", weft.path("run.json"), "--largest", key, "--memory-limit",
                          limit)
        assert str(rows["fsdp2"]["value"]) in out
    short, _ = search(weft, "--largest", "seq_len", "--memory-limit", "4MiB")
    assert short["largest"] == "train.seq_len"


@case
def layers_are_repeats_of_the_layer_that_repeats(weft):
    config_of(weft)
    said, rows = search(weft, "--largest", "layers", "--memory-limit", "2MiB")
    assert said["largest"] == "model.layers.1.repeat"
    assert rows["fsdp just in time"]["value"] > rows["dp just in time"]["value"] > 1
    check_edge(weft, said["largest"], {name: rows[name] for name in ("ddp", "fsdp just in time")},
               "2MiB", 1)
    config_of(weft, model__layers__1__repeat=1)
    weft.expect(64, "estimate", weft.path("run.json"), "--largest", "layers",
                says="the model has no repeated layer")


@case
def what_the_config_refuses_ends_a_search(weft):
    config_of(weft)
    said, rows = search(weft, "--largest", "train.seq_len")
    assert all(row["value"] == 16 and row["bounded_by"] == "config" for row in rows.values()), rows
    assert said["refused"] == 17 and "16 positions" in said["refusal"], said
    out = weft.expect(0, "estimate", weft.path("run.json"), "--largest", "train.seq_len")
    assert "train.seq_len=17: " in out and "beyond its 16 positions" in " ".join(out.split()), out


@case
def the_least_ranks_at_which_it_fits_are_found(weft):
    config_of(weft)
    said, rows = search(weft, "--least", "cluster.ranks", "--memory-limit", "420KiB")
    assert said["least"] == "cluster.ranks"
    assert rows["ddp"]["value"] is None, "more ranks do not help who shards nothing"
    assert rows["fsdp just in time"]["value"] > 1, rows
    check_edge(weft, "cluster.ranks", rows, "420KiB", -1)


@case
def beyond_one_node_ranks_are_whole_nodes(weft):
    config_of(weft, cluster__ranks=6, cluster__ranks_per_node=3,
              cluster__link={"intra": {"alpha": "20us", "bandwidth": "1GB/s"},
                             "inter": {"alpha": "20us", "bandwidth": "1GB/s"}})
    for limit in range(330, 600, 10):
        _, rows = search(weft, "--least", "ranks", "--memory-limit", f"{limit}KiB")
        row = rows["fsdp just in time"]
        if row["value"] is None:
            continue
        assert row["value"] <= 3 or row["value"] % 3 == 0, row
        fits = [n for n in (1, 2, 3, 6, 9, 12, 15) if needs(
            weft, weft.path("run.json"), "--set", f"cluster.ranks={n}", "--memory-limit",
            f"{limit}KiB")[1]["fsdp just in time"]["fits"]]
        assert row["value"] > 15 or row["value"] == fits[0], (limit, row, fits)


@case
def one_question_at_a_time(weft):
    config = config_of(weft)
    weft.expect(64, "estimate", config, "--largest", "train.micro_batch", "--least",
                "cluster.ranks", says="one question at a time")
    weft.expect(64, "estimate", config, "--largest", "layers", "--sweep", "train.seed=1",
                says="one question at a time")
    weft.expect(64, "estimate", config, "--largest", "train.mico_batch",
                says="did you mean train.micro_batch?")
    weft.expect(64, "estimate", config, "--least", "train.micro_batch", says="only cluster.ranks")
    weft.expect(64, "estimate", config_of(weft, cluster__memory_limit=None), "--largest", "layers",
                says="give --memory-limit, or cluster.memory_limit")
    for bad in ("train.micro_batch", "=1", "train.micro_batch=", "train.micro_batch=1,,2"):
        weft.expect(64, "estimate", config, "--sweep", bad, says="--sweep " + bad)


main(sys.argv[1])
