/* SPDX-License-Identifier: Apache-2.0 */
/* A timeline is the virtual time of a device with streams that slow one another (base/lanes.h).
 * Time stands still while a stream can act now, or while the issuing thread may push. Once all of
 * them wait, it advances to the next end of a work. So times depend on the pushed work, never on
 * the moment of a push. Internal to runtime/device. */
#ifndef WEFT_RUNTIME_DEVICE_TIMELINE_H
#define WEFT_RUNTIME_DEVICE_TIMELINE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lanes.h"
#include "base/status.h"

struct weft_timeline;

WEFT_MUST_USE enum weft_status weft_timeline_create(struct weft_timeline **out,
                                                    struct weft_error *err);
void weft_timeline_destroy(struct weft_timeline *timeline); /* accepts NULL */

/* Attaches a stream to a lane with its rates, idle. `pushed` and `done` count its items, and must
 * live as long as the stream is attached. */
void weft_timeline_attach(struct weft_timeline *timeline, int lane, struct weft_rates rates,
                          const _Atomic uint32_t *pushed, const _Atomic uint32_t *done);

/* Called by the issuing thread. True: it waits and pushes nothing. False: it may push again. */
void weft_timeline_issuer_waits(struct weft_timeline *timeline, bool waits);

/* Called by a lane's stream: it has no items; it waits until *reached is not 0; it can act
 * again. */
void weft_timeline_idle(struct weft_timeline *timeline, int lane);
void weft_timeline_block(struct weft_timeline *timeline, int lane, const _Atomic uint32_t *reached);
void weft_timeline_go(struct weft_timeline *timeline, int lane);

/* Called by a lane's stream. Works for ns from start_ns, or from now if that is past. Returns the
 * end time. */
int64_t weft_timeline_run(struct weft_timeline *timeline, int lane, int64_t start_ns, int64_t ns);

#endif
