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

/* By place, none over another. */
struct weft_ranges {
    const struct weft_range *ranges;
    int32_t n;
};

/* A stretch of pages, [first_page, first_page + n_pages), is seen at bytes `at` and on. */
struct weft_arena_mapping {
    int64_t at;
    int64_t first_page, n_pages;
};

/* The pages of all addresses. */
struct weft_arena_shape {
    int64_t span_bytes; /* of addresses, whole pages */
    int64_t page_bytes; /* a multiple of the system's page */
    int64_t n_pages;    /* of memory */
    /* By `at`, which is whole pages, and none over another. Pages that nothing maps are taken all
     * the same. */
    const struct weft_arena_mapping *mappings;
    int64_t n_mappings; /* 0: page after page, all of them */
};

/* The shape of `bytes` one after another, in the system's pages; no shape, which is refused, if
 * there are none, or more than can be counted. */
struct weft_arena_shape weft_arena_whole(int64_t bytes);

/* `name` as weft_device_open takes it. fd: an empty file of shared memory that others have too, and
 * that outlives the arena; -1: it makes its own. WEFT_E_ENVIRONMENT, WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_arena_open(const char *name, int fd, struct weft_arena **out,
                                               struct weft_error *err);
void weft_arena_close(struct weft_arena *arena); /* unmaps; accepts NULL */

/* Zeroed memory with every page in place. At most once before weft_arena_unmap. A stretch of
 * large pages' size keeps them if `at` and its place in memory are equal modulo their size.
 * WEFT_E_SYSTEM names the limit that is in the way; then nothing is mapped. */
WEFT_MUST_USE enum weft_status weft_arena_map(struct weft_arena *arena,
                                              const struct weft_arena_shape *shape,
                                              struct weft_error *err);
/* give_back false: the file keeps its pages until it is closed, for a peer may still read them. */
void weft_arena_unmap(struct weft_arena *arena, bool give_back);

/* The address of byte 0, for work. NULL while nothing is mapped. */
void *weft_arena_address(const struct weft_arena *arena);
/* Where byte 0 lies in this process's memory: for a communicator of processors. NULL where it does
 * not, or nothing is mapped. */
unsigned char *weft_arena_memory(const struct weft_arena *arena);
/* That the system has allocated; 0 while nothing is mapped. */
int64_t weft_arena_resident_bytes(const struct weft_arena *arena);
/* That the system keeps for the arena's addresses, guards included; 0 while nothing is mapped. */
int64_t weft_arena_mappings(const struct weft_arena *arena);

/* Work. Host memory and ranges must stay as they are until the stream has been synchronised. */

/* Every byte of the ranges, counted from `at`, becomes `byte`. */
void weft_arena_fill(struct weft_arena *arena, struct weft_stream *stream, void *at,
                     const struct weft_range *ranges, int32_t n_ranges, unsigned char byte);
void weft_arena_write(struct weft_arena *arena, struct weft_stream *stream, void *to,
                      const void *host, int64_t bytes);
/* 4 aligned bytes are read at once, also while other work writes them. */
void weft_arena_read(struct weft_arena *arena, struct weft_stream *stream, const void *from,
                     int64_t bytes, void *host);

/* Finding uses of what is not live, in an arena that is watched. What nobody holds has a pattern
 * that is NaN in every dtype. In a build with AddressSanitizer a closed byte may not be touched by
 * the processor, and in any build a closed page may not. Ranges are of the arena's addresses. */
enum { WEFT_ARENA_PATTERN = 0xFF };

/* Work: every page gets the pattern. Once, before the rest. WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_arena_watch(struct weft_arena *arena,
                                                struct weft_stream *stream, struct weft_error *err);

/* Who holds the memory changes. Pages in whole. */
struct weft_arena_turn {
    /* Bytes beside what dies, that should hold the pattern still. */
    const struct weft_range *margins;
    struct weft_ranges dead;         /* bytes: looked through, filled with the pattern, closed */
    struct weft_ranges dead_pages;   /* of all of them, whoever else is there */
    struct weft_ranges closed_pages; /* where nobody is any more */
    struct weft_ranges born, born_pages; /* opened */
    int32_t n_margins;
};
/* *margin becomes the index of the first margin that does not hold the pattern, if one does not;
 * and gets it again. */
void weft_arena_renew(struct weft_arena *arena, struct weft_stream *stream,
                      const struct weft_arena_turn *turn, int32_t *margin);
/* Opens the whole arena again. */
void weft_arena_open_all(struct weft_arena *arena, struct weft_stream *stream);
/* Looks through the ranges, which are open, and writes to *bytes how large the pages are together
 * in which anything was ever found but the pattern. */
void weft_arena_touched(struct weft_arena *arena, struct weft_stream *stream,
                        const struct weft_ranges *ranges, int64_t *bytes);

#endif
