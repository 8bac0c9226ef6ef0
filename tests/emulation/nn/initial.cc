/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/emulation/nn/common.h"

#include "runtime/nn/cuda/kernels/initial.h"

static void sets_every_element(void)
{
    for (int64_t n : some_sizes()) {
        for (int64_t shift : some_shifts()) {
            for (enum weft_dtype dtype : all_dtypes) {
                elements to("to", EMU_WRITE, dtype, n, shift);
                std::vector<float> wide((size_t)n + 1, 1.001f);
                std::vector<unsigned char> wanted(to.bytes() + 1);
                emu_expect(weft_cuda_set(dtype, n, 1.001f, to.data, NULL) == 0, "launched");
                cpu()->narrow(dtype, n, wide.data(), wanted.data());
                same_bytes("set", to.data, wanted.data(), to.n);
            }
        }
    }
}

static void compare_normal(const struct weft_normal &law, int64_t first, enum weft_dtype dtype,
                           int64_t n, int64_t shift)
{
    elements to("to", EMU_WRITE, dtype, n, shift);
    std::vector<float> wide((size_t)n + 1);
    std::vector<unsigned char> wanted(to.bytes() + 1);
    emu_expect(weft_cuda_normal(&law, first, dtype, n, to.data, NULL) == 0, "launched");
    cpu()->normal(&law, first, n, wide.data());
    cpu()->narrow(dtype, n, wide.data(), wanted.data());
    same_bytes("normal", to.data, wanted.data(), to.n);
}

static void normal_numbers_are_the_cpus(void)
{
    const int64_t firsts[] = {0, 3, ((int64_t)1 << 32) - 5};
    const struct weft_normal laws[] = {
        {1, 2, 1}, {0xfedcba9876543210, 0x123456789abcdef0, 0.02}, {7, 1, 1e-39}};
    int64_t turn = 0;
    for (int64_t n : some_sizes()) {
        for (int64_t shift : some_shifts()) {
            for (enum weft_dtype dtype : all_dtypes) {
                compare_normal(laws[turn % 3], firsts[turn / 3 % 3], dtype, n, shift);
                turn++;
            }
        }
    }
}

/* Enough numbers for all quarters of the cosine and most powers of the logarithm. */
static void many_normal_numbers_are_the_cpus(void)
{
    const struct weft_normal law = {42, 11, 0.02};
    compare_normal(law, 1, WEFT_F32, emu_thorough() ? 1 << 20 : 1 << 15, 0);
}

static void uniform_numbers_are_the_cpus(void)
{
    for (int64_t n : some_sizes()) {
        for (enum weft_dtype dtype : all_dtypes) {
            elements to("to", EMU_WRITE, dtype, n, n % 3);
            std::vector<float> wide((size_t)n + 1);
            std::vector<unsigned char> wanted(to.bytes() + 1);
            emu_expect(weft_cuda_uniform(3, dtype, n, to.data, NULL) == 0, "launched");
            for (int64_t i = 0; i < n; i++) {
                wide[(size_t)i] = (float)(2 * weft_uniform_of(1, 3, (uint64_t)i) - 1);
            }
            cpu()->narrow(dtype, n, wide.data(), wanted.data());
            same_bytes("uniform", to.data, wanted.data(), to.n);
        }
    }
}

int main(int argc, char **argv)
{
    emu_begin(argc, argv);
    emu_case("set: every element", sets_every_element);
    emu_case("normal: the CPU's bits", normal_numbers_are_the_cpus);
    emu_case("normal: many numbers", many_normal_numbers_are_the_cpus);
    emu_case("uniform: the CPU's bits", uniform_numbers_are_the_cpus);
    return emu_end({"each", "uniform_op<bf16>", "set_op<float>", "set_op<bf16>", "normal_op<float>",
                    "normal_op<f16>"});
}
