/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/emulation/nn/common.h"

/* Over ranks */

/* Sums in plain loops with the CPU's conversions, as runtime/comm's communicators do. */
static void expect_sum(const struct weft_cuda_sum *s, const void *before)
{
    for (int64_t i = 0; i < s->n; i++) {
        const bool has_nodes = s->per_node > 1 && s->per_node < s->ranks;
        const int32_t per_node = has_nodes ? s->per_node : 1;
        float sum = s->adds ? element_at(WEFT_F32, before, i) : -0.0f, of_node = -0.0f;
        for (int32_t rank = 0; rank < s->ranks; rank++) {
            const char *from = (const char *)s->from + rank * s->stride_bytes;
            of_node += element_at(s->dtype, rank == s->own ? s->own_from : from, i);
            if ((rank + 1) % per_node != 0) continue;
            sum += of_node;
            of_node = -0.0f;
        }
        unsigned char once[4], wanted[4];
        set_element(s->dtype, once, 0, sum);
        const bool rounds = !s->partial && !s->adds;
        const enum weft_dtype to = rounds ? s->to_dtype : WEFT_F32;
        set_element(to, wanted, 0, rounds ? element_at(s->dtype, once, 0) : sum);
        const int64_t bytes = element_bytes(to);
        if (!same_bytes("sum over ranks", (const char *)s->to + i * bytes, wanted, bytes)) return;
    }
}

static void sum_ranks(enum weft_dtype dtype, int32_t ranks, int32_t per_node, int64_t n,
                      int64_t shift)
{
    enum { KINDS = 4 };
    for (int kind = 0; kind < KINDS; kind++) {
        const bool adds = kind == 3, own = kind == 1;
        if (adds && dtype != WEFT_F32) continue;
        const enum weft_dtype to_dtype = kind == 0 ? dtype : WEFT_F32;
        const int64_t stride = (n + 7 + shift % 2) / 8 * 8;
        elements from("from", EMU_READ, dtype, stride * ranks, shift);
        elements mine("mine", EMU_READ, dtype, n, shift);
        elements to("to", adds ? EMU_BOTH : EMU_WRITE, to_dtype, n, shift);
        from.fill_normal(1);
        mine.fill_normal(1);
        if (adds) to.fill_normal(1);
        const std::vector<unsigned char> before(to.data, to.data + to.n);
        const struct weft_cuda_sum sum = {dtype,
                                          ranks,
                                          own ? ranks / 2 : -1,
                                          n,
                                          stride * element_bytes(dtype),
                                          from.data,
                                          own ? mine.data : NULL,
                                          kind == 2,
                                          adds,
                                          to_dtype,
                                          to.data,
                                          per_node,
                                          0};
        emu_expect(weft_cuda_sum_ranks(&sum, NULL) == 0, "launched");
        expect_sum(&sum, before.data());
    }
}

static void sums_over_ranks_are_in_their_order(void)
{
    for (int64_t n : some_sizes()) {
        for (enum weft_dtype dtype : all_dtypes) {
            for (int32_t ranks : {1, 2, 3, 4, 8, 13}) {
                sum_ranks(dtype, ranks, 0, n, emu_below(2) * emu_below(9));
            }
            sum_ranks(dtype, 4, 2, n, emu_below(2) * emu_below(9));
            sum_ranks(dtype, 6, 3, n, emu_below(2) * emu_below(9));
            sum_ranks(dtype, 3, 1, n, emu_below(2) * emu_below(9));
        }
    }
}

/* The result replaces a rank's operand, as in an AllReduce in place. */
static void a_sum_may_take_the_place_of_an_operand(void)
{
    enum { N = 1000, RANKS = 3 };
    emu_buffer<float> x("x", EMU_BOTH, N * RANKS);
    fill_normal(x, 1);
    std::vector<float> wanted(N);
    for (int i = 0; i < N; i++) {
        wanted[(size_t)i] = (x[i] + x[N + i]) + x[2 * N + i];
    }
    const struct weft_cuda_sum sum = {WEFT_F32, RANKS, -1,       N,          N * 4, x.data, NULL,
                                      false,    false, WEFT_F32, x.data + N, 0,     0};
    weft_cuda_sum_ranks(&sum, NULL);
    emu_same_bits("in place", N, x.data + N, wanted.data());
}

/* Sums of squares */

/* The norm of x as a dtype, in two calls. */
static void expect_norm_of(enum weft_dtype dtype, const emu_buffer<float> &numbers, int64_t shift,
                           const char *what)
{
    elements x("x", EMU_READ, dtype, numbers.n, shift);
    std::vector<float> wide((size_t)numbers.n);
    emu_buffer<uint64_t> bins("bins", EMU_BOTH, WEFT_NORM_WORDS),
        words("words", EMU_WRITE, WEFT_NORM_PACKED_WORDS);
    uint64_t cpu_bins[WEFT_NORM_WORDS] = {0}, wanted[WEFT_NORM_PACKED_WORDS];
    for (int64_t i = 0; i < numbers.n; i++) {
        x.set(i, numbers[i]);
        wide[(size_t)i] = x.get(i);
    }
    memset(bins.data, 0, bins.bytes());
    const int64_t half = x.count / 3;
    weft_cuda_norm_add(bins.data, dtype, x.data, half, NULL);
    weft_cuda_norm_add(bins.data, dtype, x.data + half * element_bytes(dtype), x.count - half,
                       NULL);
    weft_cuda_norm_pack(bins.data, words.data, NULL);
    weft_norm_add(cpu_bins, wide.data(), numbers.n);
    weft_norm_pack(cpu_bins, wanted);
    emu_same_bits(what, WEFT_NORM_PACKED_WORDS, words.data, wanted);
    int finite, cpu_finite;
    const double norm = weft_norm_unpack(words.data, &finite);
    const double cpu_norm = weft_norm_result(cpu_bins, &cpu_finite);
    emu_expect(finite == cpu_finite && (norm == cpu_norm || !finite), "%s: norm %g, CPU's %g", what,
               norm, cpu_norm);
}

static void expect_norm(const emu_buffer<float> &x, const char *what)
{
    for (enum weft_dtype dtype : all_dtypes) {
        expect_norm_of(dtype, x, x.n % 4, what);
    }
}

static void the_norm_is_the_cpus(void)
{
    for (int64_t n : some_sizes()) {
        for (int64_t shift : some_shifts()) {
            emu_buffer<float> x("x", EMU_READ, n);
            fill_normal(x, ldexp(1, (int)emu_below(200) - 100));
            expect_norm_of(WEFT_F32, x, shift, "normal numbers");
            fill_normal(x, 1);
            expect_norm_of(shift % 2 == 0 ? WEFT_BF16 : WEFT_F16, x, shift, "of 16 bits");
        }
    }
}

/* Exponents of the whole range are adjacent: windows that do not hold all, and the ends of the
 * range. */
static void the_norm_takes_all_exponents(void)
{
    for (int64_t n : some_sizes()) {
        emu_buffer<float> x("x", EMU_READ, n);
        for (int64_t i = 0; i < n; i++) {
            x[i] = weft_float_of((uint32_t)emu_below((int64_t)255 << 23));
        }
        expect_norm(x, "any finite number");
        for (int64_t i = 0; i < n; i++) {
            x[i] = weft_float_of((uint32_t)emu_below(3 << 23));
        }
        expect_norm(x, "the smallest numbers");
        for (int64_t i = 0; i < n; i++) {
            x[i] = weft_float_of((uint32_t)(((int64_t)225 << 23) + emu_below((int64_t)30 << 23)));
        }
        expect_norm(x, "the greatest numbers");
    }
}

/* Most gradients of an embedding are 0. */
static void the_norm_takes_zeros(void)
{
    emu_buffer<float> x("x", EMU_READ, 4099);
    for (int64_t i = 0; i < x.n; i++) {
        const bool used = i > 1500 && emu_below(8) == 0;
        x[i] = used ? (float)emu_normal() : i % 2 == 0 ? 0.0f : -0.0f;
    }
    expect_norm(x, "zeros");
}

static void the_norm_of_what_is_not_finite_is_not(void)
{
    for (float bad : {INFINITY, -INFINITY, NAN}) {
        emu_buffer<float> x("x", EMU_READ, 1003);
        fill_normal(x, 1);
        x[emu_below(1003)] = bad;
        expect_norm(x, "not finite");
    }
}

/* The largest sums of a lane and of a warp: equal numbers at the upper end of a window whose lower
 * end has a number too. The rests below 2^48 units are the largest of one sign, or of the other. */
static void the_norm_of_equal_numbers_does_not_overflow(void)
{
    emu_buffer<float> x("x", EMU_READ, 4096);
    for (uint32_t exponent : {25u, 100u, 231u, 253u, 254u}) {
        for (uint32_t mantissa : {0x7fffffu, 0x000fffu, 0x7ff000u, 0x0b504fu, 0x000800u, 0u}) {
            for (int64_t i = 0; i < x.n; i++) {
                x[i] = weft_float_of(exponent << 23 | mantissa);
            }
            expect_norm_of(WEFT_F32, x, 0, "equal numbers");
            x[2047] = weft_float_of((exponent - 23) << 23 | mantissa);
            expect_norm_of(WEFT_F32, x, 0, "equal numbers and the window's least");
            x[2046] = weft_float_of((exponent - 24) << 23 | mantissa);
            expect_norm_of(WEFT_F32, x, 0, "equal numbers and one below the window");
        }
    }
}

/* Sums of hashes. */
static void hashes_are_the_fingerprints(void)
{
    for (int64_t n : some_sizes()) {
        emu_buffer<float> x("x", EMU_READ, n, n % 3);
        emu_buffer<uint64_t> sum("sum", EMU_BOTH, 2);
        const uint64_t name = weft_hash_string("h.0.attn.qkv.weight");
        const int64_t first = emu_below((int64_t)1 << 40);
        uint64_t wanted[2] = {3, 4};
        fill_normal(x, 1);
        sum[0] = 3;
        sum[1] = 4;
        for (int64_t i = 0; i < n; i++) {
            const uint64_t place = hash_place(name, (uint64_t)(first + i));
            wanted[0] += hash_high(place, x[i]);
            wanted[1] += hash_low(place, x[i]);
        }
        weft_cuda_hash_add(sum.data, name, first, x.data, n, NULL);
        emu_same_bits("hash", 2, sum.data, wanted);
    }
}

/* Checks that sums of columns are within a bound of the exact ones by length, for any width. */
static void column_sums_are_near(enum weft_dtype dtype, int64_t rows, int64_t width, int64_t gap,
                                 int64_t shift)
{
    const int64_t stride = width + gap;
    elements x("x", EMU_READ, dtype, rows * stride, shift);
    emu_buffer<float> sums("sums", EMU_WRITE, width);
    emu_bytes workspace("workspace", EMU_SCRATCH, weft_cuda_column_bytes(rows, width));
    x.fill_normal(1);
    weft_cuda_column_sums(dtype, rows, width, stride, x.data, sums.data, workspace.data, NULL);
    for (int64_t j = 0; j < width; j++) {
        double sum = 0, size = 0;
        for (int64_t i = 0; i < rows; i++) {
            sum += (double)x.get(i * stride + j);
            size += fabs((double)x.get(i * stride + j));
        }
        emu_near("column", sums[j], sum, size * 0x1p-24 * 40);
    }
}

static void columns_are_added_up(void)
{
    for (int64_t rows : {1, 7, 8, 127, 128, 129, 300}) {
        for (int64_t width : {1, 3, 32, 129, 132}) {
            for (enum weft_dtype dtype : all_dtypes) {
                column_sums_are_near(dtype, rows, width, 0, rows % 2);
            }
        }
    }
    column_sums_are_near(WEFT_F32, 0, 5, 0, 0);
}

static void columns_of_rows_with_gaps_are_added_up(void)
{
    for (int64_t rows : {1, 8, 129}) {
        for (int64_t width : {3, 129, 132}) {
            for (int64_t gap : {1, 4, 31}) {
                column_sums_are_near(WEFT_F32, rows, width, gap, 0);
                column_sums_are_near(WEFT_BF16, rows, width, gap, 1);
            }
        }
    }
}

static void without_a_workspace_columns_are_the_cpus(void)
{
    for (int64_t rows : {0, 1, 5, 300}) {
        for (enum weft_dtype dtype : all_dtypes) {
            const int64_t width = 37;
            elements x("x", EMU_READ, dtype, rows * width);
            emu_buffer<float> sums("sums", EMU_WRITE, width);
            std::vector<float> wanted((size_t)width);
            x.fill_normal(1);
            weft_cuda_column_sums(dtype, rows, width, width, x.data, sums.data, NULL, NULL);
            cpu()->layers[dtype]->column_sums(rows, width, width, x.data, wanted.data());
            emu_same_bits("columns", width, sums.data, wanted.data());
        }
    }
}

/* A column's bits depend neither on its neighbours nor on the width of accesses. */
static void a_column_has_the_same_bits_beside_others(void)
{
    enum { ROWS = 300, WIDTH = 12 };
    emu_buffer<float> x("x", EMU_READ, ROWS * WIDTH), one("one", EMU_READ, ROWS),
        sums("sums", EMU_WRITE, WIDTH), sum("sum", EMU_WRITE, 1);
    emu_bytes workspace("workspace", EMU_SCRATCH, weft_cuda_column_bytes(ROWS, WIDTH));
    fill_normal(x, 1);
    for (int i = 0; i < ROWS; i++) {
        one[i] = x[i * WIDTH + 5];
    }
    weft_cuda_column_sums(WEFT_F32, ROWS, WIDTH, WIDTH, x.data, sums.data, workspace.data, NULL);
    weft_cuda_column_sums(WEFT_F32, ROWS, 1, 1, one.data, sum.data, workspace.data, NULL);
    emu_same_bits("a column", 1, sum.data, sums.data + 5);
}

static void moves_no_byte_too_many(void)
{
    enum { N = 4096, RANKS = 4 };
    emu_buffer<float> x("x", EMU_READ, N * RANKS), sum("sum", EMU_WRITE, N);
    fill_normal(x, 1);
    const struct weft_cuda_sum all = {WEFT_F32, RANKS, -1,    N,        N * 4,   x.data,
                                      NULL,     false, false, WEFT_F32, sum.data};
    emu_watch_limit({1.001, 1.001, 1.05});
    weft_cuda_sum_ranks(&all, NULL);
    emu_buffer<float> sums("sums", EMU_WRITE, 256);
    emu_bytes workspace("workspace", EMU_SCRATCH, weft_cuda_column_bytes(64, 256));
    weft_cuda_column_sums(WEFT_F32, 64, 256, 256, x.data, sums.data, workspace.data, NULL);
    emu_watch_limit({});
}

int main(int argc, char **argv)
{
    emu_begin(argc, argv);
    emu_case("sums over ranks are in their order", sums_over_ranks_are_in_their_order);
    emu_case("a sum may take the place of an operand", a_sum_may_take_the_place_of_an_operand);
    emu_case("norm: the CPU's bits", the_norm_is_the_cpus);
    emu_case("norm: all exponents", the_norm_takes_all_exponents);
    emu_case("norm: zeros", the_norm_takes_zeros);
    emu_case("norm: what is not finite", the_norm_of_what_is_not_finite_is_not);
    emu_case("norm: equal numbers do not overflow", the_norm_of_equal_numbers_does_not_overflow);
    emu_case("hash: the fingerprint's", hashes_are_the_fingerprints);
    emu_case("columns are added up", columns_are_added_up);
    emu_case("columns without a workspace: the CPU's bits",
             without_a_workspace_columns_are_the_cpus);
    emu_case("a column has the same bits beside others", a_column_has_the_same_bits_beside_others);
    emu_case("no byte too many", moves_no_byte_too_many);
    emu_case("columns of rows with gaps", columns_of_rows_with_gaps_are_added_up);
    return emu_end({"each<sum_op<bf16, bf16", "each<sum_op<f16, float", "squares<numbers<float>",
                    "squares<numbers<bf16>", "squares<numbers<f16>", "norm_pack", "hash_sum",
                    "column_stripe<matrix<f16>, 4>", "column_stripe<matrix<float>, 1>",
                    "column_total", "column_chain<matrix<bf16>"});
}
