/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/emulation/nn/common.h"

struct shape {
    int64_t m, n, k, shift, pad; /* pad: elements between rows */
};

static std::vector<struct shape> shapes(void)
{
    std::vector<struct shape> all = {{1, 1, 1, 0, 0},    {4, 4, 4, 0, 0},   {64, 64, 16, 0, 0},
                                     {65, 63, 17, 0, 1}, {3, 70, 33, 1, 2}, {70, 8, 40, 0, 4}};
    for (int i = 0; emu_thorough() && i < 25; i++) {
        all.push_back({1 + emu_below(140), 1 + emu_below(140), 1 + emu_below(70), emu_below(5),
                       emu_below(5)});
    }
    return all;
}

/* Compares with three loops: the chain of fmaf of a product, and its finish. */
static void expect_product(const struct weft_product *p, const void *before, int64_t c_elements)
{
    const struct weft_product_finish *f = &p->finish;
    const enum weft_dtype to = p->c_dtype;
    std::vector<unsigned char> wanted((const unsigned char *)before,
                                      (const unsigned char *)before +
                                          c_elements * element_bytes(to));
    std::vector<unsigned char> gelu((size_t)(c_elements * element_bytes(to)));
    for (int64_t i = 0; i < p->m; i++) {
        for (int64_t j = 0; j < p->n; j++) {
            const int64_t at = i * p->c_stride + j;
            float x = 0;
            for (int64_t l = 0; l < p->k; l++) {
                const int64_t a = p->transpose_a ? l * p->a_stride + i : i * p->a_stride + l;
                const int64_t b = p->transpose_b ? j * p->b_stride + l : l * p->b_stride + j;
                x = fmaf(element_at(p->dtype, p->a, a), element_at(p->dtype, p->b, b), x);
            }
            x = p->alpha * x;
            if (p->accumulate) x = element_at(to, before, at) + x;
            if (f->bias && f->residual) {
                x += element_at(to, f->residual, at) + element_at(to, f->bias, j);
            } else if (f->bias) {
                x += element_at(to, f->bias, j);
            } else if (f->residual) {
                x += element_at(to, f->residual, at);
            }
            if (f->gelu_input) x *= gelu_slope(element_at(to, f->gelu_input, at));
            set_element(to, wanted.data(), at, x);
            x = element_at(to, wanted.data(), at);
            set_element(to, gelu.data(), at, gelu_of(x));
            if (f->gelu && !same_bytes("gelu", (const char *)f->gelu + at * element_bytes(to),
                                       gelu.data() + at * element_bytes(to), element_bytes(to))) {
                return;
            }
        }
    }
    same_bytes("product", p->c, wanted.data(), c_elements * element_bytes(to));
}

enum finish { NOTHING, BIAS, BIAS_AND_GELU, RESIDUAL, BOTH, SLOPE, FINISHES };

static void multiply(struct shape s, enum weft_dtype dtype, enum weft_dtype c_dtype, int kind)
{
    const bool transpose_a = kind % 2 != 0, transpose_b = kind / 2 % 2 != 0;
    const enum finish finish = (enum finish)(kind % FINISHES);
    const bool accumulate = finish == NOTHING && kind % 4 >= 2;
    const int64_t pad = finish == NOTHING ? s.pad : 0;
    struct weft_product p = {};
    p.transpose_a = transpose_a;
    p.transpose_b = transpose_b;
    p.dtype = dtype;
    p.c_dtype = c_dtype;
    p.m = s.m;
    p.n = s.n;
    p.k = s.k;
    p.alpha = kind % 3 == 0 ? 1.0f : 0.37f;
    p.accumulate = accumulate;
    p.a_stride = (transpose_a ? s.m : s.k) + s.pad;
    p.b_stride = (transpose_b ? s.k : s.n) + s.pad;
    p.c_stride = s.n + pad;
    const int64_t c_elements = (s.m - 1) * p.c_stride + s.n;
    elements a("a", EMU_READ, dtype, (transpose_a ? s.k : s.m) * p.a_stride, s.shift),
        b("b", EMU_READ, dtype, (transpose_b ? s.n : s.k) * p.b_stride, s.shift),
        c("c", accumulate || pad > 0 ? EMU_BOTH : EMU_WRITE, c_dtype, c_elements, s.shift),
        bias("bias", EMU_READ, c_dtype, s.n, s.shift),
        other("other", EMU_READ, c_dtype, c_elements, s.shift),
        gelu("gelu", finish == BIAS_AND_GELU ? EMU_WRITE : EMU_SCRATCH, c_dtype, c_elements,
             s.shift);
    a.fill_normal(1);
    b.fill_normal(1);
    bias.fill_normal(1);
    other.fill_normal(1);
    if (accumulate || pad > 0) c.fill_normal(1);
    const std::vector<unsigned char> before(c.data, c.data + c.n);
    p.a = a.data;
    p.b = b.data;
    p.c = c.data;
    if (finish == BIAS || finish == BIAS_AND_GELU || finish == BOTH) p.finish.bias = bias.data;
    if (finish == RESIDUAL || finish == BOTH) p.finish.residual = other.data;
    if (finish == SLOPE) p.finish.gelu_input = other.data;
    if (finish == BIAS_AND_GELU) p.finish.gelu = gelu.data;
    emu_buffer<float> times("times", EMU_READ, 1);
    times[0] = 1.7f;
    const bool scaled = kind % 3 == 1;
    emu_expect(weft_cuda_product(&p, NULL, scaled ? times.data : NULL, NULL) == 0, "launched");
    if (scaled) p.alpha *= times[0];
    expect_product(&p, before.data(), c_elements);
}

static void every_product_is_three_loops(void)
{
    enum { KINDS = 12 };
    int kind = 0;
    for (struct shape s : shapes()) {
        for (enum weft_dtype dtype : all_dtypes) {
            for (int i = 0; i < 4; i++) {
                multiply(s, dtype, i % 2 == 0 ? dtype : WEFT_F32, kind++ % KINDS);
            }
        }
    }
    for (kind = 0; kind < KINDS; kind++) {
        multiply({20, 24, 20, 0, 0}, WEFT_BF16, WEFT_BF16, kind);
        multiply({20, 24, 20, 0, 0}, WEFT_F32, WEFT_F32, kind);
    }
}

/* Samples and heads lie in shared rows, as in attention. */
static void batches_take_their_parts(void)
{
    enum { SAMPLES = 2, HEADS = 3, SEQ = 10, SIZE = 8, HIDDEN = HEADS * SIZE };
    emu_buffer<float> qkv("qkv", EMU_READ, SAMPLES * SEQ * 3 * HIDDEN),
        scores("scores", EMU_WRITE, SAMPLES * HEADS * SEQ * SEQ);
    fill_normal(qkv, 1);
    struct weft_product p = {};
    p.transpose_b = true;
    p.m = p.n = SEQ;
    p.k = SIZE;
    p.a = qkv.data;
    p.b = qkv.data + HIDDEN;
    p.a_stride = p.b_stride = 3 * HIDDEN;
    p.c_stride = SEQ;
    p.alpha = 0.5f;
    p.c = scores.data;
    const struct weft_cuda_batch batch = {{SAMPLES, HEADS},
                                          {SEQ * 3 * HIDDEN, SIZE},
                                          {SEQ * 3 * HIDDEN, SIZE},
                                          {HEADS * SEQ * SEQ, SEQ * SEQ}};
    emu_expect(weft_cuda_product(&p, &batch, NULL, NULL) == 0, "launched");
    for (int z = 0; z < SAMPLES * HEADS; z++) {
        for (int i = 0; i < SEQ; i++) {
            for (int j = 0; j < SEQ; j++) {
                const float *q = qkv.data + (z / HEADS * SEQ + i) * 3 * HIDDEN + z % HEADS * SIZE;
                const float *k = qkv.data + (z / HEADS * SEQ + j) * 3 * HIDDEN + z % HEADS * SIZE;
                float x = 0;
                for (int l = 0; l < SIZE; l++) {
                    x = fmaf(q[l], k[HIDDEN + l], x);
                }
                x = 0.5f * x;
                emu_same_bits("score", 1, &scores[(z * SEQ + i) * SEQ + j], &x);
            }
        }
    }
}

static void what_it_cannot_do_is_refused(void)
{
    emu_buffer<float> x("x", EMU_SCRATCH, 16);
    struct weft_product p = {};
    p.m = p.n = p.k = p.a_stride = p.b_stride = p.c_stride = 4;
    p.a = p.b = p.c = x.data;
    p.triangle = WEFT_C_IS_LOWER;
    emu_expect(weft_cuda_product(&p, NULL, NULL, NULL) != 0, "a triangle");
    p.triangle = WEFT_NO_TRIANGLE;
    p.finish.column_sums = x.data;
    emu_expect(weft_cuda_product(&p, NULL, NULL, NULL) != 0, "column sums");
    p.finish.column_sums = NULL;
    p.dtype = WEFT_F16;
    p.c_dtype = WEFT_BF16;
    emu_expect(weft_cuda_product(&p, NULL, NULL, NULL) != 0, "bf16 of f16");
}

int main(int argc, char **argv)
{
    emu_begin(argc, argv);
    emu_case("every product is three loops", every_product_is_three_loops);
    emu_case("batches take their parts", batches_take_their_parts);
    emu_case("what it cannot do is refused", what_it_cannot_do_is_refused);
    return emu_end({"product_tile<float, float>", "product_tile<bf16, bf16>",
                    "product_tile<bf16, float>", "product_tile<f16, f16>",
                    "product_tile<f16, float>"});
}
