/* SPDX-License-Identifier: Apache-2.0 */
/* The arena of the device "cuda": cells of GPU memory. The stream's mailbox exchanges values with
 * the host. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/units.h"
#include "runtime/arena/arena.h"
#include "runtime/arena/backend.h"
#include "runtime/arena/copy.h"
#include "runtime/arena/cuda/cells.h"
#include "runtime/arena/pattern.h"
#include "runtime/device/cuda/stream.h"

enum { LINE_BYTES = 160 };

WEFT_API extern const struct weft_arena_ops weft_arena_cuda;

struct cuda_arena {
    struct weft_arena arena; /* first */
    struct weft_cuda_cells cells;
    /* While watched: the shape, with its own copy of mappings, and a flag for each page. The flag
     * is true if anything but the pattern was found there. */
    struct weft_arena_shape shape;
    bool *touched;
};

static struct cuda_arena *cuda_arena_of(const struct weft_arena *arena)
{
    return (struct cuda_arena *)arena;
}

/* Work */

struct fill {
    unsigned char *at;
    const struct weft_range *ranges;
    int32_t n;
    unsigned char byte;
};

static cudaError_t issue_fill(struct weft_cuda_stream *s, const void *argument)
{
    const struct fill *fill = argument;
    cudaError_t code = cudaSuccess;
    for (int32_t i = 0; i < fill->n && code == cudaSuccess; i++) {
        const size_t bytes = (size_t)(fill->ranges[i].end - fill->ranges[i].begin);
        if (bytes > 0)
            code = cudaMemsetAsync(fill->at + fill->ranges[i].begin, fill->byte, bytes, s->cuda);
    }
    return code;
}

static void cuda_fill(struct weft_arena *arena, struct weft_stream *stream, void *at,
                      const struct weft_range *ranges, int32_t n_ranges, unsigned char byte)
{
    (void)arena;
    const struct fill fill = {at, ranges, n_ranges, byte};
    weft_cuda_stream_call(stream, issue_fill, "fill the GPU's memory", &fill, sizeof fill);
}

static struct weft_cuda_mailbox *mailbox_of(struct weft_stream *stream)
{
    return weft_cuda_stream_open_for_work(stream) != NULL ? &weft_cuda_stream_of(stream)->mailbox
                                                          : NULL;
}

struct letter {
    const void *from;
    void *to;
    int64_t bytes;
};

static cudaError_t issue_write(struct weft_cuda_stream *s, const void *argument)
{
    const struct letter *letter = argument;
    return weft_cuda_send(&s->mailbox, letter->to, letter->from, letter->bytes);
}

static void cuda_write(struct weft_arena *arena, struct weft_stream *stream, void *to,
                       const void *host, int64_t bytes)
{
    (void)arena;
    const struct letter letter = {host, to, bytes};
    weft_cuda_stream_call(stream, issue_write, "copy to the GPU's memory", &letter, sizeof letter);
}

static cudaError_t issue_read(struct weft_cuda_stream *s, const void *argument)
{
    const struct letter *letter = argument;
    return weft_cuda_receive(&s->mailbox, letter->from, letter->bytes, letter->to);
}

static void cuda_read(struct weft_arena *arena, struct weft_stream *stream, const void *from,
                      int64_t bytes, void *host)
{
    (void)arena;
    const struct letter letter = {from, host, bytes};
    weft_cuda_stream_call(stream, issue_read, "copy from the GPU's memory", &letter, sizeof letter);
}

/* Host tier */

/* The driver gives no reason when a system limit refuses a pin, so the limit is reported here. */
static enum weft_status fail_pinning(cudaError_t code, int64_t bytes, struct weft_error *err)
{
    struct rlimit locked;
    char want[WEFT_UNITS_TEXT_BYTES], most[WEFT_UNITS_TEXT_BYTES], limit[LINE_BYTES] = "";
    if (getrlimit(RLIMIT_MEMLOCK, &locked) == 0 && locked.rlim_cur != RLIM_INFINITY)
        snprintf(limit, sizeof limit,
                 "A process may lock %s here: raise that (ulimit -l unlimited; docker run --ulimit "
                 "memlock=-1). Else ",
                 weft_units_show_bytes((int64_t)locked.rlim_cur, most));
    return weft_fail(err, WEFT_E_SYSTEM,
                     "CUDA: cannot pin %s of the host's memory for copies: %s (%s, %d). %sgive the "
                     "job or its container more memory, or keep less on the host "
                     "(cluster.host.memory_limit, plan.offload)",
                     weft_units_show_bytes(bytes, want), cudaGetErrorString(code),
                     cudaGetErrorName(code), (int)code, limit);
}

static enum weft_status cuda_pin(struct weft_arena *arena, struct weft_memory_span memory,
                                 struct weft_error *err)
{
    (void)arena;
    const cudaError_t code =
        cudaHostRegister(memory.at, (size_t)memory.bytes, cudaHostRegisterDefault);
    switch ((int)code) {
    case cudaSuccess:
        return WEFT_OK;
    case cudaErrorInvalidValue:
    case cudaErrorMemoryAllocation:
    case cudaErrorOperatingSystem:
    case cudaErrorNotSupported:
        return fail_pinning(code, memory.bytes, err);
    default:
        return weft_cuda_fail(code, "pin the host's memory", err);
    }
}

/* This fails if the GPU is lost. Then the driver unpins when the process ends. */
static void cuda_unpin(struct weft_arena *arena, struct weft_memory_span memory)
{
    (void)arena;
    (void)cudaHostUnregister(memory.at);
}

static cudaError_t issue_copy(struct weft_cuda_stream *s, const void *argument)
{
    const struct weft_arena_copy *copy = argument;
    const bool down = copy->direction == WEFT_COPY_DOWN;
    cudaError_t code = cudaSuccess;
    for (int32_t i = 0; i < copy->n && code == cudaSuccess; i++) {
        void *outside = copy->outside[i].at;
        code = cudaMemcpyAsync(down ? outside : copy->at[i], down ? copy->at[i] : outside,
                               (size_t)copy->outside[i].bytes,
                               down ? cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice, s->cuda);
    }
    return code;
}
_Static_assert(sizeof(struct weft_arena_copy) <= WEFT_TASK_BYTES, "a stream's copy of a call");

static void cuda_copy(struct weft_arena *arena, struct weft_stream *stream,
                      const struct weft_arena_copy *copy)
{
    (void)arena;
    weft_cuda_stream_call(stream, issue_copy,
                          copy->direction == WEFT_COPY_DOWN ? "copy to the host's tier"
                                                            : "copy from the host's tier",
                          copy, sizeof *copy);
}

/* The search for uses of dead memory copies the bytes to the host. */

static int64_t page_of(const struct weft_arena_shape *shape, int64_t at)
{
    int64_t i = shape->n_mappings - 1;
    if (i < 0) return at / shape->page_bytes;
    while (i > 0 && shape->mappings[i].at > at)
        i--;
    return shape->mappings[i].first_page + (at - shape->mappings[i].at) / shape->page_bytes;
}

static void look_through_piece(void *context, const void *from, const void *piece, int64_t bytes)
{
    struct cuda_arena *a = context;
    const unsigned char *at = piece;
    const int64_t begin = (int64_t)((uintptr_t)from - a->cells.at);
    if (weft_arena_is_pattern(piece, bytes)) return;
    for (int64_t i = 0; i < bytes; i++) {
        if (at[i] != WEFT_ARENA_PATTERN) a->touched[page_of(&a->shape, begin + i)] = true;
    }
}

/* The search of one margin. */
struct margin_look {
    int32_t index;
    int32_t *margin;
};

static void look_at_margin(void *context, const void *from, const void *piece, int64_t bytes)
{
    const struct margin_look *look = context;
    (void)from;
    if (weft_arena_is_pattern(piece, bytes)) return;
    if (*look->margin < 0 || look->index < *look->margin) *look->margin = look->index;
}

/* Writes the next mapped part of the range to *part. Returns NULL if nothing is mapped from *i
 * on. */
static const struct weft_cuda_seen *next_seen(const struct cuda_arena *a, int64_t *i,
                                              struct weft_range range, struct weft_range *part)
{
    for (; *i < a->cells.n_seen; ++*i) {
        const struct weft_cuda_seen *seen = &a->cells.seen[*i];
        const int64_t end = seen->at + seen->bytes;
        part->begin = range.begin > seen->at ? range.begin : seen->at;
        part->end = range.end < end ? range.end : end;
        if (part->begin < part->end) return seen;
    }
    return NULL;
}

static void *address_of(const struct cuda_arena *a, int64_t at)
{
    return (unsigned char *)(uintptr_t)a->cells.at + at;
}

static cudaError_t look_through(struct cuda_arena *a, struct weft_cuda_mailbox *mailbox,
                                struct weft_range range, bool renews)
{
    cudaError_t code = cudaSuccess;
    struct weft_range part;
    for (int64_t i = 0; code == cudaSuccess && next_seen(a, &i, range, &part) != NULL; i++) {
        const int64_t bytes = part.end - part.begin;
        void *at = address_of(a, part.begin);
        code = weft_cuda_receive_pieces(mailbox, at, bytes, look_through_piece, a);
        if (code == cudaSuccess && renews)
            code = cudaMemsetAsync(at, WEFT_ARENA_PATTERN, (size_t)bytes, mailbox->stream);
    }
    return code;
}

static enum weft_status forget_looks(struct weft_stream *stream, const void *argument,
                                     struct weft_error *err)
{
    struct margin_look *looks;
    (void)stream;
    (void)err;
    memcpy(&looks, argument, sizeof looks);
    free(looks);
    return WEFT_OK;
}

static cudaError_t look_at_margins(struct cuda_arena *a, struct weft_cuda_mailbox *mailbox,
                                   const struct weft_arena_turn *turn, struct margin_look *looks)
{
    cudaError_t code = cudaSuccess;
    for (int32_t i = 0; i < turn->n_margins && code == cudaSuccess; i++) {
        const int64_t bytes = turn->margins[i].end - turn->margins[i].begin;
        void *at = address_of(a, turn->margins[i].begin);
        code = weft_cuda_receive_pieces(mailbox, at, bytes, look_at_margin, &looks[i]);
        if (code == cudaSuccess)
            code = cudaMemsetAsync(at, WEFT_ARENA_PATTERN, (size_t)bytes, mailbox->stream);
    }
    return code;
}

/* Closes nothing: a GPU cannot close a page while work is pending. */
static void cuda_renew(struct weft_arena *arena, struct weft_stream *stream,
                       const struct weft_arena_turn *turn, int32_t *margin)
{
    struct weft_cuda_mailbox *mailbox = mailbox_of(stream);
    struct margin_look *looks = calloc((size_t)turn->n_margins + 1, sizeof *looks);
    cudaError_t code;
    if (mailbox == NULL || looks == NULL) {
        free(looks);
        return;
    }
    for (int32_t i = 0; i < turn->n_margins; i++)
        looks[i] = (struct margin_look){i, margin};
    code = look_at_margins(cuda_arena_of(arena), mailbox, turn, looks);
    for (int32_t i = 0; i < turn->dead.n && code == cudaSuccess; i++)
        code = look_through(cuda_arena_of(arena), mailbox, turn->dead.ranges[i], true);
    weft_cuda_stream_worked(stream, code, "look for uses of what is not live");
    weft_stream_push(stream, forget_looks, &looks, sizeof looks);
}

static void cuda_open_all(struct weft_arena *arena, struct weft_stream *stream)
{
    (void)arena; /* cuda_renew closes nothing */
    (void)stream;
}

static enum weft_status cuda_watch(struct weft_arena *arena, struct weft_stream *stream,
                                   struct weft_error *err)
{
    struct cuda_arena *a = cuda_arena_of(arena);
    struct weft_cuda_mailbox *mailbox = mailbox_of(stream);
    cudaError_t code = cudaSuccess;
    free(a->touched);
    a->touched = calloc((size_t)a->shape.n_pages, sizeof *a->touched);
    if (a->touched == NULL) return weft_fail_memory(err, "an arena's touched pages");
    for (int64_t i = 0; i < a->cells.n_seen && mailbox != NULL && code == cudaSuccess; i++) {
        code = cudaMemsetAsync(address_of(a, a->cells.seen[i].at), WEFT_ARENA_PATTERN,
                               (size_t)a->cells.seen[i].bytes, mailbox->stream);
    }
    weft_cuda_stream_worked(stream, code, "fill the GPU's memory");
    return WEFT_OK;
}

struct touched_argument {
    const struct cuda_arena *arena;
    int64_t *bytes;
};

static enum weft_status tell_touched(struct weft_stream *stream, const void *argument,
                                     struct weft_error *err)
{
    (void)stream;
    (void)err;
    const struct touched_argument *t = argument;
    *t->bytes = 0;
    for (int64_t page = 0; page < t->arena->shape.n_pages; page++)
        *t->bytes += t->arena->touched[page] ? t->arena->shape.page_bytes : 0;
    return WEFT_OK;
}

static void cuda_touched(struct weft_arena *arena, struct weft_stream *stream,
                         const struct weft_ranges *ranges, int64_t *bytes)
{
    struct cuda_arena *a = cuda_arena_of(arena);
    struct weft_cuda_mailbox *mailbox = mailbox_of(stream);
    cudaError_t code = cudaSuccess;
    if (mailbox == NULL) return;
    for (int32_t i = 0; i < ranges->n && code == cudaSuccess; i++)
        code = look_through(a, mailbox, ranges->ranges[i], false);
    weft_cuda_stream_worked(stream, code, "look through the GPU's memory");
    const struct touched_argument argument = {a, bytes};
    weft_stream_push(stream, tell_touched, &argument, sizeof argument);
}

/* Creation and destruction */

/* The driver does not promise zeroed memory. */
static cudaError_t zero_cells(const struct weft_cuda_cells *cells)
{
    cudaStream_t stream = NULL;
    cudaError_t code = cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, 0);
    for (int64_t i = 0; i < cells->n_seen && code == cudaSuccess; i++) {
        void *at = (unsigned char *)(uintptr_t)cells->at + cells->seen[i].at;
        code = cudaMemsetAsync(at, 0, (size_t)cells->seen[i].bytes, stream);
    }
    if (stream == NULL) return code;
    /* Work queued before a failed call must end before its memory is freed. */
    const cudaError_t ended = weft_cuda_await(NULL, stream);
    cudaStreamDestroy(stream);
    return code == cudaSuccess ? ended : code;
}

static void cuda_unmap(struct weft_arena *arena, bool give_back)
{
    struct cuda_arena *a = cuda_arena_of(arena);
    (void)give_back; /* peers never map it */
    weft_cuda_cells_unmap(&a->cells);
    free((void *)a->shape.mappings);
    free(a->touched);
    a->touched = NULL;
    a->shape = (struct weft_arena_shape){0};
}

static enum weft_status keep_shape(struct cuda_arena *a, const struct weft_arena_shape *shape,
                                   struct weft_error *err)
{
    const size_t n = (size_t)shape->n_mappings;
    struct weft_arena_mapping *mappings = calloc(n + 1, sizeof *mappings);
    if (mappings == NULL) return weft_fail_memory(err, "an arena's shape");
    if (n > 0) memcpy(mappings, shape->mappings, n * sizeof *mappings);
    a->shape = *shape;
    a->shape.mappings = mappings;
    return WEFT_OK;
}

static enum weft_status cuda_map(struct weft_arena *arena, const struct weft_arena_shape *shape,
                                 struct weft_error *err)
{
    struct cuda_arena *a = cuda_arena_of(arena);
    if (a->cells.reserved != 0)
        return weft_fail(err, WEFT_E_INTERNAL, "an arena is mapped already: unmap it first");
    WEFT_TRY(weft_cuda_cells_map(&a->cells, shape, err));
    if (keep_shape(a, shape, err) != WEFT_OK) {
        cuda_unmap(arena, true);
        return err->status;
    }
    const cudaError_t code = zero_cells(&a->cells);
    if (code == cudaSuccess) return WEFT_OK;
    cuda_unmap(arena, true);
    return weft_cuda_fail(code, "clear the GPU's memory", err);
}

static void *cuda_address(const struct weft_arena *arena)
{
    return (void *)(uintptr_t)cuda_arena_of(arena)->cells.at;
}

static unsigned char *cuda_memory(const struct weft_arena *arena)
{
    (void)arena;
    return NULL;
}

static int64_t cuda_resident_bytes(const struct weft_arena *arena)
{
    return weft_cuda_cells_bytes(&cuda_arena_of(arena)->cells);
}

static int64_t cuda_mappings(const struct weft_arena *arena)
{
    return cuda_arena_of(arena)->cells.n_seen;
}

static void cuda_close(struct weft_arena *arena)
{
    cuda_unmap(arena, true);
    free(arena);
}

/* Ignores `fd`, because GPU memory is not a file. The memory is of the calling thread's current
 * GPU. */
static enum weft_status cuda_open(int fd, struct weft_arena **out, struct weft_error *err)
{
    (void)fd;
    struct cuda_arena *a = calloc(1, sizeof *a);
    if (a == NULL) return weft_fail_memory(err, "an arena");
    a->arena.ops = &weft_arena_cuda;
    const cudaError_t code = cudaGetDevice(&a->cells.ordinal);
    if (code != cudaSuccess) {
        free(a);
        return weft_cuda_fail(code, "find the GPU of this thread", err);
    }
    *out = &a->arena;
    return WEFT_OK;
}

const struct weft_arena_ops weft_arena_cuda = {
    .name = "cuda",
    .open = cuda_open,
    .close = cuda_close,
    .map = cuda_map,
    .unmap = cuda_unmap,
    .address = cuda_address,
    .memory = cuda_memory,
    .resident_bytes = cuda_resident_bytes,
    .mappings = cuda_mappings,
    .fill = cuda_fill,
    .write = cuda_write,
    .read = cuda_read,
    .pin = cuda_pin,
    .unpin = cuda_unpin,
    .copy = cuda_copy,
    .watch = cuda_watch,
    .renew = cuda_renew,
    .open_all = cuda_open_all,
    .touched = cuda_touched,
};
