/* The exact sum of squares of optimizer.h. A warp adds squares of a tile of 512 numbers in units of
 * the tile's own window, as the CPU's kernels do. It adds the result to bins in shared memory. A
 * block adds these bins to bins in memory. All sums are of integers, so their order does not
 * matter. */
#ifndef WEFT_RUNTIME_NN_CUDA_SQUARES_H
#define WEFT_RUNTIME_NN_CUDA_SQUARES_H

#include "runtime/nn/cuda/access.h"
#include "runtime/nn/optimizer.h"

enum {
    SQUARES_THREADS = 256,
    SQUARES_WARPS = SQUARES_THREADS / WARP,
    SQUARES_GROUP = 4,  /* numbers in one load of a lane */
    SQUARES_GROUPS = 4, /* of a lane in a tile */
    SQUARES_EACH = SQUARES_GROUP * SQUARES_GROUPS,
    SQUARES_TILE = SQUARES_EACH * WARP,
    SQUARES_MOST_BLOCKS = 1024
};

/* A number is m 2^(e - 150) with m < 2^24. Bin e is two words with m^2, in units of 1 and of
 * 2^24. */
enum { NORM_EXPONENTS = 256, NORM_WINDOW = 16, NORM_WORD_BITS = 24 };
static const uint32_t NORM_WORD_MASK = (1u << NORM_WORD_BITS) - 1;

GPU void add_word(uint64_t *bins, uint32_t word, uint64_t value)
{
    atomicAdd((unsigned long long *)bins + word, (unsigned long long)value);
}

GPU uint32_t exponent_of(float x)
{
    return weft_bits_of(x) >> 23 & 255u;
}
GPU uint32_t mantissa_of(float x)
{
    return (weft_bits_of(x) & 0x7fffffu) | (exponent_of(x) > 0 ? 1u << 23 : 0u);
}

/* Adds to the number's own bin. */
GPU void add_square(float x, uint64_t *bins)
{
    const uint32_t mantissa = mantissa_of(x);
    const uint64_t square = (uint64_t)mantissa * mantissa;
    if (square == 0) return;
    add_word(bins, 2 * exponent_of(x), square & NORM_WORD_MASK);
    add_word(bins, 2 * exponent_of(x) + 1, square >> NORM_WORD_BITS);
}

/* Adds low + 2^24 high, each below 2^63, in units of bin `window`. The sum is four words of 24
 * bits, and each of the first four lanes adds one. Two words on is the bin 24 exponents up. */
GPU void add_window(uint64_t low, uint64_t high, uint32_t window, uint32_t lane, uint64_t *bins)
{
    if (lane > 3) return;
    const uint64_t of_low = lane < 3 ? low >> NORM_WORD_BITS * lane & NORM_WORD_MASK : 0;
    const uint64_t of_high = lane > 0 ? high >> NORM_WORD_BITS * (lane - 1) & NORM_WORD_MASK : 0;
    const uint32_t exponent = window + lane / 2 * NORM_WORD_BITS;
    if (of_low + of_high > 0) add_word(bins, 2 * exponent + lane % 2, of_low + of_high);
}

/* Adds the squares of a warp's tile; all lanes call it. `bins` are in shared memory. */
GPU void add_squares(const float (&x)[SQUARES_EACH], uint64_t *bins)
{
    /* The window's highest words need a bin. */
    enum { LAST_WINDOW = NORM_EXPONENTS - 2 - NORM_WORD_BITS };
    uint32_t most = 0;
#pragma unroll
    for (int i = 0; i < SQUARES_EACH; i++) {
        const uint32_t exponent = exponent_of(x[i]);
        most = exponent > most ? exponent : most;
    }
    most = __reduce_max_sync(ALL_LANES, most);
    const uint32_t window = most > NORM_WINDOW ? most - (NORM_WINDOW - 1) : 1;
    const bool fits = window <= LAST_WINDOW;
    uint64_t low = 0, high = 0;
#pragma unroll
    for (int i = 0; i < SQUARES_EACH; i++) {
        const uint32_t exponent = exponent_of(x[i]), place = exponent > 0 ? exponent : 1;
        if (!fits || place < window) {
            add_square(x[i], bins);
            continue;
        }
        const uint32_t mantissa = mantissa_of(x[i]), shift = 2 * (place - window);
        const uint64_t square = (uint64_t)mantissa * mantissa;
        low += (square & NORM_WORD_MASK) << shift;
        high += square >> NORM_WORD_BITS << shift;
    }
    low = integer_sum_of_warp(low);
    high = integer_sum_of_warp(high);
    if (fits) add_window(low, high, window, threadIdx.x % WARP, bins);
}

/* Source has the numbers, each computed from an element of ARRAYS arrays:
 *     enum { ARRAYS };
 *     const float *array(int i) const;
 *     GPU float value(const float *of_arrays) const;
 *     bool is_aligned(int64_t i) const; */

/* Reads elements i to i + SQUARES_GROUP of all arrays. Missing elements are 0. */
template <typename Source>
GPU void read_group(const Source &source, int64_t i, bool wide, int64_t n,
                    float (&to)[Source::ARRAYS][SQUARES_GROUP])
{
#pragma unroll
    for (int array = 0; array < Source::ARRAYS; array++) {
        const float *from = source.array(array);
        if (wide && i >= 0 && i + SQUARES_GROUP <= n) {
            load<SQUARES_GROUP>(from + i, to[array]);
            continue;
        }
#pragma unroll
        for (int j = 0; j < SQUARES_GROUP; j++) {
            to[array][j] = i + j >= 0 && i + j < n ? from[i + j] : 0.0f;
        }
    }
}

/* `before`: places of the first group before element 0. `wide`: groups can be read at once. */
template <typename Source>
__global__ void __launch_bounds__(SQUARES_THREADS)
    squares(Source source, int64_t before, bool wide, int64_t n, uint64_t *bins)
{
    uint64_t *own = shared_memory<uint64_t>();
    const int lane = (int)(threadIdx.x % WARP);
    const int64_t warps = (int64_t)gridDim.x * SQUARES_WARPS;
    int64_t tile = (int64_t)blockIdx.x * SQUARES_WARPS + threadIdx.x / WARP;
    for (uint32_t i = threadIdx.x; i < WEFT_NORM_WORDS; i += SQUARES_THREADS) {
        own[i] = 0;
    }
    __syncthreads();
    for (; tile * SQUARES_TILE < n + before; tile += warps) {
        float x[SQUARES_EACH];
#pragma unroll
        for (int group = 0; group < SQUARES_GROUPS; group++) {
            const int64_t i = tile * SQUARES_TILE - before + (group * WARP + lane) * SQUARES_GROUP;
            float of_arrays[Source::ARRAYS][SQUARES_GROUP];
            read_group(source, i, wide, n, of_arrays);
#pragma unroll
            for (int j = 0; j < SQUARES_GROUP; j++) {
                float of_element[Source::ARRAYS];
#pragma unroll
                for (int array = 0; array < Source::ARRAYS; array++) {
                    of_element[array] = of_arrays[array][j];
                }
                x[group * SQUARES_GROUP + j] =
                    i + j >= 0 && i + j < n ? source.value(of_element) : 0.0f;
            }
        }
        add_squares(x, own);
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < WEFT_NORM_WORDS; i += SQUARES_THREADS) {
        if (own[i] > 0) add_word(bins, i, own[i]);
    }
}

template <typename Source>
static inline int launch_squares(Source source, int64_t n, uint64_t *bins, cudaStream_t stream)
{
    int64_t first = 0;
    if (n <= 0) return 0;
    while (first < SQUARES_GROUP && !source.is_aligned(first)) {
        first++;
    }
    const bool wide = first < SQUARES_GROUP;
    const int64_t before = wide ? (SQUARES_GROUP - first) % SQUARES_GROUP : 0;
    int64_t blocks = divide_up(n + before, SQUARES_TILE * SQUARES_WARPS);
    if (blocks > SQUARES_MOST_BLOCKS) blocks = SQUARES_MOST_BLOCKS;
    const struct weft_grid grid = {dim3((unsigned)blocks), dim3(SQUARES_THREADS),
                                   WEFT_NORM_WORDS * sizeof(uint64_t)};
    return launch(squares<Source>, grid, stream, source, before, wide, n, bins);
}

#endif
