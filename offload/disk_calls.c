/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of the system. */
#define _GNU_SOURCE /* fallocate, preadv, statx, mincore */
#include "offload/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#ifndef SYS_cachestat
#define SYS_cachestat 451 /* Linux 6.5; the same number on every architecture */
#endif

/* In linux/mman.h from Linux 6.5 on. */
struct cache_range {
    uint64_t at, bytes;
};
struct cache_pages {
    uint64_t cached, dirty, written_back, evicted, evicted_lately;
};

static int call_open(void *context, const char *path, int flags, unsigned mode)
{
    (void)context;
    return open(path, flags, (mode_t)mode);
}

static int call_unlink(void *context, const char *path)
{
    (void)context;
    return unlink(path);
}

static int call_close(void *context, int fd)
{
    (void)context;
    return close(fd);
}

static int call_file_system(void *context, int fd, uint64_t *number, int64_t *free_bytes)
{
    (void)context;
    struct statfs facts;
    if (fstatfs(fd, &facts) != 0) return -1;
    *number = (uint64_t)facts.f_type & 0xFFFFFFFFu;
    *free_bytes = (int64_t)facts.f_bavail * (int64_t)facts.f_bsize;
    return 0;
}

static int call_set_no_copy(void *context, int fd)
{
    (void)context;
    int flags = 0;
    if (ioctl(fd, FS_IOC_GETFLAGS, &flags) != 0) return -1;
    flags |= FS_NOCOW_FL;
    return ioctl(fd, FS_IOC_SETFLAGS, &flags);
}

static int call_alignment(void *context, int fd, int64_t *bytes)
{
    (void)context;
    *bytes = -1;
#ifdef STATX_DIOALIGN
    struct statx facts;
    if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &facts) != 0) return errno == ENOSYS ? 0 : -1;
    if ((facts.stx_mask & STATX_DIOALIGN) == 0) return 0;
    const int64_t memory = facts.stx_dio_mem_align, offset = facts.stx_dio_offset_align;
    *bytes = offset == 0 || memory == 0 ? 0 : memory > offset ? memory : offset;
#else
    (void)fd;
#endif
    return 0;
}

static int call_set_direct(void *context, int fd)
{
    (void)context;
    const int flags = fcntl(fd, F_GETFL);
    return flags < 0 ? -1 : fcntl(fd, F_SETFL, flags | O_DIRECT);
}

/* posix_fallocate would write a byte into every block if the file system cannot reserve. */
static int call_reserve(void *context, int fd, int64_t bytes)
{
    (void)context;
    return fallocate(fd, 0, 0, bytes);
}

static int64_t call_read(void *context, int fd, const struct iovec *to, int n, int64_t at)
{
    (void)context;
    return preadv(fd, to, n, at);
}

static int64_t call_write(void *context, int fd, const struct iovec *from, int n, int64_t at)
{
    (void)context;
    return pwritev(fd, from, n, at);
}

/* For kernels without cachestat: maps the file part by part. */
static int count_resident(int fd, int64_t bytes, int64_t *resident_bytes)
{
    enum { PART_BYTES = 64 << 20 };
    const int64_t page = sysconf(_SC_PAGESIZE);
    unsigned char *pages = malloc((size_t)(PART_BYTES / page) + 1);
    int64_t count = 0;
    if (pages == NULL) return -1;
    for (int64_t at = 0; at < bytes; at += PART_BYTES) {
        const size_t length = (size_t)(bytes - at < PART_BYTES ? bytes - at : PART_BYTES);
        void *part = mmap(NULL, length, PROT_READ, MAP_SHARED, fd, at);
        const int failed = part == MAP_FAILED ? -1 : mincore(part, length, pages);
        if (part != MAP_FAILED) munmap(part, length);
        if (failed != 0) {
            free(pages);
            return -1;
        }
        for (size_t i = 0; i < (length + (size_t)page - 1) / (size_t)page; i++)
            count += pages[i] & 1;
    }
    free(pages);
    *resident_bytes = count * page;
    return 0;
}

static int call_resident(void *context, int fd, int64_t bytes, int64_t *resident_bytes)
{
    (void)context;
    const struct cache_range range = {0, (uint64_t)bytes};
    struct cache_pages pages = {0};
    if (syscall(SYS_cachestat, fd, &range, &pages, 0) != 0)
        return count_resident(fd, bytes, resident_bytes);
    *resident_bytes = (int64_t)pages.cached * sysconf(_SC_PAGESIZE);
    return 0;
}

const struct weft_disk_calls weft_disk_calls = {
    .open = call_open,
    .unlink = call_unlink,
    .close = call_close,
    .file_system = call_file_system,
    .set_no_copy = call_set_no_copy,
    .alignment = call_alignment,
    .set_direct = call_set_direct,
    .reserve = call_reserve,
    .read = call_read,
    .write = call_write,
    .resident = call_resident,
};
