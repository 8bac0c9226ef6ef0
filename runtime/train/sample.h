/* SPDX-License-Identifier: Apache-2.0 */
/* Sampling draws one of n by probability, sharpened by a temperature and cut to the likeliest. The
 * draw is a function of the seed and the place. */
#ifndef WEFT_RUNTIME_TRAIN_SAMPLE_H
#define WEFT_RUNTIME_TRAIN_SAMPLE_H

#include <stdint.h>

struct weft_sampling {
    double temperature; /* 0: the likeliest token, the first of equals */
    int64_t top_k;      /* the k likeliest only; 0: all */
    int64_t below;      /* tokens below it only; 0: all */
    uint64_t seed;
};

/* Returns the drawn index. `probabilities` [n] must not be negative, n > 0; they are
 * overwritten. */
int32_t weft_sample(const struct weft_sampling *sampling, double *probabilities, int64_t n,
                    uint64_t place);

#endif
