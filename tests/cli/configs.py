# SPDX-License-Identifier: Apache-2.0
"""Small configs for the tests of the command line."""
import copy

LICENCE = "/usr/share/common-licenses/GPL-3"

TINY = {
    "version": 1,
    "model": {"layers": [
        {"name": "wte", "type": "embedding", "vocab": 256, "positions": 16, "hidden": 32},
        {"name": "h.{i}", "type": "transformer_block", "repeat": 3, "hidden": 32, "heads": 2,
         "ffn": 64},
        {"name": "ln_f", "type": "layer_norm", "hidden": 32},
        {"name": "head", "type": "lm_head", "vocab": 256, "hidden": 32, "bias": False},
    ]},
    "cluster": {
        "ranks": 2, "memory_limit": "1GiB",
        "device": {"flops": {"f32": "50G"}, "memory_bandwidth": "10GB/s"},
        "link": {"intra": {"alpha": "20us", "bandwidth": "1GB/s"}},
    },
    "train": {"steps": 3, "micro_batch": 2, "seq_len": 16, "seed": 7, "data": LICENCE,
              "optimizer": {"type": "adamw", "lr": 1e-3}, "clip_norm": 1.0,
              "checkpoint": {"at_end": False}},
    "plan": {"planner": "ilp", "work_limit": "300M", "fuse": False},
}


def host(bandwidth):
    """Returns a host with links and updates of this bandwidth."""
    link = {"alpha": "1us", "bandwidth": bandwidth}
    return {"memory_limit": "1GiB", "down": link, "up": link, "update": bandwidth}


def deep(**changes):
    """Returns TINY with 8 blocks and little work, without clipping, so that units may be updated in backward."""
    config = tiny(**{"train__clip_norm": 0, "train__micro_batch": 1, "plan__recompute": "none",
                     "plan__work_limit": "20M", **changes})
    config["model"]["layers"][1]["repeat"] = 8
    return config


def tiny(**changes):
    """Returns TINY with changes by path: tiny(cluster__ranks=3)."""
    config = copy.deepcopy(TINY)
    for path, value in changes.items():
        keys = path.split("__")
        target = config
        for key in keys[:-1]:
            target = target[int(key) if isinstance(target, list) else key]
        if value is None:
            del target[keys[-1]]
        else:
            target[keys[-1]] = value
    return config
