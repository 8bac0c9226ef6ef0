/* SPDX-License-Identifier: Apache-2.0 */
/* A job is one collective as all ranks see it: its call, which must be equal on all of them, and
 * the form of its block. */
#ifndef WEFT_RUNTIME_COMM_JOB_H
#define WEFT_RUNTIME_COMM_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/numbers.h"
#include "base/status.h"
#include "base/text.h"
#include "runtime/comm/comm.h"

/* X(enumerator, name): the kinds of calls. */
#define WEFT_COMM_CALL_MAP(X)                                                                      \
    X(NONE, "nothing")                                                                             \
    X(OPEN, "open")                                                                                \
    X(EXCHANGE, "exchange")                                                                        \
    X(ALL_GATHER, "all_gather")                                                                    \
    X(REDUCE_SCATTER, "reduce_scatter")                                                            \
    X(ALL_REDUCE, "all_reduce")                                                                    \
    X(AGREE, "agree")                                                                              \
    X(REDUCE, "reduce")                                                                            \
    X(BROADCAST, "broadcast")

enum weft_comm_call_kind {
#define WEFT_COMM_CALL_ENUMERATOR(name, text) WEFT_COMM_CALL_##name,
    WEFT_COMM_CALL_MAP(WEFT_COMM_CALL_ENUMERATOR)
#undef WEFT_COMM_CALL_ENUMERATOR
        WEFT_COMM_CALL_COUNT
};

/* A call. All ranks must make it with equal values. */
struct weft_comm_call {
    enum weft_comm_call_kind kind;
    int64_t count;    /* elements, words or bytes */
    int64_t from, to; /* offsets; REDUCE, BROADCAST: of the block, and the owner's rank */
    int64_t idle;     /* of a reduction: ranks, the last ones, without an operand */
};

/* False for calls outside of steps. */
static inline bool weft_comm_call_is_collective(uint32_t kind)
{
    return kind >= WEFT_COMM_CALL_ALL_GATHER;
}

/* "all_gather"; "?" for a number that is no kind. */
const char *weft_comm_call_name(uint32_t kind);
bool weft_comm_call_equal(const struct weft_comm_call *a, const struct weft_comm_call *b);
/* Appends "all_gather of 128 from 0 to 4096". */
void weft_comm_call_show(const struct weft_comm_call *call, struct weft_text *out);

enum { WEFT_COMM_RECENT = 4 }; /* calls that messages list */

/* Appends "its last calls were agree, exchange, call 9": `calls` calls were made, and call n's kind
 * is in word n modulo WEFT_COMM_RECENT. */
void weft_comm_call_show_recent(uint32_t calls, const uint32_t kinds[WEFT_COMM_RECENT],
                                struct weft_text *out);

struct weft_comm_job {
    struct weft_comm_call call;
    int64_t ns;             /* predicted */
    int64_t slice_elements; /* 0 for AGREE */
    bool adds, partial;
    enum weft_dtype dtype, slice_dtype;
    /* AllReduce or ReduceScatter of partial sums: of the result. The second adds by `adds`. */
    bool of_partials, result_adds;
    enum weft_dtype result_rounded, result_dtype;
    struct weft_comm_block block; /* as it was given; AGREE: none */
};

/* The job of a collective of that kind over the block, except AGREE. */
struct weft_comm_job weft_comm_job_of(enum weft_comm_call_kind kind,
                                      const struct weft_comm_block *block);
struct weft_comm_job weft_comm_job_of_agreement(int64_t from_offset, int64_t to_offset,
                                                int64_t words, int64_t ns);

/* Checks that all bytes of the job lie in an arena of span_bytes bytes of addresses, and that block
 * and slice are the same memory or do not overlap. WEFT_E_INTERNAL. */
WEFT_MUST_USE enum weft_status weft_comm_job_check(const struct weft_comm_job *job, int32_t ranks,
                                                   int64_t span_bytes, struct weft_error *err);
WEFT_MUST_USE enum weft_status weft_comm_job_fail(const struct weft_comm_job *job,
                                                  int64_t span_bytes, const char *why,
                                                  struct weft_error *err);

/* Bytes of a slice in the full block. */
static inline int64_t weft_comm_slice_bytes(const struct weft_comm_job *job)
{
    return job->slice_elements * weft_dtype_bytes(job->dtype);
}

/* The fp32 sums of earlier rounds, to which the sum over ranks for this rank's slice is added;
 * NULL: none. `own` is the slice's offset. For an AllReduce of partial sums they are in its result.
 */
const unsigned char *weft_comm_before(const struct weft_comm_job *job, int32_t rank,
                                      const unsigned char *memory, int64_t own);

/* After an AllReduce of partial sums over `ranks` ranks: rounds the sums, and writes the result. */
void weft_comm_finish_partials(const struct weft_comm_job *job, int32_t ranks,
                               unsigned char *memory);

/* Whether the call moves a whole block to or from its owner, in place. */
static inline bool weft_comm_call_is_owned(const struct weft_comm_call *call)
{
    return call->kind == WEFT_COMM_CALL_REDUCE || call->kind == WEFT_COMM_CALL_BROADCAST;
}

/* A ReduceScatter of partial sums: in fp32, and rounded in the slice. */
static inline bool weft_comm_scatters_partials(const struct weft_comm_job *job)
{
    return job->of_partials && job->call.kind == WEFT_COMM_CALL_REDUCE_SCATTER;
}

/* The dtype that the sum is rounded to. */
static inline enum weft_dtype weft_comm_rounded(const struct weft_comm_job *job)
{
    if (weft_comm_scatters_partials(job)) return job->result_rounded;
    return job->partial ? WEFT_F32 : job->dtype;
}

#endif
