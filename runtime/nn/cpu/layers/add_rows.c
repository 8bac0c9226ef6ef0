/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "runtime/nn/cpu/layers/table.h"

enum { TABLE, FIRST };

static int64_t position_of(const struct weft_nn_call *call, int64_t row)
{
    return row % call->batch.seq_len + (call->cache != NULL ? call->cache->before : 0);
}

/* The row of the table that row `row` takes. */
static int64_t table_row_of(const struct weft_nn_walked *at, int64_t row)
{
    return at->step->sizes.positions > 0 ? position_of(at->call, row) : 0;
}

/* True if the learned vector takes the place of the row. */
static bool is_first(const struct weft_nn_walked *at, int64_t row)
{
    return at->step->n_tensors > FIRST && position_of(at->call, row) == 0;
}

enum weft_status weft_nn_cpu_add_rows_forward(const struct weft_nn_walked *at,
                                              struct weft_error *err)
{
    (void)err;
    const enum weft_dtype dtype = at->call->batch.compute;
    const int64_t width = at->in[0].columns;
    const void *table = weft_nn_step_weight(at, TABLE), *first = weft_nn_step_weight(at, FIRST);
    for (int64_t i = 0; i < at->in[0].rows; i++) {
        const void *x = weft_nn_at(dtype, at->in[0].data, i * width);
        weft_nn_step_kernels(at)->add(width, is_first(at, i) ? first : x,
                                      weft_nn_at(dtype, table, table_row_of(at, i) * width),
                                      weft_nn_to(dtype, at->out[0].data, i * width));
    }
    return WEFT_OK;
}

/* Adds rows of dy to the gradient of a tensor. */
static void add_rows_to(const struct weft_nn_walked *at, int32_t index)
{
    const enum weft_dtype to = at->call->gradient_dtype;
    const int32_t tensor = weft_nn_step_tensor(at, index);
    const struct weft_layer_tensor *of = &at->walk->tensors[tensor];
    const int64_t width = at->in[0].columns, table_rows = of->columns > 0 ? of->rows : 1;
    const bool adds = at->call->accumulate[tensor];
    /* Each row of the table, or the learned vector, is taken once a sample. A table without
     * positions has one row for all. */
    const bool of_positions = index == TABLE && at->step->sizes.positions > 0;
    const int64_t step = of_positions || index == FIRST ? at->call->batch.seq_len : 1;
    void *gradient = at->call->gradients[tensor];
    if (gradient == NULL) return;
    if (!adds) memset(gradient, 0, (size_t)(table_rows * width * weft_dtype_bytes(to)));
    for (int64_t p = 0; p < (of_positions ? step : 1) && p < at->in[0].rows; p++) {
        const struct weft_nn_taken taken = {NULL, p, step};
        weft_nn_cpu_table_row(at, &taken, at->in[0].rows, width, 1, adds,
                              weft_nn_to(to, gradient, p * width));
    }
}

enum weft_status weft_nn_cpu_add_rows_backward(const struct weft_nn_walked *at,
                                               struct weft_error *err)
{
    (void)err;
    const enum weft_dtype dtype = at->call->batch.compute;
    const size_t bytes = (size_t)(at->in[0].columns * weft_dtype_bytes(dtype));
    for (int32_t index = TABLE; index < at->step->n_tensors; index++)
        add_rows_to(at, index);
    for (int64_t i = 0; i < at->in[0].rows && at->d_in[0].data != NULL; i++) {
        char *to = weft_nn_to(dtype, at->d_in[0].data, i * at->in[0].columns);
        if (is_first(at, i))
            memset(to, 0, bytes);
        else
            memcpy(to, weft_nn_at(dtype, at->d_out.data, i * at->in[0].columns), bytes);
    }
    return WEFT_OK;
}
