/* A reader prepares the next step's batch in a thread of its own while the present step runs, so
 * that a step finds its data ready. It has two batches: the one that was taken last, which is the
 * caller's until the next one is taken, and the one that is being filled. */
#ifndef WEFT_RUNTIME_TRAIN_READER_H
#define WEFT_RUNTIME_TRAIN_READER_H

#include <stdint.h>

#include "base/status.h"
#include "runtime/train/data.h"

struct weft_reader;

struct weft_reader_options {
    struct weft_data *data;            /* the reader's alone while it lives */
    int64_t first_sample, count;       /* of this rank in every step */
    int64_t input_bytes, target_bytes; /* of all `count` samples */
    int64_t first_step, last_step;     /* of the run: nothing is read ahead beyond it */
};

/* Starts reading the first step's batch. WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_reader_create(const struct weft_reader_options *options,
                                                  struct weft_reader **out, struct weft_error *err);
void weft_reader_destroy(struct weft_reader *reader);

/* The batch of `step`, valid until another step is taken; the one behind it is read meanwhile.
 * Steps come in order; one that comes again gives the same batch. *wait_ns is the time that the
 * caller had to wait for it, 0 when it was ready. Errors of weft_data_fill. */
WEFT_MUST_USE enum weft_status weft_reader_take(struct weft_reader *reader, int64_t step,
                                                const void **input, const int32_t **targets,
                                                int64_t *wait_ns, struct weft_error *err);

#endif
