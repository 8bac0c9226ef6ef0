# SPDX-License-Identifier: Apache-2.0
"""Models of Hugging Face for the tests: config.json and random tensors of each family, and their files."""
import json
import math
import os
import struct

BYTES = {"F32": 4, "BF16": 2, "F16": 2}
FORMATS = {"F32": "f", "F16": "e"}
LLAMA = {"architectures": ["LlamaForCausalLM"], "hidden_act": "silu", "hidden_size": 32, "intermediate_size": 48,
         "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 2, "vocab_size": 256,
         "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": False,
         "torch_dtype": "bfloat16"}
SCALED = {"rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                           "original_max_position_embeddings": 32}}
GEMMA = {**LLAMA, "hidden_act": "gelu_pytorch_tanh", "hidden_activation": "gelu_pytorch_tanh", "head_dim": 12,
         "num_attention_heads": 3, "num_key_value_heads": 1, "tie_word_embeddings": True}
FAMILIES = {
    "bert": {"model_type": "bert", "architectures": ["BertForMaskedLM"], "hidden_act": "gelu", "hidden_size": 32,
             "num_attention_heads": 4, "num_hidden_layers": 2, "intermediate_size": 48, "max_position_embeddings": 64,
             "type_vocab_size": 2, "vocab_size": 256, "layer_norm_eps": 1e-12, "hidden_dropout_prob": 0.0,
             "attention_probs_dropout_prob": 0.0},
    "vit": {"model_type": "vit", "architectures": ["ViTForImageClassification"], "hidden_act": "gelu", "hidden_size": 32,
            "num_attention_heads": 4, "num_hidden_layers": 2, "intermediate_size": 48, "image_size": 24, "patch_size": 8,
            "num_channels": 3, "qkv_bias": True, "layer_norm_eps": 1e-12, "hidden_dropout_prob": 0.0,
            "id2label": {str(i): f"class {i}" for i in range(5)}},
    "gpt2": {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_embd": 32, "n_head": 2, "n_layer": 3,
             "n_inner": None, "n_positions": 16, "vocab_size": 256, "activation_function": "gelu_new",
             "layer_norm_epsilon": 1e-5},
    "llama": {"model_type": "llama", **LLAMA},
    "llama 3": {"model_type": "llama", **LLAMA, **SCALED, "tie_word_embeddings": True},
    "mistral": {"model_type": "mistral", **LLAMA, "architectures": ["MistralForCausalLM"], "sliding_window": 4096},
    "olmo2": {"model_type": "olmo2", **LLAMA, "architectures": ["Olmo2ForCausalLM"], "attention_bias": False},
    "phi3": {"model_type": "phi3", **LLAMA, "architectures": ["Phi3ForCausalLM"], "resid_pdrop": 0.0, "embd_pdrop": 0.0,
             "original_max_position_embeddings": 64},
    "qwen2": {"model_type": "qwen2", **LLAMA, "architectures": ["Qwen2ForCausalLM"], "use_sliding_window": False,
              "sliding_window": 4096, "max_window_layers": 2, "tie_word_embeddings": True},
    "qwen3": {"model_type": "qwen3", **LLAMA, "architectures": ["Qwen3ForCausalLM"], "head_dim": 12,
              "attention_bias": False, "num_attention_heads": 3, "num_key_value_heads": 1},
    "gemma": {**GEMMA, "model_type": "gemma", "architectures": ["GemmaForCausalLM"]},
    "gemma2": {**GEMMA, "model_type": "gemma2", "architectures": ["Gemma2ForCausalLM"], "sliding_window": 8,
               "query_pre_attn_scalar": 10, "attn_logit_softcapping": 2.0, "final_logit_softcapping": 1.5},
    "gemma3": {**GEMMA, "model_type": "gemma3_text", "architectures": ["Gemma3ForCausalLM"], "sliding_window": 8,
               "query_pre_attn_scalar": 10, "sliding_window_pattern": 3, "rope_local_base_freq": 100.0,
               "num_hidden_layers": 4},
}


def shapes_of_gpt2(config):
    width, inner = config["n_embd"], config["n_inner"] or 4 * config["n_embd"]
    yield "transformer.wte.weight", [config["vocab_size"], width]
    yield "transformer.wpe.weight", [config["n_positions"], width]
    for i in range(config["n_layer"]):
        for name, shape in (("ln_1", [width]), ("attn.c_attn", [width, 3 * width]), ("attn.c_proj", [width, width]),
                            ("ln_2", [width]), ("mlp.c_fc", [width, inner]), ("mlp.c_proj", [inner, width])):
            yield f"transformer.h.{i}.{name}.weight", shape
            yield f"transformer.h.{i}.{name}.bias", shape[-1:]
    yield "transformer.ln_f.weight", [width]
    yield "transformer.ln_f.bias", [width]
    if not config.get("tie_word_embeddings", True):
        yield "lm_head.weight", [config["vocab_size"], width]


def shapes_of_bert(config):
    width, inner = config["hidden_size"], config["intermediate_size"]
    norm, dense = "LayerNorm", "dense"
    for name, rows in (("word", "vocab_size"), ("position", "max_position_embeddings"), ("token_type", "type_vocab_size")):
        yield f"bert.embeddings.{name}_embeddings.weight", [config[rows], width]
    parts = [("bert.embeddings", norm, [width])]
    for i in range(config["num_hidden_layers"]):
        at = f"bert.encoder.layer.{i}"
        parts += [(f"{at}.attention.self", name, [width, width]) for name in ("query", "key", "value")]
        parts += [(f"{at}.attention.output", dense, [width, width]), (f"{at}.attention.output", norm, [width]),
                  (f"{at}.intermediate", dense, [inner, width]), (f"{at}.output", dense, [width, inner]),
                  (f"{at}.output", norm, [width])]
    parts += [("cls.predictions.transform", dense, [width, width]), ("cls.predictions.transform", norm, [width])]
    for at, name, shape in parts:
        yield f"{at}.{name}.weight", shape
        yield f"{at}.{name}.bias", shape[:1]
    yield "cls.predictions.bias", [config["vocab_size"]]


def shapes_of_vit(config):
    width, inner, side = config["hidden_size"], config["intermediate_size"], config["patch_size"]
    yield "vit.embeddings.cls_token", [1, 1, width]
    yield "vit.embeddings.position_embeddings", [1, (config["image_size"] // side) ** 2 + 1, width]
    parts = [("vit.embeddings.patch_embeddings.projection", [width, config["num_channels"], side, side])]
    for i in range(config["num_hidden_layers"]):
        at = f"vit.encoder.layer.{i}"
        parts += [(f"{at}.attention.attention.{name}", [width, width]) for name in ("query", "key", "value")]
        parts += [(f"{at}.attention.output.dense", [width, width]), (f"{at}.intermediate.dense", [inner, width]),
                  (f"{at}.output.dense", [width, inner]), (f"{at}.layernorm_before", [width]),
                  (f"{at}.layernorm_after", [width])]
    for at, shape in parts + [("vit.layernorm", [width]), ("classifier", [len(config["id2label"]), width])]:
        yield f"{at}.weight", shape
        yield f"{at}.bias", shape[:1]


def shapes_of_llama(config):
    kind, width, inner = config["model_type"], config["hidden_size"], config["intermediate_size"]
    size = config.get("head_dim") or width // config["num_attention_heads"]
    q, kv = config["num_attention_heads"] * size, config["num_key_value_heads"] * size
    yield "model.embed_tokens.weight", [config["vocab_size"], width]
    for i in range(config["num_hidden_layers"]):
        at = f"model.layers.{i}."
        if kind == "phi3":
            yield f"{at}self_attn.qkv_proj.weight", [q + 2 * kv, width]
            yield f"{at}mlp.gate_up_proj.weight", [2 * inner, width]
        for name, rows in (("q", q), ("k", kv), ("v", kv)) if kind != "phi3" else ():
            yield f"{at}self_attn.{name}_proj.weight", [rows, width]
            if kind == "qwen2":
                yield f"{at}self_attn.{name}_proj.bias", [rows]
        for name in ("q", "k") if kind in ("qwen3", "gemma3_text") else ():
            yield f"{at}self_attn.{name}_norm.weight", [size]
        for name, columns in (("q", q), ("k", kv)) if kind == "olmo2" else ():
            yield f"{at}self_attn.{name}_norm.weight", [columns]
        yield f"{at}self_attn.o_proj.weight", [width, q]
        for name in ("gate", "up") if kind != "phi3" else ():
            yield f"{at}mlp.{name}_proj.weight", [inner, width]
        yield f"{at}mlp.down_proj.weight", [width, inner]
        yield f"{at}{'post_feedforward' if kind == 'olmo2' else 'input'}_layernorm.weight", [width]
        yield f"{at}post_attention_layernorm.weight", [width]
        for name in ("pre", "post") if kind in ("gemma2", "gemma3_text") else ():
            yield f"{at}{name}_feedforward_layernorm.weight", [width]
    yield "model.norm.weight", [width]
    if not config["tie_word_embeddings"]:
        yield "lm_head.weight", [config["vocab_size"], width]


def numbers(rng, dtype, count):
    """Small numbers, both zeros and the least ones, as bytes."""
    special = {"F32": [0, 1 << 31, 1, 0x7f7fffff], "BF16": [0, 1 << 15, 1, 0x7f7f], "F16": [0, 1 << 15, 1, 0x7bff]}[dtype]
    size = BYTES[dtype]
    out = bytearray()
    for _ in range(count):
        value = rng.gauss(0, 0.05)
        data = struct.pack("<f", value)[2:] if dtype == "BF16" else struct.pack("<" + FORMATS[dtype], value)
        out += rng.choice(special).to_bytes(size, "little") if rng.random() < 0.02 else data
    return bytes(out)


def tensors_of(config, rng, dtypes):
    """(name, dtype, shape, bytes) of a model; each tensor has one of the dtypes."""
    shapes = {"gpt2": shapes_of_gpt2, "bert": shapes_of_bert, "vit": shapes_of_vit}.get(config["model_type"], shapes_of_llama)
    out = []
    for name, shape in shapes(config):
        dtype = rng.choice(dtypes)
        out.append((name, dtype, shape, numbers(rng, dtype, math.prod(shape))))
    return out


def file_of(entries, metadata=True):
    """The bytes that the safetensors library writes: wider types first, then by name."""
    order = ["F16", "BF16", "F32"]
    entries = sorted(entries, key=lambda entry: (-order.index(entry[1]), entry[0]))
    header, at = {"__metadata__": {"format": "pt"}} if metadata else {}, 0
    for name, dtype, shape, data in entries:
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(entry[3] for entry in entries)


def write_hub(weft, folder, config, entries, shards=1):
    """Writes a model's folder; returns its name."""
    os.makedirs(weft.path(folder), exist_ok=True)
    weft.write(f"{folder}/config.json", json.dumps(config, indent=2))
    weft.write(f"{folder}/tokenizer.json", "{\"version\": \"1.0\"}\n")
    weft.write(f"{folder}/generation_config.json", "{\"eos_token_id\": 2,\n \"transformers_version\": \"9\"}\n")
    if shards == 1:
        weft.write(f"{folder}/model.safetensors", file_of(entries))
        return folder
    names = [f"model-{i + 1:05}-of-{shards:05}.safetensors" for i in range(shards)]
    for i, shard in enumerate(names):
        weft.write(f"{folder}/{shard}", file_of(entries[i::shards]))
    weft.write(f"{folder}/model.safetensors.index.json", {
        "metadata": {"total_size": 0}, "weight_map": {entry[0]: names[i % shards] for i, entry in enumerate(entries)}})
    return folder


def read_hub(weft, folder):
    """{name: (dtype, shape, bytes)} of all files of a folder."""
    out = {}
    for name in sorted(os.listdir(weft.path(folder))):
        if not name.endswith(".safetensors"):
            continue
        with open(weft.path(f"{folder}/{name}"), "rb") as file:
            data = file.read()
        begin = 8 + struct.unpack("<Q", data[:8])[0]
        header = json.loads(data[8:begin])
        assert header.pop("__metadata__") == {"format": "pt"}, header
        for tensor, entry in header.items():
            first, last = entry["data_offsets"]
            assert tensor not in out
            out[tensor] = (entry["dtype"], entry["shape"], data[begin + first:begin + last])
    return out
