/* SPDX-License-Identifier: Apache-2.0 */
/* Saving is the trainer's use of checkpoints: when to save, the content, the beginning of a run,
 * and failed saves. */
#ifndef WEFT_RUNTIME_TRAIN_SAVING_H
#define WEFT_RUNTIME_TRAIN_SAVING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "runtime/exec/exec.h"
#include "runtime/train/data.h"
#include "runtime/train/options.h"

struct weft_saving;

/* Opens the checkpoint `options->resume`, or otherwise the origin `options->from`, if given. Checks
 * manifest, headers and this rank's share of the data by CRC. Rank 0 warns of settings that differ
 * between checkpoint and config; the config's are used. WEFT_E_DATA for damage and for another
 * model. The options and the data must outlive it. */
WEFT_MUST_USE enum weft_status weft_saving_open(const struct weft_train_options *options,
                                                struct weft_data *data, struct weft_saving **out,
                                                struct weft_error *err);
void weft_saving_close(struct weft_saving *saving);

/* Steps done before: 0, or the resumed checkpoint's. */
int64_t weft_saving_steps_done(const struct weft_saving *saving);

/* Collective: fills a new executor with the resumed state, the origin's parameters with zero
 * moments, or initial values. */
WEFT_MUST_USE enum weft_status weft_saving_begin(struct weft_saving *saving, struct weft_exec *exec,
                                                 struct weft_error *err);

/* Collective, after every step. If a checkpoint is due, settles and saves, in the background if the
 * config says so. With `last`, everything is done on return.
 *
 * A failed save gives a warning and training goes on. It is WEFT_E_IO if the config requires saves,
 * or after the last step, which would be lost. A dead model (checkpoint/finite.h) is never saved:
 * WEFT_E_NUMERIC. That is checked after the last step even if nothing is saved. */
WEFT_MUST_USE enum weft_status weft_saving_after(struct weft_saving *saving, struct weft_exec *exec,
                                                 int64_t step, bool last, struct weft_error *err);

/* Collective, after every step and before the next update. On return a save in the background has
 * read all state that it needs. Its failure is returned as from weft_saving_after. */
WEFT_MUST_USE enum weft_status weft_saving_catch_up(struct weft_saving *saving,
                                                    struct weft_error *err);

/* Returns WEFT_E_NUMERIC for a step with a loss of the held-out data that is not finite. Like a
 * dead model it is not saved; the error names the checkpoint that remains. */
WEFT_MUST_USE enum weft_status weft_saving_refuse_loss(const struct weft_saving *saving,
                                                       int64_t step, double loss,
                                                       struct weft_error *err);

/* The origin of the run's first parameters; call it after weft_saving_begin. */
const struct weft_origin *weft_saving_origin(const struct weft_saving *saving);

/* The last committed step; -1: none. */
int64_t weft_saving_saved_step(const struct weft_saving *saving);

/* Whether ranks meet after the step: to save it, or for a save that is not complete. */
bool weft_saving_meets(const struct weft_saving *saving, int64_t step);

#endif
