/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/comm/mpi/flows.h"

static void sum_chunk(void *context, int64_t at, int64_t bytes,
                      const unsigned char *const *operands)
{
    const struct weft_mpi_sum *all = context;
    struct weft_comm_sum sum = all->sum;
    const int64_t first = at / weft_dtype_bytes(sum.dtype);
    sum.elements = bytes / weft_dtype_bytes(sum.dtype);
    sum.from = operands;
    if (sum.before != NULL) sum.before += first * (int64_t)sizeof(float);
    sum.to = all->to + first * weft_dtype_bytes(sum.to_dtype);
    weft_comm_sum_ranks(&sum);
}

struct weft_mpi_sum weft_mpi_sum_of(const struct weft_comm *comm, const struct weft_comm_job *job,
                                    unsigned char *memory, int64_t to)
{
    return (struct weft_mpi_sum){
        .sum = {.ranks = comm->ranks,
                .per_node = comm->ranks_per_node,
                .idle = (int32_t)job->call.idle,
                .dtype = job->dtype,
                .rounded = weft_comm_rounded(job),
                .to_dtype = job->slice_dtype,
                .before = weft_comm_before(job, comm->rank, memory, to)},
        .to = memory + to,
    };
}

struct weft_mpi_flow weft_mpi_gather_flow(const struct weft_comm_job *job, unsigned char *full,
                                          const unsigned char *own)
{
    const int64_t bytes = weft_comm_slice_bytes(job);
    return (struct weft_mpi_flow){
        .tag = WEFT_MPI_DATA,
        .bytes = bytes,
        .send = own,
        .receive = full,
        .receive_stride = bytes,
    };
}

struct weft_mpi_flow weft_mpi_scatter_flow(const struct weft_comm_job *job,
                                           const unsigned char *memory, struct weft_mpi_sum *sum)
{
    const int64_t bytes = weft_comm_slice_bytes(job);
    return (struct weft_mpi_flow){
        .tag = WEFT_MPI_DATA,
        .bytes = bytes,
        .send = memory + job->call.from,
        .send_stride = bytes,
        .consume = sum_chunk,
        .context = sum,
    };
}

struct weft_mpi_flow weft_mpi_owned_flow(const struct weft_comm_job *job, int32_t ranks,
                                         unsigned char *block, struct weft_mpi_sum *sum)
{
    const bool reduces = job->call.kind == WEFT_COMM_CALL_REDUCE;
    return (struct weft_mpi_flow){
        .way = reduces ? WEFT_MPI_TO_OWNER : WEFT_MPI_FROM_OWNER,
        .owner = (int32_t)job->call.to,
        .tag = WEFT_MPI_DATA,
        .bytes = weft_comm_slice_bytes(job) * ranks,
        .send = block,
        .receive = reduces ? NULL : block,
        .consume = sum_chunk,
        .context = sum,
    };
}
