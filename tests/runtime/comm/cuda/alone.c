/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives of one rank on a GPU: bytes reach their place, and sums of one rank keep its
 * values. */
#include <criterion/criterion.h>
#include <string.h>

#include "base/numbers.h"
#include "runtime/comm/comm.h"

enum { SPAN_BYTES = 1 << 20, N = 1000, FULL = 0, SLICE = 64 << 10, WORDS = 128 << 10 };

static struct weft_device *device;
static struct weft_stream *channel;
static struct weft_comm *comm;
static struct weft_arena *arena;
static struct weft_error err;

static void set_up(void)
{
    const struct weft_comm_options options = {
        .ranks = 1, .device = "cuda", .local = {.control_fd = -1}};
    const struct weft_arena_shape whole = weft_arena_whole(SPAN_BYTES);
    cr_assert_eq(weft_device_open("cuda", WEFT_CLOCK_WALL, &device, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_stream_create(device, "channel", 0, &channel, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_comm_open("cuda", &options, &comm, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_comm_map_arena(comm, &whole, NULL, &arena, &err), WEFT_OK, "%s", err.text);
}

static void tear_down(void)
{
    weft_stream_destroy(channel);
    weft_comm_close(comm);
    weft_device_close(device);
}

TestSuite(comm_cuda, .init = set_up, .fini = tear_down);

static void *at(int64_t offset)
{
    return (unsigned char *)weft_arena_address(arena) + offset;
}

static void write_to(int64_t offset, const void *from, int64_t bytes)
{
    weft_arena_write(arena, channel, at(offset), from, bytes);
}

static void read_from(int64_t offset, void *to, int64_t bytes)
{
    weft_arena_read(arena, channel, at(offset), bytes, to);
    cr_assert_eq(weft_stream_synchronise(channel, &err), WEFT_OK, "%s", err.text);
}

static float numbers[N], read[N];

static void make_numbers(void)
{
    for (int i = 0; i < N; i++)
        numbers[i] = (float)(i * 37 % 1009) * 0.125f - 60.0f;
}

Test(comm_cuda, a_gather_copies_the_slice)
{
    const struct weft_comm_block block = {.full_offset = FULL,
                                          .slice_offset = SLICE,
                                          .slice_elements = N,
                                          .dtype = WEFT_F32,
                                          .slice_dtype = WEFT_F32};
    make_numbers();
    write_to(SLICE, numbers, sizeof numbers);
    weft_comm_all_gather(comm, channel, &block);
    read_from(FULL, read, sizeof read);
    cr_assert_eq(memcmp(read, numbers, sizeof read), 0);
}

Test(comm_cuda, a_reduction_is_the_block_and_may_be_added)
{
    struct weft_comm_block block = {.full_offset = FULL,
                                    .slice_offset = SLICE,
                                    .slice_elements = N,
                                    .dtype = WEFT_F32,
                                    .slice_dtype = WEFT_F32};
    make_numbers();
    write_to(FULL, numbers, sizeof numbers);
    weft_comm_reduce_scatter(comm, channel, &block);
    block.adds = true;
    weft_comm_reduce_scatter(comm, channel, &block);
    read_from(SLICE, read, sizeof read);
    for (int i = 0; i < N; i++)
        cr_assert_eq(read[i], 2 * numbers[i]);
}

Test(comm_cuda, a_reduction_of_bf16_may_be_widened)
{
    const struct weft_comm_block block = {.full_offset = FULL,
                                          .slice_offset = SLICE,
                                          .slice_elements = N,
                                          .dtype = WEFT_BF16,
                                          .slice_dtype = WEFT_F32};
    static uint16_t narrow[N];
    make_numbers();
    for (int i = 0; i < N; i++)
        narrow[i] = weft_bf16_narrow(numbers[i]);
    write_to(FULL, narrow, sizeof narrow);
    weft_comm_reduce_scatter(comm, channel, &block);
    read_from(SLICE, read, sizeof read);
    for (int i = 0; i < N; i++)
        cr_assert_eq(read[i], weft_bf16_widen(narrow[i]));
}

Test(comm_cuda, in_place_everything_stays)
{
    const struct weft_comm_block block = {.full_offset = FULL,
                                          .slice_offset = -1,
                                          .slice_elements = N,
                                          .dtype = WEFT_F32,
                                          .slice_dtype = WEFT_F32};
    make_numbers();
    write_to(FULL, numbers, sizeof numbers);
    weft_comm_all_gather(comm, channel, &block);
    weft_comm_reduce_scatter(comm, channel, &block);
    weft_comm_all_reduce(comm, channel, &block);
    read_from(FULL, read, sizeof read);
    cr_assert_eq(memcmp(read, numbers, sizeof read), 0);
}

Test(comm_cuda, words_are_agreed_on_and_exchanged)
{
    uint64_t words[3] = {1, 2, UINT64_MAX}, agreed[3] = {0}, all[3] = {0};
    write_to(WORDS, words, sizeof words);
    weft_comm_agree(comm, channel, WORDS, WORDS + 4096, 3, 0);
    read_from(WORDS + 4096, agreed, sizeof agreed);
    cr_assert_eq(memcmp(agreed, words, sizeof words), 0);
    cr_assert_eq(weft_comm_exchange(comm, words, sizeof words, all, &err), WEFT_OK);
    cr_assert_eq(memcmp(all, words, sizeof words), 0);
    weft_comm_cancel(comm);
    cr_assert_eq(weft_comm_exchange(comm, words, sizeof words, all, &err), WEFT_E_LOST);
}

Test(comm_cuda, what_leaves_the_arena_fails_the_channel)
{
    const struct weft_comm_block block = {.full_offset = SPAN_BYTES - 4,
                                          .slice_offset = SLICE,
                                          .slice_elements = N,
                                          .dtype = WEFT_F32,
                                          .slice_dtype = WEFT_F32};
    weft_comm_all_gather(comm, channel, &block);
    cr_assert_eq(weft_stream_synchronise(channel, &err), WEFT_E_INTERNAL);
    cr_assert_not_null(strstr(err.text, "leaves the arena"), "%s", err.text);
}
