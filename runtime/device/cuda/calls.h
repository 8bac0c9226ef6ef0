/* SPDX-License-Identifier: Apache-2.0 */
/* Failures of CUDA's calls, and a bounded wait, for C and C++. */
#ifndef WEFT_RUNTIME_DEVICE_CUDA_CALLS_H
#define WEFT_RUNTIME_DEVICE_CUDA_CALLS_H

#include "runtime/device/cuda/toolkit.h"

#ifdef __cplusplus
extern "C" {
#endif

#include "base/status.h"

struct weft_cuda_gpu;

/* Fills *err for a failed CUDA call. `what` completes "cannot ...". Returns WEFT_E_ENVIRONMENT for
 * faults of driver or device, WEFT_E_HANG for cudaErrorTimeout, otherwise WEFT_E_SYSTEM. */
enum weft_status weft_cuda_fail(cudaError_t code, const char *what, struct weft_error *err);
/* Polls until the stream is idle. Returns cudaErrorTimeout after WEFT_CUDA_TIMEOUT_S seconds
 * (1800): CUDA itself never gives that code here. If gpu is NULL, nothing is tended. */
cudaError_t weft_cuda_await(const struct weft_cuda_gpu *gpu, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
