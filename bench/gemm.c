/* SPDX-License-Identifier: Apache-2.0 */
/* Prints, as JSON, the best rate of matrix products on one thread. The shapes are those of a 10 M
 * GPT's layers (2048 rows, width 384) and squares of 1024 to 2048. `bench/figures.py compute` runs
 * it next to a training step, as the reference. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "runtime/nn/cpu/gemm/gemm.h"

struct shape {
    bool transpose_a, transpose_b;
    int64_t m, n, k;
};

static const struct shape shapes[] = {
    {false, true, 2048, 1152, 384},  {false, true, 2048, 384, 384},
    {false, true, 2048, 1536, 384},  {false, true, 2048, 384, 1536},
    {false, false, 2048, 384, 1152}, {true, false, 1152, 384, 2048},
    {true, false, 1536, 384, 2048},  {false, true, 1024, 1024, 1024},
    {false, true, 1536, 1536, 1536}, {false, true, 2048, 2048, 2048},
};

static double best_rate(const struct weft_gemm *gemm, const struct shape *shape, const float *a,
                        const float *b, float *c, struct weft_error *err)
{
    struct weft_product product = weft_product_dense(shape->transpose_a, shape->transpose_b,
                                                     shape->m, shape->n, shape->k, WEFT_F32);
    product.a = a;
    product.b = b;
    product.c = c;
    double best = 0.0;
    for (int round = 0; round < 5; round++) {
        int64_t start = weft_clock_now_ns();
        if (weft_gemm_run(gemm, &product, err) != WEFT_OK) return 0.0;
        double seconds = (double)(weft_clock_now_ns() - start) * 1e-9;
        double rate = 2.0 * (double)shape->m * (double)shape->n * (double)shape->k / seconds;
        if (rate > best) best = rate;
    }
    return best;
}

int main(void)
{
    enum { MOST = 2048 * 2048 };
    static struct weft_error err;
    struct weft_gemm *gemm = NULL;
    float *a = malloc(MOST * sizeof *a), *b = malloc(MOST * sizeof *b),
          *c = calloc(MOST, sizeof *c);
    if (!a || !b || !c || weft_gemm_open("auto", 1, WEFT_F32, &gemm, &err) != WEFT_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    for (int i = 0; i < MOST; i++)
        a[i] = b[i] = (float)(i % 17) * 0.1f - 0.8f;
    double best = 0.0;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        double rate = best_rate(gemm, &shapes[i], a, b, c, &err);
        if (rate > best) best = rate;
    }
    if (best == 0.0) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    printf("{\"best_flops_per_s\": %.0f, \"with\": \"%s\"}\n", best, weft_gemm_describe(gemm));
    weft_gemm_close(gemm);
    free(a);
    free(b);
    free(c);
    return 0;
}
