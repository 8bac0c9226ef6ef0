#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/gpu/run over the doubles of CUDA's libraries: quick.py RUN BUILD"""
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "cli"))
from tap import Skip, case, main  # noqa: E402

RUN, BUILD = (os.path.abspath(path) for path in sys.argv[1:3])
BITS = Path(RUN).parent / "bits"


def bench(weft, *words, env=None):
    """Runs bench/gpu/run; returns exit code, report, stdout and stderr."""
    done = subprocess.run([RUN, "--quick", "--build", BUILD, "-o", weft.path("out"), *words], capture_output=True,
                          text=True, env={**os.environ, **(env or {})}, check=False)
    return done.returncode, json.loads(Path(weft.path("out.json")).read_text()), done.stdout, done.stderr


@case
def all_is_as_promised_and_said_to_be_emulated(weft):
    code, report, page, err = bench(weft, "--emulated")
    assert code == 0 and not report["failures"], f"{report['failures']}{err}"
    assert report["emulated"] is True and "EMULATED" in page, page
    wanted = ["doctor", "kernels", "sanitizer", "products", "fingerprints", "determinism", "one GPU", "faults", "memory",
              "times", "training", "profile", "offload"]
    assert [name for name, section in report["sections"].items() if section["ok"]] == wanted, report["sections"]
    kernels = report["sections"]["kernels"]["figures"]
    assert kernels["against stored bits"] >= 61 and kernels["against numbers alone"] >= 13, kernels
    prints = report["sections"]["fingerprints"]["figures"]
    assert len(prints) == 9 and all(run["as stored"] for run in prints.values()), prints
    assert len(report["sections"]["faults"]["figures"]) == 4, report["sections"]["faults"]
    products = report["sections"]["products"]["figures"]
    assert len(products) >= 40 and all(one["right"] and one["repeats"] for one in products.values()), products
    gelu = products["bf16 bf16 nt 24 192 48 bias+gelu"]
    assert gelu["way"] == "library" and gelu["reduction"] == "none" and 0 < gelu["worst error / bound"] <= 1, gelu
    # Reads 24 x 48 and 48 x 192, writes 24 x 192 twice, of 2 bytes each, at 1,555 GB/s.
    assert abs(gelu["bound us"] - 2 * (24 * 48 + 48 * 192 + 2 * 24 * 192) / 1555.2e3) < 1e-3, gelu
    times = report["sections"]["times"]["figures"]
    assert len(times) == 22 and abs(times["copy"]["bound us"] - 8 * 8192 / 1555.2e3) < 1e-3, times
    tiny = report["sections"]["training"]["figures"]["tiny"]
    assert tiny["ms"] > 0 and tiny["seconds to step 1"] > 0 and tiny["share of the peak"] == "-", tiny
    tiny = report["sections"]["profile"]["figures"]["tiny"]
    assert tiny["predicted ms"] > 0 and 0 < tiny["measured"] <= tiny["planned"], tiny
    away = report["sections"]["offload"]["figures"]["tiny, offloaded"]
    assert away["the same bits"] and away["lanes ms"]["down"] > 0 and away["lanes ms"]["compute"] > 0, away
    assert report["sections"]["one GPU"]["figures"]["all-dp"]["as stored"], report["sections"]["one GPU"]
    unseen = [one["what"] for one in report["not_exercised"]]
    assert any("NVLink" in what for what in unseen) and any("sanitizer" in what for what in unseen), unseen
    assert Path(weft.path("out.txt")).read_text() in page and report["machine"]["gpu"] in page, page


@case
def it_goes_on_after_a_failure_and_keeps_its_log(weft):
    bits = Path(weft.path("bits"))
    shutil.copytree(BITS, bits)
    stored = bits / "pool.txt"
    stored.write_text(stored.read_text().replace("means", "other means"))
    maps = json.loads((bits / "runs.json").read_text())["maps"]
    maps["norms"][7] *= 2
    (bits / "runs.json").write_text(json.dumps({"maps": maps}))
    code, report, page, _ = bench(weft, "--emulated", "--bits", str(bits), "--only", "kernels,fingerprints,memory")
    assert code == 70, code
    failures = report["failures"]
    assert [one["section"] for one in failures] == ["kernels"] + 9 * ["fingerprints"], failures
    assert "no bits of this case" in failures[0]["log"] and "norm of step 8" in str(failures), failures
    assert all("nothing is stored" in one["what"] for one in failures[1:] if "maps" not in one["what"]), failures
    assert report["sections"]["memory"]["ok"] and "10 failures" in page, page


@case
def products_that_differ_from_run_to_run_are_told(weft):
    code, report, _, _ = bench(weft, "--emulated", "--only", "products", env={"WEFT_DOUBLE_LT": "unsteady"})
    assert code == 70 and "other bits when it is repeated" in report["failures"][0]["log"], report["failures"]
    code, report, _, _ = bench(weft, "--emulated", "--only", "products", env={"WEFT_DOUBLE_LT": "wrong"})
    assert code == 70 and "no way of the library's" in report["failures"][0]["what"], report["failures"]


LLMC = """#!/bin/sh
for i in $(seq 1 COUNT); do
    echo "step    $i/COUNT | loss 11.0 (+nanz)| norm 9.8 (+nanz)| lr 6.00e-04 | $i.50 ms | 44.5% bf16 MFU | 1 tok/s"
done
"""


@case
def llm_c_runs_next_to_weft(weft):
    program = Path(weft.path("train_gpt2cu"))
    program.write_text(LLMC.replace("COUNT", "5"))
    program.chmod(0o755)
    words = ("--emulated", "--only", "training", "--llmc", str(program))
    code, report, _, _ = bench(weft, *words)
    assert code == 70 and "after 5 steps" in report["failures"][0]["what"], report["failures"]
    program.write_text(LLMC.replace("COUNT", "25"))
    code, report, _, _ = bench(weft, *words)
    figures = report["sections"]["training"]["figures"]
    assert code == 0 and figures["tiny, llm.c"] == {"ms": 16.0}, figures
    assert figures["tiny"]["of llm.c's rate"] == round(16 / figures["tiny"]["ms"], 3), figures


@case
def what_a_sanitizer_finds_is_told(weft):
    """The substitute for compute-sanitizer runs its program as memcheck, and reports a finding for one as racecheck."""
    tool = Path(weft.path("sanitizer"))
    tool.write_text('#!/bin/sh\n[ "$1 $3" = "--tool --error-exitcode" ] || exit 2\n'
                    'case "$2 $5" in "racecheck "*gpu-pool) exit $4;; memcheck*) ;; *) exit 0;; esac\nshift 4\nexec "$@"\n')
    tool.chmod(0o755)
    done = subprocess.run([RUN, "--build", BUILD, "-o", weft.path("out"), "--emulated", "--only", "sanitizer"],
                          capture_output=True, text=True, check=False,
                          env={**os.environ, "WEFT_COMPUTE_SANITIZER": str(tool)})
    report = json.loads(Path(weft.path("out.json")).read_text())
    assert done.returncode == 70, done.stderr
    assert [one["what"] for one in report["failures"]] == ["kernels of pool: racecheck finds something"], report
    figures = report["sections"]["sanitizer"]["figures"]
    n = len(list(BITS.glob("*.txt")))
    assert figures["memcheck"] == f"{n} of {n} programs clean", figures


@case
def without_a_gpu_it_says_what_is_missing(weft):
    code, report, _, err = bench(weft, env={"LD_LIBRARY_PATH": ""})  # without the doubles
    if report["machine"]["gpu"].startswith("GPU "):
        raise Skip("this machine has a GPU")
    assert code == 1 and "missing: CUDA: cannot look for GPUs" in err, f"{code} {err}"
    assert list(report["sections"]) == ["doctor"] and not report["emulated"], report["sections"]
    skipped = [one["what"] for one in report["not_exercised"]]
    assert "section kernels" in skipped, skipped


@case
def sections_that_take_longer_than_the_minutes_are_left_out(weft):
    code, report, _, err = bench(weft, "--emulated", "--only", "offload,sanitizer", "--minutes", "0.1")
    assert code == 0 and list(report["sections"]) == ["doctor"], f"{code} {report['sections']} {err}"
    left = {one["what"]: one["why"] for one in report["not_exercised"]}
    assert "it takes about 90 s, and --minutes leaves" in left["section offload"] and "section sanitizer" in left, left


@case
def a_packed_build_runs_from_its_own_folder(weft):
    """The packed run has its programs, libraries, bits and commit. A program that is not there is a failure."""
    to = Path(weft.path("packed"))
    pack = [Path(RUN).with_name("pack"), to, "--build", BUILD]
    done = subprocess.run(pack, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "MiB" in done.stdout, done.stderr
    again = subprocess.run(pack, capture_output=True, text=True, check=False)
    assert again.returncode == 1 and "exists" in again.stderr, again.stderr
    assert (to / "build/scheduler/weft-solve").exists() == (Path(BUILD) / "scheduler/weft-solve").exists()
    doubles = to / "build/tests/emulation/doubles"
    doubles.symlink_to(Path(BUILD) / "tests/emulation/doubles")
    (to / "build/tests/emulation/nn/gpu-attention").unlink()
    done = subprocess.run([to / "bench/gpu/run", "--quick", "--emulated", "-o", weft.path("out"), "--only", "kernels,memory"],
                          capture_output=True, text=True, check=False)
    report = json.loads(Path(weft.path("out.json")).read_text())
    assert done.returncode == 70 and "kernels of attention: no program" in done.stdout, done.stdout + done.stderr
    assert len(report["failures"]) == 1 and report["sections"]["kernels"]["figures"]["pool"]["cases"] > 0, report
    assert report["commit"] == (to / "build/packed").read_text().strip(), report["commit"]


main(sys.argv[1])
