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

void weft_optimizer_update(const struct weft_optimizer *optimizer, bool matrix,
                           const struct weft_update *update)
{
    const struct weft_kernels *kernels = weft_kernels_best();
    const float decay = matrix || !optimizer->exempt_vectors ? optimizer->decay : 0;
    struct weft_adamw adamw = optimizer->adamw;
    struct weft_sgd sgd = optimizer->sgd;
    switch (optimizer->type) {
    case WEFT_ADAMW:
        adamw.decay = decay;
        kernels->adamw(&adamw, update->n, update->parameters, update->gradients, update->moment1,
                       update->moment2);
        break;
    case WEFT_SGD:
        sgd.decay = decay;
        kernels->sgd(&sgd, update->n, update->parameters, update->gradients, update->moment1);
        break;
    case WEFT_OPTIMIZER_COUNT:
        break;
    }
}
