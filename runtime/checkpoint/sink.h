/* A sink is the file system as a save sees it: the few calls whose order and failures decide
 * whether a checkpoint survives. The system's own is the one that trains; tests put others in its
 * place that record what is durable when, or fail. */
#ifndef WEFT_RUNTIME_CHECKPOINT_SINK_H
#define WEFT_RUNTIME_CHECKPOINT_SINK_H

#include <stddef.h>
#include <stdint.h>

/* Every function returns 0 or an errno. Interrupted calls may return EINTR, and writes may be
 * short: weft_sink_write takes care of both. */
struct weft_sink {
    void *context;
    int (*make_directory)(void *context, const char *path);
    /* A new file, for writing; EEXIST when there is one. */
    int (*create)(void *context, const char *path, int *fd);
    /* One that is there, for writing. */
    int (*open)(void *context, const char *path, int *fd);
    /* Room on the disk for `bytes`, which become the file's length. */
    int (*reserve)(void *context, int fd, int64_t bytes);
    int (*write)(void *context, int fd, const void *bytes, size_t length, int64_t offset,
                 size_t *written);
    /* Begins to bring to the disk what was written so far, without waiting for it, so that a sync
     * has less to do. Its failures are the sync's. NULL: nothing is begun. */
    void (*begin_sync)(void *context, int fd);
    int (*sync)(void *context, int fd);
    int (*close)(void *context, int fd);
    int (*rename)(void *context, const char *from, const char *to);
    int (*sync_directory)(void *context, const char *path);
    int (*remove)(void *context, const char *path);           /* a file */
    int (*remove_directory)(void *context, const char *path); /* an empty one */
    int (*free_bytes)(void *context, const char *path, int64_t *bytes);
};

extern const struct weft_sink weft_sink_system;

/* All of it, however often the call is interrupted or short. 0 or an errno. */
int weft_sink_write(const struct weft_sink *sink, int fd, const void *bytes, size_t length,
                    int64_t offset);

#endif
