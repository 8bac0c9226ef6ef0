/* What communicators on GPUs have in common: an arena of the GPU, and work of the channel in it. */
#ifndef WEFT_RUNTIME_COMM_CUDA_WORK_H
#define WEFT_RUNTIME_COMM_CUDA_WORK_H

#include "runtime/comm/backend.h"
#include "runtime/device/cuda/stream.h"

struct weft_cuda_span {
    struct weft_arena *arena;
    int64_t bytes; /* 0: nothing is mapped */
};

/* Bytes of the arena. */
struct weft_cuda_part {
    int64_t offset, bytes;
};

unsigned char *weft_cuda_byte(const struct weft_cuda_span *span, int64_t offset);
/* INT64_MAX: more than can be counted. */
int64_t weft_cuda_bytes_of(int64_t elements, enum weft_dtype dtype);

/* Where work of the channel goes. NULL: nothing is to be done, or a part would leave the arena,
 * which makes the channel fail. */
cudaStream_t weft_cuda_channel(const struct weft_cuda_span *span, struct weft_stream *channel,
                               struct weft_cuda_part from, struct weft_cuda_part to);

/* More than one rank: see struct weft_comm_ops. In a build without NCCL WEFT_E_ENVIRONMENT. */
enum weft_status weft_cuda_several_open(const struct weft_comm_options *options,
                                        struct weft_comm **out, struct weft_error *err);

#endif
