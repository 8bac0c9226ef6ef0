#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files of samples with labels: a ViT trains on patches of images, and files that lie are refused."""
import importlib.util
import json
import os
import struct
import subprocess
import sys

from configs import tiny
from hub import FAMILIES, read_hub, tensors_of, write_hub
from saved import parameters
from tap import Skip, case, main, seeded

ROWS, WIDTH, CLASSES = 10, 192, 5
EXAMPLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "images.py")


def header(n, rows=ROWS, width=WIDTH, size=4, magic=20261130, version=1):
    return struct.pack("<6i", magic, version, n, rows, width, size) + bytes(1000)


def samples_of(rng, n, size=4):
    """Random samples: numbers of one byte or of four, and labels."""
    out = []
    for _ in range(n):
        levels = [rng.randrange(256) for _ in range(ROWS * WIDTH)]
        out.append((levels, rng.randrange(CLASSES)))
    return out


def pack(samples, size):
    """The bytes of a file; a level b stands for b / 127.5 - 1 in single precision."""
    def single(value):
        return struct.unpack("<f", struct.pack("<f", value))[0]

    numbers = [struct.pack("<f", single(single(level / 127.5) - 1)) for level in range(256)]
    out = header(len(samples), size=size)
    for levels, label in samples:
        out += bytes(levels) if size == 1 else b"".join(numbers[level] for level in levels)
        out += struct.pack("<i", label)
    return out


def model():
    return {"layers": [
        {"name": "patches", "type": "linear", "hidden": WIDTH, "outputs": 32, "patch": 8},
        {"name": "positions", "type": "positions", "hidden": 32, "positions": ROWS, "class_token": True},
        {"name": "h", "type": "encoder_block", "hidden": 32, "heads": 4, "ffn": 48},
        {"name": "ln_f", "type": "layer_norm", "hidden": 32},
        {"name": "head", "type": "classifier", "hidden": 32, "classes": CLASSES, "first": True}]}


def run_of(data, **changes):
    return tiny(**{"model": model(), "cluster__ranks": 1, "plan__planner": "all-dp", "train__steps": 6,
                   "train__micro_batch": 4, "train__seq_len": ROWS, "train__data": data,
                   "train__checkpoint": {"at_end": True}, **changes})


def losses(weft, run):
    with open(weft.path(f"{run}/metrics.jsonl"), encoding="utf-8") as file:
        return [line["loss"] for line in map(json.loads, file) if "loss" in line]


@case
def bytes_floats_and_several_files_train_to_the_same_bits(weft):
    samples = samples_of(seeded(), 24)
    weft.write("bytes.samples", pack(samples, 1))
    weft.write("floats.samples", pack(samples, 4))
    for i, (first, end) in enumerate(((0, 1), (1, 17), (17, 24))):
        weft.write(f"part-{i}.samples", pack(samples[first:end], 1))
    validation = {"train__validation": {"share": 0.3, "samples": 4, "every": 3}}
    for name, ranks in ("bytes.samples", 1), ("floats.samples", 1), ("part-*.samples", 1), ("bytes.samples", 2):
        changes = {"cluster__ranks": ranks, "train__micro_batch": 2, "train__grad_accum": 2 // ranks, "train__group": 1,
                   "plan__planner": "all-fsdp"}
        run = f"run-{name[0]}{ranks}"
        weft.expect(0, "train", weft.write("run.json", run_of(name, **validation, **changes)), "--run", run, "-q")
    assert losses(weft, "run-b1") == losses(weft, "run-f1") == losses(weft, "run-p1")
    assert parameters(weft, "run-b1") == parameters(weft, "run-f1") == parameters(weft, "run-p1") == parameters(weft, "run-b2")
    told = json.loads(weft.expect(0, "data", "info", "part-*.samples", "--json"))
    assert {key: told[key] for key in ("form", "files", "samples", "rows", "numbers", "number_bits")} == {
        "form": "samples", "files": 3, "samples": 24, "rows": ROWS, "numbers": WIDTH, "number_bits": 8}, told
    assert told["least_classes"] == max(label for _, label in samples) + 1, told


@case
def labels_are_learned_and_held_out_samples_are_not_read(weft):
    """Bright columns tell the class. Held-out samples have the labels of other columns."""
    samples = [([255 * (i % WIDTH % CLASSES == c) for i in range(ROWS * WIDTH)], c) for c in range(CLASSES)] * 4
    weft.write("train.samples", pack(samples, 1))
    longer = {"train__steps": 60, "train__optimizer__lr": 3e-3}
    weft.expect(0, "train", weft.write("run.json", run_of("train.samples", **longer)), "--run", "run", "-q")
    assert losses(weft, "run")[-1] < 0.2, losses(weft, "run")
    weft.write("held.samples", pack([(levels, (label + 1) % CLASSES) for levels, label in samples], 1))
    changes = {"train__validation": {"data": "held.samples", "samples": 20}}
    weft.expect(0, "train", weft.write("run.json", run_of("train.samples", **longer, **changes)), "--run", "held", "-q")
    assert parameters(weft, "held") == parameters(weft, "run")
    with open(weft.path("held/result.json"), encoding="utf-8") as file:
        assert json.load(file)["validation_loss"] > 1, "labels are of the held-out file"


@case
def a_vit_of_hugging_face_trains_on_its_patches(weft):
    rng = seeded()
    entries = [(n, d, s, data.replace(b"\xff\xff\x7f\x7f", bytes(4)))
               for n, d, s, data in tensors_of(FAMILIES["vit"], rng, ["F32"])]
    write_hub(weft, "vit", FAMILIES["vit"], entries)
    weft.write("train.samples", pack(samples_of(rng, 8), 1))
    run = weft.write("run.json", run_of("train.samples", model="vit/config.json"))
    weft.expect(0, "import", "vit", "-o", "imported")
    for origin in "vit", "imported":
        weft.expect(0, "train", run, "--from", origin, "--run", f"from-{origin}", "-q")
        weft.expect(0, "export", f"from-{origin}", "--to", "hf", "-o", f"out-{origin}")
    assert parameters(weft, "from-vit") == parameters(weft, "from-imported")
    out = read_hub(weft, "out-vit")
    assert out == read_hub(weft, "out-imported")
    assert {name: entry[:2] for name, entry in out.items()} == {e[0]: (e[1], e[2]) for e in entries}
    assert all(out[name][2] != data for name, _, _, data in entries if "key.bias" not in name), "all were trained"
    for flags in [], ["--prompt", "a text"], ["--tokenizer", "vit/config.json"]:
        weft.expect(65, "generate", "imported", *flags,
                    says=["continues no text, because it reads numbers of samples", "it must begin with an embedding"])


@case
def files_that_lie_are_refused(weft):
    whole = pack(samples_of(seeded(), 6), 4)
    words = len(whole) // 4
    last = 256 + ROWS * WIDTH  # the word of the first label

    def changed(at, value):
        return whole[:4 * at] + value + whole[4 * at + 4:]

    for number, (data, says) in enumerate((
            (whole[:-4], "its header says 6 samples of 7684 bytes"), (whole + bytes(7684), "its header says 6 samples"),
            (changed(1, struct.pack("<i", 3)), "of version 3"), (changed(5, struct.pack("<i", 2)), "numbers of 2 bytes"),
            (changed(3, struct.pack("<i", 0)), "samples of 0 rows"), (changed(4, b"\xff" * 4), "rows of 4294967295 numbers"),
            (header(0), "write at least one sample"), (whole[:900], "shorter than its header"),
            (changed(3, struct.pack("<i", WIDTH))[:20] + whole[12:16] + whole[20:], "bytes"),
            (changed(last, struct.pack("<i", CLASSES)), f"sample 0 (from 0) has label {CLASSES}"),
            (changed(last, struct.pack("<i", -1)), "sample 0 (from 0) has label -1"),
            (changed(300, struct.pack("<f", float("nan"))), "number 44 of sample 0 (from 0) is not finite"),
            (changed(words - 2, struct.pack("<f", float("inf"))), f"number {ROWS * WIDTH - 1} of sample 5 (from 0) is not finite"))):
        weft.write("bad.samples", data)
        weft.expect(65, "train", weft.write("run.json", run_of("bad.samples")), "--run", f"never{number}", "-q", says=says)
    weft.write("good.samples", whole)
    tokens = {"model": tiny()["model"], "train__seq_len": 16}
    by_rows = {"layers": [model()["layers"][0], {"name": "head", "type": "lm_head", "vocab": 256, "hidden": 32}]}
    for number, (changes, says) in enumerate((
            (tokens, "layer wte reads tokens"), ({"model": by_rows, "train__seq_len": 1}, "end the model with a classifier"),
            ({"train__seq_len": 9}, "rows of 192 numbers, and the model reads train.seq_len rows, 9, of 192"),
            ({"train__validation": {"share": 0.1}}, "leaves none to hold out"))):
        weft.expect(65, "train", weft.write("run.json", run_of("good.samples", **changes)), "--run", f"no{number}", "-q", says=says)
    weft.write("held.txt", "Some words to read. " * 400)
    for number, files in enumerate((("good.samples", "held.txt"), ("held.txt", "good.samples"))):
        held = {"train__validation": {"data": files[1], "samples": 2}}
        weft.expect(65, "train", weft.write("run.json", run_of(files[0], **held)), "--run", f"forms{number}", "-q",
                    says=["of train.validation.data is", "give files of one form"])
    weft.write("other.samples", pack(samples_of(seeded(), 2), 1))
    weft.expect(65, "train", weft.write("run.json", run_of("*o*.samples")), "--run", "no", says="samples of another size than")
    for i, label in enumerate((0, CLASSES, -1)):
        weft.write(f"in-{i}.samples", whole[:4 * last] + struct.pack("<i", label) + whole[4 * last + 4:])
    says = f"in-1.samples: sample 0 (from 0) has label {CLASSES}"
    weft.expect(65, "train", weft.write("run.json", run_of("in-*.samples")), "--run", "no", says=says)
    weft.expect(65, "data", "info", "in-*.samples", says="in-2.samples: sample 0 (from 0) has label -1")
    weft.write("words.bin", struct.pack("<3i", 20240520, 1, 4000) + bytes(1012) + bytes(8000))
    weft.expect(65, "train", weft.write("run.json", run_of("words.bin")), "--run", "no", says="give a file of samples")


@case
def the_example_writes_such_files(weft):
    if importlib.util.find_spec("numpy") is None:
        raise Skip("the example needs numpy")
    import numpy
    rng = numpy.random.default_rng(3)
    images, labels = rng.integers(0, 256, (6, 3, 24, 24), numpy.uint8), rng.integers(0, CLASSES, 6)
    numpy.save(weft.path("images.npy"), images)
    numpy.save(weft.path("labels.npy"), labels)
    subprocess.run([sys.executable, EXAMPLE, weft.path("images.npy"), weft.path("labels.npy"), "--patch", "8",
                    "-o", weft.path("out.samples")], check=True)
    rows = []
    for image, label in zip(images, labels):
        levels = [0] * WIDTH
        for top in range(0, 24, 8):
            for left in range(0, 24, 8):
                levels += [int(image[c, top + y, left + x]) for c in range(3) for y in range(8) for x in range(8)]
        rows.append((levels, int(label)))
    with open(weft.path("out.samples"), "rb") as file:
        assert file.read() == pack(rows, 1)
    for number, (pixels, classes, says) in enumerate((
            (images.astype("i8"), labels, "images are int64"), (images.astype("f8"), labels, "images are float64"),
            (images, labels + 0.5, "labels float64"), (images, labels - CLASSES, "labels are from 0 on"),
            (images, labels + 2 ** 32, "below 2147483648"), (images[:0], labels[:0], "at least one image"))):
        numpy.save(weft.path("images.npy"), pixels)
        numpy.save(weft.path("labels.npy"), classes)
        out = weft.path(f"never{number}.samples")
        run = [sys.executable, EXAMPLE, weft.path("images.npy"), weft.path("labels.npy"), "--patch", "8", "-o", out]
        done = subprocess.run(run, capture_output=True, text=True, check=False)
        assert done.returncode == 1 and says in done.stderr and not os.path.exists(out), done


main(sys.argv[1])
