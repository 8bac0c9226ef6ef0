/* SPDX-License-Identifier: Apache-2.0 */
/* Adam-mini (Zhang et al., arXiv:2406.16793), with decay and bias correction as in AdamW. All
 * elements of a tensor have one second moment v: of the mean of their squares.
 *   g = clip * gradient; m = b1 m + (1-b1) g; v = b2 v + (1-b2) mean(g^2);
 *   p -= lr * ((m / (1-b1^t)) / (sqrt(v / (1-b2^t)) + eps) + decay * p)
 * The paper divides weights of transformers into blocks: rows of most matrices, heads of queries
 * and keys. Here a block is a tensor, as in the paper for other models. */
#ifndef WEFT_RUNTIME_NN_OPTIMIZERS_ADAM_MINI_H
#define WEFT_RUNTIME_NN_OPTIMIZERS_ADAM_MINI_H

/* `divisor` is sqrt(v / (1-b2^t)) + eps (weft_mean2_divisor). */
WEFT_ALWAYS_INLINE struct weft_element adam_mini_update(struct weft_scalars s, int moments,
                                                        float gradient, struct weft_element at)
{
    (void)moments;
    const struct weft_adamw a = s.adamw;
    const float g = a.clip * gradient;
    at.moment1 = adam_moment1(a, at.moment1, g);
    const float step = (at.moment1 * a.correction1) / s.divisor;
    at.parameter -= a.lr * (step + a.decay * at.parameter);
    return at;
}

#endif
