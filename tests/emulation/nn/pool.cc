/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/emulation/nn/common.h"

struct shape {
    int64_t samples, seq_len, width;
};
static const struct shape shapes[] = {{1, 1, 1}, {3, 7, 5}, {2, 16, 64}, {4, 3, 300}};

/* Compares with plain loops, as in runtime/nn/cpu/layers/loss.c. */
static void means_are_the_cpus(void)
{
    for (struct shape s : shapes) {
        for (enum weft_dtype dtype : all_dtypes) {
            elements x("x", EMU_READ, dtype, s.samples * s.seq_len * s.width),
                y("y", EMU_WRITE, dtype, s.samples * s.width);
            std::vector<unsigned char> wanted((size_t)y.n);
            x.fill_normal(1);
            weft_cuda_pool(dtype, s.samples, s.seq_len, s.width, x.data, y.data, NULL);
            for (int64_t i = 0; i < y.count; i++) {
                float sum = 0;
                for (int64_t row = 0; row < s.seq_len; row++) {
                    sum += x.get((i / s.width * s.seq_len + row) * s.width + i % s.width);
                }
                set_element(dtype, wanted.data(), i, sum / (float)s.seq_len);
            }
            same_bytes("means", y.data, wanted.data(), y.n);
        }
    }
}

static void gradients_are_spread(void)
{
    for (struct shape s : shapes) {
        for (enum weft_dtype dtype : all_dtypes) {
            elements dy("dy", EMU_READ, dtype, s.samples * s.width),
                dx("dx", EMU_WRITE, dtype, s.samples * s.seq_len * s.width);
            std::vector<unsigned char> wanted((size_t)dx.n);
            dy.fill_normal(1);
            weft_cuda_spread(dtype, s.samples, s.seq_len, s.width, dy.data, dx.data, NULL);
            for (int64_t i = 0; i < dx.count; i++) {
                const int64_t sample = i / (s.seq_len * s.width);
                set_element(dtype, wanted.data(), i,
                            dy.get(sample * s.width + i % s.width) / (float)s.seq_len);
            }
            same_bytes("gradients", dx.data, wanted.data(), dx.n);
        }
    }
}

int main(int argc, char **argv)
{
    emu_begin(argc, argv);
    emu_case("means: the CPU's bits", means_are_the_cpus);
    emu_case("gradients are spread", gradients_are_spread);
    return emu_end(
        {"pool<float>", "pool<bf16>", "pool<f16>", "spread<float>", "spread<bf16>", "spread<f16>"});
}
