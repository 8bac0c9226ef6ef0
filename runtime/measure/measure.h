/* SPDX-License-Identifier: Apache-2.0 */
/* Measuring makes a profile of this machine for one model, batch and number of ranks. It times
 * layers, collectives by size, update and norm, and measures base memory. For tiers that the config
 * allows it times copies, updates, reads and writes. All local ranks run at once, so times include
 * contention for memory bandwidth, cores and disks. */
#ifndef WEFT_RUNTIME_MEASURE_MEASURE_H
#define WEFT_RUNTIME_MEASURE_MEASURE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "runtime/arena/arena.h"
#include "runtime/measure/options.h"
#include "spec/profile/profile.h"

struct weft_exec; /* runtime/exec/exec.h */

/* Measures a profile; every rank must call it and gets the same one. Values are medians of the
 * slowest rank's times. It takes a few seconds for a small model.
 *
 * Benches time collectives, update and norm alone at many sizes. Then real steps of the model run
 * under the leanest plan. They give times of layers, the agreement's time, base memory, and the
 * scale of the curves. Base memory includes 2 MiB for memory that only a training run needs.
 *
 * With `contention` all times are of work that runs alone. Overlapped and serialised steps are
 * compared, and the difference gives the rates of compute and channel while both run.
 *
 * WEFT_E_USAGE under a virtual clock. WEFT_E_DATA if the config is for another number of ranks, or
 * if its model cannot train. */
WEFT_MUST_USE enum weft_status weft_measure(const struct weft_measure_options *options,
                                            struct weft_profile **out, struct weft_error *err);

/* The same in turns, for callers that do other work between them. `create` times the benches. Each
 * turn is a step of the model, at most 64. `finish` makes the profile from the turns so far, once.
 * Every rank must make each call. The objects in the options must outlive it. It owns the
 * communicator's arena until it is destroyed. */
struct weft_measuring;
WEFT_MUST_USE enum weft_status weft_measuring_create(const struct weft_measure_options *options,
                                                     struct weft_measuring **out,
                                                     struct weft_error *err);
WEFT_MUST_USE enum weft_status weft_measuring_turn(struct weft_measuring *measuring,
                                                   struct weft_error *err);
WEFT_MUST_USE enum weft_status weft_measuring_finish(struct weft_measuring *measuring,
                                                     struct weft_profile **out,
                                                     struct weft_error *err);
void weft_measuring_destroy(struct weft_measuring *measuring); /* accepts NULL */

/* Returns freed memory to the system, so that memory for reading configs and plans does not count
 * as the run's. */
void weft_measure_trim(void);

/* Memory of this process without the shared arena, in bytes: its own pages (RssAnon) and pages of
 * programs and libraries (RssFile), as the system counts them. */
int64_t weft_measure_resident_bytes(void);

/* Bytes outside of all arenas that count against the device's limit. A device with its own memory
 * reports them. Otherwise they are this process's resident bytes without the arena and the host
 * tier, which has its own limit. *exact is false if other processes' bytes may be included
 * (weft_device_memory). */
int64_t weft_measure_outside_bytes(const struct weft_device *device, const struct weft_arena *arena,
                                   const struct weft_exec *exec, bool *exact);

/* Sorts n values and returns their median, or 0 if there are none. */
int64_t weft_measure_median(int64_t *values, int64_t n);

#endif
