/* SPDX-License-Identifier: Apache-2.0 */
/* Flows of collectives on one level, over a block in the memory of an arena. */
#ifndef WEFT_RUNTIME_COMM_MPI_FLOWS_H
#define WEFT_RUNTIME_COMM_MPI_FLOWS_H

#include "runtime/comm/backend.h"
#include "runtime/comm/job.h"
#include "runtime/comm/mpi/rounds.h"
#include "runtime/comm/sum.h"

/* A sum over ranks, chunk by chunk, and its destination. */
struct weft_mpi_sum {
    struct weft_comm_sum sum;
    unsigned char *to;
};

/* The sum into the bytes at offset `to` of the arena's memory. */
struct weft_mpi_sum weft_mpi_sum_of(const struct weft_comm *comm, const struct weft_comm_job *job,
                                    unsigned char *memory, int64_t to);

/* AllGather: the slice at `own` goes to its place in the full blocks of all ranks. */
struct weft_mpi_flow weft_mpi_gather_flow(const struct weft_comm_job *job, unsigned char *full,
                                          const unsigned char *own);
/* ReduceScatter: part r of the full block goes to rank r, which sums it. */
struct weft_mpi_flow weft_mpi_scatter_flow(const struct weft_comm_job *job,
                                           const unsigned char *memory, struct weft_mpi_sum *sum);
/* Reduce and Broadcast: the whole block goes to its owner, which sums it, or comes from there. The
 * owner's port has one peer at a time, and moves the block ranks - 1 times. */
struct weft_mpi_flow weft_mpi_owned_flow(const struct weft_comm_job *job, int32_t ranks,
                                         unsigned char *block, struct weft_mpi_sum *sum);

#endif
