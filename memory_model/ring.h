/* SPDX-License-Identifier: Apache-2.0 */
/* A ring holds the blocks that pass through a tier: seats of one block each, with bytes that are
 * held all the time. State on its way to a disk and back uses a ring, on the host if the host is a
 * tier, otherwise on the device. A seat is free again when its block has left. */
#ifndef WEFT_MEMORY_MODEL_RING_H
#define WEFT_MEMORY_MODEL_RING_H

#include <stdint.h>

/* Allocation unit of a disk: each buffer of a unit's state is rounded up to it. */
enum { WEFT_DISK_ALIGN_BYTES = 4096 };

/* Extra seats through which the host reads and writes: a background save reads while a step moves
 * blocks. */
enum { WEFT_RING_WINDOWS = 2 };

struct weft_ring {
    int64_t block_bytes; /* a multiple of WEFT_DISK_ALIGN_BYTES */
    int32_t threads;     /* concurrent requests to the disk, in each direction */
    int32_t seats;       /* of each lane */
    int32_t lanes;       /* of the disk; 1: reads and writes take turns; 0: no ring */
};

/* Shrinks a ring to one that a unit with n_buffers of buffer_bytes of state can use. No block is
 * larger than a buffer, and a lane has no more seats than the unit has blocks. Without state there
 * is no ring. */
struct weft_ring weft_ring_fit(const struct weft_ring *wanted, int64_t buffer_bytes,
                               int32_t n_buffers);

/* The page size of the ring, and its bytes, a multiple of that. */
int64_t weft_ring_page_bytes(const struct weft_ring *ring);
int64_t weft_ring_bytes(const struct weft_ring *ring);

#endif
