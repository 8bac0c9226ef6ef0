/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/shared/place.h"
#include "runtime/nn/cuda/layers/walk.h"

enum { TABLE, FIRST };

int weft_cuda_add_rows_forward(const struct weft_cuda_walked *s)
{
    const struct weft_nn_walked *at = s->at;
    const struct weft_cuda_added_rows added = {.rows = at->in[0].rows,
                                               .width = at->in[0].columns,
                                               .seq_len = at->call->batch.seq_len,
                                               .by_position = at->step->sizes.positions > 0,
                                               .table = weft_nn_step_weight(at, TABLE),
                                               .first = weft_nn_step_weight(at, FIRST)};
    return weft_cuda_add_rows(weft_cuda_step_dtype(s), &added, at->in[0].data, at->out[0].data,
                              s->on);
}

/* Row p of `table_rows` gets rows p, `every` + p, ... of the gradient, in order. */
static int sum_rows(const struct weft_cuda_walked *s, int32_t index, int64_t table_rows,
                    int64_t every)
{
    const struct weft_nn_walked *at = s->at;
    const int32_t tensor = weft_nn_step_tensor(at, index);
    const struct weft_cuda_embedding rows = {
        .rows = at->in[0].rows, .width = at->in[0].columns, .seq_len = every};
    const struct weft_cuda_table table = {.dy = at->d_out.data,
                                          .gradient_dtype = at->call->gradient_dtype,
                                          .accumulate = at->call->accumulate[tensor],
                                          .gradient = at->call->gradients[tensor]};
    if (table.gradient == NULL) return 0;
    return weft_cuda_embed_positions(weft_cuda_step_dtype(s), &rows, table_rows, &table, s->on);
}

/* The gradient of a table with its first row alone in use. One warp would add all rows in order,
 * which plain kernels do. Others add stripes of rows: the scratch has the sums, then the stripes.
 */
static int sum_all_rows(const struct weft_cuda_walked *s, int64_t table_rows)
{
    const struct weft_nn_walked *at = s->at;
    const struct weft_nn_call *call = at->call;
    const int32_t tensor = weft_nn_step_tensor(at, TABLE);
    const int64_t width = at->in[0].columns, element = weft_dtype_bytes(call->gradient_dtype);
    char *gradient = call->gradients[tensor];
    if (s->cuda->plain) return sum_rows(s, TABLE, table_rows, 1);
    if (gradient == NULL) return 0;
    float *sums = (float *)(void *)s->scratch;
    const int64_t unit = WEFT_LAYOUT_ALIGN_BYTES / (int64_t)sizeof(float);
    int code =
        weft_cuda_column_sums(weft_cuda_step_dtype(s), at->in[0].rows, width, width, at->d_out.data,
                              sums, sums + (width + unit - 1) / unit * unit, s->on);
    if (code == 0 && !call->accumulate[tensor])
        code = weft_cuda_fill(gradient + width * element, 0, (table_rows - 1) * width * element,
                              s->on);
    return code != 0 ? code : weft_cuda_give(s, TABLE, width, sums);
}

static int give_input(const struct weft_cuda_walked *s)
{
    const struct weft_nn_walked *at = s->at;
    const int64_t rows = at->in[0].rows, width = at->in[0].columns;
    const enum weft_dtype dtype = weft_cuda_step_dtype(s);
    if (at->d_in[0].data == NULL) return 0;
    if (at->step->n_tensors > FIRST)
        return weft_cuda_clear_first_rows(dtype, rows, width, at->call->batch.seq_len,
                                          at->d_out.data, at->d_in[0].data, s->on);
    return weft_cuda_copy(at->d_in[0].data, at->d_out.data, rows * width * weft_dtype_bytes(dtype),
                          s->on);
}

int weft_cuda_add_rows_backward(const struct weft_cuda_walked *s)
{
    const struct weft_nn_walked *at = s->at;
    const int64_t positions = at->step->sizes.positions, seq_len = at->call->batch.seq_len;
    int code = positions > 0 ? sum_rows(s, TABLE, positions, seq_len)
                             : sum_all_rows(s, at->step->sizes.vocab);
    if (code == 0 && at->step->n_tensors > FIRST) code = sum_rows(s, FIRST, 1, seq_len);
    return code != 0 ? code : give_input(s);
}
