/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of tables in 16 bits are those of f32, rounded once, for any number of rows. */
#include "runtime/nn/cpu/layers/table.h"

#include <criterion/criterion.h>
#include <string.h>

#include "base/numbers.h"
#include "layers/embedding.h"
#include "subject.h"

/* The forward and backward of a layer in bf16, with gradients of the dtype. */
static void run_subject(struct weft_nn *nn, struct weft_layer layer, int64_t samples,
                        int64_t seq_len, enum weft_dtype gradient, struct subject *subject)
{
    subject_init_as(subject, layer, samples, seq_len, 0, WEFT_BF16, gradient);
    subject_forward(nn, subject);
    subject_backward(nn, subject);
}

static void check_layer(struct weft_layer layer, int64_t samples, int64_t seq_len)
{
    struct weft_nn *nn = subject_open("auto");
    struct subject wide, narrow;
    run_subject(nn, layer, samples, seq_len, WEFT_F32, &wide);
    run_subject(nn, layer, samples, seq_len, WEFT_BF16, &narrow);
    for (int t = 0; t < WEFT_LAYER_TENSORS; t++) {
        for (int64_t i = 0; i < wide.elements[t]; i++) {
            const float sum = (float)subject_value(WEFT_F32, wide.call.gradients[t], i);
            const float rounded = weft_bf16_widen(weft_bf16_narrow(sum));
            const double got = subject_value(WEFT_BF16, narrow.call.gradients[t], i);
            cr_assert_eq(got, (double)rounded, "%s, tensor %d [%lld]: %g, not %g", layer.name, t,
                         (long long)i, got, (double)rounded);
        }
    }
    subject_finish(&wide);
    subject_finish(&narrow);
    weft_nn_close(nn);
}

static struct weft_layer added_table(const struct weft_kind *kind, int64_t rows, bool class_token)
{
    struct weft_layer layer = subject_same(kind, 5);
    layer.keys[0].integer = rows;
    layer.keys[1].flag = class_token;
    return layer;
}

Test(table, sums_of_rows_are_rounded_once)
{
    check_layer(added_table(&weft_kind_token_types, 2, false), 2, 4096);
    check_layer(added_table(&weft_kind_positions, 9, false), 300, 7);
    check_layer(added_table(&weft_kind_positions, 7, true), 300, 7);
    check_layer(subject_embedding(3, 9, 5), 300, 7);
    check_layer(subject_embedding(70000, 0, 3), 3, 40);
    check_layer(subject_embedding(5, 4, 1100), 3, 4);
}
