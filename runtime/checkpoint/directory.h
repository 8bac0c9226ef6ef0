/* The directory of a run's checkpoints holds one directory "step-N" for each that is committed, and
 * "step-N.tmp-K" for what is being written or removed. There is no pointer file that could be torn:
 * the latest is the highest N. */
#ifndef WEFT_RUNTIME_CHECKPOINT_DIRECTORY_H
#define WEFT_RUNTIME_CHECKPOINT_DIRECTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/text.h"
#include "runtime/checkpoint/sink.h"

/* N of a path that ends in "step-N"; false for every other name, temporary ones among them. */
bool weft_checkpoint_step_of(const char *path, int64_t *step);

/* The length of a directory's path without the slashes that a shell completes it with; "/" keeps
 * its one. */
size_t weft_checkpoint_path_length(const char *path);

/* Appends "directory/step-N" or "directory/step-N.tmp-K". */
void weft_checkpoint_path(const char *directory, int64_t step, struct weft_text *out);
void weft_checkpoint_temporary(const char *directory, int64_t step, int64_t attempt,
                               struct weft_text *out);

/* All N, ascending (malloc'd, the caller frees). None when the directory is not there. WEFT_E_IO,
 * WEFT_E_PERMISSION. */
WEFT_MUST_USE enum weft_status weft_checkpoint_scan(const char *directory, int64_t **steps,
                                                    int32_t *n_steps, struct weft_error *err);

/* Removes temporary directories, that a save or a removal which was cut off has left. Only for who
 * holds the run's lock. What cannot be removed stays, and is warned of; it is never mistaken for a
 * checkpoint. */
void weft_checkpoint_clear(const struct weft_sink *sink, const char *directory);

/* Removes "path" with its plain files, and nothing below other directories; of a symbolic link, the
 * link alone. */
void weft_checkpoint_remove(const struct weft_sink *sink, const char *path);

/* The same when it is sure that the disk has `path`, in `directory`, under this name. */
void weft_checkpoint_discard(const struct weft_sink *sink, const char *directory, const char *path);

/* Removes a committed checkpoint. It gets a temporary name first, so that it is never seen half
 * removed. False, and a warning, if it cannot be renamed. */
bool weft_checkpoint_retire(const struct weft_sink *sink, const char *directory, int64_t step);

/* Removes the oldest until `keep` (2 at least) are left, but never `precious` (negative: none). */
void weft_checkpoint_retain(const struct weft_sink *sink, const char *directory, int64_t keep,
                            int64_t precious);

/* Takes the lock of a run, for as long as the descriptor, and copies that processes inherit, are
 * open. WEFT_E_CREATE when another run has it, after waiting for a moment in case that is one which
 * is just ending. */
WEFT_MUST_USE enum weft_status weft_checkpoint_lock(const char *run_directory, int *fd,
                                                    struct weft_error *err);

/* Whether a run has it now. Takes and makes nothing. */
bool weft_checkpoint_is_locked(const char *run_directory);

#endif
