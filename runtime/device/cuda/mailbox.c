/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/device/cuda/mailbox.h"

#include <string.h>

#include "base/clock.h"

enum { RING_BYTES = 4 * WEFT_CUDA_PIECE_BYTES, ALIGNMENT = 256 };

void weft_cuda_mailbox_init(struct weft_cuda_mailbox *mailbox, const struct weft_cuda_gpu *gpu,
                            cudaStream_t stream)
{
    memset(mailbox, 0, sizeof *mailbox);
    mailbox->gpu = gpu;
    mailbox->stream = stream;
}

void weft_cuda_mailbox_finish(struct weft_cuda_mailbox *mailbox)
{
    if (mailbox->ring != NULL) cudaFreeHost(mailbox->ring);
    mailbox->ring = NULL;
}

cudaError_t weft_cuda_mailbox_open(struct weft_cuda_mailbox *mailbox)
{
    if (mailbox->ring != NULL) return cudaSuccess;
    return cudaHostAlloc((void **)&mailbox->ring, RING_BYTES, cudaHostAllocDefault);
}

/* Called by the stream, in order. */
static void end_letter(void *argument)
{
    const struct weft_cuda_letter *letter = argument;
    struct weft_cuda_mailbox *mailbox = letter->mailbox;
    if (letter->take != NULL)
        letter->take(letter->context, letter->from, letter->piece, letter->bytes);
    atomic_fetch_add(&mailbox->over_bytes, letter->whole_bytes);
    atomic_fetch_add(&mailbox->over, 1);
}

static bool has_room(struct weft_cuda_mailbox *mailbox, int64_t bytes)
{
    return mailbox->sent - atomic_load(&mailbox->over) < WEFT_CUDA_LETTERS &&
           mailbox->sent_bytes + bytes - atomic_load(&mailbox->over_bytes) <= RING_BYTES;
}

/* Opens the next letter and reserves its part of the ring. It waits for room. Pending letters end
 * without help, unless the stream has failed. */
static cudaError_t open_letter(struct weft_cuda_mailbox *mailbox, int64_t bytes,
                               struct weft_cuda_letter **out, unsigned char **piece)
{
    const cudaError_t opened = weft_cuda_mailbox_open(mailbox);
    if (opened != cudaSuccess) return opened;
    const int64_t whole = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    const int64_t at = mailbox->sent_bytes % RING_BYTES;
    const int64_t skipped = at + whole > RING_BYTES ? RING_BYTES - at : 0;
    const int64_t since_ns = weft_clock_now_ns();
    while (!has_room(mailbox, skipped + whole)) {
        const cudaError_t code = weft_cuda_nap(mailbox->gpu, mailbox->stream, since_ns);
        if (weft_cuda_is_bad(code)) return code;
    }
    struct weft_cuda_letter *letter = &mailbox->letters[mailbox->sent % WEFT_CUDA_LETTERS];
    *letter = (struct weft_cuda_letter){
        .mailbox = mailbox, .bytes = bytes, .whole_bytes = skipped + whole};
    *piece = mailbox->ring + (skipped > 0 ? 0 : at);
    *out = letter;
    return cudaSuccess;
}

static cudaError_t close_letter(struct weft_cuda_mailbox *mailbox, struct weft_cuda_letter *letter)
{
    const cudaError_t code = cudaLaunchHostFunc(mailbox->stream, end_letter, letter);
    if (code != cudaSuccess) return code;
    mailbox->sent++;
    mailbox->sent_bytes += letter->whole_bytes;
    return cudaSuccess;
}

static int64_t piece_of(int64_t bytes)
{
    return bytes < WEFT_CUDA_PIECE_BYTES ? bytes : WEFT_CUDA_PIECE_BYTES;
}

cudaError_t weft_cuda_send_made(struct weft_cuda_mailbox *mailbox, void *to, int64_t bytes,
                                weft_cuda_make_fn *make, const void *context)
{
    cudaError_t code = cudaSuccess;
    for (int64_t at = 0; at < bytes && code == cudaSuccess; at += WEFT_CUDA_PIECE_BYTES) {
        struct weft_cuda_letter *letter = NULL;
        unsigned char *piece = NULL;
        code = open_letter(mailbox, piece_of(bytes - at), &letter, &piece);
        if (code != cudaSuccess) return code;
        make(context, at, piece, letter->bytes);
        code = cudaMemcpyAsync((unsigned char *)to + at, piece, (size_t)letter->bytes,
                               cudaMemcpyHostToDevice, mailbox->stream);
        if (code == cudaSuccess) code = close_letter(mailbox, letter);
    }
    return code;
}

static void make_copy(const void *context, int64_t at_bytes, void *piece, int64_t bytes)
{
    memcpy(piece, (const unsigned char *)context + at_bytes, (size_t)bytes);
}

cudaError_t weft_cuda_send(struct weft_cuda_mailbox *mailbox, void *to, const void *host,
                           int64_t bytes)
{
    return weft_cuda_send_made(mailbox, to, bytes, make_copy, host);
}

static cudaError_t receive_piece(struct weft_cuda_mailbox *mailbox, const void *from, int64_t bytes,
                                 weft_cuda_take_fn *take, void *context)
{
    struct weft_cuda_letter *letter = NULL;
    unsigned char *piece = NULL;
    cudaError_t code = open_letter(mailbox, bytes, &letter, &piece);
    if (code != cudaSuccess) return code;
    letter->take = take;
    letter->context = context;
    letter->from = from;
    letter->piece = piece;
    code = cudaMemcpyAsync(piece, from, (size_t)bytes, cudaMemcpyDeviceToHost, mailbox->stream);
    return code == cudaSuccess ? close_letter(mailbox, letter) : code;
}

cudaError_t weft_cuda_receive_pieces(struct weft_cuda_mailbox *mailbox, const void *from,
                                     int64_t bytes, weft_cuda_take_fn *take, void *context)
{
    cudaError_t code = cudaSuccess;
    for (int64_t at = 0; at < bytes && code == cudaSuccess; at += WEFT_CUDA_PIECE_BYTES)
        code = receive_piece(mailbox, (const unsigned char *)from + at, piece_of(bytes - at), take,
                             context);
    return code;
}

static void take_copy(void *context, const void *from, const void *piece, int64_t bytes)
{
    (void)from;
    memcpy(context, piece, (size_t)bytes);
}

cudaError_t weft_cuda_receive(struct weft_cuda_mailbox *mailbox, const void *from, int64_t bytes,
                              void *host)
{
    cudaError_t code = cudaSuccess;
    for (int64_t at = 0; at < bytes && code == cudaSuccess; at += WEFT_CUDA_PIECE_BYTES)
        code = receive_piece(mailbox, (const unsigned char *)from + at, piece_of(bytes - at),
                             take_copy, (unsigned char *)host + at);
    return code;
}
