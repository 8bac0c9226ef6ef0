/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "runtime/comm/branch.h"
#include "runtime/comm/local.h"

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

static enum weft_status keep_reads(struct weft_local_comm *c, const struct weft_ranges *reads,
                                   struct weft_error *err)
{
    c->n_reads = reads->n;
    c->reads = calloc((size_t)reads->n + 1, sizeof *c->reads);
    if (c->reads == NULL) return weft_fail_memory(err, "what peers read");
    if (reads->n > 0) memcpy(c->reads, reads->ranges, (size_t)reads->n * sizeof *c->reads);
    return WEFT_OK;
}

/* A branch uses its trunk's mapping. */
static void attach_branch(struct weft_local_comm *c)
{
    const struct weft_local_comm *trunk = weft_local_comm_of(c->comm.trunk);
    for (int32_t i = 0; i < c->comm.ranks; i++)
        c->arenas[i] = trunk->arenas[weft_comm_rank_of_all(&c->comm, i)];
    c->reads = trunk->reads;
    c->n_reads = trunk->n_reads;
    c->comm.span_bytes = trunk->comm.span_bytes;
}

enum weft_status weft_local_attach(struct weft_comm *comm, const struct weft_arena_shape *shape,
                                   const struct weft_ranges *reads, struct weft_error *err)
{
    struct weft_local_comm *c = weft_local_comm_of(comm);
    if (comm->trunk != NULL) {
        attach_branch(c);
        return WEFT_OK;
    }
    if (reads != NULL) WEFT_TRY(keep_reads(c, reads, err));
    WEFT_TRY(map_peers(c, shape, reads, err));
    c->arenas[comm->rank] = weft_arena_memory(comm->arena);
    c->comm.span_bytes = shape->span_bytes;
    return WEFT_OK;
}

/* After a failure a peer may still read the pages. Freeing them would kill it with a signal, and it
 * would look like the cause. */
bool weft_local_detach(struct weft_comm *comm)
{
    struct weft_local_comm *c = weft_local_comm_of(comm);
    for (int32_t i = 0; i < comm->ranks; i++) {
        if (c->peers != NULL) weft_arena_view_unmap(&c->peers[i]);
        c->arenas[i] = NULL;
    }
    if (comm->trunk == NULL) free(c->reads);
    c->reads = NULL;
    c->n_reads = 0;
    c->comm.span_bytes = 0;
    c->flag_offset = -1;
    return c->broken.status == WEFT_OK;
}
