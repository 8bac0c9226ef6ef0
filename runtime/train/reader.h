/* SPDX-License-Identifier: Apache-2.0 */
/* A reader prepares the batches of the next steps in its own thread while the current step runs.
 * The one taken last is the caller's until another is taken. The next one is known then: the caller
 * learns of data that cannot be read one step early, and can make that step its last. */
#ifndef WEFT_RUNTIME_TRAIN_READER_H
#define WEFT_RUNTIME_TRAIN_READER_H

#include <stdint.h>

#include "base/status.h"
#include "runtime/train/data.h"

struct weft_reader;

enum { WEFT_READER_AHEAD = 2 }; /* batches after the caller's */

struct weft_reader_options {
    struct weft_data *data;            /* used only by the reader while it lives */
    struct weft_data_share share;      /* of this rank in every step */
    int64_t input_bytes, target_bytes; /* of all its samples */
    int64_t first_step, last_step;     /* of the run; nothing beyond is read ahead */
};

/* Starts reading the first step's batch. WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_reader_create(const struct weft_reader_options *options,
                                                  struct weft_reader **out, struct weft_error *err);
void weft_reader_destroy(struct weft_reader *reader);

/* Gives the batch of `step`, valid until another step is taken, and starts reading the next ones.
 * Steps come in order; a repeated step gives the same batch. *wait_ns is the time that the caller
 * waited, 0 if the batch was ready. Errors of weft_data_fill. */
WEFT_MUST_USE enum weft_status weft_reader_take(struct weft_reader *reader, int64_t step,
                                                const void **input, const int32_t **targets,
                                                int64_t *wait_ns, struct weft_error *err);

/* Waits until the batch after `step`, which was taken last, is read. Returns the failure of that;
 * WEFT_OK after the run's last step. */
WEFT_MUST_USE enum weft_status weft_reader_look_ahead(struct weft_reader *reader, int64_t step,
                                                      int64_t *wait_ns, struct weft_error *err);

#endif
