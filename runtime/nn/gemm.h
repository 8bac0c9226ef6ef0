/* A gemm is the one matrix product that all layers are made of, c = alpha op(a) op(b) (+ c), fp32,
 * row-major, computed by a library. oneDNN and OpenBLAS can each be in the build or not; "auto"
 * measures those that are and keeps the faster. For one library, number of threads and kind of CPU
 * the same numbers give the same bits, wherever they lie. */
#ifndef WEFT_RUNTIME_NN_GEMM_H
#define WEFT_RUNTIME_NN_GEMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct weft_gemm;

/* op(a) is [m, k], op(b) [k, n], c [m, n]; the strides are those of the rows as stored. */
struct weft_product {
    bool transpose_a, transpose_b;
    int64_t m, n, k;
    const float *a, *b;
    int64_t a_stride, b_stride, c_stride;
    float alpha;
    bool accumulate; /* false: c is not read, and may hold anything */
    float *c;
};

/* A library's side of it. `open` may leave *state NULL. `run` is never called with m, n or k 0. */
struct weft_gemm_library {
    const char *name;  /* in configs: "onednn" */
    const char *title; /* for people: "oneDNN" */
    enum weft_status (*open)(int32_t threads, void **state, struct weft_error *err);
    void (*close)(void *state);
    void (*version)(const void *state, char *text, size_t bytes);
    enum weft_status (*run)(const void *state, const struct weft_product *product,
                            struct weft_error *err);
};
extern const struct weft_gemm_library weft_gemm_onednn;
extern const struct weft_gemm_library weft_gemm_openblas;

/* `name` "onednn", "openblas" or "auto" (about 30 ms when both are there). WEFT_E_USAGE for another
 * name or threads < 1, WEFT_E_ENVIRONMENT for a library that this build or machine does not have.
 * Freed by weft_gemm_close, which accepts NULL. */
WEFT_MUST_USE enum weft_status weft_gemm_open(const char *name, int32_t threads,
                                              struct weft_gemm **out, struct weft_error *err);
void weft_gemm_close(struct weft_gemm *gemm);

const char *weft_gemm_name(const struct weft_gemm *gemm);     /* "onednn" */
const char *weft_gemm_describe(const struct weft_gemm *gemm); /* with the reason of the choice */

/* Synchronous. WEFT_E_SYSTEM when the library fails (it could not allocate its packing buffers, or
 * a size exceeds its integers). */
WEFT_MUST_USE enum weft_status weft_gemm_run(const struct weft_gemm *gemm,
                                             const struct weft_product *product,
                                             struct weft_error *err);

#endif
