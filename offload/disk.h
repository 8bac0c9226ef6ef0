/* A disk file is a file without a name in a directory, reserved in whole and read and written past
 * the page cache where its file system can. It is gone when it is closed, however the process ends:
 * nothing of it is ever found again, and none is ever trusted. */
#ifndef WEFT_OFFLOAD_DISK_H
#define WEFT_OFFLOAD_DISK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/status.h"

/* The system calls of a disk file. They return what the system's do: -1, with errno, on failure.
 * Tests have their own. */
struct weft_disk_calls {
    void *context; /* the first argument of each */
    int (*open)(void *context, const char *path, int flags, unsigned mode);
    int (*unlink)(void *context, const char *path);
    int (*close)(void *context, int fd);
    /* The file system's number, as in statfs(2), and the bytes that this process may still take. */
    int (*file_system)(void *context, int fd, uint64_t *number, int64_t *free_bytes);
    /* Blocks of this file are overwritten in place, never copied on write. */
    int (*set_no_copy)(void *context, int fd);
    /* What direct input and output must be aligned to; 0: there is none; negative: the system does
     * not say. */
    int (*alignment)(void *context, int fd, int64_t *bytes);
    int (*set_direct)(void *context, int fd);
    int (*reserve)(void *context, int fd, int64_t bytes);
    int64_t (*read)(void *context, int fd, const struct iovec *to, int n, int64_t at);
    int64_t (*write)(void *context, int fd, const struct iovec *from, int n, int64_t at);
    /* Bytes of the file's first `bytes` that lie in the page cache. */
    int (*resident)(void *context, int fd, int64_t bytes, int64_t *resident_bytes);
};
extern const struct weft_disk_calls weft_disk_calls;

/* What layouts and requests are aligned to where the system does not say, and at least: also
 * without direct input and output, so that every machine refuses what one of them would. */
enum { WEFT_DISK_ALIGNMENT_BYTES = 4096, WEFT_DISK_REASON_BYTES = 160 };

/* What a directory's disk is. */
struct weft_disk_facts {
    char file_system[24];    /* "ext4", or its number */
    bool network;            /* it is on another machine */
    bool memory;             /* it keeps everything in memory */
    bool direct;             /* past the page cache */
    bool copies;             /* on write: what is reserved may still be missing later */
    int64_t alignment_bytes; /* of offsets, addresses and lengths */
    int64_t step_bytes;      /* a request that was cut short goes on at a multiple of it */
    int64_t free_bytes;      /* that this process may take */
    char reason[WEFT_DISK_REASON_BYTES]; /* why not direct; empty where it is */
};

struct weft_disk {
    const struct weft_disk_calls *calls;
    const char *directory; /* the caller's */
    int fd;                /* -1: closed */
    struct weft_disk_facts facts;
};

/* Opens an empty file in `directory`, which must outlive it. direct false: through the page cache.
 * WEFT_E_DATA when the directory is missing, is none, may not be written to or is memory;
 * WEFT_E_SYSTEM without descriptors; WEFT_E_CREATE, WEFT_E_IO. */
WEFT_MUST_USE enum weft_status weft_disk_open(const struct weft_disk_calls *calls,
                                              const char *directory, bool direct,
                                              struct weft_disk *out, struct weft_error *err);

/* Reserves the file's bytes, so that no write will lack space but on a file system that copies.
 * WEFT_E_IO with bytes wanted and free; WEFT_E_SYSTEM above the limit of file sizes. */
WEFT_MUST_USE enum weft_status weft_disk_reserve(const struct weft_disk *disk, int64_t bytes,
                                                 struct weft_error *err);

/* Closes and so removes it. Accepts a closed one. */
void weft_disk_close(struct weft_disk *disk);

/* A line for people: "ext4, direct, aligned to 4.00 KiB, 77.0 GiB free". */
void weft_disk_describe(const struct weft_disk_facts *facts, char *out, size_t bytes);

#endif
