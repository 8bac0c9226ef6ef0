/* State on a disk lies in a store: master and moments of a unit as blocks of a file, which pass
 * through a ring of seats on their way to the arena and back. Shared by the files of this folder
 * alone. */
#ifndef WEFT_RUNTIME_EXEC_AWAY_H
#define WEFT_RUNTIME_EXEC_AWAY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "program/program.h"
#include "runtime/exec/units.h"
#include "runtime/exec/window.h"

struct weft_exec;
struct exec_away;

/* Opens and reserves the file in cluster.disk.path, if the program has units whose state is
 * there; else *out stays NULL. Units must be filled. WEFT_E_DATA without a disk, or on a device
 * that is no processor; the errors of weft_store_open and weft_store_reserve. */
WEFT_MUST_USE enum weft_status weft_exec_away_create(const struct weft_exec *exec,
                                                     struct exec_away **out,
                                                     struct weft_error *err);
void weft_exec_away_destroy(struct exec_away *away); /* streams are idle; accepts NULL */

/* Work of a disk's stream: all state of a unit to where it is in the arena (`nn`), or from there.
 * It is over when the last block is there, or on the disk. */
void weft_exec_push_read(struct weft_exec *exec, struct weft_stream *stream,
                         const struct exec_unit *unit);
void weft_exec_push_write(struct weft_exec *exec, struct weft_stream *stream,
                          const struct exec_unit *unit);
/* The most items that either has on the stream. */
int32_t weft_exec_away_items(const struct weft_exec *exec);

/* The host's way to elements there (window.h), a block at a time, in a seat of its own.
 * WEFT_E_INTERNAL for a third one at once. */
struct exec_disk_window;
WEFT_MUST_USE enum weft_status weft_exec_disk_window_open(struct exec_away *away,
                                                          struct exec_disk_window **out,
                                                          struct weft_error *err);
void weft_exec_disk_window_close(struct exec_disk_window *window); /* accepts NULL */
/* To `out`, or from `values` if that is NULL. */
WEFT_MUST_USE enum weft_status weft_exec_disk_window_move(struct exec_disk_window *window,
                                                          const struct exec_elements *elements,
                                                          float *out, const float *values,
                                                          struct weft_error *err);
/* What was changed is on the disk. */
WEFT_MUST_USE enum weft_status weft_exec_disk_window_leave(struct exec_disk_window *window,
                                                           struct weft_error *err);

/* Every byte of the file becomes 0. */
WEFT_MUST_USE enum weft_status weft_exec_away_clear(struct exec_away *away, struct weft_error *err);
/* Warns, once, if the file is kept in memory or the ring is swapped out. Behind the first step. */
void weft_exec_away_warn(struct exec_away *away);

#endif
