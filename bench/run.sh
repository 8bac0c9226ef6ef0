#!/bin/sh
# Re-creates every figure of bench/README.md: bench/run.sh [BUILD]. A quarter of an hour; nothing else
# should run on the machine.
set -eu
cd "$(dirname "$0")/.."
build=${1:-build}
echo "== executor: cost of an instruction" && "$build/bench/exec"
echo "== device: cost of streams and events" && "$build/bench/device"
echo "== communicator, 2 ranks" && "$build/bench/comm" 2
echo "== kernels" && "$build/bench/nn"
python3 bench/figures.py --weft "$build/cli/weft"
