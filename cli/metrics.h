/* The metrics of a run are a file of JSON Lines, in order: each step, evaluation and checkpoint of
 * it once. Rank 0 appends to it while the run goes on; what a run that was interrupted has written
 * behind the checkpoint from which it goes on is done again, and so is taken away first. */
#ifndef WEFT_CLI_METRICS_H
#define WEFT_CLI_METRICS_H

#include <stdint.h>

#include "base/status.h"

/* No file, whatever was there. WEFT_E_CREATE. */
WEFT_MUST_USE enum weft_status weft_metrics_begin(const char *path, struct weft_error *err);

/* Keeps of a file, if it is there, the lines of steps up to `step`; a line that was torn goes too.
 * Whoever reads sees the old file or the new one. WEFT_E_CREATE, WEFT_E_IO. */
WEFT_MUST_USE enum weft_status weft_metrics_cut(const char *path, int64_t step,
                                                struct weft_error *err);

#endif
