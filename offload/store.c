/* SPDX-License-Identifier: Apache-2.0 */
#include "offload/store.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/log.h"
#include "base/units.h"
#include "offload/service.h"

struct weft_store {
    struct weft_store_file file; /* first: the context of the service */
    struct weft_store_options options;
    char *directory;
    struct weft_service *service; /* NULL: not reserved */
};

static enum weft_status check_options(const struct weft_store_options *o, struct weft_error *err)
{
    if (o->threads >= 1 && o->threads <= WEFT_SERVICE_THREADS && o->requests >= 1 &&
        o->spans >= 1 && o->spans <= WEFT_STORE_SPANS)
        return WEFT_OK;
    return weft_fail(err, WEFT_E_INTERNAL,
                     "a store of %d threads, %d requests and %d spans: 1 to %d, 1 or more, 1 to %d",
                     (int)o->threads, (int)o->requests, (int)o->spans, WEFT_SERVICE_THREADS,
                     WEFT_STORE_SPANS);
}

static void warn_of_disk(const struct weft_store *store)
{
    const struct weft_disk_facts *facts = &store->file.disk.facts;
    if (facts->network)
        weft_log(WEFT_LOG_WARNING, "%s is on %s, a network file system: a local disk is faster",
                 store->directory, facts->file_system);
    if (facts->copies)
        weft_log(WEFT_LOG_WARNING,
                 "%s is on %s, which copies blocks when they are written: space may run out later, "
                 "and blocks scatter",
                 store->directory, facts->file_system);
    if (!facts->direct && !store->options.buffered)
        weft_log(WEFT_LOG_WARNING,
                 "%s: blocks go through the page cache, which takes memory and time: %s",
                 store->directory, facts->reason);
}

/* Released by the service, or directly if the store never had one. */
static void free_store(void *context)
{
    struct weft_store *store = context;
    weft_disk_close(&store->file.disk);
    pthread_mutex_destroy(&store->file.mutex);
    pthread_cond_destroy(&store->file.freed);
    free(store->file.places);
    free(store->directory);
    free(store);
}

enum weft_status weft_store_open(const struct weft_store_options *options, struct weft_store **out,
                                 struct weft_error *err)
{
    WEFT_TRY(check_options(options, err));
    struct weft_store *store = calloc(1, sizeof *store);
    if (store == NULL) return weft_fail_memory(err, "a store");
    store->options = *options;
    store->file = (struct weft_store_file){.verified = !options->unverified,
                                           .spans = options->spans,
                                           .timeout_ns = options->timeout_ns,
                                           .disk.fd = -1};
    if (options->calls == NULL) store->options.calls = &weft_disk_calls;
    pthread_mutex_init(&store->file.mutex, NULL);
    pthread_cond_init(&store->file.freed, NULL);
    store->directory = strdup(options->directory);
    store->options.directory = store->file.directory = store->directory;
    enum weft_status status = store->directory == NULL
                                  ? weft_fail_memory(err, "a store")
                                  : weft_disk_open(store->options.calls, store->directory,
                                                   !options->buffered, &store->file.disk, err);
    if (status != WEFT_OK) {
        free_store(store);
        return status;
    }
    if (!options->quiet) warn_of_disk(store);
    *out = store;
    return WEFT_OK;
}

void weft_store_destroy(struct weft_store *store)
{
    if (store == NULL) return;
    if (store->service != NULL)
        weft_service_destroy(store->service);
    else
        free_store(store);
}

int64_t weft_store_alignment_bytes(const struct weft_store *store)
{
    return store->file.disk.facts.alignment_bytes;
}

const struct weft_disk_facts *weft_store_facts(const struct weft_store *store)
{
    return &store->file.disk.facts;
}

/* Lays out the blocks in order. */
static enum weft_status lay_out(struct weft_store *store, const struct weft_store_block *blocks,
                                int64_t n, struct weft_error *err)
{
    const int64_t alignment = weft_store_alignment_bytes(store);
    int64_t end = 0, size;
    if (store->file.places != NULL)
        return weft_fail(err, WEFT_E_INTERNAL, "a store is reserved already");
    if (n < 1 || !weft_checked_mul(n, (int64_t)sizeof *store->file.places, &size))
        return weft_fail(err, WEFT_E_INTERNAL, "a store of %lld blocks", (long long)n);
    store->file.places = calloc((size_t)n, sizeof *store->file.places);
    if (store->file.places == NULL) return weft_fail_memory(err, "the blocks of a store");
    for (int64_t i = 0; i < n; i++) {
        store->file.places[i] =
            (struct weft_store_place){.block = blocks[i], .at = end, .step = -1};
        if (blocks[i].bytes <= 0 || blocks[i].bytes % alignment != 0 ||
            !weft_checked_add(end, blocks[i].bytes, &end))
            return weft_fail(err, WEFT_E_INTERNAL,
                             "block %lld of a store has %lld bytes: a multiple of %lld is needed",
                             (long long)i, (long long)blocks[i].bytes, (long long)alignment);
    }
    store->file.n_blocks = n;
    store->file.bytes = end;
    return WEFT_OK;
}

static enum weft_status start_service(struct weft_store *store, struct weft_error *err)
{
    const struct weft_service_options options = {
        .name = "weft-store",
        .lanes = WEFT_STORE_DIRECTIONS,
        .threads = store->options.threads,
        .requests = store->options.requests,
        .request_bytes = sizeof(struct weft_store_request) +
                         2 * (size_t)store->options.spans * sizeof(struct iovec),
        .timeout_ns = store->options.timeout_ns,
        .context = &store->file,
        .serve = weft_store_file_serve,
        .hang = weft_store_file_hang,
        .release = free_store,
    };
    return weft_service_create(&options, &store->service, err);
}

enum weft_status weft_store_reserve(struct weft_store *store, const struct weft_store_block *blocks,
                                    int64_t n, struct weft_error *err)
{
    WEFT_TRY(lay_out(store, blocks, n, err));
    WEFT_TRY(weft_disk_reserve(&store->file.disk, store->file.bytes, err));
    return start_service(store, err);
}

static enum weft_status check_spans(const struct weft_store *store, int64_t block,
                                    const struct weft_memory_span *spans, int32_t n,
                                    struct weft_error *err)
{
    const int64_t alignment = weft_store_alignment_bytes(store);
    if (store->service == NULL || block < 0 || block >= store->file.n_blocks)
        return weft_fail(err, WEFT_E_INTERNAL, "a store of %lld blocks has no block %lld",
                         (long long)store->file.n_blocks, (long long)block);
    const int64_t bytes = store->file.places[block].block.bytes;
    if (n < 1 || n > store->options.spans || weft_span_bytes(spans, n) != bytes)
        return weft_fail(err, WEFT_E_INTERNAL,
                         "block %lld has %lld bytes, in at most %d spans: not %lld in %d",
                         (long long)block, (long long)bytes, (int)store->options.spans,
                         (long long)weft_span_bytes(spans, n), (int)n);
    for (int32_t i = 0; i < n; i++) {
        if (spans[i].bytes > 0 && spans[i].bytes % alignment == 0 &&
            (uintptr_t)spans[i].at % (uintptr_t)alignment == 0)
            continue;
        return weft_fail(err, WEFT_E_INTERNAL,
                         "span %d of block %lld, %lld bytes at %p, is not aligned to %lld", (int)i,
                         (long long)block, (long long)spans[i].bytes, (void *)spans[i].at,
                         (long long)alignment);
    }
    return WEFT_OK;
}

/* Waits until the block has no request, and takes it. Requests of one block are served in turn. */
static enum weft_status take_block(struct weft_store *store, int64_t block, bool reads,
                                   int64_t *turn, struct weft_error *err)
{
    struct weft_store_place *b = &store->file.places[block];
    enum weft_status status = WEFT_OK;
    pthread_mutex_lock(&store->file.mutex);
    while (b->busy && status == WEFT_OK) {
        const enum weft_store_direction direction = b->direction;
        const int64_t ticket = b->ticket;
        if (ticket < 0) { /* its submitter is about to set it */
            pthread_cond_wait(&store->file.freed, &store->file.mutex);
            continue;
        }
        pthread_mutex_unlock(&store->file.mutex);
        status = weft_service_wait(store->service, direction, ticket, err);
        pthread_mutex_lock(&store->file.mutex);
    }
    if (status == WEFT_OK && reads && b->step < 0)
        status = weft_fail(err, WEFT_E_INTERNAL,
                           "block %d of unit %d of the store in %s is read, and was never written",
                           (int)b->block.index, (int)b->block.unit, store->directory);
    if (status == WEFT_OK) {
        b->busy = true;
        b->ticket = -1;
        *turn = ++b->turn;
    }
    pthread_mutex_unlock(&store->file.mutex);
    return status;
}

/* Stores the request that has the block, unless it has ended already. Ticket -1 frees the block,
 * since submission failed. */
static void settle_block(struct weft_store *store, int64_t block, int64_t turn,
                         enum weft_store_direction direction, int64_t ticket)
{
    pthread_mutex_lock(&store->file.mutex);
    struct weft_store_place *b = &store->file.places[block];
    if (b->busy && b->turn == turn) {
        b->direction = direction;
        b->ticket = ticket;
        b->busy = ticket >= 0;
    }
    pthread_cond_broadcast(&store->file.freed);
    pthread_mutex_unlock(&store->file.mutex);
}

static enum weft_status submit_request(struct weft_store *store,
                                       enum weft_store_direction direction, int64_t block,
                                       int64_t step, const struct weft_memory_span *spans,
                                       int32_t n, int64_t *ticket, struct weft_error *err)
{
    WEFT_TRY(check_spans(store, block, spans, n, err));
    int64_t turn;
    WEFT_TRY(take_block(store, block, direction == WEFT_STORE_READ, &turn, err));
    struct iovec pieces[WEFT_STORE_SPANS];
    for (int32_t i = 0; i < n; i++)
        pieces[i] = (struct iovec){.iov_base = spans[i].at, .iov_len = (size_t)spans[i].bytes};
    const struct weft_store_request request = {.block = block, .step = step, .n = n};
    const struct weft_service_part parts[] = {
        {&request, sizeof request},
        {pieces, (size_t)n * sizeof *pieces},
    };
    int64_t given = -1;
    enum weft_status status = weft_service_submit(store->service, direction, parts, 2, &given, err);
    settle_block(store, block, turn, direction, given);
    if (status == WEFT_OK) *ticket = given;
    return status;
}

enum weft_status weft_store_submit_read(struct weft_store *store, int64_t block,
                                        const struct weft_memory_span *to, int32_t n,
                                        int64_t *ticket, struct weft_error *err)
{
    return submit_request(store, WEFT_STORE_READ, block, -1, to, n, ticket, err);
}

enum weft_status weft_store_submit_write(struct weft_store *store, int64_t block, int64_t step,
                                         const struct weft_memory_span *from, int32_t n,
                                         int64_t *ticket, struct weft_error *err)
{
    return submit_request(store, WEFT_STORE_WRITE, block, step, from, n, ticket, err);
}

enum weft_status weft_store_wait(struct weft_store *store, enum weft_store_direction direction,
                                 int64_t ticket, struct weft_error *err)
{
    return weft_service_wait(store->service, (int32_t)direction, ticket, err);
}

bool weft_store_is_done(struct weft_store *store, enum weft_store_direction direction,
                        int64_t ticket)
{
    return weft_service_is_done(store->service, (int32_t)direction, ticket);
}

int64_t weft_store_bytes(const struct weft_store *store)
{
    return store->file.bytes;
}

enum weft_status weft_store_resident(struct weft_store *store, int64_t *resident_bytes,
                                     int64_t *all_bytes, struct weft_error *err)
{
    const struct weft_disk *disk = &store->file.disk;
    int64_t resident;
    if (disk->calls->resident(disk->calls->context, disk->fd, store->file.bytes, &resident) != 0)
        return weft_fail(err, WEFT_E_IO,
                         "%s: cannot ask what of the store lies in the page cache: %s",
                         store->directory, strerror(errno));
    *resident_bytes = resident;
    *all_bytes = store->file.bytes;
    return WEFT_OK;
}

void weft_store_warn(struct weft_store *store)
{
    enum { MOST_PERCENT = 1 };
    char cached[WEFT_UNITS_TEXT_BYTES], all[WEFT_UNITS_TEXT_BYTES];
    struct weft_error unsaid = {0};
    int64_t resident_bytes = 0, bytes = 0;
    if (!store->file.disk.facts.direct) return; /* the warning was given at opening */
    if (weft_store_resident(store, &resident_bytes, &bytes, &unsaid) != WEFT_OK) return;
    if (resident_bytes <= bytes / 100 * MOST_PERCENT) return;
    weft_log(
        WEFT_LOG_WARNING,
        "%s: %s of a file of %s lie in the page cache, though it was opened past it: %s takes "
        "O_DIRECT and does not keep it, so the machine's memory is used in addition to the limits",
        store->directory, weft_units_show_bytes(resident_bytes, cached),
        weft_units_show_bytes(bytes, all), store->file.disk.facts.file_system);
}
