/* SPDX-License-Identifier: Apache-2.0 */
/* Updates on the host. The host's tier keeps a unit's master, moments, reduced gradient and rounded
 * parameters. For each block the gradient is copied down, the CPU's optimizer kernels update it
 * there, and its parameters are copied up. Private to this folder. */
#ifndef WEFT_RUNTIME_EXEC_HOST_UPDATE_H
#define WEFT_RUNTIME_EXEC_HOST_UPDATE_H

#include <stdint.h>

#include "base/hash.h"
#include "base/status.h"
#include "runtime/device/device.h"
#include "runtime/exec/units.h"

struct weft_exec;
struct exec_updater;

/* A block of a unit with updates on the host, bound to one instruction. */
struct exec_host_update {
    const struct exec_unit *unit;
    int32_t block;
    /* Address in the arena. GRADIENT_DOWN has the unit's reduced gradient there. PARAMETERS_UP has
     * its shard, or the full buffer if parameters stay in full. */
    unsigned char *at;
    struct weft_nn_unit part; /* this rank's pieces of the block, with the gradient at `at` */
};

/* Makes *out for a block, in the executor's pool. WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_exec_bind_host_update(struct weft_exec *exec,
                                                          const struct exec_unit *unit,
                                                          int32_t block, void *at,
                                                          struct exec_host_update **out,
                                                          struct weft_error *err);

/* Starts threads if some unit is updated on the host; otherwise *out stays NULL. */
WEFT_MUST_USE enum weft_status weft_exec_updater_create(const struct weft_exec *exec,
                                                        struct exec_updater **out,
                                                        struct weft_error *err);
void weft_exec_updater_destroy(
    struct exec_updater *updater); /* the stream must be idle; accepts NULL */

/* Hash of the parameters that updates on the host have written since the last forget; valid once
 * they have ended. Sums with the device's words of the record. */
const struct weft_hash *weft_exec_updater_hash(const struct exec_updater *updater);
void weft_exec_updater_forget(struct exec_updater *updater); /* accepts NULL */

/* Queue a block's copy down, its update on the host, and its copy up. The copy down adds the block
 * to the record's norm, unless the period is rotated. */
void weft_exec_push_gradient_down(struct weft_exec *exec, struct weft_stream *stream,
                                  const struct exec_host_update *update);
void weft_exec_push_host_update(struct weft_exec *exec, struct weft_stream *stream,
                                const struct exec_host_update *update);
void weft_exec_push_parameters_up(struct weft_exec *exec, struct weft_stream *stream,
                                  const struct exec_host_update *update);
/* Queues a copy of the unit's rounded parameters to the host, unless the device computes in f32. A
 * skipped update sends them up again. */
void weft_exec_push_rounded(struct weft_exec *exec, struct weft_stream *stream,
                            const struct exec_unit *unit);

#endif
