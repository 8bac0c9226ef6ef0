/* The instruction-set levels that kernels.c is compiled for, from the lowest up. */
#ifndef WEFT_RUNTIME_NN_KERNELS_LEVELS_H
#define WEFT_RUNTIME_NN_KERNELS_LEVELS_H

#include "runtime/nn/kernels.h"

extern const struct weft_kernels weft_kernels_plain; /* what the compiler targets by itself */
extern const struct weft_kernels weft_kernels_avx2;
extern const struct weft_kernels weft_kernels_avx512;

#endif
