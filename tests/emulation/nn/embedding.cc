/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/emulation/nn/common.h"

struct shape {
    int64_t samples, seq_len, width, vocab, positions, shift;
};

static std::vector<struct shape> shapes(void)
{
    std::vector<struct shape> all = {{1, 1, 1, 1, 1, 0},       {2, 9, 16, 130, 9, 0},
                                     {3, 7, 33, 64, 10, 0},    {1, 20, 8, 65, 20, 1},
                                     {2, 40, 1032, 10, 41, 0}, {4, 5, 12, 300, 5, 0}};
    for (int i = 0; emu_thorough() && i < 25; i++) {
        const int64_t seq_len = 1 + emu_below(50);
        all.push_back({1 + emu_below(5), seq_len, 1 + emu_below(80), 1 + emu_below(400),
                       seq_len + emu_below(3), emu_below(9)});
    }
    return all;
}

/* Fills tokens that repeat often: half of them are among the first few. */
static void fill_tokens(const emu_buffer<int32_t> &tokens, int64_t vocab)
{
    for (int64_t i = 0; i < tokens.n; i++) {
        tokens[i] = (int32_t)emu_below(i % 2 == 0 ? vocab : std::min<int64_t>(vocab, 3));
    }
}

struct call {
    struct shape s;
    emu_buffer<int32_t> tokens;
    struct weft_cuda_embedding embedding;

    explicit call(struct shape of, float scale = 0)
        : s(of), tokens("tokens", EMU_READ, of.samples * of.seq_len)
    {
        fill_tokens(tokens, s.vocab);
        embedding = {tokens.n, s.width, s.seq_len, s.vocab, tokens.data, scale};
    }
};

static void forward_is_the_cpus(void)
{
    for (struct shape s : shapes()) {
        for (enum weft_dtype dtype : all_dtypes) {
            for (bool with_positions : {false, true}) {
                struct call c(s);
                elements table("table", EMU_READ, dtype, s.vocab * s.width, s.shift),
                    positions("positions", EMU_READ, dtype, s.positions * s.width, s.shift),
                    y("y", EMU_WRITE, dtype, c.tokens.n * s.width, s.shift);
                emu_buffer<uint32_t> bad("bad", EMU_BOTH, 1);
                std::vector<unsigned char> wanted(y.bytes());
                table.fill_normal(1);
                positions.fill_normal(1);
                bad[0] = UINT32_MAX;
                emu_expect(weft_cuda_embed(dtype, &c.embedding, table.data,
                                           with_positions ? positions.data : NULL, y.data, bad.data,
                                           NULL) == 0,
                           "launched");
                const int64_t row_bytes = s.width * element_bytes(dtype);
                for (int64_t i = 0; i < c.tokens.n; i++) {
                    cpu()->layers[dtype]->fill(
                        1, s.width, table.data + c.tokens[i] * row_bytes,
                        with_positions ? positions.data + i % s.seq_len * row_bytes : NULL, s.width,
                        wanted.data() + i * row_bytes);
                }
                same_bytes("y", y.data, wanted.data(), y.n);
                emu_expect(bad[0] == UINT32_MAX, "all tokens are good");
            }
        }
    }
}

/* The CPU's scale, and add_to for each row of dy. */
static void scaled_rows_are_the_cpus(void)
{
    for (struct shape s : shapes()) {
        for (enum weft_dtype dtype : all_dtypes) {
            const float scale = 22.625f;
            struct call c(s, scale);
            elements table("table", EMU_READ, dtype, s.vocab * s.width, s.shift),
                y("y", EMU_WRITE, dtype, c.tokens.n * s.width, s.shift),
                dy("dy", EMU_READ, dtype, c.tokens.n * s.width, s.shift);
            emu_buffer<float> gradient("gradient", EMU_WRITE, s.vocab * s.width);
            emu_buffer<uint32_t> bad("bad", EMU_BOTH, 1);
            std::vector<unsigned char> wanted(y.bytes());
            std::vector<float> sums((size_t)gradient.n), row((size_t)s.width);
            table.fill_normal(1);
            dy.fill_normal(1);
            bad[0] = UINT32_MAX;
            emu_expect(
                weft_cuda_embed(dtype, &c.embedding, table.data, NULL, y.data, bad.data, NULL) == 0,
                "launched");
            const struct weft_cuda_table to = {dy.data, WEFT_F32, false, gradient.data};
            emu_expect(weft_cuda_embed_tokens(dtype, &c.embedding, &to, NULL) == 0, "launched");
            const int64_t row_bytes = s.width * element_bytes(dtype);
            for (int64_t i = 0; i < c.tokens.n; i++) {
                cpu()->layers[dtype]->scale(s.width, scale, table.data + c.tokens[i] * row_bytes,
                                            NULL, wanted.data() + i * row_bytes);
                cpu()->widen(dtype, s.width, dy.data + i * row_bytes, row.data());
                cpu()->layers[WEFT_F32]->add_to(s.width, scale, row.data(), true,
                                                sums.data() + c.tokens[i] * s.width);
            }
            same_bytes("y", y.data, wanted.data(), y.n);
            emu_same_bits("gradient", gradient.n, gradient.data, sums.data());
        }
    }
}

/* The CPU's `add` for each row, of x or of a vector in the place of each sample's first one. */
static void added_rows_are_the_cpus(void)
{
    for (struct shape s : shapes()) {
        for (enum weft_dtype dtype : all_dtypes) {
            const bool by_position = s.width % 2 == 0, with_first = s.vocab % 2 == 0;
            const int64_t rows = s.samples * s.seq_len, row_bytes = s.width * element_bytes(dtype);
            elements x("x", EMU_READ, dtype, rows * s.width, s.shift),
                table("table", EMU_READ, dtype, s.positions * s.width, s.shift),
                first("first", EMU_READ, dtype, s.width, s.shift),
                y("y", EMU_WRITE, dtype, rows * s.width, s.shift),
                cleared("cleared", EMU_WRITE, dtype, rows * s.width, s.shift);
            std::vector<unsigned char> wanted(y.bytes()), none(y.bytes());
            x.fill_normal(1);
            table.fill_normal(1);
            first.fill_normal(1);
            const struct weft_cuda_added_rows added = {
                rows, s.width, s.seq_len, by_position, table.data, with_first ? first.data : NULL};
            emu_expect(weft_cuda_add_rows(dtype, &added, x.data, y.data, NULL) == 0 &&
                           weft_cuda_clear_first_rows(dtype, rows, s.width, s.seq_len, x.data,
                                                      cleared.data, NULL) == 0,
                       "launched");
            for (int64_t i = 0; i < rows; i++) {
                const int64_t position = i % s.seq_len;
                const unsigned char *of_x = x.data + i * row_bytes;
                cpu()->layers[dtype]->add(s.width, with_first && position == 0 ? first.data : of_x,
                                          table.data + (by_position ? position * row_bytes : 0),
                                          wanted.data() + i * row_bytes);
                if (position != 0) memcpy(none.data() + i * row_bytes, of_x, (size_t)row_bytes);
            }
            same_bytes("y", y.data, wanted.data(), y.n);
            same_bytes("cleared", cleared.data, none.data(), cleared.n);
        }
    }
}

static void a_token_outside_is_told(void)
{
    struct call c({2, 30, 16, 50, 30, 0});
    emu_buffer<float> table("table", EMU_READ, 50 * 16), y("y", EMU_WRITE, 60 * 16);
    emu_buffer<uint32_t> bad("bad", EMU_BOTH, 1);
    fill_normal(table, 1);
    for (int32_t token : {50, -1, INT32_MAX, INT32_MIN}) {
        const int64_t least = emu_below(40);
        fill_tokens(c.tokens, 50);
        c.tokens[least] = c.tokens[least + 5] = c.tokens[59] = token;
        bad[0] = UINT32_MAX;
        weft_cuda_embed(WEFT_F32, &c.embedding, table.data, NULL, y.data, bad.data, NULL);
        emu_expect(bad[0] == least, "row %u, not %lld", bad[0], (long long)least);
        emu_expect(y[least * 16] == 0 && y[least * 16 + 15] == 0, "its part of y is 0");
    }
}

/* Compares a table's gradient with sums in fp64; row `row_of(i)` gets row i of dy. In fp32 also
 * compares with the CPU's bits, one addition per row. */
template <typename F>
static void expect_gradient(const struct call *c, const elements &dy, const elements &before,
                            bool accumulate, const elements &gradient, int64_t table_rows, F row_of)
{
    const int64_t width = c->s.width, n = table_rows * width;
    std::vector<double> sum((size_t)n), size((size_t)n);
    std::vector<float> in_order((size_t)n);
    for (int64_t i = 0; accumulate && i < n; i++) {
        sum[(size_t)i] = in_order[(size_t)i] = before.get(i);
        size[(size_t)i] = fabs(sum[(size_t)i]);
    }
    for (int64_t i = 0; i < c->tokens.n * width; i++) {
        const size_t to = (size_t)(row_of(i / width) * width + i % width);
        sum[to] += (double)dy.get(i);
        size[to] += fabs((double)dy.get(i));
        in_order[to] += dy.get(i);
    }
    for (int64_t i = 0; i < n; i++) {
        const double most =
            size[(size_t)i] * (half_ulp(gradient.dtype) + 0x1p-24 * (double)c->tokens.n);
        if (!emu_near("gradient", gradient.get(i), sum[(size_t)i], most)) return;
    }
    if (gradient.dtype == WEFT_F32) same_bytes("gradient", gradient.data, in_order.data(), n * 4);
}

static void backward(struct shape s, enum weft_dtype dtype, enum weft_dtype gradient_dtype,
                     bool accumulate)
{
    struct call c(s);
    const enum emu_mode mode = accumulate ? EMU_BOTH : EMU_WRITE;
    elements dy("dy", EMU_READ, dtype, c.tokens.n * s.width, s.shift),
        of_tokens("of tokens", mode, gradient_dtype, s.vocab * s.width, s.shift),
        of_positions("of positions", mode, gradient_dtype, s.positions * s.width, s.shift),
        before("before", EMU_SCRATCH, gradient_dtype,
               std::max(of_tokens.count, of_positions.count));
    dy.fill_normal(1);
    before.fill_normal(1);
    if (accumulate) memcpy(of_tokens.data, before.data, of_tokens.bytes());
    if (accumulate) memcpy(of_positions.data, before.data, of_positions.bytes());
    const struct weft_cuda_table token_table = {dy.data, gradient_dtype, accumulate,
                                                of_tokens.data};
    const struct weft_cuda_table position_table = {dy.data, gradient_dtype, accumulate,
                                                   of_positions.data};
    emu_expect(weft_cuda_embed_tokens(dtype, &c.embedding, &token_table, NULL) == 0, "launched");
    emu_expect(weft_cuda_embed_positions(dtype, &c.embedding, s.positions, &position_table, NULL) ==
                   0,
               "launched");
    expect_gradient(&c, dy, before, accumulate, of_tokens, s.vocab,
                    [&](int64_t row) { return c.tokens[row]; });
    expect_gradient(&c, dy, before, accumulate, of_positions, s.positions,
                    [&](int64_t row) { return row % s.seq_len; });
}

static void gradients_are_added_up_in_order(void)
{
    for (struct shape s : shapes()) {
        for (enum weft_dtype dtype : all_dtypes) {
            backward(s, dtype, WEFT_F32, s.width % 2 == 0);
            if (dtype != WEFT_F32) backward(s, dtype, dtype, s.width % 2 != 0);
        }
    }
}

/* One token has more rows than a list has places. */
static void a_long_list_is_added_up_in_parts(void)
{
    backward({2, 1300, 8, 5, 1300, 0}, WEFT_F32, WEFT_F32, false);
    backward({2, 1300, 8, 5, 1300, 0}, WEFT_F32, WEFT_F32, true);
}

static void a_gradient_of_another_dtype_is_refused(void)
{
    struct call c({1, 4, 8, 5, 4, 0});
    emu_buffer<float> dy("dy", EMU_SCRATCH, 32), gradient("gradient", EMU_SCRATCH, 40);
    const struct weft_cuda_table table = {dy.data, WEFT_F16, false, gradient.data};
    emu_expect(weft_cuda_embed_tokens(WEFT_BF16, &c.embedding, &table, NULL) != 0, "f16 of bf16");
}

static void asks_for_whole_sectors(void)
{
    struct call c({2, 16, 128, 64, 16, 0});
    emu_buffer<uint32_t> bad("bad", EMU_BOTH, 1);
    bad[0] = UINT32_MAX;
    emu_watch_limit({1.001, 0, 0});
    for (enum weft_dtype dtype : all_dtypes) {
        elements table("table", EMU_READ, dtype, 64 * 128), y("y", EMU_WRITE, dtype, 32 * 128);
        emu_buffer<float> gradient("gradient", EMU_WRITE, 64 * 128);
        table.fill_normal(1);
        const struct weft_cuda_table to = {y.data, WEFT_F32, false, gradient.data};
        weft_cuda_embed(dtype, &c.embedding, table.data, NULL, y.data, bad.data, NULL);
        weft_cuda_embed_tokens(dtype, &c.embedding, &to, NULL);
    }
    emu_watch_limit({});
}

int main(int argc, char **argv)
{
    emu_begin(argc, argv);
    emu_case("forward: the CPU's bits", forward_is_the_cpus);
    emu_case("a token outside is told", a_token_outside_is_told);
    emu_case("gradients are added up in order", gradients_are_added_up_in_order);
    emu_case("a long list is added up in parts", a_long_list_is_added_up_in_parts);
    emu_case("a gradient of another dtype is refused", a_gradient_of_another_dtype_is_refused);
    emu_case("asks for whole sectors", asks_for_whole_sectors);
    emu_case("scaled rows: the CPU's bits", scaled_rows_are_the_cpus);
    emu_case("added rows: the CPU's bits", added_rows_are_the_cpus);
    return emu_end({"each<add_rows_op<bf16> >", "each<clear_first_op<f16> >", "embed<f16>",
                    "embed_tokens<bf16, float, 4>", "embed_tokens<f16, f16, 1>",
                    "embed_positions<float, float>", "embed_positions<bf16, bf16>"});
}
