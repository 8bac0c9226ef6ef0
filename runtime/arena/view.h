/* SPDX-License-Identifier: Apache-2.0 */
/* A view maps a shape of a memory file to this process's addresses: its own arena, or a peer's.
 * Guards lie between mappings and on both sides. Arenas of CPU memory and the communicator that
 * maps their files share it. */
#ifndef WEFT_RUNTIME_ARENA_VIEW_H
#define WEFT_RUNTIME_ARENA_VIEW_H

#include <stddef.h>

#include "runtime/arena/arena.h"

struct weft_arena_view {
    void *reservation; /* NULL: nothing is reserved */
    size_t reservation_bytes;
    unsigned char *at; /* address of byte 0 of the shape; NULL: nothing is mapped */
    int64_t n_mappings;
};

/* Bytes of the system's page, and of a large page of a file. */
int64_t weft_arena_system_page_bytes(void);
#define WEFT_ARENA_LARGE_PAGE_BYTES (INT64_C(2) << 20)

struct weft_arena_view_options {
    int fd;
    const struct weft_arena_shape *shape; /* checked */
    bool writes;                          /* otherwise read only */
    bool populates;                       /* avoids page faults at first use */
    int64_t below_bytes;                  /* of addresses, whole pages, kept free in front */
    const struct weft_ranges *reads; /* pages without any of these become guards; NULL: none do */
};

/* Maps a view that must be zeroed. WEFT_E_SYSTEM names the limit that was hit; then nothing is
 * mapped. */
WEFT_MUST_USE enum weft_status weft_arena_view_map(struct weft_arena_view *view,
                                                   const struct weft_arena_view_options *options,
                                                   struct weft_error *err);
void weft_arena_view_unmap(struct weft_arena_view *view); /* accepts an unmapped view */

#endif
