/* What passes through a tier on its way to another passes through a ring: seats of a block each,
 * whose bytes are held throughout. State on its way to a disk and back does, through the host's
 * memory where that is a tier of its own, else through the device's. A seat is used again as soon
 * as its block has left. */
#ifndef WEFT_MEMORY_MODEL_RING_H
#define WEFT_MEMORY_MODEL_RING_H

#include <stdint.h>

/* What a disk gives out: bytes of a unit's state there are rounded up to it, one by one. */
enum { WEFT_DISK_ALIGN_BYTES = 4096 };

/* Seats beside those of the lanes, through which the host reads and writes: a save in the
 * background reads while a step moves blocks. */
enum { WEFT_RING_WINDOWS = 2 };

struct weft_ring {
    int64_t block_bytes; /* a multiple of the disk's alignment */
    int32_t threads;     /* requests at the disk at once, in each direction */
    int32_t seats;       /* of each lane */
    int32_t lanes;       /* of the disk: 1 where reads and writes take turns; 0: there is no ring */
};

/* As much of a ring as a unit can use whose state is n_buffers of buffer_bytes: no block is larger
 * than a buffer, and a lane has no more seats than there are blocks. No ring where there is no
 * state. */
struct weft_ring weft_ring_fit(const struct weft_ring *wanted, int64_t buffer_bytes,
                               int32_t n_buffers);

/* What it is given out in, and its bytes, which are a multiple of that. */
int64_t weft_ring_page_bytes(const struct weft_ring *ring);
int64_t weft_ring_bytes(const struct weft_ring *ring);

#endif
