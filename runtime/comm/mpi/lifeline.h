/* SPDX-License-Identifier: Apache-2.0 */
/* Lifelines tell at once that a rank's process has ended. Rank 0 listens on TCP, and every other
 * rank keeps one connection to it. The system closes a process's connections when it ends. A rank
 * that ends in order says so first. A host that vanishes closes nothing: only timeouts find it. */
#ifndef WEFT_RUNTIME_COMM_MPI_LIFELINE_H
#define WEFT_RUNTIME_COMM_MPI_LIFELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

enum { WEFT_LIFELINE_TOKEN_BYTES = 16, WEFT_LIFELINE_ADDRESSES = 8 };

/* One rank's end of the lifelines. A thread of its own watches them. */
struct weft_lifeline;

/* The invitation of rank 0. It reaches the other ranks by a way that strangers cannot read. */
struct weft_lifeline_invitation {
    unsigned char token[WEFT_LIFELINE_TOKEN_BYTES];  /* a rank proves itself to rank 0 with it */
    unsigned char answer[WEFT_LIFELINE_TOKEN_BYTES]; /* and rank 0 to the rank */
    int32_t port;                                    /* 0: rank 0 does not listen */
    int32_t n_addresses;
    struct {
        int32_t family; /* AF_INET, AF_INET6 */
        unsigned char bytes[16];
    } addresses[WEFT_LIFELINE_ADDRESSES]; /* of rank 0's host; the loopback address is the first */
};

/* Rank 0: listens until all ranks have joined. Connections without the token have no effect.
 * WEFT_E_SYSTEM if the system refuses. End it with weft_lifeline_leave. */
WEFT_MUST_USE enum weft_status weft_lifeline_open(int32_t ranks, struct weft_lifeline **out,
                                                  struct weft_lifeline_invitation *invitation,
                                                  struct weft_error *err);

/* Another rank: connects, within `deadline_ns`. `same_host`: rank 0 is on this host, and only its
 * loopback address is tried. WEFT_E_LOST if no address answers; the text names them. */
WEFT_MUST_USE enum weft_status weft_lifeline_join(const struct weft_lifeline_invitation *invitation,
                                                  int32_t rank, bool same_host, int64_t deadline_ns,
                                                  struct weft_lifeline **out,
                                                  struct weft_error *err);

/* The first rank that ended without a word, or -1. All ranks learn the same rank, unless rank 0
 * itself is lost. Any thread may ask. NULL: -1. */
int32_t weft_lifeline_lost(const struct weft_lifeline *line);

/* After a rank is lost, the lifeline's thread calls `look` every 250 ms until this rank leaves. Set
 * it once, before a loss matters. Accepts a line that is NULL. */
void weft_lifeline_look(struct weft_lifeline *line, void (*look)(void *context), void *context);

/* Rank 0: ranks that have joined, itself too. */
int32_t weft_lifeline_joined(const struct weft_lifeline *line);

/* Ends this rank's part in order. Accepts NULL. */
void weft_lifeline_leave(struct weft_lifeline *line);

#endif
