/* SPDX-License-Identifier: Apache-2.0 */
/* Results of attention in fp64, for any mask, cap and scalar. */
#ifndef WEFT_TESTS_EMULATION_NN_HEAD_H
#define WEFT_TESTS_EMULATION_NN_HEAD_H

#include "tests/emulation/nn/heads.h"

/* One head in fp64, with sums of its terms' magnitudes, which bound the rounding. Probabilities and
 * gradients of scores are 0 where a row does not see. */
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
            std::vector<double> slope((size_t)n, 1);
            for (int64_t j = 0; j < n; j++) {
                for (int64_t k = 0; k < size && c->sees(sample, i, j); k++) {
                    row[j] += part(0, i, k) * part(1, j, k) * c->scale();
                    d[j] += d_out(i, k) * part(2, j, k);
                }
                if (c->mask.cap > 0) {
                    const double bound = tanh(row[j] / c->mask.cap);
                    slope[(size_t)j] = 1 - bound * bound;
                    row[j] = c->mask.cap * bound;
                }
                if (c->sees(sample, i, j)) greatest = std::max(greatest, row[j]);
            }
            for (int64_t j = 0; j < n; j++) {
                row[j] = c->sees(sample, i, j) ? exp(row[j] - greatest) : 0;
                sum += row[j];
            }
            for (int64_t j = 0; j < n; j++) {
                row[j] = sum > 0 ? row[j] / sum : 0;
                dot += row[j] * d[j];
            }
            for (int64_t j = 0; j < n; j++) {
                d[j] = row[j] * (d[j] - dot) * slope[(size_t)j];
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
            for (int64_t j = 0; j < n; j++) {
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
    const double scale = c->scale();
    std::vector<double> error(
        (size_t)(n * n)); /* of gradients of scores, in units of half an ulp */
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < n; j++) {
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
                sum[0] += h->d_scores[by_query] * h->part(1, o, k) * scale;
                size[0] += error[by_query] * fabs(h->part(1, o, k)) * scale;
                sum[1] += h->d_scores[by_key] * h->part(0, o, k) * scale;
                size[1] += error[by_key] * fabs(h->part(0, o, k)) * scale;
                sum[2] += h->p[by_key] * h->d_out(o, k);
                size[2] += h->p[by_key] * fabs(h->d_out(o, k));
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
