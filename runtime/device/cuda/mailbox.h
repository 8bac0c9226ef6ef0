/* SPDX-License-Identifier: Apache-2.0 */
/* A mailbox copies bytes between host memory and GPU memory through pinned memory. Only such copies
 * let the host continue. Letters lie in a ring, and a letter ends when the stream reaches it.
 * Received bytes are complete after the stream has been synchronised. */
#ifndef WEFT_RUNTIME_DEVICE_CUDA_MAILBOX_H
#define WEFT_RUNTIME_DEVICE_CUDA_MAILBOX_H

#include <stdatomic.h>
#include <stdint.h>

#include "runtime/device/cuda/gpu.h"

enum { WEFT_CUDA_LETTERS = 64 };

struct weft_cuda_mailbox;

/* Takes bytes that came from `from` in the GPU's memory. `piece` is valid during the call only. The
 * stream calls it, so it must not call CUDA. */
typedef void weft_cuda_take_fn(void *context, const void *from, const void *piece, int64_t bytes);

struct weft_cuda_letter {
    struct weft_cuda_mailbox *mailbox;
    weft_cuda_take_fn *take; /* NULL: nothing is received */
    void *context;
    const void *from, *piece; /* in GPU memory; in pinned memory */
    int64_t bytes;
    int64_t whole_bytes; /* bytes of the ring, with those skipped at its end */
};

struct weft_cuda_mailbox {
    const struct weft_cuda_gpu *gpu;
    cudaStream_t stream;
    unsigned char *ring; /* pinned; NULL before the first letter */
    uint32_t sent;
    int64_t sent_bytes;
    _Atomic uint32_t over; /* ended letters, modulo 2^32 */
    _Atomic int64_t over_bytes;
    struct weft_cuda_letter letters[WEFT_CUDA_LETTERS];
};

void weft_cuda_mailbox_init(struct weft_cuda_mailbox *mailbox, const struct weft_cuda_gpu *gpu,
                            cudaStream_t stream);
/* Allocates the ring, which the first letter does otherwise. CUDA may wait for streams meanwhile.
 */
cudaError_t weft_cuda_mailbox_open(struct weft_cuda_mailbox *mailbox);
/* The stream must be idle. */
void weft_cuda_mailbox_finish(struct weft_cuda_mailbox *mailbox);

/* Copy from host to GPU and back, in the stream's order. Return CUDA's code. `send` reads `host`
 * before it returns. `receive` has written `host` once the stream is synchronised. */
cudaError_t weft_cuda_send(struct weft_cuda_mailbox *mailbox, void *to, const void *host,
                           int64_t bytes);
cudaError_t weft_cuda_receive(struct weft_cuda_mailbox *mailbox, const void *from, int64_t bytes,
                              void *host);
/* Receives bytes piece by piece. The stream calls `take` for each piece in its order. */
cudaError_t weft_cuda_receive_pieces(struct weft_cuda_mailbox *mailbox, const void *from,
                                     int64_t bytes, weft_cuda_take_fn *take, void *context);
/* Sends bytes that the host makes piece by piece. `make` writes the bytes from `at_bytes` on. */
enum { WEFT_CUDA_PIECE_BYTES = 1 << 20 };
typedef void weft_cuda_make_fn(const void *context, int64_t at_bytes, void *piece, int64_t bytes);
cudaError_t weft_cuda_send_made(struct weft_cuda_mailbox *mailbox, void *to, int64_t bytes,
                                weft_cuda_make_fn *make, const void *context);

#endif
