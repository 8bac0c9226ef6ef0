#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hugging Face's config.json: published parameter counts of public models, refusals by key, and random mutations."""
import json
import os
import random
import re
import sys

from configs import tiny
from tap import case, main, seed_of_draws

LLAMA = ("hidden_size", "num_attention_heads", "num_key_value_heads", "intermediate_size", "num_hidden_layers",
         "vocab_size")


def gpt2(width, heads, layers, **more):
    return {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "activation_function": "gelu_new",
            "attn_pdrop": 0.1, "embd_pdrop": 0.1, "resid_pdrop": 0.1, "n_ctx": 1024, "n_positions": 1024,
            "n_embd": width, "n_head": heads, "n_layer": layers, "vocab_size": 50257, "layer_norm_epsilon": 1e-5,
            "initializer_range": 0.02, "bos_token_id": 50256, "eos_token_id": 50256, **more}


def llama(*sizes, kind="llama", name=None, **more):
    return {"model_type": kind, "architectures": [(name or kind.capitalize()) + "ForCausalLM"], "hidden_act": "silu",
            **dict(zip(LLAMA, sizes)), "max_position_embeddings": 4096, "rms_norm_eps": 1e-5, "use_cache": True,
            "torch_dtype": "bfloat16", "transformers_version": "4.40.0", "bos_token_id": 1, "eos_token_id": 2, **more}


def mistral(*sizes, **more):
    return llama(*sizes, kind="mistral", **more)


def qwen2(*sizes, **more):
    return llama(*sizes, kind="qwen2", use_sliding_window=False, sliding_window=32768, max_window_layers=28, **more)


def qwen3(*sizes, **more):
    return llama(*sizes, kind="qwen3", attention_bias=False, use_sliding_window=False, sliding_window=None,
                 max_window_layers=28, head_dim=128, **more)


def gemma(version, *sizes, **more):
    kind, name = {1: ("gemma", "Gemma"), 2: ("gemma2", "Gemma2"), 3: ("gemma3_text", "Gemma3")}[version]
    return llama(*sizes, kind=kind, name=name, **{"hidden_act": "gelu_pytorch_tanh", "head_dim": 256, **more})


def bert(hidden, heads, layers, **more):
    return {"model_type": "bert", "architectures": ["BertForMaskedLM"], "hidden_act": "gelu", "hidden_size": hidden,
            "num_attention_heads": heads, "num_hidden_layers": layers, "intermediate_size": 4 * hidden,
            "max_position_embeddings": 512, "type_vocab_size": 2, "vocab_size": 30522, "layer_norm_eps": 1e-12,
            "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1, "position_embedding_type": "absolute", **more}


def vit(hidden, heads, layers, patch=16, **more):
    return {"model_type": "vit", "architectures": ["ViTForImageClassification"], "hidden_act": "gelu",
            "hidden_size": hidden, "num_attention_heads": heads, "num_hidden_layers": layers,
            "intermediate_size": 4 * hidden, "image_size": 224, "patch_size": patch, "num_channels": 3, "qkv_bias": True,
            "layer_norm_eps": 1e-12, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0,
            "initializer_range": 0.02, "id2label": {str(i): f"LABEL_{i}" for i in range(1000)}, **more}


LLAMA3 = {"rope_theta": 500000.0, "rope_scaling": {"factor": 8.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
                                                  "original_max_position_embeddings": 8192, "rope_type": "llama3"}}
PUBLIC = {  # name: (parameters as published, config.json)
    "bert-base-uncased": (109514298, bert(768, 12, 12)),
    "bert-large-uncased": (335174458, bert(1024, 16, 24)),
    "gpt2": (124439808, gpt2(768, 12, 12)),
    "gpt2-medium": (354823168, gpt2(1024, 16, 24, n_special=0, predict_special_tokens=True)),
    "gpt2-large": (774030080, gpt2(1280, 20, 36)),
    "gpt2-xl": (1557611200, gpt2(1600, 25, 48, output_past=True)),
    "distilgpt2": (81912576, gpt2(768, 12, 6, _num_labels=1, id2label={"0": "LABEL_0"}, label2id={"LABEL_0": 0})),
    "llama-7b": (6738415616, llama(4096, 32, None, 11008, 32, 32000)),
    "llama-13b": (13015864320, llama(5120, 40, 40, 13824, 40, 32000, pretraining_tp=2)),
    "llama-30b": (32528943616, llama(6656, 52, 52, 17920, 60, 32000)),
    "llama-65b": (65285660672, llama(8192, 64, 64, 22016, 80, 32000)),
    "llama-2-70b": (68976648192, llama(8192, 64, 8, 28672, 80, 32000)),
    "codellama-34b": (33743970304, llama(8192, 64, 8, 22016, 48, 32000, rope_theta=1000000)),
    "llama-3-8b": (8030261248, llama(4096, 32, 8, 14336, 32, 128256, rope_theta=500000.0)),
    "llama-3.1-70b": (70553706496, llama(8192, 64, 8, 28672, 80, 128256, **LLAMA3)),
    "llama-3.1-405b": (405853388800, llama(16384, 128, 8, 53248, 126, 128256, **LLAMA3)),
    "llama-3.2-1b": (1235814400, llama(2048, 32, 8, 8192, 16, 128256, head_dim=64, tie_word_embeddings=True, **LLAMA3)),
    "llama-3.2-3b": (3212749824, llama(3072, 24, 8, 8192, 28, 128256, head_dim=128, tie_word_embeddings=True)),
    "tinyllama-1.1b": (1100048384, llama(2048, 32, 4, 5632, 22, 32000)),
    "open-llama-3b": (3426473600, llama(3200, 32, 32, 8640, 26, 32000)),
    "smollm-135m": (134515008, llama(576, 9, 3, 1536, 30, 49152, tie_word_embeddings=True)),
    "smollm-360m": (361821120, llama(960, 15, 5, 2560, 32, 49152, tie_word_embeddings=True)),
    "smollm2-1.7b": (1711376384, llama(2048, 32, 32, 8192, 24, 49152, tie_word_embeddings=True)),
    "yi-6b": (6061035520, llama(4096, 32, 4, 11008, 32, 64000)),
    "yi-34b": (34388917248, llama(7168, 56, 8, 20480, 60, 64000)),
    "deepseek-coder-1.3b": (1346471936, llama(2048, 16, 16, 5504, 24, 32256,
                                              rope_scaling={"factor": 4.0, "type": "linear"})),
    "deepseek-coder-6.7b": (6740512768, llama(4096, 32, 32, 11008, 32, 32256)),
    "deepseek-llm-7b": (6910365696, llama(4096, 32, 32, 11008, 30, 102400)),
    "mistral-7b-v0.1": (7241732096, mistral(4096, 32, 8, 14336, 32, 32000, sliding_window=4096)),
    "mistral-7b-v0.3": (7248023552, mistral(4096, 32, 8, 14336, 32, 32768, sliding_window=None)),
    "mixtral-8x7b": (46702792704, llama(4096, 32, 8, 14336, 32, 32000, kind="mixtral", num_local_experts=8,
                                        num_experts_per_tok=2, sliding_window=None, router_aux_loss_coef=0.02)),
    "mixtral-8x22b": (140620634112, llama(6144, 48, 8, 16384, 56, 32000, kind="mixtral", num_local_experts=8,
                                          num_experts_per_tok=2)),
    "qwen1.5-0.5b": (463987712, qwen2(1024, 16, 16, 2816, 24, 151936, tie_word_embeddings=True)),
    "qwen2-0.5b": (494032768, qwen2(896, 14, 2, 4864, 24, 151936, tie_word_embeddings=True)),
    "qwen2-1.5b": (1543714304, qwen2(1536, 12, 2, 8960, 28, 151936, tie_word_embeddings=True)),
    "qwen2-7b": (7615616512, qwen2(3584, 28, 4, 18944, 28, 152064)),
    "qwen2-72b": (72706203648, qwen2(8192, 64, 8, 29568, 80, 152064)),
    "qwen2.5-3b": (3085938688, qwen2(2048, 16, 2, 11008, 36, 151936, tie_word_embeddings=True)),
    "qwen2.5-14b": (14770033664, qwen2(5120, 40, 8, 13824, 48, 152064)),
    "qwen2.5-32b": (32763876352, qwen2(5120, 40, 8, 27648, 64, 152064)),
    "gemma-2b": (2506172416, gemma(1, 2048, 8, 1, 16384, 18, 256000, hidden_act="gelu")),
    "gemma-7b": (8537680896, gemma(1, 3072, 16, 16, 24576, 28, 256000)),
    "gemma-2-9b": (9241705984, gemma(2, 3584, 16, 8, 14336, 42, 256000)),
    "gemma-2-27b": (27227128320, gemma(2, 4608, 32, 16, 36864, 46, 256000, head_dim=128, query_pre_attn_scalar=144)),
    "gemma-3-270m": (268098176, gemma(3, 640, 4, 1, 2048, 18, 262144)),
    "gemma-3-1b": (999885952, gemma(3, 1152, 4, 1, 6912, 26, 262144)),
    "qwen3-0.6b": (596049920, qwen3(1024, 16, 8, 3072, 28, 151936, tie_word_embeddings=True)),
    "qwen3-8b": (8190735360, qwen3(4096, 32, 8, 12288, 36, 151936)),
    "qwen3-32b": (32762123264, qwen3(5120, 64, 8, 25600, 64, 151936)),
    "phi-3-mini": (3821079552, llama(3072, 32, 32, 8192, 32, 32064, kind="phi3")),
    "olmo-2-7b": (7298617344, llama(4096, 32, 32, 11008, 32, 100352, kind="olmo2")),
    "vit-base-patch16-224": (86567656, vit(768, 12, 12)),
    "vit-base-patch32-384": (88297192, vit(768, 12, 12, 32, image_size=384)),
    "vit-large-patch16-224": (304326632, vit(1024, 16, 24)),
    "vit-huge-patch14-224": (632045800, vit(1280, 16, 32, 14, encoder_stride=16)),
    "r1-distill-qwen-1.5b": (1777088000, qwen2(1536, 12, 2, 8960, 28, 151936)),
}
QUANTIZED = {"bits": 4, "group_size": 128, "quant_method": "awq"}
REFUSED = {  # name: (the refused key, config.json); a model may also be read with its published count
    "mistral-nemo": ("head_dim", mistral(5120, 32, 8, 14336, 40, 131072, head_dim=128), 12247782400),
    "awq": ("quantization_config", llama(4096, 32, 32, 11008, 32, 32000, quantization_config=QUANTIZED), 0),
    "reward": ("architectures", llama(4096, 32, 8, 14336, 32, 128256, name="Llama") |
               {"architectures": ["LlamaForSequenceClassification"], "num_labels": 1}, 0),
    "e5-mistral": ("architectures", mistral(4096, 32, 8, 14336, 32, 32000) | {"architectures": ["MistralModel"]}, 0),
    "gte-qwen2": ("is_causal", qwen2(1536, 12, 2, 8960, 28, 151646, is_causal=False,
                                    auto_map={"AutoModel": "modeling_qwen.Qwen2Model"}), 0),
    "internlm": ("attention_bias", llama(4096, 32, 32, 11008, 32, 103168, attention_bias=True), 0),
    "gemma-3-4b": ("model_type", llama(2560, 8, 4, 10240, 34, 262208, kind="gemma3"), 0),
    "phi-3-long": ("rope_scaling", llama(3072, 32, 32, 8192, 32, 32064, kind="phi3", rope_scaling={"type": "longrope"}),
                   3821079552),
    "gpt-neox": ("model_type", {"model_type": "gpt_neox", "hidden_size": 6144, "num_hidden_layers": 44}, 0),
    "qwen2-moe": ("model_type", llama(2048, 16, 16, 5632, 24, 151936, kind="qwen2_moe"), 0),
    "bert-decoder": ("is_decoder", bert(768, 12, 12, is_decoder=True), 0),
    "bert-relative": ("position_embedding_type", bert(768, 12, 12, position_embedding_type="relative_key"), 0),
    "vit-base": ("architectures", vit(768, 12, 12, architectures=["ViTModel"]), 0),
    "vit-masked": ("architectures", vit(768, 12, 12, architectures=["ViTForMaskedImageModeling"]), 0),
    "vit-bias": ("qkv_bias", vit(768, 12, 12, qkv_bias=False), 0),
    "vit-quick": ("hidden_act", vit(768, 12, 12, hidden_act="quick_gelu"), 0),
    "vit-regression": ("problem_type", vit(768, 12, 12, problem_type="regression"), 0),
    "vit-image": ("image_size", vit(768, 12, 12, image_size=230), 0),
    "vit-oblong": ("image_size", vit(768, 12, 12, image_size=[224, 448]), 0),
    "vit-labels": ("num_labels", vit(768, 12, 12, num_labels=999), 0),
    "vit-names": ("id2label", vit(768, 12, 12, id2label=["a", "b"]), 0),
    "gelu": ("activation_function", gpt2(768, 12, 12, activation_function="relu"), 0),
}


def count(weft, content):
    """The exit code, the parameters, and all that is told."""
    path = weft.write("config.json", content)
    code, out, err = weft.run("estimate", "--hf", path, "-n", "8", "--json")
    return code, json.loads(out).get("parameters") if code == 0 else None, " ".join(err.split())


@case
def public_models_have_their_published_counts(weft):
    assert len(PUBLIC) + len(REFUSED) >= 50
    for name, (parameters, content) in PUBLIC.items():
        code, found, told = count(weft, content)
        assert code == 0 and found == parameters, (name, found, parameters, told)


@case
def other_models_are_refused_by_key(weft):
    for name, (key, content, parameters) in REFUSED.items():
        code, found, told = count(weft, content)
        if code == 0:
            assert found == parameters, (name, found, told)
        else:
            assert code == 65 and re.search(rf"config.json:1:\d+: \$\.{key}: ", told), (name, told)


@case
def missing_keys_have_the_defaults_of_transformers(weft):
    """A missing key is not null: mistral's keys and values then have as many heads as its queries."""
    shape = llama(4096, 32, 8, 14336, 32, 32000)
    for kind, missing, null in (("mistral", 7241732096, 8047038464), ("mixtral", 46702792704, 47508099072),
                                ("llama", 8047038464, 8047038464), ("qwen2", 8047431680, 8047431680)):
        name = {"architectures": None, "model_type": kind}
        absent = {k: v for k, v in (shape | name).items() if k != "num_key_value_heads"}
        _, found, told = count(weft, absent)
        assert found == missing, (kind, found, missing)
        assert ("num_key_value_heads 8" in told) == (kind in ("mistral", "mixtral")), told
        assert count(weft, shape | name | {"num_key_value_heads": None})[1] == null, kind
    # Only the type is needed, and an alias is the same key.
    assert count(weft, {"model_type": "gpt2"})[1] == 124439808
    alias = {"model_type": "gpt2", "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16,
             "max_position_embeddings": 1024}
    code, found, told = count(weft, alias)
    assert found == 354823168 and "vocab_size 50257" in told, told
    code, _, told = count(weft, alias | {"n_embd": 768})
    assert code == 65 and "$.hidden_size: is the same key as $.n_embd" in told, told


@case
def a_model_of_images_has_its_rows_and_classes(weft):
    """The sequence is the class token and the patches, however long, and classes are the names or a number."""
    base = vit(64, 4, 2, id2label=None, num_labels=11, image_size=800)
    run = weft.write("run.json", tiny(train__seq_len=2501))
    for content, classes, rows in ((base, 11, 2501), ({**base, "num_labels": None, "id2label": {"0": "a", "1": "b", "2": "c"}}, 3, 2501),
                                   ({k: v for k, v in base.items() if k not in ("num_labels", "image_size")}, 2, 197)):
        content = {key: value for key, value in content.items() if value is not None}
        path = weft.write("config.json", content)
        out = json.loads(weft.expect(0, "check", run, "--model", path, "--print", "--set", f"train.seq_len={rows}"))["model"]["layers"]
        assert out[0]["hidden"] == 768 and out[0]["patch"] == 16 and out[-1]["classes"] == classes, out
        assert out[1]["positions"] == rows and out[1]["class_token"] is True and out[-1]["first"] is True, out
        found = json.loads(weft.expect(0, "estimate", "--hf", path, "-n", "8", "--json"))
        whole = weft.expect(0, "estimate", "--hf", path, "-n", "8", "--json", "--set", f"train.seq_len={rows}")
        assert found == json.loads(whole), "a sample is a whole image"
        assert found["parameters"] == 64 * (769 + 1 + rows) + 2 * 12 * 64 * 64 + 2 * 13 * 64 + 2 * 64 + 65 * classes, found
    code, _, told = count(weft, {k: v for k, v in base.items() if k != "image_size"})
    assert code == 0 and "image_size 224" in told and "num_labels" not in told, told
    for key, value in (("num_labels", 1), ("patch_size", 0), ("num_channels", 2 ** 20)):
        code, _, told = count(weft, base | {key: value})
        blamed = "patch_size" if key == "num_channels" else key
        assert code == 65 and f"$.{blamed}: " in told, (key, told)


@case
def keys_that_change_the_answer_are_told(weft):
    base = llama(256, 8, 4, 512, 2, 1000)
    quiet = {k: v for k, v in base.items() if k != "rms_norm_eps"}
    for more, says in (({"attention_dropout": 0.1}, "dropout, so its masks are not counted"),
                       ({"rope_parameters": {"rope_type": "yarn"}}, "change numbers, but no memory and no time of a plan"),
                       ({"rope_scaling": {"type": "linear"}}, 'rope_scaling {"type": "linear"}'),
                       ({"initializer_range": 0.1}, "initial values are Weft's own: initializer_range 0.1"),
                       ({"my_key": [1, 2]}, "keys that Weft does not know are not used: my_key [1, 2]")):
        code, _, told = count(weft, quiet | more)
        assert code == 0 and says in told and list(more)[0] in told, (more, told)
    # A plan's text has each line once, whatever the number of sessions.
    assert told.count("my_key") == 1, told
    assert "id2label" in count(weft, {**quiet, "architectures": None, "id2label": {"0": "A"}})[2]
    assert "id2label" not in count(weft, {**quiet, "id2label": {"0": "A"}})[2]
    code, _, told = count(weft, {k: v for k, v in quiet.items() if k != "hidden_size"} | {"hiden_size": 256})
    assert code == 65 and '$.hiden_size: is no key of a model of type "llama"; did you mean "hidden_size"' in told
    for other in ("qwen3_moe", "llama4", "gpt1", "mistral3"):
        told = count(weft, quiet | {"model_type": other})[2]
        assert "did you mean" not in told and f'"{other}" is no type of model' in told, told


@case
def each_layer_has_its_window(weft):
    run = weft.write("run.json", tiny())
    gemma3 = gemma(3, 256, 8, 4, 512, 7, 1000, head_dim=32, sliding_window=64, rope_local_base_freq=500)
    for content, windows in (
            (mistral(256, 8, 4, 512, 2, 1000), [4096] * 2), (mistral(256, 8, 4, 512, 2, 1000, sliding_window=64), [64] * 2),
            (qwen2(256, 8, 4, 512, 3, 1000) | {"use_sliding_window": True, "sliding_window": 64, "max_window_layers": 1},
             [0, 64, 64]),
            (gemma3, [64] * 5 + [0, 64]), (gemma3 | {"sliding_window_pattern": 2}, [64, 0] * 3 + [64]),
            (gemma3 | {"sliding_window_pattern": None, "_sliding_window_pattern": 2}, [64, 0] * 3 + [64]),
            (gemma3 | {"sliding_window_pattern": None, "layer_types": ["full_attention"] * 7}, [0] * 7),
            (gemma3 | {"layer_types": ["full_attention"] * 6 + ["sliding_attention"]}, [0] * 6 + [64]),
            (gemma3 | {"model_type": "gemma2", "architectures": ["Gemma2ForCausalLM"]}, [64, 0] * 3 + [64])):
        content = {key: value for key, value in content.items() if "local" not in key or content["model_type"] == "gemma3_text"}
        content["rope_theta"] = 2000
        out = json.loads(weft.expect(0, "check", run, "--model", weft.write("config.json", content), "--print"))
        blocks = out["model"]["layers"][1:-2]
        found = [block["window"] for block in blocks for _ in range(block.get("repeat", 1))]
        assert found == windows, (content, found)
        if content["model_type"] == "gemma3_text":
            assert [block["rope_base"] for block in blocks] == [500 if window else 2000 for window in windows], blocks
        else:
            assert all(block["rope_base"] == 2000 for block in blocks), blocks
    for types in ["full_attention"], ["full_attention"] * 6 + ["chunked_attention"], "full_attention":
        weft.expect(65, "check", run, "--model", weft.write("config.json", gemma3 | {"layer_types": types}),
                    says=["$.layer_types: must have \"sliding_attention\" or \"full_attention\""])


@case
def windows_of_blocks_without_one_bind_longer_sequences(weft):
    content = llama(256, 8, 4, 512, 2, 1000, kind="mixtral", num_local_experts=4, num_experts_per_tok=2, sliding_window=64)
    weft.write("config.json", content)
    for length, code in ((64, 0), (65, 65)):
        weft.expect(code, "estimate", "--hf", "config.json", "-n", "8", "--set", f"train.seq_len={length}",
                    says=["$.sliding_window: is 64"] if code else [])
    weft.write("config.json", qwen2(256, 8, 4, 512, 2, 1000))
    weft.expect(0, "estimate", "--hf", "config.json", "-n", "8", "--set", "train.seq_len=40000")


@case
def errors_name_the_users_file(weft):
    """A folder is as good as its file. Errors of later checks have the user's key and place too."""
    content = llama(256, 8, 4, 512, 2, 1000)
    os.makedirs(weft.path("model"))
    weft.write("model/config.json", json.dumps(content, indent=2))
    for given in "model", "model/", "model/config.json":
        weft.expect(0, "estimate", "--hf", given, "-n", "8")
        weft.expect(0, "check", weft.write("run.json", tiny()), "--model", given)
    weft.expect(66, "estimate", "--hf", weft.path(""), "-n", "8", says="config.json")
    for key, value in (("num_attention_heads", 7), ("num_key_value_heads", 3), ("hidden_size", 2 ** 31 - 1),
                       ("num_hidden_layers", 20000), ("vocab_size", 0), ("intermediate_size", "512"),
                       ("hidden_size", 2 ** 26)):
        text = json.dumps(content | {key: value}, indent=2)
        weft.write("model/config.json", text)
        line = 1 + [f'"{key}"' in row for row in text.splitlines()].index(True)
        column = 1 + text.splitlines()[line - 1].index('"')
        blamed = "num_attention_heads" if key == "hidden_size" and value % 8 else key
        line += list(content).index(blamed) - list(content).index(key)
        for given in "model", "model/config.json":
            err = " ".join(weft.run("estimate", "--hf", given, "-n", "8")[2].split())
            assert f"model/config.json:{line}:{column}: $.{blamed}: " in err, (given, key, err)


VALUES = [None, True, False, 0, -1, 1, 2, 3, 64, 1.5, 1e300, 2 ** 53, "", "gelu", "é\u2028\x1b[31m", [], [None], ["x"],
          {}, {"a": {"b": [1]}}, {"rope_type": "yarn"}, 1e-9]


def known_to_change_nothing():
    table = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "spec", "hub", "families.c")
    return set(re.findall(r'NOTHING\("([^"]+)"\)', open(table, encoding="utf-8").read()))


@case
def no_key_is_passed_over_in_silence(weft):
    """A changed key changes the layers, is told, is refused, or is in the list of keys that change nothing."""
    seed = seed_of_draws()
    rng = random.Random(seed)
    nothing = known_to_change_nothing() | {"max_position_embeddings"}
    seq_len = 16  # wider windows bind nothing
    run = weft.write("run.json", tiny(train__seq_len=seq_len))
    bases = [gpt2(64, 4, 2), vit(64, 4, 2, image_size=80), llama(64, 8, 4, 96, 2, 100), mistral(64, 8, 4, 96, 2, 100, sliding_window=64),
             qwen2(64, 8, 4, 96, 2, 100), qwen3(64, 8, 4, 96, 2, 100),
             llama(64, 8, 4, 96, 2, 100, kind="mixtral", num_local_experts=4, num_experts_per_tok=2)]
    keys = ["qk_norm", "layer_types", "pruned_heads", "head_dim", "rope_theta", "sliding_window", "is_causal", "x",
            "tie_word_embeddings", "quantization_config", "attention_bias", "use_sliding_window", "hidden_size"]
    for number in range(250):
        base = rng.choice(bases)
        key = rng.choice(list(base) + keys)
        content = base | {key: rng.choice(VALUES)}
        if rng.random() < 0.2:
            content.pop(key)
        layers = []
        for one in base, content:
            path = weft.write("config.json", one)
            code, out, err = weft.run("check", run, "--model", path, "--print")
            layers.append(json.loads(out)["model"] if code == 0 else None)
        assert layers[0] and code in (0, 65), (seed, number, code, err)
        told = " ".join(err.split())
        silent = code == 0 and layers[0] == layers[1] and key not in told
        # The same value in other words, and values that mean what is computed anyway, need no word.
        usual = content.get(key, base.get(key)) in (base.get(key), None, False, True, 0, 1, 2, 64, [None]) or not content[key]
        wide = key == "sliding_window" and isinstance(content.get(key), (int, float)) and content[key] >= seq_len
        unused = key == "sliding_window" and content.get("use_sliding_window") is False  # Qwen's flag
        assert not silent or key in nothing or usual or wide or unused, (seed, number, key, content.get(key), told)
        assert code == 0 or "config.json:1:" in told or key == "model_type", (seed, number, key, content.get(key), told)
        assert "\x1b" not in err, (seed, number, key)


main(sys.argv[1])
