/* Saving is what the trainer does with checkpoints: when one is due, what goes into it, what a run
 * begins with, and what happens when a save fails. */
#ifndef WEFT_RUNTIME_TRAIN_SAVING_H
#define WEFT_RUNTIME_TRAIN_SAVING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "runtime/exec/exec.h"
#include "runtime/train/data.h"
#include "runtime/train/train.h"

struct weft_saving;

/* Opens the checkpoint `options->resume`, or else the origin `options->from`, if there is one, and
 * compares manifest, headers and this rank's share of the data with their CRCs. Rank 0 warns of
 * settings in which a checkpoint differs from the config; the config's are used. WEFT_E_DATA for
 * damage and for another model. The options and the data outlive it. */
WEFT_MUST_USE enum weft_status weft_saving_open(const struct weft_train_options *options,
                                                struct weft_data *data, struct weft_saving **out,
                                                struct weft_error *err);
void weft_saving_close(struct weft_saving *saving);

/* Steps that are done already: 0, or those of what is resumed. */
int64_t weft_saving_steps_done(const struct weft_saving *saving);

/* Collective: fills a new executor with the resumed state, or the origin's parameters and moments
 * of 0, or initial values. */
WEFT_MUST_USE enum weft_status weft_saving_begin(struct weft_saving *saving, struct weft_exec *exec,
                                                 struct weft_error *err);

/* Collective, behind every step. When a checkpoint is due: settles, and saves, in the background
 * if the config says so. `last`: no step follows, and everything is done on return. A save that
 * fails is warned of, and training goes on; it is WEFT_E_IO where the config requires saves, or it
 * was that of the last step, which would be lost. A dead model (checkpoint/finite.h) is never
 * saved and ends the run with WEFT_E_NUMERIC, after the last step also where nothing is saved. */
WEFT_MUST_USE enum weft_status weft_saving_after(struct weft_saving *saving, struct weft_exec *exec,
                                                 int64_t step, bool last, struct weft_error *err);

/* Collective, behind every step and before anything is updated again: a save in the background has
 * read all that it needs when it returns, and its failure comes out here as from weft_saving_after.
 */
WEFT_MUST_USE enum weft_status weft_saving_catch_up(struct weft_saving *saving,
                                                    struct weft_error *err);

/* The origin of the run's first parameters, after weft_saving_begin. */
const struct weft_origin *weft_saving_origin(const struct weft_saving *saving);

/* The last step that was committed; -1 when none was. */
int64_t weft_saving_saved_step(const struct weft_saving *saving);

#endif
