/* SPDX-License-Identifier: Apache-2.0 */
/* Operands of causal attention, and its results in fp64. */
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
    void run(void) const
    {
        emu_expect(weft_cuda_attend(&attention, output.data, statistics.data, NULL) == 0,
                   "forward is launched");
        emu_expect(weft_cuda_attend_backward(&attention, output.data, statistics.data,
                                             d_output.data, dots.data, d_qkv.data, NULL) == 0,
                   "backward is launched");
    }
    void run_plain(void) const
    {
        const int64_t n = s.samples * s.heads * s.seq_len * s.seq_len;
        elements p("probabilities", EMU_WRITE, dtype, n), d("d scores", EMU_WRITE, dtype, n);
        const struct weft_cuda_heads heads = weft_cuda_heads_of(&attention);
        const struct weft_cuda_head_gradients to =
            weft_cuda_head_gradients_of(&attention, d_qkv.data);
        emu_expect(weft_cuda_attend_plain(&heads, p.data, output.data, NULL) == 0,
                   "forward is launched");
        emu_expect(weft_cuda_attend_plain_backward(&heads, p.data, d_output.data, d.data, NULL, &to,
                                                   NULL) == 0,
                   "backward is launched");
    }
    /* Element of part 0, 1, 2 of qkv: queries, keys, values. */
    int64_t at(int part, int64_t sample, int64_t row, int64_t head, int64_t i) const
    {
        return ((sample * s.seq_len + row) * 3 + part) * hidden + head * s.size + i;
    }
    int64_t out_at(int64_t sample, int64_t row, int64_t head, int64_t i) const
    {
        return (sample * s.seq_len + row) * hidden + head * s.size + i;
    }
};

/* One head in fp64, with sums of its terms' magnitudes, which bound the rounding. */
struct head {
    std::vector<double> p, d_scores; /* [seq_len, seq_len] */
    const struct call *c;
    int64_t sample, index;

    double part(int which, int64_t row, int64_t i) const
    {
        return c->qkv.get(c->at(which, sample, row, index, i));
    }
    double d_out(int64_t row, int64_t i) const
    {
        return c->d_output.get(c->out_at(sample, row, index, i));
    }

    head(const struct call *of, int64_t sample_of, int64_t index_of)
        : p((size_t)(of->s.seq_len * of->s.seq_len)), d_scores(p.size()), c(of), sample(sample_of),
          index(index_of)
    {
        const int64_t n = c->s.seq_len, size = c->s.size;
        for (int64_t i = 0; i < n; i++) {
            double greatest = -INFINITY, sum = 0, dot = 0;
            double *row = &p[(size_t)(i * n)], *d = &d_scores[(size_t)(i * n)];
            for (int64_t j = 0; j <= i; j++) {
                for (int64_t k = 0; k < size; k++) {
                    row[j] += part(0, i, k) * part(1, j, k) / sqrt((double)size);
                    d[j] += d_out(i, k) * part(2, j, k);
                }
                greatest = std::max(greatest, row[j]);
            }
            for (int64_t j = 0; j <= i; j++) {
                row[j] = exp(row[j] - greatest);
                sum += row[j];
            }
            for (int64_t j = 0; j <= i; j++) {
                row[j] /= sum;
                dot += row[j] * d[j];
            }
            for (int64_t j = 0; j <= i; j++) {
                d[j] = row[j] * (d[j] - dot);
            }
        }
    }
};

/* Terms use numbers rounded to the dtype: scores or their powers, gradients of scores, and the
 * output in its dot with its gradient. Sums of at least seq_len terms are in fp32, and the result
 * is rounded once. */
static void expect_near(const struct call *c, const char *what, double is, double wanted,
                        double size)
{
    const double terms = 4 * half_ulp(c->dtype) + 0x1p-23 * (double)(c->s.seq_len + c->s.size);
    emu_near(what, is, wanted, terms * size + half_ulp(c->dtype) * fabs(wanted) + 1e-6);
}

static void expect_output(const struct head *h)
{
    const struct call *c = h->c;
    const int64_t n = c->s.seq_len;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t k = 0; k < c->s.size; k++) {
            double sum = 0, size = 0;
            for (int64_t j = 0; j <= i; j++) {
                const double term = h->p[(size_t)(i * n + j)] * h->part(2, j, k);
                sum += term;
                size += fabs(term);
            }
            expect_near(c, "output", c->output.get(c->out_at(h->sample, i, h->index, k)), sum,
                        size);
        }
    }
}

/* Gradients of row i: d query is a sum over keys, d key and d value are sums over queries. The
 * error of a score's gradient comes from the two terms of its difference. */
static void expect_gradients(const struct head *h)
{
    const struct call *c = h->c;
    const int64_t n = c->s.seq_len;
    const double scale = 1 / sqrt((double)c->s.size);
    std::vector<double> error(
        (size_t)(n * n)); /* of gradients of scores, in units of half an ulp */
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j <= i; j++) {
            double size = 0;
            for (int64_t k = 0; k < c->s.size; k++) {
                size += fabs(h->d_out(i, k));
            }
            const size_t at = (size_t)(i * n + j);
            error[at] = fabs(h->d_scores[at]) + h->p[at] * size;
        }
    }
    for (int64_t r = 0; r < n; r++) {
        for (int64_t k = 0; k < c->s.size; k++) {
            double sum[3] = {}, size[3] = {};
            for (int64_t o = 0; o < n; o++) {
                const size_t by_query = (size_t)(r * n + o), by_key = (size_t)(o * n + r);
                sum[0] += o <= r ? h->d_scores[by_query] * h->part(1, o, k) * scale : 0;
                size[0] += o <= r ? error[by_query] * fabs(h->part(1, o, k)) * scale : 0;
                sum[1] += o >= r ? h->d_scores[by_key] * h->part(0, o, k) * scale : 0;
                size[1] += o >= r ? error[by_key] * fabs(h->part(0, o, k)) * scale : 0;
                sum[2] += o >= r ? h->p[by_key] * h->d_out(o, k) : 0;
                size[2] += o >= r ? h->p[by_key] * fabs(h->d_out(o, k)) : 0;
            }
            for (int part = 0; part < 3; part++) {
                static const char *const names[] = {"d query", "d key", "d value"};
                expect_near(c, names[part], c->d_qkv.get(c->at(part, h->sample, r, h->index, k)),
                            sum[part], size[part]);
            }
        }
    }
}

#endif
