/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/emulation/nn/common.h"

/* Fills values on both sides of the functions' bends, and special ones. */
static void fill_around_zero(const elements &x)
{
    static const float special[] = {0,  -0.0f, 10,    -10,    10.001f,  -10.001f, 1e-40f,
                                    88, -126,  1e30f, -1e30f, INFINITY, -INFINITY};
    for (int64_t i = 0; i < x.count; i++) {
        x.set(i, i % 5 == 0 ? special[emu_below(sizeof(special) / sizeof(special[0]))]
                            : (float)(4 * emu_normal()));
    }
}

typedef int one_operand(enum weft_dtype dtype, int64_t n, const void *x, void *y,
                        struct CUstream_st *stream);
typedef int two_operands(enum weft_dtype dtype, int64_t n, const void *x, const void *dy, void *dx,
                         struct CUstream_st *stream);

static void forward_is_the_cpus(const char *name, one_operand *kernel,
                                void (*wanted)(enum weft_dtype, int64_t, const void *, void *))
{
    for (int64_t n : some_sizes()) {
        for (enum weft_dtype dtype : all_dtypes) {
            for (int64_t shift : some_shifts()) {
                elements x("x", EMU_READ, dtype, n, shift),
                    y("y", EMU_WRITE, dtype, n, shift + (n % 3 == 0));
                std::vector<unsigned char> of_cpu(y.bytes() + 1);
                fill_around_zero(x);
                emu_expect(kernel(dtype, n, x.data, y.data, NULL) == 0, "launched");
                wanted(dtype, n, x.data, of_cpu.data());
                same_bytes(name, y.data, of_cpu.data(), y.n);
            }
        }
    }
}

static void backward_is_the_cpus(const char *name, two_operands *kernel,
                                 void (*wanted)(enum weft_dtype, int64_t, const void *,
                                                const void *, void *))
{
    for (int64_t n : some_sizes()) {
        for (enum weft_dtype dtype : all_dtypes) {
            for (int64_t shift : some_shifts()) {
                const bool in_place = shift % 2 == 0;
                elements x("x", EMU_READ, dtype, n, shift),
                    dy("dy", in_place ? EMU_BOTH : EMU_READ, dtype, n, shift),
                    dx("dx", in_place ? EMU_SCRATCH : EMU_WRITE, dtype, n, shift);
                std::vector<unsigned char> of_cpu(dx.bytes() + 1);
                fill_around_zero(x);
                dy.fill_normal(1);
                wanted(dtype, n, x.data, dy.data, of_cpu.data());
                kernel(dtype, n, x.data, dy.data, in_place ? dy.data : dx.data, NULL);
                same_bytes(name, in_place ? dy.data : dx.data, of_cpu.data(), dx.n);
            }
        }
    }
}

static void gelu_is_the_cpus(void)
{
    forward_is_the_cpus("gelu", weft_cuda_gelu,
                        [](enum weft_dtype dtype, int64_t n, const void *x, void *y) {
                            cpu()->layers[dtype]->gelu(n, x, y);
                        });
    backward_is_the_cpus(
        "gelu backward", weft_cuda_gelu_backward,
        [](enum weft_dtype dtype, int64_t n, const void *x, const void *dy, void *dx) {
            cpu()->layers[dtype]->gelu_backward(1, n, x, dy, dx, NULL);
        });
}

static void relu_is_the_cpus(void)
{
    forward_is_the_cpus("relu", weft_cuda_relu,
                        [](enum weft_dtype dtype, int64_t n, const void *x, void *y) {
                            cpu()->layers[dtype]->relu(n, x, y);
                        });
    backward_is_the_cpus("relu backward", weft_cuda_relu_backward,
                         [](enum weft_dtype dtype, int64_t n, const void *y, const void *dy,
                            void *dx) { cpu()->layers[dtype]->relu_backward(n, y, dy, dx); });
}

static void gelu_erf_and_tanh_are_the_cpus(void)
{
    forward_is_the_cpus("gelu_erf", weft_cuda_gelu_erf,
                        [](enum weft_dtype dtype, int64_t n, const void *x, void *y) {
                            cpu()->layers[dtype]->gelu_erf(n, x, y);
                        });
    backward_is_the_cpus("gelu_erf backward", weft_cuda_gelu_erf_backward,
                         [](enum weft_dtype dtype, int64_t n, const void *x, const void *dy,
                            void *dx) { cpu()->layers[dtype]->gelu_erf_backward(n, x, dy, dx); });
    forward_is_the_cpus("tanh", weft_cuda_tanh,
                        [](enum weft_dtype dtype, int64_t n, const void *x, void *y) {
                            cpu()->layers[dtype]->tanh(n, x, y);
                        });
    backward_is_the_cpus("tanh backward", weft_cuda_tanh_backward,
                         [](enum weft_dtype dtype, int64_t n, const void *y, const void *dy,
                            void *dx) { cpu()->layers[dtype]->tanh_backward(n, y, dy, dx); });
}

static void tanh_of_large_numbers_is_1(void)
{
    elements x("x", EMU_READ, WEFT_F32, 2), y("y", EMU_WRITE, WEFT_F32, 2),
        dx("dx", EMU_WRITE, WEFT_F32, 2);
    x.set(0, 50);
    x.set(1, -INFINITY);
    weft_cuda_tanh(WEFT_F32, 2, x.data, y.data, NULL);
    weft_cuda_tanh_backward(WEFT_F32, 2, y.data, x.data, dx.data, NULL);
    emu_expect(y.get(0) == 1 && y.get(1) == -1, "%g and %g", (double)y.get(0), (double)y.get(1));
    emu_expect(dx.get(0) == 0, "a slope of %g", (double)dx.get(0));
}

static const float some_cap = 3.25f;

/* Backward works in place of its gradient. */
static void soft_caps_are_the_cpus(void)
{
    forward_is_the_cpus(
        "soft cap",
        [](enum weft_dtype dtype, int64_t n, const void *x, void *y, struct CUstream_st *stream) {
            return weft_cuda_soft_cap(dtype, n, some_cap, x, y, stream);
        },
        [](enum weft_dtype dtype, int64_t n, const void *x, void *y) {
            memcpy(y, x, (size_t)(n * element_bytes(dtype)));
            cpu()->layers[dtype]->cap(1, n, n, some_cap, y);
        });
    for (int64_t n : some_sizes()) {
        for (enum weft_dtype dtype : all_dtypes) {
            elements x("x", EMU_READ, dtype, n, n % 3), d("d", EMU_BOTH, dtype, n, n % 2);
            fill_around_zero(x);
            d.fill_normal(1);
            std::vector<unsigned char> wanted(d.data, d.data + d.n);
            cpu()->layers[dtype]->cap_backward(1, n, n, some_cap, x.data, wanted.data());
            emu_expect(weft_cuda_soft_cap_backward(dtype, n, some_cap, x.data, d.data, NULL) == 0,
                       "launched");
            same_bytes("soft cap backward", d.data, wanted.data(), d.n);
        }
    }
}

static void what_is_no_number_stays_none(void)
{
    for (enum weft_dtype dtype : all_dtypes) {
        elements x("x", EMU_READ, dtype, 9), y("y", EMU_BOTH, dtype, 9);
        for (int64_t i = 0; i < 9; i++) {
            x.set(i, NAN);
            y.set(i, 1);
        }
        weft_cuda_relu(dtype, 9, x.data, y.data, NULL);
        emu_expect(std::isnan(y.get(0)) && std::isnan(y.get(8)), "relu of dtype %d", (int)dtype);
        weft_cuda_gelu(dtype, 9, x.data, y.data, NULL);
        emu_expect(std::isnan(y.get(0)) && std::isnan(y.get(8)), "gelu of dtype %d", (int)dtype);
        weft_cuda_gelu_backward(dtype, 9, x.data, y.data, y.data, NULL);
        emu_expect(std::isnan(y.get(0)) && std::isnan(y.get(8)), "its slope of dtype %d",
                   (int)dtype);
    }
}

static void moves_no_byte_too_many(void)
{
    enum { N = 4096 };
    emu_watch_limit({1.001, 0, 1.001});
    for (enum weft_dtype dtype : all_dtypes) {
        elements x("x", EMU_READ, dtype, N), dy("dy", EMU_READ, dtype, N),
            y("y", EMU_WRITE, dtype, N);
        x.fill_normal(1);
        dy.fill_normal(1);
        weft_cuda_gelu(dtype, N, x.data, y.data, NULL);
        weft_cuda_gelu_erf(dtype, N, x.data, y.data, NULL);
        weft_cuda_gelu_erf_backward(dtype, N, x.data, dy.data, y.data, NULL);
        weft_cuda_soft_cap(dtype, N, some_cap, x.data, y.data, NULL);
        weft_cuda_gelu_backward(dtype, N, x.data, dy.data, y.data, NULL);
        weft_cuda_relu(dtype, N, x.data, y.data, NULL);
        weft_cuda_relu_backward(dtype, N, x.data, dy.data, y.data, NULL);
    }
    emu_watch_limit({});
}

static void squared_relu_and_sums_are_the_cpus(void)
{
    elements x("x", EMU_READ, WEFT_F32, 1), y("y", EMU_BOTH, WEFT_F32, 1);
    x.set(0, 3);
    y.set(0, 5);
    weft_cuda_add_values(WEFT_F32, 1, x.data, y.data, y.data, NULL);
    emu_expect(y.get(0) == 8, "a sum in place");
    weft_cuda_squared_relu_backward(WEFT_F32, 1, x.data, y.data, y.data, NULL);
    emu_expect(y.get(0) == 48, "a slope in place");
    weft_cuda_squared_relu(WEFT_F32, 1, x.data, y.data, NULL);
    emu_expect(y.get(0) == 9, "a square");
    forward_is_the_cpus("squared relu", weft_cuda_squared_relu,
                        [](enum weft_dtype dtype, int64_t n, const void *x, void *y) {
                            cpu()->layers[dtype]->squared_relu(n, x, y);
                        });
    backward_is_the_cpus(
        "squared relu backward", weft_cuda_squared_relu_backward,
        [](enum weft_dtype dtype, int64_t n, const void *x, const void *dy, void *dx) {
            cpu()->layers[dtype]->squared_relu_backward(n, x, dy, dx);
        });
    backward_is_the_cpus("sum", weft_cuda_add_values,
                         [](enum weft_dtype dtype, int64_t n, const void *x, const void *dy,
                            void *y) { cpu()->layers[dtype]->add(n, x, dy, y); });
}

int main(int argc, char **argv)
{
    emu_begin(argc, argv);
    emu_case("gelu: the CPU's bits", gelu_is_the_cpus);
    emu_case("relu: the CPU's bits", relu_is_the_cpus);
    emu_case("what is no number stays none", what_is_no_number_stays_none);
    emu_case("no byte too many", moves_no_byte_too_many);
    emu_case("squared relu, sums: the CPU's bits", squared_relu_and_sums_are_the_cpus);
    emu_case("GELU by erf, tanh: the CPU's bits", gelu_erf_and_tanh_are_the_cpus);
    emu_case("soft caps: the CPU's bits", soft_caps_are_the_cpus);
    emu_case_without_bits("tanh of large numbers is 1", tanh_of_large_numbers_is_1);
    return emu_end({"each<value_op<f16, gelu_erf_form> >", "each<turn_op<bf16, gelu_erf_form> >",
                    "each<value_op<float, tanh_form> >", "each<turn_op<f16, tanh_form> >",
                    "each<value_op<bf16, soft_cap_form> >", "each<turn_op<float, soft_cap_form> >",
                    "each<value_op<f16, gelu_form> >", "each<turn_op<bf16, gelu_form> >",
                    "each<value_op<float, relu_form> >", "each<turn_op<bf16, relu_form> >",
                    "each<value_op<f16, squared_relu_form> >",
                    "each<turn_op<float, squared_relu_form> >", "each<sum_op<bf16> >"});
}
