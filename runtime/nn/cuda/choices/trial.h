/* SPDX-License-Identifier: Apache-2.0 */
/* Trials of attention before its use: random operands of a shape, on which own kernels and a
 * library's plans run. Results are compared with fp64, and timed. */
#ifndef WEFT_RUNTIME_NN_CUDA_CHOICES_TRIAL_H
#define WEFT_RUNTIME_NN_CUDA_CHOICES_TRIAL_H

#include "runtime/nn/cuda/machine.h"
#include "runtime/nn/cuda/products/attending.h"

struct weft_cuda_trial;

/* Allocates and draws operands, for plans whose workspaces have at most these bytes. Free with
 * weft_cuda_trial_close, which accepts NULL. WEFT_E_SYSTEM if memory is short. */
WEFT_MUST_USE enum weft_status weft_cuda_trial_open(const struct weft_cuda_machine *machine,
                                                    const struct weft_cuda_attending *library,
                                                    const struct weft_cuda_attention *shape,
                                                    int64_t workspace_bytes,
                                                    struct weft_cuda_trial **out,
                                                    struct weft_error *err);
void weft_cuda_trial_close(struct weft_cuda_trial *trial);

/* Runs a plan (NULL: own kernels) and compares rows of the first head of the first sample and of
 * the last head of the last one. A second backward must give the same bits. *worst is the largest
 * error as a share of the allowed error. WEFT_E_ENVIRONMENT names the wrong element. */
WEFT_MUST_USE enum weft_status weft_cuda_trial_prove(struct weft_cuda_trial *trial,
                                                     struct weft_cuda_attending_plan *plan,
                                                     double *worst, struct weft_error *err);
/* Times one forward and one backward, each the mean of several. */
WEFT_MUST_USE enum weft_status weft_cuda_trial_time(struct weft_cuda_trial *trial,
                                                    struct weft_cuda_attending_plan *plan,
                                                    double us[2], struct weft_error *err);

#endif
