/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/nn/cpu/layers/walk.h"

enum weft_status weft_nn_cpu_add_forward(const struct weft_nn_walked *at, struct weft_error *err)
{
    (void)err;
    weft_nn_step_kernels(at)->add(at->in[0].rows * at->in[0].columns, at->in[0].data,
                                  at->in[1].data, at->out[0].data);
    return WEFT_OK;
}
