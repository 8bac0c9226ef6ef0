/* SPDX-License-Identifier: Apache-2.0 */
/* Sent bytes come back, for any size and number of letters. */
#include "tests/runtime/device/cuda/site.h"

enum { BYTES = 11 * WEFT_CUDA_PIECE_BYTES / 2 + 13, WORDS = 1000 };

static struct weft_device *device;
static struct weft_stream *stream;
static unsigned char *memory, *sent, *received;

static void set_up(void)
{
    device = open_gpu();
    stream = open_stream(device, 0);
    cr_assert_eq(cudaMalloc((void **)&memory, BYTES), cudaSuccess);
    sent = malloc(BYTES);
    received = calloc(1, BYTES);
    for (int i = 0; i < BYTES; i++)
        sent[i] = (unsigned char)(i * 7 + i / 251);
}

static void tear_down(void)
{
    cr_assert_eq(cudaFree(memory), cudaSuccess);
    weft_stream_destroy(stream);
    weft_device_close(device);
    free(sent);
    free(received);
    expect_no_findings();
}

TestSuite(mailbox, .init = set_up, .fini = tear_down);

static struct weft_cuda_mailbox *mailbox(void)
{
    return &weft_cuda_stream_of(stream)->mailbox;
}

Test(mailbox, brings_back_what_is_longer_than_its_ring)
{
    cr_assert_eq(weft_cuda_send(mailbox(), memory, sent, BYTES), cudaSuccess);
    cr_assert_eq(weft_cuda_receive(mailbox(), memory, BYTES, received), cudaSuccess);
    await_stream(stream);
    cr_assert_eq(memcmp(sent, received, BYTES), 0);
}

Test(mailbox, has_read_the_hosts_bytes_when_it_returns)
{
    static uint32_t words[WORDS];
    for (uint32_t i = 0; i < WORDS; i++) {
        uint32_t word = i * 2654435761u;
        cr_assert_eq(weft_cuda_send(mailbox(), memory + 4 * i, &word, 4), cudaSuccess);
        word = 0;
    }
    cr_assert_eq(weft_cuda_receive(mailbox(), memory, sizeof words, words), cudaSuccess);
    await_stream(stream);
    for (uint32_t i = 0; i < WORDS; i++)
        cr_assert_eq(words[i], i * 2654435761u);
}

static void make_places(const void *context, int64_t at_bytes, void *piece, int64_t bytes)
{
    const int factor = *(const int *)context;
    for (int64_t i = 0; i < bytes; i++)
        ((unsigned char *)piece)[i] = (unsigned char)((at_bytes + i) / 4096 * factor);
}

Test(mailbox, sends_what_is_made_piece_by_piece)
{
    const int factor = 5;
    cr_assert_eq(weft_cuda_send_made(mailbox(), memory, BYTES, make_places, &factor), cudaSuccess);
    cr_assert_eq(weft_cuda_receive(mailbox(), memory, BYTES, received), cudaSuccess);
    await_stream(stream);
    for (int64_t i = 0; i < BYTES; i++)
        cr_assert_eq(received[i], (unsigned char)(i / 4096 * factor));
}
