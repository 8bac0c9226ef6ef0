/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of CUDA's driver that map memory, and that write words or wait for them in a stream's
 * order. The library is opened on demand, because libcuda.so.1 comes with the driver and not with
 * the toolkit. */
#ifndef WEFT_RUNTIME_DEVICE_CUDA_DRIVER_H
#define WEFT_RUNTIME_DEVICE_CUDA_DRIVER_H

#include "base/status.h"
#include "runtime/device/cuda/toolkit.h"

struct weft_cuda_driver {
    void *library;
    CUresult (*granularity)(size_t *bytes, const CUmemAllocationProp *what,
                            CUmemAllocationGranularity_flags option);
    CUresult (*reserve)(CUdeviceptr *at, size_t bytes, size_t alignment, CUdeviceptr wanted,
                        unsigned long long flags);
    CUresult (*give_back)(CUdeviceptr at, size_t bytes);
    CUresult (*create)(CUmemGenericAllocationHandle *cell, size_t bytes,
                       const CUmemAllocationProp *what, unsigned long long flags);
    CUresult (*release)(CUmemGenericAllocationHandle cell);
    CUresult (*map)(CUdeviceptr at, size_t bytes, size_t offset, CUmemGenericAllocationHandle cell,
                    unsigned long long flags);
    CUresult (*unmap)(CUdeviceptr at, size_t bytes);
    CUresult (*set_access)(CUdeviceptr at, size_t bytes, const CUmemAccessDesc *access, size_t n);
    CUresult (*write_word)(CUstream stream, CUdeviceptr at, cuuint32_t word, unsigned flags);
    CUresult (*wait_word)(CUstream stream, CUdeviceptr at, cuuint32_t word, unsigned flags);
};

/* WEFT_E_ENVIRONMENT if there is no such library, or if it is too old. */
WEFT_MUST_USE enum weft_status weft_cuda_driver_open(struct weft_cuda_driver *out,
                                                     struct weft_error *err);
void weft_cuda_driver_close(struct weft_cuda_driver *driver); /* accepts zeros */

#endif
