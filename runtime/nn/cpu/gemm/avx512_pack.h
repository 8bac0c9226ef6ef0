/* SPDX-License-Identifier: Apache-2.0 */
/* Packing arranges operands for tiles of AVX-512 (avx512_tile.h). b is always packed, in panels of
 * 32 columns with rows of 32 elements. a stored by k is packed in panels of 12 rows of c with
 * columns of 12 elements. Rows of a that would share a few sets of the first cache are copied as
 * rows with a larger stride. Other rows of a are read in place. */
#ifndef WEFT_RUNTIME_NN_CPU_GEMM_AVX512_PACK_H
#define WEFT_RUNTIME_NN_CPU_GEMM_AVX512_PACK_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/nn/cpu/gemm/avx512_tile.h"

/* Eight panels of a are whole lines of memory and use enough of each page. */
enum { WEFT_AVX512_GROUP = 8 * WEFT_AVX512_ROWS };

/* Stride of packed rows of a; 12 of them are a panel. Columns of 12 need less, and the rest leaves
 * room for a whole vector after them. */
static inline int64_t weft_avx512_row_elements(int64_t depth)
{
    return (depth + 2 * WEFT_AVX512_VECTOR - 1) / WEFT_AVX512_VECTOR * WEFT_AVX512_VECTOR;
}

/* True if a is packed: columns, or rows at a stride of whole pages. */
static inline bool weft_avx512_packs_a(const struct weft_product *product)
{
    enum { PAGE = 1024 };
    return product->transpose_a || product->a_stride % PAGE == 0;
}

/* Packs columns [n, n + columns) of op(b), from k on, panel after panel. Missing columns of the
 * last panel are 0. `panels` is aligned to 64 bytes. */
void weft_avx512_pack_b(const struct weft_product *product, int64_t n, int64_t columns, int64_t k,
                        int64_t depth, float *panels);

/* Packs at most a group of rows of op(a) from m on, panel after panel. Missing rows are 0 or not
 * written. `panels` is aligned to 64 bytes. */
void weft_avx512_pack_a(const struct weft_product *product, int64_t m, int64_t k, int64_t depth,
                        float *panels);

#endif
