/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of several stages over two levels: the bits of a serial sum, and the bytes that leave a
 * node. comm-collectives-mpi tests small blocks of all forms. */
#define _GNU_SOURCE /* setenv */
#include <stdlib.h>
#include <string.h>

#include "tests/runtime/comm/mpi/double.h"
#include "tests/runtime/comm/site.h"

/* A stage of a reduction has 174,760 elements of a slice at 2 x 2, and 116,508 at 3 x 2; one of a
 * gather has 524,288. */
enum { SLICE = 600001, FULL = 0, TO = 8 << 20, ARENA_BYTES = 10 << 20 };

struct shape {
    int32_t ranks, per_node;
};

/* Any sign and fraction, and 24 powers of two, so that the order of a sum shows. */
static uint16_t value_of(int32_t rank, int64_t element)
{
    enum { LEAST_POWER = 110, POWERS = 24 };
    const uint32_t x = ((uint32_t)element * 6 + (uint32_t)rank) * 2654435761U;
    const uint32_t power = LEAST_POWER + (x >> 16) % POWERS;
    return (uint16_t)((x >> 31) << 15 | power << 7 | (x >> 8 & 127));
}

static uint16_t sum_of(const struct shape *shape, int64_t element)
{
    float sum = 0;
    for (int32_t first = 0; first < shape->ranks; first += shape->per_node) {
        float of_node = weft_bf16_widen(value_of(first, element));
        for (int32_t i = 1; i < shape->per_node; i++)
            of_node += weft_bf16_widen(value_of(first + i, element));
        sum = first == 0 ? of_node : sum + of_node;
    }
    return weft_bf16_narrow(sum);
}

/* Bytes that this rank has sent to other nodes. */
static int64_t sent_across(const struct site *s, const struct shape *shape)
{
    int64_t bytes = 0;
    for (int32_t r = 0; r < s->ranks; r++)
        if (r / shape->per_node != s->rank / shape->per_node) bytes += mpi_double_sent(r);
    return bytes;
}

/* Each of the node's ranks sends its share of these bytes, and headers. */
static void check_sent(const struct site *s, const struct shape *shape, int64_t before,
                       int64_t bytes_an_element, const char *what)
{
    const int64_t nodes = shape->ranks / shape->per_node;
    const int64_t sent = sent_across(s, shape) - before;
    const int64_t formula = (nodes - 1) * SLICE * bytes_an_element;
    CHECK(sent >= formula && sent <= formula + 64 * (shape->ranks - shape->per_node),
          "%s: %lld bytes, not %lld", what, (long long)sent, (long long)formula);
}

static void fill_block(struct site *s)
{
    uint16_t *full = (uint16_t *)(void *)(s->arena + FULL);
    for (int64_t i = 0; i < (int64_t)SLICE * s->ranks; i++)
        full[i] = value_of(s->rank, i);
}

static void check_sums(const struct shape *shape, const uint16_t *got, int64_t first, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        CHECK(got[i] == sum_of(shape, first + i), "element %lld", (long long)(first + i));
}

static int run_levels(int32_t rank, const struct ranks *ranks, void *argument)
{
    const struct shape *shape = argument;
    struct weft_comm_options options = ranks_options(rank, ranks);
    struct weft_comm_block block = {.full_offset = FULL,
                                    .slice_offset = TO,
                                    .slice_elements = SLICE,
                                    .dtype = WEFT_BF16,
                                    .slice_dtype = WEFT_BF16};
    const uint16_t *full, *slice;
    struct site s;
    options.ranks_per_node = shape->per_node;
    site_open(&s, &options, WEFT_CLOCK_WALL, ARENA_BYTES);
    full = (const uint16_t *)(const void *)(s.arena + FULL);
    slice = (const uint16_t *)(const void *)(s.arena + TO);
    fill_block(&s);
    int64_t before = sent_across(&s, shape);
    weft_comm_reduce_scatter(s.comm, s.channel, &block);
    site_synchronise(&s);
    check_sums(shape, slice, (int64_t)rank * SLICE, SLICE);
    check_sent(&s, shape, before, sizeof(float), "a reduction sends fp32");
    before = sent_across(&s, shape);
    weft_comm_all_gather(s.comm, s.channel, &block);
    site_synchronise(&s);
    check_sums(shape, full, 0, (int64_t)SLICE * s.ranks);
    check_sent(&s, shape, before, sizeof(uint16_t), "a gather");
    fill_block(&s);
    before = sent_across(&s, shape);
    weft_comm_all_reduce(s.comm, s.channel, &block);
    site_synchronise(&s);
    check_sums(shape, full, 0, (int64_t)SLICE * s.ranks);
    check_sent(&s, shape, before, sizeof(float) + sizeof(uint16_t), "both");
    site_close(&s);
    return 0;
}

RANKS_TEST(mpi_levels)
{
    static const struct shape shapes[] = {{4, 2}, {6, 2}, {6, 3}};
    setenv("WEFT_TEST_COMM", "mpi", 1);
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct shape shape = shapes[i];
        CHECK(ranks_run(shape.ranks, run_levels, &shape) == 0, "%d ranks, %d a node", shape.ranks,
              shape.per_node);
    }
    return 0;
}
