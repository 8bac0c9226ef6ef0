#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weft train --from` a model of Hugging Face: a file, shards with an index, or the folder of a model."""
import array
import json
import os
import random
import re
import struct
import sys

from saved import entries_of, parameters, same_files, saved_run, write_tensors
from tap import case, main, seed_of_draws

NAMES = {"wte.tokens": "wte.weight", "wte.positions": "wpe.weight", "head.weight": "lm_head.weight"}
PARTS = {"ln1": "ln_1", "ln2": "ln_2", "attn.qkv": "attn.c_attn", "attn.proj": "attn.c_proj", "mlp.fc": "mlp.c_fc",
         "mlp.proj": "mlp.c_proj"}
CONFIG = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_embd": 32, "n_head": 2, "n_layer": 3,
          "n_inner": 64, "n_positions": 16, "vocab_size": 256, "tie_word_embeddings": False}


def turned(shape, data):
    """A matrix of 4-byte elements the other way round."""
    values = array.array("I", data)
    rows, columns = shape
    return [columns, rows], array.array("I", (values[r * columns + c] for c in range(columns)
                                              for r in range(rows))).tobytes()


def as_hub(entries, prefix="transformer."):
    """The tensors of a GPT-2 under the names that transformers writes, products transposed."""
    out = []
    for name, dtype, shape, data in entries:
        if name == "__metadata__":
            continue
        block = re.fullmatch(r"(h\.\d+)\.(.*)\.(weight|bias)", name)
        hub = f"{block[1]}.{PARTS[block[2]]}.{block[3]}" if block else NAMES.get(name, name)
        if block and len(shape) == 2:
            shape, data = turned(shape, data)
        out.append((hub if hub == "lm_head.weight" else prefix + hub, dtype, shape, data))
    return sorted(out)


def trained(weft):
    saved_run(weft)
    step = "run/checkpoints/step-8/model.safetensors"
    with open(weft.path(step), "rb") as file:
        length = struct.unpack("<Q", file.read(8))[0]
        header = json.loads(file.read(length))
    header.pop("__metadata__", None)
    with open(weft.path("bare.safetensors"), "wb") as file, open(weft.path(step), "rb") as source:
        text = json.dumps(header).encode()
        source.seek(8 + length)
        file.write(struct.pack("<Q", len(text)) + text + source.read())
    return entries_of(weft, "bare.safetensors")


def write_model(weft, name, entries, shards=1, **changes):
    """Writes the folder of a model; with several shards the index names them."""
    os.makedirs(weft.path(name), exist_ok=True)
    weft.write(f"{name}/config.json", {**CONFIG, **changes})
    if shards == 1:
        write_tensors(weft, f"{name}/model.safetensors", entries)
        return name
    names = [f"model-{i + 1:05}-of-{shards:05}.safetensors" for i in range(shards)]
    for i, shard in enumerate(names):
        write_tensors(weft, f"{name}/{shard}", entries[i::shards])
    weft.write(f"{name}/model.safetensors.index.json", {
        "metadata": {"total_size": 0}, "weight_map": {entry[0]: names[i % shards] for i, entry in enumerate(entries)}})
    return name


def train(weft, origin, run, *flags, code=0, says=()):
    return weft.expect(code, "train", "run.json", "--run", run, "--from", origin, "-q", *flags, says=says)


@case
def every_form_of_a_model_trains_to_the_same_bits(weft):
    entries = trained(weft)
    train(weft, "run", "own")
    mask = [("transformer.h.1.attn.bias", "U8", [1, 1, 2, 2], bytes(4))]
    write_model(weft, "single", as_hub(entries))
    write_model(weft, "masked", as_hub(entries) + mask, n_ctx=16)
    write_model(weft, "sharded", as_hub(entries, prefix=""), shards=3)
    for number, origin in enumerate(("single", "single/model.safetensors", "masked", "sharded",
                                     "sharded/model.safetensors.index.json")):
        train(weft, origin, f"hub{number}")
        same_files(weft, f"hub{number}/checkpoints/step-8", "own/checkpoints/step-8")
    for origin in "run", "sharded":
        train(weft, origin, f"three-{origin}", "-n", "3", "--planner", "all-dp")
    assert parameters(weft, "three-run") == parameters(weft, "three-sharded")


@case
def a_tied_head_may_be_written_twice_if_it_is_the_table(weft):
    saved_run(weft, model__layers__3__tie="wte")
    entries = as_hub(entries_of_run(weft))
    train(weft, write_model(weft, "once", entries, tie_word_embeddings=True), "once-run")
    table = next(entry for entry in entries if entry[0] == "transformer.wte.weight")
    head = ("lm_head.weight", *table[1:])
    train(weft, write_model(weft, "twice", entries + [head], tie_word_embeddings=True), "twice-run")
    same_files(weft, "once-run/checkpoints/step-8", "twice-run/checkpoints/step-8")
    other = bytearray(table[3])
    other[-1] ^= 1
    write_model(weft, "other", entries + [(*head[:3], bytes(other))], tie_word_embeddings=True)
    train(weft, "other", "other-run", code=65, says="lm_head.weight is not the token table")


def entries_of_run(weft):
    return [entry for entry in entries_with_metadata(weft, "run/checkpoints/step-8/model.safetensors")
            if entry[0] != "__metadata__"]


def entries_with_metadata(weft, path):
    with open(weft.path(path), "rb") as file:
        data = file.read()
    begin = 8 + struct.unpack("<Q", data[:8])[0]
    for name, entry in json.loads(data[8:begin]).items():
        if name != "__metadata__":
            first, last = entry["data_offsets"]
            yield name, entry["dtype"], entry["shape"], data[begin + first:begin + last]


@case
def other_models_are_refused(weft):
    entries = as_hub(trained(weft))
    for changes, says in (({"n_head": 4}, "heads is 2, and was 4"), ({"layer_norm_epsilon": 1e-6}, "eps is not there, and was 1e-06"),
                          ({"activation_function": "relu"}, "$.activation_function"),
                          ({"model_type": "llama"}, "config.json:1:")):
        write_model(weft, "model", entries, **changes)
        train(weft, "model", "never", code=65, says=says)
    llama = [("model.embed_tokens.weight", "F32", [1], bytes(4)), ("model.norm.weight", "F32", [1], bytes(4))]
    for name in write_tensors(weft, "llama.safetensors", llama), write_model(weft, "llama", llama, shards=2):
        train(weft, name, "never", code=65, says=["another family of Hugging Face (model.embed_tokens.weight)", "of gpt2's"])
    fewer = [entry for entry in entries if "h.2." not in entry[0]]
    train(weft, write_tensors(weft, "fewer.safetensors", fewer), "never", code=65, says="missing (12): transformer.h.2.ln_1.weight")
    more = entries + [("transformer.h.3.ln_1.bias", "F32", [1], bytes(4))]
    train(weft, write_tensors(weft, "more.safetensors", more), "never", code=65, says="not the model's (1): transformer.h.3")
    shaped = [(n, d, s[::-1], b) if n.endswith("c_fc.weight") else (n, d, s, b) for n, d, s, b in entries]
    train(weft, write_tensors(weft, "shaped.safetensors", shaped), "never", code=65, says="of another shape (3)")
    weft.write("run/notes.json", {"some": "thing"})
    train(weft, "run/notes.json", "never", code=65, says="it is no index of a checkpoint")
    os.makedirs(weft.path("empty"))
    train(weft, "empty", "never", code=66, says="model.safetensors")
    assert not os.path.exists(weft.path("never"))


@case
def an_index_that_lies_is_refused(weft):
    entries = as_hub(trained(weft))
    write_model(weft, "model", entries, shards=2)
    path = "model/model.safetensors.index.json"
    with open(weft.path(path), encoding="utf-8") as file:
        index = json.load(file)
    first, last = list(index["weight_map"])[0], list(index["weight_map"])[-1]
    shard = index["weight_map"][first]

    def lie(code, says, weight_map):
        weft.write(path, {"weight_map": weight_map})
        train(weft, "model", "never", code=code, says=says)

    lie(66, "model-00009", {**index["weight_map"], first: "model-00009-of-00002.safetensors"})
    lie(65, "which lacks it", {**index["weight_map"], last: shard} | {"no.such": shard})
    lie(65, "lists", {k: v for k, v in index["weight_map"].items() if k != first})
    for name in "../model/" + shard, "/etc/passwd", "", "..", 7, None, [shard]:
        lie(65, "name", {**index["weight_map"], first: name})
    lie(65, "weight_map", {})
    weft.write(path, "[" * 50)
    train(weft, "model", "never", code=65, says="index.json:1:")


@case
def damaged_models_never_end_a_process(weft):
    """Any change of a byte of a header, an index or a config.json is an error of the input, or changes nothing."""
    seed = seed_of_draws()
    rng = random.Random(seed)
    entries = as_hub(trained(weft))
    write_model(weft, "model", entries, shards=2)
    names = sorted(os.listdir(weft.path("model")))
    whole = {name: open(weft.path(f"model/{name}"), "rb").read() for name in names}
    for number in range(60):
        name = rng.choice(names)
        data = bytearray(whole[name])
        header = 8 + struct.unpack("<Q", data[:8])[0] if name.endswith(".safetensors") else len(data)
        for _ in range(rng.choice((1, 1, 3))):
            data[rng.randrange(header)] = rng.choice((0, 34, 44, 48, 57, 93, 125, 255, rng.randrange(256)))
        if rng.random() < 0.2:
            del data[rng.randrange(len(data)):]
        weft.write(f"model/{name}", bytes(data))
        code, _, err = weft.run("train", "run.json", "--run", f"r{number}", "--from", "model", "-q")
        assert code in (0, 65, 66), (seed, number, name, code, err)
        weft.write(f"model/{name}", whole[name])


main(sys.argv[1])
