/* To sample is to draw one of n from their probabilities, sharpened by a temperature and cut to the
 * likeliest. The draw is a function of the seed and its place. */
#ifndef WEFT_RUNTIME_TRAIN_SAMPLE_H
#define WEFT_RUNTIME_TRAIN_SAMPLE_H

#include <stdint.h>

struct weft_sampling {
    double temperature; /* 0: always the likeliest token, the first of equals */
    int64_t top_k;      /* only the k likeliest; 0: all */
    int64_t below;      /* only tokens below this; 0: all */
    uint64_t seed;
};

/* The index that is drawn; `probabilities` [n], n > 0, none negative, are overwritten. */
int32_t weft_sample(const struct weft_sampling *sampling, double *probabilities, int64_t n,
                    uint64_t place);

#endif
