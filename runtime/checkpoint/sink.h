/* SPDX-License-Identifier: Apache-2.0 */
/* A sink is the file system of a save: the few calls that decide by order and failure whether a
 * checkpoint survives. Training uses the system's. Tests use sinks that record which bytes are
 * durable, or that fail. */
#ifndef WEFT_RUNTIME_CHECKPOINT_SINK_H
#define WEFT_RUNTIME_CHECKPOINT_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Every function returns 0 or an errno. Calls may return EINTR and writes may be short;
 * weft_sink_write handles both. */
struct weft_sink {
    void *context;
    bool is_memory; /* its files have no names in the file system */
    int (*make_directory)(void *context, const char *path);
    /* Creates a file for writing; EEXIST if it exists. */
    int (*create)(void *context, const char *path, int *fd);
    /* Opens an existing file for writing. */
    int (*open)(void *context, const char *path, int *fd);
    /* Reserves `bytes` on the disk and sets the file's length. */
    int (*reserve)(void *context, int fd, int64_t bytes);
    int (*write)(void *context, int fd, const void *bytes, size_t length, int64_t offset,
                 size_t *written);
    /* Begins to write earlier bytes to the disk without waiting, so that a sync has less to do. Its
     * failures show in the sync. NULL: not available. */
    void (*begin_sync)(void *context, int fd);
    int (*sync)(void *context, int fd);
    int (*close)(void *context, int fd);
    int (*rename)(void *context, const char *from, const char *to);
    /* Asks the file system itself: 0 or ENOENT. NULL: not available. */
    int (*look)(void *context, const char *path);
    /* Waits; NULL: by the clock. */
    void (*pause)(void *context, int64_t ns);
    int (*sync_directory)(void *context, const char *path);
    int (*remove)(void *context, const char *path);           /* a file */
    int (*remove_directory)(void *context, const char *path); /* an empty one */
    /* Free bytes of the file system at `path`, and the size of its blocks. */
    int (*free_bytes)(void *context, const char *path, int64_t *bytes, int64_t *block_bytes);
};

extern const struct weft_sink weft_sink_system;

/* Caches of names on other hosts expire within a minute (NFS: acdirmax). */
#define WEFT_SINK_PATIENCE_NS INT64_C(70000000000)
void weft_sink_pause(const struct weft_sink *sink, int64_t ns);

/* Renames. A shared file system may report an error of a rename that it has done, if the reply was
 * lost. So an error counts only if `from` is still there or `to` is not. */
int weft_sink_rename(const struct weft_sink *sink, const char *from, const char *to);

/* Writes all bytes, after interrupted and short calls too. Returns 0 or an errno. */
int weft_sink_write(const struct weft_sink *sink, int fd, const void *bytes, size_t length,
                    int64_t offset);

#endif
