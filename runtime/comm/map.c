/* SPDX-License-Identifier: Apache-2.0 */
/* Mapping of the ranks' arenas: all succeed or none. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/units.h"
#include "runtime/comm/backend.h"
#include "runtime/comm/branch.h"
#include "runtime/comm/claims.h"
#include "runtime/comm/comm.h"
#include "runtime/comm/host.h"
#include "runtime/comm/outcome.h"

/* The message of each rank before any rank allocates memory. */
struct offer {
    struct weft_hash shape;
    struct weft_claim memory;
};

_Static_assert(sizeof(struct offer) <= WEFT_COMM_EXCHANGE_BYTES, "an offer is one exchange");

static enum weft_status compare_offers(const struct weft_comm *comm, const struct offer *all,
                                       struct weft_error *err)
{
    const struct offer *own = &all[comm->rank];
    for (int32_t i = 0; i < comm->ranks; i++) {
        if (all[i].memory.amount != own->memory.amount) {
            return weft_fail(err, WEFT_E_DISAGREE,
                             "rank %d asks for an arena of %lld bytes and rank %d for %lld: all "
                             "ranks must run the same plan",
                             comm->rank, (long long)own->memory.amount, i,
                             (long long)all[i].memory.amount);
        }
        if (!weft_hash_equal(all[i].shape, own->shape)) {
            return weft_fail(err, WEFT_E_DISAGREE,
                             "rank %d maps its arena otherwise than rank %d: all ranks must run "
                             "the same plan",
                             comm->rank, i);
        }
    }
    return WEFT_OK;
}

static enum weft_status refuse_arenas(int64_t bytes, const struct weft_excess *excess,
                                      struct weft_error *err)
{
    const bool many = excess->ranks > 1, named = excess->host[0] != '\0';
    char each[WEFT_UNITS_TEXT_BYTES], sum[WEFT_UNITS_TEXT_BYTES], most[WEFT_UNITS_TEXT_BYTES];
    return weft_fail(err, WEFT_E_SYSTEM,
                     "%d %srank%s%s%s need%s an arena of %s each, %s in all, and there is only %s "
                     "(%s): lower the memory limit, start fewer ranks or free some memory",
                     excess->ranks, named ? "" : "local ", many ? "s" : "",
                     named ? " of host " : "", excess->host, many ? "" : "s",
                     weft_units_show_bytes(bytes, each), weft_units_show_bytes(excess->amount, sum),
                     weft_units_show_bytes(excess->left, most), excess->name);
}

/* Checks before any rank allocates. Otherwise the system would later kill some process. */
static enum weft_status check_memory(struct weft_comm *comm, const struct offer *all,
                                     struct weft_error *err)
{
    struct weft_excess excess;
    if (!comm->ops->takes_host_memory) return WEFT_OK;
    struct weft_claim *claims = calloc((size_t)comm->ranks, sizeof *claims);
    if (claims == NULL) return weft_fail_memory(err, "the ranks' claims of memory");
    for (int32_t r = 0; r < comm->ranks; r++)
        claims[r] = all[r].memory;
    const enum weft_status status = weft_comm_find_excess(comm, claims, &excess, err);
    free(claims);
    if (status != WEFT_OK || excess.ranks == 0) return status;
    return refuse_arenas(all[comm->rank].memory.amount, &excess, err);
}

static enum weft_status agree_on_arena(struct weft_comm *comm, const struct weft_arena_shape *shape,
                                       struct weft_error *err)
{
    struct offer own = {.shape = weft_comm_hash_shape(shape)};
    int64_t bytes;
    if (!weft_checked_mul(shape->n_pages, shape->page_bytes, &bytes) || bytes == 0)
        return weft_fail(err, WEFT_E_INTERNAL, "an arena of so many bytes cannot be mapped");
    weft_claim_memory(bytes, weft_host_of_memory(), &own.memory);
    struct offer *all = calloc((size_t)comm->ranks, sizeof *all);
    if (all == NULL) return weft_fail_memory(err, "the offers of the ranks");
    enum weft_status status = weft_comm_exchange(comm, &own, sizeof own, all, err);
    if (status == WEFT_OK) status = compare_offers(comm, all, err);
    if (status == WEFT_OK) status = check_memory(comm, all, err);
    free(all);
    return status;
}

enum weft_status weft_comm_map_arena(struct weft_comm *comm, const struct weft_arena_shape *shape,
                                     const struct weft_ranges *reads, struct weft_arena **out,
                                     struct weft_error *err)
{
    if (comm->is_mapped)
        return weft_fail(err, WEFT_E_INTERNAL, "an arena is mapped already: unmap it first");
    WEFT_TRY(agree_on_arena(comm, shape, err));
    struct weft_error own = {.status = WEFT_OK};
    enum weft_status taken = weft_arena_map(comm->arena, shape, &own);
    if (taken == WEFT_OK) {
        comm->is_mapped = true;
        taken = comm->ops->attach(comm, shape, reads, &own);
    }
    const enum weft_status status = weft_comm_share_outcome(comm, taken, &own, err);
    if (status == WEFT_OK)
        *out = comm->arena;
    else
        weft_comm_unmap_arena(comm);
    return status;
}

void weft_comm_unmap_arena(struct weft_comm *comm)
{
    if (!comm->is_mapped) return;
    const bool branches_do = weft_comm_detach_branches(comm);
    const bool gives_back = comm->ops->detach(comm) && branches_do;
    if (comm->arena != NULL) weft_arena_unmap(comm->arena, gives_back);
    comm->is_mapped = false;
}
