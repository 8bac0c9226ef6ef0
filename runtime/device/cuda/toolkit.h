/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA's own headers. Only runtime/device/cuda and runtime/arena/cuda include them. */
#ifndef WEFT_RUNTIME_DEVICE_CUDA_TOOLKIT_H
#define WEFT_RUNTIME_DEVICE_CUDA_TOOLKIT_H

#include <cuda.h>
#include <cuda_runtime_api.h>

#endif
