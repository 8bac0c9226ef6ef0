#include <stdlib.h>
#include <string.h>

#include "runtime/exec/parts.h"

/* The range of a piece. */
static struct weft_range piece_range(const struct weft_buffer *buffer, int32_t piece)
{
    int64_t bytes = buffer->bytes / buffer->n_pieces;
    int64_t begin = buffer->offset + piece * bytes;
    return (struct weft_range){begin, begin + bytes};
}

static int compare_ranges(const void *a, const void *b)
{
    const struct weft_range *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

/* Sorts, and joins what touches. Returns how many are left. */
static int32_t join(struct weft_range *ranges, int32_t n)
{
    qsort(ranges, (size_t)n, sizeof *ranges, compare_ranges);
    int32_t kept = 0;
    for (int32_t i = 0; i < n; i++) {
        if (kept > 0 && ranges[i].begin <= ranges[kept - 1].end) {
            if (ranges[i].end > ranges[kept - 1].end) ranges[kept - 1].end = ranges[i].end;
        } else {
            ranges[kept++] = ranges[i];
        }
    }
    return kept;
}

/* Bytes of `from` that are not in `taken`, both sorted and joined. Room for n_from + n_taken. */
static int32_t subtract(const struct weft_range *from, int32_t n_from,
                        const struct weft_range *taken, int32_t n_taken, struct weft_range *out)
{
    int32_t n = 0, t = 0;
    for (int32_t i = 0; i < n_from; i++) {
        int64_t at = from[i].begin;
        while (t < n_taken && taken[t].end <= at)
            t++;
        for (int32_t k = t; k < n_taken && taken[k].begin < from[i].end; k++) {
            if (taken[k].begin > at) out[n++] = (struct weft_range){at, taken[k].begin};
            if (taken[k].end > at) at = taken[k].end;
        }
        if (at < from[i].end) out[n++] = (struct weft_range){at, from[i].end};
    }
    return n;
}

/* Scratch: ranges of pieces that have just died, and of those that live, in one slot. */
struct scratch {
    struct weft_range *dead, *live, *difference;
};

static enum weft_status keep(struct weft_exec *exec, const struct weft_range *ranges, int32_t n,
                             struct weft_range **out, int32_t *n_out, struct weft_error *err)
{
    *out = weft_pool_array(&exec->pool, (size_t)n, sizeof **out);
    if (*out == NULL) return weft_fail_memory(err, "ranges to poison");
    if (n > 0) memcpy(*out, ranges, (size_t)n * sizeof *ranges);
    *n_out = n;
    return WEFT_OK;
}

/* At the start of a slot: what lived in the one before and does not live now is dead; what lives
 * now and did not is born. */
static enum weft_status list_slot(struct weft_exec *exec, int32_t slot, struct scratch *scratch,
                                  struct weft_error *err)
{
    const struct weft_program *program = exec->options.program;
    struct exec_deaths *deaths = &exec->deaths[slot];
    int32_t before = slot == 0 ? program->n_slots - 1 : slot - 1, n_before = 0, n_now = 0;
    for (int32_t b = 0; b < program->n_buffers; b++) {
        const struct weft_buffer *buffer = &program->buffers[b];
        for (int32_t p = 0; p < buffer->n_pieces; p++) {
            struct weft_range range = piece_range(buffer, p);
            if (weft_life_has(buffer->lives[p], before)) scratch->dead[n_before++] = range;
            if (weft_life_has(buffer->lives[p], slot)) scratch->live[n_now++] = range;
        }
    }
    n_before = join(scratch->dead, n_before);
    n_now = join(scratch->live, n_now);
    int32_t n = subtract(scratch->dead, n_before, scratch->live, n_now, scratch->difference);
    WEFT_TRY(keep(exec, scratch->difference, n, &deaths->dead, &deaths->n_dead, err));
    n = subtract(scratch->live, n_now, scratch->dead, n_before, scratch->difference);
    return keep(exec, scratch->difference, n, &deaths->born, &deaths->n_born, err);
}

/* Before the first slot the arena is as at a period's end: `living` has room for all pieces. */
static enum weft_status bury_arena(struct weft_exec *exec, struct weft_range *living,
                                   struct weft_error *err)
{
    const struct weft_program *program = exec->options.program;
    struct weft_stream *stream = exec->streams[WEFT_STREAM_COMPUTE];
    int32_t n = 0;
    for (int32_t b = 0; b < program->n_buffers; b++) {
        const struct weft_buffer *buffer = &program->buffers[b];
        for (int32_t p = 0; p < buffer->n_pieces; p++) {
            if (weft_life_has(buffer->lives[p], program->n_slots - 1))
                living[n++] = piece_range(buffer, p);
        }
    }
    weft_arena_fill(exec->arena, stream, exec->base, &exec->whole, 1, WEFT_ARENA_PATTERN);
    weft_arena_renew(exec->arena, stream, &exec->whole, 1, living, n);
    return weft_stream_synchronise(stream, err);
}

enum weft_status weft_exec_poison_create(struct weft_exec *exec, struct weft_error *err)
{
    const struct weft_program *program = exec->options.program;
    size_t n_pieces = 0;
    for (int32_t b = 0; b < program->n_buffers; b++)
        n_pieces += (size_t)program->buffers[b].n_pieces;
    exec->deaths = weft_pool_array(&exec->pool, (size_t)program->n_slots, sizeof *exec->deaths);
    struct weft_range *ranges = calloc(4 * n_pieces + 1, sizeof *ranges);
    enum weft_status status = WEFT_OK;
    if (exec->deaths == NULL || ranges == NULL) {
        status = weft_fail_memory(err, "ranges to poison");
    } else {
        struct scratch scratch = {ranges, ranges + n_pieces, ranges + 2 * n_pieces};
        for (int32_t s = 0; s < program->n_slots && status == WEFT_OK; s++)
            status = list_slot(exec, s, &scratch, err);
    }
    if (status == WEFT_OK) status = bury_arena(exec, ranges, err);
    free(ranges);
    return status;
}

void weft_exec_poison_push(struct weft_exec *exec, int32_t slot)
{
    if (exec->deaths == NULL) return;
    const struct exec_deaths *deaths = &exec->deaths[slot];
    weft_arena_renew(exec->arena, exec->streams[WEFT_STREAM_COMPUTE], deaths->dead, deaths->n_dead,
                     deaths->born, deaths->n_born);
}

void weft_exec_poison_destroy(struct weft_exec *exec)
{
    if (exec->deaths == NULL) return;
    weft_arena_renew(exec->arena, exec->streams[WEFT_STREAM_COMPUTE], NULL, 0, &exec->whole, 1);
}

enum weft_status weft_exec_touched_bytes(struct weft_exec *exec, int64_t *bytes,
                                         struct weft_error *err)
{
    *bytes = exec->options.program->arena_bytes;
    if (exec->deaths == NULL) return WEFT_OK;
    weft_arena_touched(exec->arena, exec->streams[WEFT_STREAM_COMPUTE], *bytes, bytes);
    return weft_exec_synchronise(exec, err);
}
