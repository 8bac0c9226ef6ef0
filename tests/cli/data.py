#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Refused data, data of any size, and held-out data with any number of ranks."""
import bz2
import gzip
import json
import lzma
import os
import random
import re
import resource
import shutil
import struct
import subprocess
import sys
import time

from configs import tiny
from tap import case, main

PROSE = "It was the best of times, it was the worst of times.\n"


@case
def json_is_refused_by_name_wherever_it_begins(weft):
    long = [json.dumps({"text": letter * 70000}) + "\n" for letter in "xy"]
    short = [json.dumps({"text": PROSE * n}) for n in range(1, 40)]
    rows = [json.loads(line) for line in short]
    files = {
        "long.jsonl": ("".join(long), "lines of JSON", "jq -r '.text'"),
        "mark.jsonl": ("\ufeff" + "\n".join(short), "lines of JSON", "jq -r '.text'"),
        "empty.jsonl": ("\n\n" + "\n".join(short), "lines of JSON", "jq -r '.text'"),
        "spaces.jsonl": (" " * 70000 + "\n".join(short), "lines of JSON", "jq -r '.text'"),
        "cut.jsonl": ("\n".join(short)[9:], "lines of JSON", "jq -r '.text'"),
        "array.json": (json.dumps(rows), "a JSON array of objects", "jq -r '.[].text'"),
        "indented.json": (json.dumps(rows, indent=4), "a JSON array of objects", "jq -r"),
        "strings.json": (json.dumps([row["text"] for row in rows]), "JSON arrays", "jq -r"),
        "arrays.jsonl": ("".join(f'["{letter}"]\n' for letter in "abc" * 40), "JSON arrays", "jq"),
        "one.json": (json.dumps({"data": rows}, indent=1), "a JSON document", "jq -r"),
        "one_line.json": (json.dumps({"data": rows}), "lines of JSON", "jq -r"),
        "strings.jsonl": ("".join(json.dumps(row["text"]) + "\n" for row in rows), "JSON strings", "jq -r '.'"),
        "comments.jsonl": ("# exported\n# by hand\n" + "\n".join(short), "lines of JSON", "jq"),
        "damaged.jsonl": ("\n".join(short[:9] + ["{oops"] + short[9:]), "lines of JSON", "jq"),
        "dicts.txt": ("".join(f"{row}\n" for row in rows), "Python", "ast.literal_eval"),
    }
    for name, (content, says, cure) in files.items():
        path = weft.write(name, content.encode())
        config = weft.write("run.json", tiny(train__data=path))
        weft.expect(65, "train", config, "--run", "no", says=[name, says, cure, '"format": "bytes"'])
    held = weft.write("run.json", tiny(train__validation={"data": weft.path("array.json")}))
    weft.expect(65, "train", held, "--run", "no", says=["array.json", "set train.validation.data to"])


def write_tokens(weft, name, tokens, bits, header=()):
    data = struct.pack("<256i", *header, *[0] * (256 - len(header))) if header else b""
    return weft.write(name, data + struct.pack(f"<{len(tokens)}{'H' if bits == 16 else 'I'}", *tokens))


@case
def the_cure_for_tokens_without_a_header_keeps_every_token(weft):
    """The named form is followed: the run then trains, and its data are the tokens."""
    draw = random.Random(7)
    for vocab in (300, 50257, 65536, 65537, 128256):
        tokens = [draw.randrange(vocab) for _ in range(3000)]
        layers = tiny(model__layers__0__vocab=vocab, model__layers__3__vocab=vocab)["model"]["layers"]
        changes = {"model__layers": layers, "train__steps": 1, "plan__planner": "greedy"}
        for bits in (16, 32):
            if bits == 16 and vocab > 65536:
                continue
            path = write_tokens(weft, "raw.bin", tokens, bits)
            config = weft.write("run.json", tiny(train__data=path, **changes))
            _, _, err = weft.run("train", config, "--run", "no", "-q")
            assert f"tokens without a header, of {bits} bits each it seems. " in err, err
            found = re.search(r"write its tokens, (\d+) bits each, after a header of 256 int32: (\d+), (\d+),", err)
            form, magic, version = map(int, found.groups())
            assert '"bytes"' not in err and all(token < 2 ** form for token in tokens), err
            mended = write_tokens(weft, "mended.bin", tokens, form, (magic, version, len(tokens)))
            weft.expect(0, "train", weft.write("run.json", tiny(train__data=mended, **changes)), "--run",
                        weft.fresh("run"), "-q")


@case
def tokens_that_lost_their_high_half_are_noticed(weft):
    draw = random.Random(8)
    tokens = [draw.randrange(128256) for _ in range(3000)]
    low = [token % 65536 for token in tokens]
    layers = tiny(model__layers__0__vocab=128256, model__layers__3__vocab=128256)["model"]["layers"]
    write_tokens(weft, "cut.bin", low, 16, (20240520, 1, 3000))
    write_tokens(weft, "raw.bin", low, 16)
    write_tokens(weft, "wide.bin", [token % 50000 for token in low], 32, (20240520, 1, 6000))
    for name, model, says in (("cut.bin", layers, "has tokens of 16 bits, which cannot tell"),
                              ("raw.bin", layers, "which cut every token from 65536 on"),
                              ("wide.bin", None, "every second token is 0")):
        changes = {"model__layers": model} if model else {"model__layers__0__vocab": 50257,
                                                          "model__layers__3__vocab": 50257}
        config = weft.write("run.json", tiny(train__data=weft.path(name), **changes))
        weft.expect(65, "train", config, "--run", "no", says=[name, says, "256 int32"])


@case
def tables_are_refused_until_their_text_is_written_out(weft):
    """The cure is run as it is printed."""
    rows = [f'"{PROSE.strip()} Number {n}",{n % 2}' for n in range(400)]
    tabs = [f"{PROSE.strip()} Number {n}\t{n % 2}" for n in range(400)]
    for name, lines in (("x.csv", rows), ("X.CSV", rows[:2]), ("rows.txt", rows), ("rows", tabs),
                        ("x.tsv", tabs), ("few.tsv", tabs[:1] * 20)):
        path = weft.write(name, ("\n".join(["text\tlabel" if "\t" in lines[0] else "text,label", *lines])
                                 + "\n").encode())
        config = weft.write("run.json", tiny(train__data=path, train__steps=1, plan__planner="greedy"))
        _, _, err = weft.run("train", config, "--run", "no", "-q")
        command = re.search(r"is no text: a table \((?:CSV|TSV)\)\. Either .* by: (.*), or train on its bytes", err)
        assert command, err
        shell = f"{command[1]} <{path} >{weft.path('text')}"
        subprocess.run(shell, shell=True, check=True)
        with open(weft.path("text"), encoding="utf-8") as file:
            said = file.read()
        assert "Number 0" in said and "text" in said and ",0\n" not in said and "\t" not in said, said[:200]
        whole = re.search(r"set train.data to (\{.*\})", err)[1]
        for data in [whole] + ["text"] * (len(lines) > 9):
            weft.expect(0, "train", config, "--run", weft.fresh("run"), "-q", "--set", f"train.data={data}")


@case
def packed_and_converted_texts_are_unpacked_as_it_is_printed(weft):
    """The names of the files say nothing."""
    text = PROSE * 300
    packed = {"gzip": gzip.compress(text.encode()), "bzip2": bz2.compress(text.encode()),
              "xz": lzma.compress(text.encode()), "iconv": text.encode("utf-16")}
    for program, data in packed.items():
        if shutil.which(program) is None:
            continue
        path = weft.write(f"{program}.txt", data)
        config = weft.write("run.json", tiny(train__data=path, train__steps=1, plan__planner="greedy"))
        _, _, err = weft.run("train", config, "--run", "no", "-q")
        command = re.search(rf"({program} -.*?)<FILE >TEXT", err)
        assert command, err
        subprocess.run(f"{command[1]} <{path} >{weft.path('text')}", shell=True, check=True)
        with open(weft.path("text"), encoding="utf-8") as file:
            assert file.read().lstrip("\ufeff") == text, program
        weft.expect(0, "train", config, "--run", weft.fresh("run"), "-q", "--set", "train.data=text")


@case
def a_folder_is_refused_with_a_pattern_that_works(weft):
    for number, names in enumerate((["a.txt", "b.txt", "README"], ["one", "two"], ["in/a.text", "in/b.text"],
                                    ["we[ird]/a.txt"])):
        folder = f"data-{number}"
        for name in names:
            os.makedirs(os.path.dirname(weft.path(f"{folder}/{name}")), exist_ok=True)
            weft.write(f"{folder}/{name}", (PROSE * 100).encode())
        given = os.path.dirname(weft.path(f"{folder}/{names[0]}")) if number == 3 else weft.path(folder)
        config = weft.write("run.json", tiny(train__data=given, train__steps=1, plan__planner="greedy"))
        _, _, err = weft.run("train", config, "--run", "no", "-q")
        found = re.search(r"is a folder: give its files by a pattern, set train.data to (.*)\n", err)
        assert found, err
        weft.expect(0, "train", config, "--run", f"run-{number}", "-q", "--set", f"train.data={found[1]}")
    os.mkdir(weft.path("empty"))
    weft.expect(65, "train", config, "--run", "no", "--set", f"train.data={weft.path('empty')}",
                says="is a folder: set train.data to the path of a text")


@case
def texts_that_begin_with_brackets_are_trained_on(weft):
    for number, beginning in enumerate(("[1] A footnote.\n", "[Enter Hamlet]\n", "{\n  int x;\n}\n",
                                        "[link](https://example.org)\n", '{"a": 1}\n\n',
                                        '{"a": 1}\n{"b": 2}\n', '["xxx ',
                                        "[ ] to do\n", "\ufeff[section]\nkey = 1\n")):
        path = weft.write("text", (beginning + PROSE * 100).encode())
        config = weft.write("run.json", tiny(train__data=path, train__steps=1, plan__planner="greedy"))
        weft.expect(0, "train", config, "--run", f"run{number}", "-q")


@case
def a_file_that_is_trained_on_is_not_held_out(weft):
    for name in ("a_train.txt", "b_train.txt", "b_val.txt"):
        weft.write(name, (name + PROSE * 100).encode())
    os.symlink("b_val.txt", weft.path("soft"))
    os.link(weft.path("b_val.txt"), weft.path("hard"))
    every, some = weft.path("*.txt"), weft.path("*_train.txt")
    for held in ("b_val.txt", "soft", "hard", "[hs]*"):
        validation = {"data": weft.path(held), "every": 2, "samples": 3}
        changes = {"train__validation": validation, "plan__planner": "greedy"}
        config = weft.write("run.json", tiny(train__data=every, **changes))
        weft.expect(65, "train", config, "--run", "no",
                    says=["b_val.txt", "of train.validation.data is a file of train.data too",
                          "set train.validation.share"])
    weft.expect(0, "train", weft.write("run.json", tiny(train__data=some, **changes)), "--run", "r", "-q")
    shared = {"train__validation": {"share": 0.3, "samples": 3}, "plan__planner": "greedy"}
    os.link(weft.path("a_train.txt"), weft.path("z_train.txt"))
    weft.expect(65, "train", weft.write("run.json", tiny(train__data=some, **shared)), "--run", "no",
                says=["a_train.txt", "z_train.txt", "are the same file", "remove one"])
    assert not os.path.exists(weft.path("no"))
    os.unlink(weft.path("z_train.txt"))
    weft.expect(0, "train", weft.write("run.json", tiny(train__data=some, **shared)), "--run", "s", "-q")


def validation_of(weft, run):
    with open(weft.path(f"{run}/metrics.jsonl"), encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    return [line for line in lines if line["kind"] == "validation"]


@case
def held_out_samples_depend_on_the_data_alone(weft):
    """Of the ranks and micro-batches below, only 1 x 1 divides 13 samples. A rate of 0 keeps the weights, so all
    evaluations have the same model.
    """
    config = weft.write("run.json", tiny(
        train__validation={"share": 0.2, "samples": 13}, train__checkpoint={"at_end": True},
        plan__planner="greedy", cluster__threads=1))
    weft.expect(0, "train", config, "--run", "first", "-q")
    losses = {}
    for ranks, batch in ((1, 2), (2, 2), (3, 2), (8, 2), (1, 1), (1, 5), (3, 5), (1, 16)):
        run = f"run-{ranks}-{batch}"
        shutil.copytree(weft.path("first"), weft.path(run))
        weft.expect(0, "train", "--resume", "--run", run, "-q", "-n", str(ranks), "--set",
                    f"train.micro_batch={batch}", "--set", "train.steps=4", "--set",
                    "train.optimizer.lr=0")
        line = validation_of(weft, run)[-1]
        assert line["step"] == 4 and line["samples"] == 13, line
        losses.setdefault(batch, []).append(line["validation_loss"])
    for batch, same in losses.items():
        assert len(set(same)) == 1, f"micro_batch {batch}: {same}"
    all_of = [same[0] for same in losses.values()]
    assert max(all_of) - min(all_of) < 1e-5 * min(all_of), losses


@case
def batches_of_an_older_config_are_samples(weft):
    """An older version's config.json has `batches`, even if nothing is held out."""
    old = {"share": 0.2, "batches": 3}
    config = weft.write("run.json", tiny(train__validation=old, plan__planner="greedy"))
    _, _, err = weft.run("train", config, "--run", "run", "-q")
    assert 'warning' in err and '"samples": 12' in err, err
    with open(weft.path("run/config.json"), encoding="utf-8") as file:
        said = json.load(file)["train"]["validation"]
    assert said["samples"] == 12 and "batches" not in said, said
    assert validation_of(weft, "run")[-1]["samples"] == 12
    many = weft.write("many.json", tiny(train__validation={"share": 0.2, "batches": 1 << 20},
                                        train__micro_batch=1 << 20, cluster__ranks=1 << 12))
    weft.expect(65, "check", many, says=["$.train.validation.batches", 'give "samples"'])
    both = {"share": 0.2, "batches": 3, "samples": 5}
    for validation, samples in ((both, 5), ({"batches": 8}, 32), ({}, 64)):
        config = weft.write("run.json", tiny(train__validation=validation))
        out = weft.expect(0, "check", config, "--print")
        assert json.loads(out)["train"]["validation"]["samples"] == samples, out
    _, _, err = weft.run("train", weft.write("run.json", tiny(
        train__validation={"batches": 8}, plan__planner="greedy")), "--run", "none", "-q")
    assert err == "", err


def token_file(weft, name, tokens):
    """Writes a sparse file of zeros."""
    with open(weft.path(name), "wb") as file:
        file.write(struct.pack("<2iI", 20240520, 1, tokens % 2**32).ljust(1024, b"\0"))
        file.truncate(1024 + 2 * tokens)
    return weft.path(name)


@case
def token_files_of_any_size_are_read_where_they_are_needed(weft):
    """The last file has 1 TiB: reading all of it would exceed the test's time."""
    checkpoint = {"at_end": True}
    for tokens in (3_000_000_000, 2**32 + 12345, 2**39):
        config = weft.write("run.json", tiny(
            train__data=token_file(weft, "big.bin", tokens), train__checkpoint=checkpoint,
            train__validation={"share": 0.1, "samples": 4}, plan__planner="greedy"))
        run = f"run{tokens}"
        weft.expect(0, "train", config, "--run", run, "-q")
        code, _, err = weft.run("train", "--resume", "--run", run, "--set", "train.steps=4", "-q")
        assert code == 0 and "other data" not in err, err
        with open(weft.path("big.bin"), "r+b") as file:
            file.seek(1024 + 2 * tokens - 2)
            file.write(b"\1\0")
        _, _, err = weft.run("train", "--resume", "--run", run, "--set", "train.steps=5", "-q")
        assert "other data" in err, err
        os.truncate(weft.path("big.bin"), 1024 + 2 * tokens - 2)
        weft.expect(65, "train", config, "--run", "no", says=["big.bin", "cut short or damaged"])


@case
def a_token_outside_the_vocabulary_is_named_when_it_is_read(weft):
    """The program samples every fourth piece at first; the other pieces are full of such tokens."""
    piece, pieces = 8192, 4096
    path = token_file(weft, "tokens.bin", piece * pieces)
    looked_at = {i * (pieces - 1) // 1023 for i in range(1024)}
    with open(path, "r+b") as file:
        for i in set(range(pieces)) - looked_at:
            file.seek(1024 + 2 * piece * i)
            file.write(b"\xff" * (2 * piece))
    config = weft.write("run.json", tiny(train__data=path, plan__planner="greedy"))
    code, _, err = weft.run("train", config, "--run", "run", "-q")
    assert code == 65 and "step" not in err, err
    found = re.search(r"tokens\.bin: token (\d+) is 65535, at byte (\d+)", err)
    assert found and int(found[2]) == 1024 + 2 * int(found[1]), err
    with open(path, "r+b") as file:
        file.seek(1024 + 2 * piece * pieces - 2)
        file.write(b"\xff\xff")
    weft.expect(65, "train", config, "--run", "no", says=f"token {piece * pieces - 1} is 65535")
    assert not os.path.exists(weft.path("no"))


def spoil(path, first, count):
    """Writes tokens outside every vocabulary to a token file."""
    with open(path, "r+b") as file:
        file.seek(1024 + 2 * first)
        file.write(b"\xff\xff" * count)


def steps_of(weft, run):
    with open(weft.path(f"{run}/metrics.jsonl"), encoding="utf-8") as file:
        lines = [json.loads(line) for line in file if line.endswith("\n")]
    return [line["step"] for line in lines if line["kind"] == "step"]


@case
def data_that_cannot_be_read_end_a_run_after_a_save(weft):
    """The file changes while the run goes on. The look at the data before the first step passes."""
    tokens = 1 << 16
    for ranks in (1, 3):
        path, run = token_file(weft, "tokens.bin", tokens), f"run-{ranks}"
        config = weft.write("run.json", tiny(
            train__data=path, train__steps=1000000, train__checkpoint={"at_end": True},
            plan__planner="greedy"))
        with weft.start("train", config, "--run", run, "-n", str(ranks), "-q") as process:
            while process.poll() is None and not os.path.exists(weft.path(f"{run}/metrics.jsonl")):
                time.sleep(0.01)
            while process.poll() is None and len(steps_of(weft, run)) < 3:
                time.sleep(0.01)
            spoil(path, tokens * 4 // 5, tokens // 5)
            _, err = process.communicate(timeout=120)
        assert process.returncode == 65 and "is 65535, at byte" in err, err
        found = re.search(r"Training stopped after step (\d+), which is saved: mend the data", err)
        assert found, err
        step = int(found[1])
        assert step >= 3 and os.path.exists(weft.path(f"{run}/checkpoints/step-{step}")), err
        assert not os.path.exists(weft.path(f"{run}/result.json"))
        token_file(weft, "tokens.bin", tokens)
        weft.expect(0, "train", "--resume", "--run", run, "-q", "--set", f"train.steps={step + 2}")
        assert steps_of(weft, run) == list(range(1, step + 3)), run


@case
def held_out_data_that_cannot_be_read_end_a_run_after_a_save(weft):
    """One of 9 held-out samples is bad, in a piece that is not looked at before the first step. Ranks with good
    samples give up with the one that cannot read.
    """
    piece, pieces, samples = 8192, 4096, 9
    held = token_file(weft, "held.bin", piece * pieces)
    looked_at = {i * (pieces - 1) // 1023 for i in range(1024)}
    places = [(piece * pieces - 17) * i // (samples - 1) for i in range(1, samples - 1)]
    spoil(held, next(place for place in places if not {place // piece, place // piece + 1} & looked_at) + 2, 9)
    for ranks, at_end, said in ((3, True, "saved: mend"), (1, False, "not saved")):
        config = weft.write("run.json", tiny(
            train__data=token_file(weft, "tokens.bin", 1 << 16), train__steps=9,
            train__checkpoint={"at_end": at_end}, plan__planner="greedy",
            train__validation={"data": held, "every": 4, "samples": samples}))
        weft.expect(65, "train", config, "--run", f"run-{ranks}", "-n", str(ranks), "-q",
                    says=["held.bin: token", f"Training stopped after step 4, which is {said}"])
        assert steps_of(weft, f"run-{ranks}") == [1, 2, 3, 4]
    assert os.path.exists(weft.path("run-3/checkpoints/step-4"))


@case
def more_shards_than_files_may_be_open(weft):
    text = (PROSE * 200).encode()
    cuts = [len(text) * i // 300 for i in range(301)]
    for number, (first, last) in enumerate(zip(cuts, cuts[1:])):
        weft.write(f"shard_{number:03}", text[first:last])
    losses = []
    for run, data in (("one", weft.write("text", text)), ("all", weft.path("shard_*"))):
        config = weft.write("run.json", tiny(
            train__data=data, train__validation={"share": 0.2, "samples": 9}, plan__planner="greedy",
            train__checkpoint={"at_end": True}))
        weft.expect(0, "train", config, "--run", run, "-q",
                    preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100)))
        with open(weft.path(f"{run}/result.json"), encoding="utf-8") as file:
            result = json.load(file)
        losses.append([result["last_loss"], result["validation_loss"], result["fingerprint"]])
    assert losses[0] == losses[1], losses


main(sys.argv[1])
