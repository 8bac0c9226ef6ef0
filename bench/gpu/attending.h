/* SPDX-License-Identifier: Apache-2.0 */
/* Attention by own kernels and by the library, proved and timed in one run. */
#ifndef WEFT_BENCH_GPU_ATTENDING_H
#define WEFT_BENCH_GPU_ATTENDING_H

#include "bench/gpu/timing.h"
#include "runtime/nn/cuda/kernels/attention.h"

/* Prints a line of JSON for each kernel and for each way; nothing in a build without cuDNN. */
void tell_attending(const struct timing *timing, const struct weft_cuda_attention *shape);

#endif
