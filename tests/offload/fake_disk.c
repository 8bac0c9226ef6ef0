/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* O_TMPFILE */
#include "tests/offload/fake_disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

enum { FD = 1000000, SECTOR_BYTES = 512, EXT4 = 0xEF53 };

/* Counts the call. Returns true and sets errno if it must fail. */
static bool is_to_fail(struct fake_disk *disk, enum fake_call kind)
{
    const int64_t number = disk->all++;
    disk->made[kind]++;
    if (disk->fail_at < 0 || number < disk->fail_at) return false;
    if (number == disk->fail_at) disk->failed = kind;
    if (kind != disk->failed || disk->fails < 0) return false;
    disk->fails--;
    errno = disk->fail_with;
    return true;
}

static int end_call(struct fake_disk *disk, int result)
{
    const int reason = errno;
    pthread_mutex_unlock(&disk->mutex);
    errno = reason;
    return result;
}

static struct fake_disk *begin_call(void *context)
{
    struct fake_disk *disk = context;
    pthread_mutex_lock(&disk->mutex);
    return disk;
}

static int fake_open(void *context, const char *path, int flags, unsigned mode)
{
    struct fake_disk *disk = begin_call(context);
    (void)path;
    if (is_to_fail(disk, FAKE_OPEN)) return end_call(disk, -1);
    const bool unnamed = (flags & O_TMPFILE) == O_TMPFILE;
    errno = unnamed && disk->no_unnamed ? EOPNOTSUPP : mode != 0600 ? EINVAL : 0;
    if (errno != 0) return end_call(disk, -1);
    disk->names += !unnamed;
    disk->open_files++;
    return end_call(disk, FD);
}

static int fake_unlink(void *context, const char *path)
{
    struct fake_disk *disk = begin_call(context);
    (void)path;
    if (is_to_fail(disk, FAKE_UNLINK)) return end_call(disk, -1);
    disk->names--;
    return end_call(disk, 0);
}

static int fake_close(void *context, int fd)
{
    struct fake_disk *disk = begin_call(context);
    disk->open_files -= fd == FD;
    pthread_cond_broadcast(&disk->changed);
    return end_call(disk, 0);
}

static int fake_file_system(void *context, int fd, uint64_t *number, int64_t *free_bytes)
{
    struct fake_disk *disk = begin_call(context);
    (void)fd;
    if (is_to_fail(disk, FAKE_FILE_SYSTEM)) return end_call(disk, -1);
    *number = disk->file_system == 0 ? EXT4 : disk->file_system;
    *free_bytes = disk->capacity - disk->reserved;
    return end_call(disk, 0);
}

static int fake_no_copy(void *context, int fd)
{
    struct fake_disk *disk = begin_call(context);
    (void)fd;
    return end_call(disk, is_to_fail(disk, FAKE_NO_COPY) ? -1 : 0);
}

static int fake_alignment(void *context, int fd, int64_t *bytes)
{
    struct fake_disk *disk = begin_call(context);
    (void)fd;
    if (is_to_fail(disk, FAKE_ALIGNMENT)) return end_call(disk, -1);
    *bytes = disk->alignment == 0 ? SECTOR_BYTES : disk->alignment == -2 ? 0 : disk->alignment;
    return end_call(disk, 0);
}

static int fake_direct(void *context, int fd)
{
    struct fake_disk *disk = begin_call(context);
    (void)fd;
    const bool fails = is_to_fail(disk, FAKE_DIRECT);
    disk->direct = !fails;
    return end_call(disk, fails ? -1 : 0);
}

static int fake_reserve(void *context, int fd, int64_t bytes)
{
    struct fake_disk *disk = begin_call(context);
    (void)fd;
    if (is_to_fail(disk, FAKE_RESERVE)) return end_call(disk, -1);
    if (bytes > disk->capacity) {
        errno = ENOSPC;
        return end_call(disk, -1);
    }
    disk->reserved = bytes;
    return end_call(disk, 0);
}

/* Bytes that this call may move: all, or a random part, perhaps none. */
static int64_t roll_bytes(struct fake_disk *disk, int64_t wanted)
{
    const uint64_t draw = (uint64_t)disk->all;
    if (disk->dice == 0) return wanted;
    switch (weft_rng_below(disk->dice, 1, draw, 8)) {
    case 0:
        errno = EINTR;
        return -1;
    case 1:
        errno = EAGAIN;
        return -1;
    case 2:
    case 3:
        return (int64_t)weft_rng_below(disk->dice, 2, draw, (uint64_t)wanted + 1);
    default:
        return wanted;
    }
}

/* Moves up to `bytes` between pieces and disk. */
static void move_pieces(unsigned char *disk, const struct iovec *pieces, int n, int64_t bytes,
                        bool reads)
{
    for (int i = 0; i < n && bytes > 0; i++) {
        const size_t part = (int64_t)pieces[i].iov_len < bytes ? pieces[i].iov_len : (size_t)bytes;
        if (reads)
            memcpy(pieces[i].iov_base, disk, part);
        else
            memcpy(disk, pieces[i].iov_base, part);
        disk += part;
        bytes -= (int64_t)part;
    }
}

static int64_t move_well(struct fake_disk *disk, const struct iovec *pieces, int n, int64_t at,
                         bool reads)
{
    int64_t wanted = 0;
    for (int i = 0; i < n; i++)
        wanted += (int64_t)pieces[i].iov_len;
    const int64_t bytes = roll_bytes(disk, wanted);
    if (bytes <= 0 || at + bytes > disk->reserved) return bytes < 0 ? -1 : 0;
    const bool hit = disk->damage != FAKE_NOTHING && !disk->damaged &&
                     disk->made[FAKE_READ] + disk->made[FAKE_WRITE] > disk->damage_at;
    int64_t moved = bytes, to = at;
    if (hit && !reads && disk->damage == FAKE_LOST) moved = 0;
    if (hit && !reads && disk->damage == FAKE_TORN) moved = bytes / 2;
    if (hit && reads == (disk->damage == FAKE_ASTRAY) &&
        (disk->damage == FAKE_ASTRAY || disk->damage == FAKE_MISPLACED))
        to = (at + disk->damage_beside) % (disk->reserved - bytes + 1);
    move_pieces(disk->bytes + to, pieces, n, moved, reads);
    if (hit && reads && disk->damage == FAKE_FLIPPED)
        ((unsigned char *)pieces[0].iov_base)[disk->damage_beside % (int64_t)pieces[0].iov_len] ^=
            (unsigned char)(1 << disk->damage_beside % 8);
    disk->damaged = disk->damaged || (hit && reads == (disk->damage >= FAKE_FLIPPED));
    return bytes;
}

/* Checks the alignment to sectors of file and memory, like the system does. */
static bool is_misaligned(const struct fake_disk *disk, const struct iovec *pieces, int n,
                          int64_t at)
{
    bool aligned = at % SECTOR_BYTES == 0;
    for (int i = 0; i < n; i++)
        aligned = aligned && (uintptr_t)pieces[i].iov_base % SECTOR_BYTES == 0 &&
                  pieces[i].iov_len % SECTOR_BYTES == 0;
    return disk->direct && !aligned;
}

static int64_t fake_move(struct fake_disk *disk, const struct iovec *pieces, int n, int64_t at,
                         bool reads)
{
    int64_t moved = -1;
    while (disk->hold) {
        disk->holding++;
        pthread_cond_broadcast(&disk->changed);
        pthread_cond_wait(&disk->changed, &disk->mutex);
        disk->holding--;
    }
    if (is_misaligned(disk, pieces, n, at))
        errno = EINVAL;
    else if (!is_to_fail(disk, reads ? FAKE_READ : FAKE_WRITE))
        moved = move_well(disk, pieces, n, at, reads);
    end_call(disk, 0);
    return moved;
}

static int64_t fake_read(void *context, int fd, const struct iovec *to, int n, int64_t at)
{
    (void)fd;
    return fake_move(begin_call(context), to, n, at, true);
}

static int64_t fake_write(void *context, int fd, const struct iovec *from, int n, int64_t at)
{
    (void)fd;
    return fake_move(begin_call(context), from, n, at, false);
}

static int fake_resident(void *context, int fd, int64_t bytes, int64_t *resident_bytes)
{
    struct fake_disk *disk = begin_call(context);
    (void)fd;
    if (is_to_fail(disk, FAKE_RESIDENT)) return end_call(disk, -1);
    *resident_bytes = bytes / 2;
    return end_call(disk, 0);
}

void fake_disk_init(struct fake_disk *disk, int64_t capacity)
{
    *disk = (struct fake_disk){
        .calls = {.context = disk,
                  .open = fake_open,
                  .unlink = fake_unlink,
                  .close = fake_close,
                  .file_system = fake_file_system,
                  .set_no_copy = fake_no_copy,
                  .alignment = fake_alignment,
                  .set_direct = fake_direct,
                  .reserve = fake_reserve,
                  .read = fake_read,
                  .write = fake_write,
                  .resident = fake_resident},
        .bytes = calloc(1, (size_t)capacity),
        .capacity = capacity,
        .fail_at = -1,
    };
    pthread_mutex_init(&disk->mutex, NULL);
    pthread_cond_init(&disk->changed, NULL);
}

void fake_disk_finish(struct fake_disk *disk)
{
    pthread_mutex_destroy(&disk->mutex);
    pthread_cond_destroy(&disk->changed);
    free(disk->bytes);
}

void fake_disk_hold(struct fake_disk *disk, bool hold)
{
    pthread_mutex_lock(&disk->mutex);
    disk->hold = hold;
    pthread_cond_broadcast(&disk->changed);
    pthread_mutex_unlock(&disk->mutex);
}

void fake_disk_await_held(struct fake_disk *disk)
{
    pthread_mutex_lock(&disk->mutex);
    while (disk->holding == 0)
        pthread_cond_wait(&disk->changed, &disk->mutex);
    pthread_mutex_unlock(&disk->mutex);
}

void fake_disk_await_closed(struct fake_disk *disk)
{
    pthread_mutex_lock(&disk->mutex);
    while (disk->open_files > 0)
        pthread_cond_wait(&disk->changed, &disk->mutex);
    pthread_mutex_unlock(&disk->mutex);
}
