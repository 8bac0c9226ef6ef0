/* SPDX-License-Identifier: Apache-2.0 */
/* A disk file is a file without a name in a directory. It is reserved whole, and bypasses the page
 * cache if its file system allows. It is gone when it is closed, however the process ends. So no
 * process finds or trusts an old one. */
#ifndef WEFT_OFFLOAD_DISK_H
#define WEFT_OFFLOAD_DISK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/status.h"

/* System calls of a disk file; tests have their own. On failure they return -1 with errno, like the
 * system's. */
struct weft_disk_calls {
    void *context; /* first argument of each */
    int (*open)(void *context, const char *path, int flags, unsigned mode);
    int (*unlink)(void *context, const char *path);
    int (*close)(void *context, int fd);
    /* The file system's number, as in statfs(2), and the bytes that this process may still use. */
    int (*file_system)(void *context, int fd, uint64_t *number, int64_t *free_bytes);
    /* Asks for blocks to be overwritten in place and not copied on write. */
    int (*set_no_copy)(void *context, int fd);
    /* Alignment for direct input and output; 0: not available; negative: the system does not
     * say. */
    int (*alignment)(void *context, int fd, int64_t *bytes);
    int (*set_direct)(void *context, int fd);
    int (*reserve)(void *context, int fd, int64_t bytes);
    int64_t (*read)(void *context, int fd, const struct iovec *to, int n, int64_t at);
    int64_t (*write)(void *context, int fd, const struct iovec *from, int n, int64_t at);
    /* Bytes in the page cache, among the file's first `bytes`. */
    int (*resident)(void *context, int fd, int64_t bytes, int64_t *resident_bytes);
};
extern const struct weft_disk_calls weft_disk_calls;

/* The least alignment of layouts and requests, also without direct input and output. So every
 * machine refuses the same requests. */
enum { WEFT_DISK_ALIGNMENT_BYTES = 4096, WEFT_DISK_REASON_BYTES = 160 };

/* Properties of a directory's disk. */
struct weft_disk_facts {
    char file_system[24];    /* "ext4", or its number */
    bool network;            /* on another machine */
    bool memory;             /* keeps everything in memory */
    bool direct;             /* bypasses the page cache */
    bool copies;             /* copies on write: a reserved block may still lack space */
    int64_t alignment_bytes; /* of offsets, addresses and lengths */
    int64_t step_bytes;      /* a request that was cut short resumes at a multiple of it */
    int64_t free_bytes;      /* that this process may use */
    char reason[WEFT_DISK_REASON_BYTES]; /* why it is not direct; empty if it is */
};

struct weft_disk {
    const struct weft_disk_calls *calls;
    const char *directory; /* the caller's */
    int fd;                /* -1: closed */
    struct weft_disk_facts facts;
};

/* Opens an empty file in `directory`, which must outlive *out. With `direct` false it goes through
 * the page cache. WEFT_E_DATA if the directory is missing, no directory, read-only or in memory;
 * WEFT_E_SYSTEM if descriptors run out; also WEFT_E_CREATE and WEFT_E_IO. */
WEFT_MUST_USE enum weft_status weft_disk_open(const struct weft_disk_calls *calls,
                                              const char *directory, bool direct,
                                              struct weft_disk *out, struct weft_error *err);

/* Reserves the file's bytes. Later writes cannot run out of space, unless the file system copies on
 * write. WEFT_E_IO with the bytes wanted and free; WEFT_E_SYSTEM above the limit of file sizes. */
WEFT_MUST_USE enum weft_status weft_disk_reserve(const struct weft_disk *disk, int64_t bytes,
                                                 struct weft_error *err);

/* Closes the file, which removes it. Accepts a closed one. */
void weft_disk_close(struct weft_disk *disk);

/* One line for users: "ext4, direct, aligned to 4.00 KiB, 77.0 GiB free". */
void weft_disk_describe(const struct weft_disk_facts *facts, char *out, size_t bytes);

#endif
