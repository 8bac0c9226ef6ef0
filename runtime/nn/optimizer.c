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

void weft_adamw_update(const struct weft_adamw *adamw, float *parameters, const float *gradients,
                       float *moment1, float *moment2, int64_t n)
{
    weft_kernels_best()->adamw(adamw, n, parameters, gradients, moment1, moment2);
}
