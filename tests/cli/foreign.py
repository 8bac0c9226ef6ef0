#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Text from files is shown without effect on a terminal."""
import json
import os
import pty
import struct
import subprocess
import sys
import unicodedata

from configs import tiny
from tap import case, main

EVIL = "\x1b]0;owned\a\x7f\x9b2J\x85\u202eevil\u2066\u200b\n"
SHOWN = r"\u001b]0;owned\u0007\u007f\u009b2J\u0085\u202eevil\u2066\u200b\u000a"
TURNS = {"LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI"}


def obeyed(text):
    """Returns the characters that would control a terminal."""
    return [c for c in text if c not in "\n\t" and
            (unicodedata.category(c) == "Cc" or unicodedata.bidirectional(c) in TURNS)]


def refused(weft, *arguments, code=65, says=SHOWN, **options):
    got, out, err = weft.run(*arguments, **options)
    assert got == code, (got, err)
    assert says in err, err
    assert not obeyed(out + err), (obeyed(out + err), err)
    assert len(err.splitlines()) == 1, err


@case
def a_key_that_stands_twice(weft):
    key = json.dumps(EVIL)
    refused(weft, "check", weft.write("run.json", f'{{{key}: 1, {key}: 2}}'))


@case
def unknown_keys_and_settings(weft):
    for change in ({EVIL: 1}, {"plan": {"planner": "greedy", EVIL: 1}}):
        refused(weft, "check", weft.write("run.json", {**tiny(), **change}))
    refused(weft, "check", weft.write("run.json", tiny(model__layers__2__name=EVIL)))
    refused(weft, "check", weft.write("run.json", tiny(train__precision={"compute": EVIL})))
    config = weft.write("run.json", tiny())
    for key in ("train.reduce", "cluster.memory_limit", "plan.planner"):
        _, out, err = weft.run("plan", config, "--set", f"{key}={EVIL}")
        assert r"\u009b2J" in err and not obeyed(out + err), err


@case
def names_of_files(weft):
    name = "\x9b2J\u202e.json"
    refused(weft, "check", name, code=66, says=r"\u009b2J\u202e.json")
    weft.write(name, "{")
    refused(weft, "check", name, says=r"\u009b2J\u202e.json")


@case
def units_of_a_plan(weft):
    out = weft.path("plan.json")
    weft.expect(0, "plan", weft.write("run.json", tiny()), "-o", out, "-q")
    with open(out, encoding="utf-8") as file:
        proven = json.load(file)
    unproven = {**proven, "certificate": None, "bound": {**proven["bound"], "bound_ns": 0}}
    for plan in proven, unproven:  # a certificate refuses other names
        weft.write("plan.json", json.dumps(plan, ensure_ascii=False).replace('"ln_f', '"\x9b2J\u202eln_f'))
        for verb in ("explain", "verify"):
            code, said, err = weft.run(verb, out)
            assert not obeyed(said + err), said + err
            assert code == (65 if plan is proven else 0), said + err
            assert verb != "explain" or plan is proven or r"\u009b2J\u202eln_f" in said, said


def tensors(names):
    header = json.dumps({name: {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
                         for name in names}).encode()
    return struct.pack("<Q", len(header)) + header


def saved(weft, **changes):
    changes = {"train__checkpoint": {"at_end": True}, **changes}
    config = weft.write("run.json", tiny(**changes))
    weft.expect(0, "train", config, "--run", "run", "-q")
    return config, weft.path("run/checkpoints/step-3")


@case
def tensors_of_a_checkpoint(weft):
    config, checkpoint = saved(weft)
    with open(f"{checkpoint}/model.safetensors", "wb") as file:
        file.write(tensors(["\x9b2J\u202ew", "\x9b2J\u202ew2"]))
    _, out, err = weft.run("train", config, "--run", "run", "--resume")
    assert "model.safetensors" in err and not obeyed(out + err), err


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


@case
def kernels_of_a_manifest(weft):
    config, checkpoint = saved(weft)
    path = f"{checkpoint}/manifest.json"
    with open(path, encoding="utf-8") as file:
        text = file.read()
    kernels = json.loads(text)["kernels"]
    text = text.replace(f'"kernels": "{kernels}"', f'"kernels": {json.dumps(EVIL)}')
    text = text[:text.rindex(',\n  "crc32c"')]
    with open(path, "w", encoding="utf-8") as file:
        file.write(f'{text},\n  "crc32c": {crc32c(text.encode())}\n}}\n')
    code, out, err = weft.run("train", config, "--run", "run", "--resume", "--set",
                              "train.steps=4")
    assert code == 0 and SHOWN in err, err
    assert not obeyed(out + err), err


@case
def documents_hold_the_same_without_it(weft):
    """JSON is escaped too, since it is printed."""
    config = weft.write("run.json", tiny(train__data=weft.path("\x9b2J\u202e.txt")))
    out = weft.expect(0, "check", config, "--print", "--json")
    assert not obeyed(out), out
    assert json.loads(out)["train"]["data"].endswith("\x9b2J\u202e.txt")


def on_a_terminal(weft, *arguments):
    """Returns the bytes that the program writes to its terminal."""
    parent, child = pty.openpty()
    done = subprocess.run([weft.program, *arguments], cwd=weft.directory, stdout=child,
                          stderr=subprocess.DEVNULL, check=False, timeout=60)
    os.close(child)
    text = b""
    while True:
        try:
            piece = os.read(parent, 4096)
        except OSError:
            break
        if not piece:
            break
        text += piece
    os.close(parent)
    assert done.returncode == 0, (done.returncode, text)
    return text


@case
def what_a_model_has_learnt(weft):
    learnt = b"\x1b[2J\a tea \xc3\xa9\xff\t.\n"
    saved(weft, train__steps=3, train__data=weft.write("data.txt", learnt * 300))
    flags = ("generate", "run", "--prompt", learnt.decode("latin-1"), "--tokens", "40",
             "--temperature", "1.5")
    said = on_a_terminal(weft, *flags).replace(b"\r\n", b"\n").decode()
    assert said.startswith("\\u001b[2J\\u0007 tea ") and not obeyed(said), said
    raw = on_a_terminal(weft, *flags, "--raw").replace(b"\r\n", b"\n")
    assert raw.startswith(b"\x1b[2J\a tea "), raw
    weft.expect(0, *flags, "-o", "said.txt")
    with open(weft.path("said.txt"), "rb") as file:
        assert file.read() == raw


main(sys.argv[1])
