/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/window.h"

#include <stdlib.h>

#include "runtime/exec/host.h"
#include "runtime/exec/offloaded.h"
#include "runtime/exec/parts.h"

struct exec_window {
    const struct weft_exec *exec;
    struct exec_disk_window *disk; /* NULL: no state is on a disk */
};

enum weft_status weft_exec_window_open(const struct weft_exec *exec, struct exec_window **out,
                                       struct weft_error *err)
{
    enum weft_status status = WEFT_OK;
    struct exec_window *window = calloc(1, sizeof *window);
    if (window == NULL) return weft_fail_memory(err, "a window on offloaded state");
    window->exec = exec;
    if (exec->offloaded != NULL)
        status = weft_exec_disk_window_open(exec->offloaded, &window->disk, err);
    if (status != WEFT_OK) {
        weft_exec_window_close(window);
        return status;
    }
    *out = window;
    return WEFT_OK;
}

void weft_exec_window_close(struct exec_window *window)
{
    if (window == NULL) return;
    weft_exec_disk_window_close(window->disk);
    free(window);
}

enum weft_status weft_exec_window_read(struct exec_window *window,
                                       const struct exec_elements *elements, float *out,
                                       struct weft_error *err)
{
    if (window->exec->units[elements->unit].location == WEFT_LOCATION_DISK)
        return weft_exec_disk_window_move(window->disk, elements, out, NULL, err);
    weft_exec_host_read(window->exec->host, elements, out);
    return WEFT_OK;
}

enum weft_status weft_exec_window_write(struct exec_window *window,
                                        const struct exec_elements *elements, const float *values,
                                        struct weft_error *err)
{
    if (window->exec->units[elements->unit].location == WEFT_LOCATION_DISK)
        return weft_exec_disk_window_move(window->disk, elements, NULL, values, err);
    weft_exec_host_write(window->exec->host, elements, values);
    return WEFT_OK;
}

enum weft_status weft_exec_window_leave(struct exec_window *window, struct weft_error *err)
{
    return window->disk == NULL ? WEFT_OK : weft_exec_disk_window_leave(window->disk, err);
}

static enum weft_status walk_pieces(struct weft_exec *exec, struct exec_window *window,
                                    const struct exec_unit *unit, enum weft_state state,
                                    bool renewed, exec_chunk_fn *function, struct weft_error *err)
{
    const struct weft_nn_piece *pieces = renewed ? unit->nn.renew : unit->nn.own;
    const int64_t n = renewed ? unit->nn.n_renew : unit->nn.n_own;
    float values[EXEC_CHUNK];
    for (int64_t p = 0; p < n; p++) {
        struct exec_chunk chunk = {.unit = unit->index, .piece = &pieces[p], .values = values};
        for (; chunk.from < pieces[p].count; chunk.from += chunk.n) {
            const int64_t left = pieces[p].count - chunk.from;
            chunk.n = left < EXEC_CHUNK ? left : EXEC_CHUNK;
            const struct exec_elements elements = {unit->index, state,
                                                   pieces[p].state_at + chunk.from, chunk.n};
            WEFT_TRY(weft_exec_window_read(window, &elements, values, err));
            WEFT_TRY(function(exec, &chunk, err));
        }
    }
    return WEFT_OK;
}

enum weft_status weft_exec_window_walk(struct weft_exec *exec, const struct exec_unit *unit,
                                       enum weft_state state, bool renewed, exec_chunk_fn *function,
                                       struct weft_error *err)
{
    struct exec_window *window = NULL;
    WEFT_TRY(weft_exec_window_open(exec, &window, err));
    const enum weft_status status = walk_pieces(exec, window, unit, state, renewed, function, err);
    weft_exec_window_close(window);
    return status;
}
