#!/usr/bin/env python3
"""Every place of the module "cuda" that calls CUDA, NCCL or cuBLASLt fails once, on one rank of a run of one layer and
two steps, with state and what the layer saved in the host's memory, with codes that the function's documentation names:
the run ends in time, with the exit code that belongs to the code, says which rank it was and of which library, and
leaves neither a process nor anything of the GPU's behind.

    sites.py WEFT MODULE DOUBLES [--all]

Places are those that the same run comes to when nothing fails. --all takes them all, each code also as one that lasts,
told at once or by the next call; without it some calls fail once, by a fresh seed, or by the environment's
WEFT_TEST_SEED."""
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
LATER = (ADDRESS, LAUNCH, UNKNOWN)  # of work that was issued before: every call may return them
CODES = {
    "cudaGetDeviceCount": (DRIVER, NO_DEVICE), "cudaSetDevice": (BUSY, VALUE, *LATER), "cudaMalloc": (VALUE, MEMORY, *LATER),
    "cudaHostAlloc": (VALUE, MEMORY, *LATER), "cudaHostRegister": (VALUE, MEMORY, UNSUPPORTED, *LATER),
    "cudaStreamCreateWithPriority": (VALUE, MEMORY, *LATER),
    "cudaEventCreateWithFlags": (VALUE, MEMORY, *LATER), "cudaLaunchKernel": (98, 209, 701, *LATER),
    "cuMemAddressReserve": (VALUE, MEMORY, 3), "cuMemCreate": (VALUE, MEMORY, UNSUPPORTED),
    "cuMemMap": (VALUE, MEMORY, 101), "cuMemSetAccess": (VALUE, 101), "cuMemGetAllocationGranularity": (VALUE, 101),
}
OF_NCCL, OF_CUBLAS = (1, 2, 3, 4, 5, 6), (1, 7, 8, 13, 14, 15)
# A failure of what frees or parts, behind the last step, need not end a run, nor of what only asks.
MAY_GO_ON = re.compile("Free|Unmap|Unregister|Release|Destroy|Abort|Finalize|cudaEventElapsedTime|CapGetAttribute|"
                       "ConfigGetAttribute|AlgoGetHeuristic|AlgoCheck|Preference")
ENVIRONMENT, SYSTEM, LOST, HANG, DISAGREE, INTERNAL = 1, 71, 69, 80, 76, 70
# Another way is chosen for a product at the start, or Weft's own, and a warning says so; the library's attributes are
# set anew for each.
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
    """Exit code, what it says, seconds."""
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
    """(function, place) by rank, of the module's own calls."""
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
    """The function of the module that a place is in."""
    at = int(place, 16)
    return next((name for address, name in reversed(symbols) if address <= at), "?")


def symbols_of():
    told = subprocess.run(["nm", "-n", MODULE], capture_output=True, text=True).stdout
    return [(int(line.split()[0], 16), line.split()[2]) for line in told.splitlines() if re.match(r"\w+ [tT] ", line)]


def wrong_with(function, fault, rank, code, err, seconds):
    """What is not as promised, or None."""
    if "double: " in err:
        return "the double found something"
    if seconds > TIMEOUT_S + MARGIN_S:
        return f"it took {seconds:.1f} s"
    if code == 0:
        if MAY_GO_ON.search(function) or OWN.search(err):
            return None
        return None if function == "cublasLtMatmulDescSetAttribute" else "nobody noticed"
    # NCCL tells of a mistake of its caller's, or of its own.
    if code not in (ENVIRONMENT, SYSTEM, LOST, HANG, DISAGREE) and not (code == INTERNAL and fault in (3, 4, 5)):
        return f"exit code {code}"
    if code == HANG:
        return "it waited for the time"
    said = [line for line in err.splitlines() if line.startswith("weft: ") and "warning" not in line]
    if not said:
        return "no message"
    # NCCL's 6 is that another rank is lost, and so is told as the other rank tells of this one: either may be heard.
    either = function.startswith("nccl") and fault == 6 and code == LOST
    if not either and not re.search("CUDA|NCCL|cuBLAS|cublas|product|GPU", err):
        return "no message names a library"
    if f"rank {rank}" not in err:
        return "no message names the rank"
    if function == "cudaMalloc" and fault == MEMORY and code != SYSTEM:
        return f"exit code {code} where memory is short"
    return None


def may_be(function, code, how):
    """A GPU that has failed has no work under way: to be told so once, and then again that all is well, is nothing that
    a query does."""
    later = code in LATER and function.startswith("cu")
    return later if how else not (later and function.endswith("Query"))


def attempts_of(weft):
    """(rank, function, place, code, how), all or some."""
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
