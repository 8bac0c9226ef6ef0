/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces runtime/comm/nccl in a build without NCCL. */
#include "runtime/comm/cuda/work.h"

enum weft_status weft_cuda_several_open(const struct weft_comm_options *options,
                                        struct weft_comm **out, struct weft_error *err)
{
    (void)out;
    return weft_fail(err, WEFT_E_ENVIRONMENT,
                     "%d ranks on GPUs need NCCL, which was not there when Weft was built: install "
                     "it next to CUDA and build again (docs/gpu.md), run one GPU (-n 1), or train "
                     "with cluster.device.type \"cpu\"",
                     options->ranks);
}
