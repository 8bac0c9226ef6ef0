/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/emulation/nn/common.h"

struct shape {
    int64_t rows, width, shift, gap;
    double deviation;
};

static std::vector<struct shape> shapes(void)
{
    std::vector<struct shape> all = {{1, 1, 0, 0, 1},       {3, 2, 0, 0, 1},
                                     {5, 7, 1, 2, 3},       {2, 257, 0, 31, 10},
                                     {3, 1000, 3, 24, 0.1}, {2, 4099, 0, 61, 2},
                                     {1, 52001, 5, 7, 1}}; /* too wide for shared memory */
    for (int i = 0; emu_thorough() && i < 30; i++) {
        all.push_back({1 + emu_below(4), 1 + emu_below(5000), emu_below(9), emu_below(64),
                       10 * emu_uniform()});
    }
    return all;
}

/* Compares a row of logits with fp64: the sum of `width` powers, each within 2^-22, and one
 * rounding. */
static void expect_row(enum weft_dtype dtype, int64_t width, int64_t stride,
                       const std::vector<double> &logits, int64_t target, const elements &is,
                       int64_t row, double loss)
{
    double greatest = -INFINITY, sum = 0;
    for (double x : logits) {
        greatest = std::max(greatest, x);
    }
    for (double x : logits) {
        sum += exp(x - greatest);
    }
    for (int64_t j = 0; j < width; j++) {
        const double p = exp(logits[(size_t)j] - greatest) / sum;
        const double wanted = j == target ? p - 1 : p;
        const double range = fabs(logits[(size_t)j] - greatest) + 4;
        const double smallest = dtype == WEFT_F16 ? 0x1p-25 : 0x1p-126;
        const double most = p * range * 0x1p-21 + 0x1p-24 * (j == target) +
                            fabs(wanted) * half_ulp(dtype) + smallest;
        if (!emu_near("gradient", is.get(row * stride + j), wanted, most)) return;
    }
    const double wanted = log(sum) - (logits[(size_t)target] - greatest);
    emu_near("loss", loss, wanted, 1e-6 * (1 + fabs(wanted)));
}

static void gradient_and_loss(struct shape s, enum weft_dtype dtype)
{
    const int64_t stride = s.width + s.gap;
    elements logits("logits", EMU_BOTH, dtype, s.rows * stride, s.shift);
    emu_buffer<int32_t> targets("targets", EMU_READ, s.rows);
    emu_buffer<double> losses("losses", EMU_WRITE, s.rows), total("total", EMU_WRITE, 1);
    emu_buffer<uint32_t> bad("bad", EMU_BOTH, 1);
    std::vector<std::vector<double>> before((size_t)s.rows);
    logits.fill_normal(s.deviation);
    bad[0] = UINT32_MAX;
    for (int64_t i = 0; i < s.rows; i++) {
        targets[i] = (int32_t)emu_below(s.width);
        for (int64_t j = 0; j < s.width; j++) {
            before[(size_t)i].push_back(logits.get(i * stride + j));
        }
    }
    emu_expect(weft_cuda_cross_entropy(dtype, s.rows, s.width, stride, targets.data, logits.data,
                                       losses.data, bad.data, NULL) == 0,
               "launched");
    weft_cuda_loss_total(s.rows, losses.data, false, total.data, NULL);
    double sum = 0;
    for (int64_t i = 0; i < s.rows; i++) {
        expect_row(dtype, s.width, stride, before[(size_t)i], targets[i], logits, i, losses[i]);
        sum += losses[i];
    }
    emu_expect(fabs(total[0] - sum) <= 1e-12 * fabs(sum), "total %g, not %g", total[0], sum);
    emu_expect(bad[0] == UINT32_MAX, "all targets are good");
}

static void gradients_and_losses_are_near(void)
{
    for (struct shape s : shapes()) {
        for (enum weft_dtype dtype : all_dtypes) {
            gradient_and_loss(s, dtype);
        }
    }
}

/* Rows that are held in shared memory, and rows that are too wide for it. */
static void rows_that_are_left_out_become_0(void)
{
    for (int64_t width : {7, 52001}) {
        for (enum weft_dtype dtype : all_dtypes) {
            elements logits("logits", EMU_BOTH, dtype, 3 * width, 1);
            emu_buffer<int32_t> targets("targets", EMU_READ, 3);
            emu_buffer<double> losses("losses", EMU_WRITE, 3);
            emu_buffer<uint32_t> bad("bad", EMU_BOTH, 1);
            logits.fill_normal(1);
            bad[0] = UINT32_MAX;
            targets[0] = targets[2] = 3;
            targets[1] = WEFT_LEFT_OUT;
            weft_cuda_cross_entropy(dtype, 3, width, width, targets.data, logits.data, losses.data,
                                    bad.data, NULL);
            double size = 0;
            for (int64_t i = width; i < 2 * width; i++) {
                size += fabs((double)logits.get(i));
            }
            emu_expect(size == 0 && losses[1] == 0, "gradients of %g and a loss of %g", size,
                       losses[1]);
            emu_expect(losses[0] > 0 && losses[2] > 0 && logits.get(3) < 0, "the others count");
            emu_expect(bad[0] == UINT32_MAX, "all targets are good");
        }
    }
}

static void many_losses_are_added_up(void)
{
    for (int64_t n : {1, 255, 256, 257, 3000}) {
        emu_buffer<double> losses("losses", EMU_READ, n), total("total", EMU_BOTH, 1);
        double sum = 0;
        total[0] = 7;
        for (int64_t i = 0; i < n; i++) {
            losses[i] = emu_uniform();
            sum += losses[i];
        }
        weft_cuda_loss_total(n, losses.data, true, total.data, NULL);
        emu_expect(total[0] == 7 + sum, "%g, not %g", total[0], 7 + sum);
        weft_cuda_loss_total(n, losses.data, false, total.data, NULL);
        emu_expect(total[0] == sum, "%g, not %g", total[0], sum);
    }
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
    bad[0] = UINT32_MAX;
    weft_cuda_cross_entropy(WEFT_F32, ROWS, WIDTH, WIDTH, targets.data, logits.data, losses.data,
                            bad.data, NULL);
    emu_expect(bad[0] == 4, "row %u, not 4", bad[0]);
    emu_expect(losses[4] == 0 && losses[7] == 0 && losses[5] > 0, "their losses are 0");
    emu_expect(losses[2] == 0, "no target, no loss");
}

/* A row that is not finite gives a gradient without finite numbers, so later checks see it. */
static void what_is_not_finite_stays_so(void)
{
    for (float bad_logit : {NAN, INFINITY}) {
        emu_buffer<float> logits("logits", EMU_BOTH, 600);
        emu_buffer<int32_t> targets("targets", EMU_READ, 1);
        emu_buffer<double> losses("losses", EMU_WRITE, 1);
        emu_buffer<uint32_t> bad("bad", EMU_BOTH, 1);
        fill_normal(logits, 1);
        logits[emu_below(600)] = bad_logit;
        targets[0] = 5;
        bad[0] = UINT32_MAX;
        weft_cuda_cross_entropy(WEFT_F32, 1, 600, 600, targets.data, logits.data, losses.data,
                                bad.data, NULL);
        emu_expect(std::isnan(logits[0]) && std::isnan(logits[599]), "the row is none");
        emu_expect(!std::isfinite(losses[0]), "the loss is none");
    }
}

static void columns_that_are_minus_infinity_have_no_part(void)
{
    emu_buffer<float> logits("logits", EMU_BOTH, 700);
    emu_buffer<int32_t> targets("targets", EMU_READ, 1);
    emu_buffer<double> losses("losses", EMU_WRITE, 1);
    emu_buffer<uint32_t> bad("bad", EMU_BOTH, 1);
    for (int i = 0; i < 700; i++) {
        logits[i] = i == 3 || i == 650 ? 1 : -INFINITY;
    }
    targets[0] = 3;
    bad[0] = UINT32_MAX;
    weft_cuda_cross_entropy(WEFT_F32, 1, 700, 700, targets.data, logits.data, losses.data, bad.data,
                            NULL);
    emu_expect(logits[3] == -0.5f && logits[650] == 0.5f && logits[0] == 0, "%g, %g, %g",
               (double)logits[3], (double)logits[650], (double)logits[0]);
    emu_expect(fabs(losses[0] - log(2)) < 1e-6, "loss %g", losses[0]);
}

static void asks_for_whole_sectors(void)
{
    emu_buffer<float> logits("logits", EMU_BOTH, 2 * 4096);
    emu_buffer<int32_t> targets("targets", EMU_READ, 2);
    emu_buffer<double> losses("losses", EMU_WRITE, 2);
    emu_buffer<uint32_t> bad("bad", EMU_BOTH, 1);
    fill_normal(logits, 1);
    targets[0] = targets[1] = 7;
    bad[0] = UINT32_MAX;
    emu_watch_limit({1.001, 0, 1.6});
    weft_cuda_cross_entropy(WEFT_F32, 2, 4096, 4096, targets.data, logits.data, losses.data,
                            bad.data, NULL);
    emu_watch_limit({});
}

int main(int argc, char **argv)
{
    emu_begin(argc, argv);
    emu_case_without_bits("gradients and losses are near fp64", gradients_and_losses_are_near);
    emu_case("many losses are added up", many_losses_are_added_up);
    emu_case_without_bits("a target outside is told", a_target_outside_is_told);
    emu_case_without_bits("what is not finite stays so", what_is_not_finite_stays_so);
    emu_case_without_bits("columns that are -inf have no part",
                          columns_that_are_minus_infinity_have_no_part);
    emu_case_without_bits("asks for whole sectors", asks_for_whole_sectors);
    emu_case_without_bits("rows that are left out become 0", rows_that_are_left_out_become_0);
    return emu_end({"cross_entropy<float, true>", "cross_entropy<bf16, true>",
                    "cross_entropy<f16, true>", "cross_entropy<float, false>",
                    "cross_entropy<bf16, false>", "cross_entropy<f16, false>", "loss_total"});
}
