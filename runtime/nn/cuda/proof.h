/* Before a way to multiply on a GPU is trusted it computes a product of its kind, and elements are
 * held against sums in fp64, as on the CPU (cpu/gemm/check.h): what is further off than any order
 * of fp32 sums can be is wrong. */
#ifndef WEFT_RUNTIME_NN_CUDA_PROOF_H
#define WEFT_RUNTIME_NN_CUDA_PROOF_H

#include "runtime/nn/cuda/multiply.h"

/* Sizes are cut to some 200 rows and columns and 1,100 of k, with the same remainders by 128;
 * rows are looked at from the first to the last, in all of their columns. The operands, some MiB,
 * are memory that host and GPU share. WEFT_E_ENVIRONMENT names the element that is wrong, or says
 * what the library does; WEFT_E_SYSTEM where memory is short. */
WEFT_MUST_USE enum weft_status weft_cuda_prove(const struct weft_nn_cuda *cuda,
                                               const struct weft_cuda_choice *choice,
                                               struct weft_error *err);
/* The same of the sizes as they are, which takes seconds of the host's time for large ones; *worst
 * becomes the largest error of an element beside what is allowed of it, 0 where none was looked at.
 */
WEFT_MUST_USE enum weft_status weft_cuda_prove_whole(const struct weft_nn_cuda *cuda,
                                                     const struct weft_cuda_choice *choice,
                                                     double *worst, struct weft_error *err);

#endif
