#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sizes and times of report pages: bench/pages.py --build BUILD [--small] [--pictures DIR] [--record]

Pages of a run, of several runs, of a sweep and of a plan with many units. WEFT_CHROMIUM names a headless Chromium: it
looks at each page at 400 and 1,400 pixels, light, dark and as printed (tests/cli/browser.py), and gives the time of the
first paint. --pictures keeps what it sees. --record writes bench/results/pages.json.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests/cli")]
from browser import SCHEMES, WIDTHS, Browser, judge  # noqa: E402
from configs import tiny  # noqa: E402
from results import record  # noqa: E402

MOST_BYTES, ROUNDS = 400_000, 5


def weft(options, *words):
    done = subprocess.run([options.build / "cli/weft", *words], cwd=options.folder, capture_output=True, text=True,
                          env={**os.environ, "WEFT_GEMM": "onednn"}, check=False)
    if done.returncode != 0:
        sys.exit(f"weft {' '.join(map(str, words))}: {done.stderr}")


def write(options, name, config):
    (options.folder / name).write_text(json.dumps(config))
    return name


def deep(n):
    """A config whose model has n blocks, each a unit of its own."""
    config = tiny(plan__planner="fsdp2", plan__fuse=False)
    layers = config["model"]["layers"]
    for layer in layers:
        layer.update({"repeat": n} if layer["type"] == "transformer_block" else {})
    return config


def make_inputs(options):
    """Makes all inputs. Returns {page: its inputs}."""
    runs = [f"run-{number}" for number in range(2 if options.small else 8)]
    for number, run in enumerate(runs):
        config = write(options, "run.json", tiny(train__steps=20, train__seed=number, plan__work_limit="20M"))
        weft(options, "train", config, "--run", run, "-q", "--report", f"{run}/first.html")
    points = 2 if options.small else 50
    weft(options, "sweep", "run.json", "--points", str(points), "--planners", "greedy,all-fsdp", "--json", "-q", "-o",
         "sweep.json")
    units = 20 if options.small else 500
    weft(options, "plan", write(options, "deep.json", deep(units)), "-o", "deep-plan.json", "-q")
    return {"a run": runs[:1], f"{len(runs)} runs": runs, f"a sweep of {2 * points} points": ["sweep.json"],
            f"a plan of {units} blocks": ["deep-plan.json"]}


def take_pictures(browser, page, folder):
    for width in WIDTHS:
        for scheme in SCHEMES:
            browser.look(page, width, scheme, picture=folder / f"{page.stem}-{width}-{scheme}.png")
    browser.look(page, 794, "light", "print", picture=folder / f"{page.stem}-print.png")


def measure(options, browser):
    """Returns the rows of the table, and the largest page."""
    rows, most = [], 0
    for number, (name, inputs) in enumerate(make_inputs(options).items()):
        page, times, paint = options.folder / f"page-{number}.html", [], "-"
        for _ in range(ROUNDS):
            begun = time.monotonic()
            weft(options, "report", *inputs, "-o", page.name, "-q")
            times.append(time.monotonic() - begun)
        if browser:
            paint = f"{statistics.median(judge(browser, page)):.0f} ms"
        if browser and options.pictures:
            take_pictures(browser, page, options.pictures)
        size = page.stat().st_size
        most = max(most, size)
        rows.append([name, f"{size / 1000:.0f} kB", f"{1000 * statistics.median(times):.0f} ms", paint])
        print("  ".join(rows[-1]), flush=True)
    return rows, most


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--small", action="store_true", help="few runs, points and units")
    parser.add_argument("--pictures", type=Path, help="a folder for what the browser sees")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    options.build = options.build.resolve()
    program = os.environ.get("WEFT_CHROMIUM")
    if options.record and (options.small or not program):
        parser.error("--record needs all pages, and WEFT_CHROMIUM")
    if options.pictures:
        options.pictures.mkdir(parents=True, exist_ok=True)
        options.pictures = options.pictures.resolve()
    with tempfile.TemporaryDirectory() as folder:
        options.folder = Path(folder)
        if program:
            with Browser(program) as browser:
                rows, most = measure(options, browser)
        else:
            rows, most = measure(options, None)
    if options.record:
        record("pages", "pages", rows, {"the largest page": (f"{most / 1000:.0f} kB", most < MOST_BYTES)})


if __name__ == "__main__":
    main()
