/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/nn/cpu/kernels/levels.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

const struct weft_kernels *weft_kernels_level(int32_t index)
{
    const struct weft_kernels *levels[3] = {&weft_kernels_plain};
    int32_t n = 1;
#if WEFT_HAVE_X86_LEVELS
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        levels[n++] = &weft_kernels_avx2;
    }
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl")) {
        levels[n++] = &weft_kernels_avx512;
    }
#endif
    return index >= 0 && index < n ? levels[index] : NULL;
}

const char *weft_kernels_named(void)
{
    const char *named = getenv("WEFT_KERNELS");
    return named != NULL && *named != '\0' ? named : NULL;
}

const struct weft_kernels *weft_kernels_best(void)
{
    const char *named = weft_kernels_named();
    const struct weft_kernels *best = NULL, *next;
    for (int32_t i = 0; (next = weft_kernels_level(i)) != NULL; i++) {
        best = next;
        if (named != NULL && strcmp(next->level, named) == 0) break;
    }
    return best;
}
