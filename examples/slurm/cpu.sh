#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Trains over several hosts of a Slurm cluster:
#
#   sbatch --nodes=4 --ntasks-per-node=2 examples/slurm/cpu.sh CONFIG RUN [WEFT FLAGS]
#
# RUN is a directory that all hosts share. Two minutes before the time limit, or before a job of higher priority takes
# the hosts, all ranks save and exit with 75. The job then enters the queue again and resumes from its checkpoint.
# --mpi=pmi2 starts ranks of MPICH, --mpi=pmix those of Open MPI: MPI=pmix sbatch ...
#SBATCH --job-name=weft
#SBATCH --signal=USR1@120
#SBATCH --requeue
#SBATCH --open-mode=append
set -u
config=$1
run=$2
shift 2
srun --mpi="${MPI:-pmi2}" "${WEFT:-weft}" train "$config" --run "$run" --resume=if-any -n "$SLURM_NTASKS" \
    --set cluster.ranks_per_node="${SLURM_NTASKS_PER_NODE:-0}" "$@"
code=$?
if [ "$code" -eq 75 ]; then scontrol requeue "$SLURM_JOB_ID"; fi
exit "$code"
