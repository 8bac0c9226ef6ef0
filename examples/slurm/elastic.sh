#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Trains over as many hosts of a Slurm cluster as there are:
#
#   sbatch --nodes=1-4 --ntasks-per-node=2 examples/slurm/elastic.sh CONFIG RUN [WEFT FLAGS]
#
# RUN is a directory that all hosts share. If a host or a rank is lost, the job enters the queue again, and Slurm gives
# it the hosts that it has then. The run goes on from its last checkpoint on any number of ranks, up to the groups of a
# step (docs/usage.md), and its bits stay the same if all nodes have as many ranks. cpu.sh tells of the time limit and
# of MPI.
#SBATCH --job-name=weft
#SBATCH --signal=USR1@120
#SBATCH --requeue
#SBATCH --open-mode=append
set -u
config=$1
run=$2
shift 2
saved() { ls "$run/checkpoints" 2>/dev/null | sort -V | tail -n 1; }
before=$(saved)
if [ -n "$before" ]; then set -- --resume --run "$run" "$@"; else set -- "$config" --run "$run" --resume=if-any "$@"; fi
srun --mpi="${MPI:-pmi2}" --kill-on-bad-exit=1 "${WEFT:-weft}" train "$@" -n "$SLURM_NTASKS" \
    --set cluster.ranks_per_node="${SLURM_NTASKS_PER_NODE:-0}"
code=$?
# 75: stopped and saved. 69, 80 and 137: a rank was lost; a start that saved nothing is not tried for ever.
case "$code" in
75) again=yes ;;
69 | 80 | 137) if [ "$(saved)" != "$before" ] || [ "${SLURM_RESTART_COUNT:-0}" -lt 3 ]; then again=yes; fi ;;
esac
if [ -n "${again:-}" ]; then scontrol requeue "$SLURM_JOB_ID"; fi
exit "$code"
