/* SPDX-License-Identifier: Apache-2.0 */
/* The report of `weft doctor` on a GPU and its libraries. */
#ifndef WEFT_RUNTIME_DEVICE_CUDA_DOCTOR_H
#define WEFT_RUNTIME_DEVICE_CUDA_DOCTOR_H

#include "runtime/device/cuda/gpu.h"

/* Implements weft_device_describe. Leaves out facts that it cannot find. */
void weft_cuda_describe(const struct weft_device *device, struct weft_text *out);

#endif
