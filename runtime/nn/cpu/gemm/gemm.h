/* A gemm is the one matrix product that all layers are made of (but whole heads of f32 attention,
 * see kernels/kernels.h), c = alpha op(a) op(b) (+ c), row-major. a and b have one dtype; sums are
 * fp32 whatever it is, and c is rounded once. It is done by a list of multipliers (multiplier.h), a
 * way, of which each takes the products that it covers: our own for AMX tiles (amx.c: bf16, and f32
 * split into three parts of it) and for AVX-512 (avx512.c: f32), and last a library, oneDNN or
 * OpenBLAS, each of which can be in the build or not. Products of 16 bits that the library cannot
 * do are emulated. "auto" measures the ways that there are, on one thread and by its own clock, and
 * keeps the fastest; another one than the first only where it is 1.3 times as fast. For one way,
 * number of threads and kind of CPU the same numbers give the same bits, wherever they lie. */
#ifndef WEFT_RUNTIME_NN_CPU_GEMM_GEMM_H
#define WEFT_RUNTIME_NN_CPU_GEMM_GEMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/text.h"
#include "runtime/nn/product.h"

struct weft_gemm;

/* For products of f32 and of `dtype`, in which "auto" measures. `name` "onednn", "openblas",
 * "onednn-emulated" (16 bits by its fp32 products), "amx" (bf16), "amx-bf16x3" and "avx512" (f32),
 * "plain" (chains of fmaf in order, slow, for proofs) or "auto" (about 50 ms, in 16 bits 150; never
 * "plain"). WEFT_E_USAGE for another name or threads < 1, WEFT_E_ENVIRONMENT for a library that
 * this build or machine does not have, or whose products are wrong here (check.h); "auto" warns of
 * that and takes another one. Freed by weft_gemm_close, which accepts NULL. */
WEFT_MUST_USE enum weft_status weft_gemm_open(const char *name, int32_t threads,
                                              enum weft_dtype dtype, struct weft_gemm **out,
                                              struct weft_error *err);
void weft_gemm_close(struct weft_gemm *gemm);

const char *weft_gemm_name(const struct weft_gemm *gemm);     /* "onednn": a name to open */
const char *weft_gemm_describe(const struct weft_gemm *gemm); /* with the reason of the choice */

/* Appends ", oneDNN 2.6.3" for each library that this build has, with its version where it can be
 * loaded. */
void weft_gemm_add_libraries(struct weft_text *out);

/* Synchronous, by one thread at a time. WEFT_E_SYSTEM when the library fails (it could not allocate
 * its packing buffers, or a size exceeds its integers). */
WEFT_MUST_USE enum weft_status weft_gemm_run(const struct weft_gemm *gemm,
                                             const struct weft_product *product,
                                             struct weft_error *err);

#endif
