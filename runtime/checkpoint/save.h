/* SPDX-License-Identifier: Apache-2.0 */
/* Saving is collective: every rank writes its own pieces into shared files. The checkpoint exists
 * once all ranks have synced and rank 0 has renamed its directory, and not before. save.c gives the
 * order of calls and its reasons. */
#ifndef WEFT_RUNTIME_CHECKPOINT_SAVE_H
#define WEFT_RUNTIME_CHECKPOINT_SAVE_H

#include <stdbool.h>

#include "base/status.h"
#include "runtime/checkpoint/save_options.h"

struct weft_saver;

/* Allocates everything that a save needs. All options must outlive the saver. */
WEFT_MUST_USE enum weft_status weft_saver_create(const struct weft_saver_options *options,
                                                 struct weft_saver **out, struct weft_error *err);
void weft_saver_destroy(struct weft_saver *saver);

/* Collective. Saves, and returns once it is done. WEFT_OK on all ranks: the checkpoint of
 * progress->step is committed. On failure status and text are the same on all ranks. The earlier
 * checkpoint stays, and the failed one is removed if possible. After WEFT_E_LOST and WEFT_E_HANG
 * make no collective call.
 *
 * A failed sync loses written data, so everything is written once more, to new files. A dead model
 * (finite.h) is not saved: WEFT_E_NUMERIC. Errors may come from an earlier save in the background.
 * If room is short, the oldest checkpoints go first, provided that the newest one is complete. */
WEFT_MUST_USE enum weft_status weft_saver_save(struct weft_saver *saver,
                                               const struct weft_progress *progress,
                                               const struct weft_save_source *source,
                                               struct weft_error *err);

/* Collective. Finishes the current save and begins one in the background. The source must not
 * change until weft_saver_catch_up has returned; the commit may follow later. */
WEFT_MUST_USE enum weft_status weft_saver_begin(struct weft_saver *saver,
                                                const struct weft_progress *progress,
                                                const struct weft_save_source *source,
                                                struct weft_error *err);
/* Collective. Waits until all ranks have written the current save. If they had already, or with
 * `finish`, waits until its end. Returns its failure on all ranks. */
WEFT_MUST_USE enum weft_status weft_saver_catch_up(struct weft_saver *saver, bool finish,
                                                   struct weft_error *err);
/* Whether no save is in progress: the last one was committed or failed. The same on all ranks. */
bool weft_saver_is_idle(const struct weft_saver *saver);

#endif
