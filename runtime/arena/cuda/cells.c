/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/arena/cuda/cells.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/units.h"

static CUmemAllocationProp of_gpu(const struct weft_cuda_cells *c)
{
    return (CUmemAllocationProp){
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = c->ordinal}};
}

/* Codes of driver and runtime have equal numbers. */
static enum weft_status fail_driver(CUresult code, const char *what, struct weft_error *err)
{
    return weft_cuda_fail((cudaError_t)code, what, err);
}

static enum weft_status fail_memory(const struct weft_cuda_cells *c, int64_t bytes,
                                    struct weft_error *err)
{
    size_t free_bytes = 0, total_bytes = 0;
    char want[WEFT_UNITS_TEXT_BYTES], left[WEFT_UNITS_TEXT_BYTES], all[WEFT_UNITS_TEXT_BYTES];
    (void)cudaMemGetInfo(&free_bytes, &total_bytes);
    return weft_fail(err, WEFT_E_SYSTEM,
                     "GPU %d has no room for an arena of %s: %s of %s are free. Look at nvidia-smi "
                     "for who has the rest, or lower the memory limit",
                     c->ordinal, weft_units_show_bytes(bytes, want),
                     weft_units_show_bytes((int64_t)free_bytes, left),
                     weft_units_show_bytes((int64_t)total_bytes, all));
}

static int compare_pages(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Cells begin at page 0 and at both ends of each stretch. The last cut is the number of pages. */
static enum weft_status cut_cells(struct weft_cuda_cells *c, const struct weft_arena_shape *shape,
                                  struct weft_error *err)
{
    int64_t n = 0, bytes;
    if (!weft_checked_mul(2 * shape->n_mappings + 2, (int64_t)sizeof(int64_t), &bytes))
        return weft_fail_memory(err, "the cells of an arena");
    c->first_pages = malloc((size_t)bytes);
    if (c->first_pages == NULL) return weft_fail_memory(err, "the cells of an arena");
    c->first_pages[n++] = 0;
    c->first_pages[n++] = shape->n_pages;
    for (int64_t i = 0; i < shape->n_mappings; i++) {
        c->first_pages[n++] = shape->mappings[i].first_page;
        c->first_pages[n++] = shape->mappings[i].first_page + shape->mappings[i].n_pages;
    }
    qsort(c->first_pages, (size_t)n, sizeof *c->first_pages, compare_pages);
    int64_t n_cuts = 1;
    for (int64_t i = 1; i < n; i++) {
        if (c->first_pages[i] != c->first_pages[n_cuts - 1])
            c->first_pages[n_cuts++] = c->first_pages[i];
    }
    c->cells = calloc((size_t)n_cuts, sizeof *c->cells);
    return c->cells != NULL ? WEFT_OK : weft_fail_memory(err, "the cells of an arena");
}

static int64_t cell_bytes(const struct weft_cuda_cells *c, int64_t cell)
{
    return (c->first_pages[cell + 1] - c->first_pages[cell]) * c->page_bytes;
}

static enum weft_status create_cells(struct weft_cuda_cells *c,
                                     const struct weft_arena_shape *shape, struct weft_error *err)
{
    const CUmemAllocationProp what = of_gpu(c);
    while (c->first_pages[c->n_cells] != shape->n_pages) {
        const CUresult code =
            c->driver.create(&c->cells[c->n_cells], (size_t)cell_bytes(c, c->n_cells), &what, 0);
        if (code == CUDA_ERROR_OUT_OF_MEMORY)
            return fail_memory(c, shape->n_pages * shape->page_bytes, err);
        if (code != CUDA_SUCCESS) return fail_driver(code, "take the GPU's memory", err);
        c->n_cells++;
    }
    return WEFT_OK;
}

/* The cell that begins at `page`. Each stretch begins with a cell. */
static int64_t cell_at(const struct weft_cuda_cells *c, int64_t page)
{
    int64_t low = 0, high = c->n_cells - 1;
    while (low < high) {
        const int64_t middle = low + (high - low + 1) / 2;
        if (c->first_pages[middle] <= page) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low;
}

static enum weft_status map_stretch(struct weft_cuda_cells *c,
                                    const struct weft_arena_mapping *mapping,
                                    struct weft_error *err)
{
    const int64_t end = mapping->first_page + mapping->n_pages;
    int64_t at = mapping->at;
    for (int64_t i = cell_at(c, mapping->first_page); i < c->n_cells && c->first_pages[i] < end;
         i++) {
        const int64_t bytes = cell_bytes(c, i);
        const CUresult code =
            c->driver.map(c->at + (CUdeviceptr)at, (size_t)bytes, 0, c->cells[i], 0);
        if (code != CUDA_SUCCESS) return fail_driver(code, "map the GPU's memory", err);
        c->seen[c->n_seen++] = (struct weft_cuda_seen){at, bytes};
        at += bytes;
    }
    const CUmemAccessDesc access = {
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = c->ordinal},
        .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    const CUresult code = c->driver.set_access(c->at + (CUdeviceptr)mapping->at,
                                               (size_t)(at - mapping->at), &access, 1);
    return code == CUDA_SUCCESS ? WEFT_OK : fail_driver(code, "use the GPU's memory", err);
}

static enum weft_status count_seen(struct weft_cuda_cells *c, const struct weft_arena_shape *shape,
                                   struct weft_error *err)
{
    int64_t n = 0;
    for (int64_t i = 0; i < shape->n_mappings; i++) {
        const struct weft_arena_mapping *m = &shape->mappings[i];
        int64_t cell = cell_at(c, m->first_page);
        for (; cell < c->n_cells && c->first_pages[cell] < m->first_page + m->n_pages; cell++)
            n++;
    }
    c->seen = calloc((size_t)n, sizeof *c->seen);
    return c->seen != NULL ? WEFT_OK : weft_fail_memory(err, "the mappings of an arena");
}

static enum weft_status map_cells(struct weft_cuda_cells *c, const struct weft_arena_shape *shape,
                                  struct weft_error *err)
{
    WEFT_TRY(cut_cells(c, shape, err));
    WEFT_TRY(create_cells(c, shape, err));
    WEFT_TRY(count_seen(c, shape, err));
    c->reserved_bytes = shape->span_bytes + 2 * c->guard_bytes;
    const CUresult code = c->driver.reserve(&c->reserved, (size_t)c->reserved_bytes, 0, 0, 0);
    if (code != CUDA_SUCCESS) return fail_driver(code, "reserve the GPU's addresses", err);
    c->at = c->reserved + (CUdeviceptr)c->guard_bytes;
    for (int64_t i = 0; i < shape->n_mappings; i++)
        WEFT_TRY(map_stretch(c, &shape->mappings[i], err));
    return WEFT_OK;
}

/* Fits the shape to the GPU's pages. A shape without mappings becomes one stretch, rounded up. */
static enum weft_status fit_shape(struct weft_cuda_cells *c, struct weft_arena_shape *shape,
                                  struct weft_arena_mapping *whole, struct weft_error *err)
{
    const CUmemAllocationProp what = of_gpu(c);
    size_t page_bytes = 0;
    const CUresult code =
        c->driver.granularity(&page_bytes, &what, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    if (code != CUDA_SUCCESS) return fail_driver(code, "ask for the GPU's pages", err);
    c->guard_bytes = (int64_t)page_bytes;
    if (shape->n_mappings > 0 && shape->page_bytes % c->guard_bytes == 0) return WEFT_OK;
    int64_t bytes;
    if (shape->n_mappings > 0 ||
        !weft_checked_round_up(shape->span_bytes, c->guard_bytes, &bytes)) {
        return weft_fail(err, WEFT_E_INTERNAL,
                         "an arena of pages of %lld bytes cannot be mapped on a GPU, which has "
                         "pages of %lld",
                         (long long)shape->page_bytes, (long long)c->guard_bytes);
    }
    *whole = (struct weft_arena_mapping){0, 0, bytes / c->guard_bytes};
    *shape = (struct weft_arena_shape){bytes, c->guard_bytes, whole->n_pages, whole, 1};
    return WEFT_OK;
}

enum weft_status weft_cuda_cells_map(struct weft_cuda_cells *cells,
                                     const struct weft_arena_shape *shape, struct weft_error *err)
{
    struct weft_arena_shape fitting = *shape;
    struct weft_arena_mapping whole;
    WEFT_TRY(weft_cuda_driver_open(&cells->driver, err));
    enum weft_status status = fit_shape(cells, &fitting, &whole, err);
    cells->page_bytes = fitting.page_bytes;
    if (status == WEFT_OK) status = map_cells(cells, &fitting, err);
    if (status != WEFT_OK) weft_cuda_cells_unmap(cells);
    return status;
}

void weft_cuda_cells_unmap(struct weft_cuda_cells *cells)
{
    const struct weft_cuda_driver *driver = &cells->driver;
    for (int64_t i = 0; i < cells->n_seen; i++) {
        const struct weft_cuda_seen *seen = &cells->seen[i];
        (void)driver->unmap(cells->at + (CUdeviceptr)seen->at, (size_t)seen->bytes);
    }
    for (int64_t i = 0; i < cells->n_cells; i++)
        (void)driver->release(cells->cells[i]);
    if (cells->reserved != 0)
        (void)driver->give_back(cells->reserved, (size_t)cells->reserved_bytes);
    free(cells->seen);
    free(cells->cells);
    free(cells->first_pages);
    weft_cuda_driver_close(&cells->driver);
    *cells = (struct weft_cuda_cells){.ordinal = cells->ordinal};
}

int64_t weft_cuda_cells_bytes(const struct weft_cuda_cells *cells)
{
    return cells->n_cells > 0 ? cells->first_pages[cells->n_cells] * cells->page_bytes : 0;
}
