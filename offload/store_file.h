/* SPDX-License-Identifier: Apache-2.0 */
/* The file of a store: its blocks, the facts about each, and the work of the store's threads.
 * store.c queues the requests. */
#ifndef WEFT_OFFLOAD_STORE_FILE_H
#define WEFT_OFFLOAD_STORE_FILE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "offload/disk.h"

enum weft_store_direction { WEFT_STORE_READ, WEFT_STORE_WRITE, WEFT_STORE_DIRECTIONS };

/* A block's length, and its name in errors. */
struct weft_store_block {
    int64_t bytes; /* a multiple of the store's alignment, above 0 */
    int32_t unit, index;
};

/* A block's place in the file and its content. At most one request holds it. */
struct weft_store_place {
    struct weft_store_block block;
    int64_t at;   /* bytes from the file's beginning */
    bool busy;    /* a request holds it */
    int64_t turn; /* number of requests that held it so far */
    enum weft_store_direction direction;
    int64_t ticket;       /* of that request; -1: not submitted yet */
    int64_t step;         /* that wrote its bytes; -1: never written */
    int64_t written;      /* number of writes */
    uint32_t crc, before; /* of its bytes, and of its bytes before the last write */
};

struct weft_store_request {
    int64_t block, step;
    int32_t n; /* pieces: struct iovec after this struct, with room for as many copies */
};

struct weft_store_file {
    const char *directory;
    struct weft_disk disk;
    bool verified;
    int32_t spans; /* most pieces of a request */
    int64_t timeout_ns;
    int64_t n_blocks, bytes;
    struct weft_store_place *places; /* [n_blocks] */
    pthread_mutex_t mutex;           /* of the fields of places from `busy` on */
    pthread_cond_t freed;            /* a place's ticket is known, or its request has ended */
};

/* Functions of struct weft_service_options. The context is the file. */
enum weft_status weft_store_file_serve(void *context, int32_t lane, void *request,
                                       struct weft_error *err);
enum weft_status weft_store_file_hang(void *context, int32_t lane, const void *request,
                                      struct weft_error *err);

#endif
