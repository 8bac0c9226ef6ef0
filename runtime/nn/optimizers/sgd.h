/* SPDX-License-Identifier: Apache-2.0 */
/* SGD (runtime/nn/optimizer.h), with momentum if there is a moment. */
#ifndef WEFT_RUNTIME_NN_OPTIMIZERS_SGD_H
#define WEFT_RUNTIME_NN_OPTIMIZERS_SGD_H

WEFT_ALWAYS_INLINE struct weft_element sgd_update(struct weft_scalars s, int moments,
                                                  float gradient, struct weft_element at)
{
    const float g = sgd_gradient(s.sgd, at.parameter, gradient);
    at.moment1 = moments > 0 ? s.sgd.momentum * at.moment1 + g : g;
    at.parameter -= s.sgd.lr * at.moment1;
    return at;
}

#endif
