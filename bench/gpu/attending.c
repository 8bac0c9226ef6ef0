/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/gpu/attending.h"

#include <stdio.h>

#include "runtime/nn/cuda/choices/trial.h"
#include "runtime/nn/cuda/products/libraries.h"

static int bench_allocate(int64_t bytes, void **out)
{
    return (int)cudaMalloc(out, (size_t)bytes);
}

static void bench_release(void *memory)
{
    (void)cudaFree(memory);
}

static int bench_share(int64_t bytes, void **out)
{
    return (int)cudaHostAlloc(out, (size_t)bytes, cudaHostAllocMapped | cudaHostAllocPortable);
}

static void bench_unshare(void *memory)
{
    (void)cudaFreeHost(memory);
}

static const char *bench_explain(int code)
{
    return cudaGetErrorString((cudaError_t)code);
}

/* The parts of a machine that trials use. */
static const struct weft_cuda_machine machine = {.name = "cuda",
                                                 .allocate = bench_allocate,
                                                 .release = bench_release,
                                                 .share = bench_share,
                                                 .unshare = bench_unshare,
                                                 .explain = bench_explain,
                                                 .attending = WEFT_CUDA_ATTENDING_LIBRARY};

/* Makes a library's message a string of JSON. */
static const char *quotable_text(char *text)
{
    for (char *at = text; *at != '\0'; at++) {
        if (*at == '"' || *at == '\\' || (unsigned char)*at < ' ') *at = ' ';
    }
    return text;
}

static void tell_time(const char *name, double us, double bound)
{
    printf("{\"kernel\": \"%s\", \"us\": %.2f, \"bound us\": %.3f}\n", name, us, bound);
}

struct way {
    const char *name;
    bool own, ordered;
};

/* Proves and times one way. Without order the second backward may differ, so only times count. */
static void tell_way(const struct timing *t, struct weft_cuda_attending *library,
                     const struct weft_cuda_attention *shape, const struct way *way)
{
    const struct weft_cuda_attending_ops *ops = machine.attending;
    const double n = (double)(shape->samples * shape->seq_len * shape->hidden),
                 flops = n * (double)shape->seq_len;
    struct weft_cuda_attending_plan *plan = NULL;
    struct weft_cuda_trial *trial = NULL;
    struct weft_error err = {0};
    double us[2] = {0}, worst = 0;
    char name[64];
    const struct weft_cuda_attending_facts *facts = NULL;
    int64_t bytes = 0;
    enum weft_status status =
        way->own ? WEFT_OK : ops->prepare(library, shape, way->ordered, &plan, &err);
    if (plan != NULL) {
        facts = ops->facts(plan);
        bytes = facts->forward_bytes > facts->backward_bytes ? facts->forward_bytes
                                                             : facts->backward_bytes;
    }
    if (status == WEFT_OK)
        status = weft_cuda_trial_open(&machine, library, shape, bytes, &trial, &err);
    if (status == WEFT_OK) status = weft_cuda_trial_time(trial, plan, us, &err);
    if (status == WEFT_OK) {
        snprintf(name, sizeof name, "attention, %s, bf16", way->name);
        tell_time(name, us[0], timing_bound_us(t, 8 * n, 2 * flops, WEFT_BF16));
        snprintf(name, sizeof name, "attention backward, %s, bf16", way->name);
        tell_time(name, us[1], timing_bound_us(t, 16 * n, 5 * flops, WEFT_BF16));
        status = weft_cuda_trial_prove(trial, plan, &worst, &err);
    }
    printf("{\"attention\": \"%s\", \"forward\": \"%s\", \"backward\": \"%s\", \"forward MiB\": "
           "%.1f, \"backward MiB\": %.1f, \"worst error / bound\": %.3f, \"fault\": \"%s\"}\n",
           way->name, facts != NULL ? facts->forward : "own",
           facts != NULL ? facts->backward : "own",
           facts != NULL ? (double)facts->forward_bytes / (1 << 20) : 0,
           facts != NULL ? (double)facts->backward_bytes / (1 << 20) : 0, worst,
           status == WEFT_OK ? "" : quotable_text(err.text));
    fflush(stdout);
    weft_cuda_trial_close(trial);
    if (plan != NULL) ops->release(plan);
}

void tell_attending(const struct timing *timing, const struct weft_cuda_attention *shape)
{
    static const struct way ways[] = {
        {"own", true, true}, {"cudnn", false, true}, {"unordered", false, false}};
    const struct weft_cuda_attending_ops *ops = machine.attending;
    struct weft_cuda_attending *library = NULL;
    struct weft_error err = {0};
    if (ops == NULL) return;
    if (ops->open(&library, &err) != WEFT_OK) {
        printf("{\"attention\": \"cudnn\", \"skipped\": \"%s\"}\n", quotable_text(err.text));
        return;
    }
    printf("{\"attention\": \"title\", \"title\": \"%s\"}\n", ops->title(library));
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        tell_way(timing, library, shape, &ways[i]);
    }
    ops->close(library);
}
