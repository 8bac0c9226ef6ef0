/* A store is a file of blocks, written and read whole by threads of its own, several at once. What
 * comes back is what was written last, or an error before anybody uses it: the CRC of each block
 * stays in memory. The file has no name and does not outlive the process.
 *
 * Functions may be called from any thread, but for weft_store_open, weft_store_reserve and
 * weft_store_destroy. */
#ifndef WEFT_OFFLOAD_STORE_H
#define WEFT_OFFLOAD_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "offload/disk.h"
#include "offload/span.h"
#include "offload/store_file.h"

struct weft_store;

enum { WEFT_STORE_SPANS = 1024 }; /* the most of a request: what one system call takes */

struct weft_store_options {
    const char *directory; /* copied */
    int32_t threads;       /* that read, and as many that write: requests at the disk at once */
    int32_t requests;      /* of each direction that may be queued or under way */
    int32_t spans;         /* the most of a request, up to WEFT_STORE_SPANS */
    int64_t timeout_ns;    /* a request that takes longer is hung; 0: none is */
    bool unverified;       /* no CRCs: what the disk gives is believed */
    bool quiet;            /* no warning of what the disk is: another store there gave it */
    bool buffered;         /* through the page cache, also where the disk could do without */
    const struct weft_disk_calls *calls; /* NULL: the system's; else it outlives the store */
};

/* Opens the file, empty. The errors of weft_disk_open. Warns through the log of a file system that
 * is on another machine, or where blocks go through the page cache, with the reason. */
WEFT_MUST_USE enum weft_status weft_store_open(const struct weft_store_options *options,
                                               struct weft_store **out, struct weft_error *err);

/* Drops what is queued, waits for what is under way, and removes the file. Of a store with a hung
 * request the threads are left behind (service.h). Accepts NULL. */
void weft_store_destroy(struct weft_store *store);

/* What lengths and addresses of spans must be multiples of. */
int64_t weft_store_alignment_bytes(const struct weft_store *store);
const struct weft_disk_facts *weft_store_facts(const struct weft_store *store);

/* Reserves the file for all blocks, once, and starts the threads. The errors of weft_disk_reserve;
 * WEFT_E_INTERNAL of a length that is not aligned, or a second time. */
WEFT_MUST_USE enum weft_status weft_store_reserve(struct weft_store *store,
                                                  const struct weft_store_block *blocks, int64_t n,
                                                  struct weft_error *err);

/* Queues a request for block `block`, whose bytes are those of the spans, which must stay as they
 * are until it has ended; writes its ticket, of its direction. `step` is the period that the bytes
 * are of. Waits while the block has a request that has not ended, or its direction's queue is full.
 * WEFT_E_INTERNAL of spans that are not the block's bytes or not aligned (the system would take
 * them, and go through the page cache), of a block that is read before it was written; the failure
 * of the store, see weft_store_wait. */
WEFT_MUST_USE enum weft_status weft_store_submit_read(struct weft_store *store, int64_t block,
                                                      const struct weft_memory_span *to, int32_t n,
                                                      int64_t *ticket, struct weft_error *err);
WEFT_MUST_USE enum weft_status weft_store_submit_write(struct weft_store *store, int64_t block,
                                                       int64_t step,
                                                       const struct weft_memory_span *from,
                                                       int32_t n, int64_t *ticket,
                                                       struct weft_error *err);

/* Waits until the request has ended. The first request that fails is the failure of the store,
 * which everybody is told from then on. WEFT_E_IO names the block and the directory, and says what
 * came back where it is not what was written; WEFT_E_HANG names the request. */
WEFT_MUST_USE enum weft_status weft_store_wait(struct weft_store *store,
                                               enum weft_store_direction direction, int64_t ticket,
                                               struct weft_error *err);
/* Whether the request has ended, and nothing has failed. */
bool weft_store_is_done(struct weft_store *store, enum weft_store_direction direction,
                        int64_t ticket);

/* Bytes that are reserved for the file. */
int64_t weft_store_bytes(const struct weft_store *store);

/* Bytes of the file that lie in the page cache, and all that it has. WEFT_E_IO where the system
 * does not say. */
WEFT_MUST_USE enum weft_status weft_store_resident(struct weft_store *store,
                                                   int64_t *resident_bytes, int64_t *all_bytes,
                                                   struct weft_error *err);

/* Warns through the log if more than 1 % of a file that should not lies in the page cache. */
void weft_store_warn(struct weft_store *store);

#endif
