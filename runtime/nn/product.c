/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/nn/product.h"

struct weft_product weft_product_dense(bool transpose_a, bool transpose_b, int64_t m, int64_t n,
                                       int64_t k, enum weft_dtype dtype)
{
    return (struct weft_product){.transpose_a = transpose_a,
                                 .transpose_b = transpose_b,
                                 .dtype = dtype,
                                 .c_dtype = dtype,
                                 .m = m,
                                 .n = n,
                                 .k = k,
                                 .a_stride = transpose_a ? m : k,
                                 .b_stride = transpose_b ? k : n,
                                 .c_stride = n,
                                 .alpha = 1};
}
