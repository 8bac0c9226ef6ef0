/* SPDX-License-Identifier: Apache-2.0 */
/* A multiplier is checked before use. It multiplies a few small matrices, and every element is
 * compared with the sum in fp64. An error larger than that of any order of fp32 sums is a fault.
 * Causes are a library with too few bits, or one broken by a CPU, an emulator, an environment, or a
 * stand-in. */
#ifndef WEFT_RUNTIME_NN_CPU_GEMM_CHECK_H
#define WEFT_RUNTIME_NN_CPU_GEMM_CHECK_H

#include "runtime/nn/product.h"

typedef enum weft_status weft_gemm_run_fn(const void *context, const struct weft_product *product,
                                          struct weft_error *err);

/* Checks products of `dtype` as layers make them: forward, by input, by weight, triangles, and
 * every finish of a layer. It takes some 5 ms of one core. WEFT_E_ENVIRONMENT names the wrong
 * element and its expected value; errors of `run`. */
WEFT_MUST_USE enum weft_status weft_gemm_check(const char *title, weft_gemm_run_fn *run,
                                               const void *context, enum weft_dtype dtype,
                                               struct weft_error *err);

#endif
