/* SPDX-License-Identifier: Apache-2.0 */
/* A run's metrics are a file of JSON Lines: one line for each step, evaluation and checkpoint, in
 * order, told apart by "kind". Every line has its time, the latest tokens per second, the rank's
 * memory, and the predicted step. Rank 0 appends to the file during the run. A resumed run repeats
 * the steps after its checkpoint, so their lines are removed first. */
#ifndef WEFT_LIBRARY_METRICS_METRICS_H
#define WEFT_LIBRARY_METRICS_METRICS_H

#include <stdint.h>

#include "base/json/json_keys.h"
#include "base/status.h"
#include "base/text.h"
#include "library/metrics/hosts.h"
#include "runtime/train/train.h"

/* Bytes of the path of a run's directory, and of a file in it. */
enum { WEFT_RUN_PATH_BYTES = 1024, WEFT_RUN_FILE_BYTES = WEFT_RUN_PATH_BYTES + 32 };

/* Prepares the file of the directory `run` before the run begins. A run that goes on from its
 * checkpoint `resume` keeps the lines up to the checkpoint, and drops a torn line. A run that
 * begins (NULL) has no file yet, even if it begins with another run's checkpoint. Readers see the
 * old or the new file. `path` gets "RUN/metrics.jsonl". WEFT_E_CREATE, WEFT_E_IO, WEFT_E_DATA. */
WEFT_MUST_USE enum weft_status weft_metrics_prepare(const char *run, const char *resume,
                                                    char path[WEFT_RUN_FILE_BYTES],
                                                    struct weft_error *err);

struct weft_metrics;

/* Opens the file for appending; `path` must outlive it. WEFT_E_CREATE. */
WEFT_MUST_USE enum weft_status weft_metrics_open(const char *path, struct weft_metrics **out,
                                                 struct weft_error *err);
/* Appends a whole line, visible to readers on return. A file that cannot be written does not end
 * the run: one warning is given, and lines are left out until it can. WEFT_E_SYSTEM if the line
 * failed for lack of memory. */
WEFT_MUST_USE enum weft_status weft_metrics_add(struct weft_metrics *metrics,
                                                const struct weft_text *line,
                                                struct weft_error *err);
void weft_metrics_close(struct weft_metrics *metrics); /* accepts NULL */

/* Keys of lines by kind, a NULL-terminated list, and of RUN/result.json. */
extern const struct weft_key_table *const weft_metrics_keys[];
extern const struct weft_key_table weft_result_keys;

/* Append a line of the file, and the content of RUN/result.json; `hosts` NULL: without them. */
void weft_metrics_step(const struct weft_step_line *line, struct weft_text *out);
/* A line of a replay; no run writes it. */
void weft_metrics_group(const struct weft_group_line *line, struct weft_text *out);
void weft_metrics_evaluation(const struct weft_evaluation_line *line, struct weft_text *out);
void weft_metrics_save(const struct weft_save_line *line, struct weft_text *out);
void weft_metrics_result(const struct weft_train_result *result, const struct weft_run_hosts *hosts,
                         struct weft_text *out);

/* "byte", "token" or "sample". */
const char *weft_metrics_loss_of(enum weft_loss_of of);

#endif
