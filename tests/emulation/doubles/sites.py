#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every place of the module "cuda" that calls CUDA, NCCL or cuBLASLt fails once, with codes from the function's
documentation. The failure is on one rank of a run of one layer and two steps, with state and saved activations on
the host. The run must end in time, with the code's exit code and a message that names rank and library. No process
and no GPU object may be left.

    sites.py WEFT MODULE DOUBLES [--all]

Places are those that the run reaches without a failure. --all tries all of them, also with codes that last, returned
at once or by the next call. Otherwise some calls fail once, by WEFT_TEST_SEED (scripts/check.sh derives it from the tree) or by a fresh seed.
"""
import os
import random
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[at] / folder) for at, folder in ((2, "cli"), (3, "bench/gpu"))]
import models  # noqa: E402
from processes import gone, ranks_of  # noqa: E402
from tap import case, main  # noqa: E402

ALL = "--all" in sys.argv
SEED = int(os.environ.get("WEFT_TEST_SEED") or random.randrange(1 << 30))
MODULE, DOUBLES = (os.path.abspath(path) for path in sys.argv[2:4])
RANKS, TIMEOUT_S, MARGIN_S, SAMPLE = 2, 3, 12, 24
LAYERS = [models.LAYERS[0], {**models.LAYERS[1], "name": "h", "repeat": 1}, models.LAYERS[3]]

# Codes of CUDA: invalid value, out of memory, not initialized, insufficient driver, no device, device in use, not
# supported, illegal address, launch failure, unknown.
VALUE, MEMORY, DRIVER, NO_DEVICE, BUSY, UNSUPPORTED, ADDRESS, LAUNCH, UNKNOWN = 1, 2, 35, 100, 46, 801, 700, 719, 999
LATER = (ADDRESS, LAUNCH, UNKNOWN)  # codes of earlier work: every call may return them
CODES = {
    "cudaGetDeviceCount": (DRIVER, NO_DEVICE), "cudaSetDevice": (BUSY, VALUE, *LATER), "cudaMalloc": (VALUE, MEMORY, *LATER),
    "cudaHostAlloc": (VALUE, MEMORY, *LATER), "cudaHostRegister": (VALUE, MEMORY, UNSUPPORTED, *LATER),
    "cudaStreamCreateWithPriority": (VALUE, MEMORY, *LATER),
    "cudaEventCreateWithFlags": (VALUE, MEMORY, *LATER), "cudaLaunchKernel": (98, 209, 701, *LATER),
    "cuMemAddressReserve": (VALUE, MEMORY, 3), "cuMemCreate": (VALUE, MEMORY, UNSUPPORTED),
    # A query takes a stream or an event that exists, so only earlier work makes it fail.
    "cudaStreamQuery": LATER, "cudaEventQuery": LATER,
    "cuMemMap": (VALUE, MEMORY, 101), "cuMemSetAccess": (VALUE, 101), "cuMemGetAllocationGranularity": (VALUE, 101),
}
OF_NCCL, OF_CUBLAS = (1, 2, 3, 4, 5, 6), (1, 7, 8, 13, 14, 15)
# A failure after the last step in a call that frees or disconnects need not end a run. Nor need one of a query.
MAY_GO_ON = re.compile("Free|Unmap|Unregister|Release|Destroy|Abort|Finalize|cudaEventElapsedTime|CapGetAttribute|"
                       "ConfigGetAttribute|AlgoGetHeuristic|AlgoCheck|Preference")
ENVIRONMENT, SYSTEM, LOST, HANG, DISAGREE, INTERNAL = 1, 71, 69, 80, 76, 70
# At the start another algorithm, or Weft's own, is chosen with a warning. The library's attributes are set anew for
# each product.
OWN = re.compile("has no way that is right for|a product that is tried: |memory to try a product: ")


def codes_of(function):
    if function.startswith("nccl"):
        return OF_NCCL
    if function.startswith("cublas"):
        return OF_CUBLAS
    return CODES.get(function, (VALUE, *LATER))


def environment_of(**more):
    return {"WEFT_GEMM": "cublaslt", "WEFT_CUDA_MODULE": MODULE, "LD_LIBRARY_PATH": DOUBLES, "WEFT_DOUBLE_STOP": "1",
            "WEFT_DOUBLE_SEED": "1", "WEFT_DOUBLE_GPUS": str(RANKS), **more}


def config_of(weft):
    config = models.config_of(weft.write("tokens", models.tokens_of(9000, 61)), "cuda", planner="all-fsdp", steps=2,
                              ranks=RANKS, layers=LAYERS, away=models.MAY_BE_AWAY)
    config["cluster"]["timeout"] = f"{TIMEOUT_S}s"
    return weft.write("config.json", config)


def trained(weft, name, env):
    """Trains; returns exit code, stderr and seconds."""
    since = time.monotonic()
    process = weft.start("train", config_of(weft), "--run", name, "--json", env=env, start_new_session=True)
    pids = ranks_of(process.pid)
    try:
        _, err = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.communicate()
        raise AssertionError("the run hung") from None
    assert gone(pids), "a rank is left"
    return process.returncode, err, time.monotonic() - since


def places_of(weft):
    """Returns the module's own calls by rank, as (function, place)."""
    sites = Path(weft.path("sites"))
    code, err, _ = trained(weft, "whole", environment_of(WEFT_DOUBLE_SITES=str(sites)))
    assert code == 0, f"{code}: {err}"
    found = {str(rank): set() for rank in range(RANKS)}
    for line in sites.read_text().splitlines():
        rank, function, place, file = line.split()
        if Path(file).name == Path(MODULE).name:
            found[rank].add((function, place))
    return found


def where(place, symbols):
    """Returns the module's function that contains a place."""
    at = int(place, 16)
    return next((name for address, name in reversed(symbols) if address <= at), "?")


def symbols_of():
    told = subprocess.run(["nm", "-n", MODULE], capture_output=True, text=True).stdout
    return [(int(line.split()[0], 16), line.split()[2]) for line in told.splitlines() if re.match(r"\w+ [tT] ", line)]


def wrong_with(function, fault, rank, code, err, seconds):
    """Returns a fault of the run's end, or None."""
    if "double: " in err:
        return "the double found something"
    if seconds > TIMEOUT_S + MARGIN_S:
        return f"it took {seconds:.1f} s"
    if code == 0:
        if MAY_GO_ON.search(function) or OWN.search(err):
            return None
        return None if function == "cublasLtMatmulDescSetAttribute" else "nobody noticed"
    # NCCL reports mistakes of its caller, or its own.
    if code not in (ENVIRONMENT, SYSTEM, LOST, HANG, DISAGREE) and not (code == INTERNAL and fault in (3, 4, 5)):
        return f"exit code {code}"
    if code == HANG:
        return "it waited for the time"
    said = [line for line in err.splitlines() if line.startswith("weft: ") and "warning" not in line]
    if not said:
        return "no message"
    # NCCL's code 6 means that another rank is lost. The other rank reports this one in the same way, and either report
    # may come first.
    either = function.startswith("nccl") and fault == 6 and code == LOST
    if not either and not re.search("CUDA|NCCL|cuBLAS|cublas|product|GPU", err):
        return "no message names a library"
    if f"rank {rank}" not in err:
        return "no message names the rank"
    if function == "cudaMalloc" and fault == MEMORY and code != SYSTEM:
        return f"exit code {code} where memory is short"
    return None


def may_be(function, code, how):
    """True if the call may return this code in this way. A failed GPU has no running work, so a query cannot fail once
    and then succeed.
    """
    later = code in LATER and function.startswith("cu")
    return later if how else not (later and function.endswith("Query"))


def attempts_of(weft):
    """Returns (rank, function, place, code, way) of all or some failures."""
    found = places_of(weft)
    attempts = []
    for rank, places in found.items():
        for function, place in sorted(places):
            attempts += [(rank, function, place, code, how) for code in codes_of(function) for how in ("", ":sticky", ":late")
                         if may_be(function, code, how)]
    print(f"# {sum(map(len, found.values()))} places on {RANKS} ranks, {len(attempts)} failures")
    if ALL:
        return attempts
    print(f"# WEFT_TEST_SEED={SEED}")
    return random.Random(SEED).sample([attempt for attempt in attempts if attempt[-1] == ""], SAMPLE)


@case
def every_place_that_calls_a_library_may_fail(weft):
    symbols, codes, wrong = symbols_of(), Counter(), []
    for n, (rank, function, place, fault, how) in enumerate(attempts_of(weft)):
        env = environment_of(WEFT_DOUBLE_FAIL=f"{function}@{place}:1:{fault}{how}", WEFT_DOUBLE_FAIL_RANK=rank)
        name = f"{function} in {where(place, symbols)} ({place}), code {fault}{how}, rank {rank}"
        try:
            code, err, seconds = trained(weft, f"run{n}", env)
            codes[code] += 1
            what = wrong_with(function, fault, rank, code, err, seconds)
        except AssertionError as failure:
            what, err, code = str(failure), "", -1
        if what:
            wrong.append(f"{name}: {what}")
            print(f"# {name}: {what}; exit code {code}\n" + "\n".join(f"#    {line}" for line in err.splitlines()[-4:]),
                  flush=True)
    print(f"# {sum(codes.values())} failures, by exit code: {dict(sorted(codes.items()))}")
    assert not wrong, f"{len(wrong)} are not as promised: {wrong[0]}"


main(sys.argv[1])
