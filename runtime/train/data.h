/* SPDX-License-Identifier: Apache-2.0 */
/* Data are samples of a corpus, or of several as one (corpora.h). The tokens of sample i of step s
 * are a function of (seed, s, i), for any ranks and micro-steps. Held-out data are another file, or
 * the last share of the same one, which training then never reads. Their samples are evenly spaced,
 * and depend only on the data, seq_len and their number. */
#ifndef WEFT_RUNTIME_TRAIN_DATA_H
#define WEFT_RUNTIME_TRAIN_DATA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/status.h"
#include "spec/config.h"

struct weft_data;

enum weft_data_part { WEFT_DATA_TRAINING, WEFT_DATA_HELD_OUT, WEFT_DATA_PART_COUNT };

/* Opens a part. The config must outlive it. WEFT_E_DATA if the part is shorter than one sample
 * (seq_len + 1 tokens), with both lengths, if a model that reads numbers gets tokens, or if samples
 * of a file of samples (sample_file.h) have another size than the model's. Other
 * errors are those of runtime/train/corpus.h. */
WEFT_MUST_USE enum weft_status weft_data_open(const struct weft_config *config,
                                              enum weft_data_part part, struct weft_data **out,
                                              struct weft_error *err);
void weft_data_close(struct weft_data *data);

/* Whether the config holds data out. */
bool weft_data_has_held_out(const struct weft_config *config);

/* Whether the config leaves labels out, so that steps differ in their number of targets. */
bool weft_data_leaves_out(const struct weft_config *config);
/* The targets that have a loss. */
int64_t weft_data_count(const int32_t *targets, int64_t n);

/* Fills samples [first, first + count) of step `step` (1, 2, ...). Held-out samples ignore the
 * step: they are numbered within one evaluation. `input` is int32 tokens [count, seq_len] if the
 * model begins with an embedding, otherwise floats [count, seq_len, hidden]:
 * those of a file of samples, or bytes as numbers in [-1, 1]. A file of samples may have tokens,
 * too. Targets are as in
 * spec/layer.h: the next token, or for a classifier the sample's label, or the token after the
 * sample modulo its classes.
 * With train.masked they are the sample's own tokens where some of the input's were replaced. Other
 * targets, and those of train.padding, are WEFT_LEFT_OUT.
 * Errors of weft_corpora_read; WEFT_E_DATA for a number that is not finite, a token beyond the
 * vocabulary, or a label that is no class. One caller at a time. */
WEFT_MUST_USE enum weft_status weft_data_fill(struct weft_data *data, int64_t step, int64_t first,
                                              int64_t count, void *input, int32_t *targets,
                                              struct weft_error *err);

/* A rank's samples of a step: so many rounds of `count` samples. A round's first sample is `stride`
 * after that of the round before. */
struct weft_data_share {
    int64_t first, count, rounds, stride;
};
/* The share of a rank, for rounds of `group` micro-steps. Groups of micro-batches are numbered from
 * round to round, so that any number of ranks computes the same ones. The last ranks may have no
 * group in the last round. */
struct weft_data_share weft_data_share_of(const struct weft_config *config, int32_t rank,
                                          int32_t group);
/* Fills the samples of a share, in its order. Otherwise as weft_data_fill. */
WEFT_MUST_USE enum weft_status weft_data_fill_share(struct weft_data *data, int64_t step,
                                                    const struct weft_data_share *share,
                                                    void *input, int32_t *targets,
                                                    struct weft_error *err);

/* Whether tokens are bytes, so that a loss is per byte. */
bool weft_data_is_text(const struct weft_data *data);

/* Runs weft_corpora_check on the files, or decodes samples of a file of samples at even distances.
 * Errors of weft_data_fill. */
WEFT_MUST_USE enum weft_status weft_data_check(struct weft_data *data, struct weft_error *err);
/* First token of a sample of a step, counted over all files of the training data. */
int64_t weft_data_place(const struct weft_data *data, int64_t step, int64_t sample);
/* WEFT_E_DATA if a held-out file is also trained on, under any of its names, or if one part is of
 * samples with labels and the other is not. */
WEFT_MUST_USE enum weft_status weft_data_apart(const struct weft_data *training,
                                               const struct weft_data *held_out,
                                               struct weft_error *err);
/* Hashes the files (weft_corpora_hash) and the part of them. */
WEFT_MUST_USE enum weft_status weft_data_hash(struct weft_data *data, struct weft_hash *out,
                                              struct weft_error *err);

#endif
