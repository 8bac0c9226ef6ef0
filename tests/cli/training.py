#!/usr/bin/env python3
"""What a run reads and says: data of both forms, held-out data."""
import json
import struct
import sys

from configs import tiny
from tap import case, main


def token_file(tokens, magic=20240520, version=1, count=None):
    header = struct.pack("<3i", magic, version, len(tokens) if count is None else count)
    return header.ljust(1024, b"\0") + struct.pack(f"<{len(tokens)}H", *tokens)


def lines_of(out):
    return [json.loads(line) for line in out.splitlines()]


@case
def a_token_file_trains_like_the_text(weft):
    """Bytes as 16-bit tokens are the same samples, and so the same losses."""
    text = bytes(i * 7919 >> 8 & 255 for i in range(20000))
    losses = []
    for data in (text, token_file(text)):
        config = weft.write("run.json", tiny(train__data=weft.write("data", data)))
        out = weft.expect(0, "train", config, "--run", "run", "--json")
        losses.append([line["loss"] for line in lines_of(out) if "loss" in line])
    assert losses[0] == losses[1] and len(losses[0]) >= 3, losses


@case
def hostile_token_files(weft):
    tokens = list(range(200))
    files = {
        "says 300 tokens": token_file(tokens, count=300),
        "version 7": token_file(tokens, version=7),
        "32-bit tokens": token_file(tokens, magic=20240801),
        "shorter than its header": token_file(tokens)[:500],
        "token 150 is 65535": token_file(tokens[:150] + [65535] + tokens),
        "0 tokens": token_file([]),
    }
    for text, content in files.items():
        config = weft.write("run.json", tiny(train__data=weft.write("data.bin", content)))
        weft.expect(65, "train", config, "--run", "run", says=["data.bin", text])


@case
def data_are_waited_for_in_no_steady_step(weft):
    config = weft.write("run.json", tiny(train__steps=40, train__micro_batch=8))
    weft.expect(0, "train", config, "--run", "run", "-q")
    with open(weft.path("run/metrics.jsonl"), encoding="utf-8") as file:
        waits = [json.loads(line)["data_wait_ns"] for line in file]
    assert len(waits) == 40 and sum(wait > 0 for wait in waits[2:]) <= 2, waits
    with open(weft.path("run/result.json"), encoding="utf-8") as file:
        assert json.load(file)["data_wait_ns"] == sum(waits[2:])


def validated(weft, **changes):
    """Lines of a run of 5 steps that evaluates, and its result."""
    text = bytes(i * 7919 >> 9 & 255 for i in range(30000))
    validation = {"data": weft.write("held", text), "every": 2, "batches": 3}
    config = weft.write("run.json", tiny(train__steps=5, train__validation=validation, **changes))
    lines = lines_of(weft.expect(0, "train", config, "--run", "run", "--json", "--poison"))
    return lines[:-1], lines[-1]


@case
def evaluation_is_the_same_under_every_policy_and_changes_nothing(weft):
    plain = weft.write("plain.json", tiny(train__steps=5))
    result = lines_of(weft.expect(0, "train", plain, "--run", "plain", "--json"))[-1]
    losses = []
    for planner in ("all-fsdp", "all-sdp", "all-zero1", "all-dp", "random"):
        lines, said = validated(weft, plan__planner=planner)
        evaluations = [line for line in lines if "validation_loss" in line]
        assert [line["step"] for line in evaluations] == [2, 4, 5], evaluations
        assert all(line["samples"] == 12 for line in evaluations)
        for line in evaluations:
            assert abs(line["bits_per_byte"] * 0.6931471805599453 - line["validation_loss"]) < 1e-6
        assert said["fingerprint"] == result["fingerprint"], planner
        assert said["validation_loss"] == evaluations[-1]["validation_loss"]
        losses.append([line["validation_loss"] for line in evaluations])
    assert all(other == losses[0] for other in losses), losses


@case
def evaluation_is_the_same_for_other_numbers_of_ranks(weft):
    losses = []
    for ranks, batch in ((1, 4), (2, 2), (4, 1)):
        lines, _ = validated(weft, cluster__ranks=ranks, train__micro_batch=batch)
        losses.append([line["validation_loss"] for line in lines if "validation_loss" in line])
    for other in losses[1:]:
        assert all(abs(a - b) < 1e-4 for a, b in zip(losses[0], other)), losses


@case
def a_share_is_held_out(weft):
    config = weft.write("run.json", tiny(train__validation={"share": 0.1}))
    out = weft.expect(0, "train", config, "--run", "run")
    assert "validation behind step 3" in out and "bits a byte" in out, out
    both = {"share": 0.1, "data": "x"}
    config = weft.write("run.json", tiny(train__validation=both))
    weft.expect(65, "train", config, "--run", "run", says="a file of their own or a share")


main(sys.argv[1])
