/* SPDX-License-Identifier: Apache-2.0 */
/* Launching starts the local ranks of a job and waits until all have ended. Ranks are processes
 * made by exec, each in its own session. They inherit the shared memory of the local communicator
 * as descriptors. They end with the launcher, for any reason, and leave nothing in the system. */
#ifndef WEFT_RUNTIME_LAUNCH_LAUNCH_H
#define WEFT_RUNTIME_LAUNCH_LAUNCH_H

#include <stdint.h>

#include "base/status.h"
#include "runtime/launch/options.h"
#include "runtime/launch/rendezvous.h"

struct weft_launch_outcome {
    int32_t rank;                 /* first failed rank, or -1 */
    int exit_code, signal_number; /* of that rank, or 0 */
};

/* Starts the ranks and blocks until all have ended. Ranks read nothing from stdin and share stdout
 * and stderr. Returns WEFT_OK if all exit with 0. `outcome` may be NULL.
 *
 * Otherwise the first failed rank decides the result, and the text names rank and cause. An exit
 * code gives its own status. A signal gives WEFT_E_LOST, or WEFT_E_STOPPED if it asks a rank to
 * stop. The other ranks get SIGTERM after half a second, and SIGKILL after one and a half. If all
 * remaining ranks are stopped for hang_ns, they are killed: WEFT_E_HANG.
 *
 * A stop request (runtime/launch/stop.h) is passed on, each number once. The result is
 * WEFT_E_STOPPED, unless the ranks finish anyway. Ranks may take any time to save; only a second
 * request kills them. If a rank exits with WEFT_E_STOPPED by itself, the others get SIGTERM.
 *
 * WEFT_E_SYSTEM or WEFT_E_NO_INPUT if ranks cannot be started. Call it from a thread that outlives
 * the ranks. No other thread may take signals. */
WEFT_MUST_USE enum weft_status weft_launch(const struct weft_launch_options *options,
                                           struct weft_launch_outcome *outcome,
                                           struct weft_error *err);

#endif
