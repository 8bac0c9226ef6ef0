/* An emulation multiplies matrices of 16 bits with a library that has only fp32: parts of a and b
 * are widened into buffers of a fixed size, multiplied in fp32, and what is to be of 16 bits is
 * rounded once. The parts depend on the sizes alone, so the bits do too. */
#ifndef WEFT_RUNTIME_NN_CPU_GEMM_EMULATION_H
#define WEFT_RUNTIME_NN_CPU_GEMM_EMULATION_H

#include "runtime/nn/cpu/gemm/library.h"

struct weft_gemm_emulation;

/* Closed by weft_gemm_emulation_close, which accepts NULL. */
WEFT_MUST_USE enum weft_status weft_gemm_emulation_open(enum weft_dtype dtype,
                                                        struct weft_gemm_emulation **out,
                                                        struct weft_error *err);
void weft_gemm_emulation_close(struct weft_gemm_emulation *emulation);

/* m, n and k are not 0; a and b have the emulation's dtype, c that or f32. */
WEFT_MUST_USE enum weft_status weft_gemm_emulate(struct weft_gemm_emulation *emulation,
                                                 const struct weft_gemm_library *library,
                                                 void *state, const struct weft_product *product,
                                                 struct weft_error *err);

#endif
