/* The file behind a store: blocks, what is known of each, and what the threads of the store do with
 * them. For store.c, which queues requests. */
#ifndef WEFT_OFFLOAD_STORE_FILE_H
#define WEFT_OFFLOAD_STORE_FILE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "offload/disk.h"

enum weft_store_direction { WEFT_STORE_READ, WEFT_STORE_WRITE, WEFT_STORE_DIRECTIONS };

/* What a block is called in errors, and how long it is. */
struct weft_store_block {
    int64_t bytes; /* a multiple of the store's alignment, above 0 */
    int32_t unit, index;
};

/* Where a block lies, and what it holds. One request at a time has it. */
struct weft_store_place {
    struct weft_store_block block;
    int64_t at;   /* bytes from the file's beginning */
    bool busy;    /* a request has it */
    int64_t turn; /* counts the requests that had it */
    enum weft_store_direction direction;
    int64_t ticket;       /* of the request that has it; -1: it is being submitted */
    int64_t step;         /* that its bytes are of; -1: it was never written */
    int64_t written;      /* how often */
    uint32_t crc, before; /* of what it holds, and of what it held before that */
};

struct weft_store_request {
    int64_t block, step;
    int32_t n; /* pieces, which follow: struct iovec, with room for as many that are left to do */
};

struct weft_store_file {
    const char *directory;
    struct weft_disk disk;
    bool verified;
    int32_t spans; /* the most pieces of a request */
    int64_t timeout_ns;
    int64_t n_blocks, bytes;
    struct weft_store_place *places; /* [n_blocks] */
    pthread_mutex_t mutex;           /* of the places' fields from `busy` on */
    pthread_cond_t freed;            /* a place's request is known, or has ended */
};

/* struct weft_service_options says what they are for; the context is the file. */
enum weft_status weft_store_file_serve(void *context, int32_t lane, void *request,
                                       struct weft_error *err);
enum weft_status weft_store_file_hang(void *context, int32_t lane, const void *request,
                                      struct weft_error *err);

#endif
