/* Data are samples of a corpus, or of several as one (corpora.h). The tokens of sample i of step s
 * are a function of (seed, s, i), independent of ranks and micro-steps. Held-out data are another
 * file, or the last share of the same one, which training then never reads; their samples lie at
 * even distances, and depend on the data, seq_len and their number alone. */
#ifndef WEFT_RUNTIME_TRAIN_DATA_H
#define WEFT_RUNTIME_TRAIN_DATA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/status.h"
#include "spec/config.h"

struct weft_data;

enum weft_data_part { WEFT_DATA_TRAINING, WEFT_DATA_HELD_OUT, WEFT_DATA_PART_COUNT };

/* Errors of runtime/train/corpus.h, WEFT_E_DATA when the part is shorter than one sample (seq_len +
 * 1 tokens), with both lengths, or when a model that reads numbers is given tokens. The config
 * outlives it. */
WEFT_MUST_USE enum weft_status weft_data_open(const struct weft_config *config,
                                              enum weft_data_part part, struct weft_data **out,
                                              struct weft_error *err);
void weft_data_close(struct weft_data *data);

/* Whether the config holds data out. */
bool weft_data_has_held_out(const struct weft_config *config);

/* Fills samples [first, first + count) of step `step` (1, 2, ...; of no meaning when held out,
 * where samples are numbered over one evaluation). `input` is int32 tokens [count, seq_len] for a
 * model that begins with an embedding, else floats [count, hidden] in [-1, 1]; targets as in
 * spec/layer.h (next token; for a classifier the token after the sample, modulo its classes).
 * Errors of weft_corpora_read. One caller at a time. */
WEFT_MUST_USE enum weft_status weft_data_fill(struct weft_data *data, int64_t step, int64_t first,
                                              int64_t count, void *input, int32_t *targets,
                                              struct weft_error *err);

/* Whether tokens are bytes, so that a loss is one a byte. */
bool weft_data_is_text(const struct weft_data *data);

/* weft_corpora_check of the files. */
WEFT_MUST_USE enum weft_status weft_data_check(struct weft_data *data, struct weft_error *err);
/* WEFT_E_DATA when a file that is held out is trained on too, under any of its names. */
WEFT_MUST_USE enum weft_status weft_data_apart(const struct weft_data *training,
                                               const struct weft_data *held_out,
                                               struct weft_error *err);
/* Hashes the source of samples: weft_corpora_hash of the files, and which part of them. */
WEFT_MUST_USE enum weft_status weft_data_hash(struct weft_data *data, struct weft_hash *out,
                                              struct weft_error *err);

#endif
