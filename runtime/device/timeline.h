/* A timeline is the virtual time of a device whose streams slow one another (base/lanes.h). It
 * stands still while any stream may still do something at the present time or the issuing thread
 * may still push, and goes on to the next end of a work when all of them wait for that: so times
 * depend on what was pushed, never on when. Internal to runtime/device. */
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

/* Makes a stream a lane's, with its rates, idle. `pushed` and `done` count its items as long as it
 * is there. */
void weft_timeline_attach(struct weft_timeline *timeline, int lane, struct weft_rates rates,
                          const _Atomic uint32_t *pushed, const _Atomic uint32_t *done);

/* By the issuing thread: nothing will be pushed, or something may again. */
void weft_timeline_issuer_waits(struct weft_timeline *timeline, bool waits);

/* By a lane's stream: it has no items; it waits until *reached is no longer 0; neither. */
void weft_timeline_idle(struct weft_timeline *timeline, int lane);
void weft_timeline_block(struct weft_timeline *timeline, int lane, const _Atomic uint32_t *reached);
void weft_timeline_go(struct weft_timeline *timeline, int lane);

/* By a lane's stream: works for ns from start_ns on, or from now if that is past. Returns the time
 * at which it is over. */
int64_t weft_timeline_run(struct weft_timeline *timeline, int lane, int64_t start_ns, int64_t ns);

#endif
