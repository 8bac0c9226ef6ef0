#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Re-creates every figure that needs ranks: bench/run.sh [BUILD]. Takes twenty minutes. Run nothing else on the machine.
set -eu
cd "$(dirname "$0")/.."
build=${1:-build}
echo "== executor: cost of an instruction" && "$build/bench/exec"
echo "== device: cost of streams and events" && "$build/bench/device"
echo "== communicator, 2 ranks" && "$build/bench/comm" 2
echo "== kernels" && "$build/bench/nn"
scratch=$(mktemp -d)
echo "== checkpoints" && "$build/bench/checkpoint" configs/runs/gpt-10m.json "$scratch/saves" 7
python3 bench/checkpoint.py --weft "$build/cli/weft" --directory "$scratch"
rm -r "$scratch"
python3 bench/figures.py --weft "$build/cli/weft"
