/* State that is away lies in a store: master and moments of a unit as blocks of a file, which pass
 * through a ring of seats on their way to the arena and back. Between steps the host reads and
 * writes elements of them. Shared by the files of this folder alone. */
#ifndef WEFT_RUNTIME_EXEC_AWAY_H
#define WEFT_RUNTIME_EXEC_AWAY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "program/program.h"
#include "runtime/exec/units.h"
#include "spec/model.h"
#include "spec/profile/profile.h"

struct weft_exec;
struct exec_away;

/* Opens and reserves the file in cluster.disk.path, if the program has units that are away; else
 * *out stays NULL. Units must be filled. WEFT_E_DATA without a disk, or on a device that is no
 * processor; the errors of weft_store_open and weft_store_reserve. */
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

/* The host's way to elements that are away: a block at a time, in a seat of the ring, of which
 * there are two, so that one thread opens and closes them, and uses each. Elements are [from, from
 * + n) of a unit's state. What was written is on the disk once the window leaves its block: for
 * another one, or when it is told to; and before a step is issued it must leave, for it does not
 * see what steps do, and they use its seat. WEFT_E_INTERNAL for a third one. */
struct exec_window;
WEFT_MUST_USE enum weft_status weft_exec_window_open(struct exec_away *away,
                                                     struct exec_window **out,
                                                     struct weft_error *err);
void weft_exec_window_close(struct exec_window *window); /* accepts NULL */
WEFT_MUST_USE enum weft_status weft_exec_window_read(struct exec_window *window, int32_t unit,
                                                     enum weft_state state, int64_t from, int64_t n,
                                                     float *out, struct weft_error *err);
WEFT_MUST_USE enum weft_status weft_exec_window_write(struct exec_window *window, int32_t unit,
                                                      enum weft_state state, int64_t from,
                                                      int64_t n, const float *values,
                                                      struct weft_error *err);

WEFT_MUST_USE enum weft_status weft_exec_window_leave(struct exec_window *window,
                                                      struct weft_error *err);

/* Elements of a piece of a unit's state that is away, [from, from + n) of it, as the host has them.
 */
struct exec_chunk {
    int32_t unit;
    const struct weft_nn_piece *piece;
    int64_t from, n;
    const float *values;
};
typedef enum weft_status exec_chunk_fn(struct weft_exec *exec, const struct exec_chunk *chunk,
                                       struct weft_error *err);
/* Calls `function` for all of a state: of what this rank renews, or of what it owns. A chunk has at
 * most EXEC_CHUNK elements, as many as the sum of the record, which nobody uses between steps. */
enum { EXEC_CHUNK = WEFT_AGREE_BYTES / (int)sizeof(float) };
WEFT_MUST_USE enum weft_status weft_exec_away_walk(struct weft_exec *exec,
                                                   const struct exec_unit *unit,
                                                   enum weft_state state, bool renewed,
                                                   exec_chunk_fn *function, struct weft_error *err);

/* The buffer of a state that may be away, NULL where a unit has none. */
unsigned char *weft_exec_state_at(const struct weft_nn_unit *unit, enum weft_state state);

/* Every byte of the file becomes 0. */
WEFT_MUST_USE enum weft_status weft_exec_away_clear(struct exec_away *away, struct weft_error *err);
/* Warns, once, if the file is kept in memory or the ring is swapped out. Behind the first step. */
void weft_exec_away_warn(struct exec_away *away);

#endif
