# SPDX-License-Identifier: Apache-2.0
"""The sections of bench/gpu/run, in order. A section takes a machine and the notes, and returns a dictionary of
figures. It notes failures and the checks that it could not exercise.
"""
import json
import os
import re
import signal
import time
from pathlib import Path

from machine import DOUBLE, ROOT, Failure, tap
from models import LAYERS, MAPS
from profiled import offload, profile
from training import training

# bits/runs.json stores the fingerprints, losses and norms of 20 steps in f32 with plain products.
STEPS = 20
STORED = {
    "adamw": {"planner": "all-dp"},
    "fsdp": {"planner": "all-fsdp"},
    "lamb": {"optimizer": {"type": "lamb", "lr": 1e-2}},
    "accumulated": {"planner": "all-sdp", "grad_accum": 2, "reduce": "micro_step",
                    "optimizer": {"type": "sgd", "lr": 1e-2}},
    "maps": {"layers": MAPS, "planner": "all-fsdp"},
    "away": {"planner": "all-fsdp", "away": ("state", "activations")},
    "2 ranks": {"ranks": 2, "planner": "all-fsdp", "blocks": 3},
    "host update": {"planner": "all-fsdp", "away": ("update", "activations")},
    "disk": {"planner": "all-fsdp", "away": ("disk", "activations")},
}


def doctor(machine, notes):
    """Reads the machine's facts. Without a GPU and its libraries the other sections do not run."""
    code, out, err = machine.run(machine.weft, "doctor", "--json")
    try:
        facts = json.loads(out)
    except ValueError:
        raise Failure(f"weft doctor ended with exit code {code}", err) from None
    notes.facts = {name: fact["text"] for name, fact in facts.items()}
    notes.gpu = notes.facts["cuda"]
    notes.ready = facts["cuda"]["state"] == "ok"
    if not notes.ready:
        raise Failure(notes.gpu)
    notes.emulated = DOUBLE in notes.gpu
    notes.gpus = int(re.search(r"GPU \d+ of (\d+)", notes.gpu)[1])
    smi = None if notes.emulated else machine.tool("nvidia-smi")
    if smi:
        query = "name,uuid,driver_version,vbios_version,compute_mode,ecc.mode.current,mig.mode.current,clocks.max.sm"
        code, out, err = machine.run(smi, f"--query-gpu={query}", "--format=csv")
        notes.facts["nvidia-smi"] = out if code == 0 else err
    else:
        notes.skip("nvidia-smi's facts (driver, MIG, clocks)", "emulated" if notes.emulated else "it was not found")
    return {"cuda": notes.gpu}


def kernel_programs(machine, notes):
    """Returns the programs with nvcc's kernels by name; each set of stored bits has one."""
    folder = machine.build / "tests/emulation/nn"
    found = {path.stem: folder / f"gpu-{path.stem}" for path in sorted((ROOT / "bench/gpu/bits").glob("*.txt"))}
    for kernel in [kernel for kernel, path in found.items() if not path.exists()]:
        notes.fail(f"kernels of {kernel}: no program {found.pop(kernel)}", "")
    return found


def kernels(machine, notes):
    """Runs the emulated tests' cases with nvcc's kernels."""
    figures = {"against stored bits": 0, "against numbers alone": 0}
    for kernel, program in kernel_programs(machine, notes).items():
        began = time.monotonic()
        code, out, err = machine.run(program, "--bits", notes.bits / f"{kernel}.txt")
        good, failed = tap(out)
        for name in failed:
            notes.fail(f"kernels of {kernel}: {name}", out)
        if code != 0 and not failed:
            notes.fail(f"kernels of {kernel}: exit code {code}", out + err)
        figures["against stored bits"] += sum(name.endswith("(stored bits)") for name in good)
        figures["against numbers alone"] += sum(name.endswith("(numbers alone)") for name in good)
        worst = re.search(r"worst error is ([\d.]+) of its bound", out)
        figures[kernel] = {"cases": len(good), "failed": len(failed), "seconds": round(time.monotonic() - began, 2),
                           **({"worst error / bound": float(worst[1])} if worst else {})}
    return figures


SANITIZERS = ("memcheck", "racecheck", "initcheck", "synccheck")
FOUND = 99  # compute-sanitizer's exit code for a finding


def sanitized(machine, notes):
    """Runs the same cases under NVIDIA's compute-sanitizer. Operands are in pinned host memory, whose first reads
    initcheck does not follow. So initcheck covers only shared memory and the kernels' own memory.
    """
    tool = machine.sanitizer()
    if notes.quick or tool is None:
        notes.skip("the same cases under compute-sanitizer",
                   "compute-sanitizer was not found" if tool is None else "--quick")
        return {}
    figures = {}
    programs = kernel_programs(machine, notes)
    for check in SANITIZERS:
        clean = 0
        for kernel, program in programs.items():
            code, out, err = machine.run(tool, "--tool", check, "--error-exitcode", FOUND, program, timeout=600)
            clean += code == 0
            if code != 0:
                what = f"{check} finds something" if code == FOUND else f"exit code {code} under {check}"
                notes.fail(f"kernels of {kernel}: {what}", out + err)
        figures[check] = f"{clean} of {len(programs)} programs clean"
    return figures


def told(machine, notes, program, words):
    """Returns the JSON lines that a program of bench/gpu prints."""
    path = machine.build / "bench/gpu" / program
    if not path.exists():
        notes.skip(program, "the build found no header for it")
        return []
    code, out, err = machine.run(path, *(["--small"] if notes.emulated else []), *words, timeout=600)
    if code != 0:
        notes.fail(f"{program}: exit code {code}", err + out)
    return [json.loads(line) for line in out.splitlines() if line.startswith("{")]


def products(machine, notes):
    """Runs gpu-products on a GPT. Its exit code reports a wrong product or other bits in a repetition."""
    lines = told(machine, notes, "gpu-products", ["bf16"] if notes.quick and not notes.emulated else [])
    figures = {line["product"]: {key: value for key, value in line.items() if key != "product"}
               for line in lines if "product" in line}
    own = [name for name, line in figures.items() if line["way"] == "own"]
    if own:
        notes.fail(f"{len(own)} products have no way of the library's that is right", "\n".join(own))
    return figures


def times(machine, notes):
    """Times kernels at the size of a training step, with the lower bounds of their bytes and flops. Proves attention by own
    kernels and by cuDNN, whose unordered backward shows the price of order and need not repeat its bits."""
    figures = {}
    for line in told(machine, notes, "gpu-times", []):
        way = line.pop("attention", None)
        if "skipped" in line:
            notes.skip("attention by cuDNN", line["skipped"])
            continue
        if line.get("fault") and way != "unordered":
            notes.fail(f"attention by {way}: {line['fault']}", "")
        figures[f"attention by {way}" if way else line.pop("kernel", "machine")] = line
    return figures


# Two processes on one GPU. NCCL is told that they are two hosts, so it can only use sockets.
ONE_GPU = {"WEFT_NCCL_ONE_GPU": "1", "CUDA_VISIBLE_DEVICES": "0", "WEFT_DOUBLE_GPUS": "1", "NCCL_NET": "Socket",
           "NCCL_SOCKET_IFNAME": "lo", "NCCL_IB_DISABLE": "1", "NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1",
           "NCCL_NVLS_ENABLE": "0", "NCCL_CUMEM_ENABLE": "0", "NCCL_MAX_CTAS": "2"}


def one_gpu(machine, notes):
    """Runs two ranks on one GPU by NCCL over sockets. Every policy must give the stored bits; speed is not measured."""
    stored = json.loads((notes.bits / "runs.json").read_text()).get("2 ranks")
    if stored is None:
        notes.fail("nothing is stored of a run of 2 ranks", "")
        return {}
    figures = {}
    for planner in ("all-fsdp", "all-dp"):
        got = machine.train(steps=STEPS, env=ONE_GPU, ranks=2, planner=planner, blocks=3)
        found = differences(got, stored)
        if found:
            notes.fail(f"2 ranks on one GPU, {planner}: {'; '.join(found)}", json.dumps(got["losses"]))
        figures[planner] = {"as stored": not found, "seconds": got["seconds"]}
    return figures


def differences(got, wanted):
    """Lists the differences of two runs. The shown loss sums CUDA's logarithms, so its last bits may differ."""
    found = []
    if got["fingerprint"] != wanted["fingerprint"]:
        found.append(f"fingerprint {got['fingerprint']}, not {wanted['fingerprint']}")
    for step, (a, b) in enumerate(zip(got["norms"], wanted["norms"]), 1):
        if a != b:
            found.append(f"norm of step {step}: {a!r}, not {b!r}")
            break
    for step, (a, b) in enumerate(zip(got["losses"], wanted["losses"]), 1):
        if not abs(a - b) <= 1e-9 * abs(b):
            found.append(f"loss of step {step}: {a!r}, not {b!r}")
            break
    if len(got["losses"]) != len(wanted["losses"]):
        found.append(f"{len(got['losses'])} steps, not {len(wanted['losses'])}")
    return found


def fingerprints(machine, notes):
    stored = json.loads((notes.bits / "runs.json").read_text())
    figures = {}
    for name, what in STORED.items():
        if name not in stored:
            notes.fail(f"run {name}: nothing is stored of it", "")
            continue
        if what.get("ranks", 1) > notes.gpus:
            notes.skip(f"{what['ranks']} ranks over NCCL, each on its own GPU", f"GPUs here: {notes.gpus}")
            continue
        try:
            got = machine.train(steps=STEPS, **what)
        except Failure as failure:
            notes.fail(f"run {name}: {failure}", failure.log)
            continue
        found = differences(got, stored[name])
        if found:
            notes.fail(f"run {name}: {'; '.join(found)}", json.dumps(got["losses"]))
        figures[name] = {"fingerprint": got["fingerprint"], "as stored": not found,
                         "losses with stored bits": sum(a == b for a, b in zip(got["losses"],
                                                                               stored[name]["losses"])),
                         "seconds": got["seconds"]}
    return figures


def determinism(machine, notes):
    """Checks that no policy and no repetition changes a bit with Weft's own kernels, in every dtype."""
    figures = {}
    for dtype in ("f32", "bf16", "f16"):
        runs = [machine.train(gemm="own", dtype=dtype, planner=planner, steps=STEPS if not notes.emulated else 3)
                for planner in ("all-dp", "all-fsdp", "all-sdp", "all-zero1") * (1 if notes.quick else 3)]
        prints = {run["fingerprint"] for run in runs}
        if len(prints) > 1:
            notes.fail(f"{dtype}: {len(prints)} fingerprints in {len(runs)} runs", " ".join(sorted(prints)))
        figures[dtype] = {"runs": len(runs), "fingerprints": len(prints), "last loss": runs[0]["losses"][-1]}
    return figures


def memory(machine, notes):
    """Checks that the contents of memory that the plan calls dead do not matter."""
    plain = machine.train(planner="all-fsdp", steps=5)
    poisoned = machine.train(planner="all-fsdp", steps=5, flags=["--poison"])
    if poisoned["fingerprint"] != plain["fingerprint"]:
        notes.fail("a run whose dead memory is poisoned has other bits",
                   f"{poisoned['fingerprint']}, not {plain['fingerprint']}")
    result = plain["result"]
    return {"arena touched": result["touched_bytes"], "planned": result["planned_bytes"],
            "measured outside the arena": result["outside_measured_bytes"],
            "planned outside the arena": result["outside_planned_bytes"],
            "poisoned has the same bits": poisoned["fingerprint"] == plain["fingerprint"]}


def killed_rank(machine, notes):
    """Checks that the death of a rank ends the run."""
    del notes
    path = machine.config(steps=100000)
    process = machine.start(machine.weft, "train", path, "--run", "killed", "--json", env={"WEFT_GEMM": "plain"})
    try:
        for line in process.stdout:
            if '"kind": "step"' in line:
                break
        ranks = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        if not ranks:
            raise Failure("the run has no rank to kill", "")
        began = time.monotonic()
        os.kill(int(ranks[0]), signal.SIGKILL)
        err = process.communicate(timeout=60)[1]
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    if process.returncode != 69:
        raise Failure(f"exit code {process.returncode}, not 69", err)
    return f"{time.monotonic() - began:.1f} s until exit code 69"


def out_of_memory(machine, notes):
    """Checks that a plan for more memory than any GPU has fails at allocation."""
    del notes
    wide = {"name": "wide.{i}", "type": "linear", "repeat": 24, "hidden": 32768, "outputs": 32768, "bias": False}
    layers = [dict(LAYERS[0], hidden=32768), wide, dict(LAYERS[-1], hidden=32768)]
    path = machine.config(layers=layers)
    return machine.fails(71, "memory", machine.weft, "train", path, "--run", "too-much",
                         "--memory-limit", "2000GiB", env={"WEFT_GEMM": "plain"})


def no_gpu(machine, notes):
    del notes
    path = machine.config()
    return machine.fails(1, "GPU", machine.weft, "train", path, "--run", "none",
                         env={"CUDA_VISIBLE_DEVICES": "", "WEFT_DOUBLE_GPUS": "0"})


def more_ranks_than_gpus(machine, notes):
    path = machine.config(ranks=notes.gpus + 1)
    return machine.fails(1, "GPU", machine.weft, "train", path, "--run", "many")


def faults(machine, notes):
    figures = {}
    for fault in (killed_rank, out_of_memory, no_gpu, more_ranks_than_gpus):
        name = fault.__name__.replace("_", " ")
        try:
            figures[name] = fault(machine, notes)
        except Failure as failure:
            notes.fail(f"{name}: {failure}", failure.log)
        except Exception as error:  # pylint: disable=broad-except
            notes.fail(f"{name}: {type(error).__name__}: {error}", "")
    notes.skip("work that does not end (time-out)", "nothing here makes a GPU hang")
    notes.skip("errors of ECC, Xid", "nothing here causes them")
    return figures


SECTIONS = {"doctor": doctor, "kernels": kernels, "sanitizer": sanitized, "products": products,
            "fingerprints": fingerprints, "determinism": determinism, "one GPU": one_gpu, "faults": faults,
            "memory": memory, "times": times, "training": training, "profile": profile, "offload": offload}

# Seconds that a section takes on an H100, at most.
SECONDS = {"doctor": 1, "kernels": 12, "sanitizer": 300, "products": 20, "fingerprints": 5, "determinism": 60, "one GPU": 40,
           "faults": 30, "memory": 10, "times": 8, "training": 30, "profile": 35, "offload": 90}

# Checks that no section makes on any machine.
NEVER = {
    "peer access and NVLink": "no section looks at them yet",
    "loopback": "there is no communicator of virtual ranks yet",
}
