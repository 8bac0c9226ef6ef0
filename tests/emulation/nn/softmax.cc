/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/emulation/nn/common.h"

struct shape {
    int64_t matrices, width, shift;
};

static std::vector<struct shape> shapes(void)
{
    std::vector<struct shape> all = {{1, 1, 0}, {2, 3, 0}, {3, 16, 0}, {2, 33, 1}, {1, 72, 0}};
    for (int i = 0; emu_thorough() && i < 12; i++) {
        all.push_back({1 + emu_below(3), 1 + emu_below(150), emu_below(9)});
    }
    return all;
}

static void forward_is_the_cpus(void)
{
    for (struct shape s : shapes()) {
        for (enum weft_dtype dtype : all_dtypes) {
            const int64_t n = s.width * s.width;
            elements x("x", EMU_BOTH, dtype, s.matrices * n, s.shift);
            x.fill_normal(3);
            if (x.count > 20) x.set(x.count / 2, -INFINITY);
            std::vector<unsigned char> wanted(x.data, x.data + x.n);
            for (int64_t i = 0; i < s.matrices; i++) {
                cpu()->layers[dtype]->causal_softmax(s.width, 0, s.width, s.width,
                                                     wanted.data() + i * n * element_bytes(dtype));
            }
            emu_expect(
                weft_cuda_masked_softmax(dtype, s.matrices, s.width, false, 0, x.data, NULL) == 0,
                "launched");
            same_bytes("softmax", x.data, wanted.data(), x.n);
        }
    }
}

/* Rows that see all columns, and rows with a window: the CPU hides the columns before it. */
static void other_masks_are_the_cpus(void)
{
    for (struct shape s : shapes()) {
        for (enum weft_dtype dtype : all_dtypes) {
            const int64_t n = s.width * s.width, window = 1 + emu_below(s.width + 2);
            const struct weft_layer_kernels *kernels = cpu()->layers[dtype];
            elements x("x", EMU_BOTH, dtype, s.matrices * n, s.shift),
                y("y", EMU_BOTH, dtype, s.matrices * n, s.shift);
            x.fill_normal(3);
            memcpy(y.data, x.data, x.bytes());
            std::vector<unsigned char> all(x.data, x.data + x.n), some(x.data, x.data + x.n);
            for (int64_t i = 0; i < s.matrices; i++) {
                const int64_t at = i * n * element_bytes(dtype);
                kernels->causal_softmax(s.width, s.width, s.width, s.width, all.data() + at);
                kernels->hide_columns(s.width, 0, window, s.width, some.data() + at);
                kernels->causal_softmax(s.width, 0, s.width, s.width, some.data() + at);
            }
            emu_expect(
                weft_cuda_masked_softmax(dtype, s.matrices, s.width, true, 0, x.data, NULL) == 0 &&
                    weft_cuda_masked_softmax(dtype, s.matrices, s.width, false, window, y.data,
                                             NULL) == 0,
                "launched");
            same_bytes("of all", x.data, all.data(), x.n);
            same_bytes("of a window", y.data, some.data(), y.n);
        }
    }
}

/* Hidden columns of each sample's matrices. */
static void hidden_tokens_are_the_cpus(void)
{
    for (struct shape s : shapes()) {
        for (enum weft_dtype dtype : all_dtypes) {
            const int64_t n = s.width * s.width, samples = 1 + emu_below(3);
            elements x("x", EMU_BOTH, dtype, samples * s.matrices * n, s.shift);
            emu_buffer<int32_t> tokens("tokens", EMU_READ, samples * s.width);
            x.fill_normal(3);
            for (int64_t i = 0; i < tokens.n; i++) {
                tokens[i] = (int32_t)emu_below(3);
            }
            std::vector<unsigned char> wanted(x.data, x.data + x.n);
            for (int64_t i = 0; i < samples; i++) {
                cpu()->layers[dtype]->hide_tokens(
                    s.matrices * s.width, s.width, s.width, tokens.data + i * s.width, 1,
                    wanted.data() + i * s.matrices * n * element_bytes(dtype));
            }
            emu_expect(weft_cuda_hide_tokens(dtype, samples, s.matrices, s.width, tokens.data, 1,
                                             -INFINITY, x.data, NULL) == 0,
                       "launched");
            same_bytes("hidden", x.data, wanted.data(), x.n);
        }
    }
}

/* The kernel does not read masked elements: garbage there changes nothing. */
static void what_is_forbidden_has_no_part(void)
{
    enum { WIDTH = 40 };
    elements x("x", EMU_BOTH, WEFT_F32, WIDTH * WIDTH), y("y", EMU_BOTH, WEFT_F32, WIDTH * WIDTH);
    x.fill_normal(1);
    memcpy(y.data, x.data, x.bytes());
    for (int64_t i = 0; i < WIDTH; i++) {
        for (int64_t j = i + 1; j < WIDTH; j++) {
            y.set(i * WIDTH + j, j % 2 == 0 ? NAN : 1e30f);
        }
    }
    weft_cuda_masked_softmax(WEFT_F32, 1, WIDTH, false, 0, x.data, NULL);
    weft_cuda_masked_softmax(WEFT_F32, 1, WIDTH, false, 0, y.data, NULL);
    same_bytes("softmax", y.data, x.data, x.n);
}

static void backward_is_the_cpus(void)
{
    for (struct shape s : shapes()) {
        for (enum weft_dtype dtype : all_dtypes) {
            const int64_t rows = s.matrices * s.width;
            elements p("p", EMU_READ, dtype, rows * s.width, s.shift),
                d("d", EMU_BOTH, dtype, rows * s.width, s.shift);
            for (int64_t i = 0; i < p.count; i++) {
                p.set(i, (float)emu_uniform());
            }
            d.fill_normal(1);
            std::vector<unsigned char> wanted(d.data, d.data + d.n);
            cpu()->layers[dtype]->softmax_backward(rows, s.width, s.width, p.data, wanted.data());
            emu_expect(weft_cuda_softmax_backward(dtype, rows, s.width, p.data, d.data, NULL) == 0,
                       "launched");
            same_bytes("softmax backward", d.data, wanted.data(), d.n);
        }
    }
}

/* cap 0: none. */
static void loss_is_the_cpus(float cap)
{
    for (struct shape s : shapes()) {
        for (enum weft_dtype dtype : all_dtypes) {
            const int64_t rows = 3 * s.matrices;
            const int64_t stride = s.width + s.width % 3;
            elements x("x", EMU_BOTH, dtype, rows * stride, s.shift);
            emu_buffer<int32_t> targets("targets", EMU_READ, rows);
            emu_buffer<double> losses("losses", EMU_WRITE, rows);
            emu_buffer<uint32_t> bad("bad", EMU_BOTH, 1);
            x.fill_normal(3);
            bad[0] = UINT32_MAX;
            for (int64_t i = 0; i < rows; i++) {
                targets[i] = i % 3 == 1 ? WEFT_LEFT_OUT : (int32_t)emu_below(s.width);
            }
            std::vector<unsigned char> wanted(x.data, x.data + x.n);
            const struct weft_layer_kernels *kernels = cpu()->layers[dtype];
            const double loss = cap > 0 ? kernels->capped_cross_entropy(rows, s.width, stride, cap,
                                                                        targets.data, wanted.data())
                                        : kernels->cross_entropy(rows, s.width, stride,
                                                                 targets.data, wanted.data());
            emu_expect(
                (cap > 0 ? weft_cuda_capped_cross_entropy(dtype, rows, s.width, stride, cap,
                                                          targets.data, x.data, losses.data,
                                                          bad.data, NULL)
                         : weft_cuda_cross_entropy_plain(dtype, rows, s.width, stride, targets.data,
                                                         x.data, losses.data, bad.data, NULL)) == 0,
                "launched");
            double total = 0;
            for (int64_t i = 0; i < rows; i++) {
                total += losses[i];
            }
            same_bytes("gradient", x.data, wanted.data(), x.n);
            emu_expect(total == loss, "loss %.17g, not %.17g", total, loss);
            emu_expect(bad[0] == UINT32_MAX, "all targets are good");
        }
    }
}

static void the_loss_is_the_cpus(void)
{
    loss_is_the_cpus(0);
}

static void the_capped_loss_is_the_cpus(void)
{
    loss_is_the_cpus(2.5f);
}

static void a_target_outside_is_told(void)
{
    enum { ROWS = 9, WIDTH = 37 };
    emu_buffer<float> logits("logits", EMU_BOTH, ROWS * WIDTH);
    emu_buffer<int32_t> targets("targets", EMU_READ, ROWS);
    emu_buffer<double> losses("losses", EMU_WRITE, ROWS);
    emu_buffer<uint32_t> bad("bad", EMU_BOTH, 1);
    fill_normal(logits, 1);
    for (int i = 0; i < ROWS; i++) {
        targets[i] = i == 2 ? WEFT_NO_TARGET : i == 4 ? WIDTH : i == 7 ? -1 : i;
    }
    for (float cap : {0.0f, 3.0f}) {
        bad[0] = UINT32_MAX;
        if (cap > 0)
            weft_cuda_capped_cross_entropy(WEFT_F32, ROWS, WIDTH, WIDTH, cap, targets.data,
                                           logits.data, losses.data, bad.data, NULL);
        else
            weft_cuda_cross_entropy_plain(WEFT_F32, ROWS, WIDTH, WIDTH, targets.data, logits.data,
                                          losses.data, bad.data, NULL);
        emu_expect(bad[0] == 4, "row %u, not 4", bad[0]);
        emu_expect(losses[4] == 0 && losses[7] == 0 && losses[5] > 0, "their losses are 0");
        emu_expect(losses[2] == 0, "no target, no loss");
    }
}

int main(int argc, char **argv)
{
    emu_begin(argc, argv);
    emu_case("forward: the CPU's bits", forward_is_the_cpus);
    emu_case("what is forbidden has no part", what_is_forbidden_has_no_part);
    emu_case("backward: the CPU's bits", backward_is_the_cpus);
    emu_case_without_bits("loss: the CPU's bits", the_loss_is_the_cpus);
    emu_case_without_bits("capped loss: the CPU's bits", the_capped_loss_is_the_cpus);
    emu_case("other masks: the CPU's bits", other_masks_are_the_cpus);
    emu_case("hidden tokens: the CPU's bits", hidden_tokens_are_the_cpus);
    emu_case_without_bits("a target outside is told", a_target_outside_is_told);
    return emu_end(
        {"masked_softmax<float>", "masked_softmax<bf16>", "masked_softmax<f16>",
         "softmax_backward<float>", "softmax_backward<bf16>", "softmax_backward<f16>",
         "logits_cross_entropy<float, plain_form>", "logits_cross_entropy<bf16, plain_form>",
         "logits_cross_entropy<f16, plain_form>", "logits_cross_entropy<float, capped_form>",
         "logits_cross_entropy<bf16, capped_form>", "logits_cross_entropy<f16, capped_form>"});
}
