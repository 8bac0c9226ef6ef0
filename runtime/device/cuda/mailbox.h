/* A mailbox carries bytes between the host's memory and the GPU's by way of pinned memory, for CUDA
 * copies no other while the host goes on. Letters lie in a ring; one is over when the stream has
 * come to it. What the host wants to know is there once the stream has been synchronised. */
#ifndef WEFT_RUNTIME_DEVICE_CUDA_MAILBOX_H
#define WEFT_RUNTIME_DEVICE_CUDA_MAILBOX_H

#include <stdatomic.h>
#include <stdint.h>

#include "runtime/device/cuda/gpu.h"

enum { WEFT_CUDA_LETTERS = 64 };

struct weft_cuda_mailbox;

/* Takes bytes of the GPU's memory at `from`, which lie at `piece` for as long as it takes. By the
 * stream: it may not call CUDA. */
typedef void weft_cuda_take_fn(void *context, const void *from, const void *piece, int64_t bytes);

struct weft_cuda_letter {
    struct weft_cuda_mailbox *mailbox;
    weft_cuda_take_fn *take; /* NULL: it brings the host nothing */
    void *context;
    const void *from, *piece; /* of the GPU, and pinned */
    int64_t bytes;
    int64_t whole_bytes; /* of the ring, with those that were skipped at its end */
};

struct weft_cuda_mailbox {
    const struct weft_cuda_gpu *gpu;
    cudaStream_t stream;
    unsigned char *ring; /* pinned; NULL: nobody has sent anything yet */
    uint32_t sent;
    int64_t sent_bytes;
    _Atomic uint32_t over; /* letters, modulo 2^32 */
    _Atomic int64_t over_bytes;
    struct weft_cuda_letter letters[WEFT_CUDA_LETTERS];
};

void weft_cuda_mailbox_init(struct weft_cuda_mailbox *mailbox, const struct weft_cuda_gpu *gpu,
                            cudaStream_t stream);
/* The stream has nothing left to do. */
void weft_cuda_mailbox_finish(struct weft_cuda_mailbox *mailbox);

/* Copies of the host's memory to the GPU's and back, in the stream's order; CUDA's code. Bytes of
 * the host are read at once, and written by when the stream has been synchronised. */
cudaError_t weft_cuda_send(struct weft_cuda_mailbox *mailbox, void *to, const void *host,
                           int64_t bytes);
cudaError_t weft_cuda_receive(struct weft_cuda_mailbox *mailbox, const void *from, int64_t bytes,
                              void *host);
/* The same of bytes that somebody takes, piece by piece, when the stream gets there. */
cudaError_t weft_cuda_receive_pieces(struct weft_cuda_mailbox *mailbox, const void *from,
                                     int64_t bytes, weft_cuda_take_fn *take, void *context);
/* The same of bytes that the host makes, piece by piece: `make` writes those from `at_bytes` on. */
enum { WEFT_CUDA_PIECE_BYTES = 1 << 20 };
typedef void weft_cuda_make_fn(const void *context, int64_t at_bytes, void *piece, int64_t bytes);
cudaError_t weft_cuda_send_made(struct weft_cuda_mailbox *mailbox, void *to, int64_t bytes,
                                weft_cuda_make_fn *make, const void *context);

#endif
