/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/emulation/nn/common.h"

struct shape {
    int64_t samples, seq_len, heads, size, apart;
};

static std::vector<struct shape> list_shapes(void)
{
    std::vector<struct shape> all = {{1, 1, 1, 2, 0},    {2, 5, 3, 8, 0},   {1, 9, 2, 64, 16},
                                     {2, 3, 1, 6, 5},    {1, 4, 2, 128, 0}, {1, 2, 1, 600, 0},
                                     {1, 3, 1, 1024, 8}, {3, 7, 5, 20, 4}};
    for (int i = 0; emu_thorough() && i < 30; i++) {
        all.push_back({1 + emu_below(3), 1 + emu_below(20), 1 + emu_below(5),
                       2 * (1 + emu_below(80)), emu_below(9)});
    }
    return all;
}

static void turned_pairs_are_the_cpus(void)
{
    for (struct shape s : list_shapes()) {
        for (enum weft_dtype dtype : all_dtypes) {
            const bool back = s.seq_len % 2 == 0;
            const int64_t stride = s.heads * s.size + s.apart, rows = s.samples * s.seq_len;
            std::vector<float> frequencies((size_t)(s.size / 2));
            elements x("x", EMU_BOTH, dtype, rows * stride);
            std::vector<unsigned char> wanted(x.bytes());
            for (float &f : frequencies) {
                f = (float)emu_uniform();
            }
            x.fill_normal(1);
            memcpy(wanted.data(), x.data, x.bytes());
            const struct weft_cuda_rope rope = {s.samples, s.seq_len,          s.heads, s.size,
                                                stride,    frequencies.data(), back};
            const struct weft_rope_rows of_cpu = {
                s.samples, s.seq_len, 0, s.heads, s.size, stride, frequencies.data(), back};
            emu_expect(weft_cuda_rope(dtype, &rope, x.data, NULL) == 0, "launched");
            cpu()->layers[dtype]->rope(&of_cpu, wanted.data());
            same_bytes("x", x.data, wanted.data(), x.n);
        }
    }
}

static void what_it_cannot_do_is_refused(void)
{
    elements x("x", EMU_BOTH, WEFT_F32, 4);
    const float frequencies[2] = {1, 1};
    x.fill_normal(1);
    struct weft_cuda_rope rope = {1, 1, 1, 3, 4, frequencies, false};
    emu_expect(weft_cuda_rope(WEFT_F32, &rope, x.data, NULL) != 0, "an odd size");
    rope.size = 2 * WEFT_CUDA_ROPE_PAIRS + 2;
    emu_expect(weft_cuda_rope(WEFT_F32, &rope, x.data, NULL) != 0, "too many pairs");
    rope.size = 4;
    emu_expect(weft_cuda_rope(WEFT_F32, &rope, x.data, NULL) == 0, "4 columns");
}

int main(int argc, char **argv)
{
    emu_begin(argc, argv);
    emu_case("turned pairs have the CPU's bits", turned_pairs_are_the_cpus);
    emu_case("what it cannot do is refused", what_it_cannot_do_is_refused);
    return emu_end({"rope_pairs<bf16, 4>", "rope_pairs<float, 2>", "rope_pairs<f16, 1>"});
}
