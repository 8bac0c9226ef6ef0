/* SPDX-License-Identifier: Apache-2.0 */
/* A store is a file of blocks. Its own threads read and write whole blocks, several at once. A read
 * returns the bytes of the last write, or an error: the CRC of each block stays in memory. The file
 * has no name and does not outlive the process.
 *
 * All functions except weft_store_open, weft_store_reserve and weft_store_destroy may be called
 * from any thread. */
#ifndef WEFT_OFFLOAD_STORE_H
#define WEFT_OFFLOAD_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "offload/disk.h"
#include "offload/span.h"
#include "offload/store_file.h"

struct weft_store;

enum { WEFT_STORE_SPANS = 1024 }; /* most spans of a request: the limit of one system call */

struct weft_store_options {
    const char *directory; /* copied */
    int32_t threads;       /* threads that read, and as many that write */
    int32_t requests;      /* of each direction, queued or under way */
    int32_t spans;         /* most spans of a request, up to WEFT_STORE_SPANS */
    int64_t timeout_ns;    /* limit of one request, then WEFT_E_HANG; 0: none */
    bool unverified;       /* no CRCs: bytes from the disk are trusted */
    bool quiet;            /* no warnings about the disk: another store gave them */
    bool buffered;         /* through the page cache, even if the disk could bypass it */
    const struct weft_disk_calls *calls; /* NULL: the system's; otherwise it outlives the store */
};

/* Opens an empty file. Errors are those of weft_disk_open. Warns through the log of a network file
 * system, of copies on write, and of blocks that go through the page cache, with the reason. */
WEFT_MUST_USE enum weft_status weft_store_open(const struct weft_store_options *options,
                                               struct weft_store **out, struct weft_error *err);

/* Drops queued requests, waits for requests under way, and removes the file. If a request hangs,
 * its threads go on (service.h). Accepts NULL. */
void weft_store_destroy(struct weft_store *store);

/* Lengths and addresses of spans must be multiples of it. */
int64_t weft_store_alignment_bytes(const struct weft_store *store);
const struct weft_disk_facts *weft_store_facts(const struct weft_store *store);

/* Reserves the file for all blocks and starts the threads; call it once. Errors are those of
 * weft_disk_reserve, and WEFT_E_INTERNAL if a length is not aligned or on a second call. */
WEFT_MUST_USE enum weft_status weft_store_reserve(struct weft_store *store,
                                                  const struct weft_store_block *blocks, int64_t n,
                                                  struct weft_error *err);

/* Queue a request for block `block` and write its ticket, which counts by direction. The spans have
 * the block's bytes, and must stay until the request has ended. `step` is the period of the bytes.
 * Waits while the block has a request under way, or its direction's queue is full.
 *
 * WEFT_E_INTERNAL if the spans do not have the block's bytes or are not aligned. (The system would
 * accept them and use the page cache.) WEFT_E_INTERNAL also for a read of a block that was never
 * written. Otherwise the failure of the store, see weft_store_wait. */
WEFT_MUST_USE enum weft_status weft_store_submit_read(struct weft_store *store, int64_t block,
                                                      const struct weft_memory_span *to, int32_t n,
                                                      int64_t *ticket, struct weft_error *err);
WEFT_MUST_USE enum weft_status weft_store_submit_write(struct weft_store *store, int64_t block,
                                                       int64_t step,
                                                       const struct weft_memory_span *from,
                                                       int32_t n, int64_t *ticket,
                                                       struct weft_error *err);

/* Waits until the request has ended. The first request that fails is the store's failure, and all
 * later calls return it. WEFT_E_IO names the block and the directory, and tells the origin of wrong
 * bytes if it is known. WEFT_E_HANG names the request. */
WEFT_MUST_USE enum weft_status weft_store_wait(struct weft_store *store,
                                               enum weft_store_direction direction, int64_t ticket,
                                               struct weft_error *err);
/* Whether the request has ended, and nothing has failed. */
bool weft_store_is_done(struct weft_store *store, enum weft_store_direction direction,
                        int64_t ticket);

/* Bytes reserved for the file. */
int64_t weft_store_bytes(const struct weft_store *store);

/* Bytes of the file in the page cache, and of the whole file. WEFT_E_IO if the system does not
 * say. */
WEFT_MUST_USE enum weft_status weft_store_resident(struct weft_store *store,
                                                   int64_t *resident_bytes, int64_t *all_bytes,
                                                   struct weft_error *err);

/* Warns through the log if the file should bypass the page cache and more than 1 % of it is
 * there. */
void weft_store_warn(struct weft_store *store);

#endif
