/* SPDX-License-Identifier: Apache-2.0 */
/* A cell is physical GPU memory under one handle, in whole pages of 2 MiB. CUDA maps a handle only
 * from its beginning. So cells are cut at the ends of each stretch, and a stretch is a row of whole
 * cells. Addresses are reserved once, with a guard on both sides. Addresses outside of stretches
 * stay unmapped. */
#ifndef WEFT_RUNTIME_ARENA_CUDA_CELLS_H
#define WEFT_RUNTIME_ARENA_CUDA_CELLS_H

#include "runtime/arena/arena.h"
#include "runtime/device/cuda/calls.h"
#include "runtime/device/cuda/driver.h"

/* Addresses mapped by one call. */
struct weft_cuda_seen {
    int64_t at, bytes; /* `at` is an offset from byte 0 of the arena */
};

struct weft_cuda_cells {
    struct weft_cuda_driver driver;
    int ordinal; /* of the GPU */
    int64_t guard_bytes;
    CUdeviceptr reserved; /* 0: nothing is mapped */
    int64_t reserved_bytes;
    CUdeviceptr at;                      /* byte 0 */
    int64_t n_cells;                     /* created ones */
    CUmemGenericAllocationHandle *cells; /* [n_cells] */
    int64_t *first_pages;                /* [n_cells + 1], the last is the number of pages */
    int64_t page_bytes;
    int64_t n_seen;
    struct weft_cuda_seen *seen; /* sorted by `at` */
};

/* Maps memory by the shape. The memory is not zeroed. Pages must be a multiple of 2 MiB; a shape
 * without mappings is rounded up to it. WEFT_E_SYSTEM with the free memory, WEFT_E_INTERNAL; then
 * nothing is mapped. */
WEFT_MUST_USE enum weft_status weft_cuda_cells_map(struct weft_cuda_cells *cells,
                                                   const struct weft_arena_shape *shape,
                                                   struct weft_error *err);
/* Accepts half-mapped and unmapped cells. No stream may use the memory any more. */
void weft_cuda_cells_unmap(struct weft_cuda_cells *cells);
int64_t weft_cuda_cells_bytes(const struct weft_cuda_cells *cells);

#endif
