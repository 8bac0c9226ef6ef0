/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives of all ranks on two levels: ranks of a node, and ranks with the same place in their
 * nodes. A byte crosses the network once per node and not once per rank. ReduceScatter sums within
 * the node first and sends partial sums, in fp32. AllGather goes across nodes first. Both go in
 * stages of a chunk: stage i is chunk i on one level and chunk i - 1 on the other. With n nodes a
 * host sends (n - 1)/n of the block, in fp32 for a reduction. */
#ifndef WEFT_RUNTIME_COMM_MPI_LEVELS_H
#define WEFT_RUNTIME_COMM_MPI_LEVELS_H

#include "runtime/comm/job.h"
#include "runtime/comm/mpi/rounds.h"

struct weft_mpi_levels {
    struct weft_mpi_group node, across;
    const struct weft_mpi_rounds *rounds; /* of all ranks */
    const struct weft_comm_job *job;
    unsigned char *memory;  /* of the arena */
    int64_t full;           /* offset of the full block */
    int64_t own;            /* offset of this rank's slice, read or written */
    int64_t chunk_elements; /* of a slice, of a stage */
    int32_t stages;
};

/* Most flows of a stage of `nodes` nodes. */
static inline int32_t weft_mpi_level_flows(int32_t nodes)
{
    return nodes + 1;
}

/* True if there are several nodes of several ranks. */
static inline bool weft_mpi_has_levels(int32_t ranks, int32_t per_node)
{
    return per_node > 1 && ranks > per_node;
}

/* The stages of a ReduceScatter of the block at `full`, whose sum goes to `own`, or of an AllGather
 * of slices at `own`. */
struct weft_mpi_levels weft_mpi_levels_of(const struct weft_mpi_rounds *rounds, int32_t per_node,
                                          const struct weft_comm_job *job, unsigned char *memory,
                                          int64_t full, int64_t own, bool gathers);

/* Writes the flows of a stage and returns their number. When they are exchanged, the stage of a
 * reduction must be ended, before the next one. */
int32_t weft_mpi_reduce_stage(const struct weft_mpi_levels *levels, int32_t stage,
                              struct weft_mpi_flow *flows);
void weft_mpi_end_reduce_stage(const struct weft_mpi_levels *levels, int32_t stage);
int32_t weft_mpi_gather_stage(const struct weft_mpi_levels *levels, int32_t stage,
                              struct weft_mpi_flow *flows);

#endif
