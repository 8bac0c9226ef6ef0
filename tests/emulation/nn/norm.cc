/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/emulation/nn/common.h"

struct shape {
    int64_t rows, width, shift;
};

/* Rows that fill teams and blocks or do not; widths of whole accesses and lanes or not. */
static std::vector<struct shape> shapes(void)
{
    std::vector<struct shape> all = {{1, 16, 0},  {3, 64, 0},  {70, 48, 0}, {33, 40, 0},
                                     {65, 20, 0}, {5, 33, 0},  {2, 1, 0},   {9, 16, 1},
                                     {4, 768, 0}, {1, 100, 3}, {130, 8, 0}};
    for (int i = 0; emu_thorough() && i < 40; i++) {
        all.push_back({1 + emu_below(140), 1 + emu_below(300), emu_below(9)});
    }
    return all;
}

struct layer {
    struct shape s;
    enum weft_dtype dtype;
    elements x, weight, bias, y;
    emu_buffer<float> mean, rstd;

    layer(struct shape of, enum weft_dtype type, float epsilon = WEFT_NORM_EPSILON)
        : s(of), dtype(type), x("x", EMU_READ, type, of.rows * of.width, of.shift),
          weight("weight", EMU_READ, type, of.width, of.shift),
          bias("bias", EMU_READ, type, of.width, of.shift),
          y("y", EMU_WRITE, type, of.rows * of.width, of.shift), mean("mean", EMU_WRITE, of.rows),
          rstd("rstd", EMU_WRITE, of.rows)
    {
        x.fill_normal(2);
        weight.fill_normal(1);
        bias.fill_normal(1);
        emu_expect(weft_cuda_layer_norm(dtype, s.rows, s.width, epsilon, x.data, weight.data,
                                        bias.data, y.data, mean.data, rstd.data, NULL) == 0,
                   "launched");
    }
};

static void forward_rows(struct shape s, enum weft_dtype dtype, float epsilon = WEFT_NORM_EPSILON)
{
    struct layer l(s, dtype, epsilon);
    std::vector<unsigned char> y(l.y.bytes());
    std::vector<float> mean((size_t)s.rows), rstd((size_t)s.rows);
    cpu()->layers[dtype]->layer_norm(s.rows, s.width, epsilon, l.x.data, l.weight.data, l.bias.data,
                                     y.data(), mean.data(), rstd.data());
    same_bytes("y", l.y.data, y.data(), l.y.n);
    emu_same_bits("mean", s.rows, l.mean.data, mean.data());
    emu_same_bits("rstd", s.rows, l.rstd.data, rstd.data());
}

static void forward_is_the_cpus(void)
{
    for (struct shape s : shapes()) {
        for (enum weft_dtype dtype : all_dtypes) {
            forward_rows(s, dtype);
        }
    }
}

static void other_epsilons_are_the_cpus(void)
{
    for (enum weft_dtype dtype : all_dtypes) {
        forward_rows({9, 16, 1}, dtype, 1e-12f);
        forward_rows({33, 40, 0}, dtype, 0.5f);
    }
}

/* Compares gradients of weight and bias with fp64, within a bound of the sum's length. */
static void expect_sums(const struct layer *l, const elements &dy, const float *sums)
{
    const struct shape s = l->s;
    for (int64_t j = 0; j < s.width; j++) {
        double weight = 0, bias = 0, size = 0;
        for (int64_t i = 0; i < s.rows; i++) {
            const double d = (double)dy.get(i * s.width + j);
            const double x = (double)l->x.get(i * s.width + j);
            const double hat = (x - (double)l->mean[i]) * (double)l->rstd[i];
            weight += d * hat;
            bias += d;
            size += fabs(d) * (fabs(hat) + 1);
        }
        const double most = size * ldexp(1, -24) * 40;
        emu_near("gradient of weight", sums[j], weight, most);
        emu_near("gradient of bias", sums[s.width + j], bias, most);
    }
}

static void backward(struct shape s, enum weft_dtype dtype, bool with_residual)
{
    struct layer l(s, dtype);
    const int64_t n = s.rows * s.width;
    elements dy("dy", EMU_READ, dtype, n, s.shift),
        residual("residual", EMU_READ, dtype, n, s.shift), dx("dx", EMU_WRITE, dtype, n, s.shift);
    emu_buffer<float> sums("sums", EMU_WRITE, 2 * s.width);
    emu_bytes workspace("workspace", EMU_SCRATCH, weft_cuda_layer_norm_bytes(s.rows, s.width));
    std::vector<unsigned char> of_cpu(dx.bytes());
    std::vector<float> cpu_sums(2 * (size_t)s.width);
    dy.fill_normal(1);
    residual.fill_normal(1);
    const struct weft_cuda_norm norm = {
        s.rows,      s.width,     l.x.data, l.weight.data,
        l.mean.data, l.rstd.data, dy.data,  with_residual ? residual.data : NULL};
    emu_expect(
        weft_cuda_layer_norm_backward(dtype, &norm, dx.data, sums.data, workspace.data, NULL) == 0,
        "launched");
    cpu()->layers[dtype]->layer_norm_backward(s.rows, s.width, l.x.data, l.weight.data, l.mean.data,
                                              l.rstd.data, dy.data, norm.residual, of_cpu.data(),
                                              cpu_sums.data());
    same_bytes("dx", dx.data, of_cpu.data(), dx.n);
    expect_sums(&l, dy, sums.data);
    emu_buffer<float> in_order("sums", EMU_WRITE, 2 * s.width);
    weft_cuda_layer_norm_backward(dtype, &norm, NULL, in_order.data, NULL, NULL);
    emu_same_bits("sums in the order of rows", in_order.n, in_order.data, cpu_sums.data());
}

static void backward_is_the_cpus_by_rows_and_near_by_columns(void)
{
    for (struct shape s : shapes()) {
        for (enum weft_dtype dtype : all_dtypes) {
            backward(s, dtype, s.rows % 2 == 0);
        }
    }
    backward({300, 36, 0}, WEFT_BF16, true);
}

static void what_is_not_wanted_is_left_out(void)
{
    struct layer l({5, 32, 0}, WEFT_F32);
    emu_buffer<float> dy("dy", EMU_READ, 5 * 32), dx("dx", EMU_WRITE, 5 * 32),
        sums("sums", EMU_WRITE, 64);
    emu_bytes workspace("workspace", EMU_SCRATCH, weft_cuda_layer_norm_bytes(5, 32));
    fill_normal(dy, 1);
    const struct weft_cuda_norm norm = {5,           32,          l.x.data, l.weight.data,
                                        l.mean.data, l.rstd.data, dy.data,  NULL};
    weft_cuda_layer_norm_backward(WEFT_F32, &norm, dx.data, NULL, NULL, NULL);
    weft_cuda_layer_norm_backward(WEFT_F32, &norm, NULL, sums.data, workspace.data, NULL);
}

/* One row of a block's shared memory, and rows that do not fit there. */
static void long_rows_are_the_cpus(void)
{
    for (enum weft_dtype dtype : all_dtypes) {
        forward_rows({2, 9000, 0}, dtype);
        forward_rows({1, 25000, 0}, dtype);
        backward({1, 13000, 0}, dtype, dtype == WEFT_BF16);
    }
}

/* Rows are read once. */
static void asks_for_whole_sectors(void)
{
    emu_watch_limit({1.001, 0, 0});
    for (enum weft_dtype dtype : all_dtypes) {
        struct layer l({64, 256, 0}, dtype);
    }
    emu_watch_limit({});
}

int main(int argc, char **argv)
{
    emu_begin(argc, argv);
    emu_case("forward: the CPU's bits", forward_is_the_cpus);
    emu_case("backward: the CPU's bits by rows, near fp64 by columns",
             backward_is_the_cpus_by_rows_and_near_by_columns);
    emu_case("what is not wanted is left out", what_is_not_wanted_is_left_out);
    emu_case("long rows: the CPU's bits", long_rows_are_the_cpus);
    emu_case("asks for whole sectors", asks_for_whole_sectors);
    emu_case("other epsilons: the CPU's bits", other_epsilons_are_the_cpus);
    return emu_end({"layer_norm_staged<bf16>", "layer_norm_staged<float>",
                    "layer_norm_dx_staged<f16>", "layer_norm_dx_staged<float>", "layer_norm<float>",
                    "layer_norm_dx<bf16>", "column_stripe<norm_columns<bf16>, 4>",
                    "column_stripe<norm_columns<float>, 1>", "column_chain<norm_columns<f16>"});
}
