/* The optimizer's element-wise kernels and the norm for clipping, on the elements that a rank owns.
 * Body and tail of every loop do the same operations, so bits do not depend on how elements are
 * cut into slices (numerics.md). */
#ifndef WEFT_RUNTIME_NN_OPTIMIZER_H
#define WEFT_RUNTIME_NN_OPTIMIZER_H

#include <stdbool.h>
#include <stdint.h>

#include "spec/config.h"

/* AdamW (Loshchilov and Hutter 2019) with bias correction from the step number t = 1, 2, ...:
 *   g = clip * gradient; m = b1 m + (1-b1) g; v = b2 v + (1-b2) g^2;
 *   p -= lr * ((m / (1-b1^t)) / (sqrt(v / (1-b2^t)) + eps) + decay * p) */
struct weft_adamw { /* and LAMB */
    float lr, eps, decay;
    float clip; /* factor of the gradient */
    /* From weft_adamw_at: beta, 1 - beta (in fp32 it would be off by 5e-5 for 0.999) and
     * 1 / (1 - beta^t). */
    float beta1, beta2, rest1, rest2, correction1, correction2;
};
/* Fills what depends on the betas and on step t >= 1, in double, rounded once. */
void weft_adamw_at(struct weft_adamw *adamw, double beta1, double beta2, int64_t t);

/* Stochastic gradient descent with momentum (Sutskever et al. 2013, in the form in which the rate
 * may change) and decay added to the gradient:
 *   g = clip * gradient + decay * p; m = momentum m + g; p -= lr * m */
struct weft_sgd {
    float lr, momentum, decay, clip;
};

/* LAMB (You et al. 2020) has AdamW's moments and steps
 *   s = (m / (1-b1^t)) / (sqrt(v / (1-b2^t)) + eps) + decay * p;  p -= lr * trust * s
 * where `trust` is |p| / |s| over the whole tensor, and 1 when either length is 0 or not finite, or
 * when the tensor is exempt from decay: biases and norms are then neither decayed nor adapted, as
 * is usual. s is computed once for its length and once to be applied, with the same bits, so that
 * it needs no memory of its own. */

/* What an update needs beside the parameters: the settings of one step. */
struct weft_optimizer {
    enum weft_optimizer_type type;
    bool exempt_vectors; /* tensors that do not decay by themselves have no decay */
    float decay;
    struct weft_adamw adamw; /* of AdamW and LAMB; what the type does not use is not read */
    struct weft_sgd sgd;
};
/* The settings of step t = 1, 2, ... of a training. */
struct weft_optimizer weft_optimizer_at(const struct weft_train *train, int64_t t, double lr,
                                        double clip);

/* n elements of one tensor. An optimizer without momentum has no moment1, SGD no moment2. */
struct weft_update {
    float *parameters;
    const void *gradients;
    enum weft_dtype gradient_dtype;
    float *moment1, *moment2;
    void *copy; /* of the parameters, rounded to copy_dtype; NULL: none is wanted */
    enum weft_dtype copy_dtype;
    int64_t n;
};
/* `matrix`: the tensor decays whatever exempt_vectors says. LAMB takes the elements for the whole
 * tensor; where they are not, see below. */
void weft_optimizer_update(const struct weft_optimizer *optimizer, bool matrix,
                           const struct weft_update *update);

/* Exact sum of squares of fp32 numbers, independent of order: squares of mantissas are summed as
 * integers, one bin of two words for each exponent e: words 2e and 2e + 1 hold multiples of 1 and
 * of 2^24. Words of different ranks are added as integers (comm_agree); 2^40 numbers on 2^20 ranks
 * do not overflow. WEFT_NORM_WORDS uint64; fits in half of WEFT_AGREE_BYTES together with loss and
 * flags. Which words a square adds to depends on its neighbours; their sum does not. */
enum { WEFT_NORM_WORDS = 512 };
void weft_norm_add(uint64_t bins[WEFT_NORM_WORDS], const float *x, int64_t n);
/* Square root of the sum, rounded to double once; *finite false when any x was not finite (then
 * the result is infinite). */
double weft_norm_result(const uint64_t bins[WEFT_NORM_WORDS], int *finite);

/* The same sum in few words, for ranks that add many: words of 32 bits, lowest first, and a last
 * one that is not 0 when any x was not finite. They are added as the bins are. */
enum { WEFT_NORM_PACKED_WORDS = 20 };
void weft_norm_pack(const uint64_t bins[WEFT_NORM_WORDS], uint64_t words[WEFT_NORM_PACKED_WORDS]);
double weft_norm_unpack(const uint64_t words[WEFT_NORM_PACKED_WORDS], int *finite);

/* LAMB's update in parts, on any elements of a tensor: first the moments of all that this rank
 * updates, then the squares of what it alone counts, and when ranks have added them, the rest. */
struct weft_lamb_bins {
    uint64_t parameters[WEFT_NORM_WORDS], steps[WEFT_NORM_WORDS];
};
void weft_lamb_moments(const struct weft_optimizer *optimizer, const struct weft_update *update);
void weft_lamb_add(const struct weft_optimizer *optimizer, bool matrix,
                   const struct weft_update *update, struct weft_lamb_bins *bins);
/* From the two sums of squares, as packed words. */
float weft_lamb_trust(const struct weft_optimizer *optimizer, bool matrix,
                      const uint64_t parameters[WEFT_NORM_PACKED_WORDS],
                      const uint64_t steps[WEFT_NORM_PACKED_WORDS]);
void weft_lamb_apply(const struct weft_optimizer *optimizer, bool matrix, float trust,
                     const struct weft_update *update);
/* False: its trust is 1 whatever its norms. */
bool weft_lamb_adapts(const struct weft_optimizer *optimizer, bool matrix);

#endif
