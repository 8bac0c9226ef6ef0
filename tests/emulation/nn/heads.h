/* SPDX-License-Identifier: Apache-2.0 */
/* Operands of attention, causal unless the mask is another. */
#ifndef WEFT_TESTS_EMULATION_NN_HEADS_H
#define WEFT_TESTS_EMULATION_NN_HEADS_H

#include "tests/emulation/nn/common.h"

struct shape {
    int64_t samples, seq_len, heads, size;
};

struct call {
    struct shape s;
    enum weft_dtype dtype;
    int64_t hidden;
    elements qkv, output, d_output, d_qkv;
    emu_buffer<float> statistics, dots;
    struct weft_cuda_attention attention;
    double scalar = 0;
    struct weft_cuda_mask mask = {};

    /* `plain`: uses whole score matrices, without statistics and dots. */
    call(struct shape of, enum weft_dtype type, bool plain = false)
        : s(of), dtype(type), hidden(of.heads * of.size),
          qkv("qkv", EMU_READ, type, of.samples * of.seq_len * 3 * of.heads * of.size),
          output("output", EMU_WRITE, type, of.samples * of.seq_len * of.heads * of.size),
          d_output("d output", EMU_READ, type, of.samples * of.seq_len * of.heads * of.size),
          d_qkv("d qkv", EMU_WRITE, type, of.samples * of.seq_len * 3 * of.heads * of.size),
          statistics("statistics", plain ? EMU_SCRATCH : EMU_WRITE,
                     of.samples * of.heads * of.seq_len),
          dots("dots", plain ? EMU_SCRATCH : EMU_WRITE, of.samples * of.heads * of.seq_len)
    {
        qkv.fill_normal(1);
        d_output.fill_normal(1);
        attention = {dtype, s.samples, s.seq_len, s.heads, hidden, qkv.data};
    }
    struct weft_cuda_heads heads(void) const
    {
        struct weft_cuda_heads out = weft_cuda_heads_of(&attention);
        out.scalar = scalar;
        out.mask = mask;
        return out;
    }
    void run(void) const
    {
        const struct weft_cuda_heads of = heads();
        const struct weft_cuda_head_gradients to =
            weft_cuda_head_gradients_of(&attention, d_qkv.data);
        emu_expect(weft_cuda_attend_heads(&of, output.data, statistics.data, NULL) == 0,
                   "forward is launched");
        emu_expect(weft_cuda_attend_heads_backward(&of, output.data, statistics.data, d_output.data,
                                                   dots.data, &to, NULL) == 0,
                   "backward is launched");
    }
    void run_plain(void) const
    {
        const int64_t n = s.samples * s.heads * s.seq_len * s.seq_len;
        elements p("probabilities", EMU_WRITE, dtype, n), d("d scores", EMU_WRITE, dtype, n),
            uncapped("uncapped", mask.cap > 0 ? EMU_WRITE : EMU_SCRATCH, dtype, n);
        const struct weft_cuda_heads of = heads();
        const struct weft_cuda_head_gradients to =
            weft_cuda_head_gradients_of(&attention, d_qkv.data);
        emu_expect(weft_cuda_attend_plain(&of, uncapped.data, p.data, output.data, NULL) == 0,
                   "forward is launched");
        emu_expect(weft_cuda_attend_plain_backward(&of, uncapped.data, p.data, d_output.data,
                                                   d.data, NULL, &to, NULL) == 0,
                   "backward is launched");
    }
    /* Element of part 0, 1, 2 of qkv: queries, keys, values. */
    int64_t at(int part, int64_t sample, int64_t row, int64_t head, int64_t i) const
    {
        return ((sample * s.seq_len + row) * 3 + part) * hidden + head * s.size + i;
    }
    double scale(void) const
    {
        return 1 / sqrt(scalar > 0 ? scalar : (double)s.size);
    }
    bool sees(int64_t sample, int64_t query, int64_t key) const
    {
        if (mask.tokens != NULL && mask.tokens[sample * s.seq_len + key] == mask.padding)
            return false;
        return mask.both_ways || (key <= query && (mask.window == 0 || key > query - mask.window));
    }
    int64_t out_at(int64_t sample, int64_t row, int64_t head, int64_t i) const
    {
        return (sample * s.seq_len + row) * hidden + head * s.size + i;
    }
};

#endif
