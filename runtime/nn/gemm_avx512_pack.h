/* Packing lays out what tiles of AVX-512 stream (gemm_avx512_tile.h): b always, in panels of 32
 * columns, of which a row is 32 elements; and a where it is stored by k, in panels of 12 rows of
 * c, of which a column is 12 elements. Other rows of a are read where they lie. */
#ifndef WEFT_RUNTIME_NN_GEMM_AVX512_PACK_H
#define WEFT_RUNTIME_NN_GEMM_AVX512_PACK_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/nn/gemm_avx512_tile.h"

/* Four panels of a begin and end with lines of memory. */
enum { WEFT_AVX512_GROUP = 4 * WEFT_AVX512_ROWS };

/* Elements of a panel of a, with room behind the last column for a whole vector. */
static inline int64_t weft_avx512_panel_elements(int64_t depth)
{
    return (depth * WEFT_AVX512_ROWS + 2 * WEFT_AVX512_VECTOR - 1) / WEFT_AVX512_VECTOR *
           WEFT_AVX512_VECTOR;
}

/* Columns [n, n + columns) of op(b), of k from `k` on, panel after panel; columns that are missing
 * in the last panel are 0. `panels` begin at a multiple of 64 bytes. */
void weft_avx512_pack_b(const struct weft_product *product, int64_t n, int64_t columns, int64_t k,
                        int64_t depth, float *panels);

/* At most a group of rows of op(a) from m on, of a that is transposed; what is missing is 0
 * or not written. `panels` begin at a multiple of 64 bytes. */
void weft_avx512_pack_a(const struct weft_product *product, int64_t m, int64_t k, int64_t depth,
                        float *panels);

#endif
