/* SPDX-License-Identifier: Apache-2.0 */
/* Compression of written files as gzip, in programs that were built with zlib. */
#ifndef WEFT_CLI_GZIP_H
#define WEFT_CLI_GZIP_H

#include <stdbool.h>

#include "base/status.h"
#include "base/text.h"

/* Whether this program was built with zlib. */
bool weft_gzip_is_there(void);
/* Whether a path ends in ".gz". */
bool weft_gzip_is_asked(const char *path);
/* Writes the text to a file as weft_file_write does, compressed if the path ends in ".gz".
 * WEFT_E_SYSTEM if this program has no zlib. */
WEFT_MUST_USE enum weft_status weft_gzip_write(const char *path, const struct weft_text *text,
                                               struct weft_error *err);

#endif
