/* SPDX-License-Identifier: Apache-2.0 */
/* Every collective against plain loops, at 1 to 4 ranks of one node and at 2 x 2, 3 x 2 and 2 x 3,
 * at sizes that divide nothing. The sums must have the bits of a sum in canonical order: two ranks
 * cannot show an order, three and four do. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "tests/runtime/comm/site.h"

enum { ELEMENT_BYTES = sizeof(float), ARENA_BYTES = 1 << 18, FROM = 256, TO = 1 << 17 };

static const int64_t sizes[] = {1, 7, 128, 384, 2047, 2048, 2176, 5 * 1024 + 128};
enum { N_SIZES = sizeof sizes / sizeof sizes[0] };

static const float sentinel = -12345.0F;

/* A value of widely varying magnitude, so that the order of a sum shows in its bits. */
static float value_of(int32_t rank, int64_t element)
{
    double x = weft_rng_uniform(7, (uint64_t)rank, (uint64_t)element) - 0.5;
    uint64_t power = weft_rng_below(8, (uint64_t)rank, (uint64_t)element, 12);
    return (float)(x * (double)(UINT64_C(1) << power));
}

static int32_t ranks_per_node; /* of this process's test */
static int32_t idle_ranks;     /* the last ones, which reductions leave out */

/* A value of a rank as it is summed. */
typedef float operand_fn(int dtype, int32_t rank, int64_t element);

static float wide_operand(int dtype, int32_t rank, int64_t element)
{
    (void)dtype;
    return value_of(rank, element);
}

/* In rank order within each node, then over the nodes. The ranks of a single node are added one
 * after the other to the sum before. */
static float canonical_sum(operand_fn *operand, int dtype, int32_t ranks, int64_t element,
                           float before)
{
    const int32_t at_once = ranks > ranks_per_node ? ranks_per_node : 1;
    const int32_t working = ranks - idle_ranks;
    float sum = before;
    for (int32_t first = 0; first < working; first += at_once) {
        float of_node = operand(dtype, first, element);
        for (int32_t i = first + 1; i < first + at_once && i < working; i++)
            of_node += operand(dtype, i, element);
        sum += of_node;
    }
    return sum;
}

static float sum_of(int32_t ranks, int64_t element)
{
    return canonical_sum(wide_operand, 0, ranks, element, -0.0f);
}

static float backward_sum_of(int32_t ranks, int64_t element)
{
    float sum = value_of(ranks - 1, element);
    for (int32_t rank = ranks - 2; rank >= 0; rank--)
        sum += value_of(rank, element);
    return sum;
}

/* Fills the arena with the sentinel, and n values of this rank at `offset`. */
static void fill(struct site *s, int64_t offset, int64_t n, int64_t first)
{
    float *all = site_floats(s, 0);
    for (int64_t i = 0; i < ARENA_BYTES / ELEMENT_BYTES; i++)
        all[i] = sentinel;
    for (int64_t i = 0; i < n; i++)
        site_floats(s, offset)[i] = value_of(s->rank, first + i);
}

/* Whether nothing but [offset, offset + n elements) and [FROM, + m elements) was written. */
static void check_untouched(struct site *s, int64_t offset, int64_t n, int64_t m)
{
    const float *all = site_floats(s, 0);
    int64_t from = FROM / ELEMENT_BYTES, to = offset / ELEMENT_BYTES;
    for (int64_t i = 0; i < ARENA_BYTES / ELEMENT_BYTES; i++) {
        if ((i >= from && i < from + m) || (i >= to && i < to + n)) continue;
        CHECK(all[i] == sentinel, "element %lld of the arena was written", (long long)i);
    }
}

static void check_bits(const float *got, float expected, const char *what, int64_t element)
{
    CHECK(memcmp(got, &expected, sizeof expected) == 0, "%s: element %lld is %a, not %a", what,
          (long long)element, (double)*got, (double)expected);
}

static void test_all_gather(struct site *s, int64_t n, bool in_place)
{
    int64_t slice_bytes = n * ELEMENT_BYTES;
    const struct weft_comm_block block = {
        .full_offset = TO, .slice_offset = in_place ? -1 : FROM, .slice_elements = n};
    fill(s, in_place ? TO + s->rank * slice_bytes : FROM, n, 0);
    weft_comm_all_gather(s->comm, s->channel, &block);
    site_synchronise(s);
    for (int64_t i = 0; i < n * s->ranks; i++)
        check_bits(site_floats(s, TO) + i, value_of((int32_t)(i / n), i % n), "all_gather", i);
    check_untouched(s, TO, n * s->ranks, in_place ? 0 : n);
}

static void test_reduce_scatter(struct site *s, int64_t n, bool in_place)
{
    const struct weft_comm_block block = {.full_offset = FROM,
                                          .slice_offset = in_place ? -1 : TO,
                                          .slice_elements = n,
                                          .idle = idle_ranks};
    int64_t to = in_place ? FROM + s->rank * n * ELEMENT_BYTES : TO;
    fill(s, FROM, n * s->ranks, 0);
    weft_comm_reduce_scatter(s->comm, s->channel, &block);
    site_synchronise(s);
    for (int64_t i = 0; i < n; i++) {
        check_bits(site_floats(s, to) + i, sum_of(s->ranks, s->rank * n + i), "reduce_scatter", i);
    }
    for (int64_t i = 0; i < n * s->ranks; i++) { /* the source stays, but for the result */
        if (in_place && i / n == s->rank) continue;
        check_bits(site_floats(s, FROM) + i, value_of(s->rank, i), "source of reduce_scatter", i);
    }
    check_untouched(s, to, n, n * s->ranks);
}

static uint16_t narrow(enum weft_dtype dtype, float x)
{
    return dtype == WEFT_BF16 ? weft_bf16_narrow(x) : weft_f16_narrow(x);
}

static float widen(enum weft_dtype dtype, uint16_t x)
{
    return dtype == WEFT_BF16 ? weft_bf16_widen(x) : weft_f16_widen(x);
}

static float narrow_operand(int dtype, int32_t rank, int64_t i)
{
    return widen((enum weft_dtype)dtype, narrow((enum weft_dtype)dtype, value_of(rank, i)));
}

/* The sum over ranks of the rounded values, rounded once more unless it is partial. */
static float narrow_sum_of(enum weft_dtype dtype, int32_t ranks, int64_t i, bool partial)
{
    const float sum = canonical_sum(narrow_operand, (int)dtype, ranks, i, -0.0f);
    return partial ? sum : widen(dtype, narrow(dtype, sum));
}

static void fill_narrow(struct site *s, enum weft_dtype dtype, int64_t from, int64_t n)
{
    uint16_t *x = (uint16_t *)(void *)(s->arena + from);
    for (int64_t i = 0; i < n; i++)
        x[i] = narrow(dtype, value_of(s->rank, i));
}

/* Gathered as they are; summed in fp32 and rounded once, into 16 bits and, widened again, fp32. A
 * partial sum is not rounded. */
static void test_narrow(struct site *s, enum weft_dtype dtype, int64_t n)
{
    struct weft_comm_block block = {.full_offset = FROM,
                                    .slice_offset = TO,
                                    .slice_elements = n,
                                    .dtype = dtype,
                                    .slice_dtype = dtype,
                                    .idle = idle_ranks};
    const uint16_t *out = (const uint16_t *)(const void *)(s->arena + TO);
    const uint16_t *full = (const uint16_t *)(const void *)(s->arena + FROM);
    for (int wide = 0; wide < 3; wide++) {
        block.slice_dtype = wide ? WEFT_F32 : dtype;
        block.partial = wide == 2;
        fill_narrow(s, dtype, FROM, n * s->ranks);
        weft_comm_reduce_scatter(s->comm, s->channel, &block);
        site_synchronise(s);
        for (int64_t i = 0; i < n; i++) {
            float got = wide ? site_floats(s, TO)[i] : widen(dtype, out[i]);
            check_bits(&got, narrow_sum_of(dtype, s->ranks, s->rank * n + i, block.partial),
                       "narrow sum", i);
        }
    }
    block.slice_dtype = dtype;
    block.partial = false;
    fill_narrow(s, dtype, FROM, n * s->ranks);
    weft_comm_all_reduce(s->comm, s->channel, &block);
    site_synchronise(s);
    for (int64_t i = 0; i < n * s->ranks; i++) {
        float got = widen(dtype, full[i]);
        check_bits(&got, narrow_sum_of(dtype, s->ranks, i, false), "narrow all_reduce", i);
    }
    fill_narrow(s, dtype, TO, n);
    weft_comm_all_gather(s->comm, s->channel, &block);
    site_synchronise(s);
    for (int64_t i = 0; i < n * s->ranks; i++) {
        CHECK(full[i] == narrow(dtype, value_of((int32_t)(i / n), i % n)),
              "narrow all_gather: element %lld", (long long)i);
    }
}

/* An AllReduce of partial sums: in fp32, rounded once, and then widened or added. */
static void test_partials(struct site *s, enum weft_dtype dtype, int64_t n)
{
    const int64_t all = n * s->ranks;
    struct weft_comm_block block = {.full_offset = FROM,
                                    .slice_offset = TO,
                                    .slice_elements = n,
                                    .dtype = dtype,
                                    .slice_dtype = WEFT_F32,
                                    .of_partials = true,
                                    .idle = idle_ranks};
    for (int adds = 0; adds <= (dtype == WEFT_F32); adds++) {
        block.adds = adds > 0;
        fill(s, FROM, all, 0);
        /* All ranks hold the same sums of earlier rounds. */
        for (int64_t i = 0; i < all; i++)
            site_floats(s, TO)[i] = value_of(s->ranks, i);
        weft_comm_all_reduce(s->comm, s->channel, &block);
        site_synchronise(s);
        for (int64_t i = 0; i < all; i++) {
            const float before = adds > 0 ? value_of(s->ranks, i) : -0.0f;
            const float sum = canonical_sum(wide_operand, 0, s->ranks, i, before);
            const float once = dtype == WEFT_F32 ? sum : widen(dtype, narrow(dtype, sum));
            check_bits(site_floats(s, TO) + i, once, "partials", i);
        }
    }
}

/* A ReduceScatter of partial sums: this rank's slice of the same. */
static void test_scattered_partials(struct site *s, enum weft_dtype dtype, int64_t n)
{
    for (int adds = 0; adds <= (dtype == WEFT_F32); adds++) {
        for (int wide = 0; wide < 2; wide++) {
            const struct weft_comm_block block = {
                .full_offset = FROM,
                .slice_offset = TO,
                .slice_elements = n,
                .dtype = dtype,
                .slice_dtype = wide > 0 ? WEFT_F32 : dtype,
                .of_partials = true,
                .adds = adds > 0,
                .idle = idle_ranks,
            };
            const uint16_t *halves = (const uint16_t *)(const void *)(s->arena + TO);
            fill(s, FROM, n * s->ranks, 0);
            for (int64_t i = 0; i < n; i++)
                site_floats(s, TO)[i] = value_of(s->ranks, i);
            weft_comm_reduce_scatter(s->comm, s->channel, &block);
            site_synchronise(s);
            for (int64_t i = 0; i < n; i++) {
                const float before = adds > 0 ? value_of(s->ranks, i) : -0.0f;
                const float sum = canonical_sum(wide_operand, 0, s->ranks, s->rank * n + i, before);
                const float once = dtype == WEFT_F32 ? sum : widen(dtype, narrow(dtype, sum));
                const float got =
                    block.slice_dtype == WEFT_F32 ? site_floats(s, TO)[i] : widen(dtype, halves[i]);
                check_bits(&got, once, "scattered partials", i);
            }
        }
    }
}

/* Each rank is the owner once. Its block gets the sum, and no other; then all get its block. */
static void test_owned(struct site *s, enum weft_dtype dtype, int64_t n)
{
    const int64_t all = n * s->ranks;
    struct weft_comm_block block = {.full_offset = FROM,
                                    .slice_offset = TO, /* ignored */
                                    .slice_elements = n,
                                    .dtype = dtype,
                                    .slice_dtype = dtype,
                                    .idle = idle_ranks,
                                    .owned = true};
    const uint16_t *halves = (const uint16_t *)(const void *)(s->arena + FROM);
    for (block.owner = 0; block.owner < s->ranks; block.owner++) {
        fill(s, FROM, all, 0);
        if (dtype != WEFT_F32) fill(s, FROM, (all + 1) / 2, 0);
        if (dtype != WEFT_F32) fill_narrow(s, dtype, FROM, all);
        for (int sent = 0; sent < 2; sent++) {
            if (sent == 0)
                weft_comm_reduce(s->comm, s->channel, &block);
            else
                weft_comm_broadcast(s->comm, s->channel, &block);
            site_synchronise(s);
            for (int64_t i = 0; i < all; i++) {
                const bool summed = sent > 0 || block.owner == s->rank;
                const float sum = dtype == WEFT_F32 ? sum_of(s->ranks, i)
                                                    : narrow_sum_of(dtype, s->ranks, i, false);
                const float own = dtype == WEFT_F32 ? value_of(s->rank, i)
                                                    : narrow_operand((int)dtype, s->rank, i);
                const float got =
                    dtype == WEFT_F32 ? site_floats(s, FROM)[i] : widen(dtype, halves[i]);
                check_bits(&got, summed ? sum : own, sent > 0 ? "broadcast" : "reduce", i);
            }
            check_untouched(s, TO, 0, dtype == WEFT_F32 ? all : (all + 1) / 2);
        }
    }
}

/* Zeros below zero add up to one below zero. */
static void test_negative_zero(struct site *s, enum weft_dtype dtype)
{
    enum { N = 7 };
    const struct weft_comm_block block = {
        .full_offset = FROM, .slice_elements = N, .dtype = dtype, .slice_dtype = dtype};
    uint16_t *full = (uint16_t *)(void *)(s->arena + FROM);
    for (int i = 0; i < N * s->ranks; i++)
        full[i] = narrow(dtype, -0.0F);
    weft_comm_all_reduce(s->comm, s->channel, &block);
    site_synchronise(s);
    for (int i = 0; i < N * s->ranks; i++)
        CHECK(full[i] == narrow(dtype, -0.0F), "element %d is %04x", i, full[i]);
}

static void test_all_reduce(struct site *s, int64_t n)
{
    const struct weft_comm_block block = {
        .full_offset = FROM, .slice_elements = n, .idle = idle_ranks};
    fill(s, FROM, n * s->ranks, 0);
    weft_comm_all_reduce(s->comm, s->channel, &block);
    site_synchronise(s);
    for (int64_t i = 0; i < n * s->ranks; i++)
        check_bits(site_floats(s, FROM) + i, sum_of(s->ranks, i), "all_reduce", i);
    check_untouched(s, FROM, n * s->ranks, 0);
}

static void test_agree(struct site *s, int64_t words)
{
    uint64_t *from = (uint64_t *)(void *)(s->arena + FROM),
             *to = (uint64_t *)(void *)(s->arena + TO);
    for (int64_t i = 0; i < words; i++)
        from[i] = weft_rng_u64(9, (uint64_t)s->rank, (uint64_t)i);
    weft_comm_agree(s->comm, s->channel, FROM, TO, words, 0);
    site_synchronise(s);
    for (int64_t i = 0; i < words; i++) {
        uint64_t sum = 0;
        for (int32_t rank = 0; rank < s->ranks; rank++)
            sum += weft_rng_u64(9, (uint64_t)rank, (uint64_t)i);
        CHECK(to[i] == sum, "agree: word %lld", (long long)i);
    }
}

/* Many collectives without a synchronise between them. Each reads the result of the one before. A
 * source that is reused too early, or a slice that is read too early, shows here. */
static void test_chain(struct site *s)
{
    enum { N = 640, ROUNDS = 200 };
    const struct weft_comm_block gather = {
        .full_offset = TO, .slice_offset = FROM, .slice_elements = N};
    const struct weft_comm_block reduce = {
        .full_offset = TO, .slice_offset = FROM, .slice_elements = N};
    for (int i = 0; i < N; i++)
        site_floats(s, FROM)[i] = (float)(i % 5);
    for (int round = 0; round < ROUNDS; round++) {
        weft_comm_all_gather(s->comm, s->channel, &gather);
        weft_comm_reduce_scatter(s->comm, s->channel, &reduce);
    }
    site_synchronise(s);
    /* Each round multiplies by the number of ranks, exactly, until it overflows at 3 and 4. */
    for (int i = 0; i < N; i++) {
        float expected = (float)(i % 5);
        for (int round = 0; round < ROUNDS; round++) {
            float once = expected;
            for (int32_t rank = 1; rank < s->ranks; rank++)
                expected += once;
        }
        check_bits(site_floats(s, FROM) + i, expected, "chain", i);
    }
}

static void test_exchange(struct site *s)
{
    struct weft_error err = {.status = WEFT_OK};
    unsigned char mine[4096], all[ROOM_RANKS * 4096];
    for (size_t bytes = 0; bytes <= sizeof mine; bytes = bytes * 2 + 1365) {
        memset(mine, s->rank + 1, sizeof mine);
        memset(all, 0, sizeof all);
        CHECK(weft_comm_exchange(s->comm, mine, bytes, all, &err) == WEFT_OK, "%s", err.text);
        for (size_t i = 0; i < bytes * (size_t)s->ranks; i++)
            CHECK(all[i] == i / bytes + 1, "byte %zu", i);
    }
    for (uint32_t round = 0; round < 1000; round++) {
        uint32_t values[ROOM_RANKS], value = round * 10 + (uint32_t)s->rank;
        CHECK(weft_comm_exchange(s->comm, &value, sizeof value, values, &err) == WEFT_OK, "%s",
              err.text);
        for (int32_t rank = 0; rank < s->ranks; rank++)
            CHECK(values[rank] == round * 10 + (uint32_t)rank, "round %u", round);
    }
    CHECK(weft_comm_exchange(s->comm, mine, 4097, all, &err) == WEFT_E_INTERNAL, "too large");
}

/* A rank's flag reaches all with the next sum over ranks, and not before. */
static void test_flag(struct site *s)
{
    enum { FLAG = 4096 };
    struct weft_error err = {.status = WEFT_OK};
    _Atomic uint32_t *flag = (_Atomic uint32_t *)(void *)(s->arena + FLAG);
    weft_comm_carry(s->comm, FLAG);
    for (int32_t raising = 0; raising < s->ranks; raising++) {
        atomic_store(flag, 0);
        for (int kind = 0; kind < 2; kind++) {
            CHECK(atomic_load(flag) == 0, "nobody has raised a flag");
            CHECK(weft_comm_exchange(s->comm, NULL, 0, NULL, &err) == WEFT_OK, "%s", err.text);
        }
        if (s->rank == raising) atomic_store(flag, 1);
        CHECK((atomic_load(flag) != 0) == (s->rank == raising), "known too early");
        weft_comm_agree(s->comm, s->channel, FROM, TO, 1, 0);
        site_synchronise(s);
        CHECK(atomic_load(flag) == 1, "rank %d has raised its flag", raising);
    }
    weft_comm_carry(s->comm, -1);
    atomic_store(flag, 0);
    CHECK(weft_comm_exchange(s->comm, NULL, 0, NULL, &err) == WEFT_OK, "%s", err.text);
    if (s->rank == 0) atomic_store(flag, 1);
    weft_comm_agree(s->comm, s->channel, FROM, TO, 1, 0);
    site_synchronise(s);
    CHECK(atomic_load(flag) == (s->rank == 0), "a flag that nobody asked for");
}

static void test_reductions(struct site *s, int64_t n)
{
    const char *comm = getenv("WEFT_TEST_COMM");
    /* A single GPU has no nodes. */
    const bool partials = comm == NULL || strcmp(comm, "cuda") != 0 || s->ranks > 1;
    test_reduce_scatter(s, n, false);
    test_reduce_scatter(s, n, true);
    test_all_reduce(s, n);
    test_narrow(s, WEFT_BF16, n);
    test_narrow(s, WEFT_F16, n);
    for (int d = 0; d < WEFT_DTYPE_COUNT && partials; d++) {
        test_partials(s, (enum weft_dtype)d, n);
        test_scattered_partials(s, (enum weft_dtype)d, n);
    }
    for (int d = 0; d < WEFT_DTYPE_COUNT && weft_comm_has_owners(s->comm); d++)
        test_owned(s, (enum weft_dtype)d, n);
}

static int run_rank(int32_t rank, const struct ranks *ranks, void *argument)
{
    struct weft_comm_options options = ranks_options(rank, ranks);
    struct site s;
    ranks_per_node = *(const int32_t *)argument;
    options.ranks_per_node = ranks_per_node;
    site_open(&s, &options, WEFT_CLOCK_WALL, ARENA_BYTES);
    CHECK(weft_comm_rank(s.comm) == rank && weft_comm_ranks(s.comm) == ranks->n, "rank");
    CHECK(weft_comm_describe(s.comm)[0] != '\0', "a communicator says what it is");
    for (int i = 0; i < N_SIZES; i++) {
        test_all_gather(&s, sizes[i], false);
        test_all_gather(&s, sizes[i], true);
        test_reductions(&s, sizes[i]);
        test_agree(&s, sizes[i]);
    }
    for (idle_ranks = 1; idle_ranks < ranks->n; idle_ranks++)
        test_reductions(&s, 2047);
    idle_ranks = 0;
    test_negative_zero(&s, WEFT_BF16);
    test_negative_zero(&s, WEFT_F16);
    test_chain(&s);
    test_exchange(&s);
    test_flag(&s);
    site_close(&s);
    return 0;
}

/* Counts the sums whose bits show that they are in canonical order. */
static int64_t count_different(int32_t ranks, int32_t per_node,
                               float other(int32_t ranks, int64_t element))
{
    int64_t differ = 0;
    for (int64_t i = 0; i < 1000; i++) {
        ranks_per_node = per_node;
        const float sum = sum_of(ranks, i);
        ranks_per_node = ranks;
        differ += sum != other(ranks, i);
    }
    return differ;
}

RANKS_TEST(collectives)
{
    int32_t levels[][2] = {{4, 2}, {6, 2}, {6, 3}};
    const char *gpus = getenv("WEFT_DOUBLE_GPUS");
    const int32_t most = gpus != NULL ? atoi(gpus) : ROOM_RANKS;
    for (int32_t ranks = 3; ranks <= MOST_RANKS; ranks++)
        CHECK(count_different(ranks, ranks, backward_sum_of) > 50,
              "the values do not show the order of a sum at %d ranks", ranks);
    for (int32_t ranks = 1; ranks <= MOST_RANKS; ranks++)
        CHECK(ranks_run(ranks, run_rank, &ranks) == 0, "%d ranks", ranks);
    for (size_t i = 0; i < sizeof levels / sizeof levels[0] && levels[i][0] <= most; i++) {
        const int32_t ranks = levels[i][0];
        CHECK(count_different(ranks, levels[i][1], sum_of) > 50,
              "the values do not show the nodes of %d", levels[i][1]);
        CHECK(ranks_run(ranks, run_rank, &levels[i][1]) == 0, "%d ranks, %d a node", ranks,
              levels[i][1]);
    }
    return 0;
}
