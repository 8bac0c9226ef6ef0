/* SPDX-License-Identifier: Apache-2.0 */
/* Instruction levels of loops.c and layers.c, from the lowest up. */
#ifndef WEFT_RUNTIME_NN_CPU_KERNELS_LEVELS_H
#define WEFT_RUNTIME_NN_CPU_KERNELS_LEVELS_H

#include "runtime/nn/cpu/kernels/kernels.h"

extern const struct weft_kernels weft_kernels_plain; /* the compiler's default target */
extern const struct weft_kernels weft_kernels_avx2;
extern const struct weft_kernels weft_kernels_avx512;

extern const struct weft_layer_kernels weft_kernels_plain_f32, weft_kernels_plain_bf16,
    weft_kernels_plain_f16;
extern const struct weft_layer_kernels weft_kernels_avx2_f32, weft_kernels_avx2_bf16,
    weft_kernels_avx2_f16;
extern const struct weft_layer_kernels weft_kernels_avx512_f32, weft_kernels_avx512_bf16,
    weft_kernels_avx512_f16;

#define WEFT_KERNELS_HEADS(level)                                                                  \
    void weft_kernels_attend_##level(const struct weft_head *head, float *probabilities,           \
                                     void *output);                                                \
    void weft_kernels_attend_backward_##level(const struct weft_head *head,                        \
                                              const float *probabilities, const void *output,      \
                                              const void *d_output, struct weft_head_gradients to)
WEFT_KERNELS_HEADS(avx2);
WEFT_KERNELS_HEADS(avx512);
#undef WEFT_KERNELS_HEADS

#endif
