/* The arena of the device "cuda": cells of the GPU's memory. What the host has in it goes by the
 * mailbox of the stream. Never run on a GPU yet: tests run it over doubles. */
#include <stdlib.h>

#include "runtime/arena/backend.h"
#include "runtime/arena/cuda/cells.h"
#include "runtime/device/cuda/stream.h"

WEFT_API extern const struct weft_arena_ops weft_arena_cuda;

struct cuda_arena {
    struct weft_arena arena; /* first */
    struct weft_cuda_cells cells;
    int64_t touched_bytes; /* the end of the last byte that was found not to hold the pattern */
};

static struct cuda_arena *cuda_arena_of(const struct weft_arena *arena)
{
    return (struct cuda_arena *)arena;
}

/* Work */

static void cuda_fill(struct weft_arena *arena, struct weft_stream *stream, void *at,
                      const struct weft_range *ranges, int32_t n_ranges, unsigned char byte)
{
    (void)arena;
    cudaError_t code = cudaSuccess;
    const cudaStream_t cuda = weft_cuda_stream_open_for_work(stream);
    for (int32_t i = 0; i < n_ranges && cuda != NULL && code == cudaSuccess; i++) {
        const size_t bytes = (size_t)(ranges[i].end - ranges[i].begin);
        if (bytes == 0) continue;
        code = cudaMemsetAsync((unsigned char *)at + ranges[i].begin, byte, bytes, cuda);
    }
    weft_cuda_stream_worked(stream, code, "fill the GPU's memory");
}

static struct weft_cuda_mailbox *mailbox_of(struct weft_stream *stream)
{
    return weft_cuda_stream_open_for_work(stream) != NULL ? &weft_cuda_stream_of(stream)->mailbox
                                                          : NULL;
}

static void cuda_write(struct weft_arena *arena, struct weft_stream *stream, void *to,
                       const void *host, int64_t bytes)
{
    (void)arena;
    struct weft_cuda_mailbox *mailbox = mailbox_of(stream);
    if (mailbox == NULL) return;
    weft_cuda_stream_worked(stream, weft_cuda_send(mailbox, to, host, bytes),
                            "copy to the GPU's memory");
}

static void cuda_read(struct weft_arena *arena, struct weft_stream *stream, const void *from,
                      int64_t bytes, void *host)
{
    (void)arena;
    struct weft_cuda_mailbox *mailbox = mailbox_of(stream);
    if (mailbox == NULL) return;
    weft_cuda_stream_worked(stream, weft_cuda_receive(mailbox, from, bytes, host),
                            "copy from the GPU's memory");
}

/* Finding uses of what is not live: a check, for which bytes come to the host. */

static void look_through_piece(void *context, const void *from, const void *piece, int64_t bytes)
{
    struct cuda_arena *a = context;
    const unsigned char *at = piece;
    const int64_t begin = (int64_t)((uintptr_t)from - a->cells.at);
    int64_t n = bytes;
    while (n > 0 && at[n - 1] == WEFT_ARENA_PATTERN)
        n--;
    if (n > 0 && begin + n > a->touched_bytes) a->touched_bytes = begin + n;
}

/* What of the range is mapped; NULL: nothing from `seen` on. */
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

static void cuda_renew(struct weft_arena *arena, struct weft_stream *stream,
                       const struct weft_range *dead, int32_t n_dead, const struct weft_range *born,
                       int32_t n_born)
{
    (void)born;
    (void)n_born;
    struct weft_cuda_mailbox *mailbox = mailbox_of(stream);
    cudaError_t code = cudaSuccess;
    for (int32_t i = 0; i < n_dead && mailbox != NULL && code == cudaSuccess; i++)
        code = look_through(cuda_arena_of(arena), mailbox, dead[i], true);
    weft_cuda_stream_worked(stream, code, "look for uses of what is not live");
}

struct touched_argument {
    const struct cuda_arena *arena;
    int64_t *end;
};

static enum weft_status tell_touched(struct weft_stream *stream, const void *argument,
                                     struct weft_error *err)
{
    (void)stream;
    (void)err;
    const struct touched_argument *a = argument;
    *a->end = a->arena->touched_bytes;
    return WEFT_OK;
}

static void cuda_touched(struct weft_arena *arena, struct weft_stream *stream, int64_t bytes,
                         int64_t *end)
{
    struct cuda_arena *a = cuda_arena_of(arena);
    struct weft_cuda_mailbox *mailbox = mailbox_of(stream);
    if (mailbox == NULL) return;
    const cudaError_t code = look_through(a, mailbox, (struct weft_range){0, bytes}, false);
    weft_cuda_stream_worked(stream, code, "look through the GPU's memory");
    const struct touched_argument argument = {a, end};
    weft_stream_push(stream, tell_touched, &argument, sizeof argument);
}

/* Life and death */

/* The driver promises nothing of what new memory holds. */
static cudaError_t zero_cells(const struct weft_cuda_cells *cells)
{
    cudaStream_t stream = NULL;
    cudaError_t code = cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, 0);
    for (int64_t i = 0; i < cells->n_seen && code == cudaSuccess; i++) {
        void *at = (unsigned char *)(uintptr_t)cells->at + cells->seen[i].at;
        code = cudaMemsetAsync(at, 0, (size_t)cells->seen[i].bytes, stream);
    }
    if (code == cudaSuccess) code = weft_cuda_await(stream);
    if (stream != NULL) cudaStreamDestroy(stream);
    return code;
}

static void cuda_unmap(struct weft_arena *arena, bool give_back)
{
    (void)give_back; /* no peer maps it */
    weft_cuda_cells_unmap(&cuda_arena_of(arena)->cells);
}

static enum weft_status cuda_map(struct weft_arena *arena, const struct weft_arena_shape *shape,
                                 struct weft_error *err)
{
    struct cuda_arena *a = cuda_arena_of(arena);
    if (a->cells.reserved != 0)
        return weft_fail(err, WEFT_E_INTERNAL, "an arena is mapped already: unmap it first");
    a->touched_bytes = 0;
    WEFT_TRY(weft_cuda_cells_map(&a->cells, shape, err));
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

/* A GPU's memory is no file: the caller's stays empty. It is that of the GPU that this thread has
 * opened as its device. */
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
    .renew = cuda_renew,
    .touched = cuda_touched,
};
