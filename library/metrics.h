/* The metrics of a run are a file of JSON Lines, in order: each step, evaluation and checkpoint of
 * it once, told apart by "kind". Every line says when it was written, how many tokens a second the
 * latest step did, the memory that the rank holds, and the step that was predicted. Rank 0 appends
 * to it while the run goes on; what a run that was interrupted has written behind the checkpoint
 * from which it goes on is done again, and so is taken away first. */
#ifndef WEFT_LIBRARY_METRICS_H
#define WEFT_LIBRARY_METRICS_H

#include <stdint.h>

#include "base/status.h"
#include "base/text.h"
#include "library/run_directory.h"
#include "runtime/train/train.h"

enum { WEFT_METRICS_PATH_BYTES = WEFT_RUN_PATH_BYTES + 16 };

/* Before a run begins: of the file, if it is there, keeps the lines of steps up to the checkpoint
 * that the run goes on from; a line that was torn goes too. A run that begins, or begins with
 * another's checkpoint, has no file yet. Whoever reads sees the old file or the new one. `path`
 * gets "RUN/metrics.jsonl". WEFT_E_CREATE, WEFT_E_IO, WEFT_E_DATA. */
WEFT_MUST_USE enum weft_status weft_metrics_prepare(const struct weft_run_directory *run,
                                                    char path[WEFT_METRICS_PATH_BYTES],
                                                    struct weft_error *err);

struct weft_metrics;

/* Appends to the file; `path` outlives it. WEFT_E_CREATE. */
WEFT_MUST_USE enum weft_status weft_metrics_open(const char *path, struct weft_metrics **out,
                                                 struct weft_error *err);
/* A whole line, which readers can see on return. What is trained is worth more than what is noted
 * of it: where the file cannot be written, that is warned of once, and lines are left out until it
 * can. WEFT_E_SYSTEM for a line that has no memory. */
WEFT_MUST_USE enum weft_status weft_metrics_add(struct weft_metrics *metrics,
                                                const struct weft_text *line,
                                                struct weft_error *err);
void weft_metrics_close(struct weft_metrics *metrics); /* accepts NULL */

/* Lines, as they stand in the file; and what stands in RUN/result.json. */
void weft_metrics_step(const struct weft_step_line *line, struct weft_text *out);
void weft_metrics_evaluation(const struct weft_evaluation_line *line, struct weft_text *out);
void weft_metrics_save(const struct weft_save_line *line, struct weft_text *out);
void weft_metrics_result(const struct weft_train_result *result, struct weft_text *out);

/* "byte", "token" or "sample". */
const char *weft_metrics_loss_of(enum weft_loss_of of);

#endif
