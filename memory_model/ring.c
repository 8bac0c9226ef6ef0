/* SPDX-License-Identifier: Apache-2.0 */
#include "memory_model/ring.h"

enum {
    LARGE_PAGE_BYTES = 2 << 20,
    LEAST_IN_LARGE = 4 /* pages: rounding adds a quarter at most */
};

static int64_t round_up(int64_t bytes, int64_t to)
{
    return (bytes + to - 1) / to * to;
}

struct weft_ring weft_ring_fit(const struct weft_ring *wanted, int64_t buffer_bytes,
                               int32_t n_buffers)
{
    struct weft_ring ring = *wanted;
    if (ring.lanes == 0 || buffer_bytes <= 0 || n_buffers == 0) return (struct weft_ring){0};
    if (ring.block_bytes > buffer_bytes) ring.block_bytes = buffer_bytes;
    ring.block_bytes = round_up(ring.block_bytes, WEFT_DISK_ALIGN_BYTES);
    const int64_t blocks =
        (buffer_bytes + ring.block_bytes - 1) / ring.block_bytes * (int64_t)n_buffers;
    if (ring.seats > blocks) ring.seats = (int32_t)blocks;
    if (ring.threads > ring.seats) ring.threads = ring.seats;
    return ring;
}

static int64_t seats_bytes(const struct weft_ring *ring)
{
    const int64_t seats = (int64_t)ring->lanes * ring->seats + WEFT_RING_WINDOWS;
    return ring->lanes == 0 ? 0 : seats * ring->block_bytes;
}

int64_t weft_ring_page_bytes(const struct weft_ring *ring)
{
    return seats_bytes(ring) >= (int64_t)LEAST_IN_LARGE * LARGE_PAGE_BYTES ? LARGE_PAGE_BYTES
                                                                           : WEFT_DISK_ALIGN_BYTES;
}

int64_t weft_ring_bytes(const struct weft_ring *ring)
{
    return round_up(seats_bytes(ring), weft_ring_page_bytes(ring));
}
