#include "runtime/nn/cpu.h"

#include <stdio.h>
#include <stdlib.h>

static const struct {
    weft_nn_cpu_fn *forward, *backward;
} layers[WEFT_LAYER_SUPPLIED + 1] = {
    [WEFT_LAYER_EMBEDDING] = {weft_nn_cpu_embedding_forward, weft_nn_cpu_embedding_backward},
    [WEFT_LAYER_TRANSFORMER_BLOCK] = {weft_nn_cpu_block_forward, weft_nn_cpu_block_backward},
    [WEFT_LAYER_LAYER_NORM] = {weft_nn_cpu_layer_norm_forward, weft_nn_cpu_layer_norm_backward},
    [WEFT_LAYER_LINEAR] = {weft_nn_cpu_linear_forward, weft_nn_cpu_linear_backward},
    [WEFT_LAYER_RELU] = {weft_nn_cpu_relu_forward, weft_nn_cpu_relu_backward},
    [WEFT_LAYER_GELU] = {weft_nn_cpu_gelu_forward, weft_nn_cpu_gelu_backward},
    [WEFT_LAYER_LM_HEAD] = {weft_nn_cpu_lm_head_forward, weft_nn_cpu_lm_head_backward},
    [WEFT_LAYER_CLASSIFIER] = {weft_nn_cpu_classifier_forward, weft_nn_cpu_classifier_backward},
    [WEFT_LAYER_SUPPLIED] = {weft_nn_cpu_supplied_forward, weft_nn_cpu_supplied_backward},
};

static const struct weft_nn_cpu *cpu_of(const struct weft_nn *nn)
{
    return (const struct weft_nn_cpu *)(const void *)nn;
}

static void cpu_close(struct weft_nn *nn)
{
    struct weft_nn_cpu *cpu = (struct weft_nn_cpu *)(void *)nn;
    weft_gemm_close(cpu->gemm);
    free(cpu);
}

static enum weft_status cpu_open(const struct weft_nn_options *options, struct weft_nn **out,
                                 struct weft_error *err)
{
    struct weft_nn_cpu *cpu = calloc(1, sizeof(*cpu));
    if (!cpu) return weft_fail_memory(err, "the CPU's layer kernels");
    cpu->base.backend = &weft_nn_backend_cpu;
    cpu->kernels = weft_kernels_best();
    cpu->threads = options->threads;
#ifdef _OPENMP
    cpu->whole_heads = true;
#else
    cpu->whole_heads = options->threads == 1;
#endif
    const enum weft_status status =
        weft_gemm_open(options->gemm, options->threads, options->compute, &cpu->gemm, err);
    if (status != WEFT_OK) {
        cpu_close(&cpu->base);
        return status;
    }
    snprintf(cpu->description, sizeof(cpu->description), "%s, %s kernels",
             weft_gemm_describe(cpu->gemm), cpu->kernels->level);
    *out = &cpu->base;
    return WEFT_OK;
}

static const char *cpu_describe(const struct weft_nn *nn)
{
    return cpu_of(nn)->description;
}

static const char *cpu_gemm_name(const struct weft_nn *nn)
{
    return weft_gemm_name(cpu_of(nn)->gemm);
}

static enum weft_status run(weft_nn_cpu_fn *function, struct weft_nn *nn,
                            const struct weft_nn_call *call, struct weft_error *err)
{
    if (!function) {
        return weft_fail(err, WEFT_E_DATA,
                         "layer %s: the CPU kernels train no %s; weft_model_trains names the "
                         "layers that train",
                         call->layer->name, weft_layer_type_of(call->layer));
    }
    return function(cpu_of(nn), call, err);
}

static enum weft_status cpu_forward(struct weft_nn *nn, const struct weft_nn_call *call,
                                    struct weft_error *err)
{
    return run(layers[call->layer->type].forward, nn, call, err);
}

static enum weft_status cpu_backward(struct weft_nn *nn, const struct weft_nn_call *call,
                                     struct weft_error *err)
{
    return run(layers[call->layer->type].backward, nn, call, err);
}

static enum weft_status cpu_gemm(struct weft_nn *nn, const struct weft_product *product,
                                 struct weft_error *err)
{
    return weft_gemm_run(cpu_of(nn)->gemm, product, err);
}

const struct weft_nn_backend weft_nn_backend_cpu = {
    .name = "cpu",
    .open = cpu_open,
    .close = cpu_close,
    .describe = cpu_describe,
    .gemm_name = cpu_gemm_name,
    .forward = cpu_forward,
    .backward = cpu_backward,
    .gemm = cpu_gemm,
};
