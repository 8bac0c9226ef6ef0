/* SPDX-License-Identifier: Apache-2.0 */
/* Operations of a model's step, and the peak of its device: their quotient is the utilisation. */
#ifndef WEFT_SPEC_PROFILE_FLOPS_H
#define WEFT_SPEC_PROFILE_FLOPS_H

#include "base/status.h"
#include "spec/config.h"

/* Peak flops a second of a rank's device in the compute dtype; 0: the cluster does not give it.
 * `figure` names its key. */
double weft_flops_peak(const struct weft_config *config, const char **figure);

/* Flops of forward and backward of a step on all ranks, without those of recomputation: the "model
 * flops" of Chowdhery et al., PaLM (2022), appendix B. WEFT_E_DATA as weft_layer_work. */
WEFT_MUST_USE enum weft_status weft_flops_of_step(const struct weft_config *config, double *out,
                                                  struct weft_error *err);

#endif
