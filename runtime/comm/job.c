/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/comm/job.h"

#include "base/checked.h"
#include "runtime/comm/sum.h"

enum { ALIGN_BYTES = sizeof(float) };

const char *weft_comm_call_name(uint32_t kind)
{
    static const char *const names[WEFT_COMM_CALL_COUNT] = {
#define WEFT_COMM_CALL_NAME(name, text) text,
        WEFT_COMM_CALL_MAP(WEFT_COMM_CALL_NAME)
#undef WEFT_COMM_CALL_NAME
    };
    return kind < WEFT_COMM_CALL_COUNT ? names[kind] : "?";
}

bool weft_comm_call_equal(const struct weft_comm_call *a, const struct weft_comm_call *b)
{
    return a->kind == b->kind && a->count == b->count && a->from == b->from && a->to == b->to &&
           a->idle == b->idle;
}

void weft_comm_call_show(const struct weft_comm_call *call, struct weft_text *out)
{
    weft_text_addf(out, "%s of %lld from %lld to %lld", weft_comm_call_name((uint32_t)call->kind),
                   (long long)call->count, (long long)call->from, (long long)call->to);
    if (call->idle > 0) weft_text_addf(out, " without the last %lld ranks", (long long)call->idle);
}

void weft_comm_call_show_recent(uint32_t calls, const uint32_t kinds[WEFT_COMM_RECENT],
                                struct weft_text *out)
{
    const uint32_t n = calls < WEFT_COMM_RECENT ? calls : WEFT_COMM_RECENT;
    weft_text_add(out, n == 1 ? "its last call was " : "its last calls were ");
    for (uint32_t i = calls - n + 1; i <= calls; i++)
        weft_text_addf(out, "%s, ", weft_comm_call_name(kinds[i % WEFT_COMM_RECENT]));
    weft_text_addf(out, "call %u", calls);
}

/* In fp32 and in place, and its result comes after it. */
static struct weft_comm_job job_of_partials(const struct weft_comm_block *block)
{
    return (struct weft_comm_job){
        .call = {WEFT_COMM_CALL_ALL_REDUCE, block->slice_elements, block->full_offset,
                 block->slice_offset, block->idle},
        .ns = block->ns,
        .slice_elements = block->slice_elements,
        .partial = true,
        .dtype = WEFT_F32,
        .slice_dtype = WEFT_F32,
        .of_partials = true,
        .result_adds = block->adds,
        .result_rounded = block->dtype,
        .result_dtype = block->slice_dtype,
        .block = *block,
    };
}

/* In place. */
static struct weft_comm_job job_of_owned(enum weft_comm_call_kind kind,
                                         const struct weft_comm_block *block)
{
    return (struct weft_comm_job){
        .call = {kind, block->slice_elements, block->full_offset, block->owner, block->idle},
        .ns = block->ns,
        .slice_elements = block->slice_elements,
        .dtype = block->dtype,
        .slice_dtype = block->dtype,
        .block = *block,
    };
}

struct weft_comm_job weft_comm_job_of(enum weft_comm_call_kind kind,
                                      const struct weft_comm_block *block)
{
    if (kind == WEFT_COMM_CALL_ALL_REDUCE && block->of_partials) return job_of_partials(block);
    if (kind == WEFT_COMM_CALL_REDUCE || kind == WEFT_COMM_CALL_BROADCAST)
        return job_of_owned(kind, block);
    const int64_t full = block->full_offset;
    const int64_t slice = kind == WEFT_COMM_CALL_ALL_REDUCE ? full : block->slice_offset;
    const bool gathers = kind == WEFT_COMM_CALL_ALL_GATHER;
    const bool scatters = kind == WEFT_COMM_CALL_REDUCE_SCATTER;
    const bool sums_partials = scatters && block->of_partials;
    return (struct weft_comm_job){
        .call = {kind, block->slice_elements, gathers ? slice : full, gathers ? full : slice,
                 block->idle},
        .ns = block->ns,
        .slice_elements = block->slice_elements,
        .adds = scatters && block->adds,
        .partial = scatters && block->partial,
        .dtype = sums_partials ? WEFT_F32 : block->dtype,
        .slice_dtype = scatters ? block->slice_dtype : block->dtype,
        .of_partials = sums_partials,
        .result_rounded = block->dtype,
        .block = *block,
    };
}

struct weft_comm_job weft_comm_job_of_agreement(int64_t from_offset, int64_t to_offset,
                                                int64_t words, int64_t ns)
{
    return (struct weft_comm_job){
        .call = {WEFT_COMM_CALL_AGREE, words, from_offset, to_offset},
        .ns = ns,
    };
}

static bool is_inside(int64_t span_bytes, int64_t offset, int64_t bytes)
{
    return offset >= 0 && bytes >= 0 && bytes <= span_bytes && offset <= span_bytes - bytes &&
           offset % ALIGN_BYTES == 0;
}

static bool ranges_overlap(int64_t a, int64_t a_bytes, int64_t b, int64_t b_bytes)
{
    return a < b + b_bytes && b < a + a_bytes;
}

enum weft_status weft_comm_job_fail(const struct weft_comm_job *job, int64_t span_bytes,
                                    const char *why, struct weft_error *err)
{
    return weft_fail(err, WEFT_E_INTERNAL,
                     "a collective of %lld from offset %lld to %lld %s (arena of %lld bytes)",
                     (long long)job->call.count, (long long)job->call.from, (long long)job->call.to,
                     why, (long long)span_bytes);
}

static enum weft_status check_agreement(const struct weft_comm_job *job, int64_t span_bytes,
                                        struct weft_error *err)
{
    const int64_t from = job->call.from, to = job->call.to;
    int64_t bytes;
    if (!weft_checked_mul(job->call.count, sizeof(uint64_t), &bytes) ||
        !is_inside(span_bytes, from, bytes) || !is_inside(span_bytes, to, bytes))
        return weft_comm_job_fail(job, span_bytes, "leaves the arena", err);
    if (ranges_overlap(from, bytes, to, bytes))
        return weft_comm_job_fail(job, span_bytes, "overlaps itself", err);
    return WEFT_OK;
}

/* The result of an AllReduce of partial sums has all elements of the block. */
static enum weft_status check_result(const struct weft_comm_job *job, int64_t full_bytes,
                                     int64_t span_bytes, struct weft_error *err)
{
    const int64_t bytes =
        full_bytes / weft_dtype_bytes(WEFT_F32) * weft_dtype_bytes(job->result_dtype);
    if (!is_inside(span_bytes, job->call.to, bytes))
        return weft_comm_job_fail(job, span_bytes, "leaves the arena", err);
    if (ranges_overlap(job->call.from, full_bytes, job->call.to, bytes))
        return weft_comm_job_fail(job, span_bytes, "has a result that overlaps its block", err);
    if (job->result_adds && job->result_rounded != WEFT_F32)
        return weft_comm_job_fail(job, span_bytes, "would be added up in less than f32", err);
    return WEFT_OK;
}

const unsigned char *weft_comm_before(const struct weft_comm_job *job, int32_t rank,
                                      const unsigned char *memory, int64_t own)
{
    if (job->adds) return memory + own;
    if (!job->of_partials || !job->result_adds) return NULL;
    return memory + job->call.to + rank * weft_comm_slice_bytes(job);
}

void weft_comm_finish_partials(const struct weft_comm_job *job, int32_t ranks,
                               unsigned char *memory)
{
    const unsigned char *from = memory + job->call.from;
    const struct weft_comm_sum sum = {
        .ranks = 1,
        .dtype = WEFT_F32,
        .rounded = job->result_rounded,
        .to_dtype = job->result_dtype,
        .elements = job->slice_elements * ranks,
        .from = &from,
        .to = memory + job->call.to,
    };
    if (job->of_partials) weft_comm_sum_ranks(&sum);
}

enum weft_status weft_comm_job_check(const struct weft_comm_job *job, int32_t ranks,
                                     int64_t span_bytes, struct weft_error *err)
{
    if (job->call.kind == WEFT_COMM_CALL_AGREE) return check_agreement(job, span_bytes, err);
    const bool gathers = job->call.kind == WEFT_COMM_CALL_ALL_GATHER;
    if (job->call.idle < 0 || job->call.idle > ranks)
        return weft_comm_job_fail(job, span_bytes, "leaves out more ranks than there are", err);
    const int64_t full = gathers ? job->call.to : job->call.from;
    const bool owned = weft_comm_call_is_owned(&job->call);
    const bool in_place = owned || job->call.kind == WEFT_COMM_CALL_ALL_REDUCE;
    const int64_t slice = in_place ? -1 : gathers ? job->call.from : job->call.to;
    int64_t bytes, part_bytes, full_bytes;
    if (owned && (job->call.to < 0 || job->call.to >= ranks))
        return weft_comm_job_fail(job, span_bytes, "has an owner that is no rank", err);
    if (!weft_checked_mul(job->slice_elements, weft_dtype_bytes(job->slice_dtype), &bytes) ||
        !weft_checked_mul(job->slice_elements, weft_dtype_bytes(job->dtype), &part_bytes) ||
        !weft_checked_mul(part_bytes, ranks, &full_bytes) ||
        !is_inside(span_bytes, full, full_bytes) ||
        (slice >= 0 && !is_inside(span_bytes, slice, bytes)))
        return weft_comm_job_fail(job, span_bytes, "leaves the arena", err);
    const bool rounds = weft_comm_scatters_partials(job);
    const enum weft_dtype narrow = rounds ? job->result_rounded : job->dtype;
    if (job->of_partials && !rounds) WEFT_TRY(check_result(job, full_bytes, span_bytes, err));
    if (job->adds && narrow != WEFT_F32)
        return weft_comm_job_fail(job, span_bytes, "would be added up in less than f32", err);
    if (rounds && slice < 0)
        return weft_comm_job_fail(job, span_bytes, "would round partial sums in place", err);
    if (job->slice_dtype != narrow && (slice < 0 || job->slice_dtype != WEFT_F32))
        return weft_comm_job_fail(job, span_bytes,
                                  "would be written in a dtype that does not fit it", err);
    if (job->partial && job->slice_dtype != WEFT_F32)
        return weft_comm_job_fail(job, span_bytes, "would round a partial sum", err);
    if (slice >= 0 && ranges_overlap(full, full_bytes, slice, bytes))
        return weft_comm_job_fail(job, span_bytes, "has a slice that overlaps its block", err);
    return WEFT_OK;
}
