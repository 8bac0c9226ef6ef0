#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weft best --clusters` compares the cost of a billion tokens on priced clusters."""
import json
import sys

from tap import case, main

WORK = ("--work-limit", "200M", "--jobs", "2")


def cluster(price=None, ranks=2, flops="1T", limit="1GiB"):
    content = {"ranks": ranks, "memory_limit": limit, "device": {"flops": {"bf16": flops, "f32": flops},
               "memory_bandwidth": "100GB/s"}, "link": {"intra": {"alpha": "10us", "bandwidth": "10GB/s"}}}
    return content if price is None else {**content, "price": price}


def answer(weft, *flags, code=0):
    return json.loads(weft.expect(code, "best", "--model", "gpt-tiny", "--json", *WORK, *flags))


@case
def the_cheapest_comes_first_with_its_bound(weft):
    """The cost follows from price, step and batch, and no plan is proven to cost less than the least cost."""
    slow, fast = weft.write("slow.json", cluster(3.0)), weft.write("fast.json", cluster(40.0, ranks=4, flops="2T"))
    said = answer(weft, "--clusters", f"{fast},{slow}")
    rows = {row["cluster"]: row for row in said["clusters"]}
    assert list(rows) == [slow, fast] and said["samples"] == 4, said
    for row in rows.values():
        step_s, tokens = row["step_ns"] * 1e-9, said["samples"] * 64
        assert abs(row["tokens_per_s"] * step_s / tokens - 1) < 1e-9, row
        cost = row["price"] / 3600 * step_s / tokens * 1e9
        assert abs(row["cost"] / cost - 1) < 1e-9 and row["least_cost"] <= row["cost"] * (1 + 1e-12), row
        assert abs(row["hours"] - 1e9 / row["tokens_per_s"] / 3600) < 1e-9 * row["hours"], row
        assert abs(row["cost"] / row["least_cost"] - 1 - row["gap"]) < 1e-9, row
    assert rows[slow]["tokens_per_s"] < rows[fast]["tokens_per_s"]
    assert said["least_cost"] == min(row["least_cost"] for row in rows.values()), said
    assert said["answer"].startswith(f"{slow}: ") and "no planned variant on these machines is " in said["answer"], said
    told = " ".join(weft.expect(0, "best", "--model", "gpt-tiny", "--clusters", f"{fast},{slow}", *WORK).split())
    assert "for a billion tokens" in told and "at least" in told, told


@case
def a_dear_cluster_may_be_the_cheapest(weft):
    """More speed for little more money."""
    slow, fast = weft.write("slow.json", cluster(3.0)), weft.write("fast.json", cluster(3.05, flops="8T"))
    assert answer(weft, "--clusters", f"{slow},{fast}")["clusters"][0]["cluster"] == fast


@case
def a_cluster_that_fits_nothing_is_a_row(weft):
    small, large = weft.write("small.json", cluster(0.1, limit="100KiB")), weft.write("large.json", cluster(3.0))
    said = answer(weft, "--clusters", f"{small},{large}")
    assert [row["cluster"] for row in said["clusters"]] == [large, small] and said["least_cost"] > 0, said
    assert "least limit" in said["clusters"][1]["reason"] and "cost" not in said["clusters"][1], said
    assert said["clusters"][1]["needs_bytes"] > 100 << 10, said
    assert "no plan fits below " in weft.expect(0, "best", "--model", "gpt-tiny", "--clusters", f"{small},{large}", *WORK)
    reason = answer(weft, "--clusters", small, code=78)["clusters"][0]["reason"]
    assert reason and reason == reason.strip(), reason


@case
def no_plan_is_no_proof(weft):
    """A rule has no plan within 4 MiB, and ilp would have one: the least cost is not proven."""
    tight, wide = weft.write("tight.json", cluster(0.1, limit="4MiB")), weft.write("wide.json", cluster(3.0))
    said = answer(weft, "--clusters", f"{tight},{wide}", "--set", "plan.planner=all-dp")
    assert [row["cluster"] for row in said["clusters"]] == [wide, tight], said
    assert "least_cost" not in said and f"{tight} has no proven least cost" in said["answer"], said
    assert "machines" not in said["answer"] and "needs_bytes" not in said["clusters"][1], said


@case
def rows_that_are_refused_as_data_are_not_78(weft):
    """hsdp needs several nodes, which is no matter of memory."""
    one, two = weft.write("one.json", cluster(3.0)), weft.write("two.json", cluster(4.0))
    flags = ("--clusters", f"{one},{two}", "--set", "plan.policies=hsdp")
    assert all(row["reason"] for row in answer(weft, *flags, code=65)["clusters"])
    told = weft.expect(65, "best", "--model", "gpt-tiny", *flags, *WORK, says=["no cluster has a plan: ", "hsdp shards"])
    assert f"{one}: " in told and f"{two}: " in told, told


@case
def refuses_missing_and_negative_prices(weft):
    """One clear error each."""
    good, bare = weft.write("good.json", cluster(3.0)), weft.write("bare.json", cluster())
    negative = weft.write("negative.json", cluster(-1))
    idle = weft.write("idle.json", {"ranks": 2, "memory_limit": "1GiB", "price": 3.0})
    for flags, code, says in ((("--clusters", f"{good},{bare}"), 65, [bare, "has no price", "\"price\": 24.5"]),
                              (("--clusters", f"{good},{negative}"), 65, ["price", "-1"]),
                              (("--clusters", "h100-8"), 65, ["h100-8 has no price"]),
                              (("--clusters", f"{good},{idle}"), 65, [idle, "has no times", "\"device\""]),
                              (("--clusters", good, "-n", "4"), 64, ["leave out -n", "change the file"]),
                              (("--clusters", good, "--set", "cluster.ranks=4"), 64, ["out --set cluster.ranks=4"]),
                              (("--clusters", good, "--profile", "p.json"), 64, ["leave out --profile"]),
                              (("--clusters", f"{good},"), 64, ["an empty or over-long name"]),
                              (("--clusters", "absent-8"), 66, ["absent-8"]),
                              (("--clusters", good, "--cluster", good), 64, ["leave out --cluster"]),
                              (("--clusters", good, "-o", "won"), 64, ["leave out -o"])):
        code_, out, err = weft.run("best", "--model", "gpt-tiny", *flags, *WORK)
        assert code_ == code and out == "", (flags, code_, out, err)
        assert all(text in err for text in says), (flags, err)
        assert len([line for line in err.splitlines() if line.startswith("weft: ")]) == 1, err


main(sys.argv[1])
