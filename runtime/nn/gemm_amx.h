/* Products of bf16 on the tile registers of AMX, 32 x 32 elements of c at a time. They are summed
 * in fp32 in the order of k whatever the blocking and the number of threads, so that an element's
 * bits depend on its row, its column and alpha alone. Denormals count as 0, as the instruction has
 * it.
 */
#ifndef WEFT_RUNTIME_NN_GEMM_AMX_H
#define WEFT_RUNTIME_NN_GEMM_AMX_H

#include "runtime/nn/gemm.h"

struct weft_gemm_amx;

/* WEFT_E_ENVIRONMENT when this CPU has no such tiles, the system does not lend them, or this build
 * cannot share a product among `threads`. Closed by weft_gemm_amx_close, which accepts NULL. */
WEFT_MUST_USE enum weft_status weft_gemm_amx_open(int32_t threads, struct weft_gemm_amx **out,
                                                  struct weft_error *err);
void weft_gemm_amx_close(struct weft_gemm_amx *amx);

/* m, n and k are not 0; a and b are bf16, c that or f32. */
void weft_gemm_amx_run(struct weft_gemm_amx *amx, const struct weft_product *product);

#endif
