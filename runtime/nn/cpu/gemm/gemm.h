/* SPDX-License-Identifier: Apache-2.0 */
/* A gemm is the matrix product of all layers, c = alpha op(a) op(b) (+ c), row-major. Only whole
 * heads of f32 attention do without it (kernels/kernels.h). a and b have one dtype. Sums are fp32
 * for any dtype, and c is rounded once.
 *
 * A way is a list of multipliers (multiplier.h), and each does the products that it covers. Our own
 * are for AMX tiles (amx.c: bf16, and f32 split into three bf16 parts) and for AVX-512 (avx512.c:
 * f32). The last one is oneDNN, or the plain loops in a build
 * without it. Products of 16 bits that oneDNN lacks are emulated.
 *
 * "auto" measures the ways on one thread, by that thread's clock, and keeps the fastest. A later
 * way must be 1.3 times as fast. For one way and kind of CPU, the same numbers give the same bits
 * at any address and on any number of threads. */
#ifndef WEFT_RUNTIME_NN_CPU_GEMM_GEMM_H
#define WEFT_RUNTIME_NN_CPU_GEMM_GEMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/text.h"
#include "runtime/nn/product.h"

struct weft_gemm;

/* Opens a gemm for products of f32 and of `dtype`; "auto" measures in `dtype`. Names are "onednn",
 * "onednn-emulated" (16 bits by its fp32 products), "amx" (bf16), "amx-bf16x3" and "avx512" (f32),
 * "plain" (chains of fmaf in order; slow, for proofs), and "auto" (takes about 50 ms, in 16 bits
 * 150, and chooses "plain" only in a build without oneDNN).
 *
 * WEFT_E_USAGE for another name or threads < 1. WEFT_E_ENVIRONMENT if this build or machine lacks
 * the library, or if its products are wrong (check.h); "auto" warns of wrong products and takes
 * another way. Free with weft_gemm_close, which accepts NULL. */
WEFT_MUST_USE enum weft_status weft_gemm_open(const char *name, int32_t threads,
                                              enum weft_dtype dtype, struct weft_gemm **out,
                                              struct weft_error *err);
void weft_gemm_close(struct weft_gemm *gemm);

const char *weft_gemm_name(const struct weft_gemm *gemm);     /* a name to open, such as "onednn" */
const char *weft_gemm_describe(const struct weft_gemm *gemm); /* with the reason of the choice */

/* Appends what a product's bits depend on: "products: avx512, oneDNN 2.6.3, avx512_core", or
 * "products: plain" on every CPU. */
void weft_gemm_add_bits(const struct weft_gemm *gemm, struct weft_text *out);

/* Appends ", oneDNN 2.6.3". */
void weft_gemm_add_libraries(struct weft_text *out);

/* Does a product before it returns; one thread at a time may call it. WEFT_E_SYSTEM if the library
 * fails: no memory for packing, or a size exceeds its integers. */
WEFT_MUST_USE enum weft_status weft_gemm_run(const struct weft_gemm *gemm,
                                             const struct weft_product *product,
                                             struct weft_error *err);

#endif
