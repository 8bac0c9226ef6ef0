/* SPDX-License-Identifier: Apache-2.0 */
/* A communicator moves bytes between ranks, from arena to arena. All ranks issue the same
 * collectives in the same order on one stream, the channel. A branch has a channel of its own.
 * Offsets are of the arena and equal on all ranks. A back end is a const table of functions.
 * "local" (ranks of one machine over shared memory) is always built and is the oracle. Sums over
 * ranks are taken in canonical order, in fp32, for every dtype and block: within each node in rank
 * order, then over nodes in node order (ARCHITECTURE.md, invariant 1).
 */
#ifndef WEFT_RUNTIME_COMM_COMM_H
#define WEFT_RUNTIME_COMM_COMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/numbers.h"
#include "base/status.h"
#include "runtime/arena/arena.h"
#include "runtime/device/device.h"

struct weft_comm;
struct weft_mpi;

/* Options of "local", and of communicators whose ranks meet through it. */
struct weft_comm_local_options {
    /* Descriptors of the launcher that all ranks inherit. With one rank -1 makes its own. */
    int control_fd;       /* weft_comm_control_bytes(ranks) of zeroed shared memory */
    const int *arena_fds; /* [ranks], empty files of shared memory, resized by map_arena */
    /* Emulated link. A collective ends at the earliest alpha + bytes*(N-1)/N / bytes_per_s
     * (AllReduce: twice that) after the last rank arrived and the link was free. Without `emulate`
     * it ends as soon as it can. */
    bool emulate;
    int64_t alpha_ns;
    double bytes_per_s;
    /* True if no thread of another rank runs on this rank's cores, so the rank may spin. If false,
     * it spins only if this process may use a core for each rank. */
    bool own_cores;
};

struct weft_comm_options {
    int32_t rank, ranks;
    int32_t ranks_per_node; /* the order of sums; divides ranks; 0: all ranks are one node */
    const char *device;     /* device of the arena; NULL: "cpu" */
    int64_t timeout_ns;     /* limit of each wait for a peer, then WEFT_E_HANG; 0: 10 minutes */
    struct weft_comm_local_options local;
    struct weft_mpi *mpi; /* of "mpi": started by weft_mpi_start, and outlives the communicator */
};

/* Bytes of the control memory of `ranks` ranks, a multiple of the page size. */
size_t weft_comm_control_bytes(int32_t ranks);

/* Opens the communicator; every rank must call it. WEFT_E_LOST if a peer is gone, WEFT_E_HANG if
 * one does not come in time. Free with weft_comm_close. */
WEFT_MUST_USE enum weft_status weft_comm_open(const char *name,
                                              const struct weft_comm_options *options,
                                              struct weft_comm **out, struct weft_error *err);
/* Unmaps the arena and frees the communicator and its branches; accepts NULL. */
void weft_comm_close(struct weft_comm *comm);
int32_t weft_comm_rank(const struct weft_comm *comm);
int32_t weft_comm_ranks(const struct weft_comm *comm);
const char *weft_comm_describe(
    const struct weft_comm *comm); /* "local, emulated link 20 us + ..." */

/* Memory of the arena's device next to it, in which blocks wait for their sums, of any number of
 * ranks: of the communicator alone, and of it and its open branches. */
int64_t weft_comm_staging_bytes(const struct weft_comm *comm);
int64_t weft_comm_all_staging_bytes(const struct weft_comm *comm);

/* Maps this rank's arena; every rank must call it with the same shape. Either all ranks succeed or
 * none. `reads` are the bytes that collectives read of peers. It is copied, and peers can reach
 * only these bytes; NULL: all. The communicator owns the arena and maps one at a time.
 * WEFT_E_SYSTEM names the limit if memory is exhausted: that is found here and not later by a
 * signal. WEFT_E_DISAGREE if ranks ask for different shapes. */
WEFT_MUST_USE enum weft_status weft_comm_map_arena(struct weft_comm *comm,
                                                   const struct weft_arena_shape *shape,
                                                   const struct weft_ranges *reads,
                                                   struct weft_arena **out, struct weft_error *err);
void weft_comm_unmap_arena(struct weft_comm *comm);

/* Collectives on the channel. `ns` is the predicted time and used by the virtual clock only, where
 * a collective starts when the last rank arrives. Offsets are multiples of 4. */
struct weft_comm_block {
    int64_t full_offset;  /* of the full block: ranks * slice_elements elements */
    int64_t slice_offset; /* of this rank's slice. AllGather reads it, ReduceScatter writes it.
                             Negative: in place, slice r at slot r of the full block. */
    int64_t slice_elements;
    int64_t ns;
    enum weft_dtype dtype; /* of the full block, and of the slice that AllGather reads. Sums are
                              fp32, rounded to it once. */
    enum weft_dtype slice_dtype; /* of the slice that ReduceScatter writes: dtype, or fp32 */
    bool adds;                   /* ReduceScatter of fp32: adds the sum over ranks to the slice */
    bool partial;                /* ReduceScatter to fp32: the sum is not rounded to dtype, since it
                                    is summed further */
    bool of_partials;            /* AllReduce or ReduceScatter of such sums */
    int32_t idle;                /* reductions: ranks, the last ones, that have no operand. The sum
                                    leaves them out. If all are idle, the result is undefined. */
    bool owned;                  /* Reduce, Broadcast: in place, to or from the rank `owner` */
    int32_t owner;
};
/* Fills the full block with the slices of all ranks. */
void weft_comm_all_gather(struct weft_comm *comm, struct weft_stream *channel,
                          const struct weft_comm_block *block);
/* Writes this rank's part of the sum over ranks to its slice. Partial sums are fp32, and their sum
 * is rounded to `dtype` once, and written as slice_dtype or added. */
void weft_comm_reduce_scatter(struct weft_comm *comm, struct weft_stream *channel,
                              const struct weft_comm_block *block);
/* Works in place: all full blocks get the sum in canonical order. It ignores slice_offset, unless
 * the operands are partial sums. These are fp32, and the result is the whole block at slice_offset:
 * the sums, rounded to `dtype` once, are written as slice_dtype or added. */
void weft_comm_all_reduce(struct weft_comm *comm, struct weft_stream *channel,
                          const struct weft_comm_block *block);
/* The owner's full block gets the sum over ranks in canonical order, rounded to dtype once, or goes
 * to all other ranks. They ignore slice_offset. The owner's port moves ranks - 1 blocks. A back end
 * may lack both. */
bool weft_comm_has_owners(const struct weft_comm *comm);
void weft_comm_reduce(struct weft_comm *comm, struct weft_stream *channel,
                      const struct weft_comm_block *block);
void weft_comm_broadcast(struct weft_comm *comm, struct weft_stream *channel,
                         const struct weft_comm_block *block);
/* Adds `words` uint64 at `from_offset` over ranks, wrapping. All ranks get the sum at
 * `to_offset`. */
void weft_comm_agree(struct weft_comm *comm, struct weft_stream *channel, int64_t from_offset,
                     int64_t to_offset, int64_t words, int64_t ns);

/* Sets a flag that collectives of the communicator and its open branches carry along. It is the
 * uint32_t at this offset of the arena, equal on all ranks; negative (the initial value): none.
 * After a sum over ranks it is 1 on every rank if it was not 0 on any rank when that rank arrived.
 * This costs no extra message. Back ends may carry it with other collectives and exchanges too.
 * Work may set it meanwhile. Unmapping the arena removes it. */
void weft_comm_carry(struct weft_comm *comm, int64_t flag_offset);

/* Blocks on the host, outside of steps. Each rank gives `bytes` bytes (equal on all, at most
 * WEFT_COMM_EXCHANGE_BYTES) and gets all ranks' in rank order. With 0 bytes it is a barrier. */
enum { WEFT_COMM_EXCHANGE_BYTES = 4096 };
WEFT_MUST_USE enum weft_status weft_comm_exchange(struct weft_comm *comm, const void *mine,
                                                  size_t bytes, void *all, struct weft_error *err);

/* Name of a rank's host, valid until the communicator is closed; "" if it is not known, as for
 * ranks of one machine. */
const char *weft_comm_host(const struct weft_comm *comm, int32_t rank);

/* Swaps `bytes` bytes with another rank, outside of steps and without a collective: other pairs of
 * ranks may do the same meanwhile. Both ranks must call it with equal sizes. WEFT_E_ENVIRONMENT if
 * the back end only has collectives; weft_comm_swaps tells. */
bool weft_comm_swaps(const struct weft_comm *comm);
WEFT_MUST_USE enum weft_status weft_comm_swap(struct weft_comm *comm, int32_t peer,
                                              const void *mine, int64_t bytes, void *theirs,
                                              struct weft_error *err);

/* Bytes that came from a rank in collectives, and the time that they took. Waits for a rank that
 * has not yet joined a collective are not in it. */
struct weft_comm_traffic {
    int64_t bytes, ns;
};
/* Reads the traffic from each rank, traffic[ranks], and the time in which collectives moved bytes,
 * summed over the communicator and its branches, since the last reading. All are 0 if the back end
 * does not measure. Collectives may be under way. */
void weft_comm_take_traffic(struct weft_comm *comm, struct weft_comm_traffic *traffic,
                            int64_t *moving_ns);

/* Before a run, on all ranks: the longest predicted time between two collectives of a step. From
 * then on a wait for a peer in a collective ends after 20 times that, at least 10 s, in place of
 * timeout_ns. Exchanges keep timeout_ns: nothing predicts saves, starts or evaluations. 0 takes the
 * prediction back. Over NCCL it has no effect. */
void weft_comm_expect(struct weft_comm *comm, int64_t longest_ns);

/* Exchanges of this communicator wait for peers that time longer than timeout_ns, until the next
 * call; 0: no longer. For ranks that work on their own in between. */
void weft_comm_wait_longer(struct weft_comm *comm, int64_t ns);

/* Gives up this rank; any thread may call it. The current call and all later ones fail with
 * WEFT_E_LOST. Waiting peers learn of it. So do all branches. */
void weft_comm_cancel(struct weft_comm *comm);

/* The first rank whose process is known to have ended without a word, or -1, also if the back end
 * cannot tell. Any thread may ask. */
int32_t weft_comm_lost(const struct weft_comm *comm);

#endif
