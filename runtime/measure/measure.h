/* To measure is to make a profile of this machine for one model, batch and number of ranks: layers,
 * collectives by size, update, norm and base memory, and of tiers that may be used copies, updates,
 * reads and writes; on all local ranks at once, so that what they share (memory bandwidth, cores,
 * disks) is in the figures. */
#ifndef WEFT_RUNTIME_MEASURE_MEASURE_H
#define WEFT_RUNTIME_MEASURE_MEASURE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/watch.h"
#include "runtime/arena/arena.h"
#include "runtime/comm/comm.h"
#include "runtime/device/device.h"
#include "runtime/nn/nn.h"
#include "spec/config.h"
#include "spec/profile/profile.h"

struct weft_exec; /* runtime/exec/exec.h */

struct weft_measure_options {
    const struct weft_config *config;
    struct weft_device *device; /* wall clock */
    struct weft_comm *comm;     /* no arena mapped: measuring maps its own */
    struct weft_nn *nn;
    int32_t threads;          /* of a rank, which `nn` was opened for; 0: not said */
    int32_t rounds;           /* 0 = default; medians over rounds */
    bool contention;          /* measure what compute and communication take from each other */
    struct weft_watch *watch; /* or NULL */
};

/* Collective: every rank calls it and every rank gets the same profile (medians of what
 * the slowest rank needs). Collectives, update and norm are timed by themselves at many sizes; then
 * real steps of the model run under the leanest plan, which gives layers, agree and base memory,
 * and the height of the curves when compute and communication disturb each other. With `contention`
 * all times are of work that has nothing beside it, and the profile has the rates at which compute
 * and a channel go on while both run: the same steps, overlapped against one after the other. Base
 * memory has 2 MiB on top for what only a training run holds. A few seconds for a small model.
 * WEFT_E_USAGE under a virtual clock, WEFT_E_DATA when the config is for other ranks or its model
 * cannot be trained. */
WEFT_MUST_USE enum weft_status weft_measure(const struct weft_measure_options *options,
                                            struct weft_profile **out, struct weft_error *err);

/* The same in turns, for whoever does other things between them: create times benches, every turn
 * is a step of the model (at most 64 of them), finish makes the profile of the turns so far and is
 * called once. Collective, all of them; the options' objects must outlive it, and until it is
 * destroyed the communicator's arena is its own. */
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

/* Gives freed memory back to the system, so that what reading configs and plans took does not count
 * as the run's. */
void weft_measure_trim(void);

/* Memory of this process but for the shared arena, in bytes: its own pages (RssAnon) and those of
 * the files that it maps, programs and libraries (RssFile), as the system counts them. */
int64_t weft_measure_resident_bytes(void);

/* Bytes that count against the device's limit outside every arena. A device with its own memory
 * knows them. Otherwise they are this process's resident bytes without the arena and without the
 * host's tier, which has its own limit. *exact is false if other processes' bytes may be included
 * (weft_device_memory). */
int64_t weft_measure_outside_bytes(const struct weft_device *device, const struct weft_arena *arena,
                                   const struct weft_exec *exec, bool *exact);

/* The median of n values, which it sorts; 0 of none. */
int64_t weft_measure_median(int64_t *values, int64_t n);

#endif
