/* Products of f32 by AVX-512: as exact as a library's, and finished on their way to c. Sums go
 * along k in passes of at most 384, of lengths that depend on k alone, and the passes' sums are
 * added to c in their order; so an element's bits depend on its row, its column, alpha and what is
 * added alone, whatever the blocking and the number of threads. */
#ifndef WEFT_RUNTIME_NN_CPU_GEMM_AVX512_H
#define WEFT_RUNTIME_NN_CPU_GEMM_AVX512_H

#include "runtime/nn/product.h"

struct weft_gemm_avx512;

/* WEFT_E_ENVIRONMENT when this CPU has no AVX-512, or this build cannot share a product among
 * `threads`. Closed by weft_gemm_avx512_close, which accepts NULL. */
WEFT_MUST_USE enum weft_status weft_gemm_avx512_open(int32_t threads, struct weft_gemm_avx512 **out,
                                                     struct weft_error *err);
void weft_gemm_avx512_close(struct weft_gemm_avx512 *avx512);

/* Whether a product of f32 is no triangle and has enough to do that packing b pays: by its sizes
 * alone, so that who multiplies does not depend on the run. */
bool weft_gemm_avx512_pays(const struct weft_product *product);

/* One that pays. */
void weft_gemm_avx512_run(struct weft_gemm_avx512 *avx512, const struct weft_product *product);

#endif
