#include "runtime/nn/optimizer.h"

#include <math.h>

#include "runtime/nn/kernels.h"

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
    };
    weft_adamw_at(&out.adamw, train->optimizer.betas[0], train->optimizer.betas[1], t);
    return out;
}

static void update_in_f32(const struct weft_kernels *kernels,
                          const struct weft_optimizer *optimizer, float decay, int64_t n,
                          float *parameters, const float *gradients, float *moment1, float *moment2)
{
    struct weft_adamw adamw = optimizer->adamw;
    struct weft_sgd sgd = optimizer->sgd;
    switch (optimizer->type) {
    case WEFT_ADAMW:
        adamw.decay = decay;
        kernels->adamw(&adamw, n, parameters, gradients, moment1, moment2);
        return;
    case WEFT_SGD:
        sgd.decay = decay;
        kernels->sgd(&sgd, n, parameters, gradients, moment1);
        return;
    case WEFT_OPTIMIZER_COUNT:
        return;
    }
}

/* With 16 bits, in pieces that stay in the first cache: every stream passes memory once. */
void weft_optimizer_update(const struct weft_optimizer *optimizer, bool matrix,
                           const struct weft_update *u)
{
    enum { PIECE = 2048 };
    const struct weft_kernels *kernels = weft_kernels_best();
    const float decay = matrix || !optimizer->exempt_vectors ? optimizer->decay : 0;
    const bool narrow = u->gradient_dtype != WEFT_F32;
    const int64_t step = narrow || u->copy ? PIECE : u->n;
    float wide[PIECE];
    for (int64_t at = 0; at < u->n; at += step) {
        const int64_t n = u->n - at < step ? u->n - at : step;
        const void *gradients =
            (const char *)u->gradients + at * weft_dtype_bytes(u->gradient_dtype);
        if (narrow) kernels->widen(u->gradient_dtype, n, gradients, wide);
        update_in_f32(kernels, optimizer, decay, n, u->parameters + at, narrow ? wide : gradients,
                      u->moment1 ? u->moment1 + at : NULL, u->moment2 ? u->moment2 + at : NULL);
        if (u->copy)
            kernels->narrow(u->copy_dtype, n, u->parameters + at,
                            (char *)u->copy + at * weft_dtype_bytes(u->copy_dtype));
    }
}
