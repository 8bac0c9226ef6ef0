/* SPDX-License-Identifier: Apache-2.0 */
/* An arena is a rank's memory in one tier: pages, allocated at once, and addresses that its shape
 * maps to them. Several addresses may share a page. Unmapped addresses and the pages on both sides
 * of the arena are guards: an access to them is an error. Only work on a stream reads and writes
 * the arena. The issuing thread computes with addresses and never dereferences them. A back end is
 * a const table of functions found by name. "cpu" is always built: a file of shared memory, which
 * other ranks of the machine may map. */
#ifndef WEFT_RUNTIME_ARENA_ARENA_H
#define WEFT_RUNTIME_ARENA_ARENA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "runtime/device/device.h"

struct weft_arena;

/* Bytes [begin, end). */
struct weft_range {
    int64_t begin, end;
};

/* Sorted by place, without overlap. */
struct weft_ranges {
    const struct weft_range *ranges;
    int32_t n;
};

/* Maps pages [first_page, first_page + n_pages) to the bytes from `at` on. */
struct weft_arena_mapping {
    int64_t at;
    int64_t first_page, n_pages;
};

/* Addresses and their pages. */
struct weft_arena_shape {
    int64_t span_bytes; /* of addresses; whole pages */
    int64_t page_bytes; /* a multiple of the system's page */
    int64_t n_pages;    /* of memory */
    /* Sorted by `at`, which is a multiple of the page, without overlap. Unmapped pages are
     * allocated too. */
    const struct weft_arena_mapping *mappings;
    int64_t n_mappings; /* 0: all pages, in order */
};

/* The shape that maps `bytes` bytes in order, in the system's pages. If bytes is not positive or
 * too large, the result is empty, and weft_arena_map refuses it. */
struct weft_arena_shape weft_arena_whole(int64_t bytes);

/* Opens an arena. `name` is as in weft_device_open. `fd` is an empty file of shared memory that
 * other ranks have too; it must outlive the arena. With -1 the arena makes its own.
 * WEFT_E_ENVIRONMENT, WEFT_E_SYSTEM. Free with weft_arena_close. */
WEFT_MUST_USE enum weft_status weft_arena_open(const char *name, int fd, struct weft_arena **out,
                                               struct weft_error *err);
void weft_arena_close(struct weft_arena *arena); /* unmaps; accepts NULL */

/* Maps zeroed memory with every page present. Unmap before mapping again. A stretch can use large
 * pages if its `at` and its place in memory are equal modulo their size. WEFT_E_SYSTEM names the
 * limit that was hit; then nothing is mapped. */
WEFT_MUST_USE enum weft_status weft_arena_map(struct weft_arena *arena,
                                              const struct weft_arena_shape *shape,
                                              struct weft_error *err);
/* With give_back false the file keeps its pages until it is closed, because a peer may still read
 * them. */
void weft_arena_unmap(struct weft_arena *arena, bool give_back);

/* Address of byte 0, for work. NULL while nothing is mapped. */
void *weft_arena_address(const struct weft_arena *arena);
/* Address of byte 0 in this process's memory, for communicators that run on the CPU. NULL if the
 * memory is elsewhere, or nothing is mapped. */
unsigned char *weft_arena_memory(const struct weft_arena *arena);
/* Bytes allocated by the system; 0 if nothing is mapped. */
int64_t weft_arena_resident_bytes(const struct weft_arena *arena);
/* Mappings of the system for these addresses, with guards; 0 if nothing is mapped. */
int64_t weft_arena_mappings(const struct weft_arena *arena);

/* Work on a stream. Host memory and ranges must stay unchanged until the stream has been
 * synchronised. */

/* Sets every byte of the ranges, counted from `at`, to `byte`. */
void weft_arena_fill(struct weft_arena *arena, struct weft_stream *stream, void *at,
                     const struct weft_range *ranges, int32_t n_ranges, unsigned char byte);
/* Copies `bytes` bytes of the host to the arena. */
void weft_arena_write(struct weft_arena *arena, struct weft_stream *stream, void *to,
                      const void *host, int64_t bytes);
/* Copies `bytes` bytes of the arena to the host. A read of 4 aligned bytes is atomic, even while
 * other work writes them. */
void weft_arena_read(struct weft_arena *arena, struct weft_stream *stream, const void *from,
                     int64_t bytes, void *host);

/* Watching finds uses of dead memory. Memory without an owner holds a pattern that is NaN in every
 * dtype. With AddressSanitizer an access by the CPU to a closed byte is an error. In any build an
 * access to a closed page is one. Ranges are of the arena's addresses. */
enum { WEFT_ARENA_PATTERN = 0xFF };

/* Fills all pages with the pattern, as work. Call it once, before the functions below.
 * WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_arena_watch(struct weft_arena *arena,
                                                struct weft_stream *stream, struct weft_error *err);

/* A change of memory's owners, in whole pages. */
struct weft_arena_turn {
    /* bytes next to dead ones; they should still hold the pattern */
    const struct weft_range *margins;
    struct weft_ranges dead;             /* bytes to search, fill with the pattern, and close */
    struct weft_ranges dead_pages;       /* pages with dead bytes, even if others use them too */
    struct weft_ranges closed_pages;     /* pages without a live byte */
    struct weft_ranges born, born_pages; /* opened */
    int32_t n_margins;
};
/* Makes the turn. *margin gets the index of the first margin without the pattern, if there is one.
 * The margin is filled again. */
void weft_arena_renew(struct weft_arena *arena, struct weft_stream *stream,
                      const struct weft_arena_turn *turn, int32_t *margin);
/* Opens the whole arena. */
void weft_arena_open_all(struct weft_arena *arena, struct weft_stream *stream);
/* Searches the ranges, which must be open. Writes to *bytes the total size of all pages in which
 * anything but the pattern was ever found. */
void weft_arena_touched(struct weft_arena *arena, struct weft_stream *stream,
                        const struct weft_ranges *ranges, int64_t *bytes);

#endif
