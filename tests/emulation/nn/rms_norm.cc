/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/emulation/nn/common.h"

/* Rows of x and y have `apart` more elements. */
struct shape {
    int64_t rows, parts, width, x_apart, y_apart, shift;
};

static std::vector<struct shape> list_shapes(void)
{
    std::vector<struct shape> all = {
        {1, 1, 16, 0, 0, 0},  {3, 1, 64, 0, 0, 0}, {35, 2, 48, 0, 0, 0}, {33, 1, 40, 8, 0, 0},
        {20, 3, 8, 16, 0, 0}, {5, 1, 33, 0, 0, 0}, {7, 2, 5, 3, 1, 1},   {2, 1, 1, 0, 0, 0},
        {70, 4, 4, 4, 4, 0},  {4, 1, 768, 0, 0, 0}};
    for (int i = 0; emu_thorough() && i < 30; i++) {
        all.push_back({1 + emu_below(80), 1 + emu_below(3), 1 + emu_below(90), emu_below(9),
                       emu_below(9), emu_below(5)});
    }
    return all;
}

static const float epsilon = 1e-6f;

struct layer {
    struct shape s;
    enum weft_dtype dtype;
    int64_t x_stride, y_stride;
    elements x, weight, y;
    emu_buffer<float> rstd;
    struct weft_cuda_rms norm;
    struct weft_parts parts;

    layer(struct shape of, enum weft_dtype type, float shift = 0)
        : s(of), dtype(type), x_stride(of.parts * of.width + of.x_apart),
          y_stride(of.parts * of.width + of.y_apart),
          x("x", EMU_READ, type, of.rows * x_stride, of.shift),
          weight("weight", EMU_READ, type, of.width, of.shift),
          y("y", EMU_BOTH, type, of.rows * y_stride, of.shift),
          rstd("rstd", EMU_WRITE, of.rows * of.parts)
    {
        x.fill_normal(2);
        weight.fill_normal(1);
        y.fill_normal(1);
        norm = {s.rows, s.parts, s.width, x_stride, y_stride, x.data, weight.data, shift};
        parts = {s.rows, s.parts, s.width, x_stride, y_stride, shift};
    }
    void run(void) const
    {
        emu_expect(weft_cuda_rms_norm(dtype, &norm, epsilon, y.data, rstd.data, NULL) == 0,
                   "launched");
    }
};

static void forward_rows(struct shape s, enum weft_dtype dtype, float shift = 0)
{
    struct layer l(s, dtype, shift);
    std::vector<unsigned char> y(l.y.bytes());
    std::vector<float> rstd((size_t)(s.rows * s.parts));
    memcpy(y.data(), l.y.data, l.y.bytes());
    l.run();
    cpu()->layers[dtype]->rms_norm(&l.parts, epsilon, l.x.data, l.weight.data, y.data(),
                                   rstd.data());
    same_bytes("y", l.y.data, y.data(), l.y.n);
    emu_same_bits("rstd", l.rstd.n, l.rstd.data, rstd.data());
}

static void forward_is_the_cpus(void)
{
    for (struct shape s : list_shapes()) {
        for (enum weft_dtype dtype : all_dtypes) {
            forward_rows(s, dtype);
        }
    }
}

/* Compares the gradient of the weight with fp64, within a bound of the sum's length. */
static void expect_sums(const struct layer *l, const elements &dy, const float *sums)
{
    const struct shape s = l->s;
    for (int64_t j = 0; j < s.width; j++) {
        double weight = 0, size = 0;
        for (int64_t i = 0; i < s.rows * s.parts; i++) {
            const int64_t row = i / s.parts, at = i % s.parts * s.width + j;
            const double term = (double)dy.get(row * l->y_stride + at) *
                                (double)l->x.get(row * l->x_stride + at) * (double)l->rstd[i];
            weight += term;
            size += fabs(term);
        }
        emu_near("gradient of weight", sums[j], weight, size * ldexp(1, -24) * 40);
    }
}

static void backward_rows(struct shape s, enum weft_dtype dtype, bool with_residual,
                          float shift = 0)
{
    struct layer l(s, dtype, shift);
    elements dy("dy", EMU_READ, dtype, s.rows * l.y_stride, s.shift),
        residual("residual", EMU_READ, dtype, s.rows * l.x_stride, s.shift),
        dx("dx", EMU_BOTH, dtype, s.rows * l.x_stride, s.shift);
    emu_buffer<float> sums("sums", EMU_WRITE, s.width), in_order("sums", EMU_WRITE, s.width);
    emu_bytes workspace("workspace", EMU_SCRATCH, weft_cuda_rms_norm_bytes(&l.norm));
    std::vector<unsigned char> of_cpu(dx.bytes());
    std::vector<float> cpu_sums((size_t)s.width);
    dy.fill_normal(1);
    residual.fill_normal(1);
    dx.fill_normal(1);
    memcpy(of_cpu.data(), dx.data, dx.bytes());
    l.run();
    const void *old = with_residual ? residual.data : NULL;
    emu_expect(weft_cuda_rms_norm_backward(dtype, &l.norm, l.rstd.data, dy.data, old, dx.data,
                                           sums.data, workspace.data, NULL) == 0,
               "launched");
    cpu()->layers[dtype]->rms_norm_backward(&l.parts, l.x.data, l.weight.data, l.rstd.data, dy.data,
                                            old, of_cpu.data(), cpu_sums.data());
    same_bytes("dx", dx.data, of_cpu.data(), dx.n);
    expect_sums(&l, dy, sums.data);
    weft_cuda_rms_norm_backward(dtype, &l.norm, l.rstd.data, dy.data, old, NULL, in_order.data,
                                NULL, NULL);
    emu_same_bits("sums in the order of rows", in_order.n, in_order.data, cpu_sums.data());
}

static void backward_is_the_cpus_by_rows_and_near_by_columns(void)
{
    for (struct shape s : list_shapes()) {
        for (enum weft_dtype dtype : all_dtypes) {
            backward_rows(s, dtype, s.rows % 2 == 0);
        }
    }
    backward_rows({150, 2, 36, 0, 0, 0}, WEFT_BF16, true);
}

/* Weights that 1 is added to, as in Gemma: staged parts, and parts at odd addresses. */
static void shifted_weights_are_the_cpus(void)
{
    for (enum weft_dtype dtype : all_dtypes) {
        for (struct shape s : {shape{5, 2, 48, 0, 0, 0}, shape{7, 2, 5, 3, 1, 1}}) {
            forward_rows(s, dtype, 1);
            backward_rows(s, dtype, dtype != WEFT_F32, 1);
        }
        forward_rows({1, 1, 25000, 0, 0, 0}, dtype, 1);
        backward_rows({1, 1, 13000, 0, 0, 0}, dtype, false, 1);
    }
}

/* One part of a block's shared memory, and parts that do not fit there. */
static void long_rows_are_the_cpus(void)
{
    for (enum weft_dtype dtype : all_dtypes) {
        forward_rows({2, 1, 9000, 0, 0, 0}, dtype);
        forward_rows({1, 1, 25000, 0, 0, 0}, dtype);
        backward_rows({1, 1, 13000, 0, 0, 0}, dtype, dtype == WEFT_BF16);
    }
}

/* Rows are read once. */
static void asks_for_whole_sectors(void)
{
    emu_watch_limit({1.001, 0, 0});
    for (enum weft_dtype dtype : all_dtypes) {
        struct layer l({64, 1, 256, 0, 0, 0}, dtype);
        l.run();
    }
    emu_watch_limit({});
}

int main(int argc, char **argv)
{
    emu_begin(argc, argv);
    emu_case("forward: the CPU's bits", forward_is_the_cpus);
    emu_case("backward: the CPU's bits by rows, near fp64 by columns",
             backward_is_the_cpus_by_rows_and_near_by_columns);
    emu_case("long rows: the CPU's bits", long_rows_are_the_cpus);
    emu_case("asks for whole sectors", asks_for_whole_sectors);
    emu_case("shifted weights: the CPU's bits", shifted_weights_are_the_cpus);
    return emu_end({"rms_norm_staged<bf16>", "rms_norm_staged<float>", "rms_norm_dx_staged<f16>",
                    "rms_norm<float>", "rms_norm_dx<bf16>", "column_stripe<rms_columns<bf16>, 4>",
                    "column_stripe<rms_columns<float>, 1>", "column_chain<rms_columns<f16>"});
}
