/* A cell is physical memory of a GPU under one handle, whole pages of 2 MiB. CUDA maps a handle
 * only from its beginning, so pages are cut into cells wherever a stretch of the shape begins or
 * ends: every stretch is whole cells then, one mapped after the other. Addresses are reserved
 * once, with a guard on both sides; what no stretch covers stays unmapped. */
#ifndef WEFT_RUNTIME_ARENA_CUDA_CELLS_H
#define WEFT_RUNTIME_ARENA_CUDA_CELLS_H

#include "runtime/arena/arena.h"
#include "runtime/arena/cuda/driver.h"

/* Bytes of addresses that were mapped by one call. */
struct weft_cuda_seen {
    int64_t at, bytes; /* `at` counts from byte 0 of the arena */
};

struct weft_cuda_cells {
    struct weft_cuda_driver driver;
    int ordinal; /* of the GPU */
    int64_t guard_bytes;
    CUdeviceptr reserved; /* 0: nothing is mapped */
    int64_t reserved_bytes;
    CUdeviceptr at;                      /* byte 0 */
    int64_t n_cells;                     /* those that exist */
    CUmemGenericAllocationHandle *cells; /* [n_cells] */
    int64_t *first_pages;                /* [n_cells + 1], the last is the number of pages */
    int64_t page_bytes;
    int64_t n_seen;
    struct weft_cuda_seen *seen; /* by `at` */
};

/* Memory by the shape; it is not zeroed. Pages are of a multiple of 2 MiB, but for a shape without
 * mappings, which is rounded up to it. WEFT_E_SYSTEM with what there is free, WEFT_E_INTERNAL; then
 * nothing is mapped. */
WEFT_MUST_USE enum weft_status weft_cuda_cells_map(struct weft_cuda_cells *cells,
                                                   const struct weft_arena_shape *shape,
                                                   struct weft_error *err);
/* Accepts what is half mapped, or not at all. No stream works there any more. */
void weft_cuda_cells_unmap(struct weft_cuda_cells *cells);
int64_t weft_cuda_cells_bytes(const struct weft_cuda_cells *cells);

#endif
