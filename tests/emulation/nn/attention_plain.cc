/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/emulation/nn/grouped.h"
#include "tests/emulation/nn/head.h"

static void outputs_and_gradients_are_near(void)
{
    std::vector<struct shape> shapes = {{1, 1, 1, 3}, {2, 20, 2, 8}, {1, 70, 1, 5}, {1, 33, 3, 16}};
    for (int i = 0; emu_thorough() && i < 10; i++) {
        shapes.push_back(
            {1 + emu_below(2), 1 + emu_below(100), 1 + emu_below(3), 1 + emu_below(70)});
    }
    for (struct shape s : shapes) {
        struct call c(s, WEFT_F32, true);
        c.run_plain();
        for (int64_t i = 0; i < s.samples * s.heads; i++) {
            const struct head h(&c, i / s.heads, i % s.heads);
            expect_output(&h);
            expect_gradients(&h);
        }
    }
}

/* In 16 bits scores are rounded too. So it is near the fast way, but less near to fp64. */
static void is_near_the_fast_way_in_16_bits(void)
{
    for (enum weft_dtype dtype : {WEFT_BF16, WEFT_F16}) {
        const struct shape s = {1, 70, 2, 32};
        struct call plain(s, dtype, true), fast(s, dtype);
        memcpy(fast.qkv.data, plain.qkv.data, plain.qkv.bytes());
        memcpy(fast.d_output.data, plain.d_output.data, plain.d_output.bytes());
        plain.run_plain();
        fast.run();
        for (int64_t i = 0; i < plain.output.count; i++) {
            emu_near("output", plain.output.get(i), fast.output.get(i), 12 * half_ulp(dtype));
        }
        for (int64_t i = 0; i < plain.d_qkv.count; i++) {
            emu_near("gradient", plain.d_qkv.get(i), fast.d_qkv.get(i), 60 * half_ulp(dtype));
        }
    }
}

static void what_causality_forbids_is_0(void)
{
    struct call c({1, 40, 1, 8}, WEFT_F32, true);
    emu_buffer<float> p("probabilities", EMU_WRITE, 1600);
    const struct weft_cuda_heads heads = weft_cuda_heads_of(&c.attention);
    emu_expect(weft_cuda_attend_plain(&heads, NULL, p.data, c.output.data, NULL) == 0, "launched");
    for (int i = 0; i < 40; i++) {
        for (int j = i + 1; j < 40; j++) {
            emu_expect(p[i * 40 + j] == 0, "probability %d, %d", i, j);
        }
    }
    c.run_plain();
}

static void heads_share_keys_and_values(void)
{
    for (enum weft_dtype dtype : all_dtypes) {
        struct call c({2, 20, 4, 12}, dtype, true);
        struct grouped_call g(&c, 2, true);
        const int64_t n = c.s.samples * c.s.heads * c.s.seq_len * c.s.seq_len;
        elements p("probabilities", EMU_WRITE, dtype, n), d("d scores", EMU_WRITE, dtype, n);
        emu_bytes sums("sums", EMU_SCRATCH, weft_cuda_head_sums_bytes(&g.heads));
        c.run_plain();
        emu_expect(weft_cuda_attend_plain(&g.heads, NULL, p.data, NULL, NULL) == 0 &&
                       weft_cuda_attend_plain(&g.heads, NULL, p.data, g.output.data, NULL) == 0,
                   "forward is launched");
        emu_expect(weft_cuda_attend_plain_backward(&g.heads, NULL, p.data, c.d_output.data, d.data,
                                                   (float *)(void *)sums.data, &g.to, NULL) == 0,
                   "backward is launched");
        g.compare(half_ulp(dtype));
    }
}

static void masks_scalars_and_caps_are_near_fp64(void)
{
    const struct weft_cuda_mask masks[] = {{true, 0, 0, NULL, 0},  {false, 5, 0, NULL, 0},
                                           {false, 1, 0, NULL, 0}, {false, 0, 1.5f, NULL, 0},
                                           {true, 0, 2, NULL, 0},  {false, 7, 3, NULL, 0}};
    for (const struct weft_cuda_mask &mask : masks) {
        struct call c({1, 1 + emu_below(20), 2, 6}, WEFT_F32, true);
        c.scalar = 3;
        c.mask = mask;
        c.run_plain();
        for (int64_t i = 0; i < 2; i++) {
            const struct head h(&c, 0, i);
            expect_output(&h);
            expect_gradients(&h);
        }
    }
}

/* A sample with some padding, and one with padding alone. */
static void rows_of_padding_are_no_keys(void)
{
    for (enum weft_dtype dtype : all_dtypes) {
        struct call c({2, 12, 2, 6}, dtype, true);
        emu_buffer<int32_t> tokens("tokens", EMU_READ, 24);
        for (int64_t i = 0; i < tokens.n; i++) {
            tokens[i] = i >= 12 || i % 5 == 2 ? 7 : (int32_t)emu_below(7);
        }
        c.mask = {true, 0, 0, tokens.data, 7};
        c.run_plain();
        for (int64_t i = 0; i < 4 && dtype == WEFT_F32; i++) {
            const struct head h(&c, i / 2, i % 2);
            expect_output(&h);
            expect_gradients(&h);
        }
        for (int64_t i = 0; i < c.output.count / 2; i++) {
            emu_expect(c.output.get(c.output.count / 2 + i) == 0, "output %lld", (long long)i);
        }
        for (int64_t i = 0; i < c.d_qkv.count / 2; i++) {
            emu_expect(c.d_qkv.get(c.d_qkv.count / 2 + i) == 0, "gradient %lld", (long long)i);
        }
    }
}

int main(int argc, char **argv)
{
    emu_begin(argc, argv);
    emu_case("outputs and gradients are near fp64", outputs_and_gradients_are_near);
    emu_case_without_bits("is near the fast way in 16 bits", is_near_the_fast_way_in_16_bits);
    emu_case("what causality forbids is 0", what_causality_forbids_is_0);
    emu_case("heads share keys and values", heads_share_keys_and_values);
    emu_case("masks, scalars and caps are near fp64", masks_scalars_and_caps_are_near_fp64);
    emu_case("rows of padding are no keys", rows_of_padding_are_no_keys);
    return emu_end({"product_tile<float, float>", "product_tile<bf16, bf16>",
                    "masked_softmax<float>", "softmax_backward<f16>"});
}
