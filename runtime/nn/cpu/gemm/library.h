/* A library of products that others have made, as a table of functions. */
#ifndef WEFT_RUNTIME_NN_CPU_GEMM_LIBRARY_H
#define WEFT_RUNTIME_NN_CPU_GEMM_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "runtime/nn/product.h"

/* `run` is asked for neither triangles nor finishing.
 * `open` may leave *state NULL. `run` is never called with m, n or k 0, and
 * with dtypes beside f32 only where `has` says so; it is called by one thread at a time. */
struct weft_gemm_library {
    const char *name;  /* in configs: "onednn" */
    const char *title; /* for people: "oneDNN" */
    enum weft_status (*open)(int32_t threads, void **state, struct weft_error *err);
    void (*close)(void *state);
    void (*version)(const void *state, char *text, size_t bytes);
    enum weft_status (*run)(void *state, const struct weft_product *product,
                            struct weft_error *err);
    /* Products of this dtype into itself and into f32. NULL: f32 alone. */
    bool (*has)(void *state, enum weft_dtype dtype);
};
extern const struct weft_gemm_library weft_gemm_onednn;
extern const struct weft_gemm_library weft_gemm_openblas;

#endif
