/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "runtime/nn/optimizer.h"

static double norm_of(const float *x, int64_t n)
{
    uint64_t bins[WEFT_NORM_WORDS] = {0};
    int finite = 0;
    weft_norm_add(bins, x, n);
    const double norm = weft_norm_result(bins, &finite);
    cr_assert(finite);
    return norm;
}

Test(norm, of_nothing_and_of_zeros_is_zero)
{
    const float zeros[3] = {0.0f, -0.0f, 0.0f};
    cr_assert_eq(norm_of(zeros, 0), 0);
    cr_assert_eq(norm_of(zeros, 3), 0);
}

/* Sums of squares of small integers are exact in double and so is the scaling by powers of two, so
 * sqrt gives the correctly rounded result: at every exponent, denormals included. */
Test(norm, is_correctly_rounded_at_every_exponent)
{
    enum { N = 37 };
    float x[N];
    for (int exponent = -149; exponent <= 127 - 13; exponent++) {
        double sum = 0;
        for (int i = 0; i < N; i++) {
            const int integer =
                (int)weft_rng_below(1, (uint64_t)(exponent + 200), (uint64_t)i, 16383) - 8191;
            sum += (double)integer * integer;
            x[i] = ldexpf((float)integer, exponent);
        }
        cr_assert_eq(norm_of(x, N), ldexp(sqrt(sum), exponent), "exponent %d", exponent);
    }
}

Test(norm, reaches_the_ends_of_the_range)
{
    const float least = ldexpf(1, -149), most[4] = {FLT_MAX, -FLT_MAX, FLT_MAX, FLT_MAX};
    cr_assert_eq(norm_of(&least, 1), (double)least);
    cr_assert_eq(norm_of(most, 4), 2 * (double)FLT_MAX);
}

/* (2^53)^2 + (2^27)^2 + 1 = (2^53 + 1)^2 is a tie between two doubles; the least number breaks it.
 */
Test(norm, rounds_a_tie_to_even_and_sees_the_least_bit_below_it)
{
    const float x[4] = {ldexpf(1, 53), ldexpf(1, 27), 1, ldexpf(1, -149)};
    cr_assert_eq(norm_of(x, 3), ldexp(1, 53));
    cr_assert_eq(norm_of(x, 4), ldexp(1, 53) + 2);
}

Test(norm, has_room_in_its_tables)
{
    enum { N = 1 << 20 };
    float *x = malloc(N * sizeof(*x));
    const float widest = nextafterf(2, 0); /* all bits of the mantissa */
    for (int i = 0; i < N; i++) {
        x[i] = widest;
    }
    cr_assert_eq(norm_of(x, N), 1024 * (double)widest);
    cr_assert_eq(norm_of(x, 600001), sqrt(600001 * ((double)widest * (double)widest)));
    free(x);
}

Test(norm, has_room_in_its_words_for_a_million_ranks)
{
    enum { N = 1 << 18 };
    float *x = malloc(N * sizeof(*x));
    uint64_t bins[WEFT_NORM_WORDS] = {0};
    int finite = 0;
    for (int i = 0; i < N; i++) {
        x[i] = FLT_MAX;
    }
    for (int i = 0; i < 4; i++) {
        weft_norm_add(bins, x, N);
    }
    for (int i = 0; i < WEFT_NORM_WORDS; i++) {
        bins[i] <<= 20; /* 2^20 ranks of 2^20 numbers */
    }
    cr_assert_eq(weft_norm_result(bins, &finite), ldexp(FLT_MAX, 20));
    cr_assert(finite);
    free(x);
}

static void assert_same_sum(const uint64_t a[WEFT_NORM_WORDS], const uint64_t b[WEFT_NORM_WORDS])
{
    uint64_t a_packed[WEFT_NORM_PACKED_WORDS], b_packed[WEFT_NORM_PACKED_WORDS];
    weft_norm_pack(a, a_packed);
    weft_norm_pack(b, b_packed);
    cr_assert_arr_eq(a_packed, b_packed, sizeof(a_packed));
}

static float wide_number(uint64_t i)
{
    const double exponent = 160 * weft_rng_uniform(3, 0, i) - 90;
    return (float)ldexp(weft_rng_normal(3, 1, i), (int)exponent);
}

Test(norm, is_the_same_for_every_order_cut_and_rank)
{
    enum { N = 300007 };
    float *x = malloc(N * sizeof(*x));
    long double sum = 0;
    for (uint64_t i = 0; i < N; i++) {
        x[i] = wide_number(i);
        sum += (long double)x[i] * x[i];
    }
    uint64_t whole[WEFT_NORM_WORDS] = {0}, cut[WEFT_NORM_WORDS] = {0};
    uint64_t ranks[WEFT_NORM_WORDS] = {0};
    weft_norm_add(whole, x, N);
    int finite;
    const double norm = weft_norm_result(whole, &finite);
    cr_assert(fabsl((long double)norm / sqrtl(sum) - 1) < 1e-15L);

    for (uint64_t i = N - 1; i > 0; i--) { /* Fisher and Yates */
        const uint64_t j = weft_rng_below(3, 2, i, i + 1);
        const float other = x[i];
        x[i] = x[j];
        x[j] = other;
    }
    for (int64_t at = 0, piece = 0; at < N; piece++) {
        const int64_t n = at + piece % 1001 > N ? N - at : piece % 1001;
        weft_norm_add(cut, x + at, n);
        at += n;
    }
    assert_same_sum(whole, cut);

    for (int rank = 0; rank < 7; rank++) {
        uint64_t own[WEFT_NORM_WORDS] = {0};
        weft_norm_add(own, x + rank * (N / 7), rank < 6 ? N / 7 : N - 6 * (N / 7));
        for (int i = 0; i < WEFT_NORM_WORDS; i++) {
            ranks[i] += own[i];
        }
    }
    cr_assert_eq(weft_norm_result(ranks, &finite), norm);
    free(x);
}

/* Each square to the bin of its exponent. */
static void add_one_by_one(uint64_t bins[WEFT_NORM_WORDS], const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        int exponent = 0;
        const double fraction = frexp(fabs((double)x[i]), &exponent);
        const int e = exponent + 126 > 1 ? exponent + 126 : 1;
        const uint64_t mantissa = (uint64_t)ldexp(fraction, exponent + 150 - e);
        bins[2 * e] += mantissa * mantissa % (1 << 24);
        bins[2 * e + 1] += mantissa * mantissa >> 24;
    }
}

/* Windows at both ends of the range, and numbers that are as far from each other as any below, at
 * and above a window's edge. */
Test(norm, is_exact_wherever_its_windows_are)
{
    enum { MOST = 1200 };
    static float x[MOST];
    for (int top = -140; top <= 127; top++) {
        for (int spread = 0; spread <= 34; spread += 2) {
            const int n = (int)weft_rng_below(5, (uint64_t)spread, (uint64_t)(top + 140), MOST);
            uint64_t got[WEFT_NORM_WORDS] = {0}, expected[WEFT_NORM_WORDS] = {0};
            for (int i = 0; i < n; i++) {
                const int below =
                    (int)weft_rng_below(5, 100, (uint64_t)i, (uint64_t)spread + 1) + 1;
                x[i] = ldexpf((float)weft_rng_uniform(5, 101, (uint64_t)i) + 1, top - below);
            }
            if (n > 0) x[n - 1] = -nextafterf(ldexpf(1, top), 0);
            weft_norm_add(got, x, n);
            add_one_by_one(expected, x, n);
            assert_same_sum(got, expected);
        }
    }
}

Test(norm, tells_of_numbers_that_are_not_finite)
{
    static const uint32_t bits[] = {0x7f800000, 0xff800000, 0x7fc00000, 0xffffffff, 0x7f800001};
    for (int i = 0; i < 5; i++) {
        float x[9] = {1, 2, 3};
        uint64_t bins[WEFT_NORM_WORDS] = {0};
        int finite = 1;
        memcpy(&x[i + 4], &bits[i], sizeof(float));
        weft_norm_add(bins, x, 9);
        cr_assert_eq(weft_norm_result(bins, &finite), INFINITY);
        cr_assert_not(finite);
    }
}

Test(norm, packed_words_are_the_same_sum)
{
    enum { N = 30011, RANKS = 5 };
    static float x[N];
    uint64_t whole[WEFT_NORM_WORDS] = {0}, sum[WEFT_NORM_PACKED_WORDS] = {0};
    int finite = 0;
    for (uint64_t i = 0; i < N; i++) {
        x[i] = wide_number(i);
    }
    x[0] = FLT_MAX;
    x[1] = ldexpf(1, -149);
    weft_norm_add(whole, x, N);
    for (int rank = 0; rank < RANKS; rank++) {
        uint64_t own[WEFT_NORM_WORDS] = {0}, words[WEFT_NORM_PACKED_WORDS];
        const int64_t n = rank < RANKS - 1 ? N / RANKS : N - (RANKS - 1) * (N / RANKS);
        weft_norm_add(own, x + rank * (N / RANKS), n);
        weft_norm_pack(own, words);
        for (int i = 0; i < WEFT_NORM_PACKED_WORDS; i++) {
            cr_assert_leq(words[i], UINT32_MAX);
            sum[i] += words[i];
        }
    }
    cr_assert_eq(weft_norm_unpack(sum, &finite), weft_norm_result(whole, &finite));
    cr_assert(finite);

    x[2] = INFINITY;
    weft_norm_add(whole, x, 3);
    weft_norm_pack(whole, sum);
    cr_assert_eq(weft_norm_unpack(sum, &finite), INFINITY);
    cr_assert_not(finite);
}

Test(norm, packed_words_have_room_for_a_trillion_numbers)
{
    enum { N = 1 << 18 };
    float *x = malloc(N * sizeof(*x));
    uint64_t bins[WEFT_NORM_WORDS] = {0}, words[WEFT_NORM_PACKED_WORDS];
    int finite = 0;
    for (int i = 0; i < N; i++) {
        x[i] = FLT_MAX;
    }
    weft_norm_add(bins, x, N);
    for (int i = 0; i < WEFT_NORM_WORDS; i++) {
        bins[i] <<= 22; /* 2^40 of them on one rank */
    }
    weft_norm_pack(bins, words);
    cr_assert_eq(weft_norm_unpack(words, &finite), ldexp(FLT_MAX, 20));
    cr_assert(finite);
    free(x);
}
