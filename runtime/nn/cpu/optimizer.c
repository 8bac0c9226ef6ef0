/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/nn/optimizer.h"

#include <math.h>

#include "runtime/nn/cpu/kernels/kernels.h"

void weft_adamw_at(struct weft_adamw *adamw, double beta1, double beta2, int64_t t)
{
    adamw->beta1 = (float)beta1;
    adamw->beta2 = (float)beta2;
    adamw->rest1 = (float)(1 - beta1);
    adamw->rest2 = (float)(1 - beta2);
    adamw->correction1 = (float)(1 / (1 - pow(beta1, (double)t)));
    adamw->correction2 = (float)(1 / (1 - pow(beta2, (double)t)));
}

struct weft_optimizer weft_optimizer_at(const struct weft_train *train, int64_t t, double lr,
                                        double clip)
{
    struct weft_optimizer out = {
        .type = (enum weft_optimizer_type)train->optimizer.type,
        .exempt_vectors = train->optimizer.exempt_vectors,
        .decay = (float)train->optimizer.weight_decay,
        .adamw = {.lr = (float)lr, .eps = (float)train->optimizer.eps, .clip = (float)clip},
        .sgd = {.lr = (float)lr, .momentum = (float)train->optimizer.momentum, .clip = (float)clip},
        .divisor = 1,
    };
    weft_adamw_at(&out.adamw, train->optimizer.betas[0], train->optimizer.betas[1], t);
    return out;
}

float weft_mean2_next(double beta2, float v, double clip, double length, int64_t n)
{
    const double clipped = clip * length;
    return (float)(beta2 * (double)v + (1 - beta2) * (clipped * clipped / (double)n));
}

float weft_mean2_divisor(const struct weft_adamw *adamw, float v)
{
    return sqrtf(v * adamw->correction2) + adamw->eps;
}

static float decay_of(const struct weft_optimizer *optimizer, bool matrix)
{
    return matrix || !optimizer->exempt_vectors ? optimizer->decay : 0;
}

/* Elements [at, at + n) of an update. */
static struct weft_update part_of(const struct weft_update *u, int64_t at, int64_t n)
{
    return (struct weft_update){
        .parameters = u->parameters + at,
        .gradients = (const char *)u->gradients + at * weft_dtype_bytes(u->gradient_dtype),
        .gradient_dtype = u->gradient_dtype,
        .moment1 = u->moment1 == NULL ? NULL : u->moment1 + at,
        .moment2 = u->moment2 == NULL ? NULL : u->moment2 + at,
        .copy = u->copy == NULL ? NULL : (char *)u->copy + at * weft_dtype_bytes(u->copy_dtype),
        .copy_dtype = u->copy_dtype,
        .n = n,
    };
}

static int64_t least_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* A piece stays in the first cache, so every array passes through memory once. */
enum { PIECE = 2048 };

void weft_lamb_moments(const struct weft_optimizer *optimizer, const struct weft_update *u)
{
    const struct weft_kernels *kernels = weft_kernels_best();
    float wide[PIECE];
    for (int64_t at = 0; at < u->n; at += PIECE) {
        const struct weft_update part = part_of(u, at, least_of(PIECE, u->n - at));
        const float *gradients = part.gradients;
        if (u->gradient_dtype != WEFT_F32) {
            kernels->widen(u->gradient_dtype, part.n, part.gradients, wide);
            gradients = wide;
        }
        kernels->adam_moments(&optimizer->adamw, part.n, gradients, part.moment1, part.moment2);
    }
}

void weft_lamb_add(const struct weft_optimizer *optimizer, bool matrix, const struct weft_update *u,
                   struct weft_lamb_bins *bins)
{
    enum { CHUNK = 8 * PIECE }; /* large, because adding to bins has a cost for each call */
    struct weft_adamw adamw = optimizer->adamw;
    float steps[CHUNK];
    adamw.decay = decay_of(optimizer, matrix);
    for (int64_t at = 0; at < u->n; at += CHUNK) {
        const struct weft_update part = part_of(u, at, least_of(CHUNK, u->n - at));
        weft_kernels_best()->adam_steps(&adamw, part.n, part.parameters, part.moment1, part.moment2,
                                        steps);
        weft_norm_add(bins->parameters, part.parameters, part.n);
        weft_norm_add(bins->steps, steps, part.n);
    }
}

bool weft_lamb_adapts(const struct weft_optimizer *optimizer, bool matrix)
{
    return matrix || !optimizer->exempt_vectors;
}

float weft_lamb_trust(const struct weft_optimizer *optimizer, bool matrix,
                      const uint64_t parameters[WEFT_NORM_PACKED_WORDS],
                      const uint64_t steps[WEFT_NORM_PACKED_WORDS])
{
    int finite_parameters, finite_steps;
    const double of_parameters = weft_norm_unpack(parameters, &finite_parameters);
    const double of_steps = weft_norm_unpack(steps, &finite_steps);
    const bool known = finite_parameters && finite_steps && of_parameters > 0 && of_steps > 0;
    return known && weft_lamb_adapts(optimizer, matrix) ? (float)(of_parameters / of_steps) : 1;
}

void weft_lamb_apply(const struct weft_optimizer *optimizer, bool matrix, float trust,
                     const struct weft_update *u)
{
    const struct weft_kernels *kernels = weft_kernels_best();
    struct weft_adamw adamw = optimizer->adamw;
    float steps[PIECE];
    adamw.decay = decay_of(optimizer, matrix);
    for (int64_t at = 0; at < u->n; at += PIECE) {
        const struct weft_update part = part_of(u, at, least_of(PIECE, u->n - at));
        kernels->adam_steps(&adamw, part.n, part.parameters, part.moment1, part.moment2, steps);
        kernels->layers[WEFT_F32]->add_to(part.n, -(adamw.lr * trust), steps, true,
                                          part.parameters);
        if (u->copy) kernels->narrow(u->copy_dtype, part.n, part.parameters, part.copy);
    }
}

/* Updates elements that are a whole tensor. */
static void update_lamb(const struct weft_optimizer *optimizer, bool matrix,
                        const struct weft_update *u)
{
    struct weft_lamb_bins bins = {0};
    uint64_t parameters[WEFT_NORM_PACKED_WORDS], steps[WEFT_NORM_PACKED_WORDS];
    weft_lamb_moments(optimizer, u);
    if (weft_lamb_adapts(optimizer, matrix)) weft_lamb_add(optimizer, matrix, u, &bins);
    weft_norm_pack(bins.parameters, parameters);
    weft_norm_pack(bins.steps, steps);
    weft_lamb_apply(optimizer, matrix, weft_lamb_trust(optimizer, matrix, parameters, steps), u);
}

void weft_optimizer_update(const struct weft_optimizer *optimizer, bool matrix,
                           const struct weft_update *u)
{
    const struct weft_kernels *kernels = weft_kernels_best();
    const bool narrow = u->gradient_dtype != WEFT_F32;
    const int64_t step = narrow || u->copy ? PIECE : u->n;
    float wide[PIECE];
    if (kernels->update[optimizer->type] == NULL) {
        update_lamb(optimizer, matrix, u);
        return;
    }
    for (int64_t at = 0; at < u->n; at += step) {
        const struct weft_update part = part_of(u, at, least_of(step, u->n - at));
        if (narrow) kernels->widen(u->gradient_dtype, part.n, part.gradients, wide);
        kernels->update[optimizer->type](optimizer, decay_of(optimizer, matrix), part.n,
                                         part.parameters, narrow ? wide : part.gradients,
                                         part.moment1, part.moment2);
        if (u->copy) kernels->narrow(u->copy_dtype, part.n, part.parameters, part.copy);
    }
}
