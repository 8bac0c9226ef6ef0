/* SPDX-License-Identifier: Apache-2.0 */
/* A multiplier does all products, or only some. A list asks its multipliers in order, and the first
 * one that covers a product does it. Some multipliers delegate: triangle, finish and emulation
 * change the product and pass the result to later ones. */
#ifndef WEFT_RUNTIME_NN_CPU_GEMM_MULTIPLIER_H
#define WEFT_RUNTIME_NN_CPU_GEMM_MULTIPLIER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "runtime/nn/product.h"

struct weft_multiplier;

/* An open multiplier of a list. A NULL multiplier ends the list. */
struct weft_multiplier_link {
    const struct weft_multiplier *multiplier;
    void *state;
};

/* `open` may leave *state NULL, and `close` accepts NULL. Without `open` there is no state.
 * Products have no empty side, and one thread at a time calls. */
struct weft_multiplier {
    const char *name;  /* of a library, in configs: "onednn" */
    const char *title; /* for people: "oneDNN" */
    uint32_t dtypes;   /* 1u << WEFT_F32 ...; limits the lists that contain it */
    enum weft_status (*open)(int32_t threads, enum weft_dtype dtype, void **state,
                             struct weft_error *err);
    void (*close)(void *state);
    void (*version)(const void *state, char *text,
                    size_t bytes); /* of a library; `state` may be NULL */
    /* Instructions that a library uses, on which its bits depend; NULL: they depend on none. */
    const char *(*instructions)(void);
    bool (*covers)(const void *state, const struct weft_product *product);
    enum weft_status (*run)(void *state, const struct weft_multiplier_link *next,
                            const struct weft_product *product, struct weft_error *err);
};
enum { WEFT_EVERY_DTYPE = (1 << WEFT_DTYPE_COUNT) - 1 };

/* gemm.c lists those of the build. */
extern const struct weft_multiplier weft_multiplier_amx;          /* amx.c: bf16 */
extern const struct weft_multiplier weft_multiplier_amx_in_parts; /* amx.c: large f32 */
extern const struct weft_multiplier weft_multiplier_avx512;       /* avx512.c: large f32 */
extern const struct weft_multiplier weft_multiplier_onednn;       /* no triangle, no finish */

extern const struct weft_multiplier weft_multiplier_plain; /* no triangle, no finish */

/* Does a triangle as one product for each group of rows of c. */
extern const struct weft_multiplier weft_multiplier_triangle;
/* Does a product with a finish. Terms to add go to c before the product, and a pass over c does the
 * rest. */
extern const struct weft_multiplier weft_multiplier_finish;
/* Does products of 16 bits by fp32 products. Parts of a and b are widened into buffers of fixed
 * size and multiplied in fp32. A result of 16 bits is rounded once. Parts depend on sizes alone, so
 * bits do too. */
extern const struct weft_multiplier weft_multiplier_emulation;

/* Multiplies by the first multiplier that covers the product. WEFT_E_INTERNAL if none does. */
WEFT_MUST_USE enum weft_status weft_multiply(const struct weft_multiplier_link *links,
                                             const struct weft_product *product,
                                             struct weft_error *err);

#endif
