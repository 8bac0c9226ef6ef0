/* SPDX-License-Identifier: Apache-2.0 */
/* A copier copies blocks between tiers: down to a lower tier, and up from it. Each direction has
 * one thread, which copies in order of submission. On an emulated link a block takes the link's
 * time. A device with its own copies needs no copier.
 *
 * All functions except weft_copier_destroy may be called from any thread. */
#ifndef WEFT_OFFLOAD_COPY_H
#define WEFT_OFFLOAD_COPY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "offload/span.h"

struct weft_copier;

enum weft_copy_direction { WEFT_COPY_DOWN, WEFT_COPY_UP, WEFT_COPY_DIRECTIONS };

/* A link carries one block at a time: a block begins after the one before it has left the link. */
struct weft_copy_link {
    bool emulated;
    int64_t alpha_ns;   /* per block */
    double bytes_per_s; /* above 0 */
};

struct weft_copier_options {
    struct weft_copy_link links[WEFT_COPY_DIRECTIONS];
    int32_t requests;   /* of each direction, queued or under way; at least 1 */
    int32_t spans;      /* most spans of each side of a block; at least 1 */
    int64_t timeout_ns; /* limit of one copy, then WEFT_E_HANG; 0: none */
};

/* Starts the threads. WEFT_E_SYSTEM and WEFT_E_INTERNAL as in weft_service_create (service.h). */
WEFT_MUST_USE enum weft_status weft_copier_create(const struct weft_copier_options *options,
                                                  struct weft_copier **out, struct weft_error *err);

/* Drops queued copies and waits for copies under way. Accepts NULL. */
void weft_copier_destroy(struct weft_copier *copier);

/* Queues a copy and writes its ticket, which counts by direction. The memory must stay until the
 * copy has ended. Waits while the direction's queue is full. WEFT_E_INTERNAL if the sides differ in
 * bytes or have too many spans. */
WEFT_MUST_USE enum weft_status weft_copier_submit(struct weft_copier *copier,
                                                  enum weft_copy_direction direction,
                                                  const struct weft_memory_span *to, int32_t n_to,
                                                  const struct weft_memory_span *from,
                                                  int32_t n_from, int64_t *ticket,
                                                  struct weft_error *err);

/* Waits until the copy has ended. WEFT_E_HANG, which all later calls return too. */
WEFT_MUST_USE enum weft_status weft_copier_wait(struct weft_copier *copier,
                                                enum weft_copy_direction direction, int64_t ticket,
                                                struct weft_error *err);
bool weft_copier_is_done(struct weft_copier *copier, enum weft_copy_direction direction,
                         int64_t ticket);

/* Time of a block on the link. */
int64_t weft_copy_link_ns(const struct weft_copy_link *link, int64_t bytes);

#endif
