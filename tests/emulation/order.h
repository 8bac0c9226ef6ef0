/* SPDX-License-Identifier: Apache-2.0 */
/* The order of launches: a vector clock for each stream and one for the host. Launch b is after
 * launch a if b's clock has a. */
#ifndef WEFT_TESTS_EMULATION_ORDER_H
#define WEFT_TESTS_EMULATION_ORDER_H

#include <cstdint>

#include <cuda_runtime_api.h>

void emu_order_launch(cudaStream_t stream, uint32_t launch);
bool emu_order_is_behind(uint32_t launch, uint32_t earlier);
/* True if the host knows that the launch has ended. */
bool emu_order_is_known(uint32_t launch);

#endif
