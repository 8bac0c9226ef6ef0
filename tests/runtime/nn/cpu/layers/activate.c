/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "subject.h"

Test(activation, gelu_is_the_formula)
{
    subject_check_layer(subject_same(&weft_kind_gelu, 37), 2, 3, 1000);
    subject_check_layer(subject_same(&weft_kind_gelu, 1), 1, 1, 1000);
}

Test(activation, gelu_with_the_error_function_is_the_formula)
{
    struct weft_layer layer = subject_same(&weft_kind_gelu, 37);
    layer.keys[0].flag = true; /* erf */
    subject_check_layer(layer, 2, 3, 1000);
}

Test(activation, relu_is_the_formula)
{
    subject_check_layer(subject_same(&weft_kind_relu, 37), 2, 3, 1000);
    subject_check_layer(subject_same(&weft_kind_relu, 1), 1, 1, 1000);
}
