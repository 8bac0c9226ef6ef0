/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/emulation/nn/grouped.h"
#include "tests/emulation/nn/head.h"

static std::vector<struct shape> shapes(void)
{
    std::vector<struct shape> all = {{1, 1, 1, 8},   {1, 64, 1, 32},  {2, 70, 2, 64},
                                     {1, 37, 3, 40}, {1, 129, 1, 96}, {1, 66, 1, 128}};
    for (int i = 0; emu_thorough() && i < 10; i++) {
        all.push_back(
            {1 + emu_below(2), 1 + emu_below(200), 1 + emu_below(3), 8 * (1 + emu_below(16))});
    }
    return all;
}

static void outputs_and_gradients_are_near(void)
{
    for (struct shape s : shapes()) {
        for (enum weft_dtype dtype : {WEFT_BF16, WEFT_F16}) {
            struct call c(s, dtype);
            c.run();
            for (int64_t i = 0; i < s.samples * s.heads; i++) {
                const struct head h(&c, i / s.heads, i % s.heads);
                expect_output(&h);
                expect_gradients(&h);
            }
        }
    }
}

/* With scores far apart only the greatest counts, and earlier sums are dropped. */
static void far_scores_do_not_overflow(void)
{
    struct call c({1, 130, 1, 32}, WEFT_BF16);
    for (int64_t i = 0; i < 130; i++) {
        for (int64_t k = 0; k < 32; k++) {
            c.qkv.set(c.at(0, 0, i, 0, k), 8);
            c.qkv.set(c.at(1, 0, i, 0, k), i % 40 == 0 ? 9 : -9);
        }
    }
    c.run();
    const struct head h(&c, 0, 0);
    expect_output(&h);
    expect_gradients(&h);
}

/* A later row of keys and values changes no earlier row of the output, to the bit. */
static void what_causality_forbids_has_no_part(void)
{
    struct call a({1, 100, 1, 32}, WEFT_F16), b({1, 100, 1, 32}, WEFT_F16);
    memcpy(b.qkv.data, a.qkv.data, a.qkv.bytes());
    for (int64_t i = 71; i < 100; i++) {
        for (int64_t k = 0; k < 32; k++) {
            b.qkv.set(b.at(1, 0, i, 0, k), 7);
            b.qkv.set(b.at(2, 0, i, 0, k), -5);
        }
    }
    a.run();
    b.run();
    same_bytes("rows before", b.output.data, a.output.data, 71 * 32 * 2);
    emu_expect(memcmp(b.output.data, a.output.data, a.output.bytes()) != 0, "rows behind differ");
}

/* Samples and heads do not see each other. */
static void a_head_has_the_same_bits_alone(void)
{
    struct call all({2, 70, 2, 32}, WEFT_BF16), one({1, 70, 1, 32}, WEFT_BF16);
    for (int64_t i = 0; i < 70; i++) {
        for (int64_t k = 0; k < 32; k++) {
            for (int part = 0; part < 3; part++) {
                one.qkv.set(one.at(part, 0, i, 0, k), all.qkv.get(all.at(part, 1, i, 1, k)));
            }
            one.d_output.set(one.out_at(0, i, 0, k), all.d_output.get(all.out_at(1, i, 1, k)));
        }
    }
    all.run();
    one.run();
    for (int64_t i = 0; i < 70; i++) {
        for (int64_t k = 0; k < 32; k++) {
            emu_expect(one.output.get(one.out_at(0, i, 0, k)) ==
                           all.output.get(all.out_at(1, i, 1, k)),
                       "output %lld, %lld", (long long)i, (long long)k);
            for (int part = 0; part < 3; part++) {
                emu_expect(one.d_qkv.get(one.at(part, 0, i, 0, k)) ==
                               all.d_qkv.get(all.at(part, 1, i, 1, k)),
                           "gradient of part %d, %lld, %lld", part, (long long)i, (long long)k);
            }
        }
    }
}

static void what_it_cannot_do_is_refused(void)
{
    struct call c({1, 4, 1, 32}, WEFT_BF16);
    struct weft_cuda_heads h = weft_cuda_heads_of(&c.attention);
    emu_expect(weft_cuda_attends(&h), "32 of bf16");
    h.dtype = WEFT_F32;
    emu_expect(!weft_cuda_attends(&h), "f32");
    struct weft_cuda_attention a = c.attention;
    a.hidden = 136;
    h = weft_cuda_heads_of(&a);
    emu_expect(!weft_cuda_attends(&h), "136 elements");
    a.hidden = 36;
    h = weft_cuda_heads_of(&a);
    emu_expect(!weft_cuda_attends(&h), "36 elements");
    h = weft_cuda_heads_of(&c.attention);
    h.mask = {true, 0, 5, NULL, 0};
    emu_expect(!weft_cuda_attends(&h), "a cap");
    const int32_t token = 0;
    h.mask = {true, 0, 0, &token, 0};
    emu_expect(!weft_cuda_attends(&h), "padding");
    a = c.attention;
    a.qkv = c.qkv.data + 2;
    emu_expect(weft_cuda_attend(&a, c.output.data, c.statistics.data, NULL) != 0, "not aligned");
    emu_expect(weft_cuda_attend_backward(&a, c.output.data, c.statistics.data, c.d_output.data,
                                         c.dots.data, c.d_qkv.data, NULL) != 0,
               "not aligned in backward");
    c.run();
}

static void asks_for_whole_sectors_and_all_banks(void)
{
    emu_watch_limit({1.001, 1.001, 0});
    for (int64_t size : {32, 64, 128}) {
        struct call c({1, 128, 1, size}, WEFT_BF16);
        c.run();
    }
    emu_watch_limit({});
}

/* Compares every head with fp64. */
static void expect_call(const struct call *c)
{
    c->run();
    for (int64_t i = 0; i < c->s.samples * c->s.heads; i++) {
        const struct head h(c, i / c->s.heads, i % c->s.heads);
        expect_output(&h);
        expect_gradients(&h);
    }
}

/* Runs the kernels of every size and dtype. */
static void expect_every_size(const struct weft_cuda_mask &mask)
{
    for (int64_t size : {32, 64, 96, 128}) {
        for (enum weft_dtype dtype : {WEFT_BF16, WEFT_F16}) {
            struct call c({1, 9, 1, size}, dtype);
            c.mask = mask;
            expect_call(&c);
        }
    }
}

/* Rows see all rows: fewer than a tile, a tile, and keys of several tiles with some missing. */
static void both_ways_are_near_fp64(void)
{
    const struct shape all[] = {{1, 1, 1, 8},    {2, 20, 2, 64}, {1, 64, 1, 32},
                                {1, 150, 1, 32}, {1, 70, 1, 96}, {1, 37, 1, 128}};
    for (int i = 0; i < 6; i++) {
        struct call c(all[i], i % 2 == 0 ? WEFT_BF16 : WEFT_F16);
        c.scalar = i % 3 == 1 ? 3 : 0;
        c.mask.both_ways = true;
        expect_call(&c);
    }
    expect_every_size({true, 0, 0, NULL, 0});
}

/* Windows of a row, of parts of tiles and of several tiles. Whole tiles of keys come before some.
 */
static void windows_are_near_fp64(void)
{
    const struct shape all[] = {{1, 20, 1, 64}, {1, 150, 1, 32}, {1, 150, 1, 32},
                                {1, 70, 1, 96}, {1, 100, 1, 64}, {1, 70, 1, 128}};
    const int64_t windows[] = {1, 2 + emu_below(30), 65 + emu_below(60), 40, 1 + emu_below(99), 7};
    for (int i = 0; i < 6; i++) {
        struct call c(all[i], i % 2 == 0 ? WEFT_F16 : WEFT_BF16);
        c.mask.window = windows[i];
        expect_call(&c);
    }
    expect_every_size({false, 4, 0, NULL, 0});
}

/* The power of a missing key, with a score of 0, would overflow next to far scores below 0. */
static void missing_keys_have_no_part(void)
{
    struct call c({1, 20, 1, 32}, WEFT_BF16);
    c.mask.both_ways = true;
    for (int64_t i = 0; i < 20; i++) {
        for (int64_t k = 0; k < 32; k++) {
            c.qkv.set(c.at(0, 0, i, 0, k), 12);
            c.qkv.set(c.at(1, 0, i, 0, k), -12 - (float)emu_uniform());
        }
    }
    c.run();
    const struct head h(&c, 0, 0);
    expect_output(&h);
    for (int64_t i = 0; i < c.d_qkv.count; i++) {
        emu_expect(std::isfinite(c.d_qkv.get(i)), "gradient %lld", (long long)i);
    }
}

static void heads_share_keys_and_values(void)
{
    const struct shape all[] = {{1, 70, 4, 32}, {2, 33, 6, 64}, {1, 65, 2, 128}, {1, 20, 3, 96}};
    const int64_t groups[] = {2, 3, 1, 3};
    for (int i = 0; i < 4; i++) {
        for (enum weft_dtype dtype : {WEFT_BF16, WEFT_F16}) {
            struct call c(all[i], dtype);
            struct grouped_call g(&c, groups[i]);
            c.run();
            emu_expect(weft_cuda_attend_heads(&g.heads, g.output.data, g.statistics.data, NULL) ==
                           0,
                       "forward is launched");
            emu_expect(weft_cuda_attend_heads_backward(&g.heads, g.output.data, g.statistics.data,
                                                       c.d_output.data, g.dots.data, &g.to,
                                                       NULL) == 0,
                       "backward is launched");
            g.compare(half_ulp(dtype));
        }
    }
}

int main(int argc, char **argv)
{
    emu_begin(argc, argv);
    emu_case_without_bits("outputs and gradients are near fp64", outputs_and_gradients_are_near);
    emu_case_without_bits("far scores do not overflow", far_scores_do_not_overflow);
    emu_case_without_bits("what causality forbids has no part", what_causality_forbids_has_no_part);
    emu_case_without_bits("a head has the same bits alone", a_head_has_the_same_bits_alone);
    emu_case_without_bits("what it cannot do is refused", what_it_cannot_do_is_refused);
    emu_case_without_bits("asks for whole sectors and all banks",
                          asks_for_whole_sectors_and_all_banks);
    emu_case_without_bits("heads share keys and values", heads_share_keys_and_values);
    emu_case_without_bits("both ways are near fp64", both_ways_are_near_fp64);
    emu_case_without_bits("windows are near fp64", windows_are_near_fp64);
    emu_case_without_bits("missing keys have no part", missing_keys_have_no_part);
    return emu_end({"attend_forward<bf16, 32, 2, 1>", "attend_forward<f16, 128, 1, 1>",
                    "attend_dots<f16>", "attend_keys<bf16, 96, 1, 32, 1>",
                    "attend_keys<f16, 64, 2, 32, 1>", "attend_queries<bf16, 128, 1, 32, 1>",
                    "attend_queries<f16, 32, 2, 32, 1>", "attend_forward<f16, 64, 2, 0>",
                    "attend_forward<bf16, 32, 2, 2>", "attend_keys<f16, 64, 2, 32, 2>",
                    "attend_queries<bf16, 128, 1, 32, 2>", "attend_keys<bf16, 32, 2, 32, 0>",
                    "attend_queries<f16, 96, 1, 32, 0>"});
}
