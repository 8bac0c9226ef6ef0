/* SPDX-License-Identifier: Apache-2.0 */
/* AdamW (runtime/nn/optimizer.h). */
#ifndef WEFT_RUNTIME_NN_OPTIMIZERS_ADAMW_H
#define WEFT_RUNTIME_NN_OPTIMIZERS_ADAMW_H

WEFT_ALWAYS_INLINE struct weft_element adamw_update(struct weft_scalars s, int moments,
                                                    float gradient, struct weft_element at)
{
    (void)moments;
    const struct weft_adamw a = s.adamw;
    const float g = a.clip * gradient;
    at.moment1 = adam_moment1(a, at.moment1, g);
    at.moment2 = adam_moment2(a, at.moment2, g);
    at.parameter -= a.lr * (adam_step(a, at.moment1, at.moment2) + a.decay * at.parameter);
    return at;
}

#endif
