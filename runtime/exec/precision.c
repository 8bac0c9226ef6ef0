/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/precision.h"

static enum weft_status fail_pair(const char *key, enum weft_dtype is, enum weft_dtype other,
                                  const char *why, struct weft_error *err)
{
    return weft_fail(err, WEFT_E_DATA, "train.precision.%s is %s: %s. Set it to \"f32\"%s%s%s", key,
                     weft_dtype_name(is), why, other == WEFT_F32 ? "" : " or \"",
                     other == WEFT_F32 ? "" : weft_dtype_name(other),
                     other == WEFT_F32 ? "" : "\"");
}

enum weft_status weft_precision_check_update(const struct weft_config *config,
                                             struct weft_error *err)
{
    if (!weft_config_means(config) || config->cluster.device.type == WEFT_DEVICE_CPU)
        return WEFT_OK;
    return weft_fail(
        err, WEFT_E_DATA,
        "%s: $.train.optimizer.type is \"adam_mini\", which GPUs only plan so far: they "
        "have no kernel of its update. Take \"adamw\", or set cluster.device.type to "
        "\"cpu\"",
        config->source);
}

enum weft_status weft_precision_check(const struct weft_config *config, struct weft_error *err)
{
    const struct weft_train *train = &config->train;
    enum weft_dtype compute = (enum weft_dtype)train->precision.compute;
    enum weft_dtype reduce = (enum weft_dtype)train->precision.reduce;
    enum weft_dtype accumulate = (enum weft_dtype)train->precision.accumulate;
    if (reduce != WEFT_F32 && reduce != compute)
        return fail_pair("reduce", reduce, compute,
                         "full gradients are f32, or of the dtype that layers compute in", err);
    if (accumulate != WEFT_F32 && accumulate != reduce)
        return fail_pair("accumulate", accumulate, reduce,
                         "reduced gradients are f32, or of the dtype of the reduction", err);
    if (train->grad_accum > 1 && reduce != WEFT_F32)
        return fail_pair("reduce", reduce, WEFT_F32,
                         "gradients of several micro-steps (train.grad_accum) are added up in f32",
                         err);
    if (compute == WEFT_F16 && !(train->clip_norm > 0) &&
        !weft_optimizer_row(train->optimizer.type)->agrees && !weft_config_means(config))
        return weft_fail(err, WEFT_E_DATA,
                         "train.precision.compute is f16 and train.clip_norm is 0: whether a step "
                         "overflowed is known only after the last reduction, so updates must wait "
                         "for it. Set clip_norm (1e12 clips nothing), or compute in \"bf16\"");
    return weft_precision_check_update(config, err);
}

struct weft_loss_scale weft_loss_scale_first(const struct weft_train *train)
{
    bool scales = train->precision.compute == WEFT_F16;
    return (struct weft_loss_scale){.scale = scales ? train->loss_scale.initial : 1};
}

bool weft_loss_scale_next(struct weft_loss_scale *scale, const struct weft_train *train,
                          bool finite)
{
    if (train->precision.compute != WEFT_F16) return finite;
    if (!finite) {
        scale->good_steps = 0;
        if (scale->scale <= 1) return false;
        scale->scale /= 2;
        return true;
    }
    if (++scale->good_steps < train->loss_scale.growth_steps) return true;
    scale->good_steps = 0;
    if (scale->scale < WEFT_LOSS_SCALE_MOST) scale->scale *= 2;
    return true;
}
