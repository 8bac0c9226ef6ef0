/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/sample.h"

#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "base/rng.h"

/* Index of the largest; the first of equals. */
static int64_t find_likeliest(const double *p, int64_t n)
{
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++) {
        if (p[i] > p[best]) best = i;
    }
    return best;
}

/* The k-th largest, k >= 1. Doubles that are not negative have the order of their bits, so it is
 * found bit by bit. */
static double find_cut(const double *p, int64_t n, int64_t k)
{
    uint64_t cut = 0;
    for (int bit = 62; bit >= 0; bit--) {
        uint64_t higher = cut | UINT64_C(1) << bit;
        double value;
        memcpy(&value, &higher, sizeof value);
        int64_t count = 0;
        for (int64_t i = 0; i < n; i++)
            count += p[i] >= value;
        if (count >= k) cut = higher;
    }
    double value;
    memcpy(&value, &cut, sizeof value);
    return value;
}

static void keep_likeliest(double *p, int64_t n, int64_t k)
{
    double cut = find_cut(p, n, k);
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i++)
        kept += p[i] > cut;
    /* Fills up with the first values equal to the cut. */
    for (int64_t i = 0; i < n; i++) {
        if (p[i] > cut) continue;
        if (p[i] < cut || kept == k) {
            p[i] = 0;
        } else {
            kept++;
        }
    }
}

int32_t weft_sample(const struct weft_sampling *sampling, double *p, int64_t n, uint64_t place)
{
    if (sampling->below > 0 && sampling->below < n) n = sampling->below;
    int64_t best = find_likeliest(p, n);
    if (sampling->temperature <= 0 || p[best] <= 0) return (int32_t)best;
    if (sampling->top_k > 0 && sampling->top_k < n) keep_likeliest(p, n, sampling->top_k);
    double most = log(p[best]), sum = 0;
    for (int64_t i = 0; i < n; i++) {
        p[i] = p[i] > 0 ? exp((log(p[i]) - most) / sampling->temperature) : 0;
        sum += p[i];
    }
    double left = weft_rng_uniform(sampling->seed, weft_hash_string("generate"), place) * sum;
    for (int64_t i = 0; i < n; i++) {
        left -= p[i];
        if (left < 0) return (int32_t)i;
    }
    return (int32_t)best; /* rounding left a rest */
}
