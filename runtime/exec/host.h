/* What is in the host's memory: master and moments of a unit, and what a layer saved until its
 * backward, in pages of a tier, which are copied to the arena and back. Shared by the files of this
 * folder alone. */
#ifndef WEFT_RUNTIME_EXEC_HOST_H
#define WEFT_RUNTIME_EXEC_HOST_H

#include <stdint.h>

#include "base/status.h"
#include "runtime/arena/copy.h"
#include "runtime/exec/units.h"
#include "runtime/exec/window.h"

struct weft_exec;
struct exec_host;

/* What a rank takes of the host's memory, and what it sees that can be had before any is taken. */
struct exec_host_offer {
    int64_t bytes, available_bytes;
    char limit[256]; /* what says so: weft_memory_available */
};
/* WEFT_E_SYSTEM when ranks, which are on one machine, take more together than some rank sees. */
WEFT_MUST_USE enum weft_status weft_exec_host_check_offers(const struct exec_host_offer *offers,
                                                           int32_t n, struct weft_error *err);

/* Reserves the memory, if the program has units or layers of which something is there; else *out
 * stays NULL. Units must be filled. It is pinned for a device that copies by itself, and the log
 * says how long that took. WEFT_E_DATA without cluster.host; the errors of weft_tier_create,
 * weft_arena_pin and weft_copier_create. */
WEFT_MUST_USE enum weft_status weft_exec_host_create(const struct weft_exec *exec,
                                                     struct exec_host **out,
                                                     struct weft_error *err);
void weft_exec_host_destroy(struct exec_host *host); /* streams are idle; accepts NULL */

/* Work of the stream of copies up, or down: all state of a unit to where it is in the arena (`nn`),
 * or from there, as one block. */
void weft_exec_push_copy(struct weft_exec *exec, struct weft_stream *stream,
                         enum weft_copy_direction direction, const struct exec_unit *unit);

/* What a layer saved, in the arena; the same of it, to its place there or from it. */
struct exec_saved {
    unsigned char *at;
    int64_t bytes;
    int32_t layer;
};
void weft_exec_push_saved(struct weft_exec *exec, struct weft_stream *stream,
                          enum weft_copy_direction direction, const struct exec_saved *saved);

/* What is there of a unit; states have their number. Of one that is updated there all, but for
 * moments that its optimizer has not, and parameters where the device computes in f32: then the
 * master's are those. */
enum exec_host_part {
    EXEC_HOST_MASTER = WEFT_STATE_PARAMETER,
    EXEC_HOST_MOMENT1 = WEFT_STATE_MOMENT1,
    EXEC_HOST_MOMENT2 = WEFT_STATE_MOMENT2,
    EXEC_HOST_GRADIENT = WEFT_STATE_COUNT,
    EXEC_HOST_PARAMETERS,
    EXEC_HOST_PARTS
};
struct weft_memory_span weft_exec_host_part(const struct exec_host *host, int32_t unit,
                                            enum exec_host_part part); /* 0 bytes: none */
/* Work of a stream of copies: bytes of the arena, to or from as many there. */
void weft_exec_push_host_copy(struct weft_exec *exec, struct weft_stream *stream,
                              enum weft_copy_direction direction, void *at,
                              struct weft_memory_span there);

/* Elements of a unit whose state is there, between steps. */
void weft_exec_host_read(const struct exec_host *host, const struct exec_elements *elements,
                         float *out);
void weft_exec_host_write(struct exec_host *host, const struct exec_elements *elements,
                          const float *values);

/* Every byte becomes 0. */
void weft_exec_host_clear(struct exec_host *host);
/* Bytes that are reserved, and those that were copied in a direction so far; of NULL, 0. */
int64_t weft_exec_host_bytes(const struct exec_host *host);
/* Bytes of them in memory now; 0 for NULL. */
int64_t weft_exec_host_resident_bytes(const struct exec_host *host);
int64_t weft_exec_host_copied(const struct exec_host *host, enum weft_copy_direction direction);
/* Warns, once, if the system has swapped some of it out. Behind the first step. */
void weft_exec_host_warn(struct exec_host *host);

#endif
