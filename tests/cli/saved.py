# SPDX-License-Identifier: Apache-2.0
"""Runs that save, and the files in their directories."""
import filecmp
import json
import os
import shutil
import struct

from configs import tiny

FILES = ["model.safetensors", "optimizer.safetensors"]


def saving(**changes):
    train = {"train__steps": 8, "train__checkpoint": {"every": 3}, **changes}
    return tiny(**train)


def parameters(weft, run):
    with open(weft.path(f"{run}/result.json"), encoding="utf-8") as file:
        return json.load(file)["fingerprint"]


def steps(weft, run):
    return sorted(os.listdir(weft.path(f"{run}/checkpoints")))


def same_files(weft, one, other):
    for name in FILES:
        assert filecmp.cmp(weft.path(f"{one}/{name}"), weft.path(f"{other}/{name}"),
                           shallow=False), f"{one}/{name} and {other}/{name} differ"


def copy_step(weft, source, target, step):
    shutil.copytree(weft.path(f"{source}/checkpoints/step-{step}"),
                    weft.path(f"{target}/checkpoints/step-{step}"))


def saved_run(weft, **changes):
    """Makes a finished run in run/ with checkpoints of steps 6 and 8; step 3's is removed by then."""
    config = weft.write("run.json", saving(**changes))
    weft.expect(0, "train", config, "--run", "run", "-q")
    assert steps(weft, "run") == ["step-6", "step-8"], steps(weft, "run")
    return config


def manifest(weft, step):
    with open(weft.path(f"{step}/manifest.json"), encoding="utf-8") as file:
        return json.load(file)


def tensors(weft, path):
    """Returns {name: bytes} of a safetensors file."""
    with open(weft.path(path), "rb") as file:
        data = file.read()
    begin = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:begin])
    return {name: data[begin + entry["data_offsets"][0]:begin + entry["data_offsets"][1]]
            for name, entry in header.items() if name != "__metadata__"}


def write_tensors(weft, name, entries):
    """Writes a safetensors file of (name, dtype, shape, bytes)."""
    header, at = {}, 0
    for tensor, dtype, shape, data in entries:
        header[tensor] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    return weft.write(name, struct.pack("<Q", len(text)) + text + b"".join(e[3] for e in entries))


def entries_of(weft, path):
    with open(weft.path(path), "rb") as file:
        data = file.read()
    begin = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:begin])
    values = tensors(weft, path)
    return [(name, entry["dtype"], entry["shape"], values[name]) for name, entry in header.items()]


def put_value(entries, place, value):
    """Returns the tensors of F32 with another value of one element: (index of the tensor, element)."""
    changed = list(entries)
    name, dtype, shape, data = changed[place[0]]
    at = 4 * place[1]
    changed[place[0]] = (name, dtype, shape, data[:at] + struct.pack("<f", value) + data[at + 4:])
    return changed


def metrics(weft, run):
    with open(weft.path(f"{run}/metrics.jsonl"), encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def refuses(weft, config, says, *flags):
    got, _, err = weft.run("train", config, "--run", "run", "-q", "--resume", *flags)
    assert got == 65, (got, err)
    for text in says:
        assert text in err, f"{text!r} is not in {err}"
    assert err.count("To go on from an older checkpoint") <= 1, err


def rewrite(path, old, new):
    """Changes a manifest's text and updates its CRC."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    assert old in text, text
    text = text.replace(old, new)
    text = text[:text.rindex(',\n  "crc32c"')]
    with open(path, "w", encoding="utf-8") as file:
        file.write(f'{text},\n  "crc32c": {crc32c(text.encode())}\n}}\n')


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF
