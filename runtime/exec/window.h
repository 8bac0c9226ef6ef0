/* State that is away from the device, as the host reads and writes it between steps, whatever its
 * home. Shared by the files of this folder alone. */
#ifndef WEFT_RUNTIME_EXEC_WINDOW_H
#define WEFT_RUNTIME_EXEC_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "runtime/exec/units.h"
#include "spec/model.h"
#include "spec/profile/profile.h"

struct weft_exec;

/* Elements [from, from + n) of a unit's state. */
struct exec_elements {
    int32_t unit;
    enum weft_state state;
    int64_t from, n;
};

/* There may be two at once: one thread opens and closes them, and uses each. What was written is
 * there once the window leaves: it does when elements elsewhere are asked for, or when it is told
 * to; and before a step is issued it must, for it does not see what steps do. */
struct exec_window;
WEFT_MUST_USE enum weft_status weft_exec_window_open(const struct weft_exec *exec,
                                                     struct exec_window **out,
                                                     struct weft_error *err);
void weft_exec_window_close(struct exec_window *window); /* accepts NULL */
WEFT_MUST_USE enum weft_status weft_exec_window_read(struct exec_window *window,
                                                     const struct exec_elements *elements,
                                                     float *out, struct weft_error *err);
WEFT_MUST_USE enum weft_status weft_exec_window_write(struct exec_window *window,
                                                      const struct exec_elements *elements,
                                                      const float *values, struct weft_error *err);
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
WEFT_MUST_USE enum weft_status weft_exec_window_walk(struct weft_exec *exec,
                                                     const struct exec_unit *unit,
                                                     enum weft_state state, bool renewed,
                                                     exec_chunk_fn *function,
                                                     struct weft_error *err);

/* The buffer of a state that may be away, NULL where a unit has none. */
unsigned char *weft_exec_state_at(const struct weft_nn_unit *unit, enum weft_state state);

#endif
