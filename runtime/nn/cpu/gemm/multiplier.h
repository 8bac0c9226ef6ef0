/* A multiplier does products: all, or those that it covers. A list of them is asked in order, and
 * the first that covers a product does it. Some do it by others: they change the product (triangle,
 * finish, emulation) and hand what they make of it to those behind them. */
#ifndef WEFT_RUNTIME_NN_CPU_GEMM_MULTIPLIER_H
#define WEFT_RUNTIME_NN_CPU_GEMM_MULTIPLIER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "runtime/nn/product.h"

struct weft_multiplier;

/* One of a list, opened. The last one's multiplier is NULL. */
struct weft_multiplier_link {
    const struct weft_multiplier *multiplier;
    void *state;
};

/* `open` may leave *state NULL, and `close` accepts it; without one there is no state. Products
 * have no side that is 0, and come from one thread at a time. */
struct weft_multiplier {
    const char *name;  /* in configs, where it is a library: "onednn" */
    const char *title; /* for people: "oneDNN" */
    uint32_t dtypes;   /* 1u << WEFT_F32 ...: a list with it is opened for these alone */
    enum weft_status (*open)(int32_t threads, enum weft_dtype dtype, void **state,
                             struct weft_error *err);
    void (*close)(void *state);
    void (*version)(const void *state, char *text, size_t bytes); /* of a library; or NULL */
    bool (*covers)(const void *state, const struct weft_product *product);
    enum weft_status (*run)(void *state, const struct weft_multiplier_link *next,
                            const struct weft_product *product, struct weft_error *err);
};
enum { WEFT_EVERY_DTYPE = (1 << WEFT_DTYPE_COUNT) - 1 };

/* Which of them a build has is said in gemm.c. */
extern const struct weft_multiplier weft_multiplier_amx;          /* amx.c: bf16 */
extern const struct weft_multiplier weft_multiplier_amx_in_parts; /* amx.c: f32 that pays */
extern const struct weft_multiplier weft_multiplier_avx512;       /* avx512.c: f32 that pays */
extern const struct weft_multiplier weft_multiplier_onednn;       /* neither triangle nor finish */
extern const struct weft_multiplier weft_multiplier_openblas;     /* the same, of f32 */

extern const struct weft_multiplier weft_multiplier_plain; /* neither of them */

/* Triangles, as a product a group of rows of c. */
extern const struct weft_multiplier weft_multiplier_triangle;
/* Products that are finished: what is added lies in c before the product is, the rest is done in a
 * pass over c. */
extern const struct weft_multiplier weft_multiplier_finish;
/* Products of 16 bits by those that have only fp32: parts of a and b are widened into buffers of a
 * fixed size, multiplied in fp32, and what is to be of 16 bits is rounded once. The parts depend on
 * the sizes alone, so the bits do too. */
extern const struct weft_multiplier weft_multiplier_emulation;

/* By the first that covers it. WEFT_E_INTERNAL when none does. */
WEFT_MUST_USE enum weft_status weft_multiply(const struct weft_multiplier_link *links,
                                             const struct weft_product *product,
                                             struct weft_error *err);

#endif
