/* SPDX-License-Identifier: Apache-2.0 */
/* Permutation rounds: in step k rank r sends to rank r + k and receives from rank r - k, so every
 * port has one sender at a time. A few steps are under way at once. Large parts are cut into chunks
 * of bounded size, and all peers get a chunk before the next one begins. */
#ifndef WEFT_RUNTIME_COMM_MPI_ROUNDS_H
#define WEFT_RUNTIME_COMM_MPI_ROUNDS_H

#include <stdint.h>

#include "base/status.h"
#include "runtime/comm/meter.h"
#include "runtime/comm/mpi/mpi.h"

/* Ranks that exchange: rank r of the group is rank first + r * (1 + gap) of all. */
struct weft_mpi_group {
    int32_t rank, ranks, first, gap;
};

/* Pairs of ranks that a flow is between: all, or the owner and each other rank. */
enum weft_mpi_way { WEFT_MPI_ALL_PAIRS, WEFT_MPI_TO_OWNER, WEFT_MPI_FROM_OWNER };

/* Bytes that every rank of a group sends to every other one, or to or from their owner. */
struct weft_mpi_flow {
    enum weft_mpi_way way;
    int32_t owner; /* rank in the group */
    enum weft_mpi_tag tag;
    const struct weft_mpi_group *group; /* NULL: that of the rounds */
    int64_t bytes;                      /* to each peer, and from each */
    /* The part for rank p begins at send + p * send_stride. This rank's own part is its operand. */
    const unsigned char *send;
    int64_t send_stride;
    /* The part of rank p goes to receive + p * receive_stride. NULL: to the staging memory; when
     * all ranks' parts of a chunk are there, `consume` gets them in rank order. Of a flow to an
     * owner, it alone consumes. There is one such flow at most, of the rounds' group. */
    unsigned char *receive;
    int64_t receive_stride;
    void (*consume)(void *context, int64_t at, int64_t bytes, const unsigned char *const *operands);
    void *context;
};

enum { WEFT_MPI_STAGING_BYTES = 4 << 20 };

struct weft_mpi_rounds {
    struct weft_mpi *mpi;
    struct weft_mpi_group group;    /* contains the groups of all flows */
    int64_t message_bytes;          /* weft_mpi_round_bytes */
    int32_t tags;                   /* added to tags, so that groups and lanes are told apart */
    unsigned char *staging;         /* WEFT_MPI_STAGING_BYTES, aligned to 8 bytes */
    const unsigned char **operands; /* [ranks] */
    struct weft_comm_meter *meter;  /* counts what comes, by ranks of the group; or NULL */
    /* Called between polls while nothing has moved for idle_ns; `peer` is the rank, in the group,
     * of the oldest message. It waits a little. A failure ends the exchange: its messages are
     * dropped. */
    enum weft_status (*idle)(void *context, int64_t idle_ns, int32_t peer, struct weft_error *err);
    void *context;
};

/* Exchanges the flows one after the other, overlapped. All ranks call it with equal sizes. Chunks
 * are consumed in order. */
WEFT_MUST_USE enum weft_status weft_mpi_exchange_flows(const struct weft_mpi_rounds *rounds,
                                                       const struct weft_mpi_flow *flows,
                                                       int32_t n_flows, struct weft_error *err);

/* Steps under way at once: messages to, and from, as many peers. */
int32_t weft_mpi_rounds_depth(int64_t message_bytes);

/* Bytes of a staged chunk from one peer; a multiple of 8, as message_bytes is. */
int64_t weft_mpi_staged_chunk_bytes(int32_t ranks, int64_t message_bytes);

#endif
