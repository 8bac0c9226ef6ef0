/* SPDX-License-Identifier: Apache-2.0 */
#include "text/token_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HEADER_BYTES = 1024, BUFFER_BYTES = 1 << 20, MOST_SHORT = 65536 };
enum { SHORT_MAGIC = 20240520, SHORT_VERSION = 1, LONG_MAGIC = 20240801, LONG_VERSION = 7 };

struct weft_token_file {
    char *path, *part; /* part: NULL once it has its name */
    int fd;
    int token_bytes;
    int64_t count;
    size_t filled;
    unsigned char buffer[BUFFER_BYTES];
};

static enum weft_status fail_write(const struct weft_token_file *file, struct weft_error *err)
{
    return weft_fail(err, WEFT_E_IO, "%s: cannot be written: %s", file->path, strerror(errno));
}

static enum weft_status write_bytes(const struct weft_token_file *file, const unsigned char *bytes,
                                    size_t n, struct weft_error *err)
{
    for (size_t done = 0; done < n;) {
        const ssize_t written = write(file->fd, bytes + done, n - done);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return fail_write(file, err);
        done += (size_t)written;
    }
    return WEFT_OK;
}

static enum weft_status flush_buffer(struct weft_token_file *file, struct weft_error *err)
{
    WEFT_TRY(write_bytes(file, file->buffer, file->filled, err));
    file->filled = 0;
    return WEFT_OK;
}

static void put_number(unsigned char *to, int64_t number, int bytes)
{
    for (int i = 0; i < bytes; i++)
        to[i] = (unsigned char)((uint64_t)number >> 8 * i);
}

enum weft_status weft_token_file_create(const char *path, int32_t size,
                                        struct weft_token_file **out, struct weft_error *err)
{
    struct weft_token_file *file = calloc(1, sizeof *file);
    const size_t room = strlen(path) + sizeof ".part";
    if (file == NULL) return weft_fail_memory(err, "a token file");
    file->fd = -1;
    file->token_bytes = size <= MOST_SHORT ? 2 : 4;
    file->filled = HEADER_BYTES; /* zeros until the end */
    file->path = strdup(path);
    char *part = malloc(room);
    if (file->path == NULL || part == NULL) {
        free(part);
        weft_token_file_destroy(file);
        return weft_fail_memory(err, "a token file");
    }
    snprintf(part, room, "%s.part", path);
    file->fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file->fd < 0) {
        (void)weft_fail(err, WEFT_E_CREATE, "%s: cannot be made: %s", part, strerror(errno));
        free(part);
        weft_token_file_destroy(file);
        return WEFT_E_CREATE;
    }
    file->part = part;
    *out = file;
    return WEFT_OK;
}

enum weft_status weft_token_file_add(struct weft_token_file *file, const int32_t *tokens, size_t n,
                                     struct weft_error *err)
{
    for (size_t i = 0; i < n; i++) {
        put_number(file->buffer + file->filled, tokens[i], file->token_bytes);
        file->filled += (size_t)file->token_bytes;
        if (file->filled == BUFFER_BYTES) WEFT_TRY(flush_buffer(file, err));
    }
    file->count += (int64_t)n;
    return WEFT_OK;
}

static enum weft_status write_header(const struct weft_token_file *file, struct weft_error *err)
{
    unsigned char header[12];
    const bool is_short = file->token_bytes == 2;
    put_number(header, is_short ? SHORT_MAGIC : LONG_MAGIC, 4);
    put_number(header + 4, is_short ? SHORT_VERSION : LONG_VERSION, 4);
    put_number(header + 8, file->count, 4);
    if (lseek(file->fd, 0, SEEK_SET) != 0) return fail_write(file, err);
    return write_bytes(file, header, sizeof header, err);
}

enum weft_status weft_token_file_finish(struct weft_token_file *file, struct weft_error *err)
{
    WEFT_TRY(flush_buffer(file, err));
    WEFT_TRY(write_header(file, err));
    if (fsync(file->fd) != 0 || rename(file->part, file->path) != 0) return fail_write(file, err);
    free(file->part);
    file->part = NULL;
    return WEFT_OK;
}

int64_t weft_token_file_count(const struct weft_token_file *file)
{
    return file->count;
}

void weft_token_file_destroy(struct weft_token_file *file)
{
    if (file == NULL) return;
    if (file->fd >= 0) (void)close(file->fd);
    if (file->part != NULL) (void)unlink(file->part);
    free(file->part);
    free(file->path);
    free(file);
}
