/* SPDX-License-Identifier: Apache-2.0 */
/* Packing arranges an operand for AMX tiles. A tile is 16 rows of 64 bytes in bf16: of a [16 rows,
 * 32 of k], of b [16 pairs of k, 16 columns]. A panel holds 32 rows of a or 32 columns of b, two
 * tiles a step of 32 along k. Whole steps are padded with zeros.
 *
 * An f32 number is split into three bf16 parts, x = high + middle + low. Each is the remainder
 * rounded to nearest, 24 bits in all without loss. A step then holds two tiles each of high, middle
 * and low parts. A pair is k and k + 16 of its step, because that takes fewer instructions than
 * neighbours. Any order is correct if both operands share it. */
#ifndef WEFT_RUNTIME_NN_CPU_GEMM_AMX_PACK_H
#define WEFT_RUNTIME_NN_CPU_GEMM_AMX_PACK_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/nn/product.h"

enum {
    WEFT_AMX_SIDE = 32,  /* rows or columns of a panel */
    WEFT_AMX_STEP = 32,  /* of k */
    WEFT_AMX_TILE = 512, /* elements of bf16 */
};

/* A matrix to be packed. `along`: k runs along its stored rows. */
struct weft_amx_operand {
    enum weft_dtype dtype; /* f32 or bf16 */
    const void *from;
    int64_t stride, size; /* elements; rows of a or columns of b */
    bool along, is_a;
    const struct weft_product *triangle; /* product with this a as its triangle; or NULL */
};

/* Elements of bf16 in a panel with `depth` of k. */
static inline int64_t weft_amx_panel_elements(enum weft_dtype dtype, int64_t depth)
{
    const int64_t steps = (depth + WEFT_AMX_STEP - 1) / WEFT_AMX_STEP;
    return steps * 2 * WEFT_AMX_TILE * (dtype == WEFT_F32 ? 3 : 1);
}

/* Packing in progress: rows or columns [at, end), k in [first, end_k), as panels one after another.
 * It advances in units of about a hundred instructions, to run while tiles multiply. Of a triangle
 * only the stored rows' present part is packed. */
struct weft_amx_packing {
    const struct weft_amx_operand *operand;
    int64_t at, end, first, end_k;
    uint16_t *panels;
    int64_t panel; /* elements of a panel */
    int64_t i, k;  /* the next tile */
    int32_t unit, units_of_tile;
    bool done;
    _Alignas(64) float turned[2][256]; /* transposed and not yet split */
};

/* Begins packing. `panels` is aligned to 64 bytes; at < end, depth > 0. */
void weft_amx_pack_begin(struct weft_amx_packing *packing, const struct weft_amx_operand *operand,
                         int64_t at, int64_t end, int64_t first, int64_t depth, uint16_t *panels);
/* Number of units in all; an upper limit for a triangle. */
int64_t weft_amx_pack_units(const struct weft_amx_packing *packing);
/* Packs the next `units`, or all that remain. */
void weft_amx_pack_some(struct weft_amx_packing *packing, int64_t units);

#endif
