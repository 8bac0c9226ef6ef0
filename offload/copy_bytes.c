/* SPDX-License-Identifier: Apache-2.0 */
#include "offload/copy_bytes.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* A smaller copy stays in the caches anyway. */
enum { PAST_CACHES_LEAST_BYTES = 256 << 10, LINE_BYTES = 64 };

static bool is_always_there(void)
{
    return true;
}

static void copy_plain(unsigned char *to, const unsigned char *from, int64_t bytes)
{
    memcpy(to, from, (size_t)bytes);
}

#if defined(__x86_64__)
/* Bytes before the first whole line of `to`, at most `bytes`. */
static int64_t bytes_to_line(const unsigned char *to, int64_t bytes)
{
    const int64_t head = (int64_t)(-(uintptr_t)to % LINE_BYTES);
    return head < bytes ? head : bytes;
}

/* Copies whole lines with a loop for lines, and the ends of the range plainly. */
#define COPY_BY_LINES(name, isa, lines)                                                            \
    __attribute__((target(isa))) static void name(unsigned char *to, const unsigned char *from,    \
                                                  int64_t bytes)                                   \
    {                                                                                              \
        const int64_t head = bytes_to_line(to, bytes);                                             \
        const int64_t n_lines = (bytes - head) / LINE_BYTES, middle = n_lines * LINE_BYTES;        \
        memcpy(to, from, (size_t)head);                                                            \
        lines(to + head, from + head, n_lines);                                                    \
        memcpy(to + head + middle, from + head + middle, (size_t)(bytes - head - middle));         \
        _mm_sfence();                                                                              \
    }

__attribute__((target("sse2"))) static void lines_sse2(unsigned char *to, const unsigned char *from,
                                                       int64_t n)
{
    for (; n > 0; n--, to += LINE_BYTES, from += LINE_BYTES) {
        for (int i = 0; i < LINE_BYTES; i += 16)
            _mm_stream_si128((__m128i *)(to + i), _mm_loadu_si128((const __m128i *)(from + i)));
    }
}

__attribute__((target("avx2"))) static void lines_avx2(unsigned char *to, const unsigned char *from,
                                                       int64_t n)
{
    for (; n > 0; n--, to += LINE_BYTES, from += LINE_BYTES) {
        const __m256i low = _mm256_loadu_si256((const __m256i *)from);
        const __m256i high = _mm256_loadu_si256((const __m256i *)(from + 32));
        _mm256_stream_si256((__m256i *)to, low);
        _mm256_stream_si256((__m256i *)(to + 32), high);
    }
}

__attribute__((target("avx512f"))) static void lines_avx512(unsigned char *to,
                                                            const unsigned char *from, int64_t n)
{
    for (; n > 0; n--, to += LINE_BYTES, from += LINE_BYTES)
        _mm512_stream_si512((__m512i *)to, _mm512_loadu_si512((const __m512i *)from));
}

COPY_BY_LINES(copy_sse2, "sse2", lines_sse2)
COPY_BY_LINES(copy_avx2, "avx2", lines_avx2)
COPY_BY_LINES(copy_avx512, "avx512f", lines_avx512)

static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") != 0;
}

static bool has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") != 0;
}
#endif

/* From plain to widest. */
const struct weft_copy_way weft_copy_ways[] = {
    {"plain", is_always_there, copy_plain},
#if defined(__x86_64__)
    {"sse2", is_always_there, copy_sse2},
    {"avx2", has_avx2, copy_avx2},
    {"avx512", has_avx512, copy_avx512},
#endif
};
const int32_t weft_copy_n_ways = sizeof weft_copy_ways / sizeof weft_copy_ways[0];

const struct weft_copy_way *weft_copy_way_for(int64_t bytes)
{
    int32_t best = bytes < PAST_CACHES_LEAST_BYTES ? 0 : weft_copy_n_ways - 1;
    while (!weft_copy_ways[best].is_here())
        best--;
    return &weft_copy_ways[best];
}

void weft_copy_spans(const struct weft_copy_way *way, const struct weft_memory_span *to,
                     const struct weft_memory_span *from, int32_t n_from)
{
    int64_t done = 0; /* within *to */
    for (int32_t i = 0; i < n_from; i++) {
        for (int64_t at = 0; at < from[i].bytes;) {
            while (done == to->bytes) {
                to++;
                done = 0;
            }
            const int64_t room = to->bytes - done, left = from[i].bytes - at;
            const int64_t part = room < left ? room : left;
            way->copy(to->at + done, from[i].at + at, part);
            at += part;
            done += part;
        }
    }
}
