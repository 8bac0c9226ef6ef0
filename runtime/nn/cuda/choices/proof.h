/* SPDX-License-Identifier: Apache-2.0 */
/* An algorithm of a GPU is checked before use. It computes a product of its kind, and elements are
 * compared with sums in fp64, as on the CPU (cpu/gemm/check.h). An error larger than that of any
 * order of fp32 sums is a fault. */
#ifndef WEFT_RUNTIME_NN_CUDA_CHOICES_PROOF_H
#define WEFT_RUNTIME_NN_CUDA_CHOICES_PROOF_H

#include "runtime/nn/cuda/choices/multiply.h"

/* Checks a choice with sizes reduced to some 200 rows and columns and 1,100 of k, with the same
 * remainders by 128. It compares rows from the first to the last, in all columns. Operands of some
 * MiB lie in memory shared by host and GPU. WEFT_E_ENVIRONMENT names the wrong element, or has the
 * library's error; WEFT_E_SYSTEM if memory is short. */
WEFT_MUST_USE enum weft_status weft_cuda_prove(const struct weft_nn_cuda *cuda,
                                               const struct weft_cuda_choice *choice,
                                               struct weft_error *err);
/* Checks a choice with its full sizes, which takes seconds on the host for large ones. *worst is
 * the largest error as a share of the allowed error, or 0 if no element was compared. */
WEFT_MUST_USE enum weft_status weft_cuda_prove_whole(const struct weft_nn_cuda *cuda,
                                                     const struct weft_cuda_choice *choice,
                                                     double *worst, struct weft_error *err);

#endif
