#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Trains on the GPUs of one host of a Slurm cluster. Weft starts a rank for each GPU itself, so the job has one task and
# no srun:
#
#   sbatch --gpus-per-node=8 examples/slurm/gpu.sh CONFIG RUN [WEFT FLAGS]
#
# It saves and enters the queue again as cpu.sh does. `B:` sends the signal to this script, which passes it on.
#SBATCH --job-name=weft
#SBATCH --nodes=1 --ntasks=1
#SBATCH --signal=B:USR1@120
#SBATCH --requeue
#SBATCH --open-mode=append
set -u
config=$1
run=$2
shift 2
"${WEFT:-weft}" train "$config" --run "$run" --resume=if-any -n "${SLURM_GPUS_ON_NODE:-1}" "$@" &
weft=$!
trap 'kill -USR1 $weft' USR1
trap 'kill -TERM $weft' TERM
wait "$weft"
code=$?
while kill -0 "$weft" 2>/dev/null; do # a signal ended the wait, and Weft is saving
    wait "$weft"
    code=$?
done
if [ "$code" -eq 75 ]; then scontrol requeue "$SLURM_JOB_ID"; fi
exit "$code"
