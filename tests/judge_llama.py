#!/usr/bin/env python3
"""Compares Weft's Llama with transformers: from one checkpoint, the loss on the same held-out samples in f32.

    tests/judge_llama.py BUILD/cli/weft

WEFT_TORCH is an interpreter with torch and transformers. Ends with 77 without them, and with 1 if a model's loss
differs by more than 1e-6 of itself."""
import json
import os
import struct
import subprocess
import sys
import tempfile

SAMPLES, SEQ, STEPS, MOST = 16, 64, 20, 1e-6
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HIDDEN, HEADS, KV_HEADS, FFN, LAYERS, VOCAB = 64, 4, 2, 176, 3, 256
# Name: the model's class in transformers, keys of the block, whether the head is the embedding's table.
MODELS = {
    "llama, tied": ("Llama", {}, True),
    "llama 3": ("Llama", {"rope_base": 500000, "rope_factor": 8, "rope_original": 32}, False),
    "qwen 2": ("Qwen2", {"qkv_bias": True, "eps": 1e-6}, False),
    "qwen 3": ("Qwen3", {"type": "qwen3_block", "head_dim": 24, "rope_base": 1000000}, False),
    "mistral": ("Mistral", {"kv_heads": 1, "window": 64}, False),
}


def config_of(keys, tied, held_out):
    block = {"name": "h.{i}", "type": "llama_block", "repeat": LAYERS, "hidden": HIDDEN, "heads": HEADS,
             "kv_heads": KV_HEADS, "ffn": FFN, **keys}
    layers = [{"name": "embed", "type": "embedding", "vocab": VOCAB, "hidden": HIDDEN}, block,
              {"name": "norm", "type": "rms_norm", "hidden": HIDDEN, "eps": keys.get("eps", 1e-5)},
              {"name": "head", "type": "lm_head", "vocab": VOCAB, "hidden": HIDDEN, "bias": False,
               **({"tie": "embed"} if tied else {})}]
    return block, {
        "version": 1, "model": {"layers": layers}, "cluster": os.path.join(ROOT, "configs/clusters/local-2.json"),
        "train": {"steps": STEPS, "micro_batch": 4, "seq_len": SEQ, "data": "/usr/share/common-licenses/GPL-3",
                  "optimizer": {"type": "adamw", "lr": 0.003},
                  "validation": {"data": held_out, "every": STEPS, "samples": SAMPLES}},
        "plan": {"planner": "all-fsdp"}}


def tensors_of(run):
    import torch
    with open(os.path.join(run, f"checkpoints/step-{STEPS}/model.safetensors"), "rb") as file:
        data = file.read()
    begin = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:begin])
    return {name: torch.frombuffer(bytearray(data[begin + entry["data_offsets"][0]:begin + entry["data_offsets"][1]]),
                                   dtype=torch.float32).reshape(entry["shape"])
            for name, entry in header.items() if name != "__metadata__"}


def state_of(tensors, block, head_dim):
    """The same tensors by the names of transformers; fused ones are cut."""
    columns = [HEADS * head_dim, block["kv_heads"] * head_dim, block["kv_heads"] * head_dim]
    names = {"input_norm": "input_layernorm", "post_norm": "post_attention_layernorm", "attn.o": "self_attn.o_proj",
             "attn.q_norm": "self_attn.q_norm", "attn.k_norm": "self_attn.k_norm", "mlp.down": "mlp.down_proj"}
    state = {"model.embed_tokens.weight": tensors["embed.tokens"], "model.norm.weight": tensors["norm.weight"],
             "lm_head.weight": tensors.get("head.weight", tensors["embed.tokens"])}
    for name, tensor in tensors.items():
        parts = name.split(".")
        if parts[0] != "h":
            continue
        to, part, kind = f"model.layers.{parts[1]}.", ".".join(parts[2:-1]), parts[-1]
        if part == "attn.qkv":
            for which, piece in zip("qkv", tensor.split(columns)):
                state[f"{to}self_attn.{which}_proj.{kind}"] = piece
        elif part == "mlp.gate_up":
            state[f"{to}mlp.gate_proj.{kind}"], state[f"{to}mlp.up_proj.{kind}"] = tensor.split(FFN)
        else:
            state[f"{to}{names[part]}.{kind}"] = tensor
    return state


def model_of(kind, block, tensors):
    import transformers
    head_dim = block.get("head_dim", HIDDEN // HEADS)
    rope = {"rope_type": "default", "rope_theta": float(block.get("rope_base", 10000))}
    if "rope_factor" in block:
        rope.update(rope_type="llama3", factor=float(block["rope_factor"]), low_freq_factor=1.0, high_freq_factor=4.0,
                    original_max_position_embeddings=block["rope_original"])
    config = getattr(transformers, f"{kind}Config")(
        vocab_size=VOCAB, hidden_size=HIDDEN, intermediate_size=FFN, num_hidden_layers=LAYERS,
        num_attention_heads=HEADS, num_key_value_heads=block["kv_heads"], head_dim=head_dim,
        rms_norm_eps=block.get("eps", 1e-5), rope_parameters=rope, tie_word_embeddings=False)
    model = getattr(transformers, f"{kind}ForCausalLM")(config).float().eval()
    model.load_state_dict(state_of(tensors, block, head_dim))
    return model


def loss_of(model, held_out):
    """Samples lie at even distances in the held-out text (docs/usage.md)."""
    import torch
    with open(held_out, "rb") as file:
        tokens = torch.tensor(list(file.read()))
    total = 0.0
    with torch.no_grad():
        for s in range(SAMPLES):
            at = int(s / (SAMPLES - 1) * (len(tokens) - SEQ - 1))
            sample = tokens[at:at + SEQ + 1]
            logits = model(sample[None, :-1]).logits[0].double()
            total += torch.nn.functional.cross_entropy(logits, sample[1:], reduction="sum").item()
    return total / SAMPLES / SEQ


def compare_models(weft):
    failed = 0
    with tempfile.TemporaryDirectory() as directory:
        held_out = os.path.join(directory, "held_out.txt")
        with open("/usr/share/common-licenses/Apache-2.0", "rb") as text, open(held_out, "wb") as file:
            file.write(text.read(10000))
        for number, (name, (kind, keys, tied)) in enumerate(MODELS.items()):
            block, config = config_of(keys, tied, held_out)
            path, run = os.path.join(directory, f"{number}.json"), os.path.join(directory, f"run{number}")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(config, file)
            subprocess.run([weft, "train", path, "--run", run, "-q", "--progress=none"], check=True,
                           stdout=subprocess.DEVNULL)
            with open(os.path.join(run, "result.json"), encoding="utf-8") as file:
                ours = json.load(file)["validation_loss"]
            theirs = loss_of(model_of(kind, block, tensors_of(run)), held_out)
            apart = abs(ours - theirs) / theirs
            failed += not apart <= MOST
            print(f"{name:12} weft {ours:.9f}  transformers {theirs:.9f}  apart {apart:.1e}", flush=True)
    return failed


def main():
    torch = os.environ.get("WEFT_TORCH")
    if torch and os.environ.get("WEFT_JUDGES") is None:
        os.execve(torch, [torch, "-W", "ignore", os.path.abspath(__file__), *sys.argv[1:]],
                  {**os.environ, "WEFT_JUDGES": "1"})
    try:
        import transformers  # noqa: F401
    except ImportError:
        print("skipped: WEFT_TORCH names no interpreter with torch and transformers")
        sys.exit(77)
    sys.exit(1 if compare_models(sys.argv[1]) else 0)


if __name__ == "__main__":
    main()
