#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weft import` and `weft export --to hf`: each family in and out, bit for bit; files that lie; targets that exist."""
import json
import os
import resource
import struct
import sys

from configs import tiny
from hub import FAMILIES, SCALED, file_of, read_hub, tensors_of, write_hub
from saved import parameters, write_tensors
from tap import case, main, seeded

KEPT = ("config.json", "generation_config.json", "tokenizer.json")


def content(weft, path):
    with open(weft.path(path), "rb") as file:
        return file.read()


def same_model(weft, folder, entries, source=None):
    """The folder has exactly these tensors, in one file of the fixed order, and the source's small files."""
    assert read_hub(weft, folder) == {name: (dtype, shape, data) for name, dtype, shape, data in entries}
    for name in KEPT if source else ():
        assert content(weft, f"{folder}/{name}") == content(weft, f"{source}/{name}"), name


@case
def every_family_comes_back_bit_for_bit(weft):
    rng = seeded()
    for number, (name, config) in enumerate(FAMILIES.items()):
        for dtypes, shards in ((["F32"], 1), (["BF16"], 1), (["F16"], 1), (["F32", "BF16", "F16"], 3)):
            entries = tensors_of(config, rng, dtypes)
            at = f"{number}-{dtypes[0]}-{shards}"
            write_hub(weft, f"{at}-in", {**config, "own": {"unknown": [1, 2.50]}}, entries, shards)
            weft.expect(0, "import", f"{at}-in", "-o", f"{at}-run", says="keys that Weft does not know are not used: own")
            weft.expect(0, "export", f"{at}-run", "--to", "hf", "-o", f"{at}-out")
            same_model(weft, f"{at}-out", entries, f"{at}-in")
            whole = content(weft, f"{at}-out/model.safetensors")
            assert whole == file_of(entries), (name, "the order of the header changed")


@case
def names_without_a_prefix_and_buffers_of_old_files_are_read(weft):
    rng = seeded()
    for name, prefix, buffer in (("gpt2", "transformer.", "h.1.attn.bias"),
                                 ("llama 3", "model.", "layers.0.self_attn.rotary_emb.inv_freq")):
        entries = [(n.removeprefix(prefix), *rest) for n, *rest in tensors_of(FAMILIES[name], rng, ["F32"])]
        table = next(entry for entry in entries if entry[2] == [256, 32])
        written = entries + [(buffer, "F32", [1], bytes(4)), ("lm_head.weight", *table[1:])]
        write_hub(weft, f"{name}-in", FAMILIES[name], written)
        weft.expect(0, "import", f"{name}-in", "-o", f"{name}-run")
        weft.expect(0, "export", f"{name}-run", "--to", "hf", "-o", f"{name}-out")
        same_model(weft, f"{name}-out", entries)


@case
def berts_first_files_are_read(weft):
    """Norms named gamma and beta, a pooler, and a head of sentence pairs, which the class does not have."""
    entries = tensors_of(FAMILIES["bert"], seeded(), ["F32"])
    heads = [(name, "F32", [2], bytes(8)) for name in ("bert.pooler.dense.weight", "bert.pooler.dense.bias",
                                                       "cls.seq_relationship.weight", "cls.seq_relationship.bias")]
    old = [(name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"), *rest)
           for name, *rest in entries]
    assert [name for name, *_ in old] != [name for name, *_ in entries]
    write_hub(weft, "first", FAMILIES["bert"], old + heads)
    weft.expect(0, "import", "first", "-o", "first-run", says=["no such head", heads[0][0], heads[3][0]])
    weft.expect(0, "export", "first-run", "--to", "hf", "-o", "first-out")
    same_model(weft, "first-out", entries)
    write_hub(weft, "bad", FAMILIES["bert"], old + heads + [("bert.pooler.other", "F32", [1], bytes(4))])
    weft.expect(65, "import", "bad", "-o", "bad-run", says="not the model's (1): bert.pooler.other")


@case
def a_pooler_of_vit_is_left_out_with_a_warning(weft):
    """A base model without a classifier is refused by the name of its class."""
    entries = tensors_of(FAMILIES["vit"], seeded(), ["F32"])
    pooler = [("vit.pooler.dense.weight", "F32", [2], bytes(8)), ("vit.pooler.dense.bias", "F32", [2], bytes(8))]
    write_hub(weft, "in", FAMILIES["vit"], entries + pooler)
    weft.write("in/preprocessor_config.json", "{\"image_mean\": [0.5, 0.5, 0.5]}\n")
    weft.expect(0, "import", "in", "-o", "run", says=["no such head", pooler[0][0], pooler[1][0]])
    told = weft.expect(0, "export", "run", "--to", "hf", "-o", "out")
    assert "preparation of images" in told and "tokenizer" not in told, told
    same_model(weft, "out", entries)
    assert content(weft, "out/preprocessor_config.json") == content(weft, "in/preprocessor_config.json")
    write_hub(weft, "base", {**FAMILIES["vit"], "architectures": ["ViTModel"]}, entries[:-2] + pooler)
    weft.expect(65, "import", "base", "-o", "never", says=["$.architectures", '"ViTModel"', '"ViTForImageClassification" alone'])
    write_hub(weft, "none", FAMILIES["vit"], entries[:-2])
    weft.expect(65, "import", "none", "-o", "never", says="missing (2): classifier.weight, classifier.bias")


def images(**changes):
    """A model of images of Weft: the patches of 16 by 16 pixels, 3 a side, with two channels."""
    layers = [{"name": "cut", "type": "linear", "hidden": 512, "outputs": 32, "patch": 16},
              {"name": "places", "type": "positions", "hidden": 32, "positions": 10, "class_token": True},
              {"name": "deep.{i}", "type": "encoder_block", "repeat": 2, "hidden": 32, "heads": 4, "ffn": 40, "eps": 1e-6},
              {"name": "last", "type": "layer_norm", "hidden": 32, "eps": 1e-6},
              {"name": "top", "type": "classifier", "hidden": 32, "classes": 7, "first": True}]
    for name, (key, value) in changes.items():
        layer = next(layer for layer in layers if layer["name"] == name)
        layer.pop(key) if value is None else layer.update({key: value})
    return short(model={"layers": layers}, train__seq_len=10)


@case
def a_model_of_images_gets_a_config_that_reads_back(weft):
    weft.expect(0, "train", weft.write("run.json", images()), "--run", "run", "-q")
    weft.expect(0, "export", "run", "--to", "hf", "-o", "out")
    config = json.loads(content(weft, "out/config.json"))
    sizes = {"image_size": 48, "patch_size": 16, "num_channels": 2, "num_labels": 7, "layer_norm_eps": 1e-6,
             "hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 40, "num_hidden_layers": 2}
    assert config["model_type"] == "vit" and {key: config[key] for key in sizes} == sizes, config
    assert not [key for key in config if "token" in key or "tie" in key], config
    assert sorted(os.listdir(weft.path("out"))) == ["config.json", "model.safetensors"]
    shapes = {name: entry[1] for name, entry in read_hub(weft, "out").items()}
    assert shapes["vit.embeddings.patch_embeddings.projection.weight"] == [32, 2, 16, 16]
    assert shapes["vit.embeddings.cls_token"] == [1, 1, 32] and shapes["vit.embeddings.position_embeddings"] == [1, 10, 32]
    weft.expect(0, "import", "out", "-o", "back")
    weft.expect(0, "export", "back", "--to", "hf", "-o", "twice")
    assert read_hub(weft, "out") == read_hub(weft, "twice")
    weft.expect(0, "train", "run.json", "--from", "out", "--run", "next", "-q")
    for number, (changes, says) in enumerate((
            ({"cut": ("patch", None)}, 'give it "patch"'), ({"places": ("positions", 11)}, "positions is"),
            ({"places": ("class_token", None)}, "class_token"), ({"top": ("first", None)}, "first"),
            ({"top": ("pooler", True)}, "pooler.weight"), ({"cut": ("bias", False)}, "bias"))):
        weft.expect(0, "train", weft.write("run.json", images(**changes)), "--run", f"run{number}", "-q")
        weft.expect(65, "export", f"run{number}", "--to", "hf", "-o", "never", says=says)
    alone = images(places=("positions", 1))  # the class token, and no patch
    alone["train"]["seq_len"] = 1
    weft.expect(0, "train", weft.write("run.json", alone), "--run", "alone", "-q")
    weft.expect(65, "export", "alone", "--to", "hf", "-o", "never", says="positions is 1, and was 2")
    weft.expect(65, "train", weft.write("run.json", images(cut=("patch", 15))), "--run", "never", says="225 pixels of a patch")
    assert not [name for name in os.listdir(weft.path(".")) if name.startswith("never")]


@case
def an_export_may_have_shards_and_another_type(weft):
    rng = seeded()
    config = FAMILIES["qwen3"]
    entries = [(n, d, s, data.replace(b"\xff\xff\x7f\x7f", bytes(4))) for n, d, s, data in tensors_of(config, rng, ["F32"])]
    write_hub(weft, "in", config, entries)
    weft.expect(0, "import", "in", "-o", "run")
    weft.expect(0, "export", "run", "--to", "hf", "-o", "shards", "--shard-size", "20kB")
    same_model(weft, "shards", entries)
    files = sorted(name for name in os.listdir(weft.path("shards")) if name.endswith(".safetensors"))
    assert files == [f"model-{i + 1:05}-of-{len(files):05}.safetensors" for i in range(len(files))] and len(files) > 2
    index = json.loads(content(weft, "shards/model.safetensors.index.json"))
    assert index["metadata"]["total_size"] == sum(len(entry[3]) for entry in entries)
    listed = {}
    for name, file in index["weight_map"].items():
        listed.setdefault(file, set()).add(name)
    assert list(index["weight_map"]) == sorted(index["weight_map"]) and sorted(listed) == files
    for file, names in listed.items():
        data = content(weft, f"shards/{file}")
        length = struct.unpack("<Q", data[:8])[0]
        assert set(json.loads(data[8:8 + length])) == names | {"__metadata__"}
        assert len(data) - 8 - length <= 20000 or len(names) == 1
    weft.expect(0, "import", "shards", "-o", "again")
    weft.expect(0, "export", "again", "--to", "hf", "-o", "one")
    same_model(weft, "one", entries)
    weft.expect(0, "export", "run/checkpoints/step-0", "--to", "hf", "-o", "half", "--dtype", "bf16")
    assert {entry[0] for entry in read_hub(weft, "half").values()} == {"BF16"}
    assert json.loads(content(weft, "half/config.json")) == {**config, "torch_dtype": "bfloat16"}


def short(**changes):
    return tiny(**{"cluster__ranks": 1, "plan__planner": "all-dp", "train__steps": 2, "train__seq_len": 12,
                   "train__checkpoint": {"at_end": True}, **changes})


def training(config, **changes):
    """A short run of the model of a folder."""
    return short(model=f"{config}/config.json", **changes)


@case
def a_model_trains_from_its_folder_and_from_its_import_alike(weft):
    rng = seeded()
    for name in "gpt2", "qwen2", "qwen3", "mistral":
        config = FAMILIES[name]
        entries = [(n, dtype, shape, data) for n, dtype, shape, data in tensors_of(config, rng, ["F16"])]
        # The largest of F16 would make the loss infinite.
        entries = [(n, d, s, data.replace(b"\xff\x7b", b"\x00\x00")) for n, d, s, data in entries]
        write_hub(weft, f"{name}-in", config, entries, shards=2)
        weft.expect(0, "import", f"{name}-in", "-o", f"{name}-run")
        run = weft.write("run.json", training(f"{name}-in"))
        for origin in "in", "run":
            weft.expect(0, "train", run, "--from", f"{name}-{origin}", "--run", f"{name}-from-{origin}", "-q")
            weft.expect(0, "export", f"{name}-from-{origin}", "--to", "hf", "-o", f"{name}-{origin}-out")
        assert parameters(weft, f"{name}-from-in") == parameters(weft, f"{name}-from-run")
        one, other = read_hub(weft, f"{name}-in-out"), read_hub(weft, f"{name}-run-out")
        assert one == other and {n: e[:2] for n, e in one.items()} == {e[0]: (e[1], e[2]) for e in entries}
        assert content(weft, f"{name}-in-out/config.json") == content(weft, f"{name}-in/config.json")
        weft.expect(0, "generate", f"{name}-run", "--prompt", "ab", "--tokens", "3")
        # A run keeps the files of its origin, which may vanish.
        kept = sorted(os.listdir(weft.path(f"{name}-run/hub")))
        assert sorted(os.listdir(weft.path(f"{name}-from-in/hub"))) == kept and "tensors.json" in kept
        os.rename(weft.path(f"{name}-in"), weft.path("gone"))
        weft.expect(0, "export", f"{name}-from-in", "--to", "hf", "-o", f"{name}-alone")
        os.rename(weft.path("gone"), weft.path(f"{name}-in"))
        assert read_hub(weft, f"{name}-alone") == one
        assert content(weft, f"{name}-alone/tokenizer.json") == content(weft, f"{name}-in/tokenizer.json")
        # A run that began with such a run has the same source.
        weft.expect(0, "train", run, "--from", f"{name}-from-run", "--run", f"{name}-second", "-q")
        weft.expect(0, "export", f"{name}-second", "--to", "hf", "-o", f"{name}-second-out")
        assert content(weft, f"{name}-second-out/tokenizer.json") == content(weft, f"{name}-in/tokenizer.json")


def own_model(block, **head):
    return {"layers": [{"name": "words", "type": "embedding", "vocab": 256, "hidden": 32},
                       {"name": "deep.{i}", "repeat": 2, "hidden": 32, "heads": 4, "kv_heads": 2, "ffn": 40, **block},
                       {"name": "last", "type": "rms_norm", "hidden": 32, "eps": block.get("eps", 1e-5)},
                       {"name": "top", "type": "lm_head", "vocab": 256, "hidden": 32, "bias": False, **head}]}


@case
def a_model_of_weft_gets_a_config_that_reads_back(weft):
    gpt2 = {**tiny()["model"]}
    scaled = SCALED["rope_scaling"]
    models = (("gpt2", gpt2), ("llama", own_model({"type": "llama_block", "eps": 1e-6})),
              ("llama", own_model({"type": "llama_block", "rope_base": 5000, "rope_factor": scaled["factor"],
                                   "rope_original": 32}, tie="words")),
              ("mistral", own_model({"type": "llama_block", "window": 16})),
              ("qwen2", own_model({"type": "llama_block", "qkv_bias": True})),
              ("qwen2", own_model({"type": "llama_block", "qkv_bias": True, "window": 14})),
              ("qwen3", own_model({"type": "qwen3_block", "head_dim": 6})))
    for number, (family, model) in enumerate(models):
        run = weft.write("run.json", short(model=model))
        weft.expect(0, "train", run, "--run", f"run{number}", "-q")
        report = json.loads(weft.expect(0, "export", f"run{number}", "--to", "hf", "-o", f"out{number}", "--json"))
        config = json.loads(content(weft, f"out{number}/config.json"))
        assert config["model_type"] == family and report["source"] is None, (family, config)
        weft.expect(0, "import", f"out{number}", "-o", f"back{number}")
        weft.expect(0, "export", f"back{number}", "--to", "hf", "-o", f"twice{number}")
        assert read_hub(weft, f"out{number}") == read_hub(weft, f"twice{number}")
        # The imported model is the trained one, layer for layer.
        weft.expect(0, "train", run, "--from", f"out{number}", "--run", f"next{number}", "-q")


@case
def other_features_are_named_and_refused(weft):
    rng = seeded()
    entries = tensors_of(FAMILIES["llama"], rng, ["F32"])
    for number, (changes, says) in enumerate((
            ({"attention_bias": True}, "$.attention_bias"), ({"hidden_act": "gelu"}, "$.hidden_act"),
            ({"model_type": "gemma3"}, "$.model_type"), ({"quantization_config": {"bits": 4}}, "$.quantization_config"),
            ({"rope_scaling": {"rope_type": "yarn", "factor": 2.0}}, "rope_scaling"),
            ({"architectures": ["LlamaForSequenceClassification"]}, "$.architectures"),
            ({"model_type": "mixtral", "architectures": ["MixtralForCausalLM"]}, "bert, gemma, gemma2, gemma3_text, gpt2, llama, mistral, olmo2, phi3, qwen2, qwen3, vit"),
            ({"intermediate_size": 64}, "of another shape (6)"), ({"num_hidden_layers": 3}, "missing (9)"),
            ({"num_hidden_layers": 1}, "not the model's (9)"), ({"tie_word_embeddings": True}, "is not the token table"))):
        write_hub(weft, f"in{number}", {**FAMILIES["llama"], **changes}, entries)
        weft.expect(65, "import", f"in{number}", "-o", "never", says=says)
    for number, (tensor, says) in enumerate((
            (("model.norm.weight", "F64", [32], bytes(256)), "not F32, F16 or BF16 (1): model.norm.weight"),
            (("model.norm.weight", "F32", [32], struct.pack("<f", float("nan")) * 32), "element 0 of tensor"),
            (("model.norm.bias", "F32", [1], bytes(4)), "not the model's (1): model.norm.bias"))):
        others = [entry for entry in entries if entry[0] != tensor[0]]
        write_hub(weft, f"bad{number}", FAMILIES["llama"], entries)
        write_tensors(weft, f"bad{number}/model.safetensors", others + [tensor])
        weft.expect(65, "import", f"bad{number}", "-o", "never", says=says)
    os.makedirs(weft.path("empty"))
    weft.expect(66, "import", "empty", "-o", "never", says="config.json")
    weft.expect(64, "import", "in0", says="-o RUN")
    weft.expect(64, "export", "run", "--to", "hf", says="-o DIR")
    weft.expect(66, "export", "none", "--to", "hf", "-o", "never", says="no checkpoint")
    assert not [name for name in os.listdir(weft.path(".")) if name.startswith("never")]


@case
def an_export_that_cannot_be_written_leaves_nothing(weft):
    rng = seeded()
    entries = tensors_of(FAMILIES["llama"], rng, ["F32"])
    write_hub(weft, "in", FAMILIES["llama"], entries)
    weft.expect(0, "import", "in", "-o", "run")
    for target in "in", "run", "in/config.json":
        before = sorted(os.listdir(weft.path("in")))
        weft.expect(73, "export", "run", "--to", "hf", "-o", target, says="is there already")
        weft.expect(73, "import", "in", "-o", target, says="is there already")
        assert sorted(os.listdir(weft.path("in"))) == before

    def small_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (50000, 50000))

    for words in (("export", "run", "--to", "hf"), ("import", "in")):
        weft.expect(74, *words, "-o", "deep/never", preexec_fn=small_files)
        assert os.listdir(weft.path("deep")) == [], os.listdir(weft.path("deep"))
    weft.expect(0, "export", "run", "--to", "hf", "-o", "deep/out/")
    same_model(weft, "deep/out", entries, "in")
    weft.expect(64, "export", "run", "--to", "hf", "-o", "x", "--dtype", "f64", says="f32, bf16 or f16")
    weft.expect(64, "export", "run", "--to", "hf", "-o", "x", "--shard-size", "0B", says="--shard-size")
    weft.expect(64, "export", "run", "--to", "fsdp2", "--dtype", "f32", says="only --to hf")
    # The largest numbers of fp32 are infinite in 16 bits.
    large = [(n, d, s, struct.pack("<f", 1e30) + data[4:]) if n == "model.norm.weight" else (n, d, s, data)
             for n, d, s, data in entries]
    write_hub(weft, "large", FAMILIES["llama"], large)
    weft.expect(0, "import", "large", "-o", "large-run")
    weft.expect(79, "export", "large-run", "--to", "hf", "-o", "never", "--dtype", "f16", says="not finite in F16")
    assert not [name for name in os.listdir(weft.path(".")) if name.startswith("never")]


@case
def damaged_models_are_errors_of_the_input(weft):
    """Any change of a byte of a header, an index or a config.json is an error of the input, or imports."""
    rng = seeded()
    entries = tensors_of(FAMILIES["qwen2"], rng, ["F32", "BF16"])
    write_hub(weft, "model", FAMILIES["qwen2"], entries, shards=2)
    names = [name for name in sorted(os.listdir(weft.path("model"))) if not name.startswith(("tok", "gen"))]
    whole = {name: content(weft, f"model/{name}") for name in names}
    for number in range(60):
        name = rng.choice(names)
        data = bytearray(whole[name])
        header = 8 + struct.unpack("<Q", data[:8])[0] if name.endswith(".safetensors") else len(data)
        for _ in range(rng.choice((1, 1, 3))):
            data[rng.randrange(header)] = rng.choice((0, 34, 44, 48, 57, 93, 125, 255, rng.randrange(256)))
        if rng.random() < 0.2:
            del data[rng.randrange(len(data)):]
        weft.write(f"model/{name}", bytes(data))
        code, _, err = weft.run("import", "model", "-o", f"r{number}")
        assert code in (0, 65, 66), (number, name, code, err)
        assert os.path.exists(weft.path(f"r{number}")) == (code == 0), (number, code)
        weft.write(f"model/{name}", whole[name])


main(sys.argv[1])
