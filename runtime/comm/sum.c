/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/comm/sum.h"

#include <string.h>

enum {
    CHUNK = 2048, /* elements summed at once: 8 KiB, which fits the first cache */
    WORD_CHUNK = 512
};

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

/* Adds `count` elements of the ranks [first, end) to the sum, one rank after the other. `begins`:
 * the sum is empty. */
static void sum_chunk(const struct weft_comm_sum *job, int32_t first, int32_t end, bool begins,
                      int64_t at, int64_t count, float *sum)
{
    const int64_t skip = at * weft_dtype_bytes(job->dtype);
    for (int32_t rank = first; rank < end; rank++)
        add_chunk(job->dtype, begins && rank == first, job->from[rank] + skip, count, sum);
}

static int32_t least_of(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

void weft_comm_sum_ranks(const struct weft_comm_sum *job)
{
    const bool has_nodes = job->per_node > 1 && job->per_node < job->ranks;
    const int32_t ranks = job->ranks - job->idle;
    const int32_t alone = least_of(!has_nodes            ? ranks
                                   : job->before == NULL ? job->per_node
                                                         : 0,
                                   ranks);
    if (ranks == 0) return;
    const int64_t n = job->elements;
    float sum[CHUNK], of_node[CHUNK];
    for (int64_t at = 0; at < n; at += CHUNK) {
        const int64_t count = n - at < CHUNK ? n - at : CHUNK;
        if (job->before != NULL)
            memcpy(sum, job->before + at * (int64_t)sizeof *sum, (size_t)count * sizeof *sum);
        sum_chunk(job, 0, alone, job->before == NULL, at, count, sum);
        for (int32_t first = alone; first < ranks; first += job->per_node) {
            sum_chunk(job, first, least_of(first + job->per_node, ranks), true, at, count, of_node);
            add_floats(sum, of_node, count);
        }
        write_sums(job->rounded, job->to_dtype, sum, count,
                   job->to + at * weft_dtype_bytes(job->to_dtype));
    }
}

void weft_comm_sum_words(int32_t ranks, const unsigned char *const *from, int64_t words,
                         unsigned char *to)
{
    uint64_t sum[WORD_CHUNK];
    for (int64_t at = 0; at < words; at += WORD_CHUNK) {
        const int64_t count = words - at < WORD_CHUNK ? words - at : WORD_CHUNK;
        const int64_t skip = at * (int64_t)sizeof *sum;
        memset(sum, 0, sizeof sum);
        for (int32_t rank = 0; rank < ranks; rank++)
            add_words(sum, (const void *)(from[rank] + skip), count);
        memcpy(to + skip, sum, (size_t)count * sizeof *sum);
    }
}
