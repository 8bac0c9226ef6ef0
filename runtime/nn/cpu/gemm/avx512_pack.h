/* Packing lays out what tiles of AVX-512 stream (avx512_tile.h): b always, in panels of 32
 * columns, of which a row is 32 elements; a where it is stored by k, in panels of 12 rows of c, of
 * which a column is 12 elements; and rows of a that would meet in a few sets of the first cache, as
 * rows, a little further apart. Others are read where they lie. */
#ifndef WEFT_RUNTIME_NN_CPU_GEMM_AVX512_PACK_H
#define WEFT_RUNTIME_NN_CPU_GEMM_AVX512_PACK_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/nn/cpu/gemm/avx512_tile.h"

/* Eight panels of a begin and end with lines of memory, and take enough of each page. */
enum { WEFT_AVX512_GROUP = 8 * WEFT_AVX512_ROWS };

/* From a packed row of a to the next one: 12 of them are a panel. Behind columns of 12, which need
 * less, there is room for a whole vector. */
static inline int64_t weft_avx512_row_elements(int64_t depth)
{
    return (depth + 2 * WEFT_AVX512_VECTOR - 1) / WEFT_AVX512_VECTOR * WEFT_AVX512_VECTOR;
}

/* Whether a is packed: columns, or rows that are whole pages apart. */
static inline bool weft_avx512_packs_a(const struct weft_product *product)
{
    enum { PAGE = 1024 };
    return product->transpose_a || product->a_stride % PAGE == 0;
}

/* Columns [n, n + columns) of op(b), of k from `k` on, panel after panel; columns that are missing
 * in the last panel are 0. `panels` begin at a multiple of 64 bytes. */
void weft_avx512_pack_b(const struct weft_product *product, int64_t n, int64_t columns, int64_t k,
                        int64_t depth, float *panels);

/* At most a group of rows of op(a) from m on, panel after panel; what is missing is 0 or not
 * written. `panels` begin at a multiple of 64 bytes. */
void weft_avx512_pack_a(const struct weft_product *product, int64_t m, int64_t k, int64_t depth,
                        float *panels);

#endif
