/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes in the host's memory: master and moments of units, and saved activations until their
 * backward. They lie in pages of a tier and are copied to the arena and back. Private to this
 * folder. */
#ifndef WEFT_RUNTIME_EXEC_HOST_H
#define WEFT_RUNTIME_EXEC_HOST_H

#include <stdint.h>

#include "base/status.h"
#include "runtime/arena/copy.h"
#include "runtime/exec/units.h"

struct weft_exec;
struct exec_host;

/* Collective. Reserves the memory if the program keeps state or saved activations there; otherwise
 * *out stays NULL. The executor's units must be filled. A device that copies by itself gets the
 * memory pinned, and the log tells the time. WEFT_E_DATA without cluster.host, WEFT_E_SYSTEM if
 * memory is short. Other errors are those of weft_tier_create, weft_arena_pin and
 * weft_copier_create. */
WEFT_MUST_USE enum weft_status weft_exec_host_create(const struct weft_exec *exec,
                                                     struct exec_host **out,
                                                     struct weft_error *err);
void weft_exec_host_destroy(struct exec_host *host); /* streams must be idle; accepts NULL */

/* Queues one copy of `bytes` of each of a unit's states, from byte `from` on, between the host and
 * the arena (addresses in `nn`). */
void weft_exec_push_copy(struct weft_exec *exec, struct weft_stream *stream,
                         enum weft_copy_direction direction, const struct exec_unit *unit,
                         int64_t from, int64_t bytes);

struct exec_saved;
/* Queues the copy of a block of a layer's saved activations to or from the layer's place on the
 * host. */
void weft_exec_push_saved(struct weft_exec *exec, struct weft_stream *stream,
                          enum weft_copy_direction direction, const struct exec_saved *saved);

struct exec_slice;
/* Queues the copy of a block of a unit's shard to or from its place on the host. */
void weft_exec_push_slice(struct weft_exec *exec, struct weft_stream *stream,
                          enum weft_copy_direction direction, const struct exec_slice *slice);

/* Parts of a unit on the host; states keep their numbers. A unit with updates on the host has all
 * parts, with two exceptions. Its optimizer may lack moments. If the device computes in f32, the
 * master serves as parameters. A unit with its shard on the host has that as parameters. */
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
/* Queues a copy of there.bytes between the arena and the host. */
void weft_exec_push_host_copy(struct weft_exec *exec, struct weft_stream *stream,
                              enum weft_copy_direction direction, void *at,
                              struct weft_memory_span there);

/* Copy elements of a unit with state on the host, between steps. */
void weft_exec_host_read(const struct exec_host *host, const struct exec_elements *elements,
                         float *out);
void weft_exec_host_write(struct exec_host *host, const struct exec_elements *elements,
                          const float *values);

/* Zeroes every part of every unit; accepts NULL. */
void weft_exec_host_clear(struct exec_host *host);
/* Bytes reserved; 0 for NULL. */
int64_t weft_exec_host_bytes(const struct exec_host *host);
/* Bytes of them in memory now; 0 for NULL. */
int64_t weft_exec_host_resident_bytes(const struct exec_host *host);
/* Bytes copied in that direction so far; 0 for NULL. */
int64_t weft_exec_host_copied(const struct exec_host *host, enum weft_copy_direction direction);
/* Warns once if the system has swapped out some of it. Call it after the first step. */
void weft_exec_host_warn(struct exec_host *host);

#endif
