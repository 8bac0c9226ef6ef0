/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/nn/cpu/gemm/multiplier.h"

enum weft_status weft_multiply(const struct weft_multiplier_link *links,
                               const struct weft_product *product, struct weft_error *err)
{
    for (; links->multiplier != NULL; links++) {
        if (links->multiplier->covers(links->state, product))
            return links->multiplier->run(links->state, links + 1, product, err);
    }
    return weft_fail(err, WEFT_E_INTERNAL, "nobody multiplies %s into %s",
                     weft_dtype_name(product->dtype), weft_dtype_name(product->c_dtype));
}
