/* SPDX-License-Identifier: Apache-2.0 */
/* A planted mistake is a small kernel in two forms. The correct form has no finding. The other has
 * one mistake, which one check must find with all others off. */
#ifndef WEFT_TESTS_EMULATION_PLANTED_PLANTED_H
#define WEFT_TESTS_EMULATION_PLANTED_PLANTED_H

#include "tests/emulation/emu.h"
#include "tests/emulation/harness.h"

struct planted {
    const char *name;
    enum emu_check check;
    void (*run)(bool mistaken);
};

extern const struct planted planted_launches[], planted_memory[], planted_threads[],
    planted_traffic[];
extern const int planted_launches_count, planted_memory_count, planted_threads_count,
    planted_traffic_count;

/* Expects NaN from unwritten shared memory, even in kernels that are not watched. */
void planted_adds_up_unwritten_shared_memory(bool mistaken);

template <typename... P, typename... A>
static inline cudaError_t planted_launch(void (*kernel)(P...), unsigned blocks, unsigned threads,
                                         size_t shared_bytes, cudaStream_t stream, A... given)
{
    std::tuple<P...> values(given...);
    return std::apply(
        [&](P &...each) {
            void *arguments[] = {&each...};
            return cudaLaunchKernel(kernel, dim3(blocks), dim3(threads), arguments, shared_bytes,
                                    stream);
        },
        values);
}

#endif
