/* A view is a shape of a file of memory in this process's addresses: an arena's own, or one of a
 * peer's. Guards lie between its mappings and on both sides. Shared by arenas of the processor's
 * memory and by the communicator that maps their files. */
#ifndef WEFT_RUNTIME_ARENA_VIEW_H
#define WEFT_RUNTIME_ARENA_VIEW_H

#include <stddef.h>

#include "runtime/arena/arena.h"

struct weft_arena_view {
    void *reservation; /* NULL: nothing is reserved */
    size_t reservation_bytes;
    unsigned char *at; /* where byte 0 of the shape is; NULL: nothing is mapped */
    int64_t n_mappings;
};

/* The system's page, and the bytes of the large ones that it makes of a file's pages. */
int64_t weft_arena_system_page_bytes(void);
#define WEFT_ARENA_LARGE_PAGE_BYTES (INT64_C(2) << 20)

struct weft_arena_view_options {
    int fd;
    const struct weft_arena_shape *shape; /* sound */
    bool writes;                          /* else it may be read only */
    bool populates;                       /* first uses do not pay for page faults */
    int64_t below_bytes;                  /* of addresses, whole pages, kept free in front */
    const struct weft_ranges *reads;      /* pages without any of these are guards; NULL: none is */
};

/* WEFT_E_SYSTEM naming the limit; then nothing is mapped. The view is zeroed before. */
WEFT_MUST_USE enum weft_status weft_arena_view_map(struct weft_arena_view *view,
                                                   const struct weft_arena_view_options *options,
                                                   struct weft_error *err);
void weft_arena_view_unmap(struct weft_arena_view *view); /* accepts what is not mapped */

#endif
