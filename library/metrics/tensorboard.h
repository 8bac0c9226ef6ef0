/* SPDX-License-Identifier: Apache-2.0 */
/* Event files of TensorBoard: records of TFRecord with scalars in protocol buffers, under the names
 * that torchtitan gives its metrics, so that one dashboard shows both. */
#ifndef WEFT_LIBRARY_METRICS_TENSORBOARD_H
#define WEFT_LIBRARY_METRICS_TENSORBOARD_H

#include <stdint.h>

#include "base/status.h"
#include "runtime/train/options.h"

struct weft_tensorboard;

/* Figures of the run that its lines do not have. */
struct weft_tensorboard_run {
    int64_t ranks;
    int64_t limit_bytes; /* of a rank's memory; 0: none */
};

/* Begins a file events.out.tfevents.TIME.HOST.PID in the folder, which it makes. WEFT_E_CREATE. */
WEFT_MUST_USE enum weft_status weft_tensorboard_open(const char *folder,
                                                     const struct weft_tensorboard_run *run,
                                                     struct weft_tensorboard **out,
                                                     struct weft_error *err);
/* Add a line's scalars, visible to readers on return. Not finite and unmeasured ones are left out.
 * A file that cannot be written is warned of once, and does not end the run. After a resume,
 * readers drop the scalars of earlier files from the first step on. */
void weft_tensorboard_step(struct weft_tensorboard *board, const struct weft_step_line *line);
void weft_tensorboard_evaluation(struct weft_tensorboard *board,
                                 const struct weft_evaluation_line *line);
void weft_tensorboard_close(struct weft_tensorboard *board); /* accepts NULL */

#endif
