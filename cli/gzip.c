/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/gzip.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

#ifdef WEFT_ZLIB
#include <zlib.h>

/* 15 bits of window, and 16 for the frame of gzip. */
enum { WINDOW = 15 + 16, LEVEL = 6, MEMORY = 8 };

bool weft_gzip_is_there(void)
{
    return true;
}

static enum weft_status write_compressed(const char *path, const struct weft_text *text,
                                         struct weft_error *err)
{
    z_stream stream = {0};
    if (text->length > UINT_MAX / 2)
        return weft_fail(err, WEFT_E_USAGE, "%s: %zu bytes are more than one gzip file gets", path,
                         text->length);
    if (deflateInit2(&stream, LEVEL, Z_DEFLATED, WINDOW, MEMORY, Z_DEFAULT_STRATEGY) != Z_OK)
        return weft_fail_memory(err, path);
    const uLong most = deflateBound(&stream, (uLong)text->length);
    unsigned char *bytes = malloc(most);
    enum weft_status status = bytes == NULL ? weft_fail_memory(err, path) : WEFT_OK;
    if (status == WEFT_OK) {
        stream.next_in = (unsigned char *)weft_text_chars(text);
        stream.avail_in = (uInt)text->length;
        stream.next_out = bytes;
        stream.avail_out = (uInt)most;
        status = deflate(&stream, Z_FINISH) == Z_STREAM_END
                     ? weft_file_write(path, (const char *)bytes, stream.total_out, err)
                     : weft_fail(err, WEFT_E_INTERNAL, "%s: could not be compressed", path);
    }
    deflateEnd(&stream);
    free(bytes);
    return status;
}
#else
bool weft_gzip_is_there(void)
{
    return false;
}

static enum weft_status write_compressed(const char *path, const struct weft_text *text,
                                         struct weft_error *err)
{
    (void)text;
    return weft_fail(err, WEFT_E_SYSTEM,
                     "%s: this program was built without zlib: leave .gz out of the name, or build "
                     "it where zlib's headers are (zlib1g-dev)",
                     path);
}
#endif

bool weft_gzip_is_asked(const char *path)
{
    const size_t length = strlen(path);
    return length > 3 && strcmp(path + length - 3, ".gz") == 0;
}

enum weft_status weft_gzip_write(const char *path, const struct weft_text *text,
                                 struct weft_error *err)
{
    if (!weft_text_ok(text)) return weft_fail_memory(err, path);
    if (weft_gzip_is_asked(path)) return write_compressed(path, text, err);
    return weft_file_write(path, weft_text_chars(text), text->length, err);
}
