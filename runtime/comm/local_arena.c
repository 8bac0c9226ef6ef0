#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/machine/memory.h"
#include "base/units.h"
#include "runtime/comm/local.h"
#include "runtime/comm/outcome.h"

enum { LIMIT_BYTES = 512 };

/* The message of each rank before any rank allocates memory. */
struct offer {
    int64_t available_bytes;
    int64_t bytes; /* of memory */
    struct weft_hash shape;
    char limit[LIMIT_BYTES];
};

_Static_assert(sizeof(struct offer) <= WEFT_LOCAL_POST_BYTES, "an offer is one exchange");

static void unmap_all(struct weft_local_comm *c)
{
    for (int32_t i = 0; i < c->comm.ranks; i++) {
        weft_arena_view_unmap(&c->peers[i]);
        c->arenas[i] = NULL;
    }
    /* After a failure a peer may still read the pages. Freeing them would kill it with a signal,
     * and it would look like the cause. */
    weft_arena_unmap(c->arena, c->broken.status == WEFT_OK);
    free(c->reads);
    c->reads = NULL;
    c->n_reads = 0;
    c->span_bytes = 0;
    c->flag_offset = -1;
}

/* Maps peers' arenas read-only, so no rank can damage another's memory. */
static enum weft_status map_peers(struct weft_local_comm *c, const struct weft_arena_shape *shape,
                                  const struct weft_ranges *reads, struct weft_error *err)
{
    struct weft_arena_view_options options = {.shape = shape, .reads = reads};
    for (int32_t i = 0; i < c->comm.ranks; i++) {
        if (i == c->comm.rank) continue;
        options.fd = c->arena_fds[i];
        WEFT_TRY(weft_arena_view_map(&c->peers[i], &options, err));
        c->arenas[i] = c->peers[i].at;
    }
    return WEFT_OK;
}

/* Checks that all arenas together fit the least memory that any rank found available before
 * allocating. Otherwise the system would later kill some process. */
static enum weft_status check_offers(struct weft_local_comm *c, const struct offer *mine,
                                     struct weft_error *err)
{
    const int64_t bytes = mine->bytes;
    int64_t all_bytes;
    struct offer least = {.available_bytes = INT64_MAX};
    for (int32_t i = 0; i < c->comm.ranks; i++) {
        struct offer offer;
        memcpy(&offer, weft_local_posted(c, i)->bytes, sizeof offer);
        if (offer.bytes != bytes) {
            return weft_fail(err, WEFT_E_DISAGREE,
                             "rank %d asks for an arena of %lld bytes and rank %d for %lld: all "
                             "ranks must run the same plan",
                             c->comm.rank, (long long)bytes, i, (long long)offer.bytes);
        }
        if (!weft_hash_equal(offer.shape, mine->shape)) {
            return weft_fail(err, WEFT_E_DISAGREE,
                             "rank %d maps its arena otherwise than rank %d: all ranks must run "
                             "the same plan",
                             c->comm.rank, i);
        }
        if (offer.available_bytes < least.available_bytes) least = offer;
    }
    if (!weft_checked_mul(bytes, c->comm.ranks, &all_bytes)) all_bytes = INT64_MAX;
    if (all_bytes <= least.available_bytes) return WEFT_OK;
    char each[WEFT_UNITS_TEXT_BYTES], all[WEFT_UNITS_TEXT_BYTES], most[WEFT_UNITS_TEXT_BYTES];
    return weft_fail(err, WEFT_E_SYSTEM,
                     "%d local rank%s need%s an arena of %s each, %s in all, and there is only %s "
                     "(%s): lower the memory limit, start fewer ranks or free some memory",
                     c->comm.ranks, c->comm.ranks > 1 ? "s" : "", c->comm.ranks > 1 ? "" : "s",
                     weft_units_show_bytes(bytes, each), weft_units_show_bytes(all_bytes, all),
                     weft_units_show_bytes(least.available_bytes, most), least.limit);
}

static enum weft_status keep_reads(struct weft_local_comm *c, const struct weft_ranges *reads,
                                   struct weft_error *err)
{
    c->n_reads = reads->n;
    c->reads = calloc((size_t)reads->n + 1, sizeof *c->reads);
    if (c->reads == NULL) return weft_fail_memory(err, "what peers read");
    if (reads->n > 0) memcpy(c->reads, reads->ranges, (size_t)reads->n * sizeof *c->reads);
    return WEFT_OK;
}

static enum weft_status map_arenas(struct weft_local_comm *c, const struct weft_arena_shape *shape,
                                   const struct weft_ranges *reads, struct weft_error *err)
{
    if (reads != NULL) WEFT_TRY(keep_reads(c, reads, err));
    WEFT_TRY(weft_arena_map(c->arena, shape, err));
    WEFT_TRY(map_peers(c, shape, reads, err));
    c->arenas[c->comm.rank] = weft_arena_memory(c->arena);
    return WEFT_OK;
}

enum weft_status weft_local_map_arena(struct weft_comm *comm, const struct weft_arena_shape *shape,
                                      const struct weft_ranges *reads, struct weft_arena **out,
                                      struct weft_error *err)
{
    struct weft_local_comm *c = weft_local_comm_of(comm);
    if (c->span_bytes > 0)
        return weft_fail(err, WEFT_E_INTERNAL, "an arena is mapped already: unmap it first");
    struct offer offer = {.shape = weft_comm_hash_shape(shape)};
    if (!weft_checked_mul(shape->n_pages, shape->page_bytes, &offer.bytes) || offer.bytes == 0)
        return weft_fail(err, WEFT_E_INTERNAL, "an arena of so many bytes cannot be mapped");
    offer.available_bytes = weft_memory_available(offer.limit, sizeof offer.limit);
    const struct weft_local_call call = {.kind = WEFT_LOCAL_CALL_EXCHANGE, .count = sizeof offer};
    int64_t latest_ns;
    WEFT_TRY(weft_local_enter(c, &call, 0, &offer, sizeof offer, &latest_ns, err));
    WEFT_TRY(check_offers(c, &offer, err));

    struct weft_error own = {.status = WEFT_OK};
    const enum weft_status taken = map_arenas(c, shape, reads, &own);
    const enum weft_status status = weft_comm_share_outcome(comm, taken, &own, err);
    if (status != WEFT_OK) {
        unmap_all(c);
        return status;
    }
    c->span_bytes = shape->span_bytes;
    *out = c->arena;
    return WEFT_OK;
}

void weft_local_unmap_arena(struct weft_comm *comm)
{
    unmap_all(weft_local_comm_of(comm));
}
