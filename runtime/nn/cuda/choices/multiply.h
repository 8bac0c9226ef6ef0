/* SPDX-License-Identifier: Apache-2.0 */
/* Decides how a GPU's products are computed, if a library (library.h) can. Rank 0 chooses an
 * algorithm for each product of the model's layers. All ranks take its choices as a text, which
 * profile and checkpoint keep, so bits depend on no rank's heuristics. An algorithm is used only
 * after a comparison with fp64 (proof.h). A product that no algorithm computes correctly is our own
 * on all ranks. */
#ifndef WEFT_RUNTIME_NN_CUDA_CHOICES_MULTIPLY_H
#define WEFT_RUNTIME_NN_CUDA_CHOICES_MULTIPLY_H

#include "runtime/nn/cuda/cuda.h"

/* Parts of a product's finish. The last one is a factor in GPU memory. */
enum weft_cuda_finish {
    WEFT_CUDA_BIAS = 1,
    WEFT_CUDA_RESIDUAL = 2,
    WEFT_CUDA_GELU = 4,
    WEFT_CUDA_SLOPE = 8,
    WEFT_CUDA_TIMES = 16
};
enum { WEFT_CUDA_FINISHES = 5 };
extern const char *const weft_cuda_finish_names[WEFT_CUDA_FINISHES]; /* by bit */

struct weft_cuda_key {
    enum weft_dtype dtype, c_dtype;
    bool transpose_a, transpose_b;
    unsigned finish;
    int64_t m, n, k;
    int64_t a_gap, c_gap; /* elements between stored rows; b is dense */
};

/* The library does all of a product, or leaves GELU and its slope to our kernels, or our kernels do
 * all. */
enum weft_cuda_way {
    WEFT_CUDA_BY_LIBRARY,
    WEFT_CUDA_BY_BOTH,
    WEFT_CUDA_BY_OWN,
    WEFT_CUDA_WAY_COUNT
};

struct weft_cuda_choice {
    struct weft_cuda_key key;
    enum weft_cuda_way way;
    struct weft_cuda_algorithm algorithm;
};

/* A range of a product's columns (n), rows (m) or terms (k), which begins at `from`. */
struct weft_cuda_part {
    struct weft_cuda_key key;
    int64_t from;
};
enum { WEFT_CUDA_MOST_PARTS = 2 };

/* The key of a product; `timed`: it has a factor in GPU memory. */
struct weft_cuda_key weft_cuda_key_of(const struct weft_product *product, bool timed);
/* True if a library may compute it: keys have no stride of b. */
static inline bool weft_cuda_has_dense_b(const struct weft_product *product)
{
    return product->b_stride == (product->transpose_b ? product->k : product->n);
}
/* Returns the number of parts in which a product is computed. Libraries need up to 7 times longer
 * for odd widths, so logits of an odd vocabulary have two parts: up to a multiple of 128, and the
 * rest. */
int weft_cuda_parts(const struct weft_cuda_key *key,
                    struct weft_cuda_part out[WEFT_CUDA_MOST_PARTS]);
/* Finds the choice with this key, or NULL. */
const struct weft_cuda_choice *weft_cuda_find_choice(const struct weft_cuda_choice *choices,
                                                     int32_t n, const struct weft_cuda_key *key);
/* A request without operands, for queries to the library. */
struct weft_cuda_request weft_cuda_request_of(const struct weft_cuda_key *key);
/* Adds a request to a stream, in the way of a choice. */
int weft_cuda_run_choice(const struct weft_nn_cuda *cuda, const struct weft_cuda_choice *choice,
                         const struct weft_cuda_request *asked, struct CUstream_st *on);
/* Computes c, with its finish, in the way that was bound, part by part. Without an open
 * library, or with rows of b apart, our own kernels compute all of it. */
int weft_cuda_multiply(const struct weft_nn_cuda *cuda, const struct weft_product *product,
                       const float *times, struct CUstream_st *on);
/* Appends the key, as "bf16 f32 tn 768 3072 8192 bias+gelu". Gaps follow the finish: "bias+c:47".
 */
void weft_cuda_key_show(const struct weft_cuda_key *key, struct weft_text *out);

#endif
