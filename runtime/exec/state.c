#include "runtime/exec/state.h"

#include <stdlib.h>

#include "runtime/exec/parts.h"

struct weft_state_access {
    const struct weft_exec *exec;
    struct weft_stream *stream;
};

/* The address of a piece, NULL when there is no such state of the unit. */
static unsigned char *address_of(const struct weft_nn_unit *unit, enum weft_state state,
                                 const struct weft_nn_piece *piece)
{
    const int64_t size = sizeof(float);
    unsigned char *at = NULL;
    switch (state) {
    case WEFT_STATE_PARAMETER:
        if (unit->master == NULL)
            return (unsigned char *)unit->parameters + piece->parameter_at * size;
        at = unit->master;
        break;
    case WEFT_STATE_MOMENT1:
        at = unit->moment1;
        break;
    case WEFT_STATE_MOMENT2:
        at = unit->moment2;
        break;
    case WEFT_STATE_COUNT:
        break;
    }
    return at == NULL ? NULL : at + piece->state_at * size;
}

bool weft_exec_state_next(const struct weft_exec *exec, struct weft_state_cursor *cursor,
                          struct weft_state_piece *out)
{
    for (; cursor->unit < exec->options.program->n_units; cursor->unit++, cursor->state = 0) {
        const struct weft_nn_unit *unit = &exec->units[cursor->unit].nn;
        const struct weft_nn_piece *pieces = cursor->held ? unit->renew : unit->own;
        int64_t n = cursor->held ? unit->n_renew : unit->n_own;
        for (; cursor->state < WEFT_STATE_COUNT; cursor->state++, cursor->piece = 0) {
            if (cursor->piece >= n) continue;
            const struct weft_nn_piece *piece = &pieces[cursor->piece];
            enum weft_state state = (enum weft_state)cursor->state;
            unsigned char *address = address_of(unit, state, piece);
            if (address == NULL) continue;
            cursor->piece++;
            *out = (struct weft_state_piece){piece->tensor, state, piece->first, piece->count,
                                             address - exec->base};
            return true;
        }
    }
    return false;
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
    if (status != WEFT_OK) {
        free(access);
        return status;
    }
    *out = access;
    return WEFT_OK;
}

void weft_exec_state_close(struct weft_state_access *access)
{
    if (access == NULL) return;
    weft_stream_destroy(access->stream);
    free(access);
}

/* The address of an element. */
static void *element_of(const struct weft_state_access *access,
                        const struct weft_state_piece *piece, int64_t from)
{
    return access->exec->base + piece->offset + from * (int64_t)sizeof(float);
}

enum weft_status weft_exec_state_read(struct weft_state_access *access,
                                      const struct weft_state_piece *piece, int64_t from, int64_t n,
                                      float *out, struct weft_error *err)
{
    weft_arena_read(access->exec->arena, access->stream, element_of(access, piece, from),
                    n * (int64_t)sizeof *out, out);
    return weft_stream_synchronise(access->stream, err);
}

enum weft_status weft_exec_state_write(struct weft_state_access *access,
                                       const struct weft_state_piece *piece, int64_t from,
                                       int64_t n, const float *values, struct weft_error *err)
{
    weft_arena_write(access->exec->arena, access->stream, element_of(access, piece, from), values,
                     n * (int64_t)sizeof *values);
    return weft_stream_synchronise(access->stream, err);
}

static void push_zeroes(struct weft_exec *exec, void *at, const struct weft_range *bytes)
{
    if (at == NULL) return;
    weft_arena_fill(exec->arena, exec->streams[WEFT_STREAM_COMPUTE], at, bytes, 1, 0);
}

enum weft_status weft_exec_state_clear(struct weft_exec *exec, struct weft_error *err)
{
    static const struct weft_range sent = {0, EXEC_SENT_WORDS * sizeof(uint64_t)};
    for (int32_t u = 0; u < exec->options.program->n_units; u++) {
        const struct exec_unit *unit = &exec->units[u];
        push_zeroes(exec, unit->nn.parameters, &unit->parameter_bytes);
        push_zeroes(exec, unit->nn.master, &unit->state_bytes);
        push_zeroes(exec, unit->nn.moment1, &unit->state_bytes);
        push_zeroes(exec, unit->nn.moment2, &unit->state_bytes);
    }
    push_zeroes(exec, exec->record, &sent);
    push_zeroes(exec, exec->record_sum, &sent);
    exec->pending.valid = false;
    return weft_exec_synchronise(exec, err);
}

/* What the layers read follows from the masters. */
enum weft_status weft_exec_state_filled(struct weft_exec *exec, struct weft_error *err)
{
    for (int32_t u = 0; u < exec->options.program->n_units; u++)
        weft_nn_round(exec->options.nn, exec->streams[WEFT_STREAM_COMPUTE], &exec->units[u].nn);
    WEFT_TRY(weft_exec_synchronise(exec, err));
    /* No rank gathers what another has not yet written. */
    return weft_comm_exchange(exec->options.comm, NULL, 0, NULL, err);
}
