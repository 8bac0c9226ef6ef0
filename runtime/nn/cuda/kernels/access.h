/* SPDX-License-Identifier: Apache-2.0 */
/* Memory accesses of kernels: wide loads and stores of elements, one instruction each, and the
 * launch's shared memory. */
#ifndef WEFT_RUNTIME_NN_CUDA_KERNELS_ACCESS_H
#define WEFT_RUNTIME_NN_CUDA_KERNELS_ACCESS_H

#include "runtime/nn/cuda/kernels/math.h"

#ifdef __CUDACC__
GPU uint4 load_16(const void *from)
{
    return *(const uint4 *)from;
}
GPU void store_16(void *to, uint4 x)
{
    *(uint4 *)to = x;
}
GPU uint2 load_8(const void *from)
{
    return *(const uint2 *)from;
}
GPU void store_8(void *to, uint2 x)
{
    *(uint2 *)to = x;
}
template <typename T> GPU T *shared_memory(void)
{
    extern __shared__ uint4 weft_shared_memory[];
    return (T *)weft_shared_memory;
}
#else
GPU uint4 load_16(const void *from)
{
    return emu_load_16(from);
}
GPU void store_16(void *to, uint4 x)
{
    emu_store_16(to, x);
}
GPU uint2 load_8(const void *from)
{
    return emu_load_8(from);
}
GPU void store_8(void *to, uint2 x)
{
    emu_store_8(to, x);
}
template <typename T> GPU T *shared_memory(void)
{
    return (T *)emu_shared_memory();
}
#endif

/* Convert a word to elements of a 16-bit dtype, or of fp32, and back. */
GPU void widen_word(uint32_t word, float *to, const float *)
{
    to[0] = weft_float_of(word);
}
GPU void widen_word(uint32_t word, float *to, const bf16 *)
{
    to[0] = weft_bf16_widen((uint16_t)word);
    to[1] = weft_bf16_widen((uint16_t)(word >> 16));
}
GPU void widen_word(uint32_t word, float *to, const f16 *)
{
    to[0] = weft_f16_widen((uint16_t)word);
    to[1] = weft_f16_widen((uint16_t)(word >> 16));
}
GPU uint32_t narrow_word(const float *x, const float *)
{
    return weft_bits_of(x[0]);
}
template <typename T> GPU uint32_t narrow_word(const float *x, const T *)
{
    return word_of<T>(x[0], x[1]);
}

/* Access N consecutive elements: 1, or as many as fill 8 bytes or a multiple of 16. */
template <int N, typename T> GPU void load(const T *from, float (&to)[N])
{
    enum { BYTES = N * (int)sizeof(T), EACH = 4 / (int)sizeof(T) };
    static_assert(N == 1 || BYTES == 8 || BYTES % 16 == 0, "an access of 8 or 16 bytes");
    if constexpr (N == 1) {
        to[0] = widen(*from);
    } else if constexpr (BYTES == 8) {
        const uint2 words = load_8(from);
        widen_word(words.x, to, from);
        widen_word(words.y, to + EACH, from);
    } else {
#pragma unroll
        for (int i = 0; i < BYTES / 16; i++) {
            const uint4 words = load_16(from + i * 4 * EACH);
            widen_word(words.x, to + (4 * i) * EACH, from);
            widen_word(words.y, to + (4 * i + 1) * EACH, from);
            widen_word(words.z, to + (4 * i + 2) * EACH, from);
            widen_word(words.w, to + (4 * i + 3) * EACH, from);
        }
    }
}

template <int N, typename T> GPU void store(const float (&x)[N], T *to)
{
    enum { BYTES = N * (int)sizeof(T), EACH = 4 / (int)sizeof(T) };
    static_assert(N == 1 || BYTES == 8 || BYTES % 16 == 0, "an access of 8 or 16 bytes");
    if constexpr (N == 1) {
        narrow(x[0], to);
    } else if constexpr (BYTES == 8) {
        store_8(to, uint2{narrow_word(x, to), narrow_word(x + EACH, to)});
    } else {
#pragma unroll
        for (int i = 0; i < BYTES / 16; i++) {
            const float *from = x + 4 * i * EACH;
            store_16(to + 4 * i * EACH,
                     uint4{narrow_word(from, to), narrow_word(from + EACH, to),
                           narrow_word(from + 2 * EACH, to), narrow_word(from + 3 * EACH, to)});
        }
    }
}

/* True if a group at element i can be accessed at once: its address is a multiple of the group's
 * bytes, or of 16 for larger groups. A NULL array is accepted. */
template <typename T> static inline bool group_begins(const T *array, int64_t group, int64_t i)
{
    const uintptr_t bytes = (uintptr_t)group * sizeof(T), access = bytes < 16 ? bytes : 16;
    return array == NULL || ((uintptr_t)array + (uintptr_t)i * sizeof(T)) % access == 0;
}

#endif
