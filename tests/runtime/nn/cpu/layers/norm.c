/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <math.h>

#include "layers/shared/block.h"
#include "subject.h"

Test(layer_norm, is_the_formula)
{
    subject_check_layer(subject_same(&weft_kind_layer_norm, 5), 3, 4, 1000);
    subject_check_layer(subject_same(&weft_kind_layer_norm, 16), 1, 2, 1000);
    subject_check_layer(subject_same(&weft_kind_layer_norm, 99), 2, 7, 200);
    struct weft_layer wide = subject_same(&weft_kind_layer_norm, 5);
    wide.keys[WEFT_BLOCK_EPS].number = 0.3;
    subject_check_layer(wide, 3, 4, 1000);
}

Test(layer_norm, has_no_overflow_of_a_far_mean)
{
    struct weft_nn *nn = subject_open("auto");
    struct subject subject;
    subject_init(&subject, subject_same(&weft_kind_layer_norm, 64), 1, 1, 0);
    float *x = (float *)(void *)subject.buffers[4];
    cr_assert_eq((const void *)x, subject.call.input);
    for (int i = 0; i < 64; i++) {
        x[i] = 10000.0f + (float)(i % 2);
    }
    subject_forward(nn, &subject);
    for (int i = 0; i < 64; i++) {
        const float *w = subject.call.tensors[0], *b = subject.call.tensors[1];
        const float expected = (i % 2 ? 1.0f : -1.0f) * w[i] + b[i];
        const float got = (float)subject_value(WEFT_F32, subject.call.output, i);
        cr_assert(fabsf(got - expected) < 1e-4f);
    }
    subject_finish(&subject);
    weft_nn_close(nn);
}
