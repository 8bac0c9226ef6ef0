/* SPDX-License-Identifier: Apache-2.0 */
/* The exact sum of squares of optimizer.h. A warp adds the squares of a tile of numbers to bins in
 * shared memory. A block adds its bins to bins in memory. All sums are exact, so their order does
 * not matter. */
#ifndef WEFT_RUNTIME_NN_CUDA_KERNELS_SQUARES_H
#define WEFT_RUNTIME_NN_CUDA_KERNELS_SQUARES_H

#include "runtime/nn/cuda/kernels/window.h"

enum {
    SQUARES_THREADS = 256,
    SQUARES_WARPS = SQUARES_THREADS / WARP,
    SQUARES_BLOCKS = 2, /* of a multiprocessor, so that registers suffice without spills */
    SQUARES_TILE = SQUARES_EACH * WARP,
    SQUARES_MOST_BLOCKS = 1024
};

/* Source has the numbers, each computed from an element of ARRAYS arrays:
 *     enum { ARRAYS };
 *     typedef element;                    of the arrays
 *     const element *array(int i) const;
 *     GPU float value(const float *of_arrays) const;
 *     bool is_aligned(int64_t i) const;   a group of 16 bytes may begin at element i */
template <typename Source> struct squares_of {
    typedef typename Source::element element;
    enum { GROUP = 16 / (int)sizeof(element), GROUPS = SQUARES_EACH / GROUP };

    /* The place of a lane's group in its tile. */
    static GPU int place_of(int group)
    {
        return (group * WARP + (int)(threadIdx.x % WARP)) * GROUP;
    }
    static GPU void values(const Source &source, const float (&from)[Source::ARRAYS][GROUP],
                           float *to)
    {
#pragma unroll
        for (int j = 0; j < GROUP; j++) {
            float of_element[Source::ARRAYS];
#pragma unroll
            for (int array = 0; array < Source::ARRAYS; array++) {
                of_element[array] = from[array][j];
            }
            to[j] = source.value(of_element);
        }
    }
    /* Reads a tile that is whole, in groups. */
    static GPU void read_groups(const Source &source, int64_t begin, float (&x)[SQUARES_EACH])
    {
#pragma unroll
        for (int group = 0; group < GROUPS; group++) {
            float of_arrays[Source::ARRAYS][GROUP];
#pragma unroll
            for (int array = 0; array < Source::ARRAYS; array++) {
                load<GROUP>(source.array(array) + begin + place_of(group), of_arrays[array]);
            }
            values(source, of_arrays, x + group * GROUP);
        }
    }
    /* Reads places `first` to `end` of a tile, one by one. Other numbers are 0. */
    static GPU void read_elements(const Source &source, int64_t begin, int first, int end,
                                  float (&x)[SQUARES_EACH])
    {
#pragma unroll
        for (int i = 0; i < SQUARES_EACH; i++) {
            const int place = place_of(i / GROUP) + i % GROUP;
            float of_element[Source::ARRAYS];
            x[i] = 0;
            if (place < first || place >= end) continue;
#pragma unroll
            for (int array = 0; array < Source::ARRAYS; array++) {
                of_element[array] = widen((source.array(array) + begin)[place]);
            }
            x[i] = source.value(of_element);
        }
    }
};

/* `before`: places of the first group before element 0. `wide`: groups can be read at once. */
template <typename Source>
__global__ void __launch_bounds__(SQUARES_THREADS, SQUARES_BLOCKS)
    squares(Source source, int64_t before, bool wide, int64_t n, uint64_t *bins)
{
    uint64_t *own = shared_memory<uint64_t>();
    const int64_t warps = (int64_t)gridDim.x * SQUARES_WARPS;
    int64_t tile = (int64_t)blockIdx.x * SQUARES_WARPS + threadIdx.x / WARP;
    for (uint32_t i = threadIdx.x; i < WEFT_NORM_WORDS; i += SQUARES_THREADS) {
        own[i] = 0;
    }
    __syncthreads();
    for (; tile * SQUARES_TILE < n + before; tile += warps) {
        const int64_t begin = tile * SQUARES_TILE - before, left = n - begin;
        float x[SQUARES_EACH];
        if (wide && begin >= 0 && left >= SQUARES_TILE) {
            squares_of<Source>::read_groups(source, begin, x);
        } else {
            const int first = begin < 0 ? (int)-begin : 0,
                      end = left < SQUARES_TILE ? (int)left : SQUARES_TILE;
            squares_of<Source>::read_elements(source, begin, first, end, x);
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
    enum { GROUP = squares_of<Source>::GROUP };
    int64_t first = 0;
    if (n <= 0) return 0;
    while (first < GROUP && !source.is_aligned(first)) {
        first++;
    }
    const bool wide = first < GROUP;
    const int64_t before = wide ? (GROUP - first) % GROUP : 0;
    int64_t blocks = divide_up(n + before, SQUARES_TILE * SQUARES_WARPS);
    if (blocks > SQUARES_MOST_BLOCKS) blocks = SQUARES_MOST_BLOCKS;
    const struct weft_grid grid = {dim3((unsigned)blocks), dim3(SQUARES_THREADS),
                                   WEFT_NORM_WORDS * sizeof(uint64_t)};
    return launch(squares<Source>, grid, stream, source, before, wide, n, bins);
}

#endif
