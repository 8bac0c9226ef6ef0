/* Packing lays an operand out for AMX tiles. A tile is 16 rows of 64 bytes: of a [16 rows, 32 of
 * k], of b [16 pairs of k, 16 columns], in bf16. A panel holds 32 rows of a or 32 columns of b,
 * padded with zeros to whole steps along k of 32: two tiles a step.
 *
 * An f32 number is split into three bf16 parts, x = high + middle + low, each the remainder rounded
 * to nearest: 24 bits in all, nothing lost. A step then holds two tiles of high parts, two of
 * middle ones, two of low ones; a pair is k and k + 16 of its step, which takes fewer instructions
 * than neighbours, and any order will do that both operands have. */
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

/* A matrix of which panels are packed. Where k runs along the rows as they are stored, `along` says
 * so. */
struct weft_amx_operand {
    enum weft_dtype dtype; /* f32 or bf16 */
    const void *from;
    int64_t stride, size; /* elements; rows of a or columns of b */
    bool along, is_a;
    const struct weft_product *triangle; /* whose a it is; or NULL */
};

/* Elements of bf16 of a panel with `depth` of k. */
static inline int64_t weft_amx_panel_elements(enum weft_dtype dtype, int64_t depth)
{
    const int64_t steps = (depth + WEFT_AMX_STEP - 1) / WEFT_AMX_STEP;
    return steps * 2 * WEFT_AMX_TILE * (dtype == WEFT_F32 ? 3 : 1);
}

/* Packing under way: rows or columns [at, end) of k in [first, end_k), as panels one after the
 * other. It goes on in units of about a hundred instructions, so that it can be done while tiles
 * multiply. Of a triangle's rows as stored only what lies before their end is packed. */
struct weft_amx_packing {
    const struct weft_amx_operand *operand;
    int64_t at, end, first, end_k;
    uint16_t *panels;
    int64_t panel; /* elements of one */
    int64_t i, k;  /* the tile that is next */
    int32_t unit, units_of_tile;
    bool done;
    _Alignas(64) float turned[2][256]; /* what of it is turned and not yet split */
};

/* `panels` begin at a multiple of 64 bytes; at < end, depth > 0. */
void weft_amx_pack_begin(struct weft_amx_packing *packing, const struct weft_amx_operand *operand,
                         int64_t at, int64_t end, int64_t first, int64_t depth, uint16_t *panels);
/* The number of units of all of it; of a triangle, at most. */
int64_t weft_amx_pack_units(const struct weft_amx_packing *packing);
/* The next `units`, or what there is left. */
void weft_amx_pack_some(struct weft_amx_packing *packing, int64_t units);

#endif
