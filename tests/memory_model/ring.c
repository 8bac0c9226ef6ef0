/* SPDX-License-Identifier: Apache-2.0 */
#include "memory_model/ring.h"

#include <criterion/criterion.h>

enum { RING_KIB = 1 << 10, RING_MIB = 1 << 20 };

static struct weft_ring fit(int64_t block_bytes, int32_t seats, int32_t lanes, int64_t buffer_bytes,
                            int32_t n_buffers)
{
    const struct weft_ring wanted = {
        .block_bytes = block_bytes, .threads = 4, .seats = seats, .lanes = lanes};
    return weft_ring_fit(&wanted, buffer_bytes, n_buffers);
}

Test(ring, is_what_is_wanted_where_a_unit_fills_it)
{
    const struct weft_ring ring = fit(RING_MIB, 8, 2, 10 * RING_MIB, 3);
    cr_assert(ring.block_bytes == RING_MIB && ring.seats == 8 && ring.threads == 4 &&
              ring.lanes == 2);
    cr_assert_eq(weft_ring_bytes(&ring), (16 + WEFT_RING_WINDOWS) * RING_MIB);
    cr_assert_eq(weft_ring_page_bytes(&ring), 2 * RING_MIB);
}

Test(ring, shrinks_with_the_largest_unit)
{
    const struct weft_ring fewer = fit(RING_MIB, 8, 1, 2 * RING_MIB, 2);
    cr_assert(fewer.block_bytes == RING_MIB && fewer.seats == 4 && fewer.threads == 4);
    const struct weft_ring small = fit(RING_MIB, 8, 1, 9 * RING_KIB, 3);
    cr_assert(small.block_bytes == 12 * RING_KIB && small.seats == 3 && small.threads == 3);
    cr_assert_eq(weft_ring_bytes(&small), (3 + WEFT_RING_WINDOWS) * 12 * RING_KIB);
    cr_assert_eq(weft_ring_page_bytes(&small), 4 * RING_KIB);
}

Test(ring, has_a_seat_a_lane_at_least)
{
    const struct weft_ring one = fit(RING_MIB, 8, 1, 4 * RING_KIB, 1),
                           two = fit(RING_MIB, 8, 2, 4 * RING_KIB, 1);
    cr_assert(one.seats == 1 && two.seats == 1 && two.threads == 1);
    cr_assert_eq(weft_ring_bytes(&one), (1 + WEFT_RING_WINDOWS) * 4 * RING_KIB);
    cr_assert_eq(weft_ring_bytes(&two), (2 + WEFT_RING_WINDOWS) * 4 * RING_KIB);
}

Test(ring, is_none_where_there_is_nothing_to_move)
{
    const struct weft_ring no_disk = fit(RING_MIB, 8, 0, RING_MIB, 3),
                           no_state = fit(RING_MIB, 8, 1, RING_MIB, 0);
    cr_assert(no_disk.lanes == 0 && no_state.lanes == 0);
    cr_assert_eq(weft_ring_bytes(&no_disk), 0);
    cr_assert_eq(weft_ring_bytes(&no_state), 0);
}

/* Rings are whole pages, and rounding adds at most a quarter to large ones. */
Test(ring, is_in_whole_pages)
{
    for (int32_t seats = 1; seats < 40; seats++) {
        const struct weft_ring ring = fit(300 * RING_KIB, seats, 1 + seats % 2, 64 * RING_MIB, 3);
        const int64_t bytes = weft_ring_bytes(&ring), page = weft_ring_page_bytes(&ring);
        const int64_t seats_bytes =
            (ring.lanes * ring.seats + WEFT_RING_WINDOWS) * ring.block_bytes;
        cr_assert(bytes % page == 0 && bytes >= seats_bytes && bytes - seats_bytes < page);
        cr_assert(4 * (bytes - seats_bytes) <= seats_bytes);
    }
}
