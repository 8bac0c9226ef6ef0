/* SPDX-License-Identifier: Apache-2.0 */
/* Sums in a fixed order: over ranks, of squares, of hashes, of columns. */
#include "runtime/nn/cuda/kernels/columns.h"
#include "runtime/nn/cuda/kernels/each.h"
#include "runtime/nn/cuda/kernels/kernels.h"
#include "runtime/nn/cuda/kernels/squares.h"

/* Over ranks: T is the ranks' element, U the result's. */
enum sum_kind { SUM_ROUNDED, SUM_PARTIAL, SUM_ADDED };

template <typename T, typename U, enum sum_kind KIND>
struct sum_op {
    enum {GROUP = sizeof(U) == 2 ? 8 : 4}; const unsigned char * from; const T * own_from;
    int64_t stride_bytes; int32_t ranks, per_node, own; U * to;

    GPU const T *
    of_rank(int32_t rank, int64_t i)
        const {return (rank == own ? own_from : (const T *)(from + rank * stride_bytes)) + i;}
template <int N> GPU void of_node(int32_t first, int64_t i, float (&sum)[N]) const
{
    const int32_t end = first + per_node < ranks ? first + per_node : ranks;
    float x[N];
    load<N>(of_rank(first, i), sum);
#pragma unroll 4
    for (int32_t rank = first + 1; rank < end; rank++) {
        load<N>(of_rank(rank, i), x);
#pragma unroll
        for (int j = 0; j < N; j++) {
            sum[j] += x[j];
        }
    }
}
template <int N> GPU void at(int64_t i) const
{
    float sum[N], x[N];
    if constexpr (KIND == SUM_ADDED) {
        load<N>(to + i, sum);
    } else {
        of_node(0, i, sum);
    }
    for (int32_t first = KIND == SUM_ADDED ? 0 : per_node; first < ranks; first += per_node) {
        of_node(first, i, x);
#pragma unroll
        for (int j = 0; j < N; j++) {
            sum[j] += x[j];
        }
    }
    if constexpr (KIND == SUM_ROUNDED) {
#pragma unroll
        for (int j = 0; j < N; j++) {
            sum[j] = rounded<T>(sum[j]);
        }
    }
    store<N>(sum, to + i);
}
bool is_aligned(int64_t i) const
{
    return stride_bytes % 16 == 0 && group_begins((const T *)from, GROUP, i) &&
           group_begins(own_from, GROUP, i) && group_begins(to, GROUP, i);
}
}
;

/* Ranks that are summed first. The ranks of one node are added one after the other, to the sum of
 * earlier rounds if there is one. */
static int32_t ranks_at_once(const struct weft_cuda_sum *s, bool adds)
{
    if (s->per_node > 1 && s->per_node < s->ranks) return s->per_node;
    return adds ? 1 : s->ranks;
}

template <typename T, typename U, enum sum_kind KIND>
static int sum_as(const struct weft_cuda_sum *s, cudaStream_t stream)
{
    const sum_op<T, U, KIND> op = {(const unsigned char *)s->from,
                                   s->own >= 0 ? (const T *)s->own_from : NULL,
                                   s->stride_bytes,
                                   s->ranks - s->idle,
                                   ranks_at_once(s, KIND == SUM_ADDED),
                                   s->own,
                                   (U *)s->to};
    return launch_each(op, s->n, stream);
}

int weft_cuda_sum_ranks(const struct weft_cuda_sum *sum, struct CUstream_st *stream)
{
    if (sum->adds) return sum_as<float, float, SUM_ADDED>(sum, stream);
    return with_dtype(sum->dtype, [&](auto type) {
        typedef decltype(type) T;
        if (sum->partial) return sum_as<T, float, SUM_PARTIAL>(sum, stream);
        if (sum->to_dtype == WEFT_F32) return sum_as<T, float, SUM_ROUNDED>(sum, stream);
        return sum_as<T, T, SUM_ROUNDED>(sum, stream);
    });
}

/* Sums of squares */
template <typename T> struct numbers {
    enum { ARRAYS = 1 };
    typedef T element;
    const T *x;

    GPU const T *array(int) const
    {
        return x;
    }
    GPU float value(const float *of_arrays) const
    {
        return of_arrays[0];
    }
    bool is_aligned(int64_t i) const
    {
        return group_begins(x, squares_of<numbers>::GROUP, i);
    }
};

int weft_cuda_norm_add(uint64_t *bins, enum weft_dtype dtype, const void *x, int64_t n,
                       struct CUstream_st *stream)
{
    return with_dtype(dtype, [&](auto type) {
        typedef decltype(type) T;
        return launch_squares(numbers<T>{(const T *)x}, n, bins, stream);
    });
}

enum { PACK_BITS = 32, PACK_WORDS = WEFT_NORM_PACKED_WORDS - 1, PACK_VALUES = 2 * NORM_EXPONENTS };

/* The bits [32 word, 32 word + 32) of value << shift. */
GPU uint64_t bits_of_word(uint64_t value, int shift, int word)
{
    const int at = PACK_BITS * word - shift;
    if (at >= 64 || at <= -PACK_BITS) return 0;
    return (at >= 0 ? value >> at : value << -at) & UINT32_MAX;
}

/* Each thread sums one word over all bins, then one thread carries. Bins of exponent e begin at
 * 2^(2 (e - 1)) units of 2^-298, and the second word is 24 bits higher. */
__global__ void __launch_bounds__(WARP) norm_pack(const uint64_t *bins, uint64_t *words)
{
    uint64_t *sums = shared_memory<uint64_t>();
    const int word = (int)threadIdx.x;
    if (word < PACK_WORDS) {
        uint64_t sum = 0;
        for (int i = 0; i < PACK_VALUES - 2; i++) {
            const int e = i / 2, shift = (e > 0 ? 2 * (e - 1) : 0) + i % 2 * NORM_WORD_BITS;
            sum += bits_of_word(bins[i], shift, word);
        }
        sums[word] = sum;
    }
    __syncthreads();
    if (threadIdx.x > 0) return;
    uint64_t carried = 0;
    for (int i = 0; i < PACK_WORDS; i++) {
        carried += sums[i];
        words[i] = carried & UINT32_MAX;
        carried >>= PACK_BITS;
    }
    words[PACK_WORDS] = bins[PACK_VALUES - 2] != 0 || bins[PACK_VALUES - 1] != 0;
}

int weft_cuda_norm_pack(const uint64_t *bins, uint64_t *words, struct CUstream_st *stream)
{
    const struct weft_grid grid = {dim3(1), dim3(WARP), PACK_WORDS * sizeof(uint64_t)};
    return launch(norm_pack, grid, stream, bins, words);
}

/* Sums of hashes. Integer instructions bound their time: the nine shifts and exclusive ors of 64
 * bits alone are 36 an element, 0.17 ms for 64 Mi elements on an H100. */
enum { HASH_THREADS = 256, HASH_MOST_BLOCKS = 512 };

__global__ void __launch_bounds__(HASH_THREADS)
    hash_sum(const float *x, int64_t n, uint64_t name, int64_t first, uint64_t *sum)
{
    const int64_t threads = (int64_t)gridDim.x * HASH_THREADS;
    uint64_t high = 0, low = 0;
#pragma unroll 4
    for (int64_t i = (int64_t)blockIdx.x * HASH_THREADS + threadIdx.x; i < n; i += threads) {
        const uint64_t place = hash_place(name, (uint64_t)(first + i));
        high += hash_high(place, x[i]);
        low += hash_low(place, x[i]);
    }
    high = integer_sum_of_warp(high);
    low = integer_sum_of_warp(low);
    if (threadIdx.x % WARP != 0) return;
    atomicAdd((unsigned long long *)sum, (unsigned long long)high);
    atomicAdd((unsigned long long *)sum + 1, (unsigned long long)low);
}

int weft_cuda_hash_add(uint64_t *sum, uint64_t name, int64_t first, const float *x, int64_t n,
                       struct CUstream_st *stream)
{
    int64_t blocks = divide_up(n, HASH_THREADS);
    if (n <= 0) return 0;
    if (blocks > HASH_MOST_BLOCKS) blocks = HASH_MOST_BLOCKS;
    const struct weft_grid grid = {dim3((unsigned)blocks), dim3(HASH_THREADS), 0};
    return launch(hash_sum, grid, stream, x, n, name, first, sum);
}

/* Sums of columns */
template <typename T> struct matrix {
    enum { SUMS = 1 };
    const T *x;
    int64_t stride;

    template <int N> GPU void values(int64_t row, int64_t column, float (&to)[SUMS][N]) const
    {
        load<N>(x + row * stride + column, to[0]);
    }
    bool is_aligned(int64_t columns) const
    {
        return columns % COLUMNS_GROUP == 0 && stride % COLUMNS_GROUP == 0 &&
               group_begins(x, COLUMNS_GROUP, 0);
    }
};

int64_t weft_cuda_column_bytes(int64_t rows, int64_t width)
{
    return column_stripes(rows) * width * (int64_t)sizeof(float);
}

int weft_cuda_column_sums(enum weft_dtype dtype, int64_t rows, int64_t width, int64_t stride,
                          const void *x, float *sums, void *workspace, struct CUstream_st *stream)
{
    return with_dtype(dtype, [&](auto type) {
        typedef decltype(type) T;
        return launch_columns(matrix<T>{(const T *)x, stride}, rows, width, sums,
                              (float *)workspace, stream);
    });
}
