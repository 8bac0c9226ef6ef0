/* SPDX-License-Identifier: Apache-2.0 */
/* Shared parts of communicators on GPUs: an arena of the GPU, and the channel's work in it. */
#ifndef WEFT_RUNTIME_COMM_CUDA_WORK_H
#define WEFT_RUNTIME_COMM_CUDA_WORK_H

#include "runtime/comm/backend.h"
#include "runtime/comm/comm.h"
#include "runtime/device/cuda/stream.h"

struct weft_cuda_span {
    struct weft_arena *arena;
    int64_t bytes; /* 0: nothing is mapped */
};

/* A range of the arena. */
struct weft_cuda_part {
    int64_t offset, bytes;
};

unsigned char *weft_cuda_byte(const struct weft_cuda_span *span, int64_t offset);
/* Bytes of the elements, or INT64_MAX on overflow. */
int64_t weft_cuda_bytes_of(int64_t elements, enum weft_dtype dtype);

/* CUDA's stream for the channel's work. NULL means: add nothing. A part outside of the arena fails
 * the channel. */
cudaStream_t weft_cuda_channel(const struct weft_cuda_span *span, struct weft_stream *channel,
                               struct weft_cuda_part from, struct weft_cuda_part to);

/* Opens a communicator of several ranks (struct weft_comm_ops). WEFT_E_ENVIRONMENT in a build
 * without NCCL. */
enum weft_status weft_cuda_several_open(const struct weft_comm_options *options,
                                        struct weft_comm **out, struct weft_error *err);

#endif
