/* SPDX-License-Identifier: Apache-2.0 */
/* Attention with keys and values that heads of queries share, next to attention without sharing. */
#ifndef WEFT_TESTS_EMULATION_NN_GROUPED_H
#define WEFT_TESTS_EMULATION_NN_GROUPED_H

#include "tests/emulation/nn/heads.h"

/* The operands of a call with shared keys: head h of queries reads head h / shared of keys. Keys
 * and values have rows of their own. */
struct grouped_call {
    const struct call *all;
    int64_t kv_heads, width;
    elements key, value, output, d_query, d_key, d_value;
    emu_buffer<float> statistics, dots;
    struct weft_cuda_heads heads;
    struct weft_cuda_head_gradients to;

    /* Copies each head of keys and values into `of`, once for each head that shares it. */
    grouped_call(struct call *of, int64_t groups, bool plain = false)
        : all(of), kv_heads(groups), width(groups * of->s.size),
          key("key", EMU_READ, of->dtype, rows() * width),
          value("value", EMU_READ, of->dtype, rows() * width),
          output("output", EMU_WRITE, of->dtype, rows() * of->hidden),
          d_query("d query", EMU_BOTH, of->dtype, rows() * 3 * of->hidden),
          d_key("d key", EMU_WRITE, of->dtype, rows() * width),
          d_value("d value", EMU_WRITE, of->dtype, rows() * width),
          statistics("statistics", plain ? EMU_SCRATCH : EMU_WRITE,
                     of->s.samples * of->s.heads * of->s.seq_len),
          dots("dots", plain ? EMU_SCRATCH : EMU_WRITE, of->s.samples * of->s.heads * of->s.seq_len)
    {
        const struct shape s = of->s;
        key.fill_normal(1);
        value.fill_normal(1);
        d_query.fill_normal(1);
        each_element([&](int64_t sample, int64_t row, int64_t head, int64_t i) {
            const int64_t from = shared_at(sample, row, head, i);
            of->qkv.set(of->at(1, sample, row, head, i), key.get(from));
            of->qkv.set(of->at(2, sample, row, head, i), value.get(from));
        });
        heads = {of->dtype, s.samples,  s.seq_len,      s.heads, groups, s.size, of->qkv.data,
                 key.data,  value.data, 3 * of->hidden, width,   width,  0,      {}};
        to = {d_query.data, d_key.data, d_value.data};
    }
    int64_t rows(void) const
    {
        return all->s.samples * all->s.seq_len;
    }
    int64_t shared_at(int64_t sample, int64_t row, int64_t head, int64_t i) const
    {
        const int64_t shared = all->s.heads / kv_heads;
        return (sample * all->s.seq_len + row) * width + head / shared * all->s.size + i;
    }
    template <typename F> void each_element(F fn) const
    {
        const struct shape s = all->s;
        for (int64_t n = 0; n < s.samples * s.seq_len * s.heads * s.size; n++) {
            fn(n / s.size / s.heads / s.seq_len, n / s.size / s.heads % s.seq_len,
               n / s.size % s.heads, n % s.size);
        }
    }
    /* Outputs and queries' gradients have the bits of heads that share nothing. Gradients of keys
     * and values are their sums over the heads, each rounded once to `rounding`. */
    void compare(double rounding) const
    {
        std::vector<double> sums[2], sizes[2];
        for (int part = 0; part < 2; part++) {
            sums[part].resize((size_t)(rows() * width));
            sizes[part].resize(sums[part].size());
        }
        same_bytes("output", output.data, all->output.data, output.n);
        each_element([&](int64_t sample, int64_t row, int64_t head, int64_t i) {
            const int64_t at = all->at(0, sample, row, head, i);
            emu_expect(d_query.get(at) == all->d_qkv.get(at), "gradient of query %lld",
                       (long long)at);
            for (int part = 0; part < 2; part++) {
                const double term = all->d_qkv.get(all->at(1 + part, sample, row, head, i));
                const size_t to_sum = (size_t)shared_at(sample, row, head, i);
                sums[part][to_sum] += term;
                sizes[part][to_sum] += fabs(term);
            }
        });
        for (int64_t i = 0; i < rows() * width; i++) {
            const size_t at = (size_t)i;
            emu_near("d key", d_key.get(i), sums[0][at], 2 * rounding * sizes[0][at] + 1e-6);
            emu_near("d value", d_value.get(i), sums[1][at], 2 * rounding * sizes[1][at] + 1e-6);
        }
    }
};

#endif
