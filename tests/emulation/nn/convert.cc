/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/emulation/nn/common.h"

/* Fills every kind of number: special ones, and with --all every exponent. */
static void fill_with_all_kinds(const emu_buffer<float> &x)
{
    static const float special[] = {0,       -0.0f,   1,        -1,        1e-40f,
                                    -1e-45f, 65504,   65519.9f, 65520,     3e38f,
                                    1e-8f,   6.1e-5f, INFINITY, -INFINITY, NAN};
    for (int64_t i = 0; i < x.n; i++) {
        const int64_t kind = i % 4;
        if (kind == 0) {
            x[i] = special[emu_below(sizeof(special) / sizeof(special[0]))];
        } else if (kind == 1) {
            x[i] = (float)emu_normal();
        } else {
            x[i] = weft_float_of((uint32_t)emu_below((int64_t)1 << 32));
        }
    }
}

static void fills_every_byte(void)
{
    for (int64_t bytes : some_sizes()) {
        for (int64_t shift : some_shifts()) {
            emu_bytes to("to", EMU_WRITE, bytes, shift);
            emu_expect(weft_cuda_fill(to.data, 0x5a, bytes, NULL) == 0, "launched");
            emu_expect(std::all_of(to.data, to.data + bytes, [](int b) { return b == 0x5a; }),
                       "%lld bytes at %lld", (long long)bytes, (long long)shift);
        }
    }
}

static void copies_from_anywhere_to_anywhere(void)
{
    for (int64_t bytes : some_sizes()) {
        for (int64_t shift : some_shifts()) {
            for (int64_t apart : {0, 1, 2, 4, 16}) {
                emu_bytes from("from", EMU_READ, bytes, shift),
                    to("to", EMU_WRITE, bytes, shift + apart);
                for (int64_t i = 0; i < bytes; i++) {
                    from[i] = (unsigned char)emu_below(256);
                }
                weft_cuda_copy(to.data, from.data, bytes, NULL);
                same_bytes("copy", to.data, from.data, bytes);
            }
        }
    }
}

static void widens_and_narrows_like_the_cpu(void)
{
    for (int64_t n : some_sizes()) {
        for (int64_t shift : some_shifts()) {
            for (enum weft_dtype dtype : all_dtypes) {
                emu_buffer<float> x("x", EMU_READ, n, shift), back("back", EMU_WRITE, n, shift);
                elements y("y", EMU_WRITE, dtype, n, shift % 2);
                std::vector<unsigned char> narrow(y.bytes() + 1);
                std::vector<float> wide((size_t)n + 1);
                fill_with_all_kinds(x);
                weft_cuda_narrow(dtype, n, x.data, y.data, NULL);
                weft_cuda_widen(dtype, n, y.data, back.data, NULL);
                cpu()->narrow(dtype, n, x.data, narrow.data());
                cpu()->widen(dtype, n, narrow.data(), wide.data());
                same_bytes("narrow", y.data, narrow.data(), y.n);
                same_bytes("widen", back.data, wide.data(), n * 4);
            }
        }
    }
}

/* All numbers that 16 bits can be. */
static void widens_all_16_bits(void)
{
    enum { ALL = 1 << 16 };
    for (enum weft_dtype dtype : {WEFT_BF16, WEFT_F16}) {
        const int64_t n = emu_thorough() ? ALL : ALL / 16;
        elements x("x", EMU_READ, dtype, n);
        emu_buffer<float> y("y", EMU_WRITE, n);
        std::vector<float> wide((size_t)n + 1);
        for (int64_t i = 0; i < n; i++) {
            ((uint16_t *)(void *)x.data)[i] = (uint16_t)(i * (ALL / n) + i % (ALL / n));
        }
        weft_cuda_widen(dtype, n, x.data, y.data, NULL);
        cpu()->widen(dtype, n, x.data, wide.data());
        same_bytes("widen", y.data, wide.data(), n * 4);
    }
}

static void adds_like_the_cpu(void)
{
    for (int64_t n : some_sizes()) {
        for (enum weft_dtype dtype : all_dtypes) {
            for (bool accumulate : {false, true}) {
                for (int64_t shift : {0, 3}) {
                    emu_buffer<float> x("x", EMU_READ, n, shift);
                    elements y("y", accumulate ? EMU_BOTH : EMU_WRITE, dtype, n, shift);
                    fill_normal(x, 3);
                    if (accumulate) y.fill_normal(2);
                    std::vector<unsigned char> wanted(y.data, y.data + y.n);
                    emu_buffer<float> times("times", EMU_READ, 1);
                    const bool scaled = shift > 0;
                    times[0] = 1.3f;
                    cpu()->layers[dtype]->add_to(n, scaled ? 0.37f * 1.3f : 0.37f, x.data,
                                                 accumulate, wanted.data());
                    weft_cuda_add(dtype, n, 0.37f, scaled ? times.data : NULL, x.data, accumulate,
                                  y.data, NULL);
                    same_bytes("add", y.data, wanted.data(), y.n);
                }
            }
        }
    }
}

/* Puts one value that the kernel looks for at a random place among others. */
static void sees(enum weft_dtype dtype, int64_t n, float value, int64_t terms, bool wanted)
{
    const int64_t shift = emu_below(9);
    elements x("x", EMU_READ, dtype, n, shift);
    emu_buffer<uint32_t> flag("flag", EMU_BOTH, 1);
    x.fill_normal(1);
    x.set(emu_below(n), value);
    flag[0] = 0;
    weft_cuda_look(dtype, n, x.data, terms, flag.data, NULL);
    emu_expect(flag[0] == (wanted ? 1u : 0u), "%g among %lld of dtype %d, %lld terms: %u",
               (double)value, (long long)n, (int)dtype, (long long)terms, flag[0]);
}

static void looks_for_what_is_not_finite(void)
{
    for (int64_t n : some_sizes()) {
        if (n == 0) continue;
        for (enum weft_dtype dtype : all_dtypes) {
            for (float bad : {INFINITY, -INFINITY, NAN, -NAN}) {
                sees(dtype, n, bad, 1, true);
            }
            sees(dtype, n, dtype == WEFT_F16 ? 65504.0f : 3.38e38f, 1, false);
            sees(dtype, n, -1e-45f, 1, false);
        }
    }
}

/* Terms of 2^k are too large for a sum of 2^(128 - k) of them; 2^(k - 1) is not. */
static void looks_for_what_may_not_add_up(void)
{
    for (enum weft_dtype dtype : all_dtypes) {
        const int end = dtype == WEFT_F16 ? 16 : 128;
        for (int64_t terms : {2, 3, 4, 7, 8, 1000}) {
            const int bits = (int)ceil(log2((double)terms));
            sees(dtype, 37, ldexpf(1, end - 1 - bits), terms, true);
            sees(dtype, 37, ldexpf(1, end - 2 - bits), terms, false);
        }
    }
}

static void keeps_a_flag_that_was_set(void)
{
    emu_buffer<float> x("x", EMU_READ, 100);
    emu_buffer<uint32_t> flag("flag", EMU_BOTH, 1);
    fill_normal(x, 1);
    flag[0] = 1;
    weft_cuda_look(WEFT_F32, 100, x.data, 1, flag.data, NULL);
    emu_expect(flag[0] == 1, "what another look has found stays");
}

/* Each element is read once, in whole sectors. */
static void moves_no_byte_too_many(void)
{
    enum { N = 4096 };
    emu_watch_limit({1.001, 0, 1.001});
    emu_buffer<float> x("x", EMU_READ, N), z("z", EMU_WRITE, N);
    elements y("y", EMU_WRITE, WEFT_BF16, N);
    fill_normal(x, 1);
    weft_cuda_narrow(WEFT_BF16, N, x.data, y.data, NULL);
    weft_cuda_widen(WEFT_BF16, N, y.data, z.data, NULL);
    weft_cuda_copy(z.data, x.data, N * 4, NULL);
    weft_cuda_fill(z.data, 0, N * 4, NULL);
    emu_watch_limit({});
}

/* Elements between rows keep their values. */
static void moves_rows(void)
{
    const int64_t shapes[][4] = {{3, 8, 8, 24}, {5, 7, 9, 7}, {1, 16, 16, 16}, {9, 12, 40, 20}};
    for (const int64_t(&s)[4] : shapes) {
        for (enum weft_dtype dtype : all_dtypes) {
            const int64_t rows = s[0], width = s[1], x_stride = s[2], y_stride = s[3];
            emu_buffer<float> dense("dense", EMU_READ, rows * width);
            elements x("x", EMU_READ, dtype, rows * x_stride),
                y("y", EMU_BOTH, dtype, rows * y_stride), z("z", EMU_BOTH, dtype, rows * y_stride);
            fill_normal(dense, 1);
            x.fill_normal(1);
            y.fill_normal(1);
            z.fill_normal(1);
            const float apart = y_stride > width ? y.get(width) : 0;
            weft_cuda_narrow_rows(dtype, rows, width, dense.data, y_stride, y.data, NULL);
            weft_cuda_copy_rows(dtype, rows, width, x_stride, x.data, y_stride, z.data, NULL);
            for (int64_t i = 0; i < rows * width; i++) {
                unsigned char narrow[4];
                set_element(dtype, narrow, 0, dense[i]);
                const int64_t row = i / width, column = i % width;
                emu_expect(y.get(row * y_stride + column) == element_at(dtype, narrow, 0) &&
                               z.get(row * y_stride + column) == x.get(row * x_stride + column),
                           "row %lld, column %lld", (long long)row, (long long)column);
            }
            if (y_stride > width) emu_expect(y.get(width) == apart, "elements between rows");
        }
    }
}

int main(int argc, char **argv)
{
    emu_begin(argc, argv);
    emu_case("fill: every byte", fills_every_byte);
    emu_case("copy: from anywhere to anywhere", copies_from_anywhere_to_anywhere);
    emu_case("widen and narrow: the CPU's bits", widens_and_narrows_like_the_cpu);
    emu_case("widen: all 16 bits", widens_all_16_bits);
    emu_case("add: the CPU's bits", adds_like_the_cpu);
    emu_case("look: what is not finite", looks_for_what_is_not_finite);
    emu_case("look: what may not add up", looks_for_what_may_not_add_up);
    emu_case("look: a flag stays", keeps_a_flag_that_was_set);
    emu_case("no byte too many", moves_no_byte_too_many);
    emu_case("moves rows", moves_rows);
    return emu_end({"each", "fill_op", "copy_op<unsigned char>", "copy_op<unsigned int>",
                    "copy_op<unsigned short>", "convert_op<float, bf16>", "convert_op<f16, float>",
                    "add_op<bf16, true>", "look_op<unsigned short>", "rows_op<float, bf16>",
                    "rows_op<f16, f16>"});
}
