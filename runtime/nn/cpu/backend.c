/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/shown.h"
#include "runtime/nn/cpu/units.h"

void weft_nn_cpu_close(struct weft_nn *nn)
{
    struct weft_nn_cpu *cpu = (struct weft_nn_cpu *)(void *)nn;
    weft_gemm_close(cpu->gemm);
    free(cpu);
}

/* A lower level than the CPU's shows that bits do not depend on it. */
static enum weft_status check_level(const struct weft_kernels *chosen, struct weft_error *err)
{
    const char *named = weft_kernels_named();
    if (named == NULL || strcmp(chosen->level, named) == 0) return WEFT_OK;
    const bool known = strcmp(named, "avx2") == 0 || strcmp(named, "avx512") == 0;
    char shown[WEFT_SHOWN_BYTES];
    return weft_fail(err, known ? WEFT_E_ENVIRONMENT : WEFT_E_USAGE,
                     "WEFT_KERNELS=%s: levels are \"plain\", \"avx2\" and \"avx512\", and this "
                     "build and CPU have them up to \"%s\"",
                     weft_shown(named, shown), chosen->level);
}

static enum weft_status check_attention(const char *name, struct weft_error *err)
{
    if (name == NULL || strcmp(name, "auto") == 0 || strcmp(name, "own") == 0) return WEFT_OK;
    return weft_fail(err, strcmp(name, "cudnn") == 0 ? WEFT_E_ENVIRONMENT : WEFT_E_USAGE,
                     "WEFT_ATTENTION=%s: a CPU has \"auto\" and \"own\", and a GPU also \"cudnn\"",
                     name);
}

enum weft_status weft_nn_cpu_open(const struct weft_nn_backend *backend, int64_t shift_bytes,
                                  const struct weft_nn_options *options, struct weft_nn **out,
                                  struct weft_error *err)
{
    WEFT_TRY(check_attention(options->attention, err));
    WEFT_TRY(check_level(weft_kernels_best(), err));
    struct weft_nn_cpu *cpu = calloc(1, sizeof(*cpu));
    if (!cpu) return weft_fail_memory(err, "the CPU's layer kernels");
    cpu->base.backend = backend;
    cpu->shift_bytes = shift_bytes;
    cpu->kernels = weft_kernels_best();
    cpu->threads = options->threads;
    const enum weft_status status =
        weft_gemm_open(options->gemm, options->threads, options->compute, &cpu->gemm, err);
    if (status != WEFT_OK) {
        weft_nn_cpu_close(&cpu->base);
        return status;
    }
    /* "plain" is for proofs, so attention uses plain products too. */
    cpu->whole_heads = strcmp(weft_gemm_name(cpu->gemm), "plain") != 0;
    cpu->has_tiles = strcmp(weft_gemm_name(cpu->gemm), "amx") == 0;
    snprintf(cpu->description, sizeof(cpu->description), "%s, %s kernels",
             weft_gemm_describe(cpu->gemm), cpu->kernels->level);
    *out = &cpu->base;
    return WEFT_OK;
}

const char *weft_nn_cpu_describe(const struct weft_nn *nn)
{
    return weft_nn_cpu_of(nn)->description;
}

/* All levels of the other kernels have the same bits. */
void weft_nn_cpu_add_bits(const struct weft_nn *nn, struct weft_text *out)
{
    const struct weft_nn_cpu *cpu = weft_nn_cpu_of(nn);
    const bool whole = cpu->whole_heads && cpu->kernels->attend != NULL;
    weft_gemm_add_bits(cpu->gemm, out);
    weft_text_addf(out, "; attention: %s", whole ? cpu->kernels->level : "products");
}

const char *weft_nn_cpu_gemm_name(const struct weft_nn *nn)
{
    return weft_gemm_name(weft_nn_cpu_of(nn)->gemm);
}

struct call_argument {
    const struct weft_nn *nn;
    struct weft_nn_call call;
};
_Static_assert(sizeof(struct call_argument) <= WEFT_TASK_BYTES,
               "a stream copies a call as one task");

/* The call with addresses of memory. */
static struct weft_nn_call reached_call(const struct call_argument *a)
{
    const struct weft_nn_cpu *cpu = weft_nn_cpu_of(a->nn);
    struct weft_nn_call call = a->call;
    for (int i = 0; i < WEFT_LAYER_TENSORS; i++) {
        call.tensors[i] = weft_nn_cpu_reach(cpu, call.tensors[i]);
        call.gradients[i] = weft_nn_cpu_reach(cpu, call.gradients[i]);
    }
    call.input = weft_nn_cpu_reach(cpu, call.input);
    call.targets = weft_nn_cpu_reach(cpu, call.targets);
    call.tokens = weft_nn_cpu_reach(cpu, call.tokens);
    call.output = weft_nn_cpu_reach(cpu, call.output);
    call.saved = weft_nn_cpu_reach(cpu, call.saved);
    call.temporary = weft_nn_cpu_reach(cpu, call.temporary);
    call.output_gradient = weft_nn_cpu_reach(cpu, call.output_gradient);
    call.input_gradient = weft_nn_cpu_reach(cpu, call.input_gradient);
    call.scale = weft_nn_cpu_reach(cpu, call.scale);
    call.loss = weft_nn_cpu_reach(cpu, call.loss);
    return call;
}

static enum weft_status run_forward(struct weft_stream *stream, const void *argument,
                                    struct weft_error *err)
{
    (void)stream;
    const struct call_argument *a = argument;
    const struct weft_nn_call call = reached_call(a);
    return weft_nn_cpu_forward(a->nn, &call, err);
}

static enum weft_status run_backward(struct weft_stream *stream, const void *argument,
                                     struct weft_error *err)
{
    (void)stream;
    const struct call_argument *a = argument;
    const struct weft_nn_call call = reached_call(a);
    return weft_nn_cpu_backward(a->nn, &call, err);
}

void weft_nn_cpu_push_forward(struct weft_nn *nn, struct weft_stream *stream,
                              const struct weft_nn_call *call)
{
    const struct call_argument argument = {nn, *call};
    weft_stream_push(stream, run_forward, &argument, sizeof(argument));
}

void weft_nn_cpu_push_backward(struct weft_nn *nn, struct weft_stream *stream,
                               const struct weft_nn_call *call)
{
    const struct call_argument argument = {nn, *call};
    weft_stream_push(stream, run_backward, &argument, sizeof(argument));
}

static enum weft_status cpu_open(const struct weft_nn_options *options, struct weft_nn **out,
                                 struct weft_error *err)
{
    return weft_nn_cpu_open(&weft_nn_backend_cpu, 0, options, out, err);
}

const struct weft_nn_backend weft_nn_backend_cpu = {
    .name = "cpu",
    .open = cpu_open,
    WEFT_NN_CPU_FUNCTIONS,
};
