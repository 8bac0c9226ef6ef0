/* SPDX-License-Identifier: Apache-2.0 */
/* A step of a layer's walk (layers/recipe/walk.h) with the addresses of a call. Back ends have a
 * table from ops to functions of such steps. */
#ifndef WEFT_RUNTIME_NN_STEP_H
#define WEFT_RUNTIME_NN_STEP_H

#include "layers/recipe/op.h"
#include "runtime/nn/nn.h"

/* A matrix of rows with `stride` elements from one to the next. */
struct weft_nn_operand {
    void *data; /* NULL: none */
    int64_t rows, columns, stride;
};

struct weft_nn_cpu;
struct weft_nn_walked {
    const struct weft_nn_cpu *cpu; /* the back end, of the CPU's functions */
    const struct weft_nn_call *call;
    const struct weft_walk *walk;
    const struct weft_walk_step *step;
    struct weft_nn_operand in[WEFT_STEP_INPUTS], add, out[WEFT_STEP_OUTPUTS];
    void *statistics[WEFT_STEP_STATISTICS];
    void *scores; /* scratch of attention */

    /* Backward: writes d_in[i] = the gradient + old[i], unless d_in[i] has no data. */
    struct weft_nn_operand d_out, turned, d_in[WEFT_STEP_INPUTS], old[WEFT_STEP_INPUTS];
    struct weft_nn_operand slope; /* multiplies d_in[0] by GELU's slope there */
    float scale;                  /* multiplies d_out, on the CPU */
    float *sums;
};

/* A pass over a call's steps. */
struct weft_nn_pass {
    const struct weft_nn_call *call;
    const struct weft_walk *walk;
    bool backward;
    char *dropped;
};

/* The pass has the addresses of the call. Nothing is read or written there. */
struct weft_nn_pass weft_nn_pass_of(const struct weft_nn_call *call, const struct weft_walk *walk,
                                    bool backward);
/* Operands of a step in forward, and when backward restores values. */
struct weft_nn_walked weft_nn_step_forward(const struct weft_nn_pass *pass,
                                           const struct weft_walk_step *step);
struct weft_nn_walked weft_nn_step_backward(const struct weft_nn_pass *pass,
                                            const struct weft_walk_step *step);
/* True if backward of the step has a gradient to compute. */
bool weft_nn_step_has_work(const struct weft_nn_walked *at);

/* The part of a buffer at an offset. */
static inline void *weft_nn_part(void *buffer, int64_t offset_bytes)
{
    return (char *)buffer + offset_bytes;
}

/* Address of element `index` in an array of the dtype. */
static inline const void *weft_nn_at(enum weft_dtype dtype, const void *array, int64_t index)
{
    return (const char *)array + index * weft_dtype_bytes(dtype);
}
static inline void *weft_nn_to(enum weft_dtype dtype, void *array, int64_t index)
{
    return (char *)array + index * weft_dtype_bytes(dtype);
}

/* Index of the step's tensor in the call. */
static inline int32_t weft_nn_step_tensor(const struct weft_nn_walked *at, int32_t index)
{
    return at->step->first_tensor + index;
}

static inline const void *weft_nn_step_weight(const struct weft_nn_walked *at, int32_t index)
{
    return index < at->step->n_tensors ? at->call->tensors[weft_nn_step_tensor(at, index)] : NULL;
}

#endif
