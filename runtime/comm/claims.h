/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks claim memory and cores. A limit belongs to a machine, or to a cgroup of it, and binds the
 * ranks inside together: each host of a run has limits of its own, and so has each container of a
 * host. Every sum over ranks that a machine must meet is made here. */
#ifndef WEFT_RUNTIME_COMM_CLAIMS_H
#define WEFT_RUNTIME_COMM_CLAIMS_H

#include "base/hash.h"
#include "base/machine/memory.h"
#include "runtime/comm/comm.h"

enum { WEFT_CLAIM_LIMITS = 16 };

/* A rank's claim, and the limits that bind it. */
struct weft_claim {
    int64_t amount;
    int32_t n_limits;
    struct weft_claim_limit {
        struct weft_hash owner; /* ranks with equal owners share the limit */
        int64_t left;           /* as this rank sees it */
    } limits[WEFT_CLAIM_LIMITS];
};

/* A limit that the ranks inside exceed together. */
struct weft_excess {
    int32_t first_rank, ranks; /* ranks: number of ranks inside; 0: no limit is exceeded */
    int64_t amount, left;      /* amount: of all of them, at most INT64_MAX */
    struct weft_hash owner;
    /* By weft_comm_find_excess: the limit's, and that of the first rank's host ("": not known). */
    char name[WEFT_MEMORY_NAME_BYTES];
    const char *host;
};

/* This process's claim of memory. `machine` is weft_host_of_memory(). */
void weft_claim_memory(int64_t bytes, struct weft_hash machine, struct weft_claim *out);

/* This process's claim of one rank's cores: they are those of its affinity, and its quotas. */
void weft_claim_cores(struct weft_hash machine, struct weft_claim *out);

/* The least part of a limit that is the rank's, if the ranks inside have equal parts; at least 0.
 * INT64_MAX without limits. */
int64_t weft_claims_share(const struct weft_claim *all, int32_t n, int32_t rank);

/* The first limit, by rank, that the claims of the ranks inside exceed. If ranks see different
 * amounts left, the least counts. */
void weft_claims_find_excess(const struct weft_claim *all, int32_t n, struct weft_excess *out);

/* The same for claims that all ranks have exchanged, with its names. Collective if there is an
 * excess. Errors are those of weft_comm_exchange, and WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_comm_find_excess(struct weft_comm *comm,
                                                     const struct weft_claim *all,
                                                     struct weft_excess *out,
                                                     struct weft_error *err);

/* Collective, before any rank takes its memory. Ranks may claim different bytes. Errors are those
 * of weft_comm_exchange, and WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_comm_claim_memory(struct weft_comm *comm, int64_t bytes,
                                                      struct weft_excess *out,
                                                      struct weft_error *err);

/* Collective: the whole cores of this rank, if the ranks inside each limit have equal parts; at
 * least 0. Errors are those of weft_comm_exchange, and WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_comm_share_cores(struct weft_comm *comm, int64_t *cores,
                                                     struct weft_error *err);

#endif
