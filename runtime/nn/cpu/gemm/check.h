/* Before a way to multiply is trusted it multiplies a few small matrices, and every element is held
 * against the sum in fp64. What lies further off than any order of fp32 sums can is wrong: a
 * library that computes in fewer bits than was asked for, one that a CPU, an emulator or an
 * environment breaks, or a stand-in. */
#ifndef WEFT_RUNTIME_NN_CPU_GEMM_CHECK_H
#define WEFT_RUNTIME_NN_CPU_GEMM_CHECK_H

#include "runtime/nn/product.h"

typedef enum weft_status weft_gemm_run_fn(const void *context, const struct weft_product *product,
                                          struct weft_error *err);

/* Products of `dtype` as layers make them (forward, by input, by weight), also triangles, and
 * finished in every way that layers ask for; some 5 ms of one core.
 * WEFT_E_ENVIRONMENT names the element that is wrong and what it should be; errors of `run`. */
WEFT_MUST_USE enum weft_status weft_gemm_check(const char *title, weft_gemm_run_fn *run,
                                               const void *context, enum weft_dtype dtype,
                                               struct weft_error *err);

#endif
