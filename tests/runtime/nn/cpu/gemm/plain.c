/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "runtime/nn/cpu/gemm/gemm.h"

/* In the order of k from 0 on, each step rounded once: other orders, and products that are rounded
 * before they are added, give other bits of these numbers. */
Test(plain, is_a_chain_of_fmaf_in_order)
{
    enum { K = 5 };
    const float a[K] = {1, 0x1p-30f, 1 + 0x1p-12f, -1, 3}, b[K] = {1, 1, 1 + 0x1p-12f, 1, 0x1p-26f};
    float c = 0.25f, chain = 0;
    struct weft_gemm *gemm = NULL;
    struct weft_error err = {0};
    struct weft_product product = weft_product_dense(false, false, 1, 1, K, WEFT_F32);
    for (int i = 0; i < K; i++) {
        chain = fmaf(a[i], b[i], chain);
    }
    product.a = a;
    product.b = b;
    product.c = &c;
    product.alpha = 0.7f;
    product.accumulate = true;
    cr_assert_eq(weft_gemm_open("plain", 1, WEFT_F32, &gemm, &err), WEFT_OK, "%s", err.text);
    cr_assert_str_eq(weft_gemm_name(gemm), "plain");
    cr_assert_eq(weft_gemm_run(gemm, &product, &err), WEFT_OK, "%s", err.text);
    const float wanted = 0.25f + 0.7f * chain;
    cr_assert_eq(memcmp(&c, &wanted, sizeof c), 0, "%.9g, not %.9g", (double)c, (double)wanted);
    weft_gemm_close(gemm);
}

Test(plain, is_never_chosen)
{
    struct weft_gemm *gemm = NULL;
    struct weft_error err = {0};
    cr_assert_eq(weft_gemm_open("auto", 1, WEFT_F32, &gemm, &err), WEFT_OK, "%s", err.text);
    cr_assert_null(strstr(weft_gemm_describe(gemm), "plain"), "%s", weft_gemm_describe(gemm));
    weft_gemm_close(gemm);
}
