/* What `weft doctor` says of a GPU and of the libraries that came with it. */
#ifndef WEFT_RUNTIME_DEVICE_CUDA_DOCTOR_H
#define WEFT_RUNTIME_DEVICE_CUDA_DOCTOR_H

#include "runtime/device/cuda/gpu.h"

/* weft_device_describe. What cannot be found out is left out. */
void weft_cuda_describe(const struct weft_device *device, struct weft_text *out);

#endif
