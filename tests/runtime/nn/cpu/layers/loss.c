/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "subject.h"

Test(loss, of_a_head_is_the_formula)
{
    subject_check_layer(subject_head(&weft_kind_lm_head, 6, 11, false), 2, 5, 1000);
    subject_check_layer(subject_head(&weft_kind_lm_head, 6, 11, true), 2, 5, 1000);
    subject_check_layer(subject_head(&weft_kind_lm_head, 33, 130, true), 3, 17, 60);
    struct weft_layer capped = subject_head(&weft_kind_lm_head, 6, 11, true);
    capped.keys[0].number = 0.6; /* logit_cap */
    subject_check_layer(capped, 2, 5, 1000);
}

Test(loss, of_a_classifier_is_the_formula)
{
    subject_check_layer(subject_head(&weft_kind_classifier, 6, 4, false), 3, 5, 1000);
    subject_check_layer(subject_head(&weft_kind_classifier, 21, 10, true), 4, 1, 1000);
    struct weft_layer of_first = subject_head(&weft_kind_classifier, 6, 4, true);
    of_first.keys[0].flag = true; /* first */
    subject_check_layer(of_first, 3, 5, 1000);
    of_first.keys[1].flag =
        true; /* pooler; 16 bits of tanh's output leave few digits of its slope */
    subject_check_layer_in_f32(of_first, 3, 5, 1000);
}

Test(loss, of_equal_logits_is_the_logarithm_of_their_number)
{
    struct weft_nn *nn = subject_open("auto");
    struct subject subject;
    subject_init(&subject, subject_head(&weft_kind_lm_head, 8, 256, false), 2, 9, 0);
    memset(subject.buffers[0], 0, 8 * 256 * sizeof(float));
    subject_forward(nn, &subject);
    cr_assert(fabs(subject.loss / 18 - log(256)) < 1e-9);
    subject_finish(&subject);
    weft_nn_close(nn);
}

/* The loss is that of the other rows, at any place in the batch. */
Test(loss, rows_without_a_target_have_none)
{
    enum { ROWS = 18, WIDTH = 11 };
    struct weft_nn *nn = subject_open("auto");
    struct subject subject;
    int32_t targets[ROWS];
    double losses[ROWS], whole, sum = 0;
    subject_init(&subject, subject_head(&weft_kind_lm_head, 8, WIDTH, true), 2, ROWS / 2, 0);
    subject.call.targets = targets;
    for (int i = 0; i < ROWS; i++)
        targets[i] = i * 7 % WIDTH;
    subject_forward(nn, &subject);
    whole = subject.loss;
    for (int row = 0; row < ROWS; row++) {
        for (int i = 0; i < ROWS; i++)
            targets[i] = i == row ? i * 7 % WIDTH : WEFT_NO_TARGET;
        subject_forward(nn, &subject);
        losses[row] = subject.loss;
        cr_assert_gt(losses[row], 0);
        sum += losses[row];
    }
    cr_assert_eq(sum, whole);
    /* A label that is left out has no gradient either. */
    targets[17] = WEFT_LEFT_OUT;
    subject_forward(nn, &subject);
    cr_assert_eq(subject.loss, 0);
    subject_backward(nn, &subject);
    for (int i = 0; i < 8; i++)
        cr_assert_eq(subject_value(WEFT_F32, subject.call.input_gradient, 17 * 8 + i), 0);
    targets[17] = WEFT_NO_TARGET;
    subject_forward(nn, &subject);
    cr_assert_eq(subject.loss, 0);
    subject_finish(&subject);
    weft_nn_close(nn);
}

Test(loss, refuses_a_target_outside_the_classes)
{
    static const int32_t wrong[] = {-1, 4, INT32_MAX};
    struct weft_nn *nn = subject_open("auto");
    struct subject subject;
    subject_init(&subject, subject_head(&weft_kind_classifier, 6, 4, true), 3, 5, 0);
    int32_t targets[3] = {0};
    subject.call.targets = targets;
    for (int i = 0; i < 3; i++) {
        struct weft_error err = {0};
        targets[2] = wrong[i];
        cr_assert_eq(weft_nn_cpu_forward(nn, &subject.call, &err), WEFT_E_DATA);
        cr_assert(strstr(err.text, "layer head: target "), "%s", err.text);
        cr_assert(strstr(err.text, "of row 2 is outside 0 to 3"), "%s", err.text);
    }
    subject_finish(&subject);
    weft_nn_close(nn);
}
