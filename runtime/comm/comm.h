/* A communicator moves bytes between ranks, from arena to arena. All ranks issue the same
 * collectives in the same order on one stream, the channel. Offsets are of the arena and equal on
 * all ranks. A back end is a const table of functions; "local" (ranks of one machine over shared
 * memory) is always built and is the oracle: sums over ranks are taken in rank order, in fp32,
 * for every dtype and block (numerics.md).
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

struct weft_comm_options {
    int32_t rank, ranks;
    const char *device; /* whose arena it is; NULL: "cpu" */
    /* local: descriptors that the launcher made and all ranks inherited. -1, with ranks 1: the
     * communicator makes its own. */
    int control_fd;       /* WEFT_COMM_CONTROL_BYTES of zeroed shared memory */
    const int *arena_fds; /* [ranks], empty shared-memory files, resized by map_arena */
    /* Emulated link: a collective completes no sooner than alpha + bytes*(N-1)/N / bytes_per_s
     * (AllReduce: twice) after the last rank arrived and the link was free. 0 = as fast as it is.
     */
    bool emulate;
    int64_t alpha_ns;
    double bytes_per_s;
    /* local: no other rank's threads run on this rank's cores, so it may wait awake. Otherwise it
     * does when this process may use a core for each rank. */
    bool own_cores;
    int64_t timeout_ns; /* a peer that does not come within this is WEFT_E_HANG; 0 = 10 minutes */
};

/* Bytes of the control mapping for `ranks` ranks (a multiple of the page size). */
size_t weft_comm_control_bytes(int32_t ranks);

/* Collective: every rank calls it. Error when a peer is gone (WEFT_E_LOST) or does not come. */
WEFT_MUST_USE enum weft_status weft_comm_open(const char *name,
                                              const struct weft_comm_options *options,
                                              struct weft_comm **out, struct weft_error *err);
void weft_comm_close(struct weft_comm *comm);
int32_t weft_comm_rank(const struct weft_comm *comm);
int32_t weft_comm_ranks(const struct weft_comm *comm);
const char *weft_comm_describe(
    const struct weft_comm *comm); /* "local, emulated link 20 us + ..." */

/* Collective: this rank's arena, of one shape on all ranks, on all ranks or on none. `reads`: bytes
 * of it that collectives read of peers, copied; all that a peer can reach. NULL: it reaches all. It
 * is the communicator's: at most one at a time. WEFT_E_SYSTEM naming the limit when memory is
 * exhausted (found out here, not by a signal later). */
WEFT_MUST_USE enum weft_status weft_comm_map_arena(struct weft_comm *comm,
                                                   const struct weft_arena_shape *shape,
                                                   const struct weft_ranges *reads,
                                                   struct weft_arena **out, struct weft_error *err);
void weft_comm_unmap_arena(struct weft_comm *comm);

/* Collectives on the channel stream. `ns` is the predicted time, used by the virtual clock alone:
 * there a collective starts at the latest arrival of all ranks. Offsets are multiples of 4. */
struct weft_comm_block {
    int64_t full_offset;  /* bytes: ranks * slice_elements elements */
    int64_t slice_offset; /* bytes: this rank's slice_elements; AllGather reads it, ReduceScatter
                             writes it. Equal on all ranks. Negative: in place in the full block
                             (AllGather into a resident buffer), slice r at slot r */
    int64_t slice_elements;
    int64_t ns;
    enum weft_dtype dtype; /* of the full block, and of what AllGather reads. Sums are fp32, rounded
                              to it once */
    enum weft_dtype slice_dtype; /* of what ReduceScatter writes: dtype, or fp32 */
    bool adds; /* ReduceScatter of fp32: the sum over ranks is added to what the slice holds */
};
void weft_comm_all_gather(struct weft_comm *comm, struct weft_stream *channel,
                          const struct weft_comm_block *block);
void weft_comm_reduce_scatter(struct weft_comm *comm, struct weft_stream *channel,
                              const struct weft_comm_block *block);
/* In place: the sum in rank order stands in all ranks' full blocks. slice_offset is not used. */
void weft_comm_all_reduce(struct weft_comm *comm, struct weft_stream *channel,
                          const struct weft_comm_block *block);
/* Sum of `words` uint64 at `from_offset` over ranks (wrapping), to `to_offset`, on all ranks. */
void weft_comm_agree(struct weft_comm *comm, struct weft_stream *channel, int64_t from_offset,
                     int64_t to_offset, int64_t words, int64_t ns);

/* A flag that collectives carry along: the uint32_t at this offset of the arena (negative: none, as
 * at first), the same on all ranks. Behind a sum over ranks it is 1 on every rank if it was not 0
 * on any rank that came to it, for no message more; a back end may carry it with other collectives
 * and exchanges too. Work may set it meanwhile. Forgotten when the arena is unmapped. */
void weft_comm_carry(struct weft_comm *comm, int64_t flag_offset);

/* Blocking, from the host, outside the step: each rank gives `bytes` (at most
 * WEFT_COMM_EXCHANGE_BYTES, equal on all) and gets everybody's, in rank order. A barrier is an
 * exchange of nothing. */
enum { WEFT_COMM_EXCHANGE_BYTES = 4096 };
WEFT_MUST_USE enum weft_status weft_comm_exchange(struct weft_comm *comm, const void *mine,
                                                  size_t bytes, void *all, struct weft_error *err);

/* From any thread: this rank gives up. The call under way and every later one fail with
 * WEFT_E_LOST, and peers that wait learn that it has given up. */
void weft_comm_cancel(struct weft_comm *comm);

#endif
