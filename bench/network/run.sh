#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# All figures over namespaces but those of kills: bench/network/run.sh [BUILD]. About a quarter of an hour on an idle machine.
set -eu
cd "$(dirname "$0")/../.."
build=${1:-build}
python3 bench/network/collectives.py "$build" --record
python3 bench/network/hosts.py "$build" --record
python3 bench/network/nodes.py "$build" --record
python3 bench/network/bits.py "$build" --record
python3 bench/results.py
