#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Text in and out: weft data packs texts into token files and tells of them, and generate reads and prints text with
the same tokenizer."""
import gzip
import json
import os
import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from tap import Skip, case, main  # noqa: E402

MERGES = ["Ġ t", "h e", "Ġt he", "a n", "an d"]


def alphabet():
    """GPT-2's characters of bytes, by their numbers."""
    own = [*range(33, 127), *range(161, 173), *range(174, 256)]
    return [chr(byte) for byte in own] + [chr(256 + n) for n in range(256 - len(own))]


def tokenizer(pre=None, **members):
    """A tokenizer.json of the bytes, five merges and the token between documents, number 261."""
    names = alphabet() + [merge.replace(" ", "") for merge in MERGES]
    return {"added_tokens": [{"id": 261, "content": "<|endoftext|>", "special": True}],
            "pre_tokenizer": pre or {"type": "ByteLevel", "add_prefix_space": False},
            "model": {"type": "BPE", "vocab": {name: n for n, name in enumerate(names)}, "merges": MERGES}, **members}


def tokens_in(weft, name):
    """The header's words, and the tokens."""
    data = Path(weft.path(name)).read_bytes()
    magic, version, count = struct.unpack_from("<3i", data)
    form = {20240520: "H", 20240801: "i"}[magic]
    assert data[12:1024] == bytes(1012)
    return (magic, version), list(struct.unpack(f"<{count}{form}", data[1024:]))


def needs_pcre2(weft):
    weft.write("tokenizer.json", tokenizer())
    weft.write("one.txt", "a")
    code, _, err = weft.run("data", "pack", "one.txt", "-o", "one.bin", "--tokenizer", "tokenizer.json")
    if code == 69:
        raise Skip(err.strip())


@case
def only_texts_are_packed(weft):
    """Files that are packed already, or binary, would be packed as if their bytes were text."""
    weft.write("a.txt", "The end\n")
    weft.write("drawing.svg", "<svg></svg>\n")
    weft.expect(0, "data", "pack", "a.txt", "drawing.svg", "-o", "tokens.bin")
    samples = struct.pack("<6i", 20261130, 1, 1, 1, 2, 4) + bytes(1000) + struct.pack("<2fi", 0.5, 0.25, 1)
    files = {"tokens.bin": (None, "is a token file, so it is packed already"),
             "x.samples": (samples, "is a file of samples, and only texts can be packed"),
             "questions.bin": (struct.pack("<3i", 20240522, 1, 0) + bytes(1012), "begins with 20240522, as a file of llm.c"),
             "a.txt.gz": (gzip.compress(b"The end\n"), "is no text: compressed by gzip; unpack it first"),
             "a.npy": (b"\x93NUMPY\x01\x00" + bytes(100), "is no text: a NumPy array (.npy). To train on them, "),
             "wide.txt": ("\ufeffThe end".encode("utf-16-le"), "is no text: a text in UTF-16; convert it first")}
    for name, (data, says) in files.items():
        if data is not None:
            weft.write(name, data)
        for first, *flags in ["a.txt"], [name, "--field", "text"]:
            weft.expect(65, "data", "pack", first, name, *flags, "-o", "out.bin", says=[name, says])
        assert not os.path.exists(weft.path("out.bin")), name
    for name in "tokens.bin", "a.txt.gz":
        with open(weft.path(name), "rb") as file:
            weft.expect(65, "data", "pack", "-", "-o", "out.bin", stdin=file, says="standard input")


@case
def bytes_are_packed_without_a_tokenizer(weft):
    weft.write("a.txt", "The end\n")
    weft.write("b.txt", "é")
    weft.write("empty.txt", "")
    out = weft.expect(0, "data", "pack", "a.txt", "empty.txt", "b.txt", "-o", "out.bin", "--json")
    assert json.loads(out) == {"file": "out.bin", "documents": 2, "bytes": 10, "tokens": 11}, out
    assert tokens_in(weft, "out.bin") == ((20240520, 1), list("The end\né\n".encode()))
    facts = json.loads(weft.expect(0, "data", "info", "out.bin", "--json"))
    assert facts == {"path": "out.bin", "form": "tokens", "files": 1, "token_bits": 16, "tokens": 11,
                     "least_vocab": 0xc3 + 1}, facts
    assert "11 tokens of 16 bits" in weft.expect(0, "data", "info", "out.bin")
    assert "text, read as bytes" in weft.expect(0, "data", "info", "a.txt")


@case
def records_have_their_text_in_a_field(weft):
    weft.write("in.jsonl", '{"id": 1, "text": "one\\n"}\r\n\n{"text": "z\\u00e9", "id": 2}')
    weft.expect(0, "data", "pack", "in.jsonl", "-o", "out.bin", "--field", "text")
    assert tokens_in(weft, "out.bin")[1] == list("one\nzé\n".encode())


@case
def what_cannot_be_packed_leaves_nothing(weft):
    weft.write("in.jsonl", '{"text": "one"}\n{"texts": "two"}\n')
    weft.write("bad.jsonl", '{"text": "one"}\n{"text": two}\n')
    weft.write("none.txt", "")
    for code, says, *arguments in (
            (64, "--field", "in.jsonl", "-o", "out.bin"),
            (64, "-o FILE", "none.txt"),
            (65, "record on line 2", "in.jsonl", "-o", "out.bin", "--field", "text"),
            (65, "record on line 2:1:10", "bad.jsonl", "-o", "out.bin", "--field", "text"),
            (65, "would be empty", "none.txt", "-o", "out.bin"),
            (66, "missing.txt", "missing.txt", "-o", "out.bin"),
            (73, "nowhere", "in.jsonl", "-o", "nowhere/out.bin", "--field", "text")):
        weft.expect(code, "data", "pack", *arguments, says=says)
        left = [name for name in os.listdir(weft.directory) if name.startswith("out.bin")]
        assert not left, (arguments, left)
    weft.expect(64, "data", "show", "in.jsonl", says="pack IN...")
    weft.expect(64, "data", "info", "in.jsonl", "none.txt", says="one file")


@case
def a_tokenizer_makes_its_tokens(weft):
    needs_pcre2(weft)
    weft.write("a.txt", " the and<|endoftext|>!")
    weft.write("b.txt", "!")
    weft.expect(0, "data", "pack", "a.txt", "b.txt", "-o", "out.bin", "--tokenizer", "tokenizer.json")
    assert tokens_in(weft, "out.bin") == ((20240520, 1), [261, 258, 220, 260, 261, 0, 261, 0])
    weft.write("wide.json", tokenizer(added_tokens=[{"id": 70000, "content": "<|end_of_text|>"}]))
    weft.expect(0, "data", "pack", "b.txt", "-o", "out.bin", "--tokenizer", "wide.json")
    assert tokens_in(weft, "out.bin") == ((20240801, 7), [70000, 0])


@case
def a_text_that_a_tokenizer_cannot_take_is_named(weft):
    needs_pcre2(weft)
    weft.write("latin.txt", b"caf\xe9")
    weft.expect(65, "data", "pack", "latin.txt", "-o", "out.bin", "--tokenizer", "tokenizer.json",
                says=["latin.txt: byte 3 is no UTF-8"])
    weft.write("nfc.json", tokenizer(normalizer={"type": "NFC"}))
    weft.write("marks.txt", "e\u0301")
    weft.expect(65, "data", "pack", "marks.txt", "-o", "out.bin", "--tokenizer", "nfc.json", says="--nfc")
    weft.expect(0, "data", "pack", "marks.txt", "-o", "out.bin", "--tokenizer", "nfc.json", "--nfc")
    for change, says in (({"pre": {"type": "Whitespace"}}, '"Whitespace"'),
                         ({"model": {"type": "WordPiece"}}, '"WordPiece"')):
        weft.write("other.json", tokenizer(**change))
        weft.expect(65, "data", "pack", "marks.txt", "-o", "out.bin", "--tokenizer", "other.json", says=says)


@case
def generate_reads_and_prints_text(weft):
    needs_pcre2(weft)
    weft.write("in.txt", " the and" * 600)
    weft.expect(0, "data", "pack", "in.txt", "-o", "train.bin", "--tokenizer", "tokenizer.json")
    config = {"version": 1, "cluster": {"ranks": 1, "memory_limit": "1GiB"},
              "model": {"layers": [{"name": "wte", "type": "embedding", "vocab": 300, "hidden": 16},
                                   {"name": "mix", "type": "linear", "hidden": 16, "outputs": 16},
                                   {"name": "head", "type": "lm_head", "vocab": 300, "hidden": 16}]},
              "train": {"steps": 60, "micro_batch": 4, "seq_len": 16, "data": weft.path("train.bin"),
                        "optimizer": {"type": "adamw", "lr": 0.03}}}
    weft.expect(0, "train", weft.write("run.json", config), "--run", "run", "-q")
    said = weft.expect(0, "generate", "run", "--prompt", " the", "--tokens", "5", "--temperature", "0",
                       "--tokenizer", "tokenizer.json")
    assert said == " the and the and\n", said
    told = json.loads(weft.expect(0, "generate", "run", "--prompt", " the", "--tokens", "2", "--temperature", "0",
                                  "--tokenizer", "tokenizer.json", "--json"))
    assert told["tokens"] == [220, 260] and told["text"] == " and", told
    weft.write("wide.json", tokenizer(added_tokens=[{"id": 300, "content": "<|endoftext|>"}]))
    weft.expect(65, "generate", "run", "--tokenizer", "wide.json", says="vocab is 300")


main(sys.argv[1])
