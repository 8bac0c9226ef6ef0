/* SPDX-License-Identifier: Apache-2.0 */
/* Fills, copies, and conversions between dtypes. */
#include "runtime/nn/cuda/kernels/each.h"
#include "runtime/nn/cuda/kernels/kernels.h"

struct fill_op {
    enum { GROUP = 16 };
    unsigned char *to;
    uint32_t word; /* the byte four times */

    template <int N> GPU void at(int64_t i) const
    {
        if constexpr (N == 1) {
            to[i] = (unsigned char)word;
        } else {
            store_16(to + i, uint4{word, word, word, word});
        }
    }
    bool is_aligned(int64_t i) const
    {
        return group_begins(to, GROUP, i);
    }
};

/* T is the largest unsigned integer that divides both addresses and the length. */
template <typename T> struct copy_op {
    enum { GROUP = 16 / (int)sizeof(T) };
    const T *from;
    T *to;

    template <int N> GPU void at(int64_t i) const
    {
        if constexpr (N == 1) {
            to[i] = from[i];
        } else {
            store_16(to + i, load_16(from + i));
        }
    }
    bool is_aligned(int64_t i) const
    {
        return group_begins(from, GROUP, i) && group_begins(to, GROUP, i);
    }
};

/* Converts between dtypes. A group of a 16-bit dtype has 8 bytes. */
template <typename T, typename U> struct convert_op {
    enum { GROUP = 4 };
    const T *x;
    U *y;

    template <int N> GPU void at(int64_t i) const
    {
        float values[N];
        load<N>(x + i, values);
        store<N>(values, y + i);
    }
    bool is_aligned(int64_t i) const
    {
        return group_begins(x, GROUP, i) && group_begins(y, GROUP, i);
    }
};

/* The same for matrices with strides. A group that crosses no row of one crosses none of both. */
template <typename T, typename U> struct rows_op {
    enum { GROUP = 4 };
    int64_t width, x_stride, y_stride;
    const T *x;
    U *y;

    template <int N> GPU void at(int64_t i) const
    {
        float values[N];
        load<N>(x + place_of_element(i, width, x_stride), values);
        store<N>(values, y + place_of_element(i, width, y_stride));
    }
    bool is_aligned(int64_t i) const
    {
        return matrix_group_begins(x, width, x_stride, GROUP, i) &&
               matrix_group_begins(y, width, y_stride, GROUP, i);
    }
};

template <typename T, bool ACCUMULATE> struct add_op {
    enum { GROUP = 4 };
    float alpha;
    const float *times; /* another factor, or NULL */
    const float *x;
    T *y;

    template <int N> GPU void at(int64_t i) const
    {
        const float by = times != NULL ? alpha * *times : alpha;
        float from[N], to[N];
        load<N>(x + i, from);
        if constexpr (ACCUMULATE) load<N>(y + i, to);
#pragma unroll
        for (int j = 0; j < N; j++) {
            to[j] = ACCUMULATE ? to[j] + by * from[j] : by * from[j];
        }
        store<N>(to, y + i);
    }
    bool is_aligned(int64_t i) const
    {
        return group_begins(x, GROUP, i) && group_begins(y, GROUP, i);
    }
};

/* W is an unsigned integer with an element's bits; `mask` is its exponent. */
template <typename W> struct look_op {
    enum { GROUP = 16 / (int)sizeof(W) };
    const W *x;
    uint32_t mask, limit;
    uint32_t *flag;

    GPU bool reaches(uint32_t word) const
    {
        return (word & mask) >= limit ||
               (sizeof(W) == sizeof(uint16_t) && (word >> 16 & mask) >= limit);
    }
    template <int N> GPU void at(int64_t i) const
    {
        bool found;
        if constexpr (N == 1) {
            found = reaches(x[i]);
        } else {
            const uint4 words = load_16(x + i);
            found = reaches(words.x) || reaches(words.y) || reaches(words.z) || reaches(words.w);
        }
        if (found) atomicOr(flag, 1u);
    }
    bool is_aligned(int64_t i) const
    {
        return group_begins(x, GROUP, i);
    }
};

int weft_cuda_fill(void *to, unsigned char byte, int64_t bytes, struct CUstream_st *stream)
{
    return launch_each(fill_op{(unsigned char *)to, byte * 0x01010101u}, bytes, stream);
}

template <typename T>
static int copy_words(void *to, const void *from, int64_t bytes, cudaStream_t stream)
{
    return launch_each(copy_op<T>{(const T *)from, (T *)to}, bytes / (int64_t)sizeof(T), stream);
}

int weft_cuda_copy(void *to, const void *from, int64_t bytes, struct CUstream_st *stream)
{
    const uintptr_t ends = (uintptr_t)to | (uintptr_t)from | (uintptr_t)bytes;
    const bool apart = ((uintptr_t)to - (uintptr_t)from) % 16 != 0;
    if (apart && ends % sizeof(uint32_t) == 0) return copy_words<uint32_t>(to, from, bytes, stream);
    if (apart && ends % sizeof(uint16_t) == 0) return copy_words<uint16_t>(to, from, bytes, stream);
    return copy_words<uint8_t>(to, from, bytes, stream);
}

template <typename T, typename U>
static int convert_elements(int64_t n, const void *x, void *y, cudaStream_t stream)
{
    if constexpr (std::is_same<T, U>::value) {
        return weft_cuda_copy(y, x, n * (int64_t)sizeof(T), stream);
    } else {
        return launch_each(convert_op<T, U>{(const T *)x, (U *)y}, n, stream);
    }
}

int weft_cuda_widen(enum weft_dtype dtype, int64_t n, const void *x, float *y,
                    struct CUstream_st *stream)
{
    return with_dtype(
        dtype, [&](auto type) { return convert_elements<decltype(type), float>(n, x, y, stream); });
}

int weft_cuda_narrow(enum weft_dtype dtype, int64_t n, const float *x, void *y,
                     struct CUstream_st *stream)
{
    return with_dtype(
        dtype, [&](auto type) { return convert_elements<float, decltype(type)>(n, x, y, stream); });
}

int weft_cuda_narrow_rows(enum weft_dtype dtype, int64_t rows, int64_t width, const float *x,
                          int64_t stride, void *y, struct CUstream_st *stream)
{
    return with_dtype(dtype, [&](auto type) {
        typedef decltype(type) T;
        return launch_each(rows_op<float, T>{width, width, stride, x, (T *)y}, rows * width,
                           stream);
    });
}

int weft_cuda_copy_rows(enum weft_dtype dtype, int64_t rows, int64_t width, int64_t x_stride,
                        const void *x, int64_t y_stride, void *y, struct CUstream_st *stream)
{
    return with_dtype(dtype, [&](auto type) {
        typedef decltype(type) T;
        return launch_each(rows_op<T, T>{width, x_stride, y_stride, (const T *)x, (T *)y},
                           rows * width, stream);
    });
}

template <typename T>
static int add_in(int64_t n, float alpha, const float *times, const float *x, bool accumulate,
                  void *y, cudaStream_t stream)
{
    if (accumulate) return launch_each(add_op<T, true>{alpha, times, x, (T *)y}, n, stream);
    return launch_each(add_op<T, false>{alpha, times, x, (T *)y}, n, stream);
}

int weft_cuda_add(enum weft_dtype dtype, int64_t n, float alpha, const float *times, const float *x,
                  bool accumulate, void *y, struct CUstream_st *stream)
{
    return with_dtype(dtype, [&](auto type) {
        return add_in<decltype(type)>(n, alpha, times, x, accumulate, y, stream);
    });
}

/* The least exponent, as masked bits, at which the sum of `terms` may not be finite. */
static uint32_t exponent_limit(uint32_t mask, uint32_t step, int64_t terms)
{
    uint32_t limit = mask;
    for (int64_t many = 1; many < terms && limit > step; many *= 2) {
        limit -= step;
    }
    if (terms > 1 && limit > step) limit -= step;
    return limit;
}

int weft_cuda_look(enum weft_dtype dtype, int64_t n, const void *x, int64_t terms, uint32_t *flag,
                   struct CUstream_st *stream)
{
    const uint32_t mask = dtype == WEFT_F32 ? 0x7f800000u : dtype == WEFT_BF16 ? 0x7f80u : 0x7c00u;
    const uint32_t step = dtype == WEFT_F32 ? 1u << 23 : dtype == WEFT_BF16 ? 1u << 7 : 1u << 10;
    const uint32_t limit = exponent_limit(mask, step, terms);
    if (dtype == WEFT_F32) {
        return launch_each(look_op<uint32_t>{(const uint32_t *)x, mask, limit, flag}, n, stream);
    }
    return launch_each(look_op<uint16_t>{(const uint16_t *)x, mask, limit, flag}, n, stream);
}
