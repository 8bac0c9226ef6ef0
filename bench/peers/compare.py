#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares training steps of Weft and other programs: compare.py [OPTIONS] pytorch|llm.c...

    pytorch   GPT (--model gpt-10m) or Llama (llama-10m) of 10 M parameters, batch 8 x 256, AdamW, clipping; f32
              and bf16.
              --python is an interpreter that has PyTorch (pip install torch);
              --gemm lists Weft's ways to multiply (WEFT_GEMM); the comparison takes the first
    llm.c     GPT-2 of 124 M parameters, batch 4 x 64, AdamW, no clipping; f32.
              --llm.c is its folder, with train_gpt2 built by its Makefile

Everything runs on one thread. The programs take turns, because a machine's speed drifts. The figure of each is the
median of its steps over all rounds. Run nothing else on the machine meanwhile.
"""
import argparse
import array
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
DATA = "/usr/share/common-licenses/GPL-3"


def weft_config(directory, model, precision, batch, seq_len, steps, clip):
    config = {
        "version": 1, "model": str(ROOT / "configs" / "models" / model),
        "cluster": {"ranks": 1, "threads": 1},
        "train": {"steps": steps, "micro_batch": batch, "seq_len": seq_len, "seed": 1,
                  "data": DATA, "precision": {"compute": precision}, "clip_norm": clip,
                  "optimizer": {"type": "adamw", "lr": 1e-3, "betas": [0.9, 0.95],
                                "weight_decay": 0.1},
                  "checkpoint": {"at_end": False}},
        "plan": {"planner": "all-dp"}}
    path = Path(directory) / f"{precision}.json"
    path.write_text(json.dumps(config))
    return path


def weft_steps(program, config, directory, gemm=None):
    """Returns the milliseconds of a run's steps, without the first. Each run has a directory of its own."""
    run = Path(tempfile.mkdtemp(dir=directory)) / "run"
    environment = dict(os.environ, WEFT_GEMM=gemm) if gemm else None
    done = subprocess.run([program, "train", config, "--run", run, "-q"], capture_output=True,
                          text=True, check=False, env=environment)
    if done.returncode != 0:
        sys.exit(f"weft train: exit {done.returncode}\n{done.stderr}")
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [1e-6 * line["step_ns"] for line in lines if "step_ns" in line][1:]


class PyTorch:
    """A process that does as many steps as it is asked for, so that it compiles once."""

    def __init__(self, python, precision, model):
        self.process = subprocess.Popen([python, HERE / "pytorch.py", precision, model], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.description = self.answer()

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit("pytorch.py ended: see above")
        return json.loads(line)

    def steps(self, count):
        self.process.stdin.write(f"{count}\n")
        self.process.stdin.flush()
        return self.answer()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def show(name, milliseconds, weft=None):
    middle = statistics.median(milliseconds)
    print(f"  {name:22} median {middle:8.1f} ms  least {min(milliseconds):8.1f} ms"
          + (f"  {middle / weft:5.2f} x the first" if weft else ""), flush=True)
    return middle


def compare_pytorch(arguments):
    for precision in arguments.precision:
        peer = PyTorch(arguments.python, precision, arguments.model)
        print(f"{arguments.model}, batch 8 x 256, {precision}, one thread; "
              f"{peer.description['with']} ({peer.description['cpu']})")
        times = {}
        with tempfile.TemporaryDirectory() as directory:
            config = weft_config(directory, f"{arguments.model}.json", precision, 8, 256,
                                 arguments.steps + 1, 1.0)
            for _ in range(arguments.rounds):
                for name, found in peer.steps(arguments.steps).items():
                    times.setdefault(name, []).extend(found)
                for gemm in arguments.gemm:
                    times.setdefault(f"Weft {gemm}", []).extend(
                        weft_steps(arguments.weft, config, directory, gemm))
        peer.close()
        first = f"Weft {arguments.gemm[0]}"
        mine = show(first, times.pop(first))
        for gemm in arguments.gemm[1:]:
            show(f"Weft {gemm}", times.pop(f"Weft {gemm}"), mine)
        best = min(show(name, found, mine) for name, found in times.items())
        print(f"  the fastest of PyTorch takes {best / mine:.2f} x the time of {first}")


def write_ints(path, header, code, values):
    with open(path, "wb") as file:
        array.array("i", header + [0] * (256 - len(header))).tofile(file)
        array.array(code, values).tofile(file)


def write_llm_files(directory):
    """Writes a model of GPT-2's shape and tokens for llm.c. Numbers follow a pattern, since time does not depend on
    them. Formats: train_gpt2.c and llmc/dataloader.h of llm.c.
    """
    vocab, padded, layers, heads, width, most = 50257, 50304, 12, 12, 768, 1024
    block = 12 * width * width + 13 * width
    count = padded * width + most * width + layers * block + 2 * width
    pattern = [((i * 7919) % 1009 - 504) / 25200 for i in range(1009)]
    write_ints(directory / "gpt2_124M.bin", [20240326, 3, most, vocab, layers, heads, width, padded],
               "f", pattern * (count // 1009) + pattern[:count % 1009])
    tokens = directory / "dev" / "data" / "tinyshakespeare"
    tokens.mkdir(parents=True)
    for part in ("train", "val"):
        write_ints(tokens / f"tiny_shakespeare_{part}.bin", [20240520, 1, 32768], "H",
                   [i * 31 % vocab for i in range(32768)])


def llm_steps(program, directory, count):
    """Returns the milliseconds of training steps that the program prints. Stops it after `count` steps."""
    process = subprocess.Popen(["stdbuf", "-oL", program], cwd=directory, text=True,
                               stdout=subprocess.PIPE, env=dict(os.environ, OMP_NUM_THREADS="1"))
    found = []
    for line in process.stdout:
        said = re.match(r"step \d+: train loss \S+ \(took (\S+) ms\)", line)
        if said:
            found.append(float(said.group(1)))
        if len(found) > count:
            break
    process.terminate()
    process.wait()
    if len(found) <= count:
        sys.exit(f"{program}: said {len(found)} steps, {count + 1} were wanted")
    return found[1:]


def compare_llm(arguments):
    program = Path(arguments.llm_c).resolve() / "train_gpt2"
    print("GPT-2 of 124 M parameters, batch 4 x 64, f32, one thread; llm.c's train_gpt2 (CPU)")
    mine, theirs = [], []
    with tempfile.TemporaryDirectory() as directory:
        write_llm_files(Path(directory))
        config = weft_config(directory, "gpt2.json", "f32", 4, 64, arguments.steps + 1, 0)
        for _ in range(arguments.rounds):
            mine.extend(weft_steps(arguments.weft, config, directory))
            theirs.extend(llm_steps(program, directory, arguments.steps))
    weft = show("Weft", mine)
    print(f"  llm.c takes {show('llm.c', theirs, weft) / weft:.2f} x Weft's time")


def read_arguments(peers):
    """Reads the arguments. Peers may stand before or after the options; an option with a list takes later peers as its
    own.
    """
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weft", default=str(ROOT / "build" / "cli" / "weft"))
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--model", choices=["gpt-10m", "llama-10m"], default="gpt-10m")
    parser.add_argument("--llm.c", dest="llm_c", default="llm.c")
    parser.add_argument("--precision", nargs="+", choices=["f32", "bf16", *peers],
                        metavar="{f32,bf16}", default=["f32", "bf16"])
    parser.add_argument("--gemm", nargs="+", default=["auto"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=4, help="of each in a round")
    parser.add_argument("peer", nargs="*", metavar="|".join(peers))
    arguments = parser.parse_intermixed_args()
    for option in ("precision", "gemm"):
        words = getattr(arguments, option)
        arguments.peer += [word for word in words if word in peers]
        setattr(arguments, option, [word for word in words if word not in peers])
        if not getattr(arguments, option):
            parser.error(f"--{option}: of what?")
    for name in arguments.peer or [""]:
        if name not in peers:
            parser.error(f"{name or 'nobody'} to compare with: choose from {', '.join(peers)}")
    arguments.weft = os.path.abspath(arguments.weft)
    return arguments


def main():
    peers = {"pytorch": compare_pytorch, "llm.c": compare_llm}
    arguments = read_arguments(peers)
    for name in arguments.peer:
        peers[name](arguments)


if __name__ == "__main__":
    main()
