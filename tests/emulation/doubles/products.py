#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whole runs on the device "cuda" with cuBLASLt's products, over doubles: the shipped program and module.

    products.py WEFT MODULE DOUBLES WATCHED [--all]

The double gives each rank another favourite algorithm, and each algorithm another sum. So if bits are the same for
every policy, all ranks compute as rank 0 chose. Losses are near those of plain products.
"""
import itertools
import json
import os
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[at] / folder) for at, folder in ((2, "cli"), (3, "bench/gpu"))]
import models  # noqa: E402
from tap import case, main  # noqa: E402

ALL = "--all" in sys.argv
MODULE, DOUBLES, WATCHED = (os.path.abspath(path) for path in sys.argv[2:5])
NEAR = {"f32": 2e-6, "bf16": 3e-2, "f16": 4e-3}
# Library functions that may fail at the start or in a step, the call's number, its code, and the exit code.
FAILURES = [("cublasLtCreate", 1, 3, 71), ("cublasLtCreate", 1, 1, 1), ("cublasLtMatmul", 70, 13, 71),
            ("cublasLtMatmul", 70, 14, 71), ("cublasLtMatmulDescInit_internal", 200, 7, 71),
            ("cublasLtMatmulDescSetAttribute", 900, 7, 71), ("cublasLtMatrixLayoutInit_internal", 600, 7, 71)]


def environment_of(ranks=1, gemm="cublaslt", doubles=DOUBLES, seed=1, **more):
    return {"WEFT_GEMM": gemm, "WEFT_CUDA_MODULE": MODULE, "LD_LIBRARY_PATH": doubles, "WEFT_DOUBLE_STOP": "1",
            "WEFT_DOUBLE_SEED": str(seed), "WEFT_DOUBLE_GPUS": str(ranks), **more}


def config_of(weft, device="cuda", **what):
    return weft.write("config.json", models.config_of(weft.write("tokens", models.tokens_of(9000, 61)), device, **what))


def run(weft, env, *arguments, says=(), **what):
    """Trains in a new folder; returns the fingerprint, the losses of its steps, and stderr if asked."""
    code, out, err = weft.run("train", config_of(weft, **what), "--run", f"run{len(os.listdir(weft.directory))}",
                              *arguments, "--json", env=env, timeout=300)
    assert code == 0, f"exit {code}: {err}"
    for text in says:
        assert text in err, f"stderr lacks {text!r}:\n{err}"
    lines = [json.loads(line) for line in out.splitlines()]
    return lines[-1]["fingerprint"], [line["loss"] for line in lines if line["kind"] == "step"]


def plainly(weft, **what):
    """Trains with plain products on the CPU, with a GPU's bits in f32 (runs.py)."""
    return run(weft, {"WEFT_GEMM": "plain"}, device="cpu", **what)


def are_near(losses, others, dtype="f32"):
    assert len(losses) == len(others) > 0
    worst = max(abs(a - b) for a, b in zip(losses, others))
    assert worst <= NEAR[dtype], f"losses are {worst} apart"
    return worst


@case
def bits_are_the_same_for_every_policy(weft):
    """Losses are near those of plain products, which have other bits."""
    for ranks, planners in ((2, ["all-dp", "all-fsdp", "all-sdp"]), (3, ["all-fsdp", "greedy"])):
        got = [run(weft, environment_of(ranks), ranks=ranks, planner=planner, steps=6) for planner in planners]
        plain = plainly(weft, ranks=ranks, steps=6)
        assert all(one == got[0] for one in got), got
        assert got[0][0] != plain[0], "these are the bits of plain products"
        print(f"# {ranks} ranks: losses are at most {are_near(got[0][1], plain[1]):.2g} from plain products'")
    for ranks, planner, blocks in itertools.product((2, 3, 4), ("all-dp", "all-fsdp", "ilp"), (1, 5)) if ALL else ():
        same = [run(weft, environment_of(ranks), ranks=ranks, planner=one, blocks=blocks, steps=20)
                for one in ("all-zero1", planner)]
        assert same[0] == same[1], (ranks, planner, blocks)


@case
def another_favourite_of_rank_0_gives_other_bits(weft):
    """Otherwise equal bits would prove nothing."""
    assert run(weft, environment_of(seed=1), steps=1) != run(weft, environment_of(seed=2), steps=1)


@case
def so_in_16_bits_and_with_gradients_that_are_added(weft):
    for dtype in ("bf16", "f16") if ALL else ("bf16",):
        what = {"dtype": dtype, "ranks": 2, "steps": 2}
        got = [run(weft, environment_of(2), planner=planner, **what) for planner in ("all-dp", "all-fsdp")]
        assert got[0] == got[1], got
        are_near(got[0][1], run(weft, environment_of(2, "own"), **what)[1], dtype)
    what = {"ranks": 2, "grad_accum": 3, "reduce": "micro_step", "layers": models.MAPS}
    got = [run(weft, environment_of(2), planner=planner, **what) for planner in ("all-fsdp", "all-sdp")]
    assert got[0] == got[1], got
    are_near(got[0][1], plainly(weft, planner="all-sdp", **what)[1])


@case
def every_use_of_memory_is_ordered(weft):
    run(weft, environment_of(2, doubles=WATCHED, seed=2), ranks=2, planner="all-fsdp", steps=2, grad_accum=2)


@case
def what_is_wrong_is_not_trusted(weft):
    own, plain = run(weft, environment_of(gemm="own"), steps=2), plainly(weft, steps=2)
    # All products are our own.
    wrong = run(weft, environment_of(WEFT_DOUBLE_LT="wrong"), steps=2, says=["is wrong here", "has no way that is right for"])
    none = run(weft, environment_of(WEFT_DOUBLE_LT="none"), steps=2, says=["has no way that is right for"])
    assert wrong == none == own, (wrong, none, own)
    # Only GELU is our own, after the library's product.
    coarse = run(weft, environment_of(WEFT_DOUBLE_LT="coarse"), steps=2, says=["is wrong here: GELU of element"])
    assert coarse[0] not in (own[0], plain[0])
    are_near(coarse[1], plain[1])


@case
def a_rank_that_cannot_compute_so_is_refused(weft):
    config = config_of(weft, ranks=2)
    for like, text in (("refuses:1", "cannot compute a product in the way that rank 0 chose: CUBLAS_STATUS_NOT_SUPPORTED"),
                       ("other:1", "rank 0's products are by cublaslt")):
        weft.expect(76, "train", config, "--run", like[:5], env=environment_of(2, WEFT_DOUBLE_LT=like), says=[text])


@case
def without_the_library_products_are_our_own(weft):
    """The library is not named."""
    own = run(weft, environment_of(gemm="own"), steps=1)
    for like, text in (("absent", "CUBLAS_STATUS_NOT_INITIALIZED"), ("old", "says that it is version")):
        weft.expect(1, "train", config_of(weft), "--run", like, env=environment_of(WEFT_DOUBLE_LT=like), says=[text])
        assert run(weft, environment_of(gemm="auto", WEFT_DOUBLE_LT=like), steps=1) == own
    assert run(weft, environment_of(gemm="auto"), steps=1) == run(weft, environment_of(), steps=1)


@case
def a_checkpoint_keeps_what_was_chosen(weft):
    what = {"ranks": 2, "planner": "all-fsdp", "steps": 6, "checkpoint": {"every": 3, "keep": 2}}
    before = set(os.listdir(weft.directory))
    wanted = run(weft, environment_of(2), **what)[0]
    folder = next(name for name in set(os.listdir(weft.directory)) - before if name.startswith("run"))
    saved = weft.path(f"{folder}/checkpoints")
    third = f"{saved}/" + next(entry for entry in sorted(os.listdir(saved)) if entry.endswith("3"))
    products = json.loads(Path(third, "manifest.json").read_text())["products"].splitlines()
    assert products[0].startswith("cublaslt ") and len(products) > 10, products
    # Rank 0 has another favourite now.
    assert run(weft, environment_of(2, seed=2), f"--resume={third}", **what)[0] == wanted
    # Another version cannot have the same bits, and the run says so.
    other = environment_of(2, WEFT_DOUBLE_LT="other:0,other:1")
    run(weft, other, f"--resume={third}", says=["not the same bits"], **what)


@case
def codes_of_the_library_end_a_run(weft):
    config = config_of(weft)
    for function, n, code, expected in FAILURES:
        weft.expect(expected, "train", config, "--run", f"run{len(os.listdir(weft.directory))}",
                    env=environment_of(WEFT_DOUBLE_FAIL=f"{function}:{n}:{code}"))


main(sys.argv[1])
