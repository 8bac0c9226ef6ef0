/* SPDX-License-Identifier: Apache-2.0 */
/* A tile of c is 12 rows by 32 columns: 24 registers of AVX-512 that sum along k. Two more
 * registers hold a row of b, and one an element of a. Each element of a costs one load and two
 * multiply-adds. So loads are half of the core's capacity, and panels may stream from the second
 * cache. */
#ifndef WEFT_RUNTIME_NN_CPU_GEMM_AVX512_TILE_H
#define WEFT_RUNTIME_NN_CPU_GEMM_AVX512_TILE_H

#include "runtime/nn/product.h"

enum {
    WEFT_AVX512_ROWS = 12,
    WEFT_AVX512_COLUMNS = 32,
    WEFT_AVX512_VECTOR = 16,
};

/* Multiplies a tile: c = or += alpha times the sums over `depth` of k. After the last k the product
 * is finished. `a` points to rows along k, or to a panel with columns of 12 elements. `b` points to
 * a panel [depth, 32], aligned to 64 bytes. Meanwhile it prefetches lines: those of c and its
 * finish, and `fetch_lines` lines from `fetch` on for each row of a tile. */
struct weft_avx512_tile {
    const struct weft_product *product;
    int64_t m, n; /* place in c; whole, or up to the product's end */
    bool packed;  /* a is a panel of columns */
    bool add, last;
    const float *a, *b;
    int64_t a_stride; /* of rows */
    int64_t depth;
    const char *fetch;
    int64_t fetch_stride_bytes;
    int32_t fetch_lines;
};

void weft_avx512_multiply(const struct weft_avx512_tile *tile);

#endif
