/* SPDX-License-Identifier: Apache-2.0 */
/* Windows: the host's access to offloaded state between steps, in any location. Private to this
 * folder. */
#ifndef WEFT_RUNTIME_EXEC_WINDOW_H
#define WEFT_RUNTIME_EXEC_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "runtime/exec/units.h"
#include "spec/model.h"
#include "spec/profile/profile.h"

struct weft_exec;

/* Two may be open at once. One thread opens, uses and closes them. A window stores its writes when
 * it leaves a block: if other elements are asked for, or if told to. It must leave before a step is
 * issued, because it does not see changes by steps. */
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

/* Elements [from, from + n) of an offloaded piece, with their values on the host. */
struct exec_chunk {
    int32_t unit;
    const struct weft_nn_piece *piece;
    int64_t from, n;
    const float *values;
};
typedef enum weft_status exec_chunk_fn(struct weft_exec *exec, const struct exec_chunk *chunk,
                                       struct weft_error *err);
/* Calls `function` for all chunks of an offloaded state: of pieces that this rank renews
 * (`renewed`), or of its own pieces. A chunk has at most EXEC_CHUNK elements, the size of the
 * record's sum, which is unused between steps. */
enum { EXEC_CHUNK = WEFT_AGREE_BYTES / (int)sizeof(float) };
WEFT_MUST_USE enum weft_status weft_exec_window_walk(struct weft_exec *exec,
                                                     const struct exec_unit *unit,
                                                     enum weft_state state, bool renewed,
                                                     exec_chunk_fn *function,
                                                     struct weft_error *err);

#endif
