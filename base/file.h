/* Whole small files: read with a limit, written so that a reader sees the old one or the new one
 * and never half of either. */
#ifndef WEFT_BASE_FILE_H
#define WEFT_BASE_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* Reads all of `path` ("-" is stdin) into *bytes (malloc'd, the caller frees; one NUL is added
 * after the end). WEFT_E_NO_INPUT when it does not exist, WEFT_E_PERMISSION, WEFT_E_IO, or
 * WEFT_E_DATA when it is longer than `most_bytes`; outputs untouched on failure. */
WEFT_MUST_USE enum weft_status weft_file_read(const char *path, int64_t most_bytes, char **bytes,
                                              size_t *length, struct weft_error *err);

/* Writes a temporary file beside `path`, syncs it and renames it over; a file that was there gives
 * its mode, a symbolic link stays one. "-" writes to stdout; pipes and devices are written to,
 * never replaced. On failure nothing of it is left: WEFT_E_CREATE when it cannot be made, WEFT_E_IO
 * when the disk is full or fails. */
WEFT_MUST_USE enum weft_status weft_file_write(const char *path, const char *bytes, size_t length,
                                               struct weft_error *err);

/* Removes from a directory what weft_file_write could not take away because its process was killed:
 * temporary files of processes that have ended, and of this one. Nothing else of it may be writing
 * there. */
void weft_file_clear(const char *directory);

/* Makes a directory and its missing parents. WEFT_E_CREATE. */
WEFT_MUST_USE enum weft_status weft_file_make_directory(const char *path, struct weft_error *err);

#endif
