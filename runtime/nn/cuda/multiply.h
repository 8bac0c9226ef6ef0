/* How a GPU's products are computed, where a library (library.h) may: rank 0 chooses a way for
 * each product of the model's layers, all ranks take rank 0's, as a text that profile and
 * checkpoint keep, so that bits depend on nobody's heuristics. A way is trusted behind a comparison
 * with fp64 (proof.h). What no library computes rightly is a product of our own, and is so on all
 * ranks. */
#ifndef WEFT_RUNTIME_NN_CUDA_MULTIPLY_H
#define WEFT_RUNTIME_NN_CUDA_MULTIPLY_H

#include "runtime/nn/cuda/cuda.h"

/* What becomes of a product. The last is a factor of the GPU's memory. */
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
};

/* The library may compute all of a product, or leave GELU and its slope to our kernels. */
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

/* Never given by CUDA or a library: weft_cuda_multiply of what was not bound. */
enum { WEFT_CUDA_NOT_BOUND = -100000 };

/* NULL: there is none of that key. */
const struct weft_cuda_choice *weft_cuda_find_choice(const struct weft_cuda_choice *choices,
                                                     int32_t n, const struct weft_cuda_key *key);
/* A request with no operands, which a library can be asked about. */
struct weft_cuda_request weft_cuda_request_of(const struct weft_cuda_key *key);
/* Puts a request on a stream in the way of a choice. */
int weft_cuda_run_choice(const struct weft_nn_cuda *cuda, const struct weft_cuda_choice *choice,
                         const struct weft_cuda_request *asked, struct CUstream_st *on);
/* c, finished, of dense operands, in the way that was bound; our own where no library is open. */
int weft_cuda_multiply(const struct weft_nn_cuda *cuda, const struct weft_product *product,
                       const float *times, struct CUstream_st *on);
/* "bf16 f32 tn 768 3072 8192 bias+gelu" */
void weft_cuda_key_show(const struct weft_cuda_key *key, struct weft_text *out);

#endif
