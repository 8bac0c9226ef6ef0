/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of an MPI library that Weft uses. MPI libraries differ in their binary interfaces,
 * so each has a module of its own: weft_openmpi.so, weft_mpich.so. A module holds this table and
 * nothing else; library.c is the only file that includes mpi.h. Collectives of the library are not
 * used: their sums have another order, and they progress only inside calls.
 *
 * All functions return 0, or a code of the library that `explain` puts into words. Calls must not
 * overlap in time (MPI_THREAD_SERIALIZED). */
#ifndef WEFT_RUNTIME_COMM_MPI_CALLS_H
#define WEFT_RUNTIME_COMM_MPI_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WEFT_MPI_TEXT_BYTES = 512 };

/* A send or receive under way. 0: none. */
struct weft_mpi_request {
    uint64_t library; /* the library's handle */
};

struct weft_mpi_calls {
    /* Starts the library in this process. `threads` is false if it cannot be called by several
     * threads in turn. */
    int (*start)(int32_t *rank, int32_t *ranks, bool *threads);
    /* Ends it. All ranks must call it; it may wait for them. */
    int (*finish)(void);
    /* `bytes` is at most WEFT_MPI_MESSAGE_BYTES. The memory must stay until the request is done. */
    int (*send)(const void *from, size_t bytes, int32_t to, int32_t tag,
                struct weft_mpi_request *out);
    int (*receive)(void *to, size_t bytes, int32_t from, int32_t tag, struct weft_mpi_request *out);
    /* Sets *done and clears the request if it is done. A request of 0 is done. */
    int (*test)(struct weft_mpi_request *request, bool *done);
    /* Gives up a request; its memory is then free. A send whose bytes have left is done. */
    void (*drop)(struct weft_mpi_request *request);
    /* Sets *rank to a rank with a waiting message of this tag, or -1. */
    int (*look)(int32_t tag, int32_t *rank);
    void (*explain)(int code, char text[WEFT_MPI_TEXT_BYTES]);
    /* Bytes of a message in rounds, a multiple of 8. Open MPI over TCP asks the receiver before it
     * sends more than 64 KiB, and the answer waits behind data of the other direction. UCX does
     * not, and large messages need less work. */
    int64_t round_bytes;
    /* "Open MPI v4.1.4 ..."; also before start. */
    void (*version)(char text[WEFT_MPI_TEXT_BYTES]);
};

/* Messages are cut, so that counts of the library are small and memory for sums is bounded. */
enum { WEFT_MPI_MESSAGE_BYTES = 1 << 20 };

#endif
