#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints the folders of cuDNN's headers, a line each: of the library (cudnn_graph.h) and of its frontend
# (cudnn_frontend.h). Looks in CUDNN_HOME/include and CUDNN_FRONTEND_HOME/include, in the toolkit CUDA_HOME, in pip's
# packages of python3, and in the system's folders. Exits with 1 if one is missing, and says which.
set -u
packages=$(python3 -c 'import sysconfig; print(sysconfig.get_path("purelib"))' 2>/dev/null || true)
find_header() {
    header=$1
    shift
    for folder in "$@"; do
        if [ -f "$folder/$header" ]; then
            echo "$folder"
            return 0
        fi
    done
    echo "no $header"
    return 1
}
find_header cudnn_graph.h ${CUDNN_HOME:+"$CUDNN_HOME/include"} ${CUDA_HOME:+"$CUDA_HOME/include"} \
    ${packages:+"$packages/nvidia/cudnn/include"} /usr/local/cuda/include /usr/include /usr/include/x86_64-linux-gnu &&
    find_header cudnn_frontend.h ${CUDNN_FRONTEND_HOME:+"$CUDNN_FRONTEND_HOME/include"} \
        ${CUDNN_HOME:+"$CUDNN_HOME/include"} ${CUDA_HOME:+"$CUDA_HOME/include"} ${packages:+"$packages/include"} \
        /usr/local/cuda/include /usr/local/include /usr/include
