/* SPDX-License-Identifier: Apache-2.0 */
/* Chores are work that the core does while tiles multiply, a little after each step. It packs
 * panels, and adds a part's sums to earlier passes, moves them to c, or both. The product is
 * finished on the way to c, so c passes through memory once. */
#ifndef WEFT_RUNTIME_NN_CPU_GEMM_AMX_CHORES_H
#define WEFT_RUNTIME_NN_CPU_GEMM_AMX_CHORES_H

#include "runtime/nn/cpu/gemm/amx_pack.h"
#include "runtime/nn/cpu/gemm/finish.h"
#include "runtime/nn/product.h"

_Static_assert((int)WEFT_AMX_SIDE == (int)WEFT_FINISH_MOST, "a row of a part is finished at once");

struct weft_amx_chores {
    const struct weft_product *product;
    struct weft_amx_packing packing;
    int64_t units; /* of packing, in a portion */
    const float *sums;
    float *before; /* NULL in the first pass */
    bool complete; /* last pass: sums go to c */
    bool finished; /* c needs more than alpha and accumulation */
    int64_t m, n;  /* place in c: rows from m, columns from n */
    int64_t row, rows;
    int64_t ahead, ahead_rows; /* rows of c to prefetch, for the part being multiplied */
};

WEFT_ALWAYS_INLINE void weft_amx_bring_row(const struct weft_amx_chores *c, bool f32, int64_t n,
                                           const float *restrict sums, int64_t at)
{
    const struct weft_product *p = c->product;
    const float alpha = p->alpha;
    float row[WEFT_AMX_SIDE];
    for (int64_t j = 0; j < n; j++) {
        row[j] = alpha * sums[j];
    }
    for (int64_t j = 0; p->accumulate && j < n; j++) {
        row[j] += weft_finish_load(f32, p->c, at + j);
    }
    if (c->finished) {
        weft_finish_row(p, f32, n, row, c->n, at);
        return;
    }
    for (int64_t j = 0; j < n; j++) {
        weft_finish_store(f32, p->c, at + j, row[j]);
    }
}

static void weft_amx_bring_rows(struct weft_amx_chores *c, int64_t count)
{
    enum { SIDE = WEFT_AMX_SIDE };
    const struct weft_product *p = c->product;
    const int64_t n = p->n - c->n < SIDE ? p->n - c->n : SIDE;
    for (; count > 0 && c->row < c->rows; count--, c->row++) {
        const float *sums = c->sums + c->row * SIDE;
        if (c->before) {
            float *restrict before = c->before + c->row * SIDE;
            for (int64_t j = 0; j < SIDE; j++) {
                before[j] += sums[j];
            }
            sums = before;
        }
        if (!c->complete) continue;
        const int64_t at = (c->m + c->row) * p->c_stride + c->n;
        if (p->c_dtype == WEFT_F32) {
            n == SIDE ? weft_amx_bring_row(c, true, SIDE, sums, at)
                      : weft_amx_bring_row(c, true, n, sums, at);
        } else {
            n == SIDE ? weft_amx_bring_row(c, false, SIDE, sums, at)
                      : weft_amx_bring_row(c, false, n, sums, at);
        }
    }
}

WEFT_ALWAYS_INLINE void weft_amx_fetch(const void *x, int64_t at, int64_t size, bool to_write)
{
    if (!x) return;
    const char *row = (const char *)x + at * size;
    if (to_write) {
        __builtin_prefetch(row, 1, 3);
        __builtin_prefetch(row + (WEFT_AMX_SIDE - 1) * size, 1, 3);
    } else {
        __builtin_prefetch(row, 0, 3);
        __builtin_prefetch(row + (WEFT_AMX_SIDE - 1) * size, 0, 3);
    }
}

/* Prefetches rows of a part: a line or two from each of many pages, which the hardware does not
 * predict. */
static inline void weft_amx_fetch_rows(struct weft_amx_chores *c, int64_t count)
{
    const struct weft_product *p = c->product;
    const int64_t size = p->c_dtype == WEFT_F32 ? 4 : 2;
    for (; count > 0 && c->ahead_rows > 0; count--, c->ahead_rows--, c->ahead += p->c_stride) {
        weft_amx_fetch(p->finish.residual, c->ahead, size, false);
        weft_amx_fetch(p->finish.gelu_input, c->ahead, size, false);
        weft_amx_fetch(p->finish.gelu, c->ahead, size, true);
        weft_amx_fetch(p->c, c->ahead, size, true);
    }
}

/* Moves the next rows of the current part. */
static inline void weft_amx_bring(struct weft_amx_chores *c, int64_t count)
{
    if (c->ahead_rows > 0) weft_amx_fetch_rows(c, count);
    if (c->row < c->rows) weft_amx_bring_rows(c, count);
}

static inline void weft_amx_pack(struct weft_amx_chores *c)
{
    if (!c->packing.done) weft_amx_pack_some(&c->packing, c->units);
}

/* Announces the last multiplication for the part of c at row m, column n. */
static inline void weft_amx_announce(struct weft_amx_chores *c, int64_t m, int64_t n)
{
    const int64_t rows = c->product->m - m;
    c->ahead = m * c->product->c_stride + n;
    c->ahead_rows = rows < WEFT_AMX_SIDE ? rows : WEFT_AMX_SIDE;
}

/* Begins to move the part of c at row m, column n, after a pass has summed it. */
static inline void weft_amx_begin_part(struct weft_amx_chores *c, const float *sums, float *before,
                                       bool complete, int64_t m, int64_t n)
{
    weft_amx_bring(c, WEFT_AMX_SIDE);
    c->sums = sums;
    c->before = before;
    c->complete = complete;
    c->m = m;
    c->n = n;
    c->row = 0;
    c->rows = c->product->m - m < WEFT_AMX_SIDE ? c->product->m - m : WEFT_AMX_SIDE;
}

#endif
