/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/comm/mpi/levels.h"

#include "runtime/comm/sum.h"

enum { WIDE_BYTES = sizeof(float), ALIGN_ELEMENTS = 4 };

/* Staging memory: the pieces that mates of this node send, for each node; this node's partial sums,
 * for each node; the partial sums of all nodes for this rank. This rank's own places stay empty. */
struct areas {
    int64_t piece_bytes, partial_bytes; /* of a chunk */
    unsigned char *pieces, *partial, *received;
};

static struct areas areas_of(const struct weft_mpi_levels *levels)
{
    const int64_t n = levels->chunk_elements, nodes = levels->across.ranks;
    struct areas areas = {
        .piece_bytes = n * weft_dtype_bytes(levels->job->dtype),
        .partial_bytes = n * WIDE_BYTES,
        .pieces = levels->rounds->staging,
    };
    areas.partial = areas.pieces + levels->node.ranks * nodes * areas.piece_bytes;
    areas.received = areas.partial + nodes * areas.partial_bytes;
    return areas;
}

static int64_t reduce_elements(const struct weft_mpi_levels *levels)
{
    const int64_t nodes = levels->across.ranks;
    const int64_t bytes =
        nodes * (levels->node.ranks * weft_dtype_bytes(levels->job->dtype) + 2 * WIDE_BYTES);
    const int64_t staged = WEFT_MPI_STAGING_BYTES / bytes,
                  message = WEFT_MPI_MESSAGE_BYTES / WIDE_BYTES;
    return (staged < message ? staged : message) / ALIGN_ELEMENTS * ALIGN_ELEMENTS;
}

struct weft_mpi_levels weft_mpi_levels_of(const struct weft_mpi_rounds *rounds, int32_t per_node,
                                          const struct weft_comm_job *job, unsigned char *memory,
                                          int64_t full, int64_t own, bool gathers)
{
    const struct weft_mpi_group *all = &rounds->group;
    const int32_t place = all->rank % per_node, node = all->rank / per_node;
    struct weft_mpi_levels levels = {
        .node = {place, per_node, node * per_node, 0},
        .across = {node, all->ranks / per_node, place, per_node - 1},
        .rounds = rounds,
        .job = job,
        .memory = memory,
        .full = full,
        .own = own,
    };
    levels.chunk_elements =
        gathers ? WEFT_MPI_MESSAGE_BYTES / weft_dtype_bytes(job->dtype) : reduce_elements(&levels);
    levels.stages =
        1 + (int32_t)((job->slice_elements + levels.chunk_elements - 1) / levels.chunk_elements);
    return levels;
}

/* Elements of a chunk; 0 before the first and after the last one. */
static int64_t elements_of(const struct weft_mpi_levels *levels, int32_t chunk)
{
    const int64_t left = levels->job->slice_elements - chunk * levels->chunk_elements;
    if (chunk < 0 || left < 0) return 0;
    return left < levels->chunk_elements ? left : levels->chunk_elements;
}

/* Bytes of the full block before this chunk of the slice of that place and node. */
static int64_t offset_of(const struct weft_mpi_levels *levels, int32_t node, int32_t place,
                         int32_t chunk)
{
    const int64_t slice = (int64_t)node * levels->node.ranks + place;
    return levels->full + slice * weft_comm_slice_bytes(levels->job) +
           chunk * levels->chunk_elements * weft_dtype_bytes(levels->job->dtype);
}

/* To each mate of the node go its pieces for all nodes. */
static struct weft_mpi_flow node_pieces(const struct weft_mpi_levels *levels, int32_t node,
                                        int32_t chunk)
{
    const struct areas areas = areas_of(levels);
    const int64_t stride = levels->across.ranks * areas.piece_bytes;
    return (struct weft_mpi_flow){
        .tag = WEFT_MPI_DATA,
        .group = &levels->node,
        .bytes = elements_of(levels, chunk) * weft_dtype_bytes(levels->job->dtype),
        .send = levels->memory + offset_of(levels, node, 0, chunk),
        .send_stride = weft_comm_slice_bytes(levels->job),
        .receive = areas.pieces + node * areas.piece_bytes,
        .receive_stride = stride,
    };
}

/* Idle ranks of this node; the last nodes of the world are idle first. */
static int32_t idle_mates(const struct weft_mpi_levels *levels)
{
    const int64_t mates = levels->node.ranks;
    const int64_t later = (levels->across.ranks - 1 - levels->across.rank) * mates;
    const int64_t idle = levels->job->call.idle - later;
    return (int32_t)(idle < 0 ? 0 : idle < mates ? idle : mates);
}

/* The pieces of this rank's place, of all mates, make the node's partial sums for each node. */
static void sum_node(const struct weft_mpi_levels *levels, int32_t chunk)
{
    const struct areas areas = areas_of(levels);
    const unsigned char **operands = levels->rounds->operands;
    for (int32_t node = 0; node < levels->across.ranks; node++) {
        for (int32_t mate = 0; mate < levels->node.ranks; mate++)
            operands[mate] =
                areas.pieces + (mate * levels->across.ranks + node) * areas.piece_bytes;
        operands[levels->node.rank] =
            levels->memory + offset_of(levels, node, levels->node.rank, chunk);
        const struct weft_comm_sum sum = {
            .ranks = levels->node.ranks,
            .idle = idle_mates(levels),
            .dtype = levels->job->dtype,
            .rounded = WEFT_F32,
            .to_dtype = WEFT_F32,
            .elements = elements_of(levels, chunk),
            .from = operands,
            .to = areas.partial + node * areas.partial_bytes,
        };
        weft_comm_sum_ranks(&sum);
    }
}

static void sum_across(const struct weft_mpi_levels *levels, int32_t chunk)
{
    const struct areas areas = areas_of(levels);
    const unsigned char **operands = levels->rounds->operands;
    const int64_t first = chunk * levels->chunk_elements;
    const unsigned char *before =
        weft_comm_before(levels->job, levels->rounds->group.rank, levels->memory, levels->own);
    for (int32_t node = 0; node < levels->across.ranks; node++)
        operands[node] = areas.received + node * areas.partial_bytes;
    operands[levels->across.rank] = areas.partial + levels->across.rank * areas.partial_bytes;
    const struct weft_comm_sum sum = {
        .ranks = levels->across.ranks,
        .idle = (int32_t)(levels->job->call.idle / levels->node.ranks),
        .dtype = WEFT_F32,
        .rounded = weft_comm_rounded(levels->job),
        .to_dtype = levels->job->slice_dtype,
        .before = before == NULL ? NULL : before + first * WIDE_BYTES,
        .elements = elements_of(levels, chunk),
        .from = operands,
        .to = levels->memory + levels->own + first * weft_dtype_bytes(levels->job->slice_dtype),
    };
    weft_comm_sum_ranks(&sum);
}

int32_t weft_mpi_reduce_stage(const struct weft_mpi_levels *levels, int32_t stage,
                              struct weft_mpi_flow *flows)
{
    const struct areas areas = areas_of(levels);
    int32_t n = 0;
    flows[n++] = (struct weft_mpi_flow){
        .tag = WEFT_MPI_DATA,
        .group = &levels->across,
        .bytes = elements_of(levels, stage - 1) * WIDE_BYTES,
        .send = areas.partial,
        .send_stride = areas.partial_bytes,
        .receive = areas.received,
        .receive_stride = areas.partial_bytes,
    };
    for (int32_t node = 0; node < levels->across.ranks; node++)
        flows[n++] = node_pieces(levels, node, stage);
    return n;
}

void weft_mpi_end_reduce_stage(const struct weft_mpi_levels *levels, int32_t stage)
{
    if (elements_of(levels, stage - 1) > 0) sum_across(levels, stage - 1);
    if (elements_of(levels, stage) > 0) sum_node(levels, stage);
}

int32_t weft_mpi_gather_stage(const struct weft_mpi_levels *levels, int32_t stage,
                              struct weft_mpi_flow *flows)
{
    const int64_t slice_bytes = weft_comm_slice_bytes(levels->job);
    const int64_t size = weft_dtype_bytes(levels->job->dtype);
    const int64_t at = levels->chunk_elements * size;
    int32_t n = 0;
    flows[n++] = (struct weft_mpi_flow){
        .tag = WEFT_MPI_DATA,
        .group = &levels->across,
        .bytes = elements_of(levels, stage) * size,
        .send = levels->memory + levels->own + stage * at,
        .receive = levels->memory + offset_of(levels, 0, levels->node.rank, stage),
        .receive_stride = levels->node.ranks * slice_bytes,
    };
    for (int32_t node = 0; node < levels->across.ranks && stage > 0; node++) {
        const bool is_own = node == levels->across.rank;
        flows[n++] = (struct weft_mpi_flow){
            .tag = WEFT_MPI_DATA,
            .group = &levels->node,
            .bytes = elements_of(levels, stage - 1) * size,
            .send =
                levels->memory + (is_own ? levels->own + (stage - 1) * at
                                         : offset_of(levels, node, levels->node.rank, stage - 1)),
            .receive = levels->memory + offset_of(levels, node, 0, stage - 1),
            .receive_stride = slice_bytes,
        };
    }
    return n;
}
