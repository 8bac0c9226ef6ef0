/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/state.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/numbers.h"
#include "runtime/exec/host.h"
#include "runtime/exec/host_update.h"
#include "runtime/exec/offloaded.h"
#include "runtime/exec/parts.h"
#include "runtime/exec/window.h"

/* Elements of 16 bits that are copied at once. */
enum { NARROW_ELEMENTS = 1 << 14 };

struct weft_state_access {
    const struct weft_exec *exec;
    struct weft_stream *stream;
    struct exec_window *window; /* NULL: no state is offloaded */
    uint16_t narrow[NARROW_ELEMENTS];
};

/* Finds the elements of a piece; false if the unit has no such state. */
static bool find_piece(const struct weft_exec *exec, const struct exec_unit *of,
                       enum weft_state state, const struct weft_nn_piece *piece,
                       struct weft_state_piece *out)
{
    const struct weft_nn_unit *unit = &of->nn;
    const bool resident = state == WEFT_STATE_PARAMETER && !of->states[state];
    const unsigned char *at = resident ? unit->parameters : weft_exec_state_at(unit, state);
    if (!resident && !of->states[state]) return false;
    const bool pending = state == WEFT_STATE_PENDING;
    const enum weft_dtype dtype = resident  ? unit->dtype
                                  : pending ? unit->gradient_dtype
                                            : WEFT_F32;
    const int64_t bytes =
        (resident ? piece->parameter_at : piece->state_at) * weft_dtype_bytes(dtype);
    const bool offloaded = of->offloaded && !resident;
    *out = (struct weft_state_piece){.tensor = piece->tensor,
                                     .state = state,
                                     .first = piece->first,
                                     .count = piece->count,
                                     .unit = of->index,
                                     .offloaded = offloaded,
                                     .dtype = dtype,
                                     .computed = unit->dtype,
                                     .at = offloaded ? bytes : at - exec->base + bytes};
    return true;
}

/* Every rank has the second moments of all tensors, and the first one owns them. */
static bool next_mean(const struct weft_exec *exec, struct weft_state_cursor *cursor,
                      struct weft_state_piece *out)
{
    const struct weft_model *model = exec->options.config->model;
    if (exec->means == NULL || (!cursor->held && exec->rank != 0)) return false;
    while (cursor->piece < model->n_tensors && !model->tensors[cursor->piece].trainable)
        cursor->piece++;
    if (cursor->piece == model->n_tensors) return false;
    *out = (struct weft_state_piece){.tensor = (int32_t)cursor->piece++,
                                     .state = WEFT_STATE_MEAN2,
                                     .count = 1,
                                     .unit = exec->options.program->n_units,
                                     .dtype = WEFT_F32,
                                     .computed = exec_compute(exec)};
    return true;
}

bool weft_exec_state_next(const struct weft_exec *exec, struct weft_state_cursor *cursor,
                          struct weft_state_piece *out)
{
    for (; cursor->unit < exec->options.program->n_units; cursor->unit++, cursor->state = 0) {
        const struct exec_unit *unit = &exec->units[cursor->unit];
        const struct weft_nn_piece *pieces = cursor->held ? unit->nn.renew : unit->nn.own;
        int64_t n = cursor->held ? unit->nn.n_renew : unit->nn.n_own;
        for (; cursor->state < WEFT_STATE_COUNT; cursor->state++, cursor->piece = 0) {
            if (cursor->piece >= n) continue;
            const struct weft_nn_piece *piece = &pieces[cursor->piece];
            enum weft_state state = (enum weft_state)cursor->state;
            if (!find_piece(exec, unit, state, piece, out)) continue;
            cursor->piece++;
            return true;
        }
    }
    return next_mean(exec, cursor, out);
}

enum weft_status weft_exec_state_open(const struct weft_exec *exec, struct weft_state_access **out,
                                      struct weft_error *err)
{
    enum { QUEUE = 4 };
    struct weft_state_access *access = calloc(1, sizeof *access);
    if (access == NULL) return weft_fail_memory(err, "a way to the state");
    access->exec = exec;
    enum weft_status status =
        weft_stream_create(exec->options.device, "state", QUEUE, &access->stream, err);
    if (status == WEFT_OK && (exec->offloaded != NULL || exec->host != NULL))
        status = weft_exec_window_open(exec, &access->window, err);
    if (status != WEFT_OK) {
        weft_exec_state_close(access);
        return status;
    }
    *out = access;
    return WEFT_OK;
}

void weft_exec_state_close(struct weft_state_access *access)
{
    if (access == NULL) return;
    weft_exec_window_close(access->window);
    if (access->stream != NULL) weft_stream_destroy(access->stream);
    free(access);
}

/* Elements of an offloaded piece, by their place in the unit's state. */
static struct exec_elements elements_of(const struct weft_state_piece *piece, int64_t from,
                                        int64_t n)
{
    return (struct exec_elements){piece->unit, piece->state,
                                  piece->at / (int64_t)sizeof(float) + from, n};
}

/* Address of an element in the arena. */
static void *element_of(const struct weft_state_access *access,
                        const struct weft_state_piece *piece, int64_t from)
{
    return access->exec->base + piece->at + from * weft_dtype_bytes(piece->dtype);
}

static enum weft_status read_narrow(struct weft_state_access *access,
                                    const struct weft_state_piece *piece, int64_t from, int64_t n,
                                    float *out, struct weft_error *err)
{
    const bool is_bf16 = piece->dtype == WEFT_BF16;
    for (int64_t at = 0; at < n; at += NARROW_ELEMENTS) {
        const int64_t count = n - at < NARROW_ELEMENTS ? n - at : NARROW_ELEMENTS;
        weft_arena_read(access->exec->arena, access->stream, element_of(access, piece, from + at),
                        count * (int64_t)sizeof *access->narrow, access->narrow);
        WEFT_TRY(weft_stream_synchronise(access->stream, err));
        for (int64_t i = 0; i < count; i++)
            out[at + i] =
                is_bf16 ? weft_bf16_widen(access->narrow[i]) : weft_f16_widen(access->narrow[i]);
    }
    return WEFT_OK;
}

static enum weft_status write_narrow(struct weft_state_access *access,
                                     const struct weft_state_piece *piece, int64_t from, int64_t n,
                                     const float *values, struct weft_error *err)
{
    const bool is_bf16 = piece->dtype == WEFT_BF16;
    for (int64_t at = 0; at < n; at += NARROW_ELEMENTS) {
        const int64_t count = n - at < NARROW_ELEMENTS ? n - at : NARROW_ELEMENTS;
        for (int64_t i = 0; i < count; i++)
            access->narrow[i] =
                is_bf16 ? weft_bf16_narrow(values[at + i]) : weft_f16_narrow(values[at + i]);
        weft_arena_write(access->exec->arena, access->stream, element_of(access, piece, from + at),
                         access->narrow, count * (int64_t)sizeof *access->narrow);
        WEFT_TRY(weft_stream_synchronise(access->stream, err));
    }
    return WEFT_OK;
}

enum weft_status weft_exec_state_read(struct weft_state_access *access,
                                      const struct weft_state_piece *piece, int64_t from, int64_t n,
                                      float *out, struct weft_error *err)
{
    if (piece->state == WEFT_STATE_MEAN2) {
        for (int64_t i = 0; i < n; i++)
            out[i] = access->exec->means->applied[piece->tensor];
        return WEFT_OK;
    }
    if (piece->offloaded) {
        const struct exec_elements elements = elements_of(piece, from, n);
        if (from == 0) WEFT_TRY(weft_exec_window_leave(access->window, err));
        return weft_exec_window_read(access->window, &elements, out, err);
    }
    if (piece->dtype != WEFT_F32) return read_narrow(access, piece, from, n, out, err);
    weft_arena_read(access->exec->arena, access->stream, element_of(access, piece, from),
                    n * (int64_t)sizeof *out, out);
    return weft_stream_synchronise(access->stream, err);
}

enum weft_status weft_exec_state_write(struct weft_state_access *access,
                                       const struct weft_state_piece *piece, int64_t from,
                                       int64_t n, const float *values, struct weft_error *err)
{
    if (piece->state == WEFT_STATE_MEAN2) {
        for (int64_t i = 0; i < n; i++)
            access->exec->means->applied[piece->tensor] = values[i];
        return WEFT_OK;
    }
    if (piece->offloaded) {
        const struct exec_elements elements = elements_of(piece, from, n);
        if (from == 0) WEFT_TRY(weft_exec_window_leave(access->window, err));
        WEFT_TRY(weft_exec_window_write(access->window, &elements, values, err));
        return from + n < piece->count ? WEFT_OK : weft_exec_window_leave(access->window, err);
    }
    if (piece->dtype != WEFT_F32) return write_narrow(access, piece, from, n, values, err);
    weft_arena_write(access->exec->arena, access->stream, element_of(access, piece, from), values,
                     n * (int64_t)sizeof *values);
    return weft_stream_synchronise(access->stream, err);
}

static void push_zeroes(struct weft_exec *exec, void *at, const struct weft_range *bytes)
{
    if (at == NULL) return;
    weft_arena_fill(exec->arena, exec->streams[WEFT_LANE_COMPUTE], at, bytes, 1, 0);
}

enum weft_status weft_exec_state_clear(struct weft_exec *exec, struct weft_error *err)
{
    static const struct weft_range sent = {0, EXEC_SENT_WORDS * sizeof(uint64_t)};
    for (int32_t u = 0; u < exec->options.program->n_units; u++) {
        const struct exec_unit *unit = &exec->units[u];
        if (!unit->fetches) push_zeroes(exec, unit->nn.parameters, &unit->parameter_bytes);
        if (unit->offloaded) continue;
        push_zeroes(exec, unit->nn.master, &unit->state_bytes);
        push_zeroes(exec, unit->nn.moment1, &unit->state_bytes);
        push_zeroes(exec, unit->nn.moment2, &unit->state_bytes);
        push_zeroes(exec, unit->nn.anchor, &unit->state_bytes);
        push_zeroes(exec, unit->nn.outer, &unit->state_bytes);
        if (unit->states[WEFT_STATE_PENDING])
            push_zeroes(exec, unit->nn.gradient, &unit->pending_bytes);
    }
    push_zeroes(exec, exec->record, &sent);
    push_zeroes(exec, exec->record_sum, &sent);
    exec->pending.valid = false;
    weft_exec_means_clear(exec);
    WEFT_TRY(weft_exec_synchronise(exec, err));
    weft_exec_host_clear(exec->host);
    return exec->offloaded == NULL ? WEFT_OK : weft_exec_offloaded_clear(exec->offloaded, err);
}

/* Rounds parameters from a chunk of an offloaded master. */
static enum weft_status round_chunk(struct weft_exec *exec, const struct exec_chunk *chunk,
                                    struct weft_error *err)
{
    const struct weft_nn_unit *unit = &exec->units[chunk->unit].nn;
    const int64_t at = chunk->piece->parameter_at + chunk->from;
    weft_nn_load(exec->options.nn, exec->streams[WEFT_LANE_COMPUTE], unit->dtype, chunk->n,
                 chunk->values,
                 (unsigned char *)unit->parameters + at * weft_dtype_bytes(unit->dtype));
    return weft_stream_synchronise(exec->streams[WEFT_LANE_COMPUTE], err);
}

/* Derives the parameters that layers read from the masters. The next period makes shards on the
 * host: parts of them may have to come from other nodes. */
enum weft_status weft_exec_state_filled(struct weft_exec *exec, struct weft_error *err)
{
    for (int32_t u = 0; u < exec->options.program->n_units; u++) {
        const struct exec_unit *unit = &exec->units[u];
        if (unit->fetches) continue;
        if (!unit->offloaded)
            weft_nn_round(exec->options.nn, exec->streams[WEFT_LANE_COMPUTE], &unit->nn);
        else if (unit->states[WEFT_STATE_PARAMETER])
            WEFT_TRY(
                weft_exec_window_walk(exec, unit, WEFT_STATE_PARAMETER, true, round_chunk, err));
        if (unit->on_host) weft_exec_push_rounded(exec, exec->streams[WEFT_LANE_COMPUTE], unit);
    }
    exec->renews = weft_exec_fetches(exec);
    WEFT_TRY(weft_exec_synchronise(exec, err));
    /* No rank may gather before all ranks have written. */
    return weft_comm_exchange(exec->options.comm, NULL, 0, NULL, err);
}

static struct weft_nn_initial initial_of(const struct weft_exec *exec, uint64_t seed,
                                         const struct weft_state_piece *piece)
{
    const struct weft_tensor *tensor = &exec->options.config->model->tensors[piece->tensor];
    return (struct weft_nn_initial){.init = tensor->init,
                                    .std = tensor->init_std,
                                    .seed = seed,
                                    .name = weft_hash_string(tensor->name),
                                    .first = piece->first,
                                    .n = piece->count,
                                    .dtype = piece->dtype,
                                    .to = exec->base + piece->at};
}

/* Makes an offloaded piece, chunk by chunk, in the buffer of the record's sum, and moves it to its
 * location. */
static enum weft_status initialise_offloaded(struct weft_exec *exec, struct weft_nn_initial initial,
                                             const struct weft_state_piece *piece,
                                             struct weft_state_access *access,
                                             struct weft_error *err)
{
    struct weft_stream *stream = exec->streams[WEFT_LANE_COMPUTE];
    float values[EXEC_CHUNK];
    initial.to = exec->record_sum;
    for (int64_t from = 0; from < piece->count; from += initial.n) {
        const int64_t left = piece->count - from;
        initial.first = piece->first + from;
        initial.n = left < EXEC_CHUNK ? left : EXEC_CHUNK;
        weft_nn_initialise(exec->options.nn, stream, &initial);
        weft_arena_read(exec->arena, stream, exec->record_sum, initial.n * (int64_t)sizeof *values,
                        values);
        WEFT_TRY(weft_stream_synchronise(stream, err));
        WEFT_TRY(weft_exec_state_write(access, piece, from, initial.n, values, err));
    }
    return WEFT_OK;
}

static enum weft_status initialise_pieces(struct weft_exec *exec, uint64_t seed,
                                          struct weft_state_access *access, struct weft_error *err)
{
    const int32_t units = exec->options.program->n_units;
    struct weft_stream *stream = exec->streams[WEFT_LANE_COMPUTE];
    struct weft_state_cursor cursor = {.held = true};
    struct weft_state_piece piece;
    int32_t unit = 0;
    weft_watch_count(exec->options.watch, "unit", 0, units);
    while (weft_exec_state_next(exec, &cursor, &piece)) {
        /* A run begins on its anchor. */
        if (piece.state != WEFT_STATE_PARAMETER && piece.state != WEFT_STATE_ANCHOR) continue;
        /* A count is of values that exist, not of issued work. */
        if (piece.unit != unit) WEFT_TRY(weft_stream_synchronise(stream, err));
        unit = piece.unit;
        weft_watch_count(exec->options.watch, "unit", unit, units);
        const struct weft_nn_initial initial = initial_of(exec, seed, &piece);
        if (piece.offloaded)
            WEFT_TRY(initialise_offloaded(exec, initial, &piece, access, err));
        else
            weft_nn_initialise(exec->options.nn, stream, &initial);
    }
    return WEFT_OK;
}

/* Under zero1 only this rank's slices get values: the first gather brings the others. */
enum weft_status weft_exec_initialise(struct weft_exec *exec, uint64_t seed, struct weft_error *err)
{
    struct weft_state_access *access;
    WEFT_TRY(weft_exec_state_clear(exec, err));
    WEFT_TRY(weft_exec_state_open(exec, &access, err));
    const enum weft_status status = initialise_pieces(exec, seed, access, err);
    weft_exec_state_close(access);
    return status == WEFT_OK ? weft_exec_state_filled(exec, err) : status;
}
