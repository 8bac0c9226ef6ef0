/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* sched_getaffinity */
#include "runtime/comm/claims.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/machine/cores.h"
#include "runtime/comm/host.h"

_Static_assert((int)WEFT_CLAIM_LIMITS == (int)WEFT_MEMORY_LIMITS, "all limits of memory");
_Static_assert((int)WEFT_CLAIM_LIMITS == 1 + (int)WEFT_CORE_QUOTAS, "the affinity and all quotas");

static struct weft_claim_limit limit_of(struct weft_hash machine, uint64_t device, uint64_t inode,
                                        int64_t left)
{
    const uint64_t owner[] = {machine.high, machine.low, device, inode};
    return (struct weft_claim_limit){weft_hash_bytes(owner, sizeof owner), left};
}

void weft_claim_memory(int64_t bytes, struct weft_hash machine, struct weft_claim *out)
{
    struct weft_memory_limit limits[WEFT_MEMORY_LIMITS];
    *out = (struct weft_claim){.amount = bytes, .n_limits = weft_memory_limits(limits)};
    for (int32_t i = 0; i < out->n_limits; i++)
        out->limits[i] = limit_of(machine, limits[i].device, limits[i].inode, limits[i].left_bytes);
}

/* The name of this process's limit of memory with that owner; "": none. */
static void name_limit(struct weft_hash owner, char out[WEFT_MEMORY_NAME_BYTES])
{
    struct weft_memory_limit limits[WEFT_MEMORY_LIMITS];
    const struct weft_hash machine = weft_host_of_memory();
    const int32_t n = weft_memory_limits(limits);
    memset(out, 0, WEFT_MEMORY_NAME_BYTES);
    for (int32_t i = 0; i < n; i++)
        if (weft_hash_equal(limit_of(machine, limits[i].device, limits[i].inode, 0).owner, owner))
            memcpy(out, limits[i].name, WEFT_MEMORY_NAME_BYTES);
}

void weft_claim_cores(struct weft_hash machine, struct weft_claim *out)
{
    struct weft_core_quota quotas[WEFT_CORE_QUOTAS];
    struct weft_core_limits limits;
    cpu_set_t cores;
    CPU_ZERO(&cores);
    if (sched_getaffinity(0, sizeof cores, &cores) != 0) CPU_ZERO(&cores);
    const struct weft_hash set = weft_hash_bytes(&cores, sizeof cores);
    weft_core_limits_read(&weft_cgroup_files, &limits);
    const int32_t n = weft_core_quotas_read(&weft_cgroup_files, quotas);
    *out = (struct weft_claim){.amount = 1, .n_limits = 1 + n};
    out->limits[0] = limit_of(machine, set.high, set.low, limits.allowed);
    for (int32_t i = 0; i < n; i++)
        out->limits[1 + i] =
            limit_of(machine, quotas[i].device, quotas[i].inode, (int64_t)quotas[i].cores);
}

static const struct weft_claim_limit *find_limit(const struct weft_claim *claim,
                                                 struct weft_hash owner)
{
    for (int32_t i = 0; i < claim->n_limits; i++)
        if (weft_hash_equal(claim->limits[i].owner, owner)) return &claim->limits[i];
    return NULL;
}

/* Adds up the claims of the ranks inside a limit. */
static void sum_claims(const struct weft_claim *all, int32_t n, struct weft_hash owner,
                       struct weft_excess *out)
{
    *out = (struct weft_excess){.left = INT64_MAX, .owner = owner};
    for (int32_t r = 0; r < n; r++) {
        const struct weft_claim_limit *limit = find_limit(&all[r], owner);
        if (limit == NULL) continue;
        if (out->ranks++ == 0) out->first_rank = r;
        if (!weft_checked_add(out->amount, all[r].amount, &out->amount)) out->amount = INT64_MAX;
        if (limit->left < out->left) out->left = limit->left;
    }
}

int64_t weft_claims_share(const struct weft_claim *all, int32_t n, int32_t rank)
{
    struct weft_excess sum;
    int64_t share = INT64_MAX;
    for (int32_t i = 0; i < all[rank].n_limits; i++) {
        sum_claims(all, n, all[rank].limits[i].owner, &sum);
        if (sum.left / sum.ranks < share) share = sum.left / sum.ranks;
    }
    return share;
}

void weft_claims_find_excess(const struct weft_claim *all, int32_t n, struct weft_excess *out)
{
    for (int32_t r = 0; r < n; r++)
        for (int32_t i = 0; i < all[r].n_limits; i++) {
            sum_claims(all, n, all[r].limits[i].owner, out);
            if (out->amount > out->left) return;
        }
    *out = (struct weft_excess){.ranks = 0};
}

/* All ranks have found the same excess. Its first rank names it. */
static enum weft_status name_excess(struct weft_comm *comm, struct weft_excess *excess,
                                    struct weft_error *err)
{
    char own[WEFT_MEMORY_NAME_BYTES];
    char(*all)[WEFT_MEMORY_NAME_BYTES] = calloc((size_t)weft_comm_ranks(comm), sizeof *all);
    if (all == NULL) return weft_fail_memory(err, "the names of limits");
    name_limit(excess->owner, own);
    const enum weft_status status = weft_comm_exchange(comm, own, sizeof own, all, err);
    if (status == WEFT_OK) {
        memcpy(excess->name, all[excess->first_rank], sizeof excess->name);
        excess->host = weft_comm_host(comm, excess->first_rank);
    }
    free(all);
    return status;
}

enum weft_status weft_comm_find_excess(struct weft_comm *comm, const struct weft_claim *all,
                                       struct weft_excess *out, struct weft_error *err)
{
    weft_claims_find_excess(all, weft_comm_ranks(comm), out);
    return out->ranks == 0 ? WEFT_OK : name_excess(comm, out, err);
}

enum weft_status weft_comm_claim_memory(struct weft_comm *comm, int64_t bytes,
                                        struct weft_excess *out, struct weft_error *err)
{
    struct weft_claim own;
    const int32_t ranks = weft_comm_ranks(comm);
    struct weft_claim *all = calloc((size_t)ranks, sizeof *all);
    if (all == NULL) return weft_fail_memory(err, "the ranks' claims of memory");
    weft_claim_memory(bytes, weft_host_of_memory(), &own);
    enum weft_status status = weft_comm_exchange(comm, &own, sizeof own, all, err);
    if (status == WEFT_OK) status = weft_comm_find_excess(comm, all, out, err);
    free(all);
    return status;
}

enum weft_status weft_comm_share_cores(struct weft_comm *comm, int64_t *cores,
                                       struct weft_error *err)
{
    struct weft_claim own;
    const int32_t ranks = weft_comm_ranks(comm);
    struct weft_claim *all = calloc((size_t)ranks, sizeof *all);
    if (all == NULL) return weft_fail_memory(err, "the ranks' claims of cores");
    weft_claim_cores(weft_host_of_memory(), &own);
    const enum weft_status status = weft_comm_exchange(comm, &own, sizeof own, all, err);
    if (status == WEFT_OK) *cores = weft_claims_share(all, ranks, weft_comm_rank(comm));
    free(all);
    return status;
}
