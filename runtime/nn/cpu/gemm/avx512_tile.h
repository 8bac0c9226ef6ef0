/* A tile of c is 12 rows by 32 columns: 24 registers of AVX-512 that sum along k, beside two for a
 * row of b and one for an element of a. With every element of a it takes one load and two
 * multiply-adds, so that loads are half of what the core can do meanwhile, and panels may stream
 * from the second cache. */
#ifndef WEFT_RUNTIME_NN_CPU_GEMM_AVX512_TILE_H
#define WEFT_RUNTIME_NN_CPU_GEMM_AVX512_TILE_H

#include "runtime/nn/product.h"

enum {
    WEFT_AVX512_ROWS = 12,
    WEFT_AVX512_COLUMNS = 32,
    WEFT_AVX512_VECTOR = 16,
};

/* What to multiply: c's tile = or += alpha times the sums over `depth` of k, and where that is the
 * last of k the product is finished. `a` points to rows along k, or to a panel
 * of which every 12 elements are a column; `b` to a panel of [depth, 32], aligned to 64 bytes.
 *
 * Meanwhile lines are fetched that are needed next: c's own and those of what finishes it, and
 * of each of as many rows as a tile has, `fetch_lines` from `fetch` on. */
struct weft_avx512_tile {
    const struct weft_product *product;
    int64_t m, n; /* where in c; the tile ends with the product, or is whole */
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
