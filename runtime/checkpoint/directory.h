/* SPDX-License-Identifier: Apache-2.0 */
/* A run's checkpoint directory holds one directory "step-N" for each committed checkpoint.
 * "step-N.tmp-K" is being written or removed. The latest checkpoint has the highest N, so there is
 * no pointer file that could be torn. */
#ifndef WEFT_RUNTIME_CHECKPOINT_DIRECTORY_H
#define WEFT_RUNTIME_CHECKPOINT_DIRECTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/text.h"
#include "runtime/checkpoint/sink.h"

/* Reads N from a path that ends in "step-N". Returns false for other names, also temporary ones. */
bool weft_checkpoint_step_of(const char *path, int64_t *step);

/* A checkpoint in memory has a path that names its memory files: "host memory 7,8,9/step-6". */
#define WEFT_CHECKPOINT_MEMORY "host memory"
void weft_checkpoint_memory_path(const int *fds, int n, int64_t step, struct weft_text *out);
/* Whether a path is such a path. Its file number `file` has *fd. */
bool weft_checkpoint_memory_file(const char *path, int file, int *fd);

/* Length of a directory's path without trailing slashes; "/" keeps its slash. */
size_t weft_checkpoint_path_length(const char *path);

/* Appends "directory/step-N" or "directory/step-N.tmp-K". */
void weft_checkpoint_path(const char *directory, int64_t step, struct weft_text *out);
void weft_checkpoint_temporary(const char *directory, int64_t step, int64_t attempt,
                               struct weft_text *out);

/* All N, ascending; the caller frees them. None if the directory is missing. WEFT_E_IO,
 * WEFT_E_PERMISSION. */
WEFT_MUST_USE enum weft_status weft_checkpoint_scan(const char *directory, int64_t **steps,
                                                    int32_t *n_steps, struct weft_error *err);

/* Removes temporary directories of an interrupted save or removal. The caller must hold the run's
 * lock. A directory that cannot be removed stays with a warning; it never counts as a
 * checkpoint. */
void weft_checkpoint_clear(const struct weft_sink *sink, const char *directory);

/* Removes "path" with its plain files, but no directories inside. Of a symbolic link only the link
 * goes. */
void weft_checkpoint_remove(const struct weft_sink *sink, const char *path);

/* Syncs `directory` first, so that the disk surely has `path` under this name, then removes it. */
void weft_checkpoint_discard(const struct weft_sink *sink, const char *directory, const char *path);

/* Removes a committed checkpoint. It gets a temporary name first, so that nobody sees it half
 * removed. Returns false, with a warning, if it cannot be renamed. */
bool weft_checkpoint_retire(const struct weft_sink *sink, const char *directory, int64_t step);

/* The checkpoints that stay: the newest `keep`, at least 2; `precious`; and all steps that are
 * multiples of `multiple`. Negative and 0: none. */
struct weft_retention {
    int64_t keep, precious, multiple;
};

/* Whether a step stays, however old it is. */
bool weft_checkpoint_stays(const struct weft_retention *retention, int64_t step);

/* Removes the oldest checkpoints that do not stay. */
void weft_checkpoint_retain(const struct weft_sink *sink, const char *directory,
                            const struct weft_retention *retention);

/* Takes a run's lock until *fd and its inherited copies are closed, and leaves this host, process
 * and job in it. WEFT_E_CREATE, with the holder's, if another run still has it after a short wait.
 */
WEFT_MUST_USE enum weft_status weft_checkpoint_lock(const char *run_directory, int *fd,
                                                    struct weft_error *err);

/* Whether a run holds the lock. Takes and creates nothing. Appends " (host a, process 7)" of the
 * holder, if it is known. */
bool weft_checkpoint_is_locked(const char *run_directory, struct weft_text *holder);

#endif
