# SPDX-License-Identifier: Apache-2.0
"""Small configs for bench/gpu/run and for the tests over doubles. Their runs end with the same bits on every device.
Sizes are odd, so every kernel has partial tiles.
"""
import random
import struct

LAYERS = [
    {"name": "wte", "type": "embedding", "vocab": 61, "positions": 9, "hidden": 24},
    {"name": "h.{i}", "type": "transformer_block", "repeat": 2, "hidden": 24, "heads": 3, "ffn": 40},
    {"name": "ln_f", "type": "layer_norm", "hidden": 24},
    {"name": "head", "type": "lm_head", "vocab": 61, "hidden": 24, "bias": True},
]
MAPS = [
    {"name": "wte", "type": "embedding", "vocab": 61, "positions": 0, "hidden": 24},
    {"name": "up", "type": "linear", "hidden": 24, "outputs": 40, "bias": True},
    {"name": "gelu", "type": "gelu", "hidden": 40},
    {"name": "down", "type": "linear", "hidden": 40, "outputs": 24, "bias": False},
    {"name": "relu", "type": "relu", "hidden": 24},
    {"name": "head", "type": "lm_head", "vocab": 61, "hidden": 24, "bias": True},
]

# Encoders: token types, attention without a mask, norms after sums, other epsilons, both GELUs.
BERT = [
    {"name": "wte", "type": "embedding", "vocab": 61, "positions": 9, "hidden": 24},
    {"name": "types", "type": "token_types", "hidden": 24, "types": 2},
    {"name": "ln_e", "type": "layer_norm", "hidden": 24, "eps": 1e-12},
    {"name": "h.0", "type": "encoder_block", "hidden": 24, "heads": 3, "ffn": 40, "post_norm": True, "eps": 1e-12},
    {"name": "h.1", "type": "encoder_block", "hidden": 24, "heads": 2, "ffn": 40},
    {"name": "gelu", "type": "gelu", "hidden": 24, "erf": True},
    {"name": "head", "type": "lm_head", "vocab": 61, "hidden": 24, "bias": True},
]
MASKED = {"token": 60, "share": 0.4}
VIT = [
    {"name": "wte", "type": "embedding", "vocab": 61, "positions": 0, "hidden": 24},
    {"name": "positions", "type": "positions", "hidden": 24, "positions": 11, "class_token": True},
    {"name": "h.0", "type": "encoder_block", "hidden": 24, "heads": 3, "ffn": 40},
    {"name": "head", "type": "classifier", "hidden": 24, "classes": 61, "bias": True, "first": True, "pooler": True},
]
# Gemma: a scaled embedding, norms by 1 + weight before and after, GELU gates, windows, scalars and caps.
GEMMA = [
    {"name": "wte", "type": "embedding", "vocab": 61, "positions": 0, "hidden": 24, "scale": 4.9},
    {"name": "h.0", "type": "gemma_block", "hidden": 24, "heads": 4, "kv_heads": 2, "head_dim": 8, "ffn": 40,
     "window": 3},
    {"name": "h.1", "type": "gemma2_block", "hidden": 24, "heads": 3, "kv_heads": 1, "head_dim": 8, "ffn": 40,
     "query_scalar": 12, "attention_cap": 2},
    {"name": "h.2", "type": "gemma3_block", "hidden": 24, "heads": 3, "head_dim": 8, "ffn": 40, "query_scalar": 6},
    {"name": "norm", "type": "gemma_norm", "hidden": 24},
    {"name": "head", "type": "lm_head", "vocab": 61, "hidden": 24, "bias": False, "logit_cap": 3},
]


def tokens_of(count, below):
    numbers = random.Random(3)
    tokens = [numbers.randrange(below) for _ in range(count)]
    return struct.pack("<3i", 20240520, 1, count).ljust(1024, b"\0") + struct.pack(f"<{count}H", *tokens)


LINK = {"alpha": "10us", "bandwidth": "1GB/s"}
HOST = {"memory_limit": "1GiB", "down": LINK, "up": LINK, "update": "1MB/s"}
RATE = {"bandwidth": "1GB/s"}
DISK = {"path": ".", "limit": "1GiB", "read": RATE, "write": RATE, "duplex": "full"}
MAY_BE_AWAY = ("state", "activations")


def offload_of(away):
    """Returns plan.offload that keeps what `away` names on the host ("state", "activations", "parameters"), state on a
    disk ("disk"), or state and its updates on the host ("update").
    """
    homes = {name: ["host" if name in away else "device"] for name in MAY_BE_AWAY}
    if "disk" in away:
        homes["state"] = ["disk"]
    if "update" in away:
        homes.update({"state": ["host"], "update": ["host"]})
    return {"offload": {**homes, **({"parameters": ["device", "host"]} if "parameters" in away else {})}}


def config_of(tokens, device, planner="all-dp", steps=5, layers=None, dtype="f32", ranks=1, blocks=None, away=(),
              recompute=None, **train):
    """Returns a config for `ranks` ranks that reads the file `tokens`, made by tokens_of(9000, 61). What `away` names is
    offloaded (offload_of) where the config allows it.
    """
    rates = {"f32": "50G", "bf16": "50G", "f16": "50G"}
    homes = offload_of(away) if away else {}
    tiers = {"host": HOST, **({"disk": DISK} if "disk" in away else {})} if away else {}
    return {"version": 1, "model": {"layers": layers or LAYERS},
            "train": {"steps": steps, "micro_batch": 1, "seq_len": 9, "seed": 5, "data": tokens, "clip_norm": 0.5,
                      "optimizer": {"type": "adamw", "lr": 1e-2}, "precision": {"compute": dtype},
                      "checkpoint": {"at_end": False}, **train},
            "plan": {"planner": planner, "time_limit": "5s", "fuse": False, **({"blocks": blocks} if blocks else {}),
                     **({"recompute": recompute} if recompute else {}),
                     **homes},
            "cluster": {"ranks": ranks, "memory_limit": "2GiB", **tiers,
                        "device": {"type": device, "flops": rates, "memory_bandwidth": "10GB/s"},
                        "link": {"intra": {"alpha": "20us", "bandwidth": "1GB/s"}}}}
