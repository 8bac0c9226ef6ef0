/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/profile/flops.h"

#include "spec/config_batch.h"

double weft_flops_peak(const struct weft_config *config, const char **figure)
{
    const struct weft_device_spec *device = &config->cluster.device;
    switch ((enum weft_dtype)config->train.precision.compute) {
    case WEFT_F32:
        *figure = "device.flops.f32";
        return device->flops.f32;
    case WEFT_BF16:
        *figure = "device.flops.bf16";
        return device->flops.bf16;
    case WEFT_F16:
        *figure = "device.flops.f16";
        return device->flops.f16;
    case WEFT_DTYPE_COUNT:
        break;
    }
    *figure = "device.flops";
    return 0;
}

enum weft_status weft_flops_of_step(const struct weft_config *config, double *out,
                                    struct weft_error *err)
{
    const struct weft_model *model = config->model;
    const struct weft_batch batch = weft_config_batch(config);
    double flops = 0;
    for (int32_t i = 0; i < model->n_layers; i++) {
        struct weft_layer_work work;
        WEFT_TRY(weft_layer_work(&model->layers[i], &batch, &work, err));
        flops += work.forward_flops + work.backward_flops;
    }
    *out = flops * ((double)weft_config_samples(config) / (double)batch.samples);
    return WEFT_OK;
}
