#include <stdlib.h>
#include <string.h>

#include "runtime/exec/parts.h"

#if defined(__SANITIZE_ADDRESS__)
#define EXEC_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define EXEC_ASAN 1
#endif
#endif

#ifdef EXEC_ASAN
#include <sanitizer/asan_interface.h>
#define EXEC_UNCHECKED __attribute__((no_sanitize("address")))
static void close_range(const void *begin, int64_t bytes)
{
    __asan_poison_memory_region(begin, (size_t)bytes);
}
static void open_range(const void *begin, int64_t bytes)
{
    __asan_unpoison_memory_region(begin, (size_t)bytes);
}
#else
#define EXEC_UNCHECKED
static void close_range(const void *begin, int64_t bytes)
{
    (void)begin;
    (void)bytes;
}
static void open_range(const void *begin, int64_t bytes)
{
    (void)begin;
    (void)bytes;
}
#endif

enum { PATTERN = 0xFF };

/* The range of a piece. */
static struct exec_range piece_range(const struct weft_buffer *buffer, int32_t piece)
{
    int64_t bytes = buffer->bytes / buffer->n_pieces;
    int64_t begin = buffer->offset + piece * bytes;
    return (struct exec_range){begin, begin + bytes};
}

static int compare_ranges(const void *a, const void *b)
{
    const struct exec_range *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

/* Sorts, and joins what touches. Returns how many are left. */
static int32_t join(struct exec_range *ranges, int32_t n)
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
static int32_t subtract(const struct exec_range *from, int32_t n_from,
                        const struct exec_range *taken, int32_t n_taken, struct exec_range *out)
{
    int32_t n = 0, t = 0;
    for (int32_t i = 0; i < n_from; i++) {
        int64_t at = from[i].begin;
        while (t < n_taken && taken[t].end <= at)
            t++;
        for (int32_t k = t; k < n_taken && taken[k].begin < from[i].end; k++) {
            if (taken[k].begin > at) out[n++] = (struct exec_range){at, taken[k].begin};
            if (taken[k].end > at) at = taken[k].end;
        }
        if (at < from[i].end) out[n++] = (struct exec_range){at, from[i].end};
    }
    return n;
}

/* Scratch: ranges of pieces that have just died, and of those that live, in one slot. */
struct scratch {
    struct exec_range *dead, *live, *difference;
};

static enum weft_status keep(struct weft_exec *exec, const struct exec_range *ranges, int32_t n,
                             struct exec_range **out, int32_t *n_out, struct weft_error *err)
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
            struct exec_range range = piece_range(buffer, p);
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

/* Before the first slot the arena is as at a period's end. */
static void fill_arena(struct weft_exec *exec)
{
    const struct weft_program *program = exec->options.program;
    memset(exec->arena, PATTERN, (size_t)program->arena_bytes);
    close_range(exec->arena, program->arena_bytes);
    for (int32_t b = 0; b < program->n_buffers; b++) {
        const struct weft_buffer *buffer = &program->buffers[b];
        for (int32_t p = 0; p < buffer->n_pieces; p++) {
            struct exec_range range = piece_range(buffer, p);
            if (weft_life_has(buffer->lives[p], program->n_slots - 1))
                open_range(exec->arena + range.begin, range.end - range.begin);
        }
    }
}

enum weft_status weft_exec_poison_create(struct weft_exec *exec, struct weft_error *err)
{
    const struct weft_program *program = exec->options.program;
    size_t n_pieces = 0;
    for (int32_t b = 0; b < program->n_buffers; b++)
        n_pieces += (size_t)program->buffers[b].n_pieces;
    exec->deaths = weft_pool_array(&exec->pool, (size_t)program->n_slots, sizeof *exec->deaths);
    struct exec_range *ranges = calloc(4 * n_pieces + 1, sizeof *ranges);
    enum weft_status status = WEFT_OK;
    if (exec->deaths == NULL || ranges == NULL) {
        status = weft_fail_memory(err, "ranges to poison");
    } else {
        struct scratch scratch = {ranges, ranges + n_pieces, ranges + 2 * n_pieces};
        for (int32_t s = 0; s < program->n_slots && status == WEFT_OK; s++)
            status = list_slot(exec, s, &scratch, err);
    }
    free(ranges);
    if (status == WEFT_OK) fill_arena(exec);
    return status;
}

/* The end of the last byte in the range that is not the pattern, or `least` when all beyond are. */
EXEC_UNCHECKED static int64_t highest_touched(const unsigned char *arena, struct exec_range range,
                                              int64_t least)
{
    int64_t at = range.end;
    while (at > range.begin && at > least && arena[at - 1] == PATTERN)
        at--;
    return at > range.begin && at > least ? at : least;
}

struct slot_argument {
    struct weft_exec *exec;
    const struct exec_deaths *deaths;
};

static enum weft_status poison(struct weft_stream *stream, const void *argument,
                               struct weft_error *err)
{
    (void)stream;
    (void)err;
    const struct slot_argument *a = argument;
    struct weft_exec *exec = a->exec;
    for (int32_t i = 0; i < a->deaths->n_dead; i++) {
        struct exec_range range = a->deaths->dead[i];
        exec->touched_bytes = highest_touched(exec->arena, range, exec->touched_bytes);
        /* Behind an evaluation, which comes to no backward, some of it is closed already. */
        open_range(exec->arena + range.begin, range.end - range.begin);
        memset(exec->arena + range.begin, PATTERN, (size_t)(range.end - range.begin));
        close_range(exec->arena + range.begin, range.end - range.begin);
    }
    for (int32_t i = 0; i < a->deaths->n_born; i++) {
        struct exec_range range = a->deaths->born[i];
        open_range(exec->arena + range.begin, range.end - range.begin);
    }
    return WEFT_OK;
}

void weft_exec_poison_push(struct weft_exec *exec, int32_t slot)
{
    if (exec->deaths == NULL) return;
    struct slot_argument argument = {exec, &exec->deaths[slot]};
    if (argument.deaths->n_dead == 0 && argument.deaths->n_born == 0) return;
    weft_stream_push(exec->streams[WEFT_STREAM_COMPUTE], poison, &argument, sizeof argument);
}

void weft_exec_poison_destroy(struct weft_exec *exec)
{
    if (exec->deaths != NULL) open_range(exec->arena, exec->options.program->arena_bytes);
}

int64_t weft_exec_poison_touched(const struct weft_exec *exec)
{
    struct exec_range all = {0, exec->options.program->arena_bytes};
    return highest_touched(exec->arena, all, exec->touched_bytes);
}
