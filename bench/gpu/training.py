# SPDX-License-Identifier: Apache-2.0
"""Section training of bench/gpu/run: whole steps of GPT-2 on one GPU, in turns with PyTorch's and llm.c's if they are named. A turn
ends before the next begins, so no two programs share the GPU.
"""
import json
import random
import re
import statistics
import struct
import time
from pathlib import Path
from typing import NamedTuple

from machine import ROOT, Failure

# Steps whose times vary: the first ones bind kernels, and the clock rises.
WARM_STEPS, STEPS = 5, 20
NEVER = 1 << 30
PEAKS = {"H100 80GB HBM3": 989.4e12, "H200": 989.4e12, "H100 PCIe": 756e12, "A100": 312e12}  # bf16, dense; datasheets


class Model(NamedTuple):
    name: str
    vocab: int
    hidden: int
    heads: int
    blocks: int
    samples: int
    seq_len: int = 1024

    def layers(self):
        hidden = self.hidden
        return [{"name": "wte", "type": "embedding", "vocab": self.vocab, "positions": self.seq_len, "hidden": hidden},
                {"name": "h.{i}", "type": "transformer_block", "repeat": self.blocks, "hidden": hidden,
                 "heads": self.heads, "ffn": 4 * hidden},
                {"name": "ln_f", "type": "layer_norm", "hidden": hidden},
                {"name": "head", "type": "lm_head", "vocab": self.vocab, "hidden": hidden, "bias": False, "tie": "wte"}]

    def flops(self):
        """Returns the floating-point operations of a step: 6 a parameter and token, and attention's (12 L H S a token,
        as llm.c and nanoGPT count them, without the halving for causality)."""
        parameters = self.vocab * self.hidden + self.blocks * 12 * self.hidden ** 2
        return (6 * parameters + 12 * self.blocks * self.hidden * self.seq_len) * self.samples * self.seq_len


SMALL = [Model("124M, 16 samples, 50257", 50257, 768, 12, 12, 16), Model("124M, 16 samples, 50304", 50304, 768, 12, 12, 16),
         Model("124M, 32 samples, 50304", 50304, 768, 12, 12, 32)]
LARGE = [Model("1558M, 8 samples, 50304", 50304, 1600, 25, 48, 8)]
# Over doubles a step of a real model would take hours.
TINY = [Model("tiny", 61, 24, 3, 2, 1, 16)]


def tokens_file(machine, vocab):
    numbers, count = random.Random(7), 1 << 20
    tokens = struct.pack(f"<{count}H", *(numbers.randrange(vocab) for _ in range(count)))
    path = machine.scratch / f"tokens{vocab}"
    path.write_bytes(struct.pack("<3i", 20240520, 1, count).ljust(1024, b"\0") + tokens)
    return path


def config_of(machine, model, steps, limit):
    return {"version": 1, "model": {"layers": model.layers()},
            "train": {"steps": steps, "micro_batch": model.samples, "seq_len": model.seq_len, "seed": 5, "clip_norm": 1.0,
                      "data": str(tokens_file(machine, model.vocab)), "precision": {"compute": "bf16"},
                      "optimizer": {"type": "adamw", "lr": 6e-4, "betas": [0.9, 0.95], "weight_decay": 0.1},
                      "checkpoint": {"at_end": False}},
            "plan": {"planner": "all-dp"},
            "cluster": {"ranks": 1, "memory_limit": limit,
                        "device": {"type": "cuda", "flops": {"bf16": "600T", "f32": "50T"}, "memory_bandwidth": "3TB/s"}}}


def weft_steps(machine, model, steps):
    """Trains with Weft; returns its figures, with the seconds from the command to the end of step 1."""
    machine.runs += 1
    path = machine.scratch / f"training{machine.runs}.json"
    path.write_text(json.dumps(config_of(machine, model, steps, "2GiB" if machine.emulated else "78GiB")))
    began, first_s, lines = time.monotonic(), None, []
    for line in machine.lines(machine.weft, "train", path, "--run", f"run{machine.runs}", "--json"):
        lines.append(json.loads(line))
        if first_s is None and lines[-1]["kind"] == "step":
            first_s = time.monotonic() - began
    result, times = lines[-1], [1e-6 * line["step_ns"] for line in lines if line["kind"] == "step"]
    keys = ("planned_bytes", "measured_bytes", "outside_planned_bytes", "outside_measured_bytes")
    return {"ms": statistics.median(times[WARM_STEPS:] or times), "predicted ms": 1e-6 * result["predicted_step_ns"],
            "seconds to step 1": round(first_s, 2), "last loss": result["last_loss"],
            **{key.removesuffix("_bytes").replace("_", " "): result[key] for key in keys}}


def pytorch_steps(machine, python, model, steps):
    code, out, err = machine.run(python, Path(__file__).with_name("pytorch.py"), model.vocab, model.hidden, model.heads,
                                 model.blocks, model.samples, steps, timeout=300, foreign=True)
    if code != 0:
        raise Failure(f"PyTorch ended with exit code {code}", err)
    told = json.loads(out.splitlines()[-1])
    return {"ms": statistics.median(told["ms"]), "with": told["with"], "seconds to step 1": told["start_s"]}


def llmc_steps(machine, program, model, steps):
    """Trains the same sizes with llm.c's train_gpt2cu, which pads GPT-2's vocabulary to 50,304, and
    recomputes GELU. It divides by -v, the steps between two evaluations."""
    tokens = tokens_file(machine, 50257)
    code, out, err = machine.run(program, "-e", f"d{model.blocks}", "-i", tokens, "-j", tokens, "-b", model.samples,
                                 "-t", model.seq_len, "-d", model.samples * model.seq_len, "-x", WARM_STEPS + steps,
                                 "-v", NEVER, "-m", 1, "-s", 0, "-l", 6e-4, "-c", 0.1, timeout=300)
    times = [float(ms) for ms in re.findall(r"^step .*\| ([\d.]+) ms \|", out, re.M)]
    if code != 0 or len(times) != WARM_STEPS + steps:
        raise Failure(f"llm.c ended with exit code {code} after {len(times)} steps", out + err)
    return {"ms": statistics.median(times[WARM_STEPS:])}


def peak_of(gpu):
    """The peak of the GPU of doctor's text, which also names other GPUs; None: not known."""
    own = gpu.split(", compute capability")[0]
    return next((peak for name, peak in PEAKS.items() if name in own), None)


def training(machine, notes):
    """Times steps of GPT-2 in bf16, with --pytorch and --llmc next to PyTorch's and llm.c's."""
    models = TINY if notes.emulated else SMALL if notes.quick else SMALL + LARGE
    steps = 2 if notes.emulated else WARM_STEPS + STEPS
    figures = {}
    for model in models:
        try:
            weft = weft_steps(machine, model, steps)
            tokens, peak = model.samples * model.seq_len, peak_of(notes.gpu)
            weft["tokens/s"] = round(1e3 * tokens / weft["ms"])
            weft["share of the peak"] = round(1e3 * model.flops() / weft["ms"] / peak, 3) if peak else "-"
            figures[model.name] = weft
            if notes.pytorch:
                figures[f"{model.name}, PyTorch"] = theirs = pytorch_steps(machine, notes.pytorch, model, STEPS)
                weft["of PyTorch's rate"] = round(theirs["ms"] / weft["ms"], 3)
            if notes.llmc:
                figures[f"{model.name}, llm.c"] = theirs = llmc_steps(machine, notes.llmc, model, STEPS)
                weft["of llm.c's rate"] = round(theirs["ms"] / weft["ms"], 3)
        except Failure as failure:
            notes.fail(f"{model.name}: {failure}", failure.log)
    if not notes.pytorch:
        notes.skip("PyTorch's steps next to Weft's", "no --pytorch")
    if not notes.llmc:
        notes.skip("llm.c's steps next to Weft's", "no --llmc")
    return figures
