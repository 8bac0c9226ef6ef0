/* SPDX-License-Identifier: Apache-2.0 */
/* The steps that a run recorded in its metrics, and their comparison with a replay's. */
#ifndef WEFT_LIBRARY_RECORDED_H
#define WEFT_LIBRARY_RECORDED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/status.h"
#include "base/text.h"
#include "runtime/exec/options.h"

struct weft_recorded_step {
    int64_t step;
    int64_t place;                           /* of its line, among the file's lines of steps */
    double loss, norm, clip, lr, loss_scale; /* NAN: null, or not recorded */
    struct weft_hash parameters;             /* before the step; zero: not recorded */
    struct weft_group_hashes *gradients;     /* of the step, owned; NULL: not recorded */
};

struct weft_recorded {
    struct weft_recorded_step *steps; /* [n], ascending; owned */
    int64_t n;
    int64_t first, last; /* steps of the first and of the last record */
};

/* Reads the lines of steps of a file like RUN/metrics.jsonl.
 * Torn lines count as missing. Of two lines of a step the later one counts. WEFT_E_NO_INPUT without
 * the file, WEFT_E_DATA without any step. Finish it with weft_recorded_finish. */
WEFT_MUST_USE enum weft_status weft_recorded_read(const char *path, struct weft_recorded *out,
                                                  struct weft_error *err);

void weft_recorded_finish(struct weft_recorded *recorded);

/* The record of a step; NULL if the file has none. */
const struct weft_recorded_step *weft_recorded_find(const struct weft_recorded *recorded,
                                                    int64_t step);

/* Appends "loss 5.25, WORD 5.5" for each number that differs, separated by commas; the word is
 * "replayed", or the name of the other run. Returns how many differ. A number that is null or
 * missing on one side alone differs. A hash that one side lacks is not compared. Groups with other
 * gradients have the rank that computed them, unless all groups differ. */
int32_t weft_recorded_compare(const struct weft_recorded_step *recorded,
                              const struct weft_recorded_step *replayed, const char *word,
                              struct weft_text *out);

/* The rank of the run that computed all groups with other gradients. -1 if there are none, if
 * several ranks did, if every group of several ranks differs, or if parameters differ before it. */
int32_t weft_recorded_rank(const struct weft_recorded_step *recorded,
                           const struct weft_recorded_step *replayed);

#endif
