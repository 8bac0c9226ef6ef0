/* SPDX-License-Identifier: Apache-2.0 */
/* Shared parts of attention's kernels: tiles of a head's rows in shared memory, and a warp's
 * products of BANDS bands of 16 rows with them. In tiles a row has SIZE elements, padded with 0.
 * The pitch places eight rows in different banks. A word of the right operand serves all bands:
 * with one band, shared memory delivers words more slowly than the tensor cores take them. */
#ifndef WEFT_RUNTIME_NN_CUDA_KERNELS_ATTEND_H
#define WEFT_RUNTIME_NN_CUDA_KERNELS_ATTEND_H

#include "runtime/nn/cuda/kernels/tensor.h"

enum {
    ATTEND_WARPS = 4,
    ATTEND_THREADS = ATTEND_WARPS * WARP,
    ATTEND_BAND = 16,
    ATTEND_CHUNK = 8 /* elements moved by a copy */
};
/* Rows of a block whose warps have BANDS bands each. */
template <int BANDS> struct attend_rows {
    enum { OF_WARP = BANDS * ATTEND_BAND, OF_BLOCK = ATTEND_WARPS * OF_WARP };
};
static const float ATTEND_LOG2_E = 1.44269504088896341f;

template <int SIZE> struct attend_pitch {
    enum { ELEMENTS = SIZE + ATTEND_CHUNK };
};

template <typename T, int ROWS, int SIZE> struct attend_tile {
    T rows[ROWS][attend_pitch<SIZE>::ELEMENTS];
};

/* Rows of one head of one sample, `stride` elements apart. */
template <typename T> struct head_rows {
    T *from;
    int64_t stride, count;
    int32_t size;
};

/* The row of chunk `chunk` of a tile, with CHUNKS consecutive chunks in each row. Short rows are
 * moved two at a time. Rows four apart lie in different banks. */
template <int CHUNKS> GPU int row_of_chunk(int chunk)
{
    const int row = chunk / CHUNKS;
    return CHUNKS == 4 ? (row & ~7) | (row & 1) << 2 | (row & 7) >> 1 : row;
}

/* Starts to copy rows from `first` on. Rows after the last are 0. */
template <typename T, int ROWS, int SIZE>
GPU void start_rows(const head_rows<const T> &rows, int64_t first, attend_tile<T, ROWS, SIZE> *to)
{
    enum {
        CHUNKS = SIZE / ATTEND_CHUNK,
        STEP = ATTEND_THREADS / CHUNKS,
        EVEN = ATTEND_THREADS % CHUNKS == 0 && STEP % 8 == 0
    };
    if constexpr (EVEN) {
        /* A thread has one column, and rows STEP apart. */
        const int row = row_of_chunk<CHUNKS>((int)threadIdx.x);
        const int column = (int)(threadIdx.x % CHUNKS) * ATTEND_CHUNK;
        const T *from = rows.from + (first + row) * rows.stride + column;
        const int64_t left = column < rows.size ? rows.count - first : 0;
        const int n = left < ROWS ? (int)left : ROWS;
#pragma unroll
        for (int at = 0; at < ROWS; at += STEP) {
            const bool there = row + at < n;
            start_copy(&to->rows[row + at][column], there ? from + at * rows.stride : rows.from,
                       there);
        }
    } else {
        /* Copies are asynchronous. Unrolled, their addresses would take registers. */
#pragma unroll 1
        for (int chunk = (int)threadIdx.x; chunk < ROWS * CHUNKS; chunk += ATTEND_THREADS) {
            const int row = row_of_chunk<CHUNKS>(chunk), column = chunk % CHUNKS * ATTEND_CHUNK;
            const bool there = first + row < rows.count && column < rows.size;
            const T *from = there ? rows.from + (first + row) * rows.stride + column : rows.from;
            start_copy(&to->rows[row][column], from, there);
        }
    }
}

/* Loads words of 16 rows and 16 columns as a left operand. */
template <typename T, int ROWS, int SIZE>
GPU void left_words(const attend_tile<T, ROWS, SIZE> *tile, int row, int column, uint32_t (&to)[4])
{
    const int lane = (int)(threadIdx.x % WARP), matrix = lane / 8;
    load_matrices(to, &tile->rows[row + matrix % 2 * 8 + lane % 8][column + matrix / 2 * 8]);
}

/* Loads rows `row` to row + 16 as columns of a right operand, 16 from `k` on. Each eight are two
 * words. */
template <typename T, int ROWS, int SIZE>
GPU void right_words(const attend_tile<T, ROWS, SIZE> *tile, int row, int k, uint32_t (&to)[4])
{
    const int lane = (int)(threadIdx.x % WARP), matrix = lane / 8;
    load_matrices(to, &tile->rows[row + matrix / 2 * 8 + lane % 8][k + matrix % 2 * 8]);
}

/* Loads rows k to k + 16 as rows of a right operand, columns `column` to column + 16. */
template <typename T, int ROWS, int SIZE>
GPU void right_words_turned(const attend_tile<T, ROWS, SIZE> *tile, int k, int column,
                            uint32_t (&to)[4])
{
    const int lane = (int)(threadIdx.x % WARP), matrix = lane / 8;
    load_matrices_turned(to, &tile->rows[k + matrix % 2 * 8 + lane % 8][column + matrix / 2 * 8]);
}

/* sums [BANDS x 16, ROWS] = rows from `row` of left times all rows of right, transposed. */
template <typename T, int BANDS, int LEFT, int ROWS, int SIZE>
GPU void multiply_rows(const attend_tile<T, LEFT, SIZE> *left, int row,
                       const attend_tile<T, ROWS, SIZE> *right, float (&sums)[BANDS][ROWS / 8][4])
{
#pragma unroll
    for (int band = 0; band < BANDS; band++) {
#pragma unroll
        for (int i = 0; i < ROWS / 8; i++) {
#pragma unroll
            for (int j = 0; j < 4; j++) {
                sums[band][i][j] = 0;
            }
        }
    }
    /* Words of a whole row at once would take too many registers. */
#pragma unroll 2
    for (int k = 0; k < SIZE; k += 16) {
        uint32_t a[BANDS][4], b[4];
#pragma unroll
        for (int band = 0; band < BANDS; band++) {
            left_words(left, row + band * ATTEND_BAND, k, a[band]);
        }
#pragma unroll
        for (int i = 0; i < ROWS; i += 16) {
            right_words(right, i, k, b);
#pragma unroll
            for (int band = 0; band < BANDS; band++) {
                multiply_add<T>(sums[band][i / 8], a[band], b[0], b[1]);
                multiply_add<T>(sums[band][i / 8 + 1], a[band], b[2], b[3]);
            }
        }
    }
}

/* sums [BANDS x 16, SIZE] += weights [BANDS x 16, ROWS], rounded to T, times right. */
template <typename T, int BANDS, int ROWS, int SIZE>
GPU void weigh_rows(const float (&weights)[BANDS][ROWS / 8][4],
                    const attend_tile<T, ROWS, SIZE> *right, float (&sums)[BANDS][SIZE / 8][4])
{
#pragma unroll
    for (int k = 0; k < ROWS; k += 16) {
        uint32_t a[BANDS][4], b[4];
#pragma unroll
        for (int band = 0; band < BANDS; band++) {
            const float(&w)[4] = weights[band][k / 8], (&v)[4] = weights[band][k / 8 + 1];
            a[band][0] = word_of<T>(w[0], w[1]);
            a[band][1] = word_of<T>(w[2], w[3]);
            a[band][2] = word_of<T>(v[0], v[1]);
            a[band][3] = word_of<T>(v[2], v[3]);
        }
#pragma unroll
        for (int i = 0; i < SIZE; i += 16) {
            right_words_turned(right, k, i, b);
#pragma unroll
            for (int band = 0; band < BANDS; band++) {
                multiply_add<T>(sums[band][i / 8], a[band], b[0], b[1]);
                multiply_add<T>(sums[band][i / 8 + 1], a[band], b[2], b[3]);
            }
        }
    }
}

/* Writes the warp's rows of sums. Each half of a band is multiplied by its own factor. The rows
 * pass through the warp's own rows of a tile that no other warp reads. */
template <typename T, int BANDS, int ROWS, int SIZE>
GPU void store_rows(const float (&sums)[BANDS][SIZE / 8][4], const float (&by)[BANDS][2],
                    attend_tile<T, ROWS, SIZE> *tile, const head_rows<T> &to, int64_t first)
{
    enum { CHUNKS = SIZE / ATTEND_CHUNK, MINE = attend_rows<BANDS>::OF_WARP };
    const int lane = (int)(threadIdx.x % WARP), row = (int)(threadIdx.x / WARP) * MINE;
    __syncwarp();
#pragma unroll
    for (int band = 0; band < BANDS; band++) {
#pragma unroll
        for (int i = 0; i < SIZE / 8; i++) {
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const float(&x)[4] = sums[band][i], scale = by[band][half];
                T *words = &tile->rows[row + band * ATTEND_BAND + half * 8 + lane / 4][i * 8];
                *(uint32_t *)&words[lane % 4 * 2] =
                    word_of<T>(x[2 * half] * scale, x[2 * half + 1] * scale);
            }
        }
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < MINE * CHUNKS; i += WARP) {
        const int chunk = i + lane, at = row + row_of_chunk<CHUNKS>(chunk),
                  column = chunk % CHUNKS * ATTEND_CHUNK;
        if (first + at >= to.count || column >= to.size) continue;
        store_16(to.from + (first + at) * to.stride + column, load_16(&tile->rows[at][column]));
    }
}

#endif
