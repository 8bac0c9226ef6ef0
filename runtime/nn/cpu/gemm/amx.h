/* Products on the tile registers of AMX, which multiply bf16 and sum in fp32, 32 x 32 elements of c
 * at a time. Sums go along k in passes of at most 1024 (bf16) or 512 (f32), of lengths that depend
 * on k alone, and the passes' sums are added in their order; so an element's bits depend on its
 * row, its column and alpha alone, whatever the blocking and the number of threads. Denormals count
 * as 0 and are no results, as the instruction has it.
 *
 * f32 is split into three parts of bf16, x = x1 + x2 + x3 with nothing lost, and six of the nine
 * products of parts are summed: what is left out is about 2^-24 of |a||b| at most, of both signs.
 * Errors are those of the sum, and below those of an f32 library (tests/runtime/nn/cpu/gemm/amx.c
 * compares both with sums in fp64). At the ends of the range it is not f32: a number of at least
 * 2^128 - 2^119 counts as infinite, an infinite operand may give NaN for infinity, a number below
 * 2^-103 loses what it has below 2^-126, and each of the six products that is below that counts as
 * 0. */
#ifndef WEFT_RUNTIME_NN_CPU_GEMM_AMX_H
#define WEFT_RUNTIME_NN_CPU_GEMM_AMX_H

#include "runtime/nn/product.h"

struct weft_gemm_amx;

/* WEFT_E_ENVIRONMENT when this CPU has no such tiles, the system does not lend them, or this build
 * cannot share a product among `threads`. Closed by weft_gemm_amx_close, which accepts NULL. */
WEFT_MUST_USE enum weft_status weft_gemm_amx_open(int32_t threads, struct weft_gemm_amx **out,
                                                  struct weft_error *err);
void weft_gemm_amx_close(struct weft_gemm_amx *amx);

/* Whether a product of f32 has enough to do that splitting its operands pays: by its sizes alone,
 * so that who multiplies does not depend on the run. */
bool weft_gemm_amx_pays(const struct weft_product *product);

/* m, n and k are not 0; a and b are bf16 and c that or f32, or all are f32. */
void weft_gemm_amx_run(struct weft_gemm_amx *amx, const struct weft_product *product);

#endif
