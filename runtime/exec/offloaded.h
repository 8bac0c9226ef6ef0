/* SPDX-License-Identifier: Apache-2.0 */
/* State on a disk: a file (offload/store.h) keeps master and moments of a unit as blocks. The
 * blocks pass through a ring of seats on their way to the arena and back. Private to this
 * folder. */
#ifndef WEFT_RUNTIME_EXEC_OFFLOADED_H
#define WEFT_RUNTIME_EXEC_OFFLOADED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "program/program.h"
#include "runtime/exec/units.h"

struct weft_exec;
struct exec_offloaded;

/* Opens the file in cluster.disk.path and reserves blocks for all units with state on the disk.
 * *out stays NULL if there are none. The executor's units must be filled. WEFT_E_DATA without
 * cluster.disk. Other errors are those of weft_store_open, weft_store_reserve and
 * weft_arena_pin. */
WEFT_MUST_USE enum weft_status weft_exec_offloaded_create(const struct weft_exec *exec,
                                                          struct exec_offloaded **out,
                                                          struct weft_error *err);
void weft_exec_offloaded_destroy(
    struct exec_offloaded *offloaded); /* streams must be idle; accepts NULL */

/* Queue the move of a unit's whole state on a stream: from the disk to the arena (the addresses in
 * `nn`), or back. The work ends when the last block has arrived. */
void weft_exec_push_read(struct weft_exec *exec, struct weft_stream *stream,
                         const struct exec_unit *unit);
void weft_exec_push_write(struct weft_exec *exec, struct weft_stream *stream,
                          const struct exec_unit *unit);
/* The most stream items that one of these calls queues; 0 without state on a disk. */
int32_t weft_exec_offloaded_items(const struct weft_exec *exec);

/* A window gives the host access to state on the disk (window.h), a block at a time. Each has its
 * own seat in the ring. WEFT_E_INTERNAL if WEFT_RING_WINDOWS are open already. */
struct exec_disk_window;
WEFT_MUST_USE enum weft_status weft_exec_disk_window_open(struct exec_offloaded *offloaded,
                                                          struct exec_disk_window **out,
                                                          struct weft_error *err);
void weft_exec_disk_window_close(struct exec_disk_window *window); /* accepts NULL */
/* Copies elements to `out`, or from `values` if `out` is NULL. */
WEFT_MUST_USE enum weft_status weft_exec_disk_window_move(struct exec_disk_window *window,
                                                          const struct exec_elements *elements,
                                                          float *out, const float *values,
                                                          struct weft_error *err);
/* Writes the block back if it was changed. The window then has no block. */
WEFT_MUST_USE enum weft_status weft_exec_disk_window_leave(struct exec_disk_window *window,
                                                           struct weft_error *err);

/* Bytes of the ring that are in memory now, and of the file; 0 for NULL. */
int64_t weft_exec_offloaded_ring_bytes(const struct exec_offloaded *offloaded);
int64_t weft_exec_offloaded_file_bytes(const struct exec_offloaded *offloaded);
/* Writes zeros to every block of the file. */
WEFT_MUST_USE enum weft_status weft_exec_offloaded_clear(struct exec_offloaded *offloaded,
                                                         struct weft_error *err);
/* Warns once if the file is kept in memory or the ring is swapped out. Call it after the first
 * step. */
void weft_exec_offloaded_warn(struct exec_offloaded *offloaded);

#endif
