/* A back end of runtime/nn is a const table of functions; its object begins with struct weft_nn.
 * nn.c finds it by name and puts calls on streams; the functions themselves are synchronous, so
 * that they can be called without a device. */
#ifndef WEFT_RUNTIME_NN_BACKEND_H
#define WEFT_RUNTIME_NN_BACKEND_H

#include "runtime/nn/gemm.h"
#include "runtime/nn/nn.h"

struct weft_nn_backend {
    const char *name;
    enum weft_status (*open)(const struct weft_nn_options *options, struct weft_nn **out,
                             struct weft_error *err);
    void (*close)(struct weft_nn *nn);
    const char *(*describe)(const struct weft_nn *nn);
    const char *(*gemm_name)(const struct weft_nn *nn);
    enum weft_status (*forward)(struct weft_nn *nn, const struct weft_nn_call *call,
                                struct weft_error *err);
    enum weft_status (*backward)(struct weft_nn *nn, const struct weft_nn_call *call,
                                 struct weft_error *err);
    enum weft_status (*gemm)(struct weft_nn *nn, const struct weft_product *product,
                             struct weft_error *err);
};

struct weft_nn {
    const struct weft_nn_backend *backend;
};

#endif
