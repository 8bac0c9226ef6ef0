/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/dump/npy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64, PREFIX = 10, MOST_HEADER = 192 };

/* Writes the prefix and the header, padded with spaces before a newline; returns their bytes. */
static size_t write_header(const int64_t dims[2], int32_t n_dims, char out[MOST_HEADER])
{
    static const char magic[] = "\x93NUMPY\x01";
    char shape[64];
    if (n_dims == 1)
        snprintf(shape, sizeof shape, "(%" PRId64 ",)", dims[0]);
    else
        snprintf(shape, sizeof shape, "(%" PRId64 ", %" PRId64 ")", dims[0], dims[1]);
    const int length = snprintf(out + PREFIX, MOST_HEADER - PREFIX,
                                "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }", shape);
    const size_t used = (size_t)(PREFIX + length + 1);
    const size_t whole = (used + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    memset(out + used - 1, ' ', whole - used);
    out[whole - 1] = '\n';
    memcpy(out, magic, sizeof magic); /* with the 0 of the minor version */
    out[PREFIX - 2] = (char)((whole - PREFIX) & 0xff);
    out[PREFIX - 1] = (char)((whole - PREFIX) >> 8);
    return whole;
}

/* A replay can write a file again, so none is synced: a dump has many. */
static enum weft_status write_unsynced(const char *path, const void *bytes, size_t length,
                                       struct weft_error *err)
{
    FILE *file = fopen(path, "wbe");
    if (file == NULL)
        return weft_fail(err, WEFT_E_CREATE, "%s: cannot be created: %s", path, strerror(errno));
    const bool whole = fwrite(bytes, 1, length, file) == length;
    if (fclose(file) == 0 && whole) return WEFT_OK;
    return weft_fail(err, WEFT_E_IO, "%s: cannot be written: %s", path, strerror(errno));
}

enum weft_status weft_npy_write(const char *path, const int64_t dims[2], int32_t n_dims,
                                const float *values, struct weft_error *err)
{
    char header[MOST_HEADER];
    const size_t header_bytes = write_header(dims, n_dims, header);
    const size_t n = (size_t)dims[0] * (size_t)(n_dims > 1 ? dims[1] : 1);
    unsigned char *bytes = malloc(header_bytes + n * sizeof *values);
    if (bytes == NULL) return weft_fail_memory(err, path);
    memcpy(bytes, header, header_bytes);
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        for (size_t b = 0; b < sizeof bits; b++)
            bytes[header_bytes + sizeof bits * i + b] = (unsigned char)(bits >> 8 * b);
    }
    enum weft_status status = write_unsynced(path, bytes, header_bytes + n * sizeof *values, err);
    free(bytes);
    return status;
}
