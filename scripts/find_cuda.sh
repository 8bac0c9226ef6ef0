#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints the folder of a CUDA toolkit with the header cuda_runtime_api.h: CUDA_HOME, /usr/local/cuda, or the toolkit of the
# path's nvcc. Exits with 1 if there is none.
set -u
nvcc=$(command -v nvcc || true)
[ -z "$nvcc" ] || nvcc=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
for home in "${CUDA_HOME:-}" /usr/local/cuda "$nvcc"; do
    if [ -n "$home" ] && [ -f "$home/include/cuda_runtime_api.h" ]; then
        echo "$home"
        exit 0
    fi
done
exit 1
