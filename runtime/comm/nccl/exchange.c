/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/comm/nccl/exchange.h"

/* Parts begin at multiples of this, for fast sums. */
enum { PART_ELEMENTS = 64, WIDE_BYTES = sizeof(float) };

static int32_t nodes_of(const struct weft_nccl_shape *shape)
{
    return shape->ranks / shape->ranks_per_node;
}

/* Two levels differ only if each has more than one member. */
static bool has_levels(const struct weft_nccl_shape *shape)
{
    return shape->ranks_per_node > 1 && nodes_of(shape) > 1;
}

/* Bytes of scratch for one element of every slice: its pieces. Several nodes also need own and
 * received partial sums; the received ones serve again for rounding. */
static int64_t bytes_an_element(const struct weft_nccl_shape *shape, enum weft_dtype dtype)
{
    const int64_t pieces = (int64_t)shape->ranks * weft_dtype_bytes(dtype);
    return has_levels(shape) ? pieces + 2 * (int64_t)nodes_of(shape) * WIDE_BYTES : pieces;
}

int64_t weft_nccl_scratch_bytes(const struct weft_nccl_shape *shape, enum weft_dtype dtype,
                                int64_t elements)
{
    /* Partial sums begin at a multiple of an fp32. */
    return elements * bytes_an_element(shape, dtype) + (has_levels(shape) ? WIDE_BYTES : 0);
}

int64_t weft_nccl_part_elements(const struct weft_nccl_shape *shape, enum weft_dtype dtype,
                                int64_t slice_elements, int64_t scratch_bytes)
{
    const int64_t head = has_levels(shape) ? WIDE_BYTES : 0;
    const int64_t most =
        scratch_bytes > head ? (scratch_bytes - head) / bytes_an_element(shape, dtype) : 0;
    if (slice_elements <= most) return slice_elements;
    return most > PART_ELEMENTS ? most / PART_ELEMENTS * PART_ELEMENTS : most;
}

enum weft_dtype weft_nccl_operand(const struct weft_comm_block *block)
{
    return block->of_partials ? WEFT_F32 : block->dtype;
}

static struct weft_nccl_place in_arena(int64_t offset)
{
    return (struct weft_nccl_place){.offset = offset};
}

static struct weft_nccl_place in_scratch(int64_t offset)
{
    return (struct weft_nccl_place){.is_scratch = true, .offset = offset};
}

/* A part of a block: its offsets for this rank. */
struct part {
    int64_t first, count;
    int64_t size, slice_bytes; /* of an element, of a slice in the full block */
    int64_t from;              /* of slice 0's part */
    int64_t to;                /* of this rank's sum */
};

static struct part part_of(const struct weft_nccl_shape *shape, const struct weft_comm_block *block,
                           int64_t first, int64_t count)
{
    const int64_t size = weft_dtype_bytes(weft_nccl_operand(block));
    struct part part = {.first = first, .count = count, .size = size};
    part.slice_bytes = block->slice_elements * size;
    part.from = block->full_offset + first * size;
    part.to = block->slice_offset >= 0
                  ? block->slice_offset + first * weft_dtype_bytes(block->slice_dtype)
                  : part.from + shape->rank * part.slice_bytes;
    return part;
}

static struct weft_nccl_step *add_step(struct weft_nccl_steps *out, enum weft_nccl_step_kind kind,
                                       enum weft_nccl_level level, int64_t elements,
                                       enum weft_dtype dtype)
{
    struct weft_nccl_step *step = &out->steps[out->n++];
    *step = (struct weft_nccl_step){.kind = kind,
                                    .level = level,
                                    .pieces = 1,
                                    .elements = elements,
                                    .dtype = dtype,
                                    .to_dtype = dtype};
    return step;
}

static void add_members(struct weft_nccl_step *step, int32_t members, int32_t self)
{
    step->members = members;
    step->self = self;
}

/* Rounds fp32 sums to the block's dtype, and writes them to the slice. Both places are of scratch
 * that was read already. */
static void round_sums(const struct weft_comm_block *block, const struct part *part,
                       struct weft_nccl_place sums, struct weft_nccl_place spare,
                       struct weft_nccl_steps *out)
{
    const bool widens = block->slice_dtype == WEFT_F32;
    struct weft_nccl_step *narrow =
        add_step(out, WEFT_NCCL_NARROW, WEFT_NCCL_ALL, part->count, block->dtype);
    narrow->from.at = sums;
    narrow->to.at = widens ? spare : in_arena(part->to);
    if (!widens) return;
    struct weft_nccl_step *widen =
        add_step(out, WEFT_NCCL_WIDEN, WEFT_NCCL_ALL, part->count, block->dtype);
    widen->from.at = spare;
    widen->to.at = in_arena(part->to);
}

/* One level: slices go to their owners, which sum them. Sums of partial sums are rounded after
 * that, in the places of this rank's piece, which did not move, and of another rank's. */
static void reduce_flat(const struct weft_nccl_shape *shape, const struct weft_comm_block *block,
                        const struct part *part, struct weft_nccl_steps *out)
{
    const enum weft_dtype dtype = weft_nccl_operand(block);
    const bool rounds = dtype != block->dtype;
    const int64_t bytes = part->count * part->size;
    if (shape->ranks > 1) {
        struct weft_nccl_step *exchange =
            add_step(out, WEFT_NCCL_EXCHANGE, WEFT_NCCL_ALL, part->count, dtype);
        add_members(exchange, shape->ranks, shape->rank);
        exchange->from = (struct weft_nccl_pieces){in_arena(part->from), part->slice_bytes, 0};
        exchange->to = (struct weft_nccl_pieces){in_scratch(0), bytes, 0};
    }
    struct weft_nccl_step *sum = add_step(out, WEFT_NCCL_SUM, WEFT_NCCL_ALL, part->count, dtype);
    add_members(sum, shape->ranks, shape->rank);
    sum->idle = block->idle;
    sum->from = (struct weft_nccl_pieces){in_scratch(0), bytes, 0};
    sum->own.at = in_arena(part->from + shape->rank * part->slice_bytes);
    const struct weft_nccl_place sums = in_scratch(shape->rank * bytes);
    sum->to.at = rounds ? sums : in_arena(part->to);
    sum->adds = block->adds;
    sum->partial = block->partial;
    sum->to_dtype = rounds ? WEFT_F32 : block->slice_dtype;
    if (rounds)
        round_sums(block, part, sums, in_scratch((shape->rank + 1) % shape->ranks * bytes), out);
}

/* Scratch of a reduction on two levels: pieces of the node's ranks for each node, this node's
 * partial sums for each node, and all nodes' partial sums for this rank. */
struct areas {
    int64_t pieces, partial, received;
};

static struct areas areas_of(const struct weft_nccl_shape *shape, const struct part *part)
{
    struct areas areas = {.pieces = 0};
    const int64_t end = shape->ranks * part->count * part->size;
    areas.partial = (end + WIDE_BYTES - 1) / WIDE_BYTES * WIDE_BYTES;
    areas.received = areas.partial + nodes_of(shape) * part->count * WIDE_BYTES;
    return areas;
}

static void reduce_within(const struct weft_nccl_shape *shape, const struct weft_comm_block *block,
                          const struct part *part, const struct areas *areas,
                          struct weft_nccl_steps *out)
{
    const int32_t local = shape->ranks_per_node, self = shape->rank % local;
    const int64_t bytes = part->count * part->size, node_bytes = local * part->slice_bytes;
    const struct weft_nccl_pieces received = {in_scratch(areas->pieces), nodes_of(shape) * bytes,
                                              bytes};
    struct weft_nccl_step *exchange =
        add_step(out, WEFT_NCCL_EXCHANGE, WEFT_NCCL_WITHIN, part->count, block->dtype);
    add_members(exchange, local, self);
    exchange->pieces = nodes_of(shape);
    exchange->from = (struct weft_nccl_pieces){in_arena(part->from), part->slice_bytes, node_bytes};
    exchange->to = received;
    struct weft_nccl_step *sum =
        add_step(out, WEFT_NCCL_SUM, WEFT_NCCL_WITHIN, part->count, block->dtype);
    add_members(sum, local, self);
    const int32_t later = shape->ranks - (shape->rank / local + 1) * local;
    sum->idle = block->idle <= later          ? 0
                : block->idle < later + local ? block->idle - later
                                              : local;
    sum->pieces = nodes_of(shape);
    sum->from = received;
    sum->own =
        (struct weft_nccl_pieces){in_arena(part->from + self * part->slice_bytes), 0, node_bytes};
    sum->to = (struct weft_nccl_pieces){in_scratch(areas->partial), 0, part->count * WIDE_BYTES};
    sum->partial = true;
    sum->to_dtype = WEFT_F32;
}

/* Sums the partial sums in fp32, and rounds once to the block's dtype. */
static void reduce_across(const struct weft_nccl_shape *shape, const struct weft_comm_block *block,
                          const struct part *part, const struct areas *areas,
                          struct weft_nccl_steps *out)
{
    const int32_t nodes = nodes_of(shape), self = shape->rank / shape->ranks_per_node;
    const int64_t bytes = part->count * WIDE_BYTES;
    const struct weft_nccl_place own = in_scratch(areas->partial + self * bytes);
    struct weft_nccl_step *exchange =
        add_step(out, WEFT_NCCL_EXCHANGE, WEFT_NCCL_ACROSS, part->count, WEFT_F32);
    add_members(exchange, nodes, self);
    exchange->from = (struct weft_nccl_pieces){in_scratch(areas->partial), bytes, 0};
    exchange->to = (struct weft_nccl_pieces){in_scratch(areas->received), bytes, 0};
    struct weft_nccl_step *sum =
        add_step(out, WEFT_NCCL_SUM, WEFT_NCCL_ACROSS, part->count, WEFT_F32);
    add_members(sum, nodes, self);
    sum->idle = block->idle / shape->ranks_per_node;
    sum->from = exchange->to;
    sum->own.at = own;
    const bool rounds = block->dtype != WEFT_F32 && !block->partial;
    sum->to.at = rounds ? own : in_arena(part->to);
    sum->adds = block->adds;
    if (rounds) round_sums(block, part, own, in_scratch(areas->received), out);
}

void weft_nccl_reduce_steps(const struct weft_nccl_shape *shape,
                            const struct weft_comm_block *block, int64_t first, int64_t count,
                            struct weft_nccl_steps *out)
{
    const struct part part = part_of(shape, block, first, count);
    out->n = 0;
    if (!has_levels(shape)) {
        reduce_flat(shape, block, &part, out);
        return;
    }
    const struct areas areas = areas_of(shape, &part);
    reduce_within(shape, block, &part, &areas, out);
    reduce_across(shape, block, &part, &areas, out);
}

struct weft_nccl_step weft_nccl_gather_step(const struct weft_nccl_shape *shape,
                                            const struct weft_comm_block *block)
{
    const int64_t slice_bytes = block->slice_elements * weft_dtype_bytes(block->dtype);
    const int64_t from = block->slice_offset >= 0 ? block->slice_offset
                                                  : block->full_offset + shape->rank * slice_bytes;
    return (struct weft_nccl_step){.kind = WEFT_NCCL_GATHER,
                                   .level = WEFT_NCCL_ALL,
                                   .members = shape->ranks,
                                   .self = shape->rank,
                                   .pieces = 1,
                                   .elements = block->slice_elements,
                                   .dtype = block->dtype,
                                   .from.at = in_arena(from),
                                   .to = {in_arena(block->full_offset), slice_bytes, 0}};
}

bool weft_nccl_is_dense(const struct weft_nccl_step *step)
{
    const int64_t bytes = step->elements * weft_dtype_bytes(step->dtype);
    return step->pieces == 1 && step->from.stride == bytes && step->to.stride == bytes;
}
