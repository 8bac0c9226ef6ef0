/* SPDX-License-Identifier: Apache-2.0 */
/* Emulated kernels, found by the names that nvcc's host code registers. */
#ifndef WEFT_TESTS_EMULATION_DOUBLES_LAUNCHES_H
#define WEFT_TESTS_EMULATION_DOUBLES_LAUNCHES_H

#include <string>

#include "tests/emulation/doubles/double.h"

/* `host` is the kernel's address in the module's host code. */
void double_kernel_add(const void *host, const char *name);
/* Sets *run to run the kernel once, with its arguments' present values.
 * cudaErrorInvalidConfiguration if this GPU would refuse it, cudaErrorInvalidDeviceFunction if
 * there is none. */
cudaError_t double_kernel_prepare(const void *host, dim3 grid, dim3 block, size_t shared_bytes,
                                  void **arguments, std::string *name,
                                  std::function<void(uint32_t id)> *run);

#endif
