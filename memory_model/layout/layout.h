/* To lay out is to give every buffer of a program an address in the arena, so that two pieces of
 * buffers share bytes only if they are never live in the same slot. A buffer is contiguous and has
 * equal pieces (a gathered unit's blocks) that come and go by themselves: its space is a staircase,
 * and others may stand on the steps. */
#ifndef WEFT_MEMORY_MODEL_LAYOUT_LAYOUT_H
#define WEFT_MEMORY_MODEL_LAYOUT_LAYOUT_H

#include <stdint.h>

#include "base/status.h"
#include "base/work.h"
#include "memory_model/layout/buffer.h"

/* Fills every offset (a multiple of WEFT_ARENA_ALIGN_BYTES) and *end_bytes, the arena's size.
 * *live_bytes gets the largest sum of live pieces over slots, a lower limit of *end_bytes. `effort`
 * 0 takes some tenths of a second at most, 1 about a second, 2 or more several where the layout is
 * not dense before; -1 some hundredths, to see whether it is worth more. What it takes is spent of
 * the budget, which may cut it short behind the first layout. WEFT_E_SYSTEM only. */
WEFT_MUST_USE enum weft_status weft_layout(struct weft_layout_buffer *buffers, int32_t n_buffers,
                                           int32_t n_slots, int32_t effort,
                                           struct weft_budget budget, int64_t *end_bytes,
                                           int64_t *live_bytes, struct weft_error *err);

#endif
