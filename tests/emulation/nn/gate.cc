/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/emulation/nn/common.h"

/* Columns of gate and up follow each other in a row, and `apart` more columns follow them. */
struct shape {
    int64_t rows, width, apart, shift;
};

static std::vector<struct shape> list_shapes(void)
{
    std::vector<struct shape> all = {{1, 8, 0, 0},   {5, 32, 0, 0}, {7, 20, 0, 0},  {3, 33, 5, 0},
                                     {9, 16, 16, 0}, {2, 1, 0, 1},  {33, 40, 8, 0}, {6, 24, 0, 3}};
    for (int i = 0; emu_thorough() && i < 30; i++) {
        all.push_back({1 + emu_below(40), 1 + emu_below(80), emu_below(9), emu_below(5)});
    }
    return all;
}

static void fill_gate(const elements &x)
{
    static const float special[] = {0, -0.0f, 86, -86, 87, -87, 1e30f, -1e30f};
    x.fill_normal(3);
    for (int64_t i = 0; i < x.count; i += 7) {
        x.set(i, special[emu_below(sizeof(special) / sizeof(special[0]))]);
    }
}

/* A gate's functions here and there. */
struct functions {
    int (*forward)(enum weft_dtype dtype, int64_t rows, int64_t width, int64_t stride,
                   const void *gate, const void *up, void *y, struct CUstream_st *stream);
    int (*backward)(enum weft_dtype dtype, int64_t rows, int64_t width, int64_t stride,
                    const void *gate, const void *up, int64_t dy_stride, const void *dy,
                    void *d_gate, void *d_up, struct CUstream_st *stream);
    void (*weft_layer_kernels::*cpu_forward)(int64_t, int64_t, int64_t, const void *, const void *,
                                             void *);
    void (*weft_layer_kernels::*cpu_backward)(int64_t, int64_t, int64_t, const void *, const void *,
                                              int64_t, const void *, void *, void *);
};
static const struct functions silu = {weft_cuda_gate, weft_cuda_gate_backward,
                                      &weft_layer_kernels::gate,
                                      &weft_layer_kernels::gate_backward};
static const struct functions gelu = {weft_cuda_gate_gelu, weft_cuda_gate_gelu_backward,
                                      &weft_layer_kernels::gate_gelu,
                                      &weft_layer_kernels::gate_gelu_backward};

static void forward_is_the_cpus(const struct functions &f)
{
    for (struct shape s : list_shapes()) {
        for (enum weft_dtype dtype : all_dtypes) {
            const int64_t stride = 2 * s.width + s.apart, up = s.width * element_bytes(dtype);
            elements x("gate and up", EMU_READ, dtype, s.rows * stride, s.shift),
                y("y", EMU_WRITE, dtype, s.rows * s.width, s.shift);
            std::vector<unsigned char> wanted(y.bytes());
            fill_gate(x);
            emu_expect(
                f.forward(dtype, s.rows, s.width, stride, x.data, x.data + up, y.data, NULL) == 0,
                "launched");
            (cpu()->layers[dtype]->*f.cpu_forward)(s.rows, s.width, stride, x.data, x.data + up,
                                                   wanted.data());
            same_bytes("y", y.data, wanted.data(), y.n);
        }
    }
}

/* The gradient of y is dense, or lies in that of up. Columns apart keep their values. */
static void backward_is_the_cpus(const struct functions &f)
{
    for (struct shape s : list_shapes()) {
        for (enum weft_dtype dtype : all_dtypes) {
            const bool in_place = s.rows % 2 == 1;
            const int64_t stride = 2 * s.width + s.apart, up = s.width * element_bytes(dtype);
            elements x("gate and up", EMU_READ, dtype, s.rows * stride, s.shift),
                dense("dy", EMU_READ, dtype, s.rows * s.width, s.shift),
                d("gradients", EMU_BOTH, dtype, s.rows * stride, s.shift);
            std::vector<unsigned char> wanted(d.bytes());
            fill_gate(x);
            d.fill_normal(1);
            dense.fill_normal(1);
            memcpy(wanted.data(), d.data, d.bytes());
            const int64_t dy_stride = in_place ? stride : s.width;
            emu_expect(f.backward(dtype, s.rows, s.width, stride, x.data, x.data + up, dy_stride,
                                  in_place ? d.data + up : dense.data, d.data, d.data + up,
                                  NULL) == 0,
                       "launched");
            (cpu()->layers[dtype]->*f.cpu_backward)(
                s.rows, s.width, stride, x.data, x.data + up, dy_stride,
                in_place ? wanted.data() + up : dense.data, wanted.data(), wanted.data() + up);
            same_bytes("gradients", d.data, wanted.data(), d.n);
        }
    }
}

static void moves_no_byte_too_many(void)
{
    enum { ROWS = 64, WIDTH = 64 };
    emu_watch_limit({1.001, 0, 0});
    for (enum weft_dtype dtype : all_dtypes) {
        const int64_t up = WIDTH * element_bytes(dtype);
        elements x("gate and up", EMU_READ, dtype, ROWS * 2 * WIDTH),
            y("y", EMU_WRITE, dtype, ROWS * WIDTH);
        x.fill_normal(1);
        weft_cuda_gate(dtype, ROWS, WIDTH, 2 * WIDTH, x.data, x.data + up, y.data, NULL);
    }
    emu_watch_limit({});
}

/* Both functions are 0 at 0, and half of the gradient passes there. */
static void a_gate_of_0_is_closed(void)
{
    elements x("gate and up", EMU_READ, WEFT_F32, 2), y("y", EMU_WRITE, WEFT_F32, 2),
        dy("dy", EMU_READ, WEFT_F32, 1), d("gradients", EMU_WRITE, WEFT_F32, 4);
    x.set(0, 0);
    x.set(1, 3);
    dy.set(0, 1);
    weft_cuda_gate(WEFT_F32, 1, 1, 2, x.data, x.data + 4, y.data, NULL);
    weft_cuda_gate_gelu(WEFT_F32, 1, 1, 2, x.data, x.data + 4, y.data + 4, NULL);
    weft_cuda_gate_backward(WEFT_F32, 1, 1, 2, x.data, x.data + 4, 1, dy.data, d.data, d.data + 4,
                            NULL);
    weft_cuda_gate_gelu_backward(WEFT_F32, 1, 1, 2, x.data, x.data + 4, 1, dy.data, d.data + 8,
                                 d.data + 12, NULL);
    emu_expect(y.get(0) == 0 && y.get(1) == 0 && d.get(1) == 0 && d.get(3) == 0, "closed");
    emu_expect(d.get(0) == 1.5f && d.get(2) == 1.5f, "slopes %g and %g", (double)d.get(0),
               (double)d.get(2));
}

int main(int argc, char **argv)
{
    emu_begin(argc, argv);
    emu_case("forward: the CPU's bits", [] { forward_is_the_cpus(silu); });
    emu_case("backward: the CPU's bits", [] { backward_is_the_cpus(silu); });
    emu_case("no byte too many", moves_no_byte_too_many);
    emu_case("GELU forward: the CPU's bits", [] { forward_is_the_cpus(gelu); });
    emu_case("GELU backward: the CPU's bits", [] { backward_is_the_cpus(gelu); });
    emu_case_without_bits("a gate of 0 is closed", a_gate_of_0_is_closed);
    return emu_end({"each<gate_op<bf16, silu_form> >", "each<gate_op<float, silu_form> >",
                    "each<gate_backward_op<f16, silu_form> >",
                    "each<gate_backward_op<float, silu_form> >", "each<gate_op<f16, gelu_form> >",
                    "each<gate_backward_op<bf16, gelu_form> >"});
}
