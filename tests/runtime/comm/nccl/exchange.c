/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of all ranks, walked through in plain memory, against the definition: sums within a
 * node in rank order, then over nodes, in fp32, rounded once. */
#include "runtime/comm/nccl/exchange.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

enum { MOST_RANKS = 8, MOST_BYTES = 1 << 15, ARENA_BYTES = 1 << 14, FULL = 256, SLICE = 12288 };

struct rank_memory {
    unsigned char arena[ARENA_BYTES], scratch[MOST_BYTES];
};
struct world {
    struct weft_nccl_shape shape; /* its rank is nobody's */
    int64_t scratch_bytes;
    struct rank_memory of[MOST_RANKS];
    struct weft_nccl_steps steps[MOST_RANKS];
};
static struct world world;

static float value_of(int32_t rank, int64_t element)
{
    const double x = weft_rng_uniform(7, (uint64_t)rank, (uint64_t)element) - 0.5;
    const uint64_t power = weft_rng_below(8, (uint64_t)rank, (uint64_t)element, 12);
    return (float)(x * (double)(UINT64_C(1) << power));
}

static float load_element(enum weft_dtype dtype, const unsigned char *at)
{
    uint16_t narrow;
    float wide;
    memcpy(&narrow, at, sizeof narrow);
    if (dtype == WEFT_BF16) return weft_bf16_widen(narrow);
    if (dtype == WEFT_F16) return weft_f16_widen(narrow);
    memcpy(&wide, at, sizeof wide);
    return wide;
}

static void store_element(enum weft_dtype dtype, float x, unsigned char *at)
{
    const uint16_t narrow = dtype == WEFT_BF16 ? weft_bf16_narrow(x) : weft_f16_narrow(x);
    if (dtype == WEFT_F32) {
        memcpy(at, &x, sizeof x);
    } else {
        memcpy(at, &narrow, sizeof narrow);
    }
}

static float rounded_to(enum weft_dtype dtype, float x)
{
    unsigned char bytes[sizeof x];
    store_element(dtype, x, bytes);
    return load_element(dtype, bytes);
}

/* The definition: several nodes are summed first, the ranks of one are added to the sum before. */
static float sum_of(enum weft_dtype dtype, int64_t element, float before)
{
    const bool has_nodes = world.shape.ranks_per_node < world.shape.ranks;
    const int32_t local = has_nodes ? world.shape.ranks_per_node : 1;
    float sum = before;
    for (int32_t first = 0; first < world.shape.ranks; first += local) {
        float partial = rounded_to(dtype, value_of(first, element));
        for (int32_t r = first + 1; r < first + local; r++)
            partial += rounded_to(dtype, value_of(r, element));
        sum += partial;
    }
    return rounded_to(dtype, sum);
}

/* The place of a piece, which must be inside. */
static unsigned char *memory_of(int32_t rank, const struct weft_nccl_pieces *pieces, int32_t member,
                                int32_t piece, int64_t bytes)
{
    const int64_t at = pieces->at.offset + member * pieces->stride + piece * pieces->skip;
    const int64_t end = pieces->at.is_scratch ? world.scratch_bytes : ARENA_BYTES;
    cr_assert(at >= 0 && at + bytes <= end, "%lld of %lld", (long long)at, (long long)end);
    return (pieces->at.is_scratch ? world.of[rank].scratch : world.of[rank].arena) + at;
}

/* The rank that is this member of a rank's level. */
static int32_t rank_of(int32_t rank, const struct weft_nccl_step *step, int32_t member)
{
    const int32_t local = world.shape.ranks_per_node;
    switch (step->level) {
    case WEFT_NCCL_WITHIN:
        return rank / local * local + member;
    case WEFT_NCCL_ACROSS:
        return member * local + rank % local;
    case WEFT_NCCL_ALL:
    case WEFT_NCCL_LEVEL_COUNT:
        return member;
    }
    return -1;
}

/* Receives the pieces of all other ranks; its own piece does not move. */
static void receive(int32_t rank, const struct weft_nccl_step *step, int at)
{
    const int64_t bytes = step->elements * weft_dtype_bytes(step->dtype);
    for (int32_t m = 0; m < step->members; m++) {
        const int32_t peer = rank_of(rank, step, m);
        const struct weft_nccl_step *theirs = &world.steps[peer].steps[at];
        cr_assert(theirs->kind == step->kind && theirs->level == step->level &&
                  theirs->elements == step->elements && theirs->pieces == step->pieces);
        cr_assert_eq(rank_of(peer, theirs, step->self), rank);
        for (int32_t i = 0; i < step->pieces && m != step->self; i++)
            memcpy(memory_of(rank, &step->to, m, i, bytes),
                   memory_of(peer, &theirs->from, step->self, i, bytes), (size_t)bytes);
    }
}

static void sum_up(int32_t rank, const struct weft_nccl_step *step, int32_t piece)
{
    const int64_t size = weft_dtype_bytes(step->dtype), bytes = step->elements * size,
                  to_size = weft_dtype_bytes(step->to_dtype);
    unsigned char *to = memory_of(rank, &step->to, 0, piece, step->elements * to_size);
    for (int64_t i = 0; i < step->elements; i++) {
        float sum = step->adds ? load_element(WEFT_F32, to + i * to_size) : -0.0F;
        for (int32_t m = 0; m < step->members; m++) {
            const unsigned char *from = m == step->self
                                            ? memory_of(rank, &step->own, 0, piece, bytes)
                                            : memory_of(rank, &step->from, m, piece, bytes);
            sum += load_element(step->dtype, from + i * size);
        }
        if (!step->adds && !step->partial) sum = rounded_to(step->dtype, sum);
        store_element(step->to_dtype, sum, to + i * to_size);
    }
}

static void convert(int32_t rank, const struct weft_nccl_step *step)
{
    const bool narrows = step->kind == WEFT_NCCL_NARROW;
    const enum weft_dtype from = narrows ? WEFT_F32 : step->dtype,
                          to = narrows ? step->dtype : WEFT_F32;
    const int64_t from_bytes = step->elements * weft_dtype_bytes(from),
                  to_bytes = step->elements * weft_dtype_bytes(to);
    const unsigned char *in = memory_of(rank, &step->from, 0, 0, from_bytes);
    unsigned char *out = memory_of(rank, &step->to, 0, 0, to_bytes);
    cr_assert(in + from_bytes <= out || out + to_bytes <= in, "in place");
    for (int64_t i = 0; i < step->elements; i++)
        store_element(to, load_element(from, in + i * weft_dtype_bytes(from)),
                      out + i * weft_dtype_bytes(to));
}

static void gather(int32_t rank, const struct weft_nccl_step *step, int at)
{
    const int64_t bytes = step->elements * weft_dtype_bytes(step->dtype);
    for (int32_t m = 0; m < step->members; m++)
        memmove(memory_of(rank, &step->to, m, 0, bytes),
                memory_of(m, &world.steps[m].steps[at].from, 0, 0, bytes), (size_t)bytes);
}

/* A step of all ranks, before the next of any. */
static void walk_step(int at)
{
    for (int32_t r = 0; r < world.shape.ranks; r++) {
        const struct weft_nccl_step *step = &world.steps[r].steps[at];
        cr_assert_eq(world.steps[r].n, world.steps[0].n);
        switch (step->kind) {
        case WEFT_NCCL_EXCHANGE:
            receive(r, step, at);
            break;
        case WEFT_NCCL_SUM:
            for (int32_t i = 0; i < step->pieces; i++)
                sum_up(r, step, i);
            break;
        case WEFT_NCCL_NARROW:
        case WEFT_NCCL_WIDEN:
            convert(r, step);
            break;
        case WEFT_NCCL_GATHER:
            gather(r, step, at);
            break;
        case WEFT_NCCL_STEP_COUNT:
            cr_assert_fail();
        }
    }
}

static void begin_world(int32_t ranks, int32_t ranks_per_node, const struct weft_comm_block *block)
{
    const int64_t size = weft_dtype_bytes(block->dtype), n = block->slice_elements;
    memset(world.of, 0xff, sizeof world.of); /* NaN in every dtype */
    world.shape = (struct weft_nccl_shape){.ranks = ranks, .ranks_per_node = ranks_per_node};
    for (int32_t r = 0; r < ranks; r++) {
        for (int64_t i = 0; i < n * ranks; i++)
            store_element(block->dtype, value_of(r, i),
                          world.of[r].arena + block->full_offset + i * size);
        for (int64_t i = 0; i < n && block->adds; i++)
            store_element(WEFT_F32, (float)i, world.of[r].arena + block->slice_offset + i * 4);
    }
}

static int64_t reduce(const struct weft_comm_block *block)
{
    int64_t parts = 0, part = weft_nccl_part_elements(&world.shape, block->dtype,
                                                      block->slice_elements, world.scratch_bytes);
    cr_assert_gt(part, 0);
    for (int64_t first = 0; first < block->slice_elements; first += part, parts++) {
        const int64_t left = block->slice_elements - first, count = left < part ? left : part;
        for (int32_t r = 0; r < world.shape.ranks; r++) {
            struct weft_nccl_shape shape = world.shape;
            shape.rank = r;
            weft_nccl_reduce_steps(&shape, block, first, count, &world.steps[r]);
        }
        for (int at = 0; at < world.steps[0].n; at++)
            walk_step(at);
    }
    return parts;
}

static void check_sums(const struct weft_comm_block *block)
{
    const int64_t n = block->slice_elements, size = weft_dtype_bytes(block->slice_dtype);
    for (int32_t r = 0; r < world.shape.ranks; r++) {
        const int64_t to =
            block->slice_offset >= 0 ? block->slice_offset : block->full_offset + r * n * size;
        for (int64_t i = 0; i < n; i++) {
            const float got = load_element(block->slice_dtype, world.of[r].arena + to + i * size);
            const float expected = sum_of(block->dtype, r * n + i, block->adds ? (float)i : -0.0F);
            cr_assert(memcmp(&got, &expected, sizeof got) == 0,
                      "%d ranks, %d a node, rank %d, element %lld: %a, not %a", world.shape.ranks,
                      world.shape.ranks_per_node, r, (long long)i, (double)got, (double)expected);
        }
    }
}

/* Calls `check` for every shape and kind of block. */
typedef void check_fn(const struct weft_comm_block *block);
static int visit_blocks(check_fn *check)
{
    static const int64_t sizes[] = {1, 7, 64, 131};
    int visited = 0;
    for (int32_t ranks = 1; ranks <= MOST_RANKS; ranks++) {
        for (int32_t local = 1; local <= ranks; local++) {
            if (ranks % local != 0) continue;
            for (int kind = 0; kind < 4 * 7; kind++) {
                struct weft_comm_block block = {.full_offset = FULL,
                                                .slice_offset = kind / 4 % 2 == 0 ? SLICE : -1,
                                                .slice_elements = sizes[kind % 4]};
                const int dtypes = kind / 4;
                block.dtype = dtypes < 3 ? WEFT_F32 : dtypes < 5 ? WEFT_BF16 : WEFT_F16;
                block.slice_dtype = block.dtype;
                block.adds = dtypes == 2;
                if (dtypes == 4 || dtypes == 6) block.slice_dtype = WEFT_F32;
                if (block.adds || block.slice_dtype != block.dtype) block.slice_offset = SLICE;
                begin_world(ranks, local, &block);
                check(&block);
                visited++;
            }
        }
    }
    return visited;
}

static void check_reduction(const struct weft_comm_block *block)
{
    world.scratch_bytes =
        weft_nccl_scratch_bytes(&world.shape, block->dtype, block->slice_elements);
    cr_assert_leq(world.scratch_bytes, MOST_BYTES);
    cr_assert_eq(reduce(block), 1, "all of it fits");
    check_sums(block);
}

Test(exchange, sums_are_in_rank_order_within_nodes_and_then_over_them)
{
    cr_assert_gt(visit_blocks(check_reduction), 500);
}

static void check_parts(const struct weft_comm_block *block)
{
    world.scratch_bytes = weft_nccl_scratch_bytes(&world.shape, block->dtype, 5);
    const int64_t parts = reduce(block);
    cr_assert_eq(parts, (block->slice_elements + 4) / 5);
    check_sums(block);
}

Test(exchange, scratch_that_is_too_small_makes_parts_with_the_same_bits)
{
    cr_assert_gt(visit_blocks(check_parts), 500);
}

Test(exchange, parts_begin_where_sums_are_fastest)
{
    const struct weft_nccl_shape shape = {.ranks = 3, .ranks_per_node = 3};
    cr_assert_eq(weft_nccl_part_elements(&shape, WEFT_BF16, 1000, 6 * 500), 448);
    cr_assert_eq(weft_nccl_part_elements(&shape, WEFT_BF16, 500, 6 * 500), 500);
    cr_assert_eq(weft_nccl_part_elements(&shape, WEFT_BF16, 500, 5), 0, "no element fits");
}

Test(exchange, order_of_levels_shows_in_these_bits)
{
    int differ = 0;
    world.shape = (struct weft_nccl_shape){.ranks = 8, .ranks_per_node = 8};
    for (int i = 0; i < 1000; i++) {
        world.shape.ranks_per_node = 8;
        const float flat = sum_of(WEFT_F32, i, -0.0F);
        world.shape.ranks_per_node = 2;
        differ += flat != sum_of(WEFT_F32, i, -0.0F);
    }
    cr_assert_gt(differ, 50);
}

static void check_all_reduction(const struct weft_comm_block *block)
{
    struct weft_comm_block in_place = *block;
    if (block->adds || block->slice_dtype != block->dtype) return;
    in_place.slice_offset = -1;
    world.scratch_bytes =
        weft_nccl_scratch_bytes(&world.shape, block->dtype, block->slice_elements);
    reduce(&in_place);
    for (int32_t r = 0; r < world.shape.ranks; r++) {
        struct weft_nccl_shape shape = world.shape;
        shape.rank = r;
        world.steps[r].n = 1;
        world.steps[r].steps[0] = weft_nccl_gather_step(&shape, &in_place);
    }
    walk_step(0);
    const int64_t size = weft_dtype_bytes(block->dtype);
    for (int32_t r = 0; r < world.shape.ranks; r++) {
        for (int64_t i = 0; i < block->slice_elements * world.shape.ranks; i++) {
            const float got = load_element(block->dtype, world.of[r].arena + FULL + i * size),
                        expected = sum_of(block->dtype, i, -0.0F);
            cr_assert(memcmp(&got, &expected, sizeof got) == 0);
        }
    }
}

Test(exchange, all_reduce_is_that_and_a_gather_in_place)
{
    cr_assert_gt(visit_blocks(check_all_reduction), 500);
}

Test(exchange, one_all_to_all_moves_a_whole_block_of_one_level)
{
    const struct weft_comm_block block = {
        .full_offset = FULL, .slice_offset = SLICE, .slice_elements = 64};
    struct weft_nccl_steps steps;
    const struct weft_nccl_shape flat = {.rank = 1, .ranks = 4, .ranks_per_node = 4},
                                 nodes = {.rank = 1, .ranks = 4, .ranks_per_node = 2};
    weft_nccl_reduce_steps(&flat, &block, 0, 64, &steps);
    cr_assert(steps.n == 2 && weft_nccl_is_dense(&steps.steps[0]));
    weft_nccl_reduce_steps(&flat, &block, 0, 32, &steps);
    cr_assert_not(weft_nccl_is_dense(&steps.steps[0]), "a part of each slice");
    weft_nccl_reduce_steps(&nodes, &block, 0, 64, &steps);
    cr_assert(steps.n == 4 && !weft_nccl_is_dense(&steps.steps[0]) &&
              weft_nccl_is_dense(&steps.steps[2]));
}
