/* Text as training data: any file, mapped, its bytes the tokens. Which bytes make sample i of step
 * s is a function of (seed, s, i), independent of ranks. */
#ifndef WEFT_RUNTIME_TRAIN_DATA_H
#define WEFT_RUNTIME_TRAIN_DATA_H

#include <stdint.h>

#include "base/status.h"
#include "spec/config.h"

struct weft_data;

/* WEFT_E_NO_INPUT when the file is not there; WEFT_E_DATA when it is shorter than one sample
 * (seq_len + 1 bytes), with both lengths. Checks that the model's vocabulary holds 256 bytes. */
WEFT_MUST_USE enum weft_status weft_data_open(const char *path, const struct weft_config *config,
                                              struct weft_data **out, struct weft_error *err);
void weft_data_close(struct weft_data *data);

/* Fills one rank's micro-batch of step `step` (1, 2, ...): samples rank*micro_batch ... of the
 * step's ranks*micro_batch. `input` is int32 tokens [samples, seq_len] for a model that begins with
 * an embedding, else floats [samples, hidden] in [-1, 1]; targets as in spec/layer.h (next byte;
 * for a classifier the byte after the sample, modulo its classes). */
void weft_data_fill(const struct weft_data *data, int64_t step, int64_t rank, int64_t ranks,
                    void *input, int32_t *targets);

#endif
