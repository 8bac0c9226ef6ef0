/* An arena is the memory of one tier that a rank trains with: taken at once, between pages that
 * nobody may touch, and handed out by offset. What happens in it is work on a stream, at addresses
 * that the device alone reads and writes through: whoever issues work computes with them and never
 * looks there. A back end is a const table of functions found by name; "cpu" is always built: a
 * file of shared memory, which other ranks of the machine may map too. */
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

/* `name` as weft_device_open takes it. fd: an empty file of shared memory that others have too, and
 * that outlives the arena; -1: it makes its own. WEFT_E_ENVIRONMENT, WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_arena_open(const char *name, int fd, struct weft_arena **out,
                                               struct weft_error *err);
void weft_arena_close(struct weft_arena *arena); /* unmaps; accepts NULL */

/* `bytes` of zeroed memory, of which every page is there. At most once before weft_arena_unmap.
 * WEFT_E_SYSTEM names the limit that is in the way; then nothing is mapped. */
WEFT_MUST_USE enum weft_status weft_arena_map(struct weft_arena *arena, int64_t bytes,
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

/* Work. Host memory and ranges must stay as they are until the stream has been synchronised. */

/* Every byte of the ranges, counted from `at`, becomes `byte`. */
void weft_arena_fill(struct weft_arena *arena, struct weft_stream *stream, void *at,
                     const struct weft_range *ranges, int32_t n_ranges, unsigned char byte);
void weft_arena_write(struct weft_arena *arena, struct weft_stream *stream, void *to,
                      const void *host, int64_t bytes);
/* 4 aligned bytes are read at once, also while other work writes them. */
void weft_arena_read(struct weft_arena *arena, struct weft_stream *stream, const void *from,
                     int64_t bytes, void *host);

/* Finding uses of what is not live. A closed byte holds a pattern that is NaN in every dtype, and
 * in a build with AddressSanitizer it may not be touched by the processor; an open one is as any
 * other. Ranges are of the arena. */
enum { WEFT_ARENA_PATTERN = 0xFF };

/* First those of `dead` are looked through for the last byte that does not hold the pattern, and
 * closed; then those of `born` are opened. */
void weft_arena_renew(struct weft_arena *arena, struct weft_stream *stream,
                      const struct weft_range *dead, int32_t n_dead, const struct weft_range *born,
                      int32_t n_born);
/* Looks through [0, bytes), and writes to *end, the end of the last byte that was ever found not to
 * hold the pattern. */
void weft_arena_touched(struct weft_arena *arena, struct weft_stream *stream, int64_t bytes,
                        int64_t *end);

#endif
