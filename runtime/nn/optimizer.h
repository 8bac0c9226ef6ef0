/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise kernels of optimizers, and the norm for clipping, on the elements that a rank owns.
 * Body and tail of every loop do the same operations, so bits do not depend on the division into
 * slices (ARCHITECTURE.md, invariant 1). */
#ifndef WEFT_RUNTIME_NN_OPTIMIZER_H
#define WEFT_RUNTIME_NN_OPTIMIZER_H

#include <stdbool.h>
#include <stdint.h>

#include "spec/config.h"

/* AdamW (Loshchilov and Hutter 2019) with bias correction from the step number t = 1, 2, ...:
 *   g = clip * gradient; m = b1 m + (1-b1) g; v = b2 v + (1-b2) g^2;
 *   p -= lr * ((m / (1-b1^t)) / (sqrt(v / (1-b2^t)) + eps) + decay * p) */
struct weft_adamw { /* also for LAMB */
    float lr, eps, decay;
    float clip; /* factor of the gradient */
    /* From weft_adamw_at: beta, 1 - beta (for 0.999 fp32 would be off by 5e-5) and 1 / (1 -
     * beta^t). */
    float beta1, beta2, rest1, rest2, correction1, correction2;
};
/* Sets the values that depend on the betas and on step t >= 1, in double, rounded once. */
void weft_adamw_at(struct weft_adamw *adamw, double beta1, double beta2, int64_t t);

/* Stochastic gradient descent with momentum (Sutskever et al. 2013, in the form in which the rate
 * may change) and decay added to the gradient:
 *   g = clip * gradient + decay * p; m = momentum m + g; p -= lr * m */
struct weft_sgd {
    float lr, momentum, decay, clip;
};

/* LAMB (You et al. 2020) has AdamW's moments and the steps
 *     s = (m / (1-b1^t)) / (sqrt(v / (1-b2^t)) + eps) + decay * p;  p -= lr * trust * s
 * `trust` is |p| / |s| over the whole tensor. It is 1 if either norm is 0 or not finite, and for
 * tensors that are exempt from decay: biases and norms are usually neither decayed nor adapted. s
 * is computed once for its norm and once for the update, with the same bits, so it needs no memory.
 */

/* The second moment v of a tensor of n elements, for optimizers with one a tensor: after a step
 * with gradients of the given length (a root of their sum of squares), and clip. In double, rounded
 * once. And its divisor for elements, sqrt(v / (1-b2^t)) + eps. */
float weft_mean2_next(double beta2, float v, double clip, double length, int64_t n);
float weft_mean2_divisor(const struct weft_adamw *adamw, float v);

/* The settings of one step's update. */
struct weft_optimizer {
    enum weft_optimizer_type type;
    bool exempt_vectors; /* no decay for tensors that are not matrices */
    float decay;
    struct weft_adamw adamw; /* of AdamW and LAMB; unused settings are not read */
    struct weft_sgd sgd;
    float divisor; /* of the tensor, for optimizers with one second moment a tensor */
};
/* The settings of step t = 1, 2, ... of a training, with a divisor of 1. */
struct weft_optimizer weft_optimizer_at(const struct weft_train *train, int64_t t, double lr,
                                        double clip);

/* n elements of one tensor. moment1 is NULL without momentum, moment2 is NULL for SGD. */
struct weft_update {
    float *parameters;
    const void *gradients;
    enum weft_dtype gradient_dtype;
    float *moment1, *moment2;
    void *copy; /* of the parameters, rounded to copy_dtype; NULL: none */
    enum weft_dtype copy_dtype;
    int64_t n;
};
/* `matrix`: the tensor decays, for any exempt_vectors. LAMB takes the elements as the whole tensor;
 * its parts are below. */
void weft_optimizer_update(const struct weft_optimizer *optimizer, bool matrix,
                           const struct weft_update *update);

/* An exact sum of squares of fp32 numbers, in any order. Squares of mantissas are added as
 * integers. Exponent e has a bin of two words: 2e and 2e + 1 hold multiples of 1 and of 2^24.
 * Ranks' words are added as integers (weft_comm_agree), and 2^40 numbers on 2^20 ranks do not
 * overflow. WEFT_NORM_WORDS uint64 fit in half of WEFT_AGREE_BYTES, with loss and flags.
 * Neighbouring numbers may change the words that a square is added to, but not the sum. */
enum { WEFT_NORM_WORDS = 512 };
/* Adds the squares of n numbers to the bins. */
void weft_norm_add(uint64_t bins[WEFT_NORM_WORDS], const float *x, int64_t n);
/* Square root of the sum, rounded to double once. *finite is false if an x was not finite; then the
 * result is infinite. */
double weft_norm_result(const uint64_t bins[WEFT_NORM_WORDS], int *finite);

/* The same sum in few words, for ranks that add many: words of 32 bits, lowest first, and a last
 * one that is not 0 if an x was not finite. They are added as bins are. */
enum { WEFT_NORM_PACKED_WORDS = 20 };
void weft_norm_pack(const uint64_t bins[WEFT_NORM_WORDS], uint64_t words[WEFT_NORM_PACKED_WORDS]);
double weft_norm_unpack(const uint64_t words[WEFT_NORM_PACKED_WORDS], int *finite);

/* LAMB's update in parts, on any elements of a tensor. First come the moments of all elements that
 * this rank updates. Then come the squares of the elements that it counts. After ranks have added
 * these, the rest follows. */
struct weft_lamb_bins {
    uint64_t parameters[WEFT_NORM_WORDS], steps[WEFT_NORM_WORDS];
};
void weft_lamb_moments(const struct weft_optimizer *optimizer, const struct weft_update *update);
void weft_lamb_add(const struct weft_optimizer *optimizer, bool matrix,
                   const struct weft_update *update, struct weft_lamb_bins *bins);
/* Computes trust from the two sums of squares, as packed words. */
float weft_lamb_trust(const struct weft_optimizer *optimizer, bool matrix,
                      const uint64_t parameters[WEFT_NORM_PACKED_WORDS],
                      const uint64_t steps[WEFT_NORM_PACKED_WORDS]);
void weft_lamb_apply(const struct weft_optimizer *optimizer, bool matrix, float trust,
                     const struct weft_update *update);
/* False: trust is always 1. */
bool weft_lamb_adapts(const struct weft_optimizer *optimizer, bool matrix);

#endif
