/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/comm/cuda/work.h"

#include "base/checked.h"

unsigned char *weft_cuda_byte(const struct weft_cuda_span *span, int64_t offset)
{
    return (unsigned char *)weft_arena_address(span->arena) + offset;
}

int64_t weft_cuda_bytes_of(int64_t elements, enum weft_dtype dtype)
{
    int64_t bytes;
    return weft_checked_mul(elements, weft_dtype_bytes(dtype), &bytes) ? bytes : INT64_MAX;
}

static bool is_inside(const struct weft_cuda_span *span, struct weft_cuda_part part)
{
    return part.offset >= 0 && part.bytes >= 0 && part.bytes <= span->bytes &&
           part.offset <= span->bytes - part.bytes && part.offset % (int64_t)sizeof(float) == 0;
}

cudaStream_t weft_cuda_channel(const struct weft_cuda_span *span, struct weft_stream *channel,
                               struct weft_cuda_part from, struct weft_cuda_part to)
{
    struct weft_error err = {0};
    if (is_inside(span, from) && is_inside(span, to))
        return weft_cuda_stream_open_for_work(channel);
    weft_fail(&err, WEFT_E_INTERNAL,
              "a collective of %lld bytes from offset %lld to %lld leaves the arena of %lld bytes",
              (long long)from.bytes, (long long)from.offset, (long long)to.offset,
              (long long)span->bytes);
    weft_cuda_stream_fail(channel, &err);
    return NULL;
}
