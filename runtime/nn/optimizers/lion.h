/* SPDX-License-Identifier: Apache-2.0 */
/* Lion (Chen et al. 2023), with decay as in AdamW. It has one moment, and each step is as long as
 * the rate:
 *   g = clip * gradient; p -= lr * (sign(b1 m + (1-b1) g) + decay * p); m = b2 m + (1-b2) g */
#ifndef WEFT_RUNTIME_NN_OPTIMIZERS_LION_H
#define WEFT_RUNTIME_NN_OPTIMIZERS_LION_H

/* The sign of 0 is 0, and of NaN NaN. */
WEFT_ALWAYS_INLINE float lion_sign(float x)
{
    const float positive = x > 0.0f ? 1.0f : x;
    return x < 0.0f ? -1.0f : positive;
}

WEFT_ALWAYS_INLINE struct weft_element lion_update(struct weft_scalars s, int moments,
                                                   float gradient, struct weft_element at)
{
    (void)moments;
    const struct weft_adamw a = s.adamw;
    const float g = a.clip * gradient;
    const float step = lion_sign(a.beta1 * at.moment1 + a.rest1 * g);
    at.moment1 = a.beta2 * at.moment1 + a.rest2 * g;
    at.parameter -= a.lr * (step + a.decay * at.parameter);
    return at;
}

#endif
