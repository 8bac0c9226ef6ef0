#include "runtime/nn/nn.h"

#include <string.h>

#include "runtime/nn/cpu.h"

static const struct weft_nn_backend *const backends[] = {&weft_nn_backend_cpu};
enum { N_BACKENDS = sizeof(backends) / sizeof(backends[0]) };

enum weft_status weft_nn_open(const char *name, const struct weft_nn_options *options,
                              struct weft_nn **out, struct weft_error *err)
{
    for (size_t i = 0; i < N_BACKENDS; i++) {
        if (strcmp(backends[i]->name, name) == 0) return backends[i]->open(options, out, err);
    }
    return weft_fail(err, WEFT_E_ENVIRONMENT,
                     "there are no layer kernels for \"%s\"; there are "
                     "for \"cpu\"",
                     name);
}

void weft_nn_close(struct weft_nn *nn)
{
    if (nn) nn->backend->close(nn);
}

const char *weft_nn_describe(const struct weft_nn *nn)
{
    return nn->backend->describe(nn);
}

const char *weft_nn_gemm_name(const struct weft_nn *nn)
{
    return nn->backend->gemm_name(nn);
}

struct task {
    struct weft_nn *nn;
    struct weft_nn_call call;
};
_Static_assert(sizeof(struct task) <= WEFT_TASK_BYTES, "a stream copies a call as one task");

static enum weft_status forward(struct weft_stream *stream, const void *argument,
                                struct weft_error *err)
{
    (void)stream;
    const struct task *task = argument;
    return task->nn->backend->forward(task->nn, &task->call, err);
}

static enum weft_status backward(struct weft_stream *stream, const void *argument,
                                 struct weft_error *err)
{
    (void)stream;
    const struct task *task = argument;
    return task->nn->backend->backward(task->nn, &task->call, err);
}

void weft_nn_forward(struct weft_nn *nn, struct weft_stream *stream,
                     const struct weft_nn_call *call)
{
    const struct task task = {nn, *call};
    weft_stream_push(stream, forward, &task, sizeof(task));
}

void weft_nn_backward(struct weft_nn *nn, struct weft_stream *stream,
                      const struct weft_nn_call *call)
{
    const struct task task = {nn, *call};
    weft_stream_push(stream, backward, &task, sizeof(task));
}

enum weft_status weft_nn_gemm(struct weft_nn *nn, bool transpose_a, bool transpose_b, int64_t m,
                              int64_t n, int64_t k, const float *a, const float *b, bool accumulate,
                              float *c, struct weft_error *err)
{
    struct weft_product product = weft_product_dense(transpose_a, transpose_b, m, n, k, WEFT_F32);
    product.a = a;
    product.b = b;
    product.c = c;
    product.accumulate = accumulate;
    return nn->backend->gemm(nn, &product, err);
}
