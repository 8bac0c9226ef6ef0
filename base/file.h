/* SPDX-License-Identifier: Apache-2.0 */
/* Whole small files. Reads have a size limit. A reader sees a write's old file or its new file,
 * never a part. */
#ifndef WEFT_BASE_FILE_H
#define WEFT_BASE_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* Reads all of `path` ("-" is stdin) into *bytes, malloc'd and followed by a NUL; the caller frees
 * it. WEFT_E_NO_INPUT if it does not exist, WEFT_E_PERMISSION, WEFT_E_IO, or WEFT_E_DATA if it is
 * longer than `most_bytes`. Outputs are untouched on failure. */
WEFT_MUST_USE enum weft_status weft_file_read(const char *path, int64_t most_bytes, char **bytes,
                                              size_t *length, struct weft_error *err);

struct weft_text; /* in base/text.h */

/* Appends all bytes of an open file to `out`. The file's offset stays, and `title` names the file
 * in errors: WEFT_E_IO, WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_file_read_open(int descriptor, const char *title,
                                                   struct weft_text *out, struct weft_error *err);

/* Writes a temporary file next to `path`, syncs it and renames it. An existing file passes on its
 * mode, and a symbolic link stays. "-" writes to stdout; pipes and devices are written, never
 * replaced. On failure no new file is left: WEFT_E_CREATE if it cannot be made, WEFT_E_IO if the
 * disk is full or fails. */
WEFT_MUST_USE enum weft_status weft_file_write(const char *path, const char *bytes, size_t length,
                                               struct weft_error *err);

/* Removes temporary files of weft_file_write from a directory: those of ended processes, and of
 * this one. Call it only while no other thread writes there. */
void weft_file_clear(const char *directory);

/* The largest file that this process may write (RLIMIT_FSIZE); INT64_MAX: no limit. Above it the
 * kernel ends the process with a signal, so check a size first. */
int64_t weft_file_most_bytes(void);

/* Makes a directory and its missing parents. WEFT_E_CREATE on failure. */
WEFT_MUST_USE enum weft_status weft_file_make_directory(const char *path, struct weft_error *err);

#endif
