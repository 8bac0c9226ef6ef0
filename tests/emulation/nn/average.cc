/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/nn/cuda/kernels/average.h"

#include "tests/emulation/nn/common.h"

static const float nodes = 3, decay = 0.9f, lr = 0.7f;

/* Sums over nodes, an outer optimizer's numbers and a rounded copy. */
struct averaged {
    emu_buffer<float> values, anchor, momentum;
    elements copy;
    bool steps, copies;

    averaged(int64_t n, enum weft_dtype dtype, bool with_outer, bool with_copy, int64_t shift,
             int64_t apart)
        : values("values", EMU_BOTH, n, shift),
          anchor("anchor", with_outer ? EMU_BOTH : EMU_SCRATCH, n, shift + apart),
          momentum("momentum", with_outer ? EMU_BOTH : EMU_SCRATCH, n, shift),
          copy("copy", with_copy ? EMU_WRITE : EMU_SCRATCH, dtype, n, shift), steps(with_outer),
          copies(with_copy)
    {
        fill_normal(values, 1);
        fill_normal(anchor, 1);
        fill_normal(momentum, 0.1);
    }

    struct weft_cuda_average average(void) const
    {
        return {values.data,
                steps ? anchor.data : NULL,
                steps ? momentum.data : NULL,
                copies ? copy.data : NULL,
                copy.dtype,
                values.n,
                nodes,
                decay,
                lr};
    }
};

static void expect_the_formula(const struct averaged &s)
{
    const int64_t n = s.values.n;
    std::vector<float> x(s.values.data, s.values.data + n), a(s.anchor.data, s.anchor.data + n),
        m(s.momentum.data, s.momentum.data + n);
    std::vector<unsigned char> copy((size_t)s.copy.bytes());
    for (size_t i = 0; i < x.size(); i++) {
        x[i] /= nodes;
        if (s.steps) {
            const float change = a[i] - x[i];
            m[i] = decay * m[i] + change;
            a[i] -= lr * (change + decay * m[i]);
            x[i] = a[i];
        }
        set_element(s.copy.dtype, copy.data(), (int64_t)i, x[i]);
    }
    const struct weft_cuda_average average = s.average();
    emu_expect(weft_cuda_average(&average, NULL) == 0, "launched");
    same_bytes("values", s.values.data, x.data(), 4 * n);
    if (s.steps) same_bytes("anchor", s.anchor.data, a.data(), 4 * n);
    if (s.steps) same_bytes("momentum", s.momentum.data, m.data(), 4 * n);
    if (s.copies) same_bytes("copy", s.copy.data, copy.data(), s.copy.n);
}

static void an_average_is_the_cpus(void)
{
    for (int64_t n : some_sizes()) {
        for (enum weft_dtype dtype : all_dtypes) {
            for (int64_t shift : some_shifts()) {
                for (int which = 0; which < 4; which++) {
                    expect_the_formula(
                        averaged(n, dtype, which % 2 == 1, which >= 2, shift, which % 2));
                }
            }
        }
    }
}

static void moves_no_byte_too_many(void)
{
    const struct averaged s(4096, WEFT_BF16, true, true, 0, 0);
    const struct weft_cuda_average average = s.average();
    emu_watch_limit({1.001, 0, 1.05});
    emu_expect(weft_cuda_average(&average, NULL) == 0, "launched");
    emu_watch_limit({});
}

int main(int argc, char **argv)
{
    emu_begin(argc, argv);
    emu_case("an average: the CPU's bits", an_average_is_the_cpus);
    emu_case("no byte too many", moves_no_byte_too_many);
    return emu_end({"each<average_op<float> >", "each<average_op<bf16> >"});
}
