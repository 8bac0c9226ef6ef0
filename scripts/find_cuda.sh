#!/bin/sh
# Prints the folder of a CUDA toolkit: CUDA_HOME, /usr/local/cuda, or where the path's nvcc is. It has
# include/cuda_runtime_api.h. Exit 1 when there is none.
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
