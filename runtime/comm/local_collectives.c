#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "runtime/comm/local.h"

enum {
    ALIGN_BYTES = sizeof(float),
    CHUNK = 2048, /* elements summed at once: 8 KiB, which fits the first cache */
    WORD_CHUNK = 512
};

/* The argument of every collective's task. */
struct job {
    struct weft_local_comm *c;
    struct weft_local_call call;
    int64_t ns;
    int64_t slice_elements;
    bool adds;
    enum weft_dtype dtype, slice_dtype;
};

/* Ends a collective on the channel's clock. It began when the last rank arrived. Each byte crosses
 * the link `passes` times. */
static void end_call(const struct job *job, struct weft_stream *channel, int64_t latest_ns,
                     int passes, double bytes)
{
    struct weft_local_comm *c = job->c;
    int64_t start_ns = latest_ns > c->link_free_ns ? latest_ns : c->link_free_ns;
    if (weft_stream_clock(channel) == WEFT_CLOCK_VIRTUAL) {
        weft_stream_run(channel, start_ns, job->ns);
        c->link_free_ns = weft_stream_now(channel);
        return;
    }
    if (!c->emulate || c->comm.ranks == 1) return;
    double share = (double)(c->comm.ranks - 1) / (double)c->comm.ranks;
    double ns = (double)passes * ((double)c->alpha_ns + bytes * share / c->bytes_per_s * 1e9);
    /* All ranks compute the same end from the same numbers. */
    c->link_free_ns = start_ns + (int64_t)llround(ns);
    weft_clock_sleep_until_ns(c->link_free_ns);
}

static enum weft_status enter_call(const struct job *job, struct weft_stream *channel,
                                   int64_t *latest_ns, struct weft_error *err)
{
    return weft_local_enter(job->c, &job->call, weft_stream_now(channel), NULL, 0, latest_ns, err);
}

/* Addresses */

static bool is_inside(const struct weft_local_comm *c, int64_t offset, int64_t bytes)
{
    return offset >= 0 && bytes >= 0 && bytes <= c->span_bytes && offset <= c->span_bytes - bytes &&
           offset % ALIGN_BYTES == 0;
}

/* True if peers may read these bytes: one of the ranges given to map_arena contains them. */
static bool is_read(const struct weft_local_comm *c, int64_t offset, int64_t bytes)
{
    int32_t low = 0, high = c->n_reads;
    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        if (c->reads[middle].end <= offset) low = middle + 1;
        if (c->reads[middle].end > offset) high = middle;
    }
    return c->reads == NULL || (low < c->n_reads && c->reads[low].begin <= offset &&
                                offset + bytes <= c->reads[low].end);
}

static bool ranges_overlap(int64_t a, int64_t a_bytes, int64_t b, int64_t b_bytes)
{
    return a < b + b_bytes && b < a + a_bytes;
}

static enum weft_status fail_block(const struct job *job, const char *why, struct weft_error *err)
{
    return weft_fail(err, WEFT_E_INTERNAL,
                     "a collective of %lld from offset %lld to %lld %s (arena of %lld bytes)",
                     (long long)job->call.count, (long long)job->call.from, (long long)job->call.to,
                     why, (long long)job->c->span_bytes);
}

/* Checks that block and slice lie in the arena. They may be the same memory (negative offset: in
 * place), but may not overlap otherwise. Peers read one, the slice if it `gathers`, while this rank
 * writes the other. */
static enum weft_status check_block(const struct job *job, int64_t full, int64_t slice,
                                    bool gathers, struct weft_error *err)
{
    const struct weft_local_comm *c = job->c;
    int64_t bytes, part_bytes, full_bytes;
    if (!weft_checked_mul(job->slice_elements, weft_dtype_bytes(job->slice_dtype), &bytes) ||
        !weft_checked_mul(job->slice_elements, weft_dtype_bytes(job->dtype), &part_bytes) ||
        !weft_checked_mul(part_bytes, c->comm.ranks, &full_bytes) ||
        !is_inside(c, full, full_bytes) || (slice >= 0 && !is_inside(c, slice, bytes)))
        return fail_block(job, "leaves the arena", err);
    const bool reads_slice = gathers && slice >= 0;
    if (!is_read(c, reads_slice ? slice : full, reads_slice ? bytes : full_bytes))
        return fail_block(job, "reads of peers what they were not mapped for", err);
    if (job->adds && job->dtype != WEFT_F32)
        return fail_block(job, "would be added up in less than f32", err);
    if (job->slice_dtype != job->dtype && (slice < 0 || job->slice_dtype != WEFT_F32))
        return fail_block(job, "would be written in a dtype that does not fit it", err);
    if (slice >= 0 && ranges_overlap(full, full_bytes, slice, bytes))
        return fail_block(job, "has a slice that overlaps its block", err);
    return WEFT_OK;
}

/* Offset of the rank's slice: on its own, or in the full block. */
static int64_t slice_at(int64_t full, int64_t slice, int32_t rank, int64_t slice_bytes)
{
    return slice >= 0 ? slice : full + rank * slice_bytes;
}

/* Sums */

static void add_floats(float *restrict sum, const float *restrict x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        sum[i] += x[i];
}

static void add_words(uint64_t *restrict sum, const uint64_t *restrict x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        sum[i] += x[i];
}

static void add_bf16(float *restrict sum, const uint16_t *restrict x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        sum[i] += weft_bf16_widen(x[i]);
}

static void add_f16(float *restrict sum, const uint16_t *restrict x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        sum[i] += weft_f16_widen(x[i]);
}

/* sum = x, or sum += x. */
static void add_chunk(enum weft_dtype dtype, bool first, const void *x, int64_t n, float *sum)
{
    switch (dtype) {
    case WEFT_F32:
    case WEFT_DTYPE_COUNT:
        if (first) {
            memcpy(sum, x, (size_t)n * sizeof *sum);
        } else {
            add_floats(sum, x, n);
        }
        return;
    case WEFT_BF16:
        /* -0 is the neutral element of addition. */
        for (int64_t i = 0; first && i < n; i++)
            sum[i] = -0.0f;
        add_bf16(sum, x, n);
        return;
    case WEFT_F16:
        for (int64_t i = 0; first && i < n; i++)
            sum[i] = -0.0f;
        add_f16(sum, x, n);
        return;
    }
}

/* Rounds the sums to `dtype` once, and writes them as `out_dtype`: `dtype` or fp32. */
static void write_sums(enum weft_dtype dtype, enum weft_dtype out_dtype, const float *restrict sum,
                       int64_t n, void *restrict out)
{
    uint16_t *narrow = out;
    float *wide = out;
    if (dtype == WEFT_F32) {
        memcpy(out, sum, (size_t)n * sizeof *sum);
    } else if (dtype == WEFT_BF16 && out_dtype == WEFT_F32) {
        for (int64_t i = 0; i < n; i++)
            wide[i] = weft_bf16_widen(weft_bf16_narrow(sum[i]));
    } else if (dtype == WEFT_BF16) {
        for (int64_t i = 0; i < n; i++)
            narrow[i] = weft_bf16_narrow(sum[i]);
    } else if (out_dtype == WEFT_F32) {
        for (int64_t i = 0; i < n; i++)
            wide[i] = weft_f16_widen(weft_f16_narrow(sum[i]));
    } else {
        for (int64_t i = 0; i < n; i++)
            narrow[i] = weft_f16_narrow(sum[i]);
    }
}

/* Sums the slices at `from` of all arenas in rank order, and writes or adds the sum to `to` of this
 * rank's arena. `to` may be this rank's own operand, because a chunk is written after all its
 * operands have been read. */
static void sum_ranks(const struct job *job, int64_t from, int64_t to, enum weft_dtype out_dtype)
{
    const struct weft_local_comm *c = job->c;
    int64_t n = job->slice_elements, size = weft_dtype_bytes(job->dtype);
    unsigned char *out = c->arenas[c->comm.rank] + to;
    float sum[CHUNK];
    for (int64_t at = 0; at < n; at += CHUNK) {
        int64_t count = n - at < CHUNK ? n - at : CHUNK;
        for (int32_t rank = 0; rank < c->comm.ranks; rank++)
            add_chunk(job->dtype, rank == 0, c->arenas[rank] + from + at * size, count, sum);
        if (job->adds) {
            add_floats((float *)(void *)out + at, sum, count);
        } else {
            write_sums(job->dtype, out_dtype, sum, count, out + at * weft_dtype_bytes(out_dtype));
        }
    }
}

/* Copies all ranks' slices into this rank's full block. It begins with the next rank's, so ranks
 * read different slices at a time. */
static void gather_slices(const struct weft_local_comm *c, int64_t full, int64_t slice,
                          int64_t slice_bytes)
{
    int32_t ranks = c->comm.ranks, self = c->comm.rank;
    for (int32_t i = 0; i < ranks; i++) {
        int32_t rank = (self + 1 + i) % ranks;
        unsigned char *to = c->arenas[self] + full + rank * slice_bytes;
        const unsigned char *from = c->arenas[rank] + slice_at(full, slice, rank, slice_bytes);
        if (to != from) memcpy(to, from, (size_t)slice_bytes);
    }
}

/* The collectives, as tasks on the channel */

static enum weft_status run_all_gather(struct weft_stream *channel, const void *argument,
                                       struct weft_error *err)
{
    const struct job *job = argument;
    int64_t full = job->call.to, slice = job->call.from, latest_ns;
    WEFT_TRY(check_block(job, full, slice, true, err));
    int64_t slice_bytes = job->slice_elements * weft_dtype_bytes(job->dtype);
    WEFT_TRY(enter_call(job, channel, &latest_ns, err));
    gather_slices(job->c, full, slice, slice_bytes);
    WEFT_TRY(weft_local_barrier(job->c, err));
    end_call(job, channel, latest_ns, 1, (double)slice_bytes * job->c->comm.ranks);
    return WEFT_OK;
}

static enum weft_status run_reduce_scatter(struct weft_stream *channel, const void *argument,
                                           struct weft_error *err)
{
    const struct job *job = argument;
    struct weft_local_comm *c = job->c;
    int64_t full = job->call.from, slice = job->call.to, latest_ns;
    WEFT_TRY(check_block(job, full, slice, false, err));
    int64_t slice_bytes = job->slice_elements * weft_dtype_bytes(job->dtype);
    WEFT_TRY(enter_call(job, channel, &latest_ns, err));
    int64_t to = slice_at(full, slice, c->comm.rank, slice_bytes);
    sum_ranks(job, full + c->comm.rank * slice_bytes, to, job->slice_dtype);
    WEFT_TRY(weft_local_barrier(c, err));
    end_call(job, channel, latest_ns, 1, (double)slice_bytes * c->comm.ranks);
    return WEFT_OK;
}

static enum weft_status run_all_reduce(struct weft_stream *channel, const void *argument,
                                       struct weft_error *err)
{
    const struct job *job = argument;
    struct weft_local_comm *c = job->c;
    int64_t full = job->call.from, latest_ns;
    WEFT_TRY(check_block(job, full, -1, false, err));
    int64_t slice_bytes = job->slice_elements * weft_dtype_bytes(job->dtype);
    WEFT_TRY(enter_call(job, channel, &latest_ns, err));
    /* Only rank r reads slot r of all full blocks and writes its own, so this is safe in place. */
    int64_t own = full + c->comm.rank * slice_bytes;
    sum_ranks(job, own, own, job->dtype);
    WEFT_TRY(weft_local_barrier(c, err));
    gather_slices(c, full, -1, slice_bytes);
    WEFT_TRY(weft_local_barrier(c, err));
    end_call(job, channel, latest_ns, 2, (double)slice_bytes * c->comm.ranks);
    return WEFT_OK;
}

static enum weft_status run_agree(struct weft_stream *channel, const void *argument,
                                  struct weft_error *err)
{
    const struct job *job = argument;
    struct weft_local_comm *c = job->c;
    int64_t from = job->call.from, to = job->call.to, words = job->call.count, bytes, latest_ns;
    if (!weft_checked_mul(words, sizeof(uint64_t), &bytes) || !is_inside(c, from, bytes) ||
        !is_inside(c, to, bytes))
        return fail_block(job, "leaves the arena", err);
    if (ranges_overlap(from, bytes, to, bytes)) return fail_block(job, "overlaps itself", err);
    if (!is_read(c, from, bytes))
        return fail_block(job, "reads of peers what they were not mapped for", err);
    WEFT_TRY(enter_call(job, channel, &latest_ns, err));
    uint64_t sum[WORD_CHUNK];
    for (int64_t at = 0; at < words; at += WORD_CHUNK) {
        int64_t count = words - at < WORD_CHUNK ? words - at : WORD_CHUNK;
        int64_t skip = at * (int64_t)sizeof *sum;
        memset(sum, 0, sizeof sum);
        for (int32_t rank = 0; rank < c->comm.ranks; rank++) {
            const void *theirs = c->arenas[rank] + from + skip;
            add_words(sum, theirs, count);
        }
        memcpy(c->arenas[c->comm.rank] + to + skip, sum, (size_t)count * sizeof *sum);
    }
    WEFT_TRY(weft_local_barrier(c, err));
    end_call(job, channel, latest_ns, 2, 0);
    return WEFT_OK;
}

void weft_local_all_gather(struct weft_comm *comm, struct weft_stream *channel,
                           const struct weft_comm_block *block)
{
    const struct job job = {
        .c = weft_local_comm_of(comm),
        .call = {WEFT_LOCAL_CALL_ALL_GATHER, block->slice_elements, block->slice_offset,
                 block->full_offset},
        .ns = block->ns,
        .slice_elements = block->slice_elements,
        .dtype = block->dtype,
        .slice_dtype = block->dtype,
    };
    weft_stream_push(channel, run_all_gather, &job, sizeof job);
}

void weft_local_reduce_scatter(struct weft_comm *comm, struct weft_stream *channel,
                               const struct weft_comm_block *block)
{
    const struct job job = {
        .c = weft_local_comm_of(comm),
        .call = {WEFT_LOCAL_CALL_REDUCE_SCATTER, block->slice_elements, block->full_offset,
                 block->slice_offset},
        .ns = block->ns,
        .slice_elements = block->slice_elements,
        .adds = block->adds,
        .dtype = block->dtype,
        .slice_dtype = block->slice_dtype,
    };
    weft_stream_push(channel, run_reduce_scatter, &job, sizeof job);
}

void weft_local_all_reduce(struct weft_comm *comm, struct weft_stream *channel,
                           const struct weft_comm_block *block)
{
    const struct job job = {
        .c = weft_local_comm_of(comm),
        .call = {WEFT_LOCAL_CALL_ALL_REDUCE, block->slice_elements, block->full_offset,
                 block->full_offset},
        .ns = block->ns,
        .slice_elements = block->slice_elements,
        .dtype = block->dtype,
        .slice_dtype = block->dtype,
    };
    weft_stream_push(channel, run_all_reduce, &job, sizeof job);
}

void weft_local_agree(struct weft_comm *comm, struct weft_stream *channel, int64_t from_offset,
                      int64_t to_offset, int64_t words, int64_t ns)
{
    const struct job job = {
        .c = weft_local_comm_of(comm),
        .call = {WEFT_LOCAL_CALL_AGREE, words, from_offset, to_offset},
        .ns = ns,
    };
    weft_stream_push(channel, run_agree, &job, sizeof job);
}
