/* A copier copies blocks between tiers: down to a lower one and up from it, by a thread for each
 * direction, in the order in which they were submitted. Where the link is emulated, a block takes
 * the time that it would take on it. A device whose copies are its own has no use for one.
 *
 * Functions may be called from any thread, but for weft_copier_destroy. */
#ifndef WEFT_OFFLOAD_COPY_H
#define WEFT_OFFLOAD_COPY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "offload/span.h"

struct weft_copier;

enum weft_copy_direction { WEFT_COPY_DOWN, WEFT_COPY_UP, WEFT_COPY_DIRECTIONS };

/* One block at a time: none begins before the one ahead of it has left the link. */
struct weft_copy_link {
    bool emulated;
    int64_t alpha_ns;   /* of a block */
    double bytes_per_s; /* above 0 */
};

struct weft_copier_options {
    struct weft_copy_link links[WEFT_COPY_DIRECTIONS];
    int32_t requests;   /* of each direction that may be queued or under way, at least 1 */
    int32_t spans;      /* the most of each side of a block, at least 1 */
    int64_t timeout_ns; /* a copy that takes longer is hung; 0: none is */
};

/* WEFT_E_SYSTEM, WEFT_E_INTERNAL as weft_service_create (service.h). */
WEFT_MUST_USE enum weft_status weft_copier_create(const struct weft_copier_options *options,
                                                  struct weft_copier **out, struct weft_error *err);

/* Drops what is queued and waits for what is under way. Accepts NULL. */
void weft_copier_destroy(struct weft_copier *copier);

/* Queues a copy, whose memory must stay as it is until it has ended; writes its ticket, of its
 * direction. Waits while the direction's queue is full. WEFT_E_INTERNAL of sides that differ in
 * bytes, or have too many spans. */
WEFT_MUST_USE enum weft_status weft_copier_submit(struct weft_copier *copier,
                                                  enum weft_copy_direction direction,
                                                  const struct weft_memory_span *to, int32_t n_to,
                                                  const struct weft_memory_span *from,
                                                  int32_t n_from, int64_t *ticket,
                                                  struct weft_error *err);

/* Waits until the copy has ended. WEFT_E_HANG, from then on for everybody. */
WEFT_MUST_USE enum weft_status weft_copier_wait(struct weft_copier *copier,
                                                enum weft_copy_direction direction, int64_t ticket,
                                                struct weft_error *err);
bool weft_copier_is_done(struct weft_copier *copier, enum weft_copy_direction direction,
                         int64_t ticket);

/* How long a block is on the link. */
int64_t weft_copy_link_ns(const struct weft_copy_link *link, int64_t bytes);

#endif
