/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* sync_file_range */
#include "runtime/checkpoint/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"

static int result_of(int returned)
{
    return returned == 0 ? 0 : errno;
}

static int make_directory(void *context, const char *path)
{
    (void)context;
    return result_of(mkdir(path, 0777));
}

static int open_with(const char *path, int flags, int *fd)
{
    int opened;
    do {
        opened = open(path, flags | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0666);
    } while (opened < 0 && errno == EINTR);
    if (opened < 0) return errno;
    *fd = opened;
    return 0;
}

static int create_file(void *context, const char *path, int *fd)
{
    (void)context;
    return open_with(path, O_CREAT | O_EXCL, fd);
}

static int open_existing(void *context, const char *path, int *fd)
{
    (void)context;
    return open_with(path, 0, fd);
}

/* Sets only the length if the file system cannot reserve. */
static int reserve_bytes(void *context, int fd, int64_t bytes)
{
    (void)context;
    int error;
    do {
        error = bytes == 0 ? 0 : posix_fallocate(fd, 0, (off_t)bytes);
    } while (error == EINTR);
    if (error == EINVAL || error == EOPNOTSUPP || error == ENODEV)
        error = result_of(ftruncate(fd, (off_t)bytes));
    return error;
}

static int write_some(void *context, int fd, const void *bytes, size_t length, int64_t offset,
                      size_t *written)
{
    (void)context;
    ssize_t n = pwrite(fd, bytes, length, (off_t)offset);
    if (n < 0) return errno;
    *written = (size_t)n;
    return 0;
}

/* Does not wait, and leaves errors to the sync that follows. */
static void begin_sync(void *context, int fd)
{
    (void)context;
#ifdef SYNC_FILE_RANGE_WRITE
    (void)!sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
#else
    (void)fd;
#endif
}

static int sync_file(void *context, int fd)
{
    (void)context;
    return result_of(fsync(fd));
}

/* Linux releases the descriptor even if close is interrupted. */
static int close_file(void *context, int fd)
{
    (void)context;
    return close(fd) == 0 || errno == EINTR ? 0 : errno;
}

static int rename_path(void *context, const char *from, const char *to)
{
    (void)context;
    return result_of(rename(from, to));
}

static int look_for(void *context, const char *path)
{
    struct stat about;
    (void)context;
    return result_of(lstat(path, &about));
}

static int sync_directory(void *context, const char *path)
{
    (void)context;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return errno;
    int error = result_of(fsync(fd));
    close(fd);
    return error == EINVAL ? 0 : error; /* these file systems need no sync there */
}

static int remove_file(void *context, const char *path)
{
    (void)context;
    return result_of(unlink(path));
}

static int remove_directory(void *context, const char *path)
{
    (void)context;
    return result_of(rmdir(path));
}

static int free_bytes(void *context, const char *path, int64_t *bytes, int64_t *block_bytes)
{
    (void)context;
    struct statvfs about;
    if (statvfs(path, &about) != 0) return errno;
    *bytes = (int64_t)(about.f_bavail * (uint64_t)about.f_frsize);
    *block_bytes = (int64_t)about.f_frsize;
    return 0;
}

const struct weft_sink weft_sink_system = {
    .make_directory = make_directory,
    .create = create_file,
    .open = open_existing,
    .reserve = reserve_bytes,
    .write = write_some,
    .begin_sync = begin_sync,
    .sync = sync_file,
    .close = close_file,
    .rename = rename_path,
    .look = look_for,
    .sync_directory = sync_directory,
    .remove = remove_file,
    .remove_directory = remove_directory,
    .free_bytes = free_bytes,
};

void weft_sink_pause(const struct weft_sink *sink, int64_t ns)
{
    if (sink->pause != NULL)
        sink->pause(sink->context, ns);
    else
        weft_clock_sleep_until_ns(weft_clock_now_ns() + ns);
}

int weft_sink_rename(const struct weft_sink *sink, const char *from, const char *to)
{
    const int error = sink->rename(sink->context, from, to);
    const bool may_be_done = error != 0 && sink->look != NULL;
    if (may_be_done && sink->look(sink->context, from) == ENOENT &&
        sink->look(sink->context, to) == 0)
        return 0;
    return error;
}

int weft_sink_write(const struct weft_sink *sink, int fd, const void *bytes, size_t length,
                    int64_t offset)
{
    const char *at = bytes;
    while (length > 0) {
        size_t written = 0;
        int error = sink->write(sink->context, fd, at, length, offset, &written);
        if (error == EINTR) continue;
        if (error != 0) return error;
        if (written == 0) return ENOSPC;
        at += written;
        offset += (int64_t)written;
        length -= written;
    }
    return 0;
}
